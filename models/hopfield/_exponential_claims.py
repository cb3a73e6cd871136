"""What is stated of exponentially many patterns of signs: errors of one update, which fall with d at every load up to exp(.55 d)."""

from collections.abc import Iterable

import numpy as np

from odesim.lab.claims import Claim, Measurement, Statement
from odesim.models.hopfield._sign_claims import patterns, wrong_signs
from odesim.symbolic import Source

DIMENSIONS = (10, 14, 18, 22)
ERRORS = {  # mean, and deviation of a memory, for N = exp(a d), by an independent script of 4 to 2000 memories for each
    0.25: ((0.00567, 0.0066), (0.00102, 0.00145), (0.00017, 0.00033), (0.00003, 0.00008)),
    0.35: ((0.0152, 0.0066), (0.00398, 0.00145), (0.00101, 0.00028), (0.00027, 0.00005)),
    0.45: ((0.0400, 0.0063), (0.0160, 0.0015), (0.00622, 0.0002), (0.00248, 0.0003)),
    0.55: ((0.0956, 0.0058), (0.0588, 0.0012), (0.0352, 0.0014), (0.0211, 0.0010)),
}


def error(a: float, d: int, memories: int, read: int) -> float:
    """The share of wrong signs after one update, from `read` patterns of each of so many memories of exp(a d)."""
    drawn = (patterns(d, round(np.exp(a * d)), seed) for seed in range(memories))
    return float(np.mean([wrong_signs("hopfield.dense:EXPONENTIAL", X, read).mean() for X in drawn]))


def table() -> Iterable[Measurement]:
    """Wrong signs of exp(a d) patterns, a = .25 to .55, d = 10 to 22, beside an independent script; they fall with d and rise with a."""
    found = {}
    for a, row in ERRORS.items():
        for d, (mean, deviation) in zip(DIMENSIONS, row, strict=True):
            N = np.exp(a * d)
            memories, read = (40 if N < 100 else 4 if N < 1000 else 1), round(min(N, 600))
            found[a, d] = error(a, d, memories, read)
            # of memories, and of the signs that are read of each
            spread = 4 * (deviation**2 / memories + mean / (memories * read * d)) ** 0.5
            yield Measurement(f"error at {a:g} d, d = {d}", found[a, d], mean, spread)
        least = min(found[a, d] - found[a, d + 4] for d in DIMENSIONS[:-1])
        yield Measurement(f"{a:g} d: least fall of the error from a d to the next", least, 0.0, 0.0, ">=")
    for d in DIMENSIONS:
        rise = np.diff([found[a, d] for a in ERRORS]).min()
        yield Measurement(f"d = {d}: least rise of the error from a load to the next", float(rise), 0.0, 0.0, ">=")
    for d in (18, 22):
        yield Measurement(f"error at .25 d, d = {d}", found[0.25, d], 1e-3, 0.0, "<=")


EXPONENTIAL = (
    Claim(
        "hopfield.exponential_capacity",
        Source("demircigil2017model", "exponential interactions", "exp(a d) patterns, a < ln(2) / 2, as d grows"),
        "hopfield.dense:EXPONENTIAL, one step of all neurons, d = 10 to 22, exp(.25 d) to exp(.55 d) patterns",
        printed=Statement(
            "exp(a d) patterns are kept: the share of wrong signs falls with d, here also above a = ln(2) / 2 = .347",
            table,
            "four standard errors, of memories and of the signs that are read",
        ),
        slow=True,
    ),
)

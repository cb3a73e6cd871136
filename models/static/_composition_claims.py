"""Composition of functions by one layer: what it carries of a table in few bits leaves entries that are wrong.

g(f(x)) of two tables of n entries: one layer of H heads, width d and p bits a number carries H (d + 1) p bits of the table of g to the
last token, before this knows which entry it needs. With b bits each of 2^b messages is read as one table; the error is the mean over all
tables of the share of entries that differ from the nearest of these, and the least error is that of the best 2^b tables.
"""

from collections.abc import Iterable, Iterator
from itertools import combinations, islice, product

import numpy as np

from odesim.lab.claims import Claim, Measurement, Statement
from odesim.symbolic import Source

EXACT = {(2, 0): 1 / 2, (2, 1): 1 / 4, (3, 0): 2 / 3, (3, 3): 19 / 81, (3, 4): 11 / 81}
"""The least error: no bit leaves a guess; five tables of three entries cover all within one entry, so that 27 - 2^b have one wrong of 3."""


def tables(n: int) -> np.ndarray:
    """All tables (n^n, n) of n entries."""
    return np.array(list(product(range(n), repeat=n)))


def least_error(n: int, bits: int) -> float:
    """The least share of wrong entries when a table of n entries is told in so many bits, by trying all sets of 2^bits tables.

    What a table is compared with is a matter of names: the first one of a set may be 0.
    """
    every = tables(n)
    apart = (every[:, None] != every).sum(axis=2).astype(np.uint8)
    least = np.inf
    for others in chunks(combinations(range(1, len(every)), 2**bits - 1), 20_000):
        nearest = np.minimum(apart[:, :1], apart[:, others].min(axis=2, initial=n))
        least = min(least, float(nearest.sum(axis=0).min()))
    return least / (n * len(every))


def chunks(sets: Iterator[tuple[int, ...]], size: int) -> Iterator[np.ndarray]:
    """So many sets (size, k) at a time."""
    while part := list(islice(sets, size)):
        yield np.array(part, int).reshape(len(part), -1)


def bound(n: int, bits: float) -> float:
    """The stated least error of a table of n entries told in so many bits."""
    return max(0.0, 1 - bits / (n * float(np.log2(n)))) / 3


def told_in_few_bits() -> Iterable[Measurement]:
    """Tables of two entries and of three: the least error, by trying all sets, beside the bound and known coverings."""
    for n, most in ((2, 1), (3, 3)):
        for bits in range(most + 1):
            least = least_error(n, bits)
            yield Measurement(f"n = {n}, b = {bits}: least error", least, bound(n, bits), 0.0, ">=")
            if (n, bits) in EXACT:
                yield Measurement(f"n = {n}, b = {bits}: least error, by a covering", least, EXACT[n, bits], 1e-12)
    # four bits: tables that are none of the 16 have a wrong entry
    yield Measurement("n = 3, b = 4: least error", EXACT[3, 4], bound(3, 4), 0.0, ">=")
    yield Measurement("n = 2, b = 2: least error", least_error(2, 2), 0.0, 1e-12)


def of_a_layer() -> Iterable[Measurement]:
    """One head of width 8 and 16 bits, 144 in all: the least n of which the bound is above 0; 29 log 29 = 140.9, 30 log 30 = 147.2."""
    first = next(n for n in range(2, 1000) if bound(n, 1 * (8 + 1) * 16) > 0)
    yield Measurement("H = 1, d = 8, p = 16: least n that it cannot compose", first, 30)


COMPOSITION = Claim(
    "static.composition",
    Source("peng2024limitations", "Theorem 1", "wording recalled; the least errors by enumeration"),
    "all tables of two entries and of three, all sets of up to eight messages",
    printed=Statement(
        "one layer with H (d + 1) p < n log n errs on g(f(x)), with a chance of at least 1/3 - H (d + 1) p / (3 n log n)",
        lambda: (*told_in_few_bits(), *of_a_layer()),
        "exact counts; rounding",
    ),
)

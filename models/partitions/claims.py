"""What is stated of embeddings that find a partition, and what holds."""

from collections.abc import Iterable
from typing import Any

import numpy as np

import odesim
from odesim.lab.claims import Claim, Measurement
from odesim.symbolic import Source

MODEL, PAPER = "partitions.embeddings", "buchholz2024partitions"
FINE: dict[str, Any] = {"rtol": 1e-10, "atol": 1e-14, "backend": "numpy"}
TOKENS, SEEDS = 32, 5


def closing(R: int) -> Iterable[Measurement]:
    """Six tokens of two classes in R dimensions, to t = 40: the spread of classes in the end, and how it falls.

    F has the eigenvalues 3 (1 +- .2) and 0. In two dimensions V^T V comes to 3.6 and 2.4: squares fall as exp(-2 * 2.4 t).
    """
    run = odesim.integrate(MODEL, sizes={"R": R}, span=(0, 40), save=[0, 5, 7, 40], **FINE)
    spread = run.observables["spread"]
    yield Measurement("spread of classes at t = 40", spread[3], 0.0, 1e-20)
    yield Measurement("rate of its fall from t = 5 to 7", np.log(spread[1] / spread[2]) / 2, 4.8, 0.02)


def fading() -> Iterable[Measurement]:
    """In three dimensions and in four: 1/spread grows by 2 / (3 (R - 2)) a unit of time, from an exact X' = -2 X^2 where F is 0."""
    for R in (3, 4):
        start = 0.5 * np.random.default_rng(0).standard_normal((6, R))
        run = odesim.integrate(MODEL, sizes={"R": R}, initial={"V": start}, span=(0, 400), save=[0, 200, 400], **FINE)
        inverse = 1 / run.observables["spread"]
        yield Measurement(f"R = {R}: slope of 1/spread from t = 200 to 400, times 3 (R - 2) / 2",
                          (inverse[2] - inverse[1]) / 200 * 3 * (R - 2) / 2, 1.0, 0.02)  # fmt: skip


def sampled(many: float, tokens: int = TOKENS, sets: int = SEEDS) -> int:
    """From how many sets of many N ln N pairs of N tokens, drawn with repetition, two classes become points, by t = 1000."""
    found = 0
    for seed in range(sets):
        pairs = np.random.default_rng(seed).integers(tokens, size=(round(many * tokens * np.log(tokens)), 2))
        seen = np.zeros((tokens, tokens))
        for one, other in ((0, 1), (1, 0)):
            np.add.at(seen, (pairs[:, one], pairs[:, other]), 0.5)
        run = odesim.integrate(
            MODEL, sizes={"N": tokens}, params={"seen": seen}, span=(0, 1000), save=2, rtol=1e-6, atol=1e-9, backend="numpy"
        )
        found += float(run.final_observables["spread"]) < 1e-6
    return found


def from_samples() -> Iterable[Measurement]:
    """Five sets of pairs each."""
    yield Measurement("sets of 3 N ln N pairs from which classes become points, of 5", sampled(3), SEEDS)
    # a token that is in no pair does not move: N exp(-2 m / N) of them, 4 of 32
    yield Measurement("sets of N ln N pairs over 4", sampled(0.25), 0)


CLAIMS = (
    Claim(
        "partitions.classes_close",
        Source(PAPER, "Abstract", "gradient flow of embeddings reveals classes"),
        "partitions.embeddings, six tokens of two classes, two dimensions, or three",
        "embeddings of a class become one, exponentially, at the least eigenvalue that is fitted",
        lambda: closing(2),
        "1e-20: rounding of squares; the second of two modes",
        when="the embeddings have no more dimensions than there are classes; each one more leaves a spread of n / (2 t)",
        otherwise=lambda: closing(3),
    ),
    Claim(
        "partitions.fading",
        Source(PAPER, "Abstract", "with more dimensions than classes"),
        "partitions.embeddings, six tokens of two classes, three dimensions and four, to t = 400",
        "R - K dimensions more than classes leave a spread that falls as n (R - K) / (2 t), n tokens a class",
        fading,
        "terms of order exp(-2 * 2.4 t), and what they leave",
    ),
    Claim(
        "partitions.samples",
        Source(PAPER, "Abstract", "order N ln N samples identify the partition"),
        "partitions.embeddings, 32 tokens of two classes in two dimensions, five sets of drawn pairs, to t = 1000",
        "classes are found from order N ln N pairs of tokens",
        from_samples,
        "none: all of five sets, or none",
    ),
)

"""Heavy hitters and sinks need a null: causal attention that is even gives most of itself to the first keys.

Of T queries, query t has t keys with 1/t each: key j gets (H_T - H_(j-1)) / T of all attention, H the harmonic numbers. At T = 35 the first
key has .118, four times the mean, and a fifth of the keys .511. What a trained model has beyond that is its own.
"""

from collections.abc import Iterable
from math import ceil

import numpy as np

from odesim.lab.claims import Claim, Measurement, Statement
from odesim.symbolic import Source

T = 35


def even(length: int) -> np.ndarray:
    """The share of all attention (length,) that each key gets from queries that see all keys before them alike."""
    return np.cumsum(1 / np.arange(length, 0.0, -1))[::-1] / length


def most(shares: np.ndarray) -> float:
    """What the fifth of the keys with the most of it has."""
    return float(np.sort(shares)[::-1][: ceil(len(shares) / 5)].sum())


def of_random_scores(spread: float, draws: int = 2000) -> np.ndarray:
    """Mean shares (T,) of softmax attention on normal scores of this deviation."""
    scores = np.exp(spread * np.random.default_rng(0).standard_normal((draws, T, T))) * np.tri(T)
    return np.asarray((scores / scores.sum(axis=2, keepdims=True)).mean(axis=(0, 1)))


def matter() -> Iterable[Measurement]:
    """A fifth of the keys of even attention, in which no key matters more than another, has what a fifth has."""
    yield Measurement("attention of the top fifth of the keys of even attention", most(even(T)), 0.2, 0.02)


def by_the_null() -> Iterable[Measurement]:
    """Even attention by formula, by random scores, and for longer contexts."""
    yield Measurement("T = 35: first key", even(T)[0], 0.118479, 6e-7)
    yield Measurement("T = 35: top fifth", most(even(T)), 0.510785, 6e-7)
    yield Measurement("sum of the shares", even(T).sum(), 1.0, 1e-12)
    drawn = of_random_scores(1.0)
    yield Measurement("scores of deviation 1: largest difference from even attention", np.abs(drawn - even(T)).max(), 0.0, 2e-3)
    for length in (100, 1000, 10_000):
        # the first fifth: 1/5 of 1 + ln 5, from the integral of ln(1/x)
        yield Measurement(f"T = {length}: top fifth, of (1 + ln 5)/5", most(even(length)), (1 + np.log(5)) / 5, 1 / length)


SINKS = Claim(
    "static.heavy_hitters",
    Source("zhang2023h2o", "accumulated attention", "keys that get most of it"),
    "even causal attention of 35 to 10,000 keys; 2000 draws of random scores",
    "a fifth of the keys with half of all attention are those that matter",
    matter,
    "a tenth of the share",
    fails=True,
    corrected=Statement(
        "even causal attention gives the first key H_T / T, and a fifth of the keys (1 + ln 5)/5 = .52 of all: the null of such claims",
        by_the_null,
        "half a unit of the last recorded digit; the noise of 2000 draws; 1/T",
    ),
)

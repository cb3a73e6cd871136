"""The metrics on curves whose distances are known in closed form."""

from typing import Any

import numpy as np
import pytest

from odesim.lab.compare.metrics import (
    METRICS,
    NAMES,
    agree_until,
    correlation,
    half_times,
    largest_difference,
    measure,
    measure_seeds,
    relative_l2,
    scale,
    spread,
)
from tests.support.curves import T, rising

B = rising([0.5, 1.0, 2.0])
IDEAL: dict[str, float] = {"correlation": 1, "relative_l2": 0, "sup": 0, "scale": 1, "shift": 0, "shift_worst": 0}
TOP = float(np.max(np.abs(B)))
SCALED = ("log_error", "end_ratio")  # of positive quantities that span a decade: B has both signs

# what becomes of B, and what the metrics then are
KNOWN: dict[str, tuple[Any, dict[str, float]]] = {
    "itself": (B, IDEAL),
    "half as large": (0.5 * B, {**IDEAL, "relative_l2": 0.5, "sup": 0.5 * TOP, "scale": 0.5}),
    "turned over": (-B, {**IDEAL, "correlation": -1, "relative_l2": 2, "sup": 2 * TOP, "scale": -1}),
    # B has mean 0 and half times do not feel an offset
    "set off": (B + 0.1, {**IDEAL, "relative_l2": 0.1 * np.sqrt(B.size) / np.linalg.norm(B), "sup": 0.1}),
}


@pytest.mark.parametrize("name", KNOWN)
def test_known_distances(name):
    """A scaled, turned or offset copy has the errors, scale and correlation of the formula; rounding 1e-12."""
    a, wanted = KNOWN[name]
    found = measure(T, a, B)
    assert set(wanted) | {"spread", *SCALED} == set(NAMES) and all(np.isnan(found[name]) for name in SCALED)
    for metric, value in wanted.items():
        assert found[metric] == pytest.approx(value, abs=1e-12), metric


@pytest.mark.parametrize("delay", [-0.33, 0.2, 0.75])
def test_shift_is_the_delay(delay):
    """Curves that are late by d are half way d later: tanh with its ends at 4 + d -+ 16, off by interpolation of second order."""
    t = np.linspace(-12 + delay, 20 + delay, 641)
    late, early = rising([0.5, 1.0, 2.0], t, delay), rising([0.5, 1.0, 2.0], t, 0.0)
    found = measure(t, late, early)
    assert found["shift"] == pytest.approx(delay, abs=2e-3)  # (h rate)^2 / 8 = 1e-3 a side
    assert found["shift_worst"] == pytest.approx(delay, abs=2e-3)


def test_the_worst_shift_is_of_one_component():
    """One component of three late by 0.6: the mean is a third of it, the worst all of it."""
    t = np.linspace(-12, 20, 641)
    a = np.concatenate([rising([1.0, 1.0], t), rising([1.0], t, 0.6)], axis=2)
    found = measure(t, a, rising([1.0, 1.0, 1.0], t))
    assert (found["shift"], found["shift_worst"]) == pytest.approx((0.2, 0.6), abs=2e-3)


def test_half_times_of_relaxation():
    """1 - exp(-r t) up to t = 8 has gone half of its way at ln(2 / (1 + exp(-8 r))) / r; what goes nowhere has no such time."""
    t = np.linspace(0, 8, 4001)
    rates = np.array([0.3, 1.0, 3.0])
    found = half_times(t, np.column_stack([1 - np.exp(-np.outer(t, rates)), np.full(len(t), 0.1), np.full(len(t), np.nan)]))
    assert found[:3] == pytest.approx(np.log(2 / (1 + np.exp(-8 * rates))) / rates, abs=5e-6)  # (r h)^2 / 8
    assert np.all(np.isnan(found[3:]))


@pytest.mark.parametrize("q", [0.25, 0.9, 1.2])
def test_decay_at_another_rate(q):
    """exp(-q t) beside exp(-t): off by (1 - q) t in the logarithm, a tenth at ln 1.1 / |1 - q|; correlation sees little of it."""
    a, b = np.exp(-q * T)[None, :, None], np.exp(-T)[None, :, None]
    found = measure(T, a, b)
    assert found["log_error"] == pytest.approx(abs(1 - q) * np.sqrt(np.mean(T**2)), rel=1e-12)
    assert found["end_ratio"] == pytest.approx(np.exp((1 - q) * T[-1]), rel=1e-12)
    last = np.log(1.1) / abs(1 - q)
    assert agree_until(T, a, b) == T[last >= T].max() and agree_until(T, b, b) == T[-1]
    metric = {m.name: m for m in METRICS}["end_ratio"]
    assert metric.miss(found["end_ratio"]) == pytest.approx(np.exp(abs(1 - q) * T[-1]) - 1, rel=1e-12) and metric.ideal == 1


def test_what_a_correlation_hides():
    """Of a loss that ends 400 times too large, correlation is .999: the ratio at the end and the last time of agreement say so."""
    b = np.exp(-np.log(4000) * T / 8)[None, :, None]
    found = measure(T, b + 0.1 * (T / 8)[None, :, None] ** 2, b)
    assert found["correlation"] > 0.99 and found["end_ratio"] == pytest.approx(401, rel=1e-9)
    assert 0 < agree_until(T, b + 0.1 * (T / 8)[None, :, None] ** 2, b) < 4


def test_agreement_of_what_has_both_signs():
    """In parts of the largest length: an offset of .05 agrees to the end, of .2 never, one from half of the time on until there."""
    b = rising([1.0])
    assert agree_until(T, b + 0.05, b) == T[-1] and np.isnan(agree_until(T, b + 0.2, b))
    assert agree_until(T, b + 0.2 * (T > 4)[None, :, None], b) == 4
    assert agree_until(T, np.zeros((1, 81, 1)), np.zeros((1, 81, 1))) == T[-1]
    assert np.isnan(agree_until(T, np.full((1, 81, 1), np.nan), b))


def test_agreement_is_in_parts_of_the_second_curve():
    """Random curves of both signs, the first up to four times as large: the time before the first one at which they are a tenth of the
    largest length of the second apart, by a loop."""
    rng, seen = np.random.default_rng(3), set()
    for _ in range(50):
        b = np.cumsum(rng.normal(size=(1, 81, 2)), axis=1)
        a = b + rng.choice([0.3, 3.0]) * np.abs(b).max() * (T / T[-1])[None, :, None] ** 3 * rng.normal(size=2)
        largest, until = max(np.hypot(*row) for row in b[0]), np.nan
        for t, one, other in zip(T, a[0], b[0], strict=True):
            if np.hypot(*(one - other)) > 0.1 * largest:
                break
            until = t
        assert agree_until(T, a, b) == until
        seen.add(until)
    assert len(seen) > 10


def test_against_numpy():
    """Correlation is that of np.corrcoef, the scale that of a least squares fit, the errors norms of numpy."""
    a, b = np.random.default_rng(1).normal(size=(2, 40, 3))
    assert correlation(a, b) == pytest.approx(np.corrcoef(a.ravel(), b.ravel())[0, 1], rel=1e-12)
    assert scale(a, b) == pytest.approx(np.linalg.lstsq(b.reshape(-1, 1), a.ravel(), rcond=None)[0][0], rel=1e-12)
    assert relative_l2(a, b) == pytest.approx(np.linalg.norm(a - b) / np.linalg.norm(b), rel=1e-12)
    assert largest_difference(a, b) == abs(a - b).max()


def test_spread_of_two_seeds():
    """Seeds at m - s and m + s beside 0 have the mean m and its standard error s: the spread is m / s."""
    a = np.array([0.3 - 0.1, 0.3 + 0.1])[:, None, None] * np.ones((2, 5, 1))
    assert spread(a, np.zeros((1, 5, 1))) == pytest.approx(3.0, rel=1e-12)
    assert np.isnan(spread(a[:1], np.zeros((1, 5, 1))))
    assert spread(np.ones((2, 5, 1)), np.zeros((1, 5, 1))) == np.inf
    assert np.isnan(spread(np.ones((2, 5, 1)), np.ones((1, 5, 1))))


def test_chance_has_a_spread_of_one():
    """Normal numbers around theory differ from it by one standard error; 4000 components leave 1/sqrt(8000) = 1 %, and thrice that."""
    b = np.random.default_rng(0).normal(size=(1, 1000, 4))
    assert spread(b + np.random.default_rng(2).normal(size=(30, 1000, 4)), b) == pytest.approx(1, abs=0.04)


def test_nothing_to_measure_is_not_a_number():
    """A constant has no correlation, zero no relative error and no scale, what does not move no shift."""
    found = measure(T, np.ones((1, 81, 2)), np.zeros((1, 81, 2)))
    assert {name for name, value in found.items() if np.isnan(value)} == set(NAMES) - {"sup"} and found["sup"] == 1


@pytest.mark.parametrize("level", [0.0, 1e-300, 0.1, 1 / 3, 1e100])
@pytest.mark.parametrize("side", ["training", "theory", "both"])
def test_a_constant_to_rounding_is_a_constant(level, side):
    """A value that differs by a few units of its last digit has no correlation, and seeds that differ so have no spread."""
    still = level * (1 + 4 * np.finfo(float).eps * np.sin(np.arange(3 * T.size))).reshape(3, T.size, 1)
    moving = level * (1 + np.linspace(0, 1, T.size)).reshape(1, -1, 1) * np.ones((3, 1, 1))
    a, b = (still, moving) if side == "training" else (moving, still[:1]) if side == "theory" else (still, still[::-1][:1])
    found = measure(T, a, b)
    assert np.isnan(found["correlation"])
    if side == "both":
        assert np.isnan(found["spread"])


def test_each_seed_is_measured_against_its_own():
    """With a theory for each seed a seed that follows its own has no error; with one theory for all, its error is that to it."""
    b = np.concatenate([B, 2 * B])
    assert measure_seeds(T, b, b)["relative_l2"] == pytest.approx([0, 0], abs=1e-12)
    assert measure_seeds(T, b, B)["scale"] == pytest.approx([1, 2], rel=1e-12)
    assert "spread" not in measure_seeds(T, b, B)


@pytest.mark.parametrize("exponent", [600, -600])
def test_metrics_have_no_unit(exponent):
    """Curves in units of a power of two, whose squares would overflow or vanish, have the same bits of what is a ratio."""
    a, b = np.random.default_rng(4).normal(size=(2, 7, 3))
    for metric in (correlation, relative_l2, scale):
        assert metric(np.ldexp(a, exponent), np.ldexp(b, exponent)) == metric(a, b)
    assert scale(np.ldexp(a, exponent), b) == np.ldexp(scale(a, b), exponent)

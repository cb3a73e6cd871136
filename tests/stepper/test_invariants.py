"""Linear invariants kept after a step: their values at the start, and how states are moved to have them again."""

from fractions import Fraction

import numpy as np
import pytest

from odesim.ir.invariants import LinearInvariant, exact_sum, exact_sums
from odesim.stepper.control import move_back
from odesim.stepper.rosenbrock_run import conserved

EPS = float(np.finfo(float).eps)
# a weak acid: HA + A, and of the small ones H = A + OH; HA + H - OH is the sum of both
ACID = (LinearInvariant((0, 1, 3), (1.0, 1.0, -1.0)), LinearInvariant((1, 2, 3), (1.0, -1.0, -1.0)), LinearInvariant((0, 2), (1.0, 1.0)))


@pytest.mark.parametrize("weights", [(1.0, -1.0, 1.0, 1.0, -1.0), (3.0, -0.1, 1 / 3, 7.5, -2.0)])
def test_sums_are_exact(weights):
    """Against fractions, for terms of very different size that nearly cancel: right to the last digit, or to eps^2 of the terms."""
    rng = np.random.default_rng(0)
    starts = rng.standard_normal((200, 5)) * 10.0 ** rng.uniform(-25, 5, (200, 5))
    starts[:100, 4] = -(starts[:100, :4] @ np.array(weights[:4])) / weights[4]
    invariant = LinearInvariant((0, 1, 2, 3, 4), weights)
    sums = exact_sums(invariant, starts)
    assert sums.tolist() == [exact_sum(invariant, row) for row in starts]
    for row, value in zip(starts, sums, strict=True):
        terms: list[Fraction] = [Fraction(w) * Fraction(y) for w, y in zip(weights, map(float, row), strict=True)]
        exact, size = sum(terms, Fraction(0)), sum(map(abs, terms), Fraction(0))
        assert abs(Fraction(float(value)) - exact) <= Fraction(EPS) * abs(exact) + 40 * Fraction(EPS) ** 2 * size


def test_states_are_moved_least():
    """Each invariant holds to rounding of its own terms, though those of another are 1e12 times larger; nothing moves by more than a
    part of itself, a state that is 0 not at all, and a second time changes no more than rounding."""
    rng = np.random.default_rng(0)
    for scale in (1.0, 1e-6, 1e-12):
        A, OH = scale * rng.uniform(0.5, 1.5), scale**2 * rng.uniform(0.5, 1.5)
        true = np.array([1.0, A + OH, A, OH])
        kept = conserved(ACID, true)
        for size in (1e-13, 1e-9, 1e-6):
            y = true * (1 + size * rng.uniform(-1, 1, 4))
            for _ in range(3):  # of three planes, one after another
                move_back(kept, y)
            assert np.abs(y / true - 1).max() < 4 * size
            for w in ACID:
                terms = np.array(w.weights) * y[list(w.places)]
                value = float(exact_sums(w, true[None])[0])
                # what is left goes down by a factor a round where the planes are oblique
                assert abs(terms.sum() - value) <= (4 * EPS + 0.3 * size) * np.abs(terms).sum()
    zero, y = conserved((LinearInvariant((0, 1, 2), (1.0, -1.0, -1.0)),), np.array([2.0, 2.0, 0.0])), np.array([2.0 + 1e-9, 2.0, 0.0])
    move_back(zero, y)
    assert y[2] == 0 and abs(y[0] - y[1]) <= 2 * EPS * 2


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e200, 1e-200, 0.0])
def test_what_is_no_number_stays(bad):
    """A state that is not finite stays so, for the step to be rejected; where squares overflow or vanish nothing is moved."""
    start = np.array([1.0, 0.5, 0.5])
    y = np.array([bad, bad, bad])
    moved = y.copy()
    with np.errstate(all="ignore"):
        move_back(conserved((LinearInvariant((0, 1, 2), (1.0, -1.0, -1.0)),), start), moved)
    assert not np.isfinite(moved).any() if not np.isfinite(bad) else np.array_equal(moved, y)

"""Iterations as time: the closed form beside the updates themselves."""

from typing import Any

import numpy as np
import pytest

from odesim.base.errors import ParamError
from odesim.lab.compare.sides import TrainingClock, common_times, interpolate, side_of_training
from odesim.lab.training.loop import Trajectory


@pytest.mark.parametrize("beta", [0.0, 0.5, 0.9, 0.99])
def test_effective_time_is_what_a_constant_gradient_moves(beta):
    """Under the gradient 1 descent with momentum has moved by the effective time, to rounding."""
    v = y = 0.0
    moved = [y]
    for _ in range(60):
        v = beta * v + 1
        y += 0.25 * v
        moved.append(y)
    assert TrainingClock(0.25, beta).times(np.arange(61)) == pytest.approx(moved, rel=1e-12)


def test_the_limit_is_ahead_by_the_whole_lag():
    """Late on, the limit clock is ahead by step beta / (1 - beta)^2, up to beta^i; without momentum the two agree."""
    i = np.array([0, 400])
    gap = TrainingClock(2.0, 0.9, "limit").times(i) - TrainingClock(2.0, 0.9).times(i)
    assert gap == pytest.approx([0, 2 * 0.9 / 0.01], rel=1e-12)
    assert np.array_equal(TrainingClock(2.0, 0.0, "limit").times(i), TrainingClock(2.0).times(i))


def test_a_logarithmic_clock():
    """ln(1 + t) of the flow's time t, also with momentum; it says so."""
    i = np.arange(0, 2000, 7)
    for beta in (0.0, 0.9):
        plain, clock = TrainingClock(0.5, beta), TrainingClock(0.5, beta, logarithmic=True)
        assert np.exp(clock.times(i)) - 1 == pytest.approx(plain.times(i), rel=1e-12)
        assert str(clock) == f"ln(1 + t), {plain}"


@pytest.mark.parametrize(("given", "said"), [((1.0, 0.5, "late"), "no clock 'late'; choose from"), ((1.0, 1.0), "momentum must lie in")])
def test_no_such_clock(given, said):
    """A clock that is none, and a momentum that never forgets, are refused."""
    with pytest.raises(ParamError, match=said):
        TrainingClock(*given)


def test_resampling_is_that_of_numpy():
    """Between times it is np.interp entry by entry; at a time the very value, whatever stands beside it."""
    rng = np.random.default_rng(0)
    t, values, times = np.sort(rng.uniform(0, 1, 9)), rng.normal(size=(2, 9, 3)), np.linspace(0, 1, 40)
    times = times[(times >= t[0]) & (times <= t[-1])]
    found = interpolate(t, values, times)
    for r, k in np.ndindex(2, 3):
        assert found[r, :, k] == pytest.approx(np.interp(times, t, values[r, :, k]), abs=1e-14)
    values[:, [1, 4]] = np.inf
    with np.errstate(invalid="ignore"):
        assert np.array_equal(interpolate(t, values, t), values)


def test_common_times():
    """The times of the coarser run where both are, rounding of the ends forgiven; none in common is refused."""
    fine, coarse = np.linspace(0, 10, 101), np.linspace(2, 12, 6)
    assert common_times(fine, coarse) == pytest.approx([2, 4, 6, 8, 10])
    assert common_times(coarse, fine) == pytest.approx([2, 4, 6, 8, 10])
    assert len(common_times(np.arange(4) * (1 + 1e-14), np.arange(4.0))) == 4
    assert len(common_times(np.array([0.0, 100.0]), np.linspace(1, 2, 5))) == 5
    with pytest.raises(ParamError, match="no overlap in time: one run goes from 0 to 10, the other from 11 to 12"):
        common_times(fine, np.array([11.0, 12.0]))


def trained(bad: dict[int, int], count: int = 3) -> Trajectory:
    """Seeds 5 and 7; w is the seed."""
    w = np.array([5.0, 7.0])[:, None] * np.ones((2, count))
    said: dict[str, Any] = {"status": "ok" if not bad else "non_finite", "message": "lost", "config": {}, "stats": {}}
    return Trajectory("toy", "m", np.arange(count), {"w": w}, {}, count - 1, count - 1, (5, 7), dims={}, bad=bad, **said)


def test_lost_seeds_are_left_out():
    """A seed whose loss was not finite takes no part, and a note says so."""
    found = side_of_training(trained({5: 1}))
    assert found.seeds == (7,) and np.all(found.values("w") == 7) and found.notes == ("lost",)


def test_all_seeds_lost_are_cut():
    """Where no seed is left, all are kept up to the first loss that is not finite; one time alone is nothing to compare."""
    found = side_of_training(trained({5: 3, 7: 2}, count=5))
    assert found.seeds == (5, 7) and list(found.t) == [0, 1] and found.values("w").shape == (2, 2)
    for case in (trained({5: 1, 7: 2}), trained({}, count=1)):
        with pytest.raises(ParamError, match="nothing to compare"):
            side_of_training(case)

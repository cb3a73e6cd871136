"""Members that cannot be integrated among many that can: nobody else sees them, and they cost next to nothing.

Other libraries let all members wait for the worst one, end the batch with it, or call what is left of the others a success.
"""

from functools import cache
from typing import Any

import numpy as np
import pytest
import xarray as xr

import odesim

MODEL = "joma.nonlinear"  # v' = (mu - v) exp(v^2 / 2), which saturates at mu
LANES = 8
# what member and component are given instead, and what becomes of it
BAD: list[tuple[str, float, str]] = [
    ("mu", np.nan, "non_finite"),
    ("mu", np.inf, "non_finite"),
    ("mu", -np.inf, "non_finite"),
    ("mu", 37.0, "blow_up"),
    ("mu", 1e308, "step_too_small"),
    ("v", np.nan, "non_finite"),
    ("v", np.inf, "non_finite"),
    ("v", 60.0, "non_finite"),
    ("v", -30.0, "ok"),
]
MANY = [
    ("tsit5", 100_000),
    pytest.param("dop853", 5_000, marks=pytest.mark.slow),
    pytest.param("rodas5p", 30, marks=pytest.mark.slow),
]  # a kernel each


def places(count: int) -> np.ndarray:
    """A member for each row of BAD: the first, the last, neighbours, and the rest anywhere."""
    between = np.random.default_rng(1).choice(np.arange(9, count - 1), len(BAD) - 4, replace=False)
    return np.array([0, 7, 8, count - 1, *between])


@cache
def run(method: str, count: int, bad: bool) -> xr.Dataset:
    """The members with mu ~ U(.5, 2.5) and v ~ .01 |N(0, 1)|, with or without the bad ones; only the end is kept."""
    rng = np.random.default_rng(0)
    given = {"mu": rng.uniform(0.5, 2.5, (count, 2)), "v": 0.01 * np.abs(rng.normal(size=(count, 2)))}
    if bad:
        for i, (name, value, _) in zip(places(count), BAD, strict=True):
            given[name][i, 1] = value
    asked: dict[str, Any] = {"params": {"mu": given["mu"]}, "initial": {"v": given["v"]}, "method": method, "span": (0.0, 10.0)}
    return odesim.ensemble(MODEL, **asked, rtol=1e-6, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(("method", "count"), MANY)
def test_others_do_not_change(method, count):
    """The others end with the same bits, after the same number of steps; the bad ones have a status of their own and no value."""
    healthy, found = run(method, count, False), run(method, count, True)
    assert not healthy.status.values.any()
    others = np.delete(np.arange(count), places(count))
    xr.testing.assert_identical(found.isel(member=others)[["v", *COUNTS]], healthy.isel(member=others)[["v", *COUNTS]])
    for i, (name, value, status) in zip(places(count), BAD, strict=True):
        assert (name, value, found.attrs["status_names"][int(found.status[i])]) == (name, value, status)
        assert np.isnan(found.v[i]).all() == (status != "ok")
        assert (found.t_end[i] == 10.0) == (status == "ok")


COUNTS = ["status", "t_end", "steps", "rejected"]


@pytest.mark.parametrize(("method", "count"), MANY)
def test_bad_members_cost_little(method, count):
    """Each ends within some hundred attempts, the start of slope exp(450) within 2000.

    Even where they keep one lane of eight busy and the others idle, that is below 1 % of the steps of all lanes for 1e5 members.
    """
    found = run(method, count, True)
    attempts = (found.steps + found.rejected).values
    own = attempts[places(count)]
    assert own.max() < 2000
    assert not own[[status == "non_finite" for *_, status in BAD]].any()
    if count == 100_000:
        assert own.sum() < 0.01 * attempts.sum() / LANES

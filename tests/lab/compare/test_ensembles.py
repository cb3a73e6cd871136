"""Two ensembles beside each other: differences in closed form at the points that both have, and refusals where there are none."""

import numpy as np
import pytest
from sympy import Interval, oo, symbols

import odesim
from odesim.base.errors import OdesimError
from odesim.symbolic import Param, Source, System

x = symbols("x", real=True)
k, c = symbols("k c", positive=True)
POSITIVE = Interval.open(0, oo)
SOURCE = Source("none", "made for the tests")
DECAY = System(
    "test.decay", SOURCE, {}, {x: -k * c * x}, (Param(k, 1.0, POSITIVE, "rate"), Param(c, 1.0, POSITIVE, "rate")), {x: 1.0}, span=(0.0, 2.0)
)


def ensemble(grid, **words):
    """An ensemble of DECAY over these grids."""
    return odesim.ensemble(DECAY, grid=grid, **{"save": 5, "rtol": 1e-10, "atol": 1e-13, **words})


COARSE, FINE = np.linspace(0.5, 2, 4), np.linspace(0.0, 2, 21)[1:] * (1 + 4e-16)  # other last bits


@pytest.fixture(scope="module")
def pair():
    """Ensembles over 4 and 20 rates, of which 4 are the same up to rounding; the second starts at 2 and has other saved times."""
    return ensemble({"k": COARSE}), ensemble({"k": FINE}, initial={"x": 2.0}, save=9)


def test_differences_in_closed_form(pair):
    """At the rates of both: 2 exp(-k t) - exp(-k t), at the times of the one with fewer; each member has its numbers in the table."""
    comparison = odesim.compare(*pair)
    both, t = comparison.members, np.linspace(0, 2, 5)
    assert both is not None
    np.testing.assert_allclose(both["k"], COARSE, rtol=1e-12)
    truth = np.exp(-np.outer(COARSE, t))
    for word, times in (("first", 1), ("second", 2), ("difference", 1)):
        np.testing.assert_allclose(both[f"x_{word}"], times * truth, rtol=1e-8)  # 100 rtol of the runs
    (row,) = comparison.table()
    np.testing.assert_allclose(row["each"]["sup"], truth.max(axis=1), rtol=1e-8)
    assert row["scale"] == pytest.approx(2, rel=1e-8)
    text = str(comparison)
    assert "4 members in common, by k" in text and "  members: median" in text and max(map(len, text.splitlines())) < 80
    assert len(np.ravel(np.asarray(comparison.plot(), object))) == 3


def test_one_beside_itself(tmp_path):
    """A stored ensemble beside itself in two numbers has no difference, in the order of its members."""
    ensemble({"k": COARSE, "c": [1.0, 2.0, 3.0]}, out=tmp_path / "a.zarr")
    comparison = odesim.compare(tmp_path / "a.zarr", tmp_path / "a.zarr")
    assert comparison.members is not None and comparison.members.sizes["member"] == 12
    assert not comparison.members["x_difference"].values.any() and comparison.table()[0]["sup"] == 0


@pytest.mark.parametrize(
    ("first", "second", "sentence"),
    [
        ({"k": COARSE}, {"c": COARSE}, "no axis in common: between members of the first k differs, c in the other"),
        ({"k": COARSE}, {"k": COARSE + 0.01}, "no member of the first that came to its end has the k of one of the second"),
        ({"k": COARSE, "c": [1.0, 2.0]}, {"k": COARSE}, "several members of the first have k = 0.5: c differs too"),
    ],
)
def test_nothing_in_common(first, second, sentence):
    """What has no common axis, no common point, or more than one member at a point is refused."""
    with pytest.raises(OdesimError) as error:
        odesim.compare(ensemble(first), ensemble(second))
    assert sentence in str(error.value)


def test_an_ensemble_beside_a_run(pair):
    """An ensemble is not compared with a single run."""
    with pytest.raises(OdesimError, match="one run is an ensemble and the other is not"):
        odesim.compare(pair[0], odesim.integrate(DECAY))

"""Datasets that a user cut, unstacked or opened are drawn; what cannot be is one sentence."""

from collections.abc import Callable
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr
from matplotlib.collections import QuadMesh

import odesim
from odesim.base.errors import OdesimError
from odesim.store.write import write_solution

WORDS: dict[str, Any] = {"sizes": {"M": 2}, "save": 4}


@pytest.fixture(scope="module")
def grid() -> xr.Dataset:
    """Twelve members over mu and the start of v, with an observable."""
    points = {"mu": "linspace(0.5,2,4)", "v": [0.1, 0.2, 0.3]}
    return odesim.ensemble("joma.nonlinear", grid=points, observe=("gap", "entropy"), **WORDS)


CUTS: dict[str, Callable[[xr.Dataset], xr.Dataset]] = {
    "some members": lambda run: run.isel(member=[0, 2, 5, 11]),
    "one member": lambda run: run.isel(member=3),
    "one time": lambda run: run.isel(time=2),
    "a nearest time": lambda run: run.sel(time=3.0, method="nearest"),
    "both": lambda run: run.isel(member=1, time=-1),
    "some variables": lambda run: run[["v", "status", "t_end"]],
    "unstacked": lambda run: run.odesim.unstack(),
    "unstacked, some": lambda run: run.isel(member=[0, 2, 5]).odesim.unstack(),
    "unstacked, one time": lambda run: run.odesim.unstack().isel(time=1),
    "unstacked, a line": lambda run: run.odesim.unstack().isel(mu=2),
}


@pytest.mark.first(1)
@pytest.mark.parametrize("cut", CUTS)
def test_what_is_left_is_drawn(grid, cut):
    """Every panel has data, whatever a user took out of the Dataset."""
    axes = CUTS[cut](grid).odesim.plot()
    assert all(panel.has_data() for panel in np.atleast_1d(axes))


def cells(axes: Any) -> Any:
    """The values of a map."""
    mesh: Any
    (mesh,) = [found for found in axes.collections if isinstance(found, QuadMesh)]
    return np.ma.filled(mesh.get_array(), np.nan)


def test_cut_and_whole_are_the_same_picture(grid):
    """One time chosen before is that time chosen by the picture; a grid on its own axes has the same cells, also with one left out."""
    words: dict[str, Any] = {"var": "v", "index": 1, "x": "mu", "y": "v"}
    whole = cells(grid.odesim.plot(at=float(grid.time[1]), **words))
    assert np.isfinite(whole).all()
    np.testing.assert_array_equal(cells(grid.isel(time=1).odesim.plot(**words)), whole)
    np.testing.assert_array_equal(cells(grid.odesim.unstack().odesim.plot(at=float(grid.time[1]), **words)), whole)
    some = grid.isel(member=slice(1, None))
    whole[0, 0] = np.nan
    np.testing.assert_array_equal(cells(some.odesim.unstack().isel(time=1).odesim.plot(**words)), whole)


def test_an_integration_as_a_dataset_is_the_same_picture(tmp_path):
    """Opened or converted, all curves and events of Solution.plot(), where no curve is below its errors, which a Dataset does not know."""
    run = odesim.integrate("joma.nonlinear", sizes={"M": 3}, span=(0, 0.5), save=1001)  # more often than pictures compute
    write_solution(run, tmp_path / "run.zarr")
    opened = odesim.open_run(tmp_path / "run.zarr")
    whole: Any = run.plot()
    for other, marks in ((opened, True), (run.to_xarray(), False)):
        for own, found in zip(whole, other.odesim.plot(), strict=True):
            ours, theirs = ([np.asarray(line.get_ydata(), float) for line in axes.lines] for axes in (own, found))
            assert own.get_ylabel() == found.get_ylabel()
            for a, b in zip(ours if marks else [line for line in ours if len(line) == 1001], theirs if marks else theirs[:9], strict=False):
                np.testing.assert_array_equal(a, b)


@pytest.mark.slow
def test_an_integration_as_a_dataset_has_a_film(tmp_path):
    """The Dataset in the place of the Solution: the same file."""
    run = odesim.integrate("joma.nonlinear", sizes={"M": 3}, save=4)
    write_solution(run, tmp_path / "run.zarr")
    films = [
        odesim.plot.animate(thing, tmp_path / f"{k}.gif", var="v") for k, thing in enumerate((run, odesim.open_run(tmp_path / "run.zarr")))
    ]
    assert films[0].read_bytes() == films[1].read_bytes()


def test_a_component_of_a_training():
    """index draws one component of an array over iterations, its values those that were recorded."""
    training = odesim.train("scan_snap", settings={"num_common": 3, "length": 7, "batch": 5}, steps=4)
    axes: Any = training.plot("c", index=(1, 2))
    (line,) = [line for line in axes.lines if len(np.asarray(line.get_xdata())) == 5]
    np.testing.assert_array_equal(np.asarray(line.get_ydata()), training.observables["c"][0, :, 1, 2])
    assert axes.get_ylabel() == "$c_{1,2}$"


def integrated() -> Any:
    """A short integration."""
    return odesim.integrate("joma.nonlinear", **WORDS)


WRONG: dict[str, tuple[Callable[[xr.Dataset], Any], str]] = {
    "no status": (lambda run: run.drop_vars("status").odesim.plot(), "no 'status' any more"),
    "no quantity": (lambda run: run[["status", "t_end"]].odesim.plot(), "none of its states and observables"),
    "another Dataset": (lambda run: xr.Dataset({"a": ("x", [1])}).odesim.plot(), "is no run of odesim"),
    "one time of an integration": (lambda run: integrated().to_xarray().isel(time=0).odesim.plot(), "has one time"),
    "var is a number": (lambda run: run.odesim.plot(3), "var must be a name, as a text, not 3"),
    "x is a number": (lambda run: run.odesim.plot(x=3), "x must be a name"),
    "index in words": (lambda run: run.odesim.plot(index="a"), "index must be a whole number"),
    "index is no whole number": (lambda run: integrated().plot("v", index=1.5), "index must be a whole number, or several, not 1.5"),
    "at in words": (lambda run: run.odesim.plot(at="end"), "at must be a time, not 'end'"),
    "ax is no Axes": (lambda run: integrated().plot("v", ax=3), "ax must be Axes of matplotlib"),
    "a film of a number": (lambda run: odesim.plot.animate(3, "x.gif"), "a film is of a Solution"),
    "a picture of a number": (lambda run: odesim.plot.save(3, "x.png"), r"save\(\) writes a Figure"),
    "an index beyond": (lambda run: odesim.train("scan_snap", steps=1).plot("c", index=(0, 99)), "index 99 is outside c"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_be_drawn_is_one_sentence(grid, name, tmp_path, monkeypatch):
    """With what is meant; no error of another library, no file."""
    monkeypatch.chdir(tmp_path)
    act, sentence = WRONG[name]
    with pytest.raises(OdesimError, match=sentence):
        act(grid)
    assert list(tmp_path.iterdir()) == []
    plt.close("all")

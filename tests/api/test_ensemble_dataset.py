"""A Dataset of an ensemble is the same in memory and from a disk, and its methods draw it and put a grid on axes."""

from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import odesim
from odesim.base.errors import ParamError

SAME: dict[str, Any] = {"sizes": {"M": 2}, "span": (0.0, 1.0), "save": 3, "method": "tsit5"}
DESIGNS: dict[str, dict[str, Any]] = {
    "vary": {"vary": {"mu": "uniform(0.5,2)"}, "members": 5},
    "grid": {"grid": {"v": [0.1, 0.2, 0.3], "mu": "linspace(0.5,2,2)"}},
    "grid of arrays": {"grid": {"mu": [[0.5, 1.0], [1.0, 2.0]]}},
    "zip": {"grid": {"v": [0.1, 0.2]}, "zipped": {"mu": [0.5, 1.0, 2.0]}},
    "two zipped": {"zipped": {"mu": [0.5, 1.0, 2.0], "v": [0.1, 0.2, 0.3]}},
    "table": {"vary": {"v": np.array([[0.1, 0.2], [0.3, 0.1], [0.2, 0.2]])}},
    "arrays": {"params": {"mu": np.array([[0.5, 1.0], [1.0, 2.0]])}, "observe": "all", "events": "half: v[l] - mu[l] / 2"},
}
KINDS = {
    "vary": {"mu": "random"},
    "grid": {"v_start": "grid", "mu": "grid"},
    "grid of arrays": {"mu": "grid"},
    "zip": {"v_start": "grid", "mu": "grid"},  # one zipped name is one more axis
    "two zipped": {"mu": "zip", "v_start": "zip"},
    "table": {"v_start": "table"},
    "arrays": {"mu": "table"},
}


@pytest.mark.first(2)
@pytest.mark.parametrize("design", DESIGNS)
def test_coordinates_are_the_same_in_memory_and_stored(design, tmp_path):
    """Names, order, axes, types, values and attributes; and all results have the same bits."""
    here = odesim.ensemble("joma.nonlinear", **SAME, **DESIGNS[design])
    there = odesim.ensemble("joma.nonlinear", out=tmp_path / "run.zarr", **SAME, **DESIGNS[design])
    assert list(here.variables) == list(there.variables) and list(here.coords) == list(there.coords)
    for name in here.variables:
        a, b = here[name], there[name]
        assert (a.dims, a.dtype) == (b.dims, b.dtype)
        np.testing.assert_array_equal(a, b)
    for name in here.coords:
        assert here[name].attrs == there[name].attrs
    found = {str(name): v.attrs["design"] for name, v in here.coords.items() if v.dims[0] == "member" and name != "member"}
    assert found == KINDS[design]


def test_a_dataset_in_memory_fits_into_netcdf(tmp_path):
    """Its attributes are numbers, texts and lists of them; the file draws the same picture."""
    run = odesim.ensemble("joma.nonlinear", observe="gap", **SAME, **DESIGNS["grid"])
    for name, value in run.attrs.items():
        assert isinstance(value, str | int | float | list), name
        assert value != [] and all(isinstance(item, str | float) for item in (value if isinstance(value, list) else [])), name
    odesim.plot.save(run.odesim.plot(), tmp_path / "a.svg")
    copy = run.copy()
    copy.attrs |= {"states": "v", "observables": "gap"}  # a list of one becomes a text in netCDF
    odesim.plot.save(copy.odesim.plot(), tmp_path / "b.svg")
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


@pytest.mark.parametrize("order", ["as made", "shuffled", "some left out"])
def test_a_grid_is_put_on_axes(order):
    """Every member lies at its numbers; where one was left out there is NaN."""
    run = odesim.ensemble("joma.nonlinear", **SAME, **DESIGNS["grid"])
    members = {"as made": range(6), "shuffled": [3, 1, 5, 0, 4, 2], "some left out": [0, 1, 2, 4, 5]}[order]
    part = run.isel(member=list(members))
    grid = part.odesim.unstack()
    assert grid.v.dims == ("v_start", "mu", "time", "l") and dict(grid.sizes)["v_start"] == 3
    for i in range(part.sizes["member"]):
        one = part.isel(member=i)
        np.testing.assert_array_equal(grid.v.sel(v_start=one.v_start, mu=one.mu), one.v)
    assert int(np.isnan(grid.t_end).sum()) == 6 - len(members)


@pytest.mark.parametrize(("design", "axes"), [("two zipped", ("mu",)), ("zip", ("v_start", "mu"))])
def test_zipped_numbers_share_an_axis(design, axes):
    """The first of them is the axis, the others are coordinates along it."""
    grid = odesim.ensemble("joma.nonlinear", **SAME, **DESIGNS[design]).odesim.unstack()
    assert grid.v.dims == (*axes, "time", "l") and np.isfinite(grid.v).all()


@pytest.mark.parametrize("design", ["vary", "table", "grid of arrays"])
def test_what_is_no_grid_is_refused(design):
    """Random members, tables and arrays: one sentence."""
    with pytest.raises(ParamError, match="form no grid"):
        odesim.ensemble("joma.nonlinear", **SAME, **DESIGNS[design]).odesim.unstack()


@pytest.mark.slow
def test_methods_return_axes(tmp_path):
    """plot() returns the Axes of one panel or an array of them, without colour bars; with ax it draws one panel there, not several."""
    run = odesim.ensemble("joma.nonlinear", observe="gap", **SAME, **DESIGNS["grid"])
    solution = odesim.integrate("joma.nonlinear", sizes={"M": 2}, save=5)
    page = Figure()
    for thing, words in ((run.odesim, {"var": "v", "index": 0}), (solution, {"var": "v"})):
        one: Any = thing.plot(**words)
        all_: Any = thing.plot()
        assert isinstance(one, Axes) and all_.ndim == 1 and len(all_) > 1 and all(isinstance(axes, Axes) for axes in all_)
        assert len({axes.figure for axes in all_}) == 1 and not any("colorbar" in str(axes.get_label()) for axes in all_)
        one.set_title("mine")
        odesim.plot.save(one, tmp_path / "one.svg")
        odesim.plot.save(all_, tmp_path / "all.svg")
        axes = page.add_subplot()
        assert thing.plot(ax=axes, **words) is axes and axes.has_data()
        with pytest.raises(ParamError, match="ax is one panel"):
            thing.plot(ax=page.add_subplot())
        with pytest.raises(ParamError, match=r"no (stored )?state or observable 'w'"):
            thing.plot(var="w")


def test_comparisons_and_trainings_have_pictures():
    """Comparison.plot and Trajectory.plot draw all observables, or those that are named."""
    training = odesim.train("scan_snap", settings={"num_common": 3, "length": 7, "batch": 5}, steps=4, save=2)
    assert isinstance(training.plot(var="loss"), Axes)
    for name in ("loss", "c"):  # a line, a matrix
        axes = Figure().add_subplot()
        assert training.plot(name, ax=axes) is axes and axes.has_data()
    with pytest.raises(ParamError, match="ax is one panel"):
        training.plot(ax=axes)
    with pytest.raises(ParamError, match=r"no recorded observable 'los'.*did you mean 'loss'"):
        training.plot(var="los")
    same = odesim.compare(training, training)
    both: Any = same.plot(var=next(iter(same.theory)))
    assert len(both) == 2 and all(isinstance(axes, Axes) for axes in both)  # what is compared, and the residuals
    axes, name = Figure().add_subplot(), next(iter(same.theory))
    assert same.plot(name, ax=axes) is axes and len(axes.lines) == len(both[0].lines)
    with pytest.raises(ParamError, match="ax is one panel"):
        same.plot(ax=axes)
    with pytest.raises(ParamError, match="no observable 'nothing' in the comparison"):
        same.plot(var="nothing")


def test_the_room_of_pictures_lists_what_it_has():
    """dir() has the public names, each with a docstring; another name is a sentence with the choices."""
    assert dir(odesim.plot) == sorted(odesim.plot.__all__) and "plot" in dir(odesim)
    assert all(getattr(odesim.plot, name).__doc__ for name in odesim.plot.__all__)
    with pytest.raises(AttributeError, match="it has STYLE, Choice, animate"):
        _ = odesim.plot.figure_of_nothing


def test_a_system_is_markdown_with_formulas():
    """A notebook shows equations as formulas in LaTeX, without scripts."""
    page = odesim.load_model("joma.nonlinear")._repr_markdown_()
    assert page.startswith("**joma.nonlinear**") and r"\frac{\mathrm{d}}" in page and "<" not in page

"""The picture of an ensemble: quantiles of all members, ended early or not, as numpy has them of the members that stop where they end."""

from typing import Any

import numpy as np
import pytest
import xarray as xr
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.text import Text
from sympy import exp, symbols

import odesim
from odesim.base.errors import ParamError
from odesim.plot.choice import Choice
from odesim.plot.ensemble import figure_of_ensemble
from odesim.plot.members import components, values_of
from odesim.plot.style import SMALL
from odesim.symbolic import Param, Source, System
from tests.support.maps import REAL
from tests.support.texts import clashes, drawn_texts, notes

T = np.linspace(0.0, 5.0, 26)
STATUSES = ["ok", "event", "max_steps", "blow_up"]
OK, EVENT, BLOW_UP = 0, 1, 3


x, y, z, rate = symbols("x y z a", real=True)
HARDLY = System(
    name="test.hardly", source=Source("none", "test"), axes={}, params=(Param(rate, 1.0, REAL, "a number"),),
    equations={x: rate / 1e3, y: rate, z: -5 * rate * exp(-rate) * z}, initial={x: 1.0, y: 0.0, z: 1.0},
)  # fmt: skip


def walkers(times: Any = T, n: int = 60, components: int = 0, *, ends: bool = True, wall: float = 3.0) -> xr.Dataset:
    """Members that walk at speeds of their own, each stopped at a wall by an event: NaN from there, as ensembles have it."""
    speed = np.linspace(0.3, 2.0, n)
    t_end = np.minimum(wall / speed, times[-1])
    place = speed[:, None] * times
    x = np.where(times <= t_end[:, None], place, np.nan)
    status = np.where(wall / speed < times[-1], EVENT, OK)
    dims: tuple[str, ...] = ("member", "time")
    y = 2 * x
    if components:
        x, dims = x[..., None] * np.arange(1, components + 1), (*dims, "l")
    found = {"x": (dims, x), "status": ("member", status.astype(np.int8)), "t_end": ("member", t_end), "y": (dims[:2], y)}
    if ends:
        end = (speed * t_end)[:, None] * np.arange(1, components + 1) if components else speed * t_end
        found["x_end"] = (("member", "l") if components else ("member",), end)
    attrs = {"model": "my.walker", "states": ["x"], "observables": ["y"], "status_names": STATUSES, "time_unit": "s"}
    return xr.Dataset(found, {"time": times}, {**attrs, "kept": {"ends": ["x_end"] if ends else []}})


def head_of(figure: Figure) -> str:
    """The title and the notes under it, in one line."""
    return " ".join([figure.get_suptitle(), *(text.get_text() for text in figure.texts)]).replace("\n", " ")


def curves(figure: Figure, panel: int = 0) -> tuple[Any, Any, Any]:
    """Median, lower and upper edge of the first band of a panel (T,)."""
    axes = figure.axes[panel]
    points = axes.collections[0].get_paths()[0].vertices
    edges = [[np.asarray(points)[np.isclose(np.asarray(points)[:, 0], x), 1] for x in T]]
    low, high = (np.array([f(values) for values in edges[0]]) for f in (np.min, np.max))
    return np.asarray(axes.lines[0].get_ydata()), low, high


def test_axes_in_no_grid_take_a_panel():
    """Axes that the user has placed by hand; the time is named under them."""
    axes = Figure().add_axes((0.2, 0.2, 0.7, 0.7))
    figure_of_ensemble(walkers(), Choice(("x",)), axes)
    assert axes.lines and axes.get_xlabel() == "$t$ (s)"


def test_members_that_ended_stay_where_they_ended():
    """Median and band are the quantiles of all members, each at the wall from its end on; the title says how many."""
    run = walkers()
    figure = figure_of_ensemble(run, Choice(("x",)))
    stopped = np.minimum(np.linspace(0.3, 2.0, 60)[:, None] * T, 3.0)
    for found, level in zip(curves(figure), (0.5, 0.1, 0.9), strict=True):
        np.testing.assert_allclose(found, np.quantile(stopped, level, axis=0), rtol=1e-12)
    count = int((run.status == EVENT).sum())
    assert 30 < count < 60 and f"ended early: {count} event" in head_of(figure)


@pytest.mark.parametrize("quantity", ["state", "observable"])
@pytest.mark.parametrize("end", ["stored", "not stored"])
@pytest.mark.parametrize("status", [EVENT, 2, BLOW_UP], ids=lambda k: STATUSES[k])
@pytest.mark.parametrize("times", [26, 3])
def test_the_end_is_held_where_it_is_known_and_else_is_the_end(quantity, end, status, times):
    """States and observables have one rule: the value at the end if it is stored, else nothing after it; never the last saved one."""
    run = walkers(np.linspace(0.0, 5.0, times), ends=end == "stored")
    ends: dict[str, Any] = {"x_end": "y_end"} if end == "stored" else {}
    run["status"][:] = np.where(run["status"] == EVENT, status, OK)
    if quantity == "observable":  # in the place of the state
        run = run.drop_vars("x").rename(y="x", **ends)
        run["x_end"] = run["status"] * 1e3  # an observable of this name is no end of x
        run.attrs |= {
            "states": ["y"] if end == "stored" else [],
            "observables": ["x"],
            "kept": {"ends": ["y_end"] if end == "stored" else []},
        }
        run["y"] = run["x"]
    held = quantity == "state" and end == "stored"
    shown = values_of(run, components(run, "x", Choice()))[..., 0]
    after = run["time"].values > run["t_end"].values[:, None]
    np.testing.assert_array_equal(shown[~after], run["x"].values[~after])
    rows, _ = np.nonzero(after)
    np.testing.assert_array_equal(shown[after], run["x_end"].values[rows] if held else np.nan)
    left = int((run["status"] == OK).sum())
    figure = figure_of_ensemble(run)
    panel = [axes.get_ylabel() for axes in figure.axes].index("$x$")
    assert f"ended early: {60 - left} {STATUSES[status]}" in head_of(figure)
    assert figure.axes[panel].get_title(loc="right") == ("" if held else f"{left} of 60 members")


def test_members_that_all_blow_up_have_no_flat_line():
    """Three saved times, of which all reach the first alone: nothing is drawn after it."""
    run = walkers(np.linspace(0.0, 5.0, 3), ends=False)
    run["status"][:], run["t_end"][:] = BLOW_UP, 1.0
    run["x"][:] = np.where(run["time"] > 1.0, np.nan, 1.0)
    run["y"][:] = run["x"]
    for axes in figure_of_ensemble(run).axes:
        assert np.isfinite(np.asarray(axes.lines[0].get_ydata(), float)).tolist() == [True, False, False]
        assert axes.get_title(loc="right") == "0 of 60 members"


@pytest.mark.parametrize("ends", [True, False])
def test_histograms_have_the_same_rule(ends):
    """At one time, every member with a last value is counted once; where there is none, the panel says how many there are."""
    run = walkers(T[-1:], ends=ends)
    axes = figure_of_ensemble(run, Choice(("x",))).axes[0]
    heights = np.asarray(axes.patches[0].get_xy())[:, 1]  # type: ignore[attr-defined]
    counted = int(heights[1:-1:2].sum())
    left = int((run.status == OK).sum())
    assert counted == (60 if ends else left)
    assert axes.get_title(loc="right") == ("" if ends else f"{left} of 60 members")


@pytest.mark.first(4)
@pytest.mark.parametrize("log", [None, "x"])
@pytest.mark.parametrize("members", [10, 60])
def test_components_at_one_time_are_rows(members, log):
    """Each has its members as dots, or of many the median on the middle half on the middle 80 %; 0 is on top, positive values alone on a
    logarithmic axis."""
    run = walkers(T[-1:], members, components=3)
    values = np.random.default_rng(0).normal(size=(members, 1, 3)) + 0.5
    run["x"][:], run["status"][:] = values, OK
    axes = figure_of_ensemble(run, Choice(("x",), log=log)).axes[0]
    levels = np.quantile(values[:, 0], (0.1, 0.25, 0.5, 0.75, 0.9), axis=0)
    dots = levels[2:3] if members > 10 else values[:, 0]
    seen = np.array([line.get_xdata() for line in axes.lines])
    np.testing.assert_allclose(seen, np.where((dots > 0) | (log is None), dots, np.nan), rtol=1e-12)
    if members > 10 and log is None:
        spans = [np.array(c.get_segments())[:, :, 0].T for c in axes.collections if isinstance(c, LineCollection)]
        np.testing.assert_allclose(spans, [levels[[0, 4]], levels[[1, 3]]], rtol=1e-12)  # rounding
    assert axes.yaxis_inverted() and axes.get_ylabel() == "$l$" and axes.get_xscale() == ("log" if log else "linear")


@pytest.mark.parametrize("log", ["none", "y"])
@pytest.mark.parametrize("components", [2, 5])
def test_components_are_named_at_the_ends_of_their_medians(log, components):
    """Beside the panel, where they hide nothing; their leaders begin at the heights at which the medians end."""
    figure = figure_of_ensemble(walkers(T[1:], components=components), Choice(("x",), log=log))
    figure.draw_without_rendering()
    axes = figure.axes[0]
    assert axes.get_legend() is None and clashes(figure, drawn_texts(figure)) == []
    assert all(text.get_window_extent().x0 > axes.get_window_extent().x1 for text in axes.texts)
    last = [np.asarray(line.get_ydata())[-1] for line in axes.lines if not str(line.get_label()).startswith("_")]
    leaders = [line for line in axes.lines if line.get_transform() == axes.transAxes]
    to_axes = axes.transData + axes.transAxes.inverted()
    ends = [to_axes.transform((T[-1], end))[1] for end in last]
    np.testing.assert_allclose([np.asarray(line.get_ydata())[0] for line in leaders], ends, rtol=1e-9)  # rounding
    assert sum(len(text.get_text().split(", ")) for text in axes.texts) == len(leaders) == components


def test_twenty_components_at_one_time_have_rows():
    """Of thirty, the title of the panel says so; a logarithmic axis of components is refused."""
    run = walkers(T[-1:], components=30)
    axes = figure_of_ensemble(run, Choice(("x",))).axes[0]
    assert "20 of 30 components" in axes.get_title(loc="right") and all(np.size(line.get_ydata()) == 20 for line in axes.lines)
    with pytest.raises(ParamError, match="log y: the vertical axis is the component"):
        figure_of_ensemble(run, Choice(("x",), log="y"))


def test_observables_stand_before_states():
    """As on the page of a single run, over time and at one time; what was named keeps its order."""
    for times in (T, T[-1:]):
        labels = [axes.get_ylabel() + axes.get_xlabel() for axes in figure_of_ensemble(walkers(times)).axes]
        assert "y" in labels[0] and "x" in labels[1]
    assert [axes.get_ylabel() for axes in figure_of_ensemble(walkers(), Choice(("x", "y"))).axes] == ["$x$", "$y$"]


def test_few_that_are_far_off_are_counted():
    """One member of 400 a million times as far: the histogram is of the others, and says that one is beyond."""
    run = walkers(T[-1:], 400, wall=1e9)
    run["x"][5] = 1e6
    axes = figure_of_ensemble(run, Choice(("x",))).axes[0]
    assert axes.get_xlim()[1] < 30 and axes.get_title(loc="right") == "1 beyond"


def test_the_title_counts_every_status():
    """Members of each status that ended early, and those that are not done, which are not drawn."""
    run = walkers(wall=1e9)
    run["status"][:4] = BLOW_UP
    run["t_end"][:4] = 1.0
    run["status"][4:9] = 2
    run["status"][50:] = -1
    run["x"][50:] = np.nan
    title = head_of(figure_of_ensemble(run))
    assert "60 members" in title and "ended early: 5 max_steps, 4 blow_up" in title and "not done: 10" in title


def test_components_that_are_not_shown_are_said():
    """5 of 30 components; nothing is said of few."""
    for count, said in ((30, "5 of 30 components"), (3, "")):
        assert figure_of_ensemble(walkers(components=count), Choice(("x",))).axes[0].get_title(loc="right") == said


@pytest.mark.parametrize(
    "run", [walkers(), walkers(components=30), walkers(T[-1:], ends=False), walkers(T[-1:], components=30)], ids=range(4)
)
def test_legible(run):
    """No word on another or over the edge, none below 6 points."""
    figure = figure_of_ensemble(run)
    assert clashes(figure, drawn_texts(figure)) == []
    assert min(float(text.get_fontsize()) for text in figure.findobj(Text)) >= SMALL


def test_what_differs_among_members_is_first():
    """A quantity that hardly differs is last, also by decades; alone it has a note; what was named keeps its order."""
    a = np.linspace(1.0, 2.0, 8)
    run = odesim.ensemble(HARDLY, grid={"a": a}, span=(0, 1))
    assert [axes.get_ylabel() for axes in figure_of_ensemble(run).axes] == ["$y$", "$z$", "$x$"]
    assert [axes.get_ylabel() for axes in figure_of_ensemble(run, Choice(("x", "y"))).axes] == ["$x$", "$y$"]
    assert "members differ by less than 1 % of the values" in notes(figure_of_ensemble(run, Choice(("x",))))
    assert not any("differ by" in note for note in notes(figure_of_ensemble(run)))

"""What a picture of an ensemble says of what it does not show: other components, equal ones, values below the tolerances."""

from typing import Any

import numpy as np
import pytest
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection, QuadMesh
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from odesim.base.datasets import unstack
from odesim.plot.choice import Choice
from odesim.plot.ensemble import figure_of_ensemble
from odesim.plot.film import film_of_members
from odesim.plot.frames import make_frames
from odesim.plot.header import in_lines
from odesim.plot.members import as_members

A, B = np.linspace(0.0, 1.0, 9), np.linspace(-1.0, 1.0, 8)
RTOL, ATOL = 1e-6, 1e-9
SIZES = np.geomspace(1e-14, 2.0, 9)  # of an observable
STATE: dict[str, Any] = {"states": ["x", "y"], "observables": []}  # the observable as a state, which has a tolerance


def grid(shape: int = 4, times: int = 1, *, equal: bool = False, one: bool = False, **attrs: Any) -> xr.Dataset:
    """Members on a grid of a and b (or of a alone): a state x of so many components, of both signs, and an observable y, tiny to 2."""
    a, b = (A, np.zeros(9)) if one else (m.ravel() for m in np.meshgrid(A, B, indexing="ij"))
    t = np.linspace(1.0, 2.0, times)
    factors = np.ones(shape) if equal else np.arange(1.0, shape + 1)
    x = (b + a + ATOL / 2)[:, None, None] * t[:, None] * factors
    y = np.repeat(SIZES, len(a) // 9)[:, None] * np.ones(times)
    coords: dict[str, Any] = {"time": t, "a": ("member", a, {"design": "grid 0"})}
    if not one:
        coords["b"] = ("member", b, {"design": "grid 1"})
    data = {
        "x": (("member", "time", "l"), x),
        "y": (("member", "time"), y),
        "status": ("member", np.zeros(len(a), np.int8)),
        "t_end": ("member", np.full(len(a), t[-1])),
    }
    known = {"model": "my.grid", "states": ["x"], "observables": ["y"], "status_names": ["ok"], "rtol": RTOL, "atol": ATOL}
    return xr.Dataset(data, coords, known | {"labels": {"a": "a"} | ({} if one else {"b": "b"})} | attrs)


def curves(axes: Axes) -> int:
    """Number of colours of lines that are values: of few members there is a line for each."""
    return len({line.get_color() for line in axes.lines if line.get_transform() == axes.transData})


def notes_of(figure: Figure) -> list[str]:
    """The notes under the title."""
    return figure.texts[-1].get_text().replace("; ", "\n").split("\n")


@pytest.mark.first(1)
@pytest.mark.parametrize("with_signs", [True, False])
def test_a_map_says_which_components_it_leaves_out(with_signs):
    """2 of 4 of a state beside one observable, whatever other notes there are; of equal components that they are equal, and no number."""
    run = grid() if with_signs else grid().assign(x=np.abs(grid().x))
    said = notes_of(figure_of_ensemble(run))
    assert "2 of 4 components of $x$" in said and ("dotted: values < 0" in said) is with_signs
    said = notes_of(figure_of_ensemble(grid(equal=True)))
    assert "equal components of $x$ are drawn once" in said and not any(" of 4 " in note for note in said)


@pytest.mark.parametrize("over", ["a number", "time"])
def test_a_curve_and_a_band_count_components(over):
    """5 of 16 stands above the panel; equal ones are drawn once, as a number is."""
    times = 3 if over == "time" else 1
    choice = Choice(x="time") if over == "time" else Choice()
    axes = figure_of_ensemble(grid(16, times, one=True), choice).axes[1]
    assert axes.get_title(loc="right") == "5 of 16 components" and curves(axes) == 5
    figure = figure_of_ensemble(grid(3, times, one=True, equal=True), choice)
    assert curves(figure.axes[1]) == 1 and "equal components of $x$ are drawn once" in notes_of(figure)


@pytest.mark.parametrize(("members", "note"), [(1, ""), (10, "a line for each member"), (11, "median and middle 80 % of the members")])
def test_few_members_are_lines(members, note):
    """Up to ten: the values themselves, each component in one colour with one name at an end. More have quantiles."""
    run = xr.concat([grid(2, 5, one=True)] * 2, "member", data_vars="minimal", coords="minimal", compat="override", join="override")
    run = run.isel(member=slice(0, members))
    figure = figure_of_ensemble(run, Choice(x="time"))
    axes, seen = figure.axes[1], {"a line for each member", "median and middle 80 % of the members"} & set(notes_of(figure))
    assert seen == {note} - {""} and sorted(text.get_text() for text in axes.texts) == ["0", "1"]
    lines = [line for line in axes.lines if line.get_transform() == axes.transData]
    assert len({line.get_color() for line in lines}) == 2 and len(lines) == (2 * members if members <= 10 else 2 * 3)
    if members <= 10:
        np.testing.assert_array_equal([line.get_ydata() for line in lines], np.moveaxis(run.x.values, 2, 0).reshape(-1, 5))


@pytest.mark.parametrize("apart", [5.0, 0.1])
def test_bands_that_lie_on_each_other_are_edges(apart):
    """Two components far apart have areas; of two that are not each has lines at its 10 % and at its 90 % instead."""
    values = np.random.default_rng(0).normal(size=(50, 101, 2)) + apart * np.arange(2)
    run = grid(2, 101, one=True).isel(member=[0] * 50).assign(x=(("member", "time", "l"), values))
    low, middle, high = np.quantile(values, (0.1, 0.5, 0.9), axis=0)
    axes = figure_of_ensemble(run, Choice(("x",), x="time")).axes[0]
    assert all(isinstance(c, PolyCollection) for c in axes.collections) and len(axes.collections) == (2 if apart > 1 else 0)
    every = [middle[:, 0], middle[:, 1]] if apart > 1 else [one[:, k] for k in (0, 1) for one in (middle, low, high)]
    np.testing.assert_allclose(
        np.array([line.get_ydata() for line in axes.lines if line.get_transform() == axes.transData]), every, rtol=1e-12
    )  # rounding


def test_groups_of_neighbours_are_said():
    """Where no two of 90 random members share the number, lines are of 8 groups, the fewest; where each has its own, of all."""
    rng = np.random.default_rng(0)
    run = xr.concat([grid(one=True)] * 10, "member", data_vars="minimal", coords="minimal", compat="override", join="override")
    run = run.assign_coords(a=("member", rng.uniform(size=90)), b=("member", rng.uniform(size=90)))
    assert "lines: 8 groups of neighbours in $a$" in notes_of(figure_of_ensemble(run, Choice(x="a")))
    assert not any("groups" in note for note in notes_of(figure_of_ensemble(grid(one=True), Choice(x="a"))))


@pytest.mark.parametrize("one", [True, False], ids=["curve", "map"])
def test_a_constant_is_a_note(one):
    """An observable that is -0 in all members has no panel, unless it was asked for."""
    run = grid(one=one)
    run["y"] = -0.0 * run["y"]
    figure = figure_of_ensemble(run)
    assert "constant: $y$ = 0" in notes_of(figure) and not any(axes.get_ylabel() == "$y$" for axes in figure.axes)
    assert "constant: $y$ = 0" not in notes_of(figure_of_ensemble(run, Choice(var=("y",))))


def test_values_that_differ_by_rounding_are_a_constant():
    """A curve over differences of 1e-9 of the values has an axis that nobody reads; differences of 1e-3 are drawn."""
    for size, drawn in (1e-9, False), (1e-3, True):
        run = grid(one=True).assign(y=grid(one=True).y * 0 + 2.0 + size * A[:, None])
        assert any(axes.get_ylabel() == "$y$" for axes in figure_of_ensemble(run).axes) is drawn


@pytest.mark.parametrize("far", [1e9, -1e97])
def test_a_member_that_ran_away_does_not_flatten_the_curve(far):
    """The axis is that of the other members, and a note counts the one beyond; a peak of ten times the values is drawn whole."""
    values = np.linspace(-1.0, 1.0, 9)
    for last, beyond in (far, True), (10.0, False):
        run = grid(one=True).assign(y=("member", np.append(values[:-1], last))).assign_attrs(STATE)
        run["y"] = run.y.expand_dims(time=run.time, axis=1)
        figure = figure_of_ensemble(run, Choice(var=("y",), x="a"))
        low, high = figure.axes[0].get_ylim()
        assert any("$y$: 1 of 9 values beyond the axis" in note for note in notes_of(figure)) is beyond
        assert bool(max(-low, high) < 1.1) is beyond and low <= -1.0 and (beyond or high >= 10.0)


@pytest.mark.parametrize("one", [True, False], ids=["curve", "map"])
def test_of_constants_alone_the_first_is_drawn(one):
    """A picture of nothing but constants is one of the first of them."""
    run = grid(1, one=one)
    figure = figure_of_ensemble(run.assign(x=run.x * 0 + 2.0, y=run.y * 0 + 1.0))
    panels = [axes for axes in figure.axes if axes.get_label() != "<colorbar>"]
    assert len(panels) == 1 and "constant: $y$ = 1" in notes_of(figure)


def test_the_title_names_the_number_by_which_members_were_chosen():
    """Of a grid of a and b: b = -1 alone; of one member neither, which its label would repeat."""
    cut = unstack(grid()).sel(b=-1.0)
    assert "my.grid, 9 members, $b$ = -1," in figure_of_ensemble(as_members(cut)).texts[0].get_text()
    assert "$b$" not in figure_of_ensemble(as_members(cut.isel(a=0))).texts[0].get_text()


@pytest.mark.parametrize("attrs", [STATE, {}, STATE | {"step": 0.1}], ids=["state", "observable", "fixed step"])
def test_a_map_ends_at_the_tolerances(attrs):
    """Logarithmic colours of a state begin at ATOL, and cells below are pale; with a fixed step, and of an observable, all have one."""
    figure = figure_of_ensemble(grid(**attrs), Choice(var=("y",)))
    (mesh,) = [found for found in figure.axes[0].collections if isinstance(found, QuadMesh)]
    assert isinstance(mesh.norm, LogNorm) and mesh.norm.vmin is not None
    shown = np.ma.asarray(mesh.get_array()) >= mesh.norm.vmin
    floor = ATOL if attrs is STATE else 0.0
    np.testing.assert_array_equal(shown[0].ravel(), floor <= SIZES)
    assert mesh.norm.vmin == pytest.approx(floor or SIZES[0], rel=1e-12)  # rounding
    assert any("below the tolerances" in note for note in notes_of(figure)) is bool(floor)
    assert any("digits below 2e-06 may be errors" in note for note in notes_of(figure)) is (not attrs)  # ATOL + RTOL * 2


def test_no_sign_below_the_tolerances():
    """A state of half of its floor, where a + b = 0, is as good as 0: of the cells, those below minus the floor alone are dotted."""
    floor = ATOL
    run = grid(1).assign(x=grid(1).x - floor)
    dots = figure_of_ensemble(run, Choice(var=("x",), index=(0,))).axes[0].collections[-1]
    assert len(np.asarray(dots.get_offsets())) == int((run.x.values < -floor).sum()) < int((run.x.values < 0).sum())


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_an_axis_ends_below_values_whose_sign_changes(sign):
    """A fifth of members change sign below ATOL + RTOL * 2, as a gap at rest: two decades below. All is seen of a loss, or if asked for."""
    run = grid(times=9)
    run["y"] = run.y * 0 + SIZES[::-1]
    run["y"][::5] *= np.where(SIZES[::-1] < 1e-7, sign, 1.0)
    for log, whole in ("y", True), (None, sign > 0):
        low = figure_of_ensemble(run, Choice(var=("y",), x="time", log=log)).axes[0].get_ylim()[0]
        assert low < 1e-13 if whole else low == pytest.approx((ATOL + RTOL * 2) / 100, rel=1e-9)


@pytest.mark.parametrize("choice", [Choice(var=("y",), x="a"), Choice(var=("y",), x="time")], ids=["curve", "band"])
def test_curves_and_bands_are_grey_below_the_tolerances(choice):
    """The grey part of the axis of a state ends at ATOL; an observable, of whose errors members have no estimate, has a note, films too."""
    run = grid(times=3, one=True)
    if choice.x == "time":
        run["y"] = run.y * 0 + np.geomspace(2.0, 1e-14, 3)
    for attrs, ends in (STATE, [ATOL]), ({}, []):
        figure = figure_of_ensemble(run.assign_attrs(attrs), choice)
        grey = [patch for patch in figure.axes[0].patches if isinstance(patch, Rectangle)]
        assert [patch.get_y() + patch.get_height() for patch in grey] == pytest.approx(ends, rel=1e-12)  # rounding
        assert any("below the tolerances" in note for note in notes_of(figure)) is bool(ends)
        film = [] if choice.x == "time" else [make_frames(film_of_members(run.assign_attrs(attrs), choice))[0]]
        for each in (figure, *film):
            assert any("digits below 2e-06 may be errors" in note for note in notes_of(each)) is not bool(ends)


def test_a_curve_is_the_median_and_its_band_the_middle_eighty_per_cent():
    """Of the members that share a value, as numpy has them."""
    run = grid(1)
    axes = figure_of_ensemble(run, Choice(var=("x",), index=(0,), x="a")).axes[0]
    (line,) = (values for each in axes.lines if len(values := np.asarray(each.get_ydata())) == len(A))
    shared = run.x.values.reshape(len(A), len(B))
    np.testing.assert_allclose(line, np.median(shared, axis=1), rtol=1e-12)
    corners = np.asarray(axes.collections[0].get_paths()[0].vertices)
    edges = [[f(corners[np.isclose(corners[:, 0], a), 1]) for a in A] for f in (np.min, np.max)]
    np.testing.assert_allclose(edges, np.quantile(shared, [0.1, 0.9], axis=1), rtol=1e-12)


def test_short_notes_share_a_line():
    """Two of them that fit into the width stand in one line, a long one alone; none is lost."""
    figure = figure_of_ensemble(grid(equal=True))
    assert figure.texts[-1].get_text().split("\n")[0] == "equal components of $x$ are drawn once; dotted: values < 0"
    assert in_lines(["a" * 20, "b" * 20, "c" * 40, "d"]) == ["a" * 20 + "; " + "b" * 20 + "; d", "c" * 40]

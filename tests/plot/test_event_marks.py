"""Events in pictures of a solution: where their marks stand."""

import pickle
from typing import Any

import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.text import Text
from sympy import Mod, Sum, cos, symbols

from odesim.api.integrate import integrate
from odesim.plot.choice import Choice
from odesim.plot.solution import ACROSS, ROW_OF_TICKS, figure_of_solution
from odesim.symbolic import Event, IndexedBase, Param, Source, System, index, over, sizes
from odesim.symbolic import time as t
from odesim.transforms.events import jumping_names, levels, watched_names
from tests.support.pictures import CASES, LOG, T, grow, solution

READS_Z = {"watched": {"e": {"z": "component"}}}


def marks(axes: Any, kind: str) -> list[tuple[float, float]]:
    """Points (x, y) of the marks of events on a `curve`, or (x, height in heights of the panel) of ticks and lines from the `axis`."""
    if kind == "curve":
        lines = [line for line in axes.lines if line.get_linestyle() == "None" and line.get_transform() == axes.transData]
        return [(float(np.asarray(line.get_xdata())[0]), float(np.asarray(line.get_ydata())[0])) for line in lines]
    ticks = [c for c in axes.collections if isinstance(c, LineCollection) and c.get_transform() == axes.get_xaxis_transform()]
    segments = [np.asarray(segment) for c in ticks for segment in c.get_segments()]
    return [(float(one[0, 0]), float(one[1, 1])) for one in segments if one[0, 1] == 0]


def test_events_are_marked() -> None:
    """A mark lies on the component that has the event, or on every number, and then nowhere else; never is not named."""
    figure = figure_of_solution(CASES["events"])
    number, v = figure.axes
    assert marks(v, "axis") == marks(number, "axis") == []
    assert marks(number, "curve") == [(9.5, pytest.approx(np.interp(9.5, T, grow()), rel=1e-12))]  # rounding
    values = grow(3)
    assert marks(v, "curve") == [(4 * T[1], pytest.approx(values[4, i], rel=1e-12)) for i in range(3)]  # a saved time: rounding
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["half_way (3×): t = 2.05", "snap: t = 9.5"]


def test_events_keep_to_their_components() -> None:
    """A mark goes to the components that its event reads and sets; where none of them is drawn, lines go across every panel."""
    y, both = {"a": grow(3), "b": grow(3)}, [{"t": 3.0, "index": None}]
    one = [{"t": 3.0, "index": (1,)}]
    for events, attrs, marked, below in (
        (one, {"watched": {"e": {"b": "component"}}}, [0, 1], [0, 0]),
        (one, {"watched": {"e": {"b": "component"}}, "jumps": {"e": {"a": "component", "b": "all"}}}, [1, 3], [0, 0]),
        (one, {}, [0, 0], [1, 1]),
        (both, {"watched": {"e": {"a": "0 2"}}}, [2, 0], [0, 0]),
        (both, {"watched": {"e": {"a": "1"}}, "jumps": {"e": {"b": "all"}}}, [1, 3], [0, 0]),
        (both, {}, [0, 0], [1, 1]),
    ):
        figure = figure_of_solution(solution(y, dims={"a": ("j",), "b": ("k",)}, events={"e": events}, attrs=attrs))
        sides = {axes: len({x for x, _ in marks(axes, "curve")}) for axes in figure.axes}
        heights = [len(marks(axes, "curve")) for axes in figure.axes]
        jumping = ["jumps" in attrs and name in attrs["jumps"]["e"] for name in y]
        assert [n // (1 + jump) for n, jump in zip(heights, jumping, strict=True)] == marked  # both sides of a jump
        assert [[high for _, high in marks(axes, "axis")] for axes in figure.axes] == [[1.0] * n for n in below] and max(
            sides.values()
        ) <= 1


def test_events_name_their_components() -> None:
    """Which components each event reads and sets follows from its expressions: its own, certain ones, or all of an array."""
    i, j = index("i j")
    (N,) = sizes("N")
    V, c, x = IndexedBase("V", shape=(N,)), IndexedBase("c", shape=(N,)), symbols("x", real=True)
    events = (
        Event("spike", V[i] - 1, resets={V[j]: V[j] + 1, V[i]: 0, c[i]: c[i] + 1}),
        Event("first", V[0] + V[2] - x, resets={c[1]: 0}),
        Event("mean", over(Sum, V[j], (j, N)) / N - 1, resets={x: 0}),
        Event("sharp", x**2 + 1 - 3),
        Event("turned", cos(x - c[0])),
    )
    system = System(
        name="notes.events",
        source=Source("own", "names"),
        axes={i: N, j: N},
        equations={V[i]: 1, c[i]: 0, x: 1},
        params=(),
        initial={V[i]: 0, c[i]: 0, x: 0},
        sizes={N: 3},
        observables={"square": x**2 + 1, "angle": x - c[0], "back": c[0] - x},
        events=events,
    )
    assert watched_names(system) == {
        "spike": {"V": "component"},
        "first": {"V": "0 2", "x": "component"},
        "mean": {"V": "all"},
        "sharp": {"x": "component", "square": "component"},
        "turned": {"c": "0", "x": "component", "angle": "component", "back": "component"},
    }
    assert jumping_names(system) == {
        "spike": {"V": "all", "c": "component"} | dict.fromkeys(("angle", "back"), "all"),
        "first": {"c": "1"} | dict.fromkeys(("angle", "back"), "all"),
        "mean": {"x": "component"} | dict.fromkeys(("square", "angle", "back"), "all"),
    }
    assert {("square", 3), ("V", 1), ("V", 0), ("x", 0)} <= set(levels(system))


@pytest.mark.parametrize("points", [8, 60])
def test_jumps_are_vertical(points: int) -> None:
    """What an event sets has a vertical line at its time, of its own component alone; dots stand at saved times alone."""
    t = np.linspace(0, 10, points)
    v = np.stack([np.where(t >= 4.56, 1.0, 0.0), t / 10, np.where(t >= 2.34, t, 0)], axis=1)
    events = {"hit": [{"t": 2.34, "index": (2,)}, {"t": 4.56, "index": (0,)}]}
    attrs = {"jumps": {"hit": {"v": "component", "n": "all"}}}
    figure = figure_of_solution(solution({"v": v, "n": v[:, 0] + v[:, 2]}, t, dims={"v": ("m",)}, events=events, attrs=attrs))
    curves = [[line for line in ax.lines if np.size(line.get_xdata()) >= points] for ax in figure.axes]
    for line, jumps in zip([*curves[0], *curves[1]], [(4.56,), (), (2.34,), (2.34, 4.56)], strict=True):
        x = np.asarray(line.get_xdata())
        assert tuple(x[1:][np.diff(x) == 0]) == jumps
        every: Any = line.get_markevery()
        np.testing.assert_array_equal(x[every], t)
    # both sides: 0 and 1, and 0 and t, which is straight; rounding
    sides = [(2.34, 0.0), (2.34, 2.34), (4.56, 0.0), (4.56, 1.0)]
    assert points < 60 or np.allclose(sorted(marks(figure.axes[0], "curve")), sides, rtol=0, atol=1e-12)


def test_events_on_a_map() -> None:
    """In a map the mark of an event of 24 lies at row 24."""
    case = solution({"z": grow(40)}, dims={"z": ("l",)}, events={"e": [{"t": 3.0, "index": (24,)}]}, attrs=READS_Z)
    assert marks(figure_of_solution(case).axes[0], "curve") == [(3.0, 24.0)]


@pytest.mark.parametrize("times", [T, LOG], ids=["linear", "logarithmic"])
def test_many_events_are_a_raster(times: Any) -> None:
    """They are ticks in the rows of their components, above the map, also where one at the start has no place on the axis."""
    found: list[dict[str, Any]] = [{"t": k / 10, "index": ((7 * k) % 40,)} for k in range(100)]
    axes = figure_of_solution(solution({"z": grow(40, t=times)}, times, dims={"z": ("l",)}, events={"e": found}, attrs=READS_Z)).axes[0]
    (line,) = (line for line in axes.lines if line.get_marker() == "|")
    assert axes.get_ylim() == (39.5, -0.5)
    first = int(times is LOG)
    assert np.array_equal(line.get_xydata(), [(event["t"], event["index"][0]) for event in found[first:]])


def test_the_legend_counts_what_is_drawn() -> None:
    """Of one component its own occurrences, 2 of 5."""
    fired = [{"t": 1.0 + k, "index": (k % 3,)} for k in range(5)]
    case = solution({"z": grow(3)}, dims={"z": ("l",)}, events={"e": fired}, attrs=READS_Z)
    for component, count in ((None, 5), ((1,), 2)):
        (legend,) = figure_of_solution(case, Choice(("z",), index=component)).legends
        assert legend.get_texts()[0].get_text().startswith(f"e ({count}×)")


@pytest.mark.parametrize(("count", "more"), [(12, 0), (13, 2), (40, 29)])
def test_many_names_have_one_entry(count, more):
    """The legend has twelve entries at most; every event is marked, and the picture is landscape."""
    events = {f"mode {k} is learned": [{"t": 0.4 * k, "index": None}] for k in range(count)}
    figure = figure_of_solution(solution({"x": grow()}, observables={"loss": grow()}, events=events))
    entries = [text.get_text() for text in figure.legends[0].get_texts()]
    assert len(entries) == count - more + bool(more) and (not more or entries[-1] == f"{more} more events")
    assert len({x for x, _ in marks(figure.axes[0], "curve")}) == count and figure.get_figheight() < figure.get_figwidth()


def test_rows_of_a_raster_of_a_matrix_have_its_indices() -> None:
    """Row 13 of W[i, j] of 6 by 10 elements is 1,3; axes are symbols, as elsewhere."""
    fired = [{"t": k / 10, "index": (k % 6, k % 10)} for k in range(100)]
    reads = {"watched": {"e": {"W": "component"}}}
    axes = figure_of_solution(solution({"W": grow(6, 10)}, dims={"W": ("i", "j")}, events={"e": fired}, attrs=reads)).axes[0]
    assert axes.get_ylabel() == "$i$, $j$" and axes.yaxis.get_major_formatter()(13, 0) == "1,3"


@pytest.mark.parametrize(
    ("times", "t", "kind"),
    [(T, 3.3, "curve"), (T[::10], 3.3, "axis"), (T[::10], T[10], "curve"), (LOG, 3.3, "curve"), (LOG[::6], 3.3, "axis")],
)
def test_heights_are_known(times: Any, t: float, kind: Any) -> None:
    """Between saved times far apart the height of a curve is a guess: the time is marked at the axis."""
    case = solution({"v": grow(3, t=times)}, times, events={"e": [{"t": t, "index": (1,)}]}, attrs={"watched": {"e": {"v": "component"}}})
    axes = figure_of_solution(case).axes[0]
    assert [kind for kind in ("curve", "axis") for x, _ in marks(axes, kind) if x == t] == [kind]


@pytest.mark.parametrize("index", [True, False])
@pytest.mark.parametrize("n", [8, 3000])
def test_many_events_hide_nothing(n: int, index: bool) -> None:
    """1001 events are ticks, at the foot or in a raster of their components; a line of the legend says how many and when."""
    found = [{"t": 2 + i / 1000, "index": (i % n,) if index else None} for i in range(1001)]
    given = {"dims": {"v": ("l",)}, "events": {"e": found}, "attrs": {"watched": {"e": {"v": "component"}}} if index else {}}
    figure = figure_of_solution(solution({"v": grow(n)}, observables={"loss": grow()}, **given))
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["e (1001×): t = 2 to 3"]
    panels = [axes for axes in figure.axes if not str(axes.get_label()).startswith("<colorbar")]
    assert len(panels) == 2 + index
    for axes in panels:
        assert not axes.patches
        ticks = [c for c in axes.collections if isinstance(c, LineCollection) and c.get_transform() == axes.get_xaxis_transform()]
        heights = np.array([segment[:, 1] for c in ticks for segment in c.get_segments()])
        # parts of the axis with one tick each, higher where it stands for more: none touch
        assert bool(len(heights)) != index
        if not index:
            (x,) = ({segment[0, 0] for segment in c.get_segments()} for c in ticks)
            tops = heights.max(axis=1)
            assert len(x) == len(heights) <= 81 and np.diff(sorted(x)).min() > 20 / 100 and tops.max() <= ROW_OF_TICKS
            assert np.ptp(tops[:-1]) <= 0.1 * tops.max()  # events are even: 250 or 251 a part, and fewer in the last
    if index:
        (raster,) = (line for axes in panels for line in axes.lines if line.get_marker() == "|")
        assert np.array_equal(raster.get_xydata(), [(event["t"], event["index"][0]) for event in found])  # type: ignore[arg-type, index]


def test_levels_are_thin_lines() -> None:
    """A threshold of an event and the value that it sets stand behind the curves of their state, and of no other."""
    figure = figure_of_solution(
        solution({"v": grow(3), "w": grow(2)}, dims={"v": ("m",), "w": ("k",)}, attrs={"levels": {"v": [0.0, 0.7]}})
    )
    lines = [[line for line in axes.lines if list(np.asarray(line.get_xdata())) == [0, 1]] for axes in figure.axes]
    assert [[float(np.asarray(line.get_ydata())[0]) for line in each] for each in lines] == [[0.0, 0.7], []]


@pytest.mark.parametrize("gap", [0.0, 0.01, 0.1, 2.0])  # of a time axis 20 long, 30 mm wide
def test_marks_do_not_hide_each_other(gap: float) -> None:
    """A line is lower than one of another event that is closer than its width, and stands before it."""
    events = {name: [{"t": 9.0 + k * gap, "index": None}] for k, name in enumerate(("first", "second"))}
    axes = figure_of_solution(solution({"x": grow(4)}, events=events)).axes[0]
    (_, high), (_, low) = marks(axes, "axis")
    first, second = axes.collections
    assert (high - low >= ROW_OF_TICKS / 2 and second.get_zorder() > first.get_zorder()) if gap < 1 else high == low


@pytest.mark.parametrize("n", [ACROSS, ACROSS + 1])
def test_lines_across_are_no_fence(n: int) -> None:
    """Resets that have too many marks for the curves are lines as high as the panels; of more than a few, ticks at the foot."""
    events = {"e": [{"t": t, "index": None} for t in np.linspace(1, 19, n)]}
    case = solution({"v": grow(8)}, observables={"loss": grow()}, dims={"v": ("m",)}, events=events, attrs={"jumps": {"e": {"v": "all"}}})
    for axes in figure_of_solution(case).axes:
        heights = {high for _, high in marks(axes, "axis")}
        assert len(marks(axes, "axis")) == n and (heights == {1.0} if n == ACROSS else max(heights) <= ROW_OF_TICKS)


@pytest.mark.parametrize("n", [1, 3])
def test_marks_of_a_panel_are_counted(n: int) -> None:
    """Five resets of one component have ten marks, of three 30: lines across every panel, one a reset, as an event has one look."""
    times = T[6:36:6].tolist()
    events = {"e": [{"t": t, "index": None} for t in times]}
    case = solution({"v": grow(n)}, observables={"loss": grow()}, events=events, attrs={"jumps": {"e": {"v": "all"}}})
    loss, v = figure_of_solution(case).axes
    if n == 1:
        assert [x for x, _ in marks(loss, "curve")] == times and not marks(loss, "axis")
        assert [x for x, _ in marks(v, "curve")] == np.repeat(times, 2).tolist()
    else:
        assert all([x for x, _ in marks(ax, "axis")] == times and not marks(ax, "curve") for ax in (loss, v))


def test_few_of_many_events_are_marks() -> None:
    """Of one component of forty events its two stand on its curve."""
    fired = [{"t": 0.25 * k, "index": (k % 20,)} for k in range(40)]
    case = solution({"z": grow(20)}, dims={"z": ("l",)}, events={"e": fired}, attrs=READS_Z)
    (axes,) = figure_of_solution(case, Choice(("z",), index=(7,))).axes
    assert [x for x, _ in marks(axes, "curve")] == [1.75, 6.75] and not marks(axes, "axis")


def test_marks_stand_on_curves_that_are_drawn() -> None:
    """Of 3000 components a bundle draws some: an event of one is a tick."""
    case = solution({"z": grow(3000)}, dims={"z": ("l",)}, events={"e": [{"t": 3.0, "index": (24,)}]}, attrs=READS_Z)
    axes = figure_of_solution(case).axes[0]
    assert [x for x, _ in marks(axes, "axis")] == [3.0] and not marks(axes, "curve")


@pytest.mark.parametrize("save", [2, 5])
def test_curves_between_events_are_the_run(save: int) -> None:
    """Doses that decay: the line is the closed form everywhere, also where doses share a saved interval; a copy has gaps, and says so."""
    (x, rate), dose = symbols("x rate", nonnegative=True), 2.0
    system = System(
        name="notes.doses",
        equations={x: -rate * x},
        params=(Param(rate, 0.1, doc="rate"),),
        initial={x: 0},
        span=(0.0, 48.0),
        events=(Event("dose", Mod(t, 10) - 5, direction=1, resets={x: x + dose}),),
    )
    run = integrate(system, save=save)
    (axes,) = figure_of_solution(run).axes
    times = np.linspace(0, 48, 1009)
    times = times[np.abs(times % 10 - 5) > 1e-6]  # a jump has two values
    given = np.arange(5.0, 48.0, 10.0)
    closed = np.where(times >= given[:, None], dose * np.exp(-0.1 * np.maximum(times - given[:, None], 0)), 0).sum(axis=0)
    line = next(line for line in axes.lines if np.size(line.get_xdata()) > 10)
    # chords 0.12 long of a curve with x'' < 0.04 are off by 7e-5
    np.testing.assert_allclose(
        np.interp(times, np.asarray(line.get_xdata(), float), np.asarray(line.get_ydata(), float)), closed, rtol=0, atol=2e-4
    )
    before = dose * np.exp(-0.1 * (given[:, None] - given)[np.tril_indices(5, -1)])
    tops = sorted(y for _, y in marks(axes, "curve"))
    assert len(tops) == 10 and max(tops) - min(tops) == pytest.approx(
        dose + before[-4:].sum(), abs=6e-4
    )  # two sides go on straight over 0.12

    (axes,) = (figure := figure_of_solution(pickle.loads(pickle.dumps(run)))).axes
    line = next(line for line in axes.lines if np.size(line.get_xdata()) > 2)
    drawn = np.ma.masked_invalid(line.get_ydata())
    assert drawn.count() == save and any("gaps" in text.get_text() for text in figure.findobj(Text))

"""Events in pictures of a solution: where their marks stand."""

from typing import Any

import numpy as np
import pytest
from matplotlib.collections import LineCollection

from odesim.plot.solution import RASTER, SIZE, figure_of_solution
from tests.support.pictures import CASES, LOG, T, grow, solution


def marks(axes: Any, kind: str) -> list[tuple[float, float]]:
    """Points (x, y) of the marks of events on a `curve`, or (x, height above the axis in points) of those at the `axis`."""
    figure, on_curve = axes.get_figure(root=True), kind == "curve"
    found = [line for line in axes.lines if line.get_linestyle() == "None" and bool(line.get_transform() == axes.transData) == on_curve]
    points = [(float(np.asarray(line.get_xdata())[0]), float(np.asarray(line.get_ydata())[0])) for line in found]
    if kind == "curve":
        return points
    lifts = [line.get_transform().transform(point)[1] - axes.bbox.y0 for line, point in zip(found, points, strict=True)]
    return [(x, lift / figure.dpi * 72) for (x, _), lift in zip(points, lifts, strict=True)]


def test_events_are_marked() -> None:
    """A mark lies on the component that has the event, or on every number; else on the line of the time axis; never is not named."""
    figure = figure_of_solution(CASES["events"])
    number, v = figure.axes
    assert marks(v, "axis") == [(9.5, pytest.approx(0.0, abs=1e-9))] and marks(number, "axis") == []  # rounding, of points
    assert marks(number, "curve") == [(9.5, pytest.approx(np.interp(9.5, T, grow()), rel=1e-12))]  # rounding
    values = grow(3)
    assert marks(v, "curve") == [(4 * T[1], pytest.approx(values[4, i], rel=1e-12)) for i in range(3)]  # a saved time: rounding
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["half_way (3×): t = 2.05", "snap: t = 9.5"]


def test_events_keep_to_their_state() -> None:
    """A mark goes to the one state whose axes the event has, or of several to that with a threshold; else to every time axis."""
    y, events = {"a": grow(3), "b": grow(3)}, {"e": [{"t": 3.0, "index": (1,)}]}
    for given, marked, below in (
        (solution(y, dims={"a": ("j",), "b": ("k",), "e": ("k",)}, events=events), [0, 1], [0, 0]),
        (solution(y, dims={"a": ("j",), "b": ("k",)}, events=events), [0, 0], [1, 1]),
        (solution(y, dims={name: ("k",) for name in "abe"}, events=events, attrs={"levels": {"b": [2.0]}}), [0, 1], [0, 0]),
        (solution(y, dims={name: ("k",) for name in "abe"}, events=events, attrs={"levels": {"a": [2.0], "b": [2.0]}}), [0, 0], [1, 1]),
        (solution({"a": grow(3)}, observables={"S": grow(3)}, events=events), [0, 1], [0, 0]),
        (solution({"a": grow(2, 9)}, observables={"S": grow(3)}, events=events), [0, 0, 0], [1, 1, 0]),
        (solution({"a": grow(1)}, observables={"S": grow(3)}, events=events), [0, 0], [1, 1]),
    ):
        figure = figure_of_solution(given)
        # the strip of a matrix is the last panel made
        shown = [axes for axes in figure.axes if not str(axes.get_label()).startswith("<colorbar")]
        assert [len(marks(axes, "curve")) for axes in shown] == marked
        assert [len(marks(axes, "axis")) for axes in shown] == below


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
    case = solution({"z": grow(40)}, dims={"z": ("l",)}, events={"e": [{"t": 3.0, "index": (24,)}]})
    assert marks(figure_of_solution(case).axes[0], "curve") == [(3.0, 24.0)]


@pytest.mark.parametrize("times", [T, LOG], ids=["linear", "logarithmic"])
def test_many_events_on_a_map(times: Any) -> None:
    """They are ticks in the rows of their components, also where one at the start has no place on the axis."""
    found: list[dict[str, Any]] = [{"t": k / 10, "index": ((7 * k) % 40,)} for k in range(100)]
    axes = figure_of_solution(solution({"z": grow(40, t=times)}, times, dims={"z": ("l",)}, events={"e": found})).axes[0]
    (line,) = (line for line in axes.lines if line.get_marker() == "|")
    first = int(times is LOG)
    assert np.array_equal(line.get_xydata(), [(event["t"], event["index"][0]) for event in found[first:]])


@pytest.mark.parametrize(
    ("times", "t", "kind"),
    [(T, 3.3, "curve"), (T[::10], 3.3, "axis"), (T[::10], T[10], "curve"), (LOG, 3.3, "curve"), (LOG[::6], 3.3, "axis")],
)
def test_heights_are_known(times: Any, t: float, kind: Any) -> None:
    """Between saved times far apart the height of a curve is a guess: the time is marked at the axis."""
    case = solution({"v": grow(3, t=times)}, times, events={"e": [{"t": t, "index": (1,)}]})
    axes = figure_of_solution(case).axes[0]
    assert [kind for kind in ("curve", "axis") for x, _ in marks(axes, kind) if x == t] == [kind]


@pytest.mark.parametrize("index", [True, False])
@pytest.mark.parametrize("n", [8, 3000])
def test_many_events_hide_nothing(n: int, index: bool) -> None:
    """1000 events are ticks at the foot, of components a row for each below the curves, and a line of the legend says how many and when."""
    found = [{"t": 2 + i / 1000, "index": (i % n,) if index else None} for i in range(1001)]
    figure = figure_of_solution(solution({"v": grow(n)}, observables={"loss": grow()}, dims={"v": ("l",)}, events={"e": found}))
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["e (1001×): t = 2 to 3"]
    loss, v = figure.axes[:2]
    for axes, rows in ((loss, 0 if index else 1), (v, n if index else 1)):
        assert not any(marks(axes, kind) for kind in ("curve", "axis")) and not axes.patches
        ticks = [c for c in axes.collections if isinstance(c, LineCollection) and c.get_transform() == axes.get_xaxis_transform()]
        heights = np.array([segment[:, 1] for c in ticks for segment in c.get_segments()])
        assert len(heights) == (1001 if rows else 0)
        assert rows == 0 or (len(np.unique(heights[:, 0])) == min(rows, 1001) and heights.max() <= RASTER)
    if index and n == 8:
        assert v.get_ylim()[0] < grow(n).min() - 0.3 * np.ptp(grow(n))  # room for the ticks


def test_levels_are_thin_lines() -> None:
    """A threshold of an event and the value that it sets stand behind the curves of their state, and of no other."""
    figure = figure_of_solution(
        solution({"v": grow(3), "w": grow(2)}, dims={"v": ("m",), "w": ("k",)}, attrs={"levels": {"v": [0.0, 0.7]}})
    )
    lines = [[line for line in axes.lines if list(np.asarray(line.get_xdata())) == [0, 1]] for axes in figure.axes]
    assert [[float(np.asarray(line.get_ydata())[0]) for line in each] for each in lines] == [[0.0, 0.7], []]


@pytest.mark.parametrize("gap", [0.0, 0.01, 0.1, 2.0])  # of a time axis 20 long, 30 mm wide
def test_marks_do_not_hide_each_other(gap: float) -> None:
    """A mark stands on one of another event that is closer than its size, and on the axis else."""
    events = {name: [{"t": 9.0 + k * gap, "index": None}] * 3 for k, name in enumerate(("first", "second"))}
    axes = figure_of_solution(solution({"x": grow(4)}, events=events)).axes[0]
    heights = [round(height, 6) for _, height in marks(axes, "axis")]
    low, high = min(heights), max(heights)
    assert heights == [low] * 3 + [high] * 3 and (high - low >= SIZE if gap < 1 else high == low)

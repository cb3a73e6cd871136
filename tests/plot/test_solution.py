"""The picture of a Solution, whatever the shapes: every axis named, no word on another, nothing smaller than 6 points at 80 mm."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from matplotlib.cbook import is_math_text
from matplotlib.collections import QuadMesh
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.text import Text

from odesim.errors import ParamError
from odesim.plot.choice import Choice
from odesim.plot.labels import spread_positions, symbol
from odesim.plot.marks import SIZE
from odesim.plot.panels import SAMPLE, set_value_scale
from odesim.plot.quantity import MAP, ROWS
from odesim.plot.solution import figure_of_solution
from odesim.plot.style import CATEGORIES, SMALL, WIDTH, ordered_colors
from odesim.plot.times import cell_edges, make_time_axis
from odesim.plot.tolerance import NOTE
from tests.support.matrix import slow_but
from tests.support.texts import clashes, drawn_texts, has_no_hole, notes

T = np.linspace(0.0, 20.0, 40)
LOG = np.append(0.0, np.geomspace(2e-3, 20.0, 39))


def grow(*shape: int, t: Any = T, rate: float = 0.1) -> Any:
    """(T, *shape): saturating curves of different heights, both signs."""
    heights = np.linspace(-0.5, 1.0, int(np.prod(shape))).reshape(shape)
    return (1 - np.exp(-rate * np.asarray(t))).reshape(-1, *[1] * len(shape)) * heights


def solution(y: Any, t: Any = T, **given: Any) -> Any:
    """A stand-in with the attributes of a Solution that a picture needs."""
    plain = {"observables": {}, "dims": {}, "events": {}, "status": "ok", "message": "", "model": "demo.model"}
    return SimpleNamespace(t=t, y=y, **{**plain, "attrs": {"time_unit": "SGD steps"}, **given})


CASES = {
    "scalar": solution({"x": grow()}),
    "three scalars": solution({"x": grow(), "y": -grow(), "z": 3 * grow()}),
    "vector": solution({"v": grow(4)}, dims={"v": ("m",)}),
    "one component": solution({"v": grow(1)}, dims={"v": ("m",)}),
    "ten that end together": solution({"v": grow(10) * np.exp(-T)[:, None]}, dims={"v": ("m",)}),
    "vector and scalar": solution({"v": grow(4)}, observables={"entropy": grow()}, dims={"v": ("m",)}),
    "vector beside two": solution(
        {"v": grow(10)}, observables={"S": grow(), "gap": 1 - grow(10, rate=3)}, dims={"v": ("m",), "gap": ("m",)}
    ),
    "matrix": solution({"V": grow(2, 3)}, dims={"V": ("l", "k")}),
    "map": solution({"z": grow(40)}, observables={"loss": np.exp(-T)}, dims={"z": ("l",)}),
    "map of a matrix": solution({"V": grow(40, 20)}, observables={"rank": grow()}, dims={"V": ("l", "k")}),
    "constant map": solution({"z": np.ones((40, 30))}, dims={"z": ("l",)}),
    "matrices and vectors": solution(
        {"v": grow(3), "V": -grow(30, 3)},
        observables={"c": grow(2, 30), "S": grow(), "P": np.ones((40, 3))},
        dims={"v": ("m",), "V": ("l", "j"), "c": ("n", "l"), "P": ("m",)},
        events={
            "half_way": [{"t": 0.01 * i, "index": (i % 3,)} for i in range(1000)],
            "a rather long name of it": [{"t": 3.0, "index": None}],
        },
    ),
    "bands": solution({"z": grow(MAP + 1)}, observables={"loss": np.exp(-T)}, dims={"z": ("l",)}),
    "many states": solution(
        {**{name: grow(10) for name in "abdz"}, **{name: grow(3) for name in ("u", "v", "zc")}},
        observables={"loss": np.exp(-T), "c": grow(10), "cc": grow(3)},
        dims={**dict.fromkeys("abdzc", ("j",)), **dict.fromkeys(("u", "v", "zc", "cc"), ("g",))},
    ),
    "more than fit": solution({f"x{i}": grow() for i in range(14)}, observables={"loss": grow()}),
    "log times": solution({"v": grow(5, t=LOG)}, LOG, observables={"entropy": grow(t=LOG)}, dims={"v": ("m",)}),
    "a narrow panel": solution(
        {"v": grow(5, t=LOG)},
        LOG,
        observables={"entropy": 2.3 + 1e-4 * grow(t=LOG)},
        dims={"v": ("m",)},
        attrs={"time_unit": "time of gradient flow, SGD steps times eta"},
    ),
    "large times": solution({"v": grow(5)}, 1e5 * T, observables={"S": grow()}, dims={"v": ("m",)}),
    "large values": solution({"v": 1e8 * grow(5)}, observables={"S": 1e-9 * grow()}, dims={"v": ("m",)}),
    "almost constant": solution({"v": 1 + 1e-13 * grow(3)}, observables={"S": 7 + 1e-13 * grow()}, dims={"v": ("m",)}),
    "start and end": solution({"v": grow(3, t=T[[0, -1]])}, T[[0, -1]], dims={"v": ("m",)}),
    "start only": solution({"v": grow(3, t=T[:1])}, T[:1], observables={"z": grow(30, t=T[:1])}, dims={"v": ("m",), "z": ("l",)}),
    "not finite": solution(
        {"v": np.where(T[:, None] > 15, np.nan, grow(3))},
        observables={"S": np.full(40, np.nan), "A": np.where(T > 15, np.inf, grow())},
        dims={"v": ("m",)},
        status="blow_up",
    ),
    "events": solution(
        {"v": grow(3)},
        observables={"S": grow()},
        dims={"v": ("m",)},
        events={"half_way": [{"t": 4 * T[1], "index": (i,)} for i in range(3)], "snap": [{"t": 9.5, "index": None}], "never": []},
    ),
    "long names": solution(
        {"relative_gain_of_the_most_frequent_token": grow(), "V": grow(3)},
        observables={"stable_rank_of_the_velocity": grow(), "S": grow()},
        model="/a/long/path/to/my_models/one_of_many_models_that_i_wrote.py:SECOND_SYSTEM",
    ),
    "a formula's signs": solution({"$x_1$": grow(), r"\frac{": -grow()}, observables={"$": grow()}, model="$m$"),
}


@pytest.mark.parametrize("name", slow_but(CASES, [*CASES][::2]))
def test_legible(name: str) -> None:
    """Each axis has a name, no two words overlap or leave the page, type is 6 points or more at 80 mm, panels fill their grid."""
    case = CASES[name]
    figure = figure_of_solution(case)
    assert figure.get_figwidth() * 25.4 == pytest.approx(WIDTH)
    texts = drawn_texts(figure)
    assert clashes(figure, texts) == []
    assert min(float(text.get_fontsize()) for text in figure.findobj(Text)) >= SMALL
    named = [axes.get_xlabel() for axes in figure.axes if axes.get_xlabel() and not str(axes.get_label()).startswith("<colorbar")]
    indices = {", ".join(map(symbol, dims[1:])) for dims in case.dims.values()} - {""}  # under the last values of matrices
    assert any("SGD" in label for label in named) and all("SGD" in label or label in indices for label in named)
    assert all(axes.get_ylabel() or str(axes.get_label()).startswith("<colorbar") for axes in figure.axes)
    assert has_no_hole(figure)
    if name == "a formula's signs":
        assert not any(is_math_text(text) for text in [figure.get_suptitle(), *(axes.get_ylabel() for axes in figure.axes)])
    # a panel, or a line under the title, for every quantity
    words = " ".join(text for text, _ in texts).replace("\n", "").replace("\\", "")
    shown = [*case.y, *case.observables] if len(case.y) < 13 else [*case.y][:12]
    assert all(any(said.replace("\\", "") in words for said in (one, symbol(one).strip("$"), *symbols(case, one))) for one in shown)


def symbols(case: Any, name: str) -> list[str]:
    """A quantity's label, with its indices."""
    return [symbol(name, case.dims.get(name, ()))]


def test_kinds() -> None:
    """The number of components decides between lines, a map and bands; many scalars beyond the panels are named."""
    assert len(figure_of_solution(CASES["vector"]).axes[0].lines) == 8  # a line and its name's tick for each
    assert len(figure_of_solution(CASES["map"]).axes[0].collections) == 1
    assert len(figure_of_solution(CASES["bands"]).axes[0].collections) == 3
    assert notes(figure_of_solution(CASES["more than fit"])) == ["not shown: x12, x13, loss"]
    assert notes(figure_of_solution(CASES["not finite"])) == ["stopped at t = 20: blow_up"]


def test_map_holds_the_values() -> None:
    """A map's colours are the components, row by index, column by saved time."""
    mesh: Any = figure_of_solution(CASES["map"]).axes[0].collections[0]
    np.testing.assert_array_equal(np.asarray(mesh.get_array()), grow(40).T)


def test_map_loses_no_winner() -> None:
    """With more components than rows each one that stands out of its neighbours is still seen, of either sign; nan stays empty."""
    for i in (3, 4, 5):
        values = 1e-3 * np.ones((40, MAP))
        values[:, i], values[:, -1 - i], values[:, 5] = 2.0, -2.0, np.nan
        mesh: Any = figure_of_solution(solution({"z": values}, dims={"z": ("l",)})).axes[0].collections[0]
        cells = np.ma.masked_invalid(mesh.get_array())
        assert (cells.max(), cells.min(), cells.shape[0] <= ROWS) == (2.0 if i != 5 else 1e-3, -2.0, True)


def test_bands_hold_all_components() -> None:
    """The outermost band is exactly the smallest and the largest of all components."""
    axes = figure_of_solution(CASES["bands"]).axes[0]
    heights: Any = np.asarray(axes.collections[0].get_paths()[0].vertices)[:, 1]
    values = grow(MAP + 1)
    assert (heights.min(), heights.max()) == (values.min(), values.max())


@pytest.mark.parametrize("period", range(2, 9))
def test_bands_of_tiled_components(period: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """More components than quantiles are taken of, whose values repeat: the lines are quantiles of all, not of one in `period`.

    A quantile of 10000 random ones has the standard error sqrt(1/4 / 10000) = .5 %, and four of them are allowed.
    """
    monkeypatch.setattr("odesim.plot.panels.NUMBERS", 0)
    n = SAMPLE * period
    heights = np.tile(np.arange(period) / period, SAMPLE) + np.linspace(0, 1 / period, n)
    axes = figure_of_solution(solution({"z": np.linspace(0, 1, 3)[:, None] * heights}, T[:3], dims={"z": ("l",)})).axes[0]
    median = float(np.asarray(axes.lines[0].get_ydata())[-1])
    assert np.mean(heights < median) == pytest.approx(0.5, abs=0.02)
    assert axes.get_title(loc="right") == "quantiles: 10\u202f000 at random"


def test_bands_are_of_all_components_where_these_are_not_too_many() -> None:
    """20002 components of two heights: the median is the middle between both, which no sample has."""
    values = np.linspace(0, 1, 3)[:, None] * np.tile([1.0, 2.0], 10_001)
    axes = figure_of_solution(solution({"z": values}, T[:3], dims={"z": ("l",)})).axes[0]
    assert np.asarray(axes.lines[0].get_ydata())[-1] == 1.5 and axes.get_title(loc="right") == ""


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
    """A mark lies on the component that has the event, or on every number; else it stands above the time axis; never is not named."""
    figure = figure_of_solution(CASES["events"])
    v, number = figure.axes
    assert [x for x, _ in marks(v, "axis")] == [9.5] and marks(number, "axis") == []
    assert marks(number, "curve") == [(9.5, pytest.approx(np.interp(9.5, T, grow()), rel=1e-12))]  # rounding
    values = grow(3)
    assert marks(v, "curve") == [(4 * T[1], pytest.approx(values[4, i], rel=1e-12)) for i in range(3)]  # a saved time: rounding
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["half_way (3×): t = 2.05", "snap: t = 9.5"]


def test_events_keep_to_their_state() -> None:
    """A mark goes to the one state whose axes the event has; where that is not known, or is an observable, to every time axis."""
    y, events = {"a": grow(3), "b": grow(3)}, {"e": [{"t": 3.0, "index": (1,)}]}
    for given, marked, below in (
        (solution(y, dims={"a": ("j",), "b": ("k",), "e": ("k",)}, events=events), [0, 1], [0, 0]),
        (solution(y, dims={"a": ("j",), "b": ("k",)}, events=events), [0, 0], [1, 1]),
        (solution({"a": grow(3)}, observables={"S": grow(3)}, events=events), [1, 0], [0, 0]),
        (solution({"a": grow(2, 9)}, observables={"S": grow(3)}, events=events), [0, 0, 0], [1, 1, 0]),
        (solution({"a": grow(1)}, observables={"S": grow(3)}, events=events), [0, 0], [1, 1]),
    ):
        figure = figure_of_solution(given)
        # beside a matrix its last values are the second panel made
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


def test_events_on_a_map() -> None:
    """In a map the mark of an event of 24 lies at row 24."""
    case = solution({"z": grow(40)}, dims={"z": ("l",)}, events={"e": [{"t": 3.0, "index": (24,)}]})
    assert marks(figure_of_solution(case).axes[0], "curve") == [(3.0, 24.0)]


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
@pytest.mark.parametrize("n", [30, 3000])
def test_many_events_hide_nothing(n: int, index: bool) -> None:
    """1000 events are one band behind the curves, or one bar under a map, and a line of the legend that says how many and when."""
    found = [{"t": 2 + i / 1000, "index": (i % n,) if index else None} for i in range(1001)]
    figure = figure_of_solution(solution({"v": grow(n)}, observables={"S": grow()}, dims={"v": ("l",)}, events={"e": found}))
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["e (1001×): t = 2 to 3"]
    for axes in figure.axes[:2]:
        assert not any(marks(axes, kind) for kind in ("curve", "axis"))
    bars = [list(np.asarray(line.get_xdata())) for line in figure.axes[0].lines if list(np.asarray(line.get_ydata())) == [0, 0]]
    bands = [[patch for patch in axes.patches if isinstance(patch, Rectangle)] for axes in figure.axes[:2]]
    assert list(map(len, bands)) == [int(n == 3000), 1] and bars == [[2.0, 3.0]] * (n == 30)
    band = bands[1][0]
    assert (band.get_x(), band.get_width(), band.get_zorder()) == (2.0, pytest.approx(1.0, rel=1e-12), 0)  # rounding


def test_matrix_shows_its_last_values() -> None:
    """Beside its quantiles a matrix stands as it is at the last time at which it is finite."""
    for last in (0.0, np.inf):
        values = grow(8, 5)
        values[-1, 0, 0] += last
        figure = figure_of_solution(solution({"V": values}, dims={"V": ("l", "k")}))
        mesh: Any = figure.axes[1].collections[0]
        row = -1 if last == 0 else -2
        np.testing.assert_array_equal(np.asarray(mesh.get_array()), values[row])
        assert (figure.axes[1].get_xlabel(), figure.axes[1].get_ylabel()) == ("$k$", "$l$")
        assert figure.axes[2].get_xlabel() == f"$V$ at $t$ = {T[row]:.3g}"


def test_leaders_are_no_curves() -> None:
    """Between a curve and its name: thin, grey, outside the axes."""
    axes = figure_of_solution(CASES["ten that end together"]).axes[0]
    leaders = [line for line in axes.lines if line.get_transform() == axes.transAxes]
    assert len(leaders) == 10
    for line in leaders:
        assert np.min(line.get_xdata()) > 1 and line.get_linewidth() < 0.5 and np.ptp(to_rgb(line.get_color())) == 0


def test_small_panels_say_what_they_leave_out() -> None:
    """Lines without names refer to the panel that has them; a constant observable is a line of type, no panel."""
    y = {"v": grow(4)}
    figure = figure_of_solution(
        solution(
            y, observables={"gap": grow(4) * np.exp(-T)[:, None], "P": np.ones((40, 4)) / 4}, dims=dict.fromkeys(("v", "gap", "P"), ("m",))
        )
    )
    assert len(figure.axes) == 2
    assert figure.axes[1].get_title(loc="right") == "colours as in $v$"
    assert notes(figure) == ["constant: $P_{m}$ = 0.25, 0.25, 0.25, 0.25"]


@pytest.mark.parametrize(
    ("times", "log", "label"),
    [
        (T, False, "$t$ (steps)"),
        (LOG, True, "$t$ (steps)"),
        (5 + LOG, True, "$t$ − 5 (steps)"),
        (np.append(LOG[:30], 1.05 * LOG[29]), True, "$t$ (steps)"),  # ended early
        ([1.0, 3.0, 10.0, 30.0, 100.0], True, "$t$ (steps)"),
        ([0.0, 1.0], False, "$t$ (steps)"),
        ([0.0], False, "$t$ (steps)"),
        (1e5 * T, False, "$t / 10^{6}$ (steps)"),
        (-T[::-1], False, "$t$ (steps)"),
    ],
)
def test_clock(times: Any, log: bool, label: str) -> None:
    """Time is logarithmic exactly where the saved times are geometric."""
    clock = make_time_axis(np.asarray(times, float), "steps")
    assert (clock.log, clock.label) == (log, label)
    assert not log or np.all(clock.x > 0)
    shown = np.asarray(times, float)[clock.rows]
    np.testing.assert_allclose(clock.positions(shown), clock.x, rtol=1e-15)  # the same operations
    cells = cell_edges(clock.x, log)
    assert np.all(np.diff(cells) > 0) and len(cells) == len(clock.x) + 1


def test_spread() -> None:
    """Names keep their order, distance and bounds, and stay where they are when they do not clash."""
    rng = np.random.default_rng(0)
    for n in range(1, 12):
        wanted = rng.uniform(size=n) ** 3
        got = spread_positions(wanted, 0.08)
        assert np.all(np.diff(got[np.argsort(wanted)]) > 0.08 - 1e-12)  # rounding
        assert got.min() >= 0 and got.max() <= 1
    np.testing.assert_allclose(spread_positions(np.array([0.9, 0.1, 0.5]), 0.2), [0.9, 0.1, 0.5], rtol=1e-15)
    np.testing.assert_allclose(spread_positions(np.array([0.5, 0.5]), 0.2), [0.4, 0.6], rtol=1e-15)
    np.testing.assert_allclose(spread_positions(np.zeros(5), 0.9), np.linspace(0, 1, 5), rtol=1e-15)  # too many: evenly


# Linear RGB of a reader without red (protanopia) or green (deuteranopia) cones: Vienot, Brettel and Mollon 1999, for sRGB
DEFECTS = {
    "protanopia": [[0.11238, 0.88762, 0.0], [0.11238, 0.88762, 0.0], [0.00401, -0.00401, 1.0]],
    "deuteranopia": [[0.29275, 0.70725, 0.0], [0.29275, 0.70725, 0.0], [-0.02234, 0.02234, 1.0]],
}


def lab(colors: Any) -> Any:
    """CIELAB (n, 3) of linear RGB (n, 3), white point D65."""
    matrix = np.array([[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]])
    ratio = np.clip(colors, 0, 1) @ matrix.T / matrix.sum(axis=1)
    f = np.where(ratio > 216 / 24389, np.cbrt(ratio), (24389 / 27 * ratio + 16) / 116)
    return np.stack([116 * f[:, 1] - 16, 500 * (f[:, 0] - f[:, 1]), 200 * (f[:, 1] - f[:, 2])], axis=1)


@pytest.mark.parametrize("defect", DEFECTS)
def test_colours_stay_apart(defect: str) -> None:
    """Seen without red or green cones, colours of categories and of five ordered lines differ by 10 or more in CIELAB."""
    for palette in (CATEGORIES, ordered_colors(5)):
        srgb = np.array([to_rgb(color) for color in palette])
        linear = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
        seen = lab(linear @ np.array(DEFECTS[defect]).T)
        distances = np.linalg.norm(seen[:, None] - seen[None], axis=-1)[np.triu_indices(len(palette), 1)]
        assert distances.min() > 10  # one is just noticeable; ten is a clear difference


@pytest.mark.parametrize("gap", [0.0, 0.01, 0.1, 2.0])  # of a time axis 20 long, 30 mm wide
def test_marks_do_not_hide_each_other(gap: float) -> None:
    """Above the axis a mark stands on one of another event that is closer than its size, and on the axis else."""
    events = {name: [{"t": 9.0 + k * gap, "index": None}] * 3 for k, name in enumerate(("first", "second"))}
    axes = figure_of_solution(solution({"x": grow(4)}, events=events)).axes[0]
    heights = [round(height, 6) for _, height in marks(axes, "axis")]
    low, high = min(heights), max(heights)
    assert heights == [low] * 3 + [high] * 3 and (high - low >= SIZE if gap < 1 else high == low)


@pytest.mark.parametrize("name", ["map", "map of a matrix", "matrices and vectors"])
def test_images(name: str) -> None:
    """Component or row 0 is on top, and every colour bar says what it is of."""
    figure = figure_of_solution(CASES[name])
    images = [axes for axes in figure.axes if any(isinstance(shown, QuadMesh) for shown in axes.collections)]
    bars = [axes for axes in figure.axes if str(axes.get_label()).startswith("<colorbar")]
    assert all(axes.yaxis_inverted() for axes in images if axes not in bars)
    assert bars and all(axes.get_xlabel() for axes in bars)


TOLERANCES = {"time_unit": "s", "rtol": 1e-6, "atol": 1e-9, "step": None}


@pytest.mark.parametrize(
    ("case", "log", "floor", "bottom"),
    [
        ("observable", None, 1.001e-6, 1.001e-8),  # rtol of the largest, and atol; the axis ends two decades below
        ("state", None, 1e-9, 1e-11),
        ("observable", "y", 1.001e-6, None),  # all that was asked for
        ("fixed step", None, None, None),
        ("large", None, None, None),  # nothing below the tolerance
    ],
)
def test_what_is_below_the_tolerance_is_on_grey(case, log, floor, bottom):
    """Of a logarithmic axis; a note says what the grey is."""
    values = {"large": np.exp(-0.5 * T)}.get(case, np.exp(-1.35 * T))
    attrs = TOLERANCES | ({"step": 0.1} if case == "fixed step" else {})
    states = {"y": values} if case == "state" else {"x": grow()}
    run = solution(states, observables={} if case == "state" else {"gap": values}, attrs=attrs)
    figure = figure_of_solution(run, Choice(log=log))
    axes = figure.axes[-1]
    bars = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
    assert axes.get_yscale() == "log" and len(bars) == (floor is not None)
    assert (NOTE in notes(figure)) is (floor is not None)
    if floor is not None:
        assert bars[0].get_y() + bars[0].get_height() == pytest.approx(floor, rel=1e-6)
        assert axes.get_ylim()[0] == pytest.approx(bottom if bottom else axes.get_ylim()[0])
        assert bool(axes.get_ylim()[0] > values.min()) is (bottom is not None)
        assert bottom is None or all(line.get_clip_on() for line in axes.lines)


def test_logarithmic_scales_of_bands_and_maps():
    """Bands of both signs are cut at the foot of the axis, a map's values <= 0 have no colour; what has no such scale is refused."""
    negative = solution({"z": grow(MAP + 1) - 0.3}, dims={"z": ("l",)})
    figure = figure_of_solution(negative, Choice(log="y"))
    assert figure.axes[0].get_yscale() == "log"
    assert notes(figure)[0] == "$z_{l}$: 40 of 40 values ≤ 0, not shown (log)"  # of the median
    assert notes(figure)[1] == "$z_{l}$: the band reaches values ≤ 0, beyond the axis"
    figure = figure_of_solution(CASES["map"], Choice(log="c", var=("z",)))
    mesh: Any = next(c for c in figure.axes[0].collections if isinstance(c, QuadMesh))
    below = int((CASES["map"].y["z"] <= 0).sum())
    assert np.ma.getmaskarray(mesh.get_array()).sum() == below and f"{below} of 1600 values ≤ 0" in notes(figure)[0]
    with pytest.raises(ParamError, match="log y: the vertical axis is the component of z"):
        figure_of_solution(CASES["map"], Choice(log="y", var=("z",)))
    with pytest.raises(ParamError, match="log c: this picture has no colours"):
        figure_of_solution(CASES["vector"], Choice(log="c"))
    with pytest.raises(ParamError, match="log x: no saved time is > 0, the last is 0"):
        figure_of_solution(CASES["start only"], Choice(log="x"))


@pytest.mark.parametrize(
    ("values", "scale"),
    [
        (np.exp(-np.linspace(0, 12, 50)), "log"),  # a decay
        (np.abs(np.sin(np.linspace(0.01, 12, 50))) + 1e-4, "linear"),  # a ball that touches the floor
        (np.linspace(0.5, 2, 50), "linear"),
    ],
)
def test_an_axis_is_logarithmic_where_values_decay(values, scale):
    """Not where a curve only comes near 0 now and then."""
    axes = Figure().subplots()
    set_value_scale(axes, np.ma.masked_invalid(values))
    assert axes.get_yscale() == scale

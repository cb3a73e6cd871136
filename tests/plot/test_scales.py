"""Axes of pictures of a solution: time, logarithms, the tolerance."""

import pickle
from typing import Any

import numpy as np
import pytest
from matplotlib.collections import QuadMesh
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from sympy import Symbol

import odesim
from odesim.base.errors import ParamError
from odesim.plot.choice import Choice
from odesim.plot.labels import without_power
from odesim.plot.members import as_solution
from odesim.plot.panels import set_value_scale
from odesim.plot.quantities import MAP
from odesim.plot.scales import ALL_BELOW, NOTE, PALE, cell_edges, make_time_axis
from odesim.plot.solution import figure_of_solution
from odesim.store.read import read_solution
from odesim.store.write import write_solution
from odesim.symbolic import Source, System
from tests.support.pictures import CASES, LOG, T, grow, solution
from tests.support.texts import notes


@pytest.mark.parametrize(
    ("times", "log", "label"),
    [
        (T, False, "$t$ (steps)"),
        (LOG, True, "$t$ (steps)"),
        (5 + LOG, True, "$t$ − 5 (steps)"),
        (np.append(LOG[:30], 1.05 * LOG[29]), True, "$t$ (steps)"),  # ended early
        ([1.0, 3.0, 10.0, 30.0, 100.0], True, "$t$ (steps)"),
        (np.geomspace(1.0, 98.0, 9), False, "$t$ (steps)"),  # less than two decades
        (np.geomspace(1.0, 101.0, 9), True, "$t$ (steps)"),
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
    on_paper = np.log if log else np.asarray
    if len(clock.x) > 1:  # a border is as far from both times, on the axis
        np.testing.assert_allclose(on_paper(cells[1:-1]), (on_paper(clock.x[1:]) + on_paper(clock.x[:-1])) / 2, rtol=1e-12, atol=1e-12)


TOLERANCES = {"time_unit": "s", "rtol": 1e-6, "atol": 1e-9, "step": None}


@pytest.mark.first(2)
@pytest.mark.parametrize(
    ("case", "log", "floor", "bottom"),
    [
        ("observable", None, 1.001e-6, 1.001e-8),  # rtol of the largest, and atol; the axis ends two decades below
        ("state", None, 1e-9, 1e-11),
        ("near", None, 1.001e-6, None),  # less than two decades below it
        ("observable", "y", 1.001e-6, None),  # all that was asked for
        ("fixed step", None, None, None),
        ("large", None, None, None),  # nothing below the tolerance
    ],
)
def test_what_is_below_the_tolerance_is_on_grey(case, log, floor, bottom):
    """Of a logarithmic axis; a note says what the grey is."""
    values = {"large": np.exp(-0.5 * T), "near": np.exp(-0.8 * T)}.get(case, np.exp(-1.35 * T))
    attrs = TOLERANCES | ({"step": 0.1} if case == "fixed step" else {})
    states = {"y": values} if case == "state" else {"x": grow()}
    run = solution(states, observables={} if case == "state" else {"gap": values}, attrs=attrs)
    figure = figure_of_solution(run, Choice(log=log))
    axes = figure.axes[0]  # observables come first
    bars = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
    assert axes.get_yscale() == "log" and len(bars) == (floor is not None)
    assert (NOTE in notes(figure)) is (floor is not None)
    if floor is not None:
        assert bars[0].get_y() + bars[0].get_height() == pytest.approx(floor, rel=1e-6)
        assert axes.get_ylim()[0] == pytest.approx(bottom if bottom else bars[0].get_y())  # no white below it
        assert bool(axes.get_ylim()[0] > values.min()) is (bottom is not None)
        assert bottom is None or all(line.get_clip_on() for line in axes.lines)


def run_that_rests() -> Any:
    """A run of x' = 1 - x, whose observables 1 - x = exp(-t) and its square end in errors."""
    x = Symbol("x", real=True)
    loss = {"gap": 1 - x, "loss": (1 - x) ** 2}
    system = System(
        name="own", source=Source("own", "test"), axes={}, equations={x: 1 - x}, params=(), initial={x: 0.0}, span=(0, 25), observables=loss
    )  # fmt: skip
    return odesim.integrate(system, save=101, backend="numpy", method="dop853")


def test_grey_is_where_the_estimate_says_so():
    """x' = 1 - x: of 1 - x = exp(-t) digits are lost at 1e-6, of its square at 1e-12; what is not grey is right by more than itself."""
    run = run_that_rests()
    for axes, (name, order) in zip(figure_of_solution(run, Choice(log="y")).axes, {"loss": 2, "gap": 1}.items(), strict=False):
        (bar,) = (patch for patch in axes.patches if isinstance(patch, Rectangle))
        top, values = bar.get_y() + bar.get_height(), run.observables[name]
        shown = np.abs(values) > top
        assert shown.sum() > 40 and (np.abs(values - np.exp(-order * run.t)) < np.abs(values))[shown].all()
        assert 1e-9**order < top < 1e-5**order
    assert pickle.loads(pickle.dumps(run)).observable_errors == {}


def test_grey_of_a_stored_run_is_that_of_the_run(tmp_path):
    """Also of one that was stored by an older odesim, without floors: there it ends at the tolerances."""
    run, path = run_that_rests(), tmp_path / "run.zarr"
    write_solution(run, path)

    def grey(run: Any) -> list[float]:
        """Where the grey of each panel ends."""
        bars = [patch for axes in figure_of_solution(run, Choice(log="y")).axes for patch in axes.patches if isinstance(patch, Rectangle)]
        return [bar.get_y() + bar.get_height() for bar in bars]

    assert grey(read_solution(path)) == grey(as_solution(odesim.open_run(path))) == grey(run)
    old = read_solution(path)
    del old.attrs["floors"]
    assert grey(old) == pytest.approx([1e-6 + 1e-9] * 2, rel=1e-6)  # rtol of 1, and atol


@pytest.mark.parametrize(("scale", "pale"), [(1.0, 10), (1e-9, 0)], ids=["some", "all"])
def test_colours_end_at_the_tolerance(scale, pale):
    """Components of 1 to 1e-10 beside a floor of 1e-9: what lies below is grey; if all lie below, none is, and a note says so."""
    values = scale * np.repeat(np.geomspace(1.0, 1e-10, 101)[None], 40, axis=0)
    figure = figure_of_solution(solution({"z": values}, dims={"z": ("l",)}, attrs=TOLERANCES), Choice(log="c"))
    (mesh,) = (c for c in figure.axes[0].collections if isinstance(c, QuadMesh))
    figure.draw_without_rendering()
    grey = np.equal(np.asarray(mesh.get_facecolor()), to_rgba(PALE)).all(axis=-1).reshape(101, -1)
    assert (NOTE in notes(figure), ALL_BELOW in notes(figure)) == (pale > 0, pale == 0)
    np.testing.assert_array_equal(grey[:, 0], (values[0] < 1e-9) & (pale > 0))
    assert grey[:, 0].sum() == pale


@pytest.mark.parametrize("least", [1e-280, 1e-300, 5e-324])
def test_a_logarithmic_axis_reaches_the_least_numbers(least):
    """Without a warning of matplotlib, which fails a test: a margin below the least value would be 0."""
    figure = figure_of_solution(solution({"y": np.geomspace(1.0, 1e-250, 40) * np.where(np.arange(40) < 39, 1.0, least / 1e-250)}))
    low, high = figure.axes[0].get_ylim()
    assert figure.axes[0].get_yscale() == "log" and 0 < low < 1 <= high


def test_logarithmic_scales_of_bundles_and_maps():
    """Of the named lines of a bundle values <= 0 are counted, a map's values <= 0 have no colour; what has no such scale is refused."""
    negative = solution({"z": grow(MAP + 1) - 0.3}, dims={"z": ("l",)})
    figure = figure_of_solution(negative, Choice(log="y"))
    assert figure.axes[0].get_yscale() == "log"
    lines = (np.asarray(line.get_ydata()) for line in figure.axes[0].lines)
    drawn = np.array([values for values in lines if len(values) == len(negative.t)])
    below = int(np.isnan(drawn).sum())
    alone = [int(name) for name in (text.get_text() for text in figure.axes[0].texts) if name.isdigit()]
    never = len(drawn) - len(alone)  # those that share a label end below 0, and were never above
    assert alone and below == (negative.y["z"][:, alone] <= 0).sum() + never * len(negative.t)
    assert notes(figure)[0] == f"$z_{{l}}$: {below} of {drawn.size} values ≤ 0, not shown (log)"
    figure = figure_of_solution(CASES["map"], Choice(log="c", var=("z",)))
    mesh: Any = next(c for c in figure.axes[0].collections if isinstance(c, QuadMesh))
    below = int((CASES["map"].y["z"] <= 0).sum())
    assert (mesh.get_array() < mesh.norm.vmin).sum() == below and f"{below} of 1600 values ≤ 0" in notes(figure)[0]
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
        (1 / (1 + np.exp(7 - 2 * np.linspace(0, 12, 50))), "linear"),  # a stage that ends: a sigmoid from 9e-4 to 1
        (np.exp(np.linspace(-12, 0, 50)), "log"),  # growth that goes on
        (np.exp(-np.linspace(0, 35, 50)), "log"),  # a loss over 15 decades
        (np.exp(-np.linspace(0, 200, 50)).clip(1e-30) - 1e-30, "log"),  # and one that ends at exactly 0
        (np.linspace(0, 1, 50) ** 9, "linear"),  # growth from exactly 0
    ],
)
def test_an_axis_is_logarithmic_where_values_decay(values, scale):
    """And where they grow to the end; not where a curve only comes near 0 now and then, or has been as large for half the time."""
    axes = Figure().subplots()
    set_value_scale(axes, np.ma.masked_invalid(values))
    assert axes.get_yscale() == scale


@pytest.mark.first(1)
@pytest.mark.parametrize("middle", [0.33714, 0.20007, 1234.5])
def test_small_changes_have_whole_numbers(middle: float) -> None:
    """A curve that moves by 5e-5 of its size has ticks to be read as they stand, without an offset to be added."""
    figure = figure_of_solution(solution({"S": middle * (1 + 5e-5 * grow())}))
    figure.canvas.draw()
    axis = figure.axes[0].yaxis
    assert axis.get_offset_text().get_text() == ""
    low, high = axis.get_view_interval()
    shown = [float(text.get_text().strip("$}").partition("{")[2]) for text in axis.get_ticklabels() if text.get_text()]
    assert len(shown) > 1 and all(low - (high - low) <= value <= high + (high - low) for value in shown)


@pytest.mark.first(2)
@pytest.mark.parametrize("size", [1e-3, 1.0, 2.3e-7, 4e6])
def test_powers_of_ten_stand_in_labels(size: float) -> None:
    """Nothing stands above a panel, and a tick times the power is its place; the page that one can zoom has ticks of its own."""
    figure = figure_of_solution(solution({"s": size * grow(), "b": -size * grow()}))
    figure.canvas.draw()
    for axes in figure.axes:
        axis: Any = axes.yaxis
        _, _, power = axes.get_ylabel().partition("10^{")
        unit = 10.0 ** int(power.partition("}")[0].replace("\N{MINUS SIGN}", "-")) if power else 1.0
        assert not axis.get_offset_text().get_visible() or not axis.get_offset_text().get_text()
        shown = [text.get_text().strip("$}").rpartition("{")[2] for text in axis.get_ticklabels()]
        numbers = [unit * float(text.replace("\N{MINUS SIGN}", "-")) for text in shown]
        np.testing.assert_allclose(numbers, axis.get_majorticklocs(), rtol=1e-9, atol=1e-9 * size)
        assert bool(power) == (size != 1.0) and r"\times" not in axes.get_ylabel()  # the unit of the ticks, as of times: not a factor
        assert without_power(axis) in ("$s$", "$b$")

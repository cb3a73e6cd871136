"""The picture of a Solution, whatever the shapes: every axis named, no word on another, nothing smaller than 6 points at 80 mm."""

import ast
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.cbook import is_math_text
from matplotlib.collections import QuadMesh
from matplotlib.colors import to_rgb
from matplotlib.text import Text

import odesim
from odesim.plot.choice import Choice
from odesim.plot.labels import not_shown, spread_positions, symbol
from odesim.plot.layout import cells_in_rows
from odesim.plot.panels import CHOSEN, FAINT
from odesim.plot.quantities import MAP, ROWS
from odesim.plot.solution import PANELS, figure_of_solution
from odesim.plot.strips import BESIDE, telling_rows
from odesim.plot.style import PAGE, SMALL, WIDTH
from tests.support.matrix import slow_but
from tests.support.pictures import CASES, T, grow, solution
from tests.support.texts import clashes, drawn_texts, has_filled_rows, notes

TALL, LEAST = 1.4, 11.0  # height of a page, in its widths; mm: of curves, some four lines of type


@pytest.mark.first(4)
@pytest.mark.parametrize("name", slow_but(CASES, [*CASES][::2]))
def test_legible(name: str) -> None:
    """Each axis has a name, no two words overlap or leave the page, type is 6 points or more, panels fill their rows.

    Printed 80 mm wide, curves are 11 mm high or more, and the page is little higher than wide.
    """
    case = CASES[name]
    figure = figure_of_solution(case)
    width = figure.get_figwidth() * 25.4
    assert any(width == pytest.approx(WIDTH * parts) for parts in (1, PAGE / WIDTH))
    assert figure.get_figheight() <= TALL * figure.get_figwidth()
    texts = drawn_texts(figure)
    panels = [axes for axes in figure.axes if axes.lines and axes.get_aspect() == "auto"]
    assert all(axes.get_window_extent().height >= LEAST / WIDTH * figure.bbox.width for axes in panels)
    assert clashes(figure, texts) == []
    assert min(float(text.get_fontsize()) for text in figure.findobj(Text)) >= SMALL
    named = [axes.get_xlabel() for axes in figure.axes if axes.get_xlabel() and not str(axes.get_label()).startswith("<colorbar")]
    indices = {", ".join(map(symbol, dims[1:])) for dims in case.dims.values()} - {""}  # under the last values of matrices
    assert any("SGD" in label for label in named) and all("SGD" in label or label in indices for label in named)
    assert all(axes.get_ylabel() or str(axes.get_label()).startswith("<colorbar") for axes in figure.axes)
    assert has_filled_rows(figure)
    if name == "a formula's signs":
        assert not any(is_math_text(text) for text in [figure.get_suptitle(), *(axes.get_ylabel() for axes in figure.axes)])
    # a panel, or a line under the title, for every quantity
    words = " ".join(text for text, _ in texts).replace("\n", "").replace("\\", "")
    shown = [*case.y, *case.observables]
    assert all(any(said.replace("\\", "") in words for said in (one, symbol(one).strip("$"), *symbols(case, one))) for one in shown)


def symbols(case: Any, name: str) -> list[str]:
    """A quantity's label, with its indices."""
    return [symbol(name, case.dims.get(name, ()))]


def test_what_happens_early_has_a_logarithmic_time() -> None:
    """y' = -k (y - 1) makes 1 - exp(-0.03 k) of its way in the first 3 % of a span of 1: more than half where k > 23.

    Not beside what happens late, not where an exponential decays to 0, which is even on its own scale, and not where it was refused.
    """
    t = np.linspace(0, 1, 200)
    y = {k: 1 - np.exp(-k * t) for k in (1, 15, 40)}
    cases: dict[tuple[int, ...], str] = {(40,): "log", (15,): "linear", (40, 1): "linear", (40, 15, 40): "log"}
    for rates, scale in cases.items():
        case = solution({f"x{n}": y[k] for n, k in enumerate(rates)}, t=t)
        assert figure_of_solution(case).axes[0].get_xscale() == scale, rates
        assert figure_of_solution(case, Choice(log="none")).axes[0].get_xscale() == "linear"
    assert figure_of_solution(solution({"x": np.exp(-20 * t)}, t=t)).axes[0].get_xscale() == "linear"


@pytest.mark.slow
def test_kinds() -> None:
    """The number of components decides between lines, a map and a bundle; many scalars beyond the panels are named."""
    assert len(figure_of_solution(CASES["vector"]).axes[0].lines) == 8  # a line and its name's tick for each
    assert len(figure_of_solution(CASES["map"]).axes[1].collections) == 1
    assert len(figure_of_solution(CASES["bundle"]).axes[1].collections) == 1
    assert notes(figure_of_solution(CASES["more than fit"])) == not_shown([f"x{n}" for n in range(5, 14)])
    assert notes(figure_of_solution(CASES["not finite"])) == ["stopped at t = 20: blow_up"]


def test_rows_of_panels() -> None:
    """Panels stand in rows of two or three, as few as hold them, with edges in line, and of one size where a row has fewer."""
    for n in range(1, 13):
        for columns in (2, 3):
            cells = cells_in_rows(n, columns)
            rows = -(-n // columns)
            taken = [(row, place) for row, span in cells for place in range(columns)[span]]
            assert len(cells) == n and len(set(taken)) == len(taken) and {row for row, _ in cells} == set(range(rows))
            widths = {len(range(columns)[span]) for _, span in cells}
            assert len(taken) == rows * columns if n % rows == 0 or columns == 2 else widths == {1}


def test_a_page_has_six_panels() -> None:
    """The loss is first, the states next, and the rest is named; all draws everything, and a strip counts as a panel."""
    shown, every = (figure_of_solution(CASES["more than fit"], Choice(all=chosen)).axes for chosen in (False, True))
    assert (len(shown), len(every)) == (PANELS, 15) and shown[0].get_ylabel() == every[0].get_ylabel() == "loss"
    y = {"V": grow(5, 4), "W": grow(6, 3), "U": grow(4, 4)}
    dims = {name: ("l", "k") for name in y}
    figure = figure_of_solution(solution(y, observables={"S": grow(), "my_loss": grow()}, dims=dims))
    panels = [axes for axes in figure.axes if not str(axes.get_label()).startswith("<colorbar")]
    assert len(panels) == PANELS and [axes.get_ylabel() for axes in panels[:2]] == ["my_loss", "$S$"]
    assert notes(figure) == [f"not shown: $U$; {BESIDE}"]


@pytest.mark.parametrize(("view", "shape", "beside"), [("Points", (6,), 1), ("Matrix", (6, 5), 2), ("Lines", (6, 5), 0)])
def test_views_are_the_page(view: str, shape: tuple[int, ...], beside: int) -> None:
    """What has a view is drawn, that way, and nothing else: a strip beside it, and of a matrix its norm below it."""
    case = solution({"x": grow(*shape), "y": grow()}, observables={"gain": grow()}, dims={"x": ("i", "a")[: len(shape)]})
    case.attrs = case.attrs | {"views": {"x": view}}
    figure = figure_of_solution(case)
    panels = [axes for axes in figure.axes if not str(axes.get_label()).startswith("<colorbar")]
    assert len(panels) == 1 + beside and notes(figure) == ["not shown: gain, $y$" + f"; {BESIDE}" * bool(beside)]


def test_entropies_stand_beside_views() -> None:
    """Losses and entropies that a System forgot to name are on the page while it, or the row above its strips, has room."""
    y = {"W": grow(6, 5), "V": grow(6, 5), "s": grow()}
    case = solution(y, observables={"entropy": grow(2), "loss": grow()}, dims={"W": ("i", "j"), "V": ("i", "j"), "entropy": ("n",)})
    case.attrs = case.attrs | {"views": {"W": "Matrix", "V": "Matrix", "s": "Lines"}}
    figure = figure_of_solution(case)
    shown = [axes.get_ylabel() for axes in figure.axes[:3]]
    assert shown == ["loss", r"$\mathrm{entropy}_{n}$", "$s$"]


@pytest.mark.parametrize("view", ["Lines", "Points"])
def test_requested_sensitivities_come_after_the_views(view: str) -> None:
    """As many as six panels hold, a strip counted; what was not requested has no panel. Without views nothing changes."""
    names = [f"dx{k}_da" for k in range(6)]
    attrs = {"views": {"x": view}, "sensitivities": {"a": {f"x{k}": name for k, name in enumerate(names)}}}
    case = solution({"y": grow(), "x": grow(7)} | {name: grow() for name in names}, dims={"x": ("i",)}, attrs=attrs)
    figure = figure_of_solution(case)
    strip = view == "Points"
    panels = [axes for axes in figure.axes if not str(axes.get_label()).startswith("<colorbar")]
    of_strip = [BESIDE] * strip
    assert len(panels) == PANELS and notes(figure) == ["; ".join([*not_shown(["y", *names[5 - strip :]]), *of_strip])]
    labels = [axes.get_ylabel() for axes in panels if axes.get_ylabel()]
    shown = [symbol(name) for name in names[: 5 - strip]]
    x = symbol("x", ("i",))
    assert labels == ([*shown, x, x] if strip else [x, *shown])  # a strip is in the last row
    case.attrs["sensitivities"]["a"] = {f"x{k}": name for k, name in enumerate(names[:5])} | {"x": names[5]}
    assert notes(figure_of_solution(case)) == ["; ".join([*not_shown(["y", *names[4 - strip : 5]]), *of_strip])]
    case.attrs = {**case.attrs, "views": {}}
    plain = figure_of_solution(case)
    case.attrs = {**case.attrs, "sensitivities": {}}
    assert notes(plain) == notes(figure_of_solution(case))


def test_a_model_file_has_its_first_line_below_the_title(tmp_path: Path) -> None:
    """As a shipped model has that of its file: the docstring of the template that `odesim new` writes."""
    file = tmp_path / "mine.py"
    file.write_text((Path(__file__).parents[2] / "docs" / "my_model.py").read_text())
    run = odesim.integrate(file, sizes={"M": 4}, save=5)
    wanted = (ast.get_docstring(ast.parse(file.read_text())) or "").partition("\n")[0].rstrip(".")
    assert wanted.partition(":")[0] in " ".join(text for text, _ in drawn_texts(figure_of_solution(run)))


def test_points_stand_on_their_circle() -> None:
    """Angles are points at (cos, sin) of the telling times, two circles beside each other and two below, each above its time."""
    case = solution({"x": grow(6)}, dims={"x": ("i",)}, attrs={"views": {"x": "Points"}})
    figure = figure_of_solution(case)
    axes = figure.axes[1]
    times = axes.texts
    rows = [int(np.argmin(np.abs(T - float(label.get_text().rpartition("=")[2])))) for label in times]
    centers = np.array([[0, 0], [2.5, 0], [0, -3], [2.5, -3]])
    np.testing.assert_allclose([label.get_position() for label in times], centers - [0, 1.1], rtol=1e-12)  # rounding
    colors = [line.get_color() for line in axes.lines if line.get_marker() == "o"]
    assert colors[:6] == [line.get_color() for line in figure.axes[0].lines[:6]]  # a point has the colour of its line
    dots = np.array([np.asarray(line.get_xydata())[0] for line in axes.lines if line.get_marker() == "o"]).reshape(len(rows), 6, 2)
    assert len(rows) == 4
    for row, center, found in zip(rows, centers, dots, strict=True):
        angle = case.y["x"][row]
        np.testing.assert_allclose(found, center + np.stack([np.cos(angle), np.sin(angle)], axis=1), rtol=0, atol=1e-12)  # rounding


@pytest.mark.parametrize(("dims", "circles"), [(("i",), 4), (("i", "a"), 0)])
def test_only_angles_and_unit_vectors_have_a_circle(dims: tuple[str, ...], circles: int) -> None:
    """One around the points of each time; points of the plane have none."""
    case = solution({"x": grow(*(6, 2)[: len(dims)])}, dims={"x": dims}, attrs={"views": {"x": "Points"}})
    assert sum(np.size(line.get_xdata()) == 200 for line in figure_of_solution(case).axes[1].lines) == circles


def test_updates_have_whole_numbers() -> None:
    """The time axis of a few updates has no tick between two of them, as one of ten seconds has, at 2.5."""
    for times, whole in ((np.arange(11.0), True), (np.linspace(0, 10, 40), False)):
        figure = figure_of_solution(solution({f"x{i}": grow(t=times) for i in range(4)}, times))
        figure.draw_without_rendering()
        assert all(float(tick).is_integer() for tick in figure.axes[-1].get_xticks()) is whole


def test_telling_rows_cut_the_way_into_equal_parts() -> None:
    """Of a fast change from 0 to 1 at t = 10: the start, a third and two thirds of it on the way, the end."""
    values = 1 / (1 + np.exp(-5 * (T - 10)))
    rows = telling_rows(np.ma.masked_invalid(values[:, None] * np.ones(30)))
    assert rows[0] == 0 and rows[-1] == len(T) - 1
    assert [int(np.argmin(np.abs(values - part))) for part in (1 / 3, 2 / 3)] == rows[1:-1].tolist()


def test_map_holds_the_values() -> None:
    """A map's colours are the components, row by index, column by saved time."""
    mesh: Any = figure_of_solution(CASES["map"]).axes[1].collections[0]
    np.testing.assert_array_equal(np.asarray(mesh.get_array()), grow(40).T)


def test_map_loses_no_winner() -> None:
    """With more components than rows each one that stands out of its neighbours is still seen, of either sign; nan stays empty."""
    for i in (3, 4, 5):
        values = 1e-3 * np.ones((40, MAP))
        values[:, i], values[:, -1 - i], values[:, 5] = 2.0, -2.0, np.nan
        mesh: Any = figure_of_solution(solution({"z": values}, dims={"z": ("l",)})).axes[0].collections[0]
        cells = np.ma.masked_invalid(mesh.get_array())
        assert (cells.max(), cells.min(), cells.shape[0] <= ROWS) == (2.0 if i != 5 else 1e-3, -2.0, True)


def test_a_bundle_has_the_extremes() -> None:
    """Of very many components evenly spread ones are drawn, and those with the largest and the smallest value at any time."""
    values = grow(MAP + 1)
    values[10, 7], values[20, 11] = 9.0, -9.0
    axes = figure_of_solution(solution({"z": values}, dims={"z": ("l",)})).axes[0]
    bundle: Any = axes.collections[0]
    heights = np.array([segment[:, 1] for segment in bundle.get_segments()])
    assert (heights.max(), heights.min()) == (9.0, -9.0) and len(heights) <= FAINT + CHOSEN + 2
    assert axes.get_title(loc="right") == f"{len(heights)} of 2\u202f001 components"


def test_a_bundle_names_what_ends_far_apart() -> None:
    """Three groups by where they end: one of each is named, the largest first found; what meets at the end has the name of the largest."""
    ends = np.repeat([1.0, 0.5, -0.8], 10) + 1e-4 * np.arange(30)
    paths = np.linspace(0, 1, 5)[:, None] * ends
    axes = figure_of_solution(solution({"V": paths.reshape(5, 3, 5, 2)}, T[:5], dims={"V": ("l", "k", "s")})).axes[0]
    names = [text.get_text() for text in axes.texts]
    assert sorted(int(name[0]) for name in names) == [0, 1, 2] and "0,4,1" in names
    for heights, name in ((ends, "0,4,1"), (-ends, "0,4,1"), (1 + 1e-3 * ends, "all")):
        met = np.array([1.0, 0.1, 0.0])[:, None, None, None] * heights.reshape(3, 5, 2)
        axes = figure_of_solution(solution({"V": met}, T[:3], dims={"V": ("l", "k", "s")})).axes[0]
        assert [text.get_text() for text in axes.texts] == [name]


def test_a_bundle_on_a_logarithmic_axis_names_decades() -> None:
    """Of sixty components that fall to 1 ... 1e-6 the largest, the smallest and some between are named, not one for all."""
    paths = 10.0 ** (-T[:, None] / T[-1] * np.linspace(0, 6, 60))
    axes = figure_of_solution(solution({"D": paths}, dims={"D": ("i",)}, attrs={"views": {"D": "Log"}})).axes[0]
    names = [text.get_text() for text in axes.texts]
    assert axes.get_yscale() == "log" and {"0", "59"} < set(names) and len(names) >= 4


def test_of_a_matrix_norm_and_singular_values_are_drawn() -> None:
    """3 t and 2 t of a matrix t A with these singular values, in directions of their own, and t sqrt(13); nothing of those that are 0."""
    u, v = (np.linalg.qr(np.random.default_rng(k).normal(size=(n, n)))[0] for k, n in ((0, 6), (1, 5)))
    matrix = 3 * np.outer(u[0], v[0]) + 2 * np.outer(u[1], v[1])
    lines, axes, *_ = figure_of_solution(solution({"V": T[:, None, None] * matrix}, T, dims={"V": ("l", "k")})).axes
    assert lines.get_title(loc="right") == "30 components" and lines.get_position().y0 > axes.get_position().y1
    curves = [np.asarray(line.get_ydata()) for line in axes.lines if len(np.asarray(line.get_xdata())) == len(T)]
    np.testing.assert_allclose(np.stack(curves), np.outer([np.sqrt(13), 3, 2], T), rtol=1e-12, atol=1e-12)
    assert [text.get_text() for text in axes.texts] == [r"$\sigma_{2}$", r"$\sigma_{1}$", "norm"]


def test_a_strip_holds_the_matrix_at_its_times() -> None:
    """Beside its lines a matrix stands as it is at four times, the last one the last at which it is finite, with one colour bar."""
    for last in (0.0, np.inf):
        values = grow(8, 5)
        values[-1, 0, 0] += last
        figure = figure_of_solution(solution({"V": values}, dims={"V": ("l", "k")}))
        axes, bar = figure.axes[2:]
        mesh: Any = axes.collections[0]
        rows = telling_rows(np.ma.masked_invalid(values.reshape(len(T), -1)))
        assert (len(rows), rows[-1]) == (4, len(T) - 1 if last == 0 else len(T) - 2)
        cells = np.ma.masked_invalid(mesh.get_array())
        for k, row in enumerate(rows):
            np.testing.assert_array_equal(cells[:, 6 * k : 6 * k + 5], values[row])  # a column between two maps is empty
        assert [label.get_text() for label in axes.get_xticklabels()] == ["$t$ = 0", *(f"{T[row]:.3g}" for row in rows[1:])]
        assert (axes.get_xlabel(), axes.get_ylabel(), bar.get_xlabel()) == ("$k$", "$l$", "$V$")


@pytest.mark.parametrize("matrices", [1, 2])
def test_curves_beside_maps_have_a_height(matrices: int) -> None:
    """Lines and singular values beside maps are as high as other curves: colour bars at their right take no room from them."""
    y = {"W": grow(6, 5), "V": grow(5, 6)}
    case = solution(dict([*y.items()][:matrices]), observables={"loss": grow()}, dims={"W": ("i", "j"), "V": ("j", "i")})
    figure = figure_of_solution(case)
    figure.draw_without_rendering()
    curves = [axes for axes in figure.axes if axes.lines and axes.get_ylabel()]
    assert len(curves) == 1 + 2 * matrices and figure.get_figheight() <= TALL * figure.get_figwidth()
    assert all(axes.get_window_extent().height >= LEAST / WIDTH * figure.bbox.width for axes in curves)


def test_leaders_are_no_curves() -> None:
    """Between a curve and its name: thin, grey, outside the axes."""
    axes = figure_of_solution(CASES["vector"]).axes[0]
    leaders = [line for line in axes.lines if line.get_transform() == axes.transAxes]
    assert len(leaders) == 4
    for line in leaders:
        assert np.min(line.get_xdata()) > 1 and line.get_linewidth() < 0.5 and np.ptp(to_rgb(line.get_color())) == 0


def test_small_panels_say_what_they_leave_out() -> None:
    """Curves that end together have one name; a constant observable is a line of type, no panel."""
    y = {"v": grow(4)}
    figure = figure_of_solution(
        solution(
            y, observables={"gap": grow(4) * np.exp(-T)[:, None], "P": np.ones((40, 4)) / 4}, dims=dict.fromkeys(("v", "gap", "P"), ("m",))
        )
    )
    assert len(figure.axes) == 2
    assert [text.get_text() for text in figure.axes[0].texts] == ["0 … 3"]  # of gap, which comes first
    assert notes(figure) == ["constant: $P_{m}$ = 0.25, 0.25, 0.25, 0.25"]


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


@pytest.mark.first(2)
@pytest.mark.parametrize("name", ["map", "map of a matrix", "matrices and vectors"])
def test_images(name: str) -> None:
    """Component or row 0 is on top, and every colour bar says what it is of."""
    figure = figure_of_solution(CASES[name])
    images = [axes for axes in figure.axes if any(isinstance(shown, QuadMesh) for shown in axes.collections)]
    bars = [axes for axes in figure.axes if str(axes.get_label()).startswith("<colorbar")]
    assert all(axes.yaxis_inverted() for axes in images if axes not in bars)
    assert bars and all(axes.get_xlabel() for axes in bars)

"""Names as symbols: what the model's LaTeX shows, words as they stand."""

import re
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import sympy as sp
from matplotlib.lines import Line2D
from matplotlib.mathtext import MathTextParser

from odesim.inputs.registry import load_model
from odesim.plot.header import make_legend
from odesim.plot.labels import ALIKE, alike, axis_names, end_labels, joined, place_labels, symbol
from odesim.plot.style import SMALL, few_log_ticks, few_ticks, new_figure, project_style
from tests.support.models import CHEAPEST_FIRST


def bare(text: str) -> str:
    """A formula without what does not change it: dollar signs, spaces, braces, upright type."""
    return re.sub(r"\\mathrm|[${}\s]", "", text)


@pytest.mark.first(9)
@pytest.mark.parametrize("model", CHEAPEST_FIRST)
def test_a_symbol_is_that_of_the_models_latex(model):
    """States and parameters of every model: the same symbol as sympy prints, with and without indices, or the name as it stands."""
    system = load_model(model)
    names = [*map(str, system.states), *(p.name for p in system.params)]
    for name in names:
        shown = symbol(name)
        assert bare(shown) == bare(sp.latex(sp.Symbol(name))) if shown.startswith("$") else shown == name
        assert shown.startswith("$") or len(name) > 1
        if shown.startswith("$"):
            assert bare(symbol(name, ("l", "k"))).startswith(bare(shown))


@pytest.mark.first(2)
@pytest.mark.parametrize("last", [1.0, 9.7, 10.0, 10000.0, 0.00025])
@pytest.mark.parametrize("width", [14.0, 20.0, 40.0])
def test_labels_of_ticks_do_not_touch(width, last):
    """A narrow panel keeps at least one tick, a wide one all that it had."""
    with project_style():
        figure = new_figure(20.0, width=width)
        axes = figure.add_subplot()
        axes.set_xlim(0, last)
        few_ticks(axes)
        before = [label.get_text() for label in axes.get_xticklabels()]
        place_labels(figure, [])
        boxes = [label.get_window_extent() for label in axes.get_xticklabels()]
    assert boxes and all(left.x1 + 2 < right.x0 for left, right in pairwise(boxes))
    assert width < 40 or before == [label.get_text() for label in axes.get_xticklabels()]


@pytest.mark.parametrize("width", [14.0, 20.0, 40.0])
@pytest.mark.parametrize("ends", [(3e-3, 20.0), (1e-12, 1.0), (2.0, 90.0), (1e6, 7e7)])
def test_labels_of_powers_do_not_touch(width, ends):
    """As those of a linear axis."""
    with project_style():
        figure = new_figure(20.0, width=width)
        axes = figure.add_subplot()
        axes.set(xscale="log", xlim=ends)
        few_log_ticks(axes)
        before = len(axes.get_xticks())
        place_labels(figure, [])
        boxes = [label.get_window_extent() for label in axes.get_xticklabels()]
    assert boxes and all(left.x1 < right.x0 for left, right in pairwise(boxes)) and len(boxes) <= before


@pytest.mark.parametrize("height", [9.0, 13.0, 20.0, 40.0])
def test_labels_of_ticks_upwards_do_not_touch(height):
    """A low panel has fewer, a high one all that it had."""
    with project_style():
        figure = new_figure(height)
        axes = figure.add_subplot()
        axes.set_ylim(-0.5, 0.5)
        few_ticks(axes)
        before = len(axes.get_yticklabels())
        place_labels(figure, [])
        boxes = [label.get_window_extent() for label in axes.get_yticklabels()]
    assert boxes and all(low.y1 < high.y0 + 0.11 * low.height for low, high in pairwise(boxes))
    assert height < 40 or len(boxes) == before


@pytest.mark.first(2)
@pytest.mark.parametrize(("last", "begins"), [(None, 1.0), (6.0, 0.6), (10.0, 1.0)])
def test_leaders_begin_where_the_curves_end(last, begins):
    """At the right edge (their gap to it is half a millimetre), or at an earlier end."""
    with project_style():
        figure = new_figure(30.0)
        axes = figure.add_subplot()
        axes.set(xlim=(0, 10), ylim=(0, 1))
        labels = end_labels(axes, ["a", "b"], [0.2, 0.8], last)
        place_labels(figure, [labels])
    for tick, end in zip(labels.ticks, (0.2, 0.8), strict=True):
        assert np.asarray(tick.get_xydata())[0] == pytest.approx([begins, end], abs=0.02)


@pytest.mark.parametrize(
    ("heights", "labels"),
    [
        ([0.1, 0.2, 0.3], ["0", "1", "2"]),
        ([0.2, 0.1, 0.2], ["1", "0, 2"]),
        ([0.2] * 8, ["0 … 7"]),
        ([0.5, 0.1, 0.5, 0.5], ["1", "0, 2, +1"]),
        ([0.0, ALIKE, 2 * ALIKE, 1.0], ["0, 1", "2", "3"]),
    ],
)
def test_curves_that_end_alike_have_one_label(heights, labels):
    """Ends closer than a line's width are one; a group is never higher than that."""
    assert [joined([str(k) for k in group]) for group in alike(heights)] == labels


@pytest.mark.parametrize(
    ("names", "label"),
    [
        (["0,1", "2,3"], "0,1; 2,3"),
        (["1,0", "1,1", "1,2"], "1,0 … 1,2"),
        (["0,2", "1,0", "1,1"], "0,2; +2"),
        (["3", "7"], "3, 7"),
    ],
)
def test_indices_of_a_group_are_one_text(names, label):
    """A row of a matrix is a range as a vector is; indices with commas are told apart."""
    assert joined(names) == label


@pytest.mark.first(3)
@pytest.mark.parametrize("ends", ["even", "together", "two spots", "random", "shuffled"])
@pytest.mark.parametrize("height", [19.0, 26.0, 46.0])
def test_labels_of_twenty_lines_stand_near_their_ends(ends, height):
    """Each line is in one label; no two labels touch, none is farther from the ends of its lines than the rule says, none is cut off."""
    random = np.random.default_rng(7)
    places = {
        "even": np.linspace(0, 1, 20),
        "together": 0.5 + 0.005 * np.linspace(-1, 1, 20),
        "two spots": np.repeat([0.2, 0.21], 10) + 0.01 * random.random(20),
        "random": random.random(20),
        "shuffled": random.permutation(np.linspace(0, 1, 20)),
    }[ends]
    with project_style():
        figure = new_figure(height + 7)
        axes = figure.add_subplot()
        axes.set(xlim=(0, 1), ylim=(0, 1))
        place_labels(figure, [end_labels(axes, [str(k) for k in range(20)], places.tolist())])
        texts = [text for text in axes.texts if text.get_visible()]
        boxes = sorted((text.get_window_extent() for text in texts), key=lambda box: box.y0)
        type_height = SMALL / 72 * figure.dpi / axes.get_window_extent().height
    assert all(low.y0 + SMALL / 72 * figure.dpi <= high.y0 + 1 for low, high in pairwise(boxes))  # a pixel of 400 to the inch
    assert max(box.x1 for box in boxes) <= figure.bbox.width
    leaders = [np.asarray(line.get_ydata(), float) for line in axes.lines]
    assert sorted(y[-2] for y in leaders) == pytest.approx(sorted(places)) and len({y[-1] for y in leaders}) == len(texts)
    for place in {y[-1] for y in leaders}:
        group = [y[-2] for y in leaders if y[-1] == place]
        assert min(group) - 1.1 * type_height <= place <= max(group) + 1.1 * type_height
    assert ends != "together" or [text.get_text() for text in texts] == ["0 … 19"]


@pytest.mark.parametrize(
    ("name", "index", "label"),
    [
        ("mu", ("m",), r"$\mu_{m}$"),
        ("V", ("l", "k"), "$V_{l,k}$"),
        ("eta_Y", ("m",), r"$\eta_{{Y},m}$"),
        ("lambda_", (), r"$\lambda$"),
        ("chi_bound", (), r"$\chi_{\mathrm{bound}}$"),
        ("dv_dmu", (), r"$\partial v/\partial \mu$"),
        ("dS_d_deta_Y", (), r"$\partial S_{d}/\partial \eta_{Y}$"),
        ("dv_dmu", ("l", "mu_0"), r"$\partial v_{l}/\partial \mu$"),
        ("dv_dmu", ("1", "0"), r"$\partial v/\partial \mu$[1, 0]"),
        ("dentropy_dmu", ("mu_0",), r"$\partial \mathrm{entropy}/\partial \mu$"),
        ("dS_d_dv_start", ("n", "v_start_0"), r"$\partial S_{{d},n}/\partial v(0)$"),
        ("distinct_data", (), "distinct_data"),
        ("V", ("token", "node"), "$V$[token, node]"),
        ("zc", ("g",), r"$\mathrm{zc}_{g}$"),
        ("gap", ("l",), r"$\mathrm{gap}_{l}$"),
        ("half_way", ("3", "l"), r"$\mathrm{half\_way}_{3,l}$"),
        ("w", ("0",), "$w_{0}$"),
        ("loss", (), "loss"),
        ("entropy_distinct", ("n",), "entropy_\n" + r"$\mathrm{distinct}_{n}$"),
        ("gap", ("token",), "gap[token]"),
        ("stable_rank_of_the_velocity", (), "stable_rank_\nof_the_\nvelocity"),
        ("$x$", (), r"\$x\$"),
        ("nu", ("$k$",), r"$\nu$[\$k\$]"),
    ],
)
def test_labels(name, index, label):
    """Indices below, derivatives as fractions, words as words; a stranger's dollar signs start no formula; all of it can be drawn."""
    assert symbol(name, index) == label
    MathTextParser("path").parse(label)


@pytest.mark.parametrize(
    ("name", "dims", "label"),
    [
        ("V", ("l", "k"), "$l$, $k$"),
        ("dv_dmu", ("l",), "$l$"),
        ("dv_dmu", ("mu_0",), r"entry of $\mu$"),
        ("dv_dA", ("A_0", "A_1"), "entry of $A$"),
        ("dS_d_dv_start", ("n", "v_start_0"), "$n$, entry of $v$(0)"),
        ("mu", ("mu_0",), r"$\mu_{\mathrm{0}}$"),
    ],
)
def test_axes_of_a_derivative_are_entries_of_its_parameter(name, dims, label):
    """An axis called mu_0 would be read as that entry of mu."""
    assert axis_names(name, dims) == label


@pytest.mark.parametrize("name", ["loss", "stable_rank_V"])
def test_a_label_is_no_longer_than_its_panel(name):
    """A name of 13 letters beside a panel of the lowest height is drawn smaller; one that fits keeps its size."""
    with project_style():
        figure = new_figure(21.0)
        axes = figure.add_subplot()
        axes.set_ylabel(symbol(name))
        label: Any = axes.yaxis.label
        before = label.get_fontsize()
        place_labels(figure, ())
        assert label.get_window_extent().height <= 1.01 * axes.get_window_extent().height
        assert (label.get_fontsize() < before) == (name != "loss")


@pytest.mark.parametrize("letters", [20, 60, 200])
def test_a_long_entry_of_a_legend_is_whole(letters):
    """It is in the picture, with all of its letters, in as many lines as it needs."""
    with project_style():
        figure = new_figure(30.0)
        name = "e" * letters
        legend = make_legend(figure, [Line2D([], [], marker="o", label=f"{name}: t = 1")])
        box = legend.get_window_extent()
    assert box.x0 >= 0 and box.x1 <= figure.bbox.width and "".join(legend.get_texts()[0].get_text().split()) == f"{name}:t=1"

"""The picture of a comparison: theory dashed, the training a mean with the range of seeds, every axis named, nothing on top of another."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.text import Text
from scipy.stats import ttest_1samp

from odesim.lab.compare.comparison import Comparison
from odesim.plot.comparison import ALIKE, COMPONENTS, ROWS, SAME, THEORY, component_indices, figure_of_comparison, short_label
from odesim.plot.style import INK, SMALL, WIDTH
from tests.support.texts import clashes, drawn_texts, has_filled_rows, notes

T = np.linspace(0.0, 20.0, 30)


def curve(*shape: int) -> Any:
    """(1, T, *shape): saturating curves of different heights."""
    heights = np.linspace(0.2, 1.0, int(np.prod(shape))).reshape(shape)
    return ((1 - np.exp(-0.2 * T)).reshape(-1, *[1] * len(shape)) * heights)[None]


def comparison(theory: dict[str, Any], seeds: int = 5, map: str = "the flow", noise: float = 0.05) -> Comparison:
    """Seeds that lie around theory."""
    rng = np.random.default_rng(0)
    training = {name: v + noise * rng.normal(size=(seeds, *v.shape[1:])) for name, v in theory.items()}
    dims = {name: ("n", "l")[: v.ndim - 2] for name, v in theory.items()}
    said = {"theory": "some.system", "training": "a_task (model), seeds, sgd", "map": map, "clock": "", "unit": "SGD steps"}
    return Comparison(T, theory, training, dims, said, tuple(range(seeds)))


CASES = {
    "one number": comparison({"loss": 1.2 - curve()}),
    "one seed": comparison({"loss": 1.2 - curve(), "c": curve(2, 30)}, seeds=1),
    "two runs": replace(comparison({"v": curve(3)}, seeds=1, map=""), sides=("the first", "the second")),
    "arrays": comparison({"loss": 1.2 - curve(), "c": curve(2, 30), "entropy": curve(2), "Z": -curve(2, 30), "S": curve()}),
    "not finite": comparison({"v": np.where(T[:, None] > 15, np.nan, curve(3))}),
    "more than fit": comparison({f"x{i}": curve() for i in range(9)}),
    "the same": comparison({"v": curve(3), "w": np.ones((1, 30))}, noise=0.0),
}


@pytest.mark.first(1)
@pytest.mark.parametrize("name", CASES)
def test_legible(name):
    """Wider than high, a name each panel, a clock each lowest; no word lies on another or leaves the page, none is below 6 points."""
    figure = figure_of_comparison(CASES[name])
    assert figure.get_figwidth() * 25.4 == pytest.approx(WIDTH * (1.5 if len(CASES[name].theory) > 1 else 1))
    assert figure.get_figheight() < figure.get_figwidth()
    texts = drawn_texts(figure)
    assert clashes(figure, texts) == []
    assert min(float(text.get_fontsize()) for text in figure.findobj(Text)) >= SMALL
    assert all(axes.get_ylabel() for axes in figure.axes) and any("SGD" in axes.get_xlabel() for axes in figure.axes)
    assert has_filled_rows(figure)
    said, rows = notes(figure), min(len(CASES[name].theory), ROWS)
    assert figure.get_suptitle() == "some.system beside a_task (model)" and len(figure.axes) == 2 * rows <= 6
    two = name == "two runs"
    assert ("Δ = second − first" if two else "theory: the flow; Δ = training − theory") in said
    assert ("not shown: x3, x4, x5, x6, x7, x8" in said) is (name == "more than fit")


@pytest.mark.parametrize(
    ("phrase", "said"),
    [
        ("scan_snap.full", "scan_snap.full"),
        ("scan_snap.full (a.zarr)", "scan_snap.full (a.zarr)"),
        ("toy (net), 5 seeds, sgd, 10 iterations", "toy (net)"),
        ("toy (net), 1 seed, sgd with momentum 0.9, 10 iterations (b.zarr)", "toy (net) (b.zarr)"),
    ],
)
def test_the_title_is_short(phrase, said):
    """What is compared and where it is stored; what else is known of it stands in the table."""
    assert short_label(phrase) == said


def labels(figure: Figure) -> list[str]:
    """The entries of the legend."""
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_a_mean_of_theories_is_called_so():
    """Where each seed has a theory of its own, the line is their mean; one seed has no range."""
    case = comparison({"v": curve(3)})
    each = replace(case, theory={"v": np.repeat(case.theory["v"], 5, axis=0)})
    assert labels(figure_of_comparison(case))[:4] == ["theory", "training, mean of 5 seeds", "range of seeds", "Δ within ±2"]
    assert labels(figure_of_comparison(each))[0] == "theory, mean over seeds"
    assert labels(figure_of_comparison(CASES["one seed"])) == ["theory", "training"]
    assert labels(figure_of_comparison(CASES["two runs"])) == ["the first", "the second"]


@pytest.mark.parametrize("name", ["one number", "arrays", "two runs"])
def test_theory_has_one_style(name):
    """In every panel the dashed dark lines are theory, as many as training has coloured ones, and of one number have its values."""
    case = CASES[name]
    panels = figure_of_comparison(case).axes[::2]
    for axes in panels:
        dark = [line for line in axes.lines if to_hex(line.get_color()) == INK]
        assert {(line.get_linewidth(), line.is_dashed()) for line in dark} == {(THEORY["lw"], True)}
        assert len(dark) == len([line for line in axes.lines if line.get_transform() == axes.transData]) / 2
    if name == "one number":
        (line,) = [line for line in panels[0].lines if to_hex(line.get_color()) == INK]
        np.testing.assert_array_equal(np.asarray(line.get_ydata()), case.theory["loss"][0])


def test_the_band_is_the_range_of_seeds():
    """It ends at the least and the largest seed."""
    case = CASES["one number"]
    axes = figure_of_comparison(case).axes[0]
    box = axes.collections[0].get_datalim(axes.transData)
    assert (box.y0, box.y1) == pytest.approx((case.training["loss"].min(), case.training["loss"].max()), rel=1e-12)


def test_residuals_are_in_standard_errors():
    """scipy's t statistic of the seeds against theory, at each time; where all seeds are equal there is none. Rounding is tolerated."""
    case = CASES["one number"]
    line = figure_of_comparison(case).axes[1].lines[1]
    expected = ttest_1samp(case.training["loss"], case.theory["loss"][0], axis=0).statistic
    np.testing.assert_allclose(np.asarray(line.get_ydata()), expected, rtol=1e-9)
    still = figure_of_comparison(CASES["the same"]).axes[1].lines[1]
    assert np.ma.getmaskarray(np.ma.masked_invalid(np.ma.filled(still.get_ydata(), np.nan))).all()


@pytest.mark.parametrize("seeds", [2, 4])
def test_of_few_seeds_the_difference_has_their_range(seeds):
    """Its mean and band are in the units of the number; nothing is in standard errors, which so few seeds do not know."""
    case = comparison({"x": curve()}, seeds=seeds)
    figure, each = figure_of_comparison(case), case.training["x"] - case.theory["x"]
    axes = figure.axes[1]
    np.testing.assert_allclose(np.asarray(axes.lines[1].get_ydata()), each.mean(axis=0), rtol=1e-12)
    box = axes.collections[0].get_datalim(axes.transData)
    assert (box.y0, box.y1) == pytest.approx((each.min(), each.max()), rel=1e-12)
    assert axes.get_ylabel().startswith("Δ") and "std" not in axes.get_ylabel()
    assert any("Δ = training − theory" in text.get_text() for text in figure.texts) and "Δ within ±2" not in labels(figure)


def beside(figure: Figure) -> dict[str, str]:
    """{name: value} of the numbers beside the first row of panels."""
    words = [text.get_text() for text in figure.axes[1].texts]
    return dict(zip(words[::2], words[1::2], strict=True))


@pytest.mark.parametrize(("move", "share"), [(0.0, "100 %"), (0.5, "67 %"), (0.0001, "100 %")])
def test_the_share_in_the_range_is_said(move, share):
    """Theory is beyond every seed at 10 of 30 times; a thousandth of the span 0.2 does not count."""
    case = comparison({"v": 1 + curve()}, noise=0.0)
    training = case.training["v"] + np.linspace(-1e-5, 1e-5, 5)[:, None]
    theory = case.theory["v"].copy()
    theory[0, 10:20] += move
    assert beside(figure_of_comparison(replace(case, theory={"v": theory}, training={"v": training})))["in range"] == share


def test_the_share_in_the_range_is_one_of_all_values():
    """Of two components one is beyond every seed at all times: half of what is drawn is in the range."""
    case = comparison({"v": np.stack([1 + curve(), 2 + curve()], axis=-1)}, noise=0.0)
    training = case.training["v"] + np.linspace(-1e-5, 1e-5, 5)[:, None, None]
    theory = case.theory["v"] + np.array([0.0, 0.5])
    assert beside(figure_of_comparison(replace(case, theory={"v": theory}, training={"v": training})))["in range"] == "50 %"


def test_a_few_per_cent_on_many_decades_count():
    """What an axis of six decades cannot show, the share does: 3 of 30 times lie 3 % below the least of the seeds."""
    case = comparison({"loss": np.geomspace(3, 1e-6, len(T))[None]}, noise=0.0)
    case = replace(case, training={"loss": case.training["loss"] * np.linspace(0.99, 1.01, 5)[:, None]})
    theory = case.training["loss"].mean(axis=0, keepdims=True)
    theory[0, 1:4] = 0.97 * case.training["loss"][:, 1:4].min(axis=0)
    figure = figure_of_comparison(replace(case, theory={"loss": theory}))
    assert figure.axes[0].get_yscale() == "log" and beside(figure)["in range"] == "90 %"


def test_the_numbers_are_those_of_the_table():
    """Beside each row, as far as the table has them: a loss that spans no decade has no ratio at the end, one seed no range."""
    for name, lacks in (("one number", {"end ratio"}), ("one seed", {"end ratio", "in range"})):
        (row, *_), numbers = CASES[name].table(), beside(figure_of_comparison(CASES[name]))
        assert float(numbers["corr"]) == pytest.approx(row["correlation"], abs=5e-5)
        assert float(numbers["rel L2"]) == pytest.approx(row["relative_l2"], rel=0.05)
        assert {"corr", "rel L2", "to 10 %", "end ratio", "in range"} - set(numbers) == lacks


@pytest.mark.parametrize(("end", "scale"), [(0.02, "linear"), (0.005, "log")])
def test_decades_get_a_logarithmic_axis(end, scale):
    """From two decades on: 1 to 0.005, not 1 to 0.02."""
    case = comparison({"v": np.geomspace(1, end, 30)[None]}, noise=0.0)
    assert figure_of_comparison(case).axes[0].get_yscale() == scale


def test_components_are_of_every_height():
    """Of many curves, those drawn go evenly from the lowest end to the highest, each height once, and the worst is there; few are all."""
    values = np.tile(np.repeat([3.0, 1.0, 2.0, 5.0, 4.0, 6.0, 7.0, 9.0, 8.0], 2), (4, 1))
    assert [values[-1, i] for i in component_indices(values, np.zeros(18))] == [1, 3, 5, 7, 9]
    for worst in range(18):
        drawn = component_indices(values, np.eye(18)[worst])
        assert worst in drawn and np.all(np.abs(np.sort(values[-1, drawn]) - [1, 3, 5, 7, 9]) <= 1)
    assert component_indices(values[:, :COMPONENTS], np.zeros(COMPONENTS)) == [*range(COMPONENTS)]


def residual_axes(shift: float, seeds: int = 5, noise: float = 0.05) -> Any:
    """The right panel of a number whose training lies beside theory by so much."""
    given = comparison({"x": curve()}, seeds=seeds, noise=noise)
    return figure_of_comparison(replace(given, training={"x": given.training["x"] + shift})).axes[1]


@pytest.mark.parametrize("shift", [0.0, 0.03, -0.03, 50.0, -5e4])
def test_the_size_of_chance_can_be_read(shift):
    """A logarithmic axis has ticks at both ends of the grey band, and the largest power of ten; there is room for both ends, not more."""
    axes = residual_axes(shift)
    (line,) = [line for line in axes.lines if len(line.get_xdata()) > 2]
    low, high = axes.get_ylim()
    assert low < min(line.get_ydata().min(), -2) and high > max(line.get_ydata().max(), 2)
    if abs(shift) > 1:
        ticks = axes.get_yticks()
        inside = [tick for tick in ticks if low <= tick <= high]
        assert axes.get_yscale() == "symlog" and {-2.0, 2.0} < set(inside) and np.abs(inside).max() > 0.1 * max(-low, high) / 1.6
        assert (low if shift > 0 else -high) == -3.0
    else:
        assert axes.get_yscale() == "linear"


def test_a_panel_without_a_line_says_why():
    """Either both sides are the same, or all seeds are, so that there is no standard error; the one is no sign of the other."""
    same, off = comparison({"x": curve()}, noise=0.0), comparison({"x": curve()}, noise=0.0)
    off = replace(off, training={"x": off.training["x"] + 1.0})
    said = [[text.get_text() for text in figure_of_comparison(c).axes[1].texts] for c in (same, off)]
    assert [SAME in texts for texts in said] == [True, False] and [ALIKE in texts for texts in said] == [False, True]
    assert not any("in range" in texts for texts in said)  # which has no width


def test_a_long_label_with_a_power_has_two_lines():
    """Labels beside low panels one below the other are no longer than these are high: a power of ten stands in a line of its own."""
    figure = figure_of_comparison(comparison({f"entropy_of_class_{name}": 1e-5 * (1 + curve()) for name in "abc"}, seeds=1, noise=1e-7))
    figure.canvas.draw()
    for axes in figure.axes[::2]:
        assert "10^{" in axes.get_ylabel()
        assert axes.yaxis.label.get_window_extent().height < 1.05 * axes.get_window_extent().height  # 5 %: type has whole pixels

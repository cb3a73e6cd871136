"""The picture of a comparison: theory is the dark line, the training its band, every axis named and nothing on top of another."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.text import Text

from odesim.comparison import Comparison
from odesim.plot.comparison import COMPONENTS, component_indices, figure_of_comparison, short_label
from odesim.plot.style import INK, SMALL, WIDTH
from tests.support.texts import clashes, drawn_texts

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
    "two runs": comparison({"v": curve(3)}, seeds=1, map=""),
    "arrays": comparison({"loss": 1.2 - curve(), "c": curve(2, 30), "entropy": curve(2), "Z": -curve(2, 30), "S": curve()}),
    "not finite": comparison({"v": np.where(T[:, None] > 15, np.nan, curve(3))}),
    "more than fit": comparison({f"x{i}": curve() for i in range(9)}),
    "the same": comparison({"v": curve(3), "w": np.ones((1, 30))}, noise=0.0),
}


@pytest.mark.parametrize("name", CASES)
def test_legible(name):
    """Each panel has a name and every lowest one a clock; no word lies on another or leaves the page, none is below 6 points."""
    figure = figure_of_comparison(CASES[name])
    assert figure.get_figwidth() * 25.4 == pytest.approx(WIDTH)
    texts = drawn_texts(figure)
    assert clashes(figure, texts) == []
    assert min(float(text.get_fontsize()) for text in figure.findobj(Text)) >= SMALL
    assert all(axes.get_ylabel() for axes in figure.axes) and any("SGD" in axes.get_xlabel() for axes in figure.axes)
    said = figure.get_suptitle().replace("\n", " ")
    assert "some.system beside a_task (model)" in said and "dark: " in said
    assert ("not shown: x6, x7, x8" in said) is (name == "more than fit")


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


def test_a_mean_of_theories_is_called_so():
    """Where each seed has a theory of its own, the dark line is their mean."""
    case = comparison({"v": curve(3)})
    each = replace(case, theory={"v": np.repeat(case.theory["v"], 5, axis=0)})
    titles = [figure_of_comparison(one).get_suptitle().split("\n") for one in (case, each)]
    assert "dark: the flow" in titles[0] and "dark: the flow, mean over seeds" in titles[1]


def test_theory_is_dark_and_training_a_band():
    """The dark line has the values of theory; the widest band ends at the least and the largest seed."""
    case = CASES["one number"]
    axes = figure_of_comparison(case).axes[0]
    (line,) = [line for line in axes.lines if to_hex(line.get_color()) == INK]
    np.testing.assert_array_equal(np.asarray(line.get_ydata()), case.theory["loss"][0])
    box = axes.collections[0].get_datalim(axes.transData)
    assert (box.y0, box.y1) == pytest.approx((case.training["loss"].min(), case.training["loss"].max()), rel=1e-12)


def test_components_are_of_every_height():
    """Of many curves, those drawn go evenly from the lowest end to the highest, each height once; few are drawn all."""
    values = np.tile(np.repeat([3.0, 1.0, 2.0, 5.0, 4.0, 6.0, 7.0, 9.0, 8.0], 2), (4, 1))
    assert [values[-1, i] for i in component_indices(values)] == [1, 3, 5, 7, 9]
    assert component_indices(values[:, :COMPONENTS]) == [*range(COMPONENTS)]

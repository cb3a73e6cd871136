"""Colours as readers with other eyes see them."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from matplotlib.colors import PowerNorm, to_rgb

from odesim.plot.panels import draw_cells
from odesim.plot.scales import by_root, color_scale, root_ticks
from odesim.plot.style import CATEGORIES, distinct_colors, new_figure, ordered_colors, project_style

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


def distances(palette: Any, defect: str) -> Any:
    """Those of n colours (n, n) in CIELAB, as that reader sees them."""
    srgb = np.array([to_rgb(color) for color in palette])
    linear = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
    seen = lab(linear @ np.array(DEFECTS[defect]).T)
    return np.linalg.norm(seen[:, None] - seen[None], axis=-1)


@pytest.mark.parametrize("defect", DEFECTS)
def test_colours_stay_apart(defect: str) -> None:
    """Seen without red or green cones, colours of categories and of five ordered lines differ by 10 or more in CIELAB."""
    for palette in (CATEGORIES, ordered_colors(5)):
        assert distances(palette, defect)[np.triu_indices(len(palette), 1)].min() > 10  # one is just noticeable; ten is a clear difference


@pytest.mark.parametrize("defect", DEFECTS)
@pytest.mark.parametrize("n", range(2, 33))
def test_neighbours_stay_apart(n: int, defect: str) -> None:
    """So do components without an order, however many, from the next one; of 16 shades it is 6."""
    assert np.diagonal(distances(distinct_colors(n), defect), 1).min() > 10


@pytest.mark.parametrize(("spread", "notes"), [(0.0, 0), (1e-16, 0), (1e-9, 1), (1e-4, 0)])
def test_what_is_alike_has_one_colour(spread: float, notes: int) -> None:
    """Numbers that differ in their seventh digit or later are no pattern; a note says by how much, unless it is rounding."""
    values = np.array([[1.0, 1.0 + spread], [1.0, 1.0]])
    scale = color_scale(values, "x")
    assert scale.norm.vmin == pytest.approx(0.5 if spread < 1e-6 else 1.0, rel=1e-8) and len(scale.notes) == notes
    assert notes == 0 or scale.notes[0] == "x: one colour, its values differ by 1e-09 at most"


@pytest.mark.parametrize("high", [1.3, 3.0, 9.0, 40.0, 5e3, 1e9])
@pytest.mark.parametrize("low", [0.7, 1.02e-6, 2e7])
def test_a_logarithmic_bar_has_two_numbers_or_more(low: float, high: float) -> None:
    """However short it is, and wherever it lies; no two of them touch."""
    with project_style():
        figure = new_figure(40.0)
        draw_cells(figure.add_subplot(), (np.arange(5.0), np.arange(2.0)), np.ma.array(low * np.geomspace(1, high, 4)[None]), "x", log=True)
        figure.draw_without_rendering()
    bar = figure.axes[-1]
    labels = [label for label in bar.get_xticklabels() if label.get_text() and low <= label.get_position()[0] <= low * high * (1 + 1e-9)]
    boxes = sorted((label.get_window_extent() for label in labels), key=lambda box: box.x0)
    assert len(boxes) >= 2 and all(left.x1 < right.x0 for left, right in pairwise(boxes))


START = np.eye(1, 40)[0]  # a run that starts in one state
ROOTS = {
    "one of many": (START, True),
    "many alike": (np.full(40, 0.3) + 0.01 * np.arange(40), False),
    "half of them": (np.repeat([0.0, 1.0], 20), False),
    "both signs": (START - 0.01, False),
    "nothing": (np.zeros(40), False),
}


@pytest.mark.parametrize("name", ROOTS)
def test_small_beside_a_large_one_is_seen(name: str) -> None:
    """Colours go by the square root where no value is negative and their mean is below a tenth of the largest."""
    values, root = ROOTS[name]
    assert isinstance(by_root(color_scale(values, "x", False), values).norm, PowerNorm) is root


@pytest.mark.parametrize("high", [1.0, 0.7, 1.3e-5, 9.99e7, 2.6])
def test_a_bar_of_roots_has_four_numbers_apart(high: float) -> None:
    """0, a tenth, a half and a whole, which lie on the bar and do not touch."""
    with project_style():
        figure = new_figure(40.0)
        draw_cells(figure.add_subplot(), (np.arange(41.0), np.arange(2.0)), np.ma.array(high * START[None]), "x", log=None)
        figure.draw_without_rendering()
    labels = [label for label in figure.axes[-1].get_xticklabels() if label.get_text()]
    boxes = sorted((label.get_window_extent() for label in labels), key=lambda box: box.x0)
    assert len(boxes) == 4 and all(left.x1 < right.x0 for left, right in pairwise(boxes))
    assert high * 0.4 < labels[-1].get_position()[0] <= high


@pytest.mark.parametrize(
    ("high", "ticks"),
    [(1.0, [0, 0.1, 0.5, 1]), (0.37, [0, 0.03, 0.15, 0.3]), (2900.0, [0, 200, 1000, 2000]), (0.096, [0, 0.009, 0.045, 0.09])],
)
def test_ticks_of_colours_by_the_root(high: float, ticks: list[float]) -> None:
    """0, a tenth, a half and the whole of the first digit of the largest, as one writes them."""
    assert root_ticks(high) == pytest.approx(ticks, rel=1e-12)

"""The picture of a training: every panel legible, the loss on the axis that suits it, what is drawn of the seeds said above."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import xarray as xr
from matplotlib.text import Text

from odesim.errors import StoreError
from odesim.plot.style import SMALL
from odesim.plot.trajectory import figure_of_trajectory
from tests.support.texts import clashes, drawn_texts


def run(last: int, seeds: int, end: float, **shapes: tuple[int, ...]) -> xr.Dataset:
    """A training whose loss falls from 3 to end in last iterations, with arrays of these shapes beside it."""
    t = np.linspace(0, last, 51).round().astype(int)
    rng = np.random.default_rng(0)
    noise = 1 + 0.01 * rng.random((seeds, 51))
    variables: dict[str, Any] = {"loss": (("seed", "time"), 3 * (end / 3) ** (t / last) * noise)}
    for name, shape in shapes.items():
        axes = tuple(f"{name}_{k}" for k in range(len(shape)))
        variables[name] = ("seed", "time", *axes), np.cumsum(rng.normal(size=(seeds, 51, *shape)), axis=1)
    said = {"task": "some_task", "model": "net", "status": "ok", "message": ""}
    return xr.Dataset(variables, coords={"seed": np.arange(seeds) + 7, "time": t}, attrs=said)


CASES = {
    "loss alone": run(100, 1, 1e-3),
    "a long training": run(4000, 1, 1e-3, entropy=(), c=(), v=()),
    "seeds and arrays": run(9999, 5, 2.5, entropy=(2,), c=(3, 29)),
    "a map": run(2000, 2, 2.9, entropy=(20,), z=()),
    "more than fit": run(100, 3, 0.1, **{f"x{i}": () for i in range(7)}),
}


@pytest.mark.parametrize("name", CASES)
def test_legible(name):
    """No word lies on another or leaves the page, none is below 6 points; the title says task, seeds, and what is drawn of them."""
    figure = figure_of_trajectory(CASES[name])
    assert clashes(figure, drawn_texts(figure)) == []
    assert min(float(text.get_fontsize()) for text in figure.findobj(Text)) >= SMALL
    said, count = figure.get_suptitle().split("\n"), CASES[name].sizes["seed"]
    assert said[0] == f"some_task (net), {'seed 7' if count == 1 else f'{count} seeds'}"
    assert ("median, middle half and range of seeds" in said) is (count > 1)
    assert ("arrays: mean over seeds" in said) is (name in ("seeds and arrays", "a map"))
    assert ("not shown: x5, x6" in said) is (name == "more than fit")


@pytest.mark.parametrize("name", CASES)
def test_numbers_at_the_time_axis_are_apart(name):
    """Between two of them there is at least the width of a digit."""
    figure = figure_of_trajectory(CASES[name])
    figure.draw_without_rendering()
    for axes in figure.axes:
        low, high = axes.get_window_extent().intervalx
        found = [label.get_window_extent() for label in axes.get_xticklabels() if label.get_text() and label.get_visible()]
        shown = [box for box in found if low - 1 <= (box.x0 + box.x1) / 2 <= high + 1]
        digit = min((box.height for box in shown), default=0.0) / 2
        assert all(right.x0 - left.x1 >= digit for left, right in pairwise(shown))


@pytest.mark.parametrize(("end", "scale"), [(1e-3, "log"), (0.299, "log"), (0.31, "linear"), (2.5, "linear")])
def test_loss_axis(end, scale):
    """Logarithmic from one decade on, 3 to 0.299; below it the ticks would stand at odd numbers such as 2.9 x 10^0."""
    quiet = run(100, 1, end)
    quiet["loss"] = quiet.loss.copy(data=3 * (end / 3) ** (quiet.time.values / 100)[None])
    assert figure_of_trajectory(quiet).axes[0].get_yscale() == scale


def test_nothing_finite_is_drawn():
    """A loss that is not finite from the start leaves its panel empty and draws the others."""
    lost = run(50, 3, 2.5, c=(2,))
    lost["loss"][:] = np.nan
    figure = figure_of_trajectory(lost)
    lines = [line for line in figure.axes[0].get_lines() if np.size(line.get_xdata())]
    assert figure.axes[0].get_ylabel() == "loss" and not lines and figure.axes[1].get_lines()


def test_no_rows_yet():
    """A training that was stopped before its first row has nothing to draw, which is said."""
    with pytest.raises(StoreError, match="no iteration is recorded yet"):
        figure_of_trajectory(run(50, 3, 2.5).isel(time=slice(0)))

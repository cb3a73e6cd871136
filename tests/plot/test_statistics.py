"""The picture of statistics over members: lines and bands are the numbers, and what is drawn is said."""

from typing import Any

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure
from matplotlib.patches import StepPatch

from odesim.base.datasets import with_accessor
from odesim.base.errors import ParamError
from odesim.plot.choice import Choice
from odesim.plot.statistics import figure_of_statistics
from tests.plot.test_ensemble import curves, head_of
from tests.support.texts import clashes, drawn_texts

T = np.linspace(0.0, 5.0, 26)
MEAN, LEVELS = np.exp(-T), np.array([0.5, 0.8, 1.0, 1.2, 1.5])


def statistics(*names: str) -> xr.Dataset:
    """Statistics of a number x and of an array v of three, as reduce has them."""
    parts: dict[str, Any] = {
        "mean": MEAN,
        "var": 0.04 * MEAN**2,
        "min": 0.1 * MEAN,
        "max": 3 * MEAN,
        "quantiles": LEVELS[:, None] * MEAN,
        "count": np.full(T.size, 90),
    }
    data = {}
    for name in (*names, "count"):
        first = ("quantile", "time") if name == "quantiles" else ("time",)
        data[f"x_{name}"] = first, parts[name]
        data[f"v_{name}"] = (*first, "m"), parts[name][..., None] * np.array([1, 1, 1] if name == "count" else [1, 2, 3])
    return xr.Dataset(
        data, {"time": T}, {"model": "my.walk", "members": 100, "statuses": {"ok": 90, "non_finite": 10}, "statistics": ",".join(names)}
    )


DRAWN: dict[tuple[str, ...], tuple[Any, Any, Any, str]] = {
    ("mean", "quantiles"): (MEAN, 0.5 * MEAN, 1.5 * MEAN, "mean (dashed), median, middle 50 % and 90 % of the members"),
    ("mean", "var"): (MEAN, 0.8 * MEAN, 1.2 * MEAN, "mean, standard deviation of the members"),
    ("mean",): (MEAN, None, None, "mean of the members"),
    ("mean", "quantiles", "min", "max"): (MEAN, 0.1 * MEAN, 3 * MEAN, "mean (dashed), median, middle 50 %, 90 % and all of the members"),
    ("min", "max"): (3 * MEAN, 0.1 * MEAN, 3 * MEAN, "least and largest of the members"),
    ("min",): (0.1 * MEAN, None, None, "least of the members"),
    ("mean", "min"): (MEAN, None, None, "mean of the members"),
    ("var",): (0.2 * MEAN, None, None, "standard deviation of the members"),
}


@pytest.mark.parametrize("names", DRAWN, ids="-".join)
def test_lines_and_bands(names: tuple[str, ...]) -> None:
    """The line, the widest band and the words of each choice of statistics; members that ended early are counted."""
    middle, low, high, words = DRAWN[names]
    figure = figure_of_statistics(statistics(*names))
    if low is None:
        np.testing.assert_allclose(np.asarray(figure.axes[0].get_lines()[0].get_ydata()), middle)
        assert not figure.axes[0].collections
    else:
        for found, want in zip(curves(figure), (middle, low, high), strict=True):
            np.testing.assert_allclose(found, want)
    assert words in head_of(figure) and "10 non_finite" in head_of(figure) and "my.walk, 100 members" in head_of(figure)
    assert len(figure.axes) == 2 and not clashes(figure, drawn_texts(figure))


def test_accessor() -> None:
    """data.odesim.plot() draws the same, one quantity on Axes of the user."""
    data, ax = with_accessor(statistics("mean", "quantiles")), Figure().subplots()
    assert len(data.odesim.plot()) == 2 and data.odesim.plot("x", ax=ax) is ax
    for found, want in zip(curves(ax.figure), curves(figure_of_statistics(data, Choice(var=("x",)))), strict=True):
        np.testing.assert_array_equal(found, want)
    with pytest.raises(ParamError, match="ax is one panel"):
        data.odesim.plot(ax=ax)


def test_histograms() -> None:
    """Of a quantity at a chosen time, and of what members have once: densities, whose integral is 1, over the stored edges."""
    edges = np.linspace(0.0, 2.0, 33)[:, None] * MEAN
    counts = np.random.default_rng(0).integers(0, 9, (32, T.size))
    more: dict[str, Any] = {"x_histogram": (("bin", "time"), counts), "x_edges": (("edge", "time"), edges)}
    more |= {"x_time_max_histogram": ("bin", counts[:, 0]), "x_time_max_edges": ("edge", edges[:, 0]), "x_time_max_count": ((), 90)}
    data = statistics("mean").assign(more).drop_vars(["v_mean", "v_count"])
    with pytest.raises(ParamError, match="give histogram to reduce"):
        figure_of_statistics(data, Choice(at=1.0))
    data.attrs["statistics"] = "mean,histogram,time_max"
    figure = figure_of_statistics(data)
    assert [axes.get_xlabel() for axes in figure.axes] == ["$t$", "$x$, largest over time"] and not clashes(figure, drawn_texts(figure))
    for choice, row in ((Choice(var=("x",), at=1.0), 5), (Choice(var=("x_time_max",)), 0)):
        figure = figure_of_statistics(data, choice)
        values, ends, _ = figure.axes[0].findobj(StepPatch)[0].get_data()  # type: ignore[attr-defined]
        np.testing.assert_allclose(ends, edges[:, row])
        np.testing.assert_allclose(values * np.diff(ends), counts[:, row] / counts[:, row].sum())
        assert ("t = 1" in head_of(figure)) is (row == 5)


def test_choices() -> None:
    """One quantity and one component; what is for members is refused."""
    figure = figure_of_statistics(statistics("mean"), Choice(var=("v",), index=(2,)))
    np.testing.assert_allclose(np.asarray(figure.axes[0].get_lines()[0].get_ydata()), 3 * MEAN)
    with pytest.raises(ParamError, match="no kept state or observable 'w'"):
        figure_of_statistics(statistics("mean"), Choice(var=("w",)))
    with pytest.raises(ParamError, match="x is for ensembles"):
        figure_of_statistics(statistics("mean"), Choice(x="mu"))

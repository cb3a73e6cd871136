"""Pictures of rest states and branches: eigenvalues where they are, symbols for names, no power of ten on another word."""

from typing import Any

import numpy as np
import pytest
import xarray as xr

from odesim.plot.dynamics import (
    figure_of_branches,
    figure_of_exponents,
    figure_of_fit,
    figure_of_rest,
    figure_of_sensitivity,
    figure_of_spectrum,
)
from tests.support.texts import clashes, drawn_texts, notes


def rests(imaginary: float, *, discrete: int = 0, size: float = 1.0) -> xr.Dataset:
    """Three rest states of a state z[i] with two eigenvalues each."""
    real = size * np.array([[-1.0, -2.0], [1.0, -1.0], [-3.0, -3.0]])
    data: dict[str, Any] = {
        "eigenvalue_real": (("rest", "mode"), real),
        "eigenvalue_imag": (("rest", "mode"), imaginary * np.array([[0.0, 0.0], [0.0, 0.0], [1.0, -1.0]])),
        "stability": ("rest", ["stable", "saddle", "stable"]),
        "z": (("rest", "i"), np.arange(6.0).reshape(3, 2)),
    }
    return xr.Dataset(data, attrs={"model": "my.model", "discrete": discrete, "rest_states": "z"})


@pytest.mark.parametrize("discrete", [0, 1])
@pytest.mark.parametrize("imaginary", [0.0, 0.5])
def test_real_eigenvalues_have_a_row_a_state(imaginary, discrete):
    """Upwards is the number of the rest state where all are real, else the imaginary part; a circle is round."""
    data = rests(imaginary, discrete=discrete)
    figure = figure_of_rest(data)
    plane, place = figure.axes
    dots = [np.asarray(line.get_xydata()) for line in plane.lines if line.get_marker() == "o"]
    up = data["eigenvalue_imag"].values if imaginary else np.repeat([[0.0], [1.0], [2.0]], 2, axis=1)
    np.testing.assert_array_equal(dots, np.stack([data["eigenvalue_real"].values, up], axis=-1))
    assert plane.get_ylabel() == ("imaginary part" if imaginary else "rest state")
    assert (place.get_xlabel(), place.get_ylabel()) == ("$z_{0}$", "$z_{1}$")
    if discrete and imaginary:
        assert plane.transData.transform((1, 1)) - plane.transData.transform((0, 0)) == pytest.approx(
            np.repeat((plane.transData.transform((1, 0)) - plane.transData.transform((0, 0)))[0], 2), rel=1e-6
        )


@pytest.mark.parametrize("size", [1e-7, 1.0, 1e7])
def test_powers_of_ten_stand_in_the_label(size):
    """They overprint nothing."""
    figure = figure_of_rest(rests(0.5 * size, size=size))
    assert clashes(figure, drawn_texts(figure)) == []
    assert ("10" in figure.axes[0].get_xlabel()) == (size != 1.0)


@pytest.mark.parametrize("losses", [(0.0, 1.0, 2.0), (1e-15, 1.0, 2.0)])
def test_a_loss_of_rounding_is_said(losses):
    """It is drawn as 0, which the page says; a loss of 0 is one."""
    figure = figure_of_rest(rests(0.5).assign(loss=("rest", list(losses)), index=("rest", [0, 1, 2])))
    drawn = [float(np.asarray(line.get_ydata())[0]) for line in figure.axes[1].lines]
    assert drawn == [0.0, 1.0, 2.0] and any("drawn as 0" in note for note in notes(figure)) == (losses[0] > 0)


@pytest.mark.parametrize("labels", [["v[0]", "v[1]"], ["W[0][1]", "W[2][3]"], ["x", "y"], ["v[0]", "v[1]", "loss", "x"]])
def test_curves_of_a_fit_have_names(labels):
    """Each entry of an array has its index where its curve ends; a number has its name beside the panel.

    Below each column time is named, in lines that fit it, and no word is cut off.
    """
    t, fine, values = np.arange(4.0), np.linspace(0, 3, 7), 1.0 + 2 * np.arange(len(labels))
    data = xr.Dataset(
        {
            "curve": (("curve_time", "column"), fine[:, None] * values),
            "data": (("time", "column"), t[:, None] * values),
            "residual": (("time", "column"), np.zeros((4, len(labels)))),
            "value": ("free", [1.0]),
        },
        coords={"column": labels, "time": t, "curve_time": fine, "free": ["mu"]},
        attrs={"model": "my.model", "time_unit": "steps times the root of the learning rate"},
    )
    figure = figure_of_fit(data)
    shown = {text.get_text(): text.get_position()[1] for text in figure.axes[0].texts}
    assert [*shown] == [label.partition("[")[2].rstrip("]").replace("][", ",") for label in labels if "[" in label]
    assert sorted(shown.values()) == [*shown.values()] and clashes(figure, drawn_texts(figure)) == []


def test_branches_have_symbols():
    """A parameter and an entry of a state are written as elsewhere."""
    c = np.linspace(0.0, 1.0, 5)
    data = xr.Dataset(
        {"beta": ("point", c), "z": (("point", "i"), np.stack([c, 2 * c], axis=1)), "branch": ("point", [0] * 5)},
        attrs={"model": "my.model", "parameter": "beta", "rest_branches": "z"},
    ).assign(growing=("point", [0, 0, 1, 1, 1]), kind=("special", ["fold"]), special_beta=("special", [0.5]))
    data["special_z"] = (("special", "i"), [[0.5, 1.0]])
    figure = figure_of_branches(data)
    (axes,) = figure.axes
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["stable", "not stable", "fold"]
    (legend,) = figure_of_branches(data.assign(growing=("point", [0] * 5))).legends
    assert "not stable" not in [text.get_text() for text in legend.get_texts()]
    assert (axes.get_xlabel(), axes.get_ylabel()) == (r"$\beta$", "$z_{1}$")


def test_what_does_not_vary_has_no_panel():
    """Of five quantities, two without variance: three panels, and a note on the others."""
    parts = np.array([[np.nan, np.nan], [0.2, 0.8], [0.5, 0.5], [np.nan, np.nan], [0.9, 0.1]])
    data = xr.Dataset(
        {"total": (("quantity", "factor"), parts), "first": (("quantity", "factor"), parts)},
        coords={"quantity": ["loss", "v[0]", "v[1]", "w", "u"], "factor": ["mu", "nu"]},
        attrs={"model": "my.model", "sensitivity": "sobol"},
    )
    figure = figure_of_sensitivity(data)
    assert [axes.get_title() for axes in figure.axes] == ["$v_{0}$", "$v_{1}$", "$u$"]
    bars: list[list[Any]] = [list(axes.patches) for axes in figure.axes]
    widths = [[bar.get_width() for bar in each] for each in bars]
    assert widths == [[0.8, 0.2] * 2, [0.5, 0.5] * 2, [0.9, 0.1] * 2]
    assert any("without variance: loss, $w$" in text.get_text() for text in figure.texts)


@pytest.mark.parametrize("kind", ["exponents", "spectrum"])
def test_curves_in_order_of_size_have_their_rank(kind):
    """The largest is 1: of three exponents, and of 60 eigenvalues, of which 40 are drawn, the first and the last with them."""
    t, n = np.linspace(0, 2, 21), 3 if kind == "exponents" else 60
    last = -np.arange(1.0, n + 1)
    curves = last * (1 + np.exp(-t[:, None]) - np.exp(-2))
    if kind == "exponents":
        parts: dict[str, Any] = {
            "running": (("time", "k"), curves),
            "value": ("k", last),
            "error": ("k", 0 * last + 0.01),
            "dimension": 0.0,
        }
        figure = figure_of_exponents(xr.Dataset(parts, {"time": t}, {"model": "my.model", "lyapunov": 1}))
    else:
        parts = {"eigenvalue_real": (("time", "mode"), curves), "eigenvalue_imag": (("time", "mode"), 0 * curves)}
        figure = figure_of_spectrum(xr.Dataset(parts, {"time": t}, {"model": "my.model", "discrete": 0, "loss": ""}))
    assert clashes(figure, drawn_texts(figure)) == []
    named = sorted((text for text in figure.axes[0].texts if text.get_visible()), key=lambda text: -text.get_position()[1])
    words = " ".join(text.get_text() for text in named).split()
    assert words[0].rstrip(",") == "1" and words[-1].rstrip(",") == str(n)


@pytest.mark.parametrize(("measure", "bars"), [("sobol", ("total", "first")), ("morris", ("size", "spread"))])
def test_the_legend_of_bars_says_what_they_are(measure, bars):
    """The words of a table alone are no question that a reader has."""
    data: dict[str, Any] = {name: (("quantity", "factor"), np.array([[0.8, 0.2]])) for name in bars}
    where = {"quantity": ["v"], "factor": ["a", "b"]}
    figure = figure_of_sensitivity(xr.Dataset(data, where, {"model": "my.model", "sensitivity": measure}))
    words = [text.get_text() for text in figure.legends[0].get_texts()]
    assert clashes(figure, drawn_texts(figure)) == []
    assert [word.partition(": ")[0] for word in words] == [*bars] and all(word.partition(": ")[2] for word in words)

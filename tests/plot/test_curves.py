"""Curves of a picture are the run's: even and odd updates, corners, decay into rounding, many lines, far-off values."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sympy import cosh, symbols

import odesim
from odesim.plot.choice import Choice
from odesim.plot.panels import CHOSEN, ENDED, HALVES, alternates, until_noise
from odesim.plot.scales import limits
from odesim.plot.solution import figure_of_solution
from odesim.symbolic import System
from tests.support.maps import SCHEDULE, x
from tests.support.pictures import T, grow, solution
from tests.support.texts import notes


def curves(axes: Any) -> list[Any]:
    """The lines of a panel that are drawn over its data."""
    return [line for line in axes.lines if line.get_transform() == axes.transData]


def test_what_alternates_has_two_curves() -> None:
    """Even and odd updates, each a constant of one sign and named above; the picture says which updates it has."""
    flip = replace(SCHEDULE, equations={x: -x}, params=())
    figure = figure_of_solution(odesim.integrate(flip, steps=5000))
    lines = curves(figure.axes[0])
    ends = [{*np.sign(np.asarray(line.get_ydata(), float))} for line in lines]
    assert len(lines) == 2 and sorted(map(sorted, ends)) == [[-1.0], [1.0]]
    assert all((np.asarray(line.get_xdata()) % 2 == odd).all() for odd, line in enumerate(lines))
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [*HALVES] and "drawn: one in 13 updates" in notes(figure)


@pytest.mark.parametrize(
    ("values", "two"),
    [
        ((-1.0) ** np.arange(100) * np.exp(-np.arange(100) / 30), True),  # it dies out
        (2 + (-1.0) ** np.arange(100) + np.arange(100) / 100, True),  # beside a drift
        (np.arange(100) + 0.1 * (-1.0) ** np.arange(100), False),  # the drift is what is seen
        (np.random.default_rng(0).normal(size=100), False),
        (np.cos(np.arange(100)), False),
        (np.cos(2 * np.pi / 3 * np.arange(100)), False),  # a cycle of three
        (np.ones(100), False),
        ((-1.0) ** np.arange(12), False),  # few values are seen one by one
    ],
    ids=["dies out", "drifts", "a drift", "noise", "a wave", "three", "constant", "few"],
)
def test_only_what_alternates_has_two_curves(values: Any, two: bool) -> None:
    """Not noise, a wave, a cycle of another length; nor times that are all even."""
    assert alternates(values[:, None], np.arange(len(values))) is two
    assert not alternates(values[:, None], 2 * np.arange(len(values)))


def test_corners_are_computed() -> None:
    """A dip as narrow as two saved steps: the drawn line is the closed form, of which the saved points miss the bottom."""
    y = symbols("y", real=True)
    observables = {"dip": 1 - 1 / cosh(300 * (y - 0.4987))}
    dip = System(name="notes.dip", equations={y: 1}, params=(), initial={y: 0}, span=(0.0, 1.0), observables=observables)
    run = odesim.integrate(dip, save=201)
    (line,) = curves(figure_of_solution(run, Choice(("dip",))).axes[0])
    times = np.linspace(0, 1, 5001)
    truth = 1 - 1 / np.cosh(300 * (times - 0.4987))
    across = np.hypot(1, np.gradient(truth, times) / 2)  # a steep line is off by less than upwards; a panel is twice as wide as high

    def off(t: Any, values: Any) -> float:
        return float((np.abs(np.interp(times, t, np.asarray(values, float)) - truth) / across).max())

    # chords an eighth as long: errors of a smooth curve are 1/64, and a fourth of that is left for where it is not yet smooth
    assert off(line.get_xdata(), line.get_ydata()) < off(run.t, run.observables["dip"]) / 16
    assert off(run.t, run.observables["dip"]) > 0.03  # of a panel 46 mm high, in which a line is 0.35 mm wide
    assert set(run.t) <= set(np.asarray(line.get_xdata()).tolist())


def test_a_rough_path_stays_as_it_is() -> None:
    """Corners everywhere are no polygon of a smooth curve: such a run is not computed once more."""
    case = solution({"y": np.random.default_rng(0).normal(size=200)}, np.linspace(0, 1, 200))
    case.dense = None  # a call would fail
    (line,) = curves(figure_of_solution(case).axes[0])
    np.testing.assert_array_equal(line.get_ydata(), case.y["y"])


def test_decay_ends_in_rounding() -> None:
    """A line on a logarithmic axis ends where its sign first changes below the tolerance; what is ten times as large stays."""
    floor, line = 1e-6, np.ma.masked_invalid([1.0, 1e-3, 1e-7, -1e-8, 5e-6, -1e-7, 2e-5, 1e-7, np.nan])
    shown = until_noise(line, floor)
    np.testing.assert_array_equal(np.ma.filled(shown, np.nan), [1.0, 1e-3, 1e-7, np.nan, np.nan, np.nan, 2e-5, np.nan, np.nan])
    assert until_noise(line, 0.0).count() == line.count() and until_noise(np.ma.array([1.0, -1.0, 0.1]), floor).count() == 3


def test_the_gap_of_the_first_model_is_seen_to_decay() -> None:
    """`joma.nonlinear`: its default picture has the gap by decades, each line in one piece, and without a note on values left out."""
    figure = figure_of_solution(odesim.integrate("joma.nonlinear", save=200))
    axes = next(ax for ax in figure.axes if "gap" in ax.get_ylabel())
    assert axes.get_yscale() == "log" and len(curves(axes)) == 10
    for line in curves(axes):
        gone = np.isnan(np.asarray(np.ma.filled(line.get_ydata(), np.nan), float))
        assert not (gone[:-1] & ~gone[1:]).any()
    assert any(ENDED in note for note in notes(figure)) and not any("≤ 0" in note for note in notes(figure))


@pytest.mark.parametrize(("order", "bundle"), [(np.arange(9), False), (np.array([3, 0, 7, 1, 8, 2, 6, 4, 5]), True)])
def test_many_lines_without_an_order_are_a_bundle(order: Any, bundle: bool) -> None:
    """Shades from dark to light say that components rise with their index; else, beyond seven, a few are named and the rest is faint.

    All quantities of an axis have one rule: what another one shows in order stays so. Few lines keep their shades.
    """
    rise, cross = grow(9)[:, order], grow(9)[:, ::-1][:, order] * np.cos(7 * T)[:, None] * np.arange(1, 10)[::-1] % 0.7
    figure = figure_of_solution(solution({"v": rise, "w": cross, "u": rise[:, 2:6]}, dims={"v": ("i",), "w": ("i",), "u": ("j",)}))
    for axes, count in zip(figure.axes, (9, 9, 4), strict=True):
        lines = curves(axes)
        named = [line for line in lines if not str(line.get_label()).startswith("_")]
        some = bundle and count == 9
        assert len(lines) == count and len({str(line.get_color()) for line in named}) == len(named)
        assert (len(named) <= CHOSEN if some else len(named) == count) and not any(line.is_dashed() for line in lines)
        assert all(line.get_linewidth() < named[0].get_linewidth() for line in lines if line not in named)
        largest = int(np.abs((rise, cross)[axes is figure.axes[1]]).max(axis=0).argmax()) if count == 9 else 0
        assert count < 9 or any(str(line.get_label()).endswith(f"[{largest}]") for line in named)
        assert axes.get_title(loc="right") == "9 components" * some


@pytest.mark.parametrize("t", [3, 60])
@pytest.mark.parametrize(
    ("shape", "label", "names"),
    [
        ((1, 3), r"$\alpha_{0,k}$", {"0", "1", "2"}),
        ((3, 1), r"$\alpha_{n,0}$", {"0", "1", "2"}),
        ((2, 2), r"$\alpha_{n,k}$", {"0,0", "0,1", "1,0", "1,1"}),
    ],
)
def test_an_axis_of_one_place_is_no_name(shape: tuple[int, ...], label: str, names: set[str], t: int) -> None:
    """The label of the panel has its index, names at the ends of lines the others, also in the picture of an ensemble."""
    axes = figure_of_solution(solution({"alpha": grow(*shape)}, dims={"alpha": ("n", "k")})).axes[0]
    assert axes.get_ylabel() == label and {text.get_text() for text in axes.texts} == names


@pytest.mark.parametrize("far", [10.0, 1e3])
@pytest.mark.parametrize(
    ("values", "kept"),
    [
        (np.linspace(0, 1, 50), 50),
        (np.append(np.linspace(0, 1, 50), 1e97), 50),
        (np.append(1 - np.exp(-np.linspace(0, 60, 50)), 1e97), 50),  # half of them have settled at 1
        (np.append(np.append(np.ones(95), np.linspace(0, 0.9, 4)), 1e97), 99),  # most of them
        (np.append(1 + 1e-15 * np.arange(95), np.linspace(0, 0.9, 5)), 100),  # nothing is far off: a rounding is no scale
        (np.concatenate([np.linspace(0, 1, 50), [1e20, 1e50, 1e97]]), 50),
        (np.append(np.ones(50), 1e97), 51),  # there is nothing else to see
    ],
    ids=["even", "one", "settled", "most settled", "rounding", "three", "constant"],
)
def test_a_scale_leaves_out_what_is_far(values: Any, kept: int, far: float) -> None:
    """And keeps all others: what has settled at one number does not hide how."""
    low, high = limits(values, far)
    assert ((values >= low) & (values <= high)).sum() == kept and low in values and high in values

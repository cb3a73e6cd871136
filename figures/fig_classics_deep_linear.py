"""A deep linear network learns its modes one after another: two and three layers, and the time of a mode against its strength.

Stands beside Fig. 3 of saxe2014exact: a, two layers from a(0) = 1e-3, each mode a sigmoid; b, three layers, longer at rest, then steeper,
with the full flow of three 3 x 3 matrices in random bases (points) on the modes (lines); c, the time to half of the strength: of order
1/s for two layers, with a logarithm, and for three.
"""

from collections.abc import Iterator

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import odesim
from odesim.plot.figures import SCRIPT, Feature
from odesim.plot.style import CATEGORIES, DASHES, FAINT, INK, MARKERS, few_ticks, letter_panels, picture

QUESTION = "what is learned first?"
STRENGTHS, FIRST = np.array([3.0, 1.5, 0.5]), 1e-3
SPREAD = np.array([0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0])
MODEL, FINE = "classics.deep_linear_modes", {"rtol": 1e-10, "atol": 1e-14}
HALF = ["half: a[i] - s[i] / 2"]  # events of all runs of MODEL, so that one right-hand side is compiled


def of_matrices(times: np.ndarray) -> np.ndarray:
    """The modes (t, 3) of three 3 x 3 layers, balanced and aligned with Sigma in random bases."""
    left, _, right = np.linalg.svd(np.random.default_rng(0).normal(size=(3, 3)))
    first, second = (np.linalg.qr(np.random.default_rng(k).normal(size=(3, 3)))[0] for k in (1, 2))
    root = np.cbrt(FIRST)
    start = {"W1": root * first @ right, "W2": root * second @ first.T, "W3": root * left @ second.T}
    given = {"params": {"Sigma": left @ np.diag(STRENGTHS) @ right}, "initial": start, "span": (0, times[-1]), "save": times}
    run = odesim.integrate("classics.deep_linear", **given, **FINE)
    return np.diagonal(np.einsum("ji,tjk,lk->til", left, run.observables["product"], right), axis1=1, axis2=2)


def half_times(layers: int) -> list[float]:
    """When a = s/2, for each of SPREAD."""
    given = {"params": {"s": SPREAD, "L": layers}, "span": (0, 70), "save": 2}
    run = odesim.integrate(MODEL, **given, events=HALF, **FINE)
    times = {event["index"][0]: float(event["t"]) for event in run.events["half"]}
    return [times[m] for m in range(len(SPREAD))]


def data(fast: bool) -> xr.Dataset:
    """two (t, mode), three (late, mode), of matrices (point, mode), and half times (layers, s). fast: the same."""
    times, late, points = np.linspace(0, 10, 401), np.linspace(0, 32, 641), np.linspace(0, 32, 17)
    modes = [
        odesim.integrate(MODEL, params={"s": STRENGTHS, "L": layers}, span=(0, at[-1]), save=at, events=HALF, **FINE).y["a"]
        for layers, at in ((2, times), (3, late))
    ]
    return xr.Dataset(
        {
            "two": (("t", "mode"), modes[0]),
            "three": (("late", "mode"), modes[1]),
            "matrices": (("point", "mode"), of_matrices(points)),
            "half": (("layers", "s"), [half_times(2), half_times(3)]),
            "strength": ("mode", STRENGTHS),
        },
        coords={"t": times, "late": late, "point": points, "layers": [2, 3], "s": SPREAD},
        attrs={"first": FIRST, **FINE},
    )


def draw(ds: xr.Dataset) -> Figure:
    """Three panels in a row; it computes only ln(s/a(0) - 1) / (2 s)."""
    with picture("Modes are learned one after another", 55.0, width=160.0) as figure:
        left, middle, right = figure.subplots(1, 3)
        for j, s in enumerate(ds.strength.values):
            left.plot(ds.t, ds.two[:, j], color=CATEGORIES[j], ls=DASHES[j], label=f"s = {s:g}")
            middle.plot(ds.late, ds.three[:, j], color=CATEGORIES[j], ls=DASHES[j])
            middle.plot(ds.point, ds.matrices[:, j], "o", ms=2.5, mfc="none", color=INK, mew=0.6)
        for axes, title, end in ((left, "two layers", 10), (middle, "three layers", 32)):
            axes.set(xlabel="t", ylabel="mode a", xlim=(0, end), ylim=(-0.1, 3.3), title=title)
        left.legend(loc="center right", bbox_to_anchor=(1.0, 0.68))
        for j, layers in enumerate(ds.layers.values):
            right.plot(1 / ds.s, ds.half.sel(layers=layers), color=CATEGORIES[j], ls="", marker=MARKERS[j], ms=3, label=f"L = {layers}")
        fine = np.linspace(0.5, 4, 200)
        right.plot(1 / fine, np.log(fine / ds.first - 1) / (2 * fine), color=FAINT, lw=0.8, label="ln(s/a(0) − 1) / 2s")
        right.set(xlabel="1 / s", ylabel="time of a = s/2", ylim=(0, None))
        right.legend(loc="upper left")
        few_ticks(left, middle, right)
        letter_panels(left, middle, right)
    return figure


def expected(ds: xr.Dataset) -> Iterator[Feature]:
    """The closed form of two layers, digits of three, the matrices on the modes, half times, and which is steeper."""
    grown = np.exp(2 * STRENGTHS * ds.t.values[:, None])
    closed = STRENGTHS * grown / (grown - 1 + STRENGTHS / FIRST)
    yield Feature("two layers, distance from the closed form", float(np.abs(ds.two.values - closed).max()), 0.0, 1e-8)
    yield Feature("three layers, a of s = 1/2 at t = 10", float(ds.three.sel(late=10)[2]), 0.00785878, 6e-9, SCRIPT)
    yield Feature("three layers, a of s = 1/2 at t = 20", float(ds.three.sel(late=20)[2]), 0.45506421, 6e-9, SCRIPT)
    yield Feature("matrices less modes", float(np.abs(ds.matrices.values - ds.three.sel(late=ds.point).values).max()), 0.0, 1e-7)
    for s in ds.s.values:
        found = float(ds.half.sel(layers=2, s=s))
        yield Feature(f"half time of s = {s:g}, two layers", found, float(np.log(s / FIRST - 1) / (2 * s)), 1e-7)
    order = float((np.diff(ds.half.values, axis=1) >= 0).sum())
    yield Feature("stronger modes that are learned later", order, 0.0, 0.0)

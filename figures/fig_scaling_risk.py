"""How the risk of one-pass SGD falls on power laws: with time, by two exponents, and with compute, at the best number of modes.

Stands beside Figs. 2 to 4 of paquette2024phases, without random features. a, risk against steps for three pairs (a, b) of exponents of
inputs and target, and the slopes that theory gives; b, exponent between t = 1e4 and 1e5 against b (dots), the smaller one of those of the
target, (2a + 2b - 1)/(2a), and of the noise of SGD, 2 - 1/(2a), which meet at b = a; c, risk against compute N t of the first N modes,
a = 1, b = .8, where what is not learned is noise of labels, and the slope of the best N, -2 a r/(1 + 2 a).
"""

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from scipy.special import zeta

import odesim
from odesim.plot.figures import THEORY, Feature
from odesim.plot.style import CATEGORIES, INK, few_log_ticks, few_ticks, letter_panels, ordered_colors, picture

QUESTION = "how does it scale?"
CASES = ((1.0, 0.8, 0.1), (0.8, 0.5, 0.3), (0.8, 1.2, 0.3))
RECORDED = (1.281714519e-5, 8.113973581e-5, 8.751949159e-7)
"""Risks of CASES at t = 1e4, by the eigenvectors of the matrix of the flow."""
WIDTHS = (8, 13, 21, 35, 57, 92, 150, 246, 400)
COMPUTE, FINE = np.logspace(2, 6, 81), np.linspace(0.4, 1.6, 241)
STIFF: dict[str, Any] = {"method": "rodas5p", "rtol": 1e-8, "atol": 1e-15}


def of_target(a: Any, b: Any) -> Any:
    """r of the risk without the noise of SGD."""
    return (2 * a + 2 * b - 1) / (2 * a)


def theory(a: Any, b: Any) -> Any:
    """The exponent of the risk."""
    return np.minimum(of_target(a, b), 2 - 1 / (2 * a))


def of_both(a: float, b: float, t: Any) -> Any:
    """R (time,) to the leading order of the Volterra equation for late t, of 3000 modes: F/(1 - k) and K int F/(1 - k)^2, k = int K."""
    j, g = np.arange(1.0, 3001), 0.4
    lam, D = j ** (-2 * a), j ** (-2 * b)
    fall = np.exp(-2 * g * np.outer(t, lam))
    k = g * lam.sum() / 2
    result: Any = (fall @ (lam * D)) / 2 / (1 - k) + g**2 * (fall @ lam**2) * D.sum() / (4 * g) / (1 - k) ** 2
    return result


def risk(params: dict[str, float], n: int, times: Any) -> np.ndarray:
    """R (time,)."""
    run = odesim.integrate("scaling.sgd", params=params, sizes={"n": n}, span=(0, times[-1]), save=[0, *times], **STIFF)
    return run.observables["R"][1:]


def of_width(N: int) -> np.ndarray:
    """R (compute,) of the first N modes; what stands beyond them adds its variance to the noise of labels."""
    tail = float(zeta(3.6, N + 1))
    return risk({"a": 1.0, "b": 0.8, "g": 0.1, "s2": tail}, N, COMPUTE / N)


def data(fast: bool) -> xr.Dataset:
    """R (case, time), exponents (a, b) and (a, fine), R (N, spent). fast: 4 values of b, not 13."""
    times = np.logspace(0, 4, 41)
    a, b = np.array([0.9, 1.1, 1.4]), np.linspace(0.4, 1.6, 4 if fast else 13)
    ends = [[risk({"a": x, "b": y, "g": 0.4, "s2": 0.0}, 3000, [1e4, 1e5]) for y in b] for x in a]
    return xr.Dataset(
        {
            "R": (("case", "time"), [risk({"a": x, "b": y, "g": g, "s2": 0.0}, 3000, times) for x, y, g in CASES]),
            "exponent": (("a", "b"), -np.diff(np.log10(ends), axis=2)[..., 0]),
            "theory": (("a", "fine"), theory(a[:, None], FINE)),
            "of_width": (("N", "spent"), [of_width(N) for N in WIDTHS]),
        },
        coords={"time": times, "a": a, "b": b, "N": list(WIDTHS), "spent": COMPUTE},
    )


def draw(ds: xr.Dataset) -> Figure:
    """Three panels; it computes only lines of theory."""
    with picture("Power laws of one-pass SGD", 58.0, width=160.0) as figure:
        left, middle, right = figure.subplots(1, 3)
        for k, (a, b, _) in enumerate(CASES):
            left.plot(ds.time, ds.R[k], color=CATEGORIES[k], label=f"a = {a:g}, b = {b:g}")
            late = ds.time.values[ds.time > 300]
            left.plot(late, 0.45 * float(ds.R[k, -1]) * (late / 1e4) ** -theory(a, b), color=CATEGORIES[k], lw=0.7, ls="--")
        left.plot([], [], color=INK, lw=0.7, ls="--", label="theory")
        left.set(xscale="log", yscale="log", xlabel="steps t", ylabel="risk R", title="no label noise", ylim=(1e-7, 8))
        left.legend(loc="lower left")
        for k, a in enumerate(ds.a.values):
            middle.plot(FINE, ds.theory.sel(a=a), color=CATEGORIES[k], lw=0.8)
            middle.plot(ds.b, ds.exponent.sel(a=a), "os^"[k], color=CATEGORIES[k], ms=2.8, label=f"a = {a:g}")
        middle.set(xlabel="b", ylabel="exponent", title="a kink at b = a", xlim=(0.35, 1.65), ylim=(0.8, 2.05))
        middle.legend(loc="upper left")
        for k, N in enumerate(ds.N.values):
            right.plot(
                ds.spent.values,
                ds.of_width.sel(N=N).values,
                color=ordered_colors(len(ds.N))[k],
                lw=0.9,
                label=f"N = {N}" if k % 4 == 0 else None,
            )
        slope = 2 * 1.3 / 3
        right.plot(ds.spent, 0.35 * ds.spent**-slope, color=INK, lw=0.7, ls="--", label="theory")
        right.set(xscale="log", yscale="log", xlabel="compute N t", ylabel="risk R", title="a = 1, b = 0.8", ylim=(1e-6, 1))
        right.legend(loc="lower left")
        few_ticks(middle)
        few_log_ticks(left, right)
        letter_panels(left, middle, right)
    return figure


def expected(ds: xr.Dataset) -> Iterator[Feature]:
    """Recorded risks; exponents, but for the other power; the envelope over N; each N alone stops at what it cannot learn."""
    for k, (a, b, _) in enumerate(CASES):
        yield Feature(f"R at t = 1e4, a = {a:g}, b = {b:g}, over the one recorded", float(ds.R[k, -1]) / RECORDED[k], 1.0, 1e-6, THEORY)
    for a, b in product(ds.a.values, ds.b.values):
        # what the other part, and modes beyond n for small b, still change: more where both parts fall nearly alike; and the next order
        wide = abs(-float(np.diff(np.log10(of_both(a, b, [1e4, 1e5])))[0]) - float(theory(a, b))) + 0.01
        yield Feature(f"exponent, a = {a:g}, b = {b:g}", float(ds.exponent.sel(a=a, b=b)), theory(a, b), wide, THEORY)
    best = ds.of_width.min("N")
    slope = -float(np.log10(best.sel(spent=1e6, method="nearest") / best.sel(spent=1e4, method="nearest"))) / 2
    yield Feature("exponent of compute, best N", slope, 2.6 / 3, 0.02, THEORY)
    for N in (8, 21):
        rest = float(zeta(3.6, N + 1)) / 2 / (1 - 0.05 * float((np.arange(1.0, N + 1) ** -2).sum()))
        yield Feature(f"R in the end, N = {N}, over what is not learned", float(ds.of_width.sel(N=N)[-1]) / rest, 1.0, 1e-3, THEORY)

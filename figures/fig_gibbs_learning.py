"""What masked tokens teach: relative efficiency of a masked sample beside the gap, and the flow of training.

Stands beside Theorems 1 and 2 of li2024promises, which has no such pictures: a, every eigenvalue of I^-1 I_k of five signs (all fields
and pairs, J = 0.2) lies on or above gap_k, the least ones on it for k >= 3; b, the flow on the masked loss of four signs ends at
the truth, at the least eigenvalue of I_k.
"""

from collections.abc import Iterator
from math import comb

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import odesim
from odesim.models.gibbs._kernels import exact, gap
from odesim.models.gibbs._laws import equal_pairs
from odesim.models.gibbs.claims import information, relative, statistics
from odesim.plot.figures import Feature
from odesim.plot.style import CATEGORIES, DASHES, FAINT, few_log_ticks, few_ticks, letter_panels, picture

QUESTION = "what is learned first?"
N, J, TIMES = 5, 0.2, np.linspace(0, 60, 121)
START, FINE = np.eye(10)[0] + np.eye(10)[4], {"rtol": 1e-11, "atol": 1e-14}


def trained(k: int) -> np.ndarray:
    """|theta - theta*| at TIMES of the flow on the loss of k masked tokens, four signs, from one field and one pair of 1."""
    fit = {"N": comb(4, k) * 2 ** (4 - k), "R": 2**k}
    run = odesim.integrate("gibbs.training_flow", params={"k": k}, initial={"theta": START}, sizes=fit, span=(0, 60), save=TIMES, **FINE)
    return np.asarray(run.observables["error"])


def slope(t: np.ndarray, apart: np.ndarray) -> float:
    """The rate at which apart (t,) falls from 1e-4 to 1e-8."""
    late = (apart < 1e-4) & (apart > 1e-8)
    return float(-np.polyfit(t[late], np.log(apart[late]), 1)[0])


def data(fast: bool) -> xr.Dataset:
    """gap (k), efficiency (k, direction), distance |theta - theta*| (masked, t) its rate and the least
    eigenvalue of I_k (masked). fast: the same."""
    law, F = equal_pairs({"S": 2**N}, {"q": 2, "J": J, "h": 0.0}), statistics(N)
    true, masked = equal_pairs({"S": 16}, {"q": 2, "J": J, "h": 0.0}), range(1, 5)
    apart = np.array([trained(k) for k in masked])
    return xr.Dataset(
        {
            "gap": ("k", [gap(exact(law, 2, k), law) for k in range(1, N + 1)]),
            "efficiency": (("k", "direction"), [relative(law, F, k) for k in range(1, N + 1)]),
            "distance": (("masked", "t"), apart),
            "rate": ("masked", [slope(TIMES, x) for x in apart]),
            "least": ("masked", [np.linalg.eigvalsh(information(true, statistics(4), k))[0] for k in masked]),
        },
        coords={"k": np.arange(1, N + 1), "masked": list(masked), "t": TIMES},
        attrs={"n": N, "J": J},
    )


def draw(ds: xr.Dataset) -> Figure:
    """Left: efficiency against the gap. Right: distance from the truth. It computes nothing."""
    with picture("Masking more teaches more", 60.0, width=120.0) as figure:
        left, right = figure.subplots(1, 2)
        for j, k in enumerate(ds.k.values):
            found = ds.efficiency.sel(k=k)
            left.plot(np.full(found.size, float(ds.gap.sel(k=k))), found, "o", ms=2.5, mfc="none", color=CATEGORIES[j], label=f"k = {k}")
        left.plot([0.05, 1], [0.05, 1], color=FAINT, lw=0.8, ls=(0, (1, 1.5)))
        left.set(xscale="log", yscale="log", xlabel="gap$_k$", ylabel="eigenvalues of $I^{-1} I_k$")
        for j, k in enumerate(ds.masked.values):
            right.plot(ds.t, ds.distance.sel(masked=k), color=CATEGORIES[j], ls=DASHES[j % 4], label=f"k = {k}")
        right.set(yscale="log", ylim=(1e-8, 2), xlabel="t", ylabel=r"$|\theta - \theta^*|$")
        for axes in (left, right):
            axes.legend(loc="lower right" if axes is left else "upper right")
            few_log_ticks(axes)
        few_ticks(right)
        letter_panels(left, right)
    return figure


def expected(ds: xr.Dataset) -> Iterator[Feature]:
    """Gaps and least eigenvalues to six digits; every direction on or above the diagonal; more masked tokens, a faster flow."""
    gaps, least = (0.063264, 0.152784, 0.288973, 0.520102, 1.0), (0.063377, 0.152846, 0.288973, 0.520102, 1.0)
    for k, want in enumerate(gaps, 1):
        yield Feature(f"gap_{k}", float(ds.gap.sel(k=k)), want, 5e-7)
    for k, x in enumerate(least, 1):
        yield Feature(f"least efficiency, k = {k}", float(ds.efficiency.sel(k=k).min()), x, 5e-7)
    below = float((ds.efficiency < ds.gap - 1e-12).sum())
    yield Feature("directions below the gap", below, 0.0, 0.0)
    for k in ds.masked.values:
        # the next direction has not quite died out
        yield Feature(f"rate of training over the least eigenvalue, k = {k}", float((ds.rate / ds.least).sel(masked=k)), 1.0, 0.02)

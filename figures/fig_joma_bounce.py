"""Linear and nonlinear MLPs: one component wins, or the salient ones lead and the others catch up; how deep the entropy dips.

Stands beside the slides of tian2023joma for Theorems 2 and 3: a, with a linear MLP and attention by exp one component runs away at
t* = sqrt(pi/2) / max Delta, the others stop at what erf(v / sqrt 2) / Delta leaves them; b, with a nonlinear MLP all components reach
mu, the largest first; c, the entropy of attention of both; d, by how much the entropy falls below its end for every pair mu, from
v = 0.01: a phase diagram of an ensemble, with the four depths of a table of an independent program.
"""

from collections.abc import Iterator

import numpy as np
import xarray as xr
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from scipy.special import erf, erfinv

import odesim
from odesim.plot.figures import SCRIPT, THEORY, Feature
from odesim.plot.labels import end_labels, place_labels
from odesim.plot.style import CATEGORIES, DASHES, INK, SEQUENTIAL, few_ticks, letter_panels, new_figure, ordered_colors, project_style

QUESTION = "why sparse attention?"
DELTA, MU = np.array([0.2, 0.5, -0.7, 0.9, 1.0]), np.array([0.5, 1.0, 1.5, 2.0, 2.5])
T_STAR, START = float(np.sqrt(np.pi / 2)), 0.01
DEPTHS = {1.0: 3.8e-5, 1.5: 3.3e-3, 2.0: 2.75e-2, 2.5: 6.6e-2}
FINE = {"rtol": 1e-10, "atol": 1e-13}


def entropy_of(z: np.ndarray) -> np.ndarray:
    """The entropy (...) of softmax(z) along the last axis."""
    p = np.exp(z - z.max(axis=-1, keepdims=True))
    p /= p.sum(axis=-1, keepdims=True)
    return np.asarray(-(p * np.log(p)).sum(axis=-1))


def depths(mu: np.ndarray) -> np.ndarray:
    """How far the entropy falls below its end (members,), for mu (members, 2) from v = START."""
    runs = odesim.ensemble("joma.nonlinear", params={"mu": mu}, initial={"v": START}, span=(0, 30), save=2401, observe="entropy")
    return np.maximum(entropy_of(mu**2 / 2) - runs["entropy"].values.min(axis=1), 0.0)


def data(fast: bool) -> xr.Dataset:
    """v and entropy of both (t or late, component), depth (mu_1, mu_0) and those of the table. fast: 31 points an axis, not 61."""
    times, late = T_STAR * (1 - np.logspace(0, -6, 200)), np.linspace(0, 12, 241)
    linear = odesim.integrate("joma.linear", params={"Delta": DELTA}, span=(0, times[-1]), save=times, **FINE)
    bent = odesim.integrate("joma.nonlinear", params={"mu": MU}, initial={"v": START}, span=(0, 12), save=late, **FINE)
    axis = np.linspace(0.2, 2.6, 31 if fast else 61)
    grid = np.stack([part.ravel() for part in np.meshgrid(axis, axis, indexing="ij")], axis=1)
    return xr.Dataset(
        {
            "v_linear": (("t", "component"), linear.y["v"]),
            "v_nonlinear": (("late", "component"), bent.y["v"]),
            "entropy_linear": ("t", linear.observables["entropy"]),
            "entropy_nonlinear": ("late", bent.observables["entropy"]),
            "depth": (("mu_1", "mu_0"), depths(grid).reshape(axis.size, axis.size)),
            "table": ("m", depths(np.array([[m, m / 2] for m in DEPTHS]))),
        },
        coords={"t": times, "late": late, "component": np.arange(5), "mu_0": axis, "mu_1": axis, "m": list(DEPTHS)},
        attrs={"start": START, **FINE},
    )


def draw(ds: xr.Dataset) -> Figure:
    """Four panels; it computes only t / t*."""
    with project_style():
        figure = new_figure(112.0, width=130.0)
        (linear, bent), (entropies, phase) = figure.subplots(2, 2)
        labels = []
        for axes, x, v, names in (
            (linear, ds.t / T_STAR, ds.v_linear, [f"Δ = {d:g}".replace("-", "−") for d in DELTA]),
            (bent, ds.late, ds.v_nonlinear, [f"μ = {m:g}" for m in MU]),
        ):
            for color, column in zip(ordered_colors(5), v.values.T, strict=True):
                axes.plot(x, column, color=color)
            axes.set_ylabel("$v_l$")
            labels.append(end_labels(axes, names, list(v.values[-1])))
        linear.set(xlabel="$t / t^*$", title="linear MLP", xlim=(0, 1))
        bent.set(xlabel="t", title="nonlinear MLP", xlim=(0, 12))
        entropies.plot(ds.t / T_STAR, ds.entropy_linear, color=CATEGORIES[0], ls=DASHES[0], label="linear, against $t / t^*$")
        entropies.plot(ds.late, ds.entropy_nonlinear, color=CATEGORIES[1], ls=DASHES[1], label="nonlinear, against t")
        entropies.set(xlabel="time", ylabel="entropy of attention", xlim=(0, 12), ylim=(0, 1.75))
        entropies.legend(loc="lower right")
        shown = np.maximum(ds.depth.values, 1e-6)
        image = phase.pcolormesh(ds.mu_0, ds.mu_1, shown, norm=LogNorm(1e-5, 0.3), cmap=SEQUENTIAL, rasterized=True)
        phase.plot(ds.m, ds.m / 2, "o", ms=3, color=INK, mfc="none", mec="white")
        phase.set(xlabel="$μ_0$", ylabel="$μ_1$", title="depth of the dip")
        figure.colorbar(image, ax=phase, label="end − least entropy", extend="both")
        few_ticks(linear, bent, entropies, phase)
        letter_panels(linear, bent, entropies, phase)
        figure.suptitle("One winner, or all in order")
        place_labels(figure, labels)
    return figure


def expected(ds: xr.Dataset) -> Iterator[Feature]:
    """The conserved ratio, limits of the losers, order and rest of the nonlinear run, depths of the table, symmetry of the diagram."""
    v, end = ds.v_linear.values, ds.v_nonlinear.values[-1]
    ratio = erf(v[-60:] / np.sqrt(2)) / DELTA / (ds.t.values[-60:, None] / T_STAR)
    # near t* a run loses digits of 1 - t/t*
    yield Feature("erf(v / sqrt 2) / Delta, over t / t*: largest distance from 1", float(np.abs(ratio - 1).max()), 0.0, 1e-6)
    yield Feature("linear: the winner at 1 - t/t* = 1e-6", float(v[-1, 4]), float(np.sqrt(2) * erfinv(1 - 1e-6)), 1e-4)
    for l in range(4):  # to what is left at 1e-6 of t*
        want = float(np.sqrt(2) * erfinv(DELTA[l]))
        yield Feature(f"linear: where Delta = {DELTA[l]:g} stops", float(v[-1, l]), want, 1e-5)
    yield Feature("linear: saved times at which the entropy rises", float((np.diff(ds.entropy_linear) > 1e-9).sum()), 0.0, 0.0)
    halves = [float(ds.late[np.argmax(ds.v_nonlinear.values[:, l] >= MU[l] / 2)]) for l in range(5)]
    yield Feature("nonlinear: components that pass mu/2 before a larger one", float((np.diff(halves) > 0).sum()), 0.0, 0.0)
    last, least = float(ds.entropy_nonlinear[-1]), float(ds.entropy_nonlinear.min())
    # the slowest component is within 2e-6 of mu at t = 12
    yield Feature("nonlinear: the entropy at t = 12, that of v = mu", last, float(entropy_of(MU**2 / 2)), 1e-5, THEORY)
    # 0 without a bounce, 1 if all attention came back
    fell = float(ds.entropy_nonlinear[0]) - least
    yield Feature("nonlinear: share of its fall by which the entropy rises again", (last - least) / fell, 0.25, 0.2)
    yield Feature("nonlinear: the largest component at t = 12 over mu", float(end[4] / MU[4]), 1.0, 1e-6, THEORY)
    for m, depth in DEPTHS.items():
        # the digits of the table, and 2401 saved times
        yield Feature(f"depth over its digits, mu = ({m:g}, {m / 2:g})", float(ds.table.sel(m=m)) / depth, 1.0, 0.02, SCRIPT)
    d = ds.depth.values
    yield Feature("depth of (a, b) less that of (b, a), largest", float(np.abs(d - d.T).max()), 0.0, 1e-5)
    yield Feature("depth of equal components, largest", float(np.diagonal(d).max()), 0.0, 1e-9)

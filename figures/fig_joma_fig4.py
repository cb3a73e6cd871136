"""The entropy of attention falls, then bounces back: ten components of v grow to mu, the salient ones first.

Stands beside Fig. 4 of tian2023joma: dv/dt = (mu - v) softmax(v^2 / 3), v(0) = 0.05, 5000 Euler steps of 0.02 as in the
paper's code; here the exact flow lies beside them, and what the steps cost in entropy below.
"""

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import odesim
from odesim.lab.training.randomness import TorchGenerator
from odesim.plot.figures import SCRIPT, Feature
from odesim.plot.labels import end_labels, place_labels
from odesim.plot.style import CATEGORIES, FAINT, INK, SMALL, few_ticks, letter_panels, new_figure, ordered_colors, project_style

QUESTION = "why sparse attention?"
MODEL = "joma.nonlinear_softmax"
SIZE, T, STEP, STEPS, V0 = 10, 3.0, 0.02, 5000, 0.05
RTOL, ATOL = 1e-10, 1e-12
V_END = (0.954, 1.067, 1.594, 2.180, 2.335, 2.362, 2.894, 2.899, 3.305, 3.689)


def targets() -> np.ndarray:
    """mu (10,), sorted: 1 + 3 rand(10) with torch's seed 0, as in the paper's code."""
    return np.sort(1 + 3 * TorchGenerator(0).random((SIZE,)))


def entropy_at(v: np.ndarray) -> float:
    """The entropy of softmax(v^2 / T) for v (M,)."""
    p = np.exp((v**2 - np.max(v**2)) / T)
    p /= p.sum()
    return float(-np.sum(p * np.log(p)))


def data(fast: bool) -> xr.Dataset:
    """v and entropy by Euler steps (iteration, component) and of the exact flow (t, component), and the difference in entropy.

    fast: every tenth time of the exact flow.
    """
    mu = targets()
    every = 10 if fast else 1
    times = STEP * np.arange(STEPS + 1)
    setting = {"params": {"mu": mu, "T": T}, "initial": {"v": V0}, "span": (0.0, STEP * STEPS)}
    euler = odesim.integrate(MODEL, **setting, method="euler", step=STEP, save=times)
    flow = odesim.integrate(MODEL, **setting, method="dop853", rtol=RTOL, atol=ATOL, save=times[::every])
    return xr.Dataset(
        {
            "v_euler": (("iteration", "component"), euler.y["v"]),
            "entropy_euler": ("iteration", euler.observables["entropy"]),
            "v_flow": (("t", "component"), flow.y["v"]),
            "entropy_flow": ("t", flow.observables["entropy"]),
            "deviation": ("t", euler.observables["entropy"][::every] - flow.observables["entropy"]),
            "mu": ("component", mu),
            "entropy_limit": ((), entropy_at(mu)),
        },
        coords={"iteration": np.arange(STEPS + 1), "t": times[::every], "component": np.arange(SIZE)},
        attrs={"model": MODEL, "T": T, "v0": V0, "step": STEP, "steps": STEPS, "rtol": RTOL, "atol": ATOL},
    )


def draw(ds: xr.Dataset) -> Figure:
    """Left: v. Right: entropy with the exact flow dashed, and their difference below. It computes nothing."""
    with project_style():
        figure = new_figure(70.0)
        cells = figure.add_gridspec(3, 2)
        left, upper, lower = (figure.add_subplot(cell) for cell in (cells[:, 0], cells[:2, 1], cells[2, 1]))
        colors = ordered_colors(ds.sizes["component"])
        for color, v in zip(colors, ds.v_euler.values.T, strict=True):
            left.plot(ds.iteration, v, color=color)
        left.set_ylabel("$v_l$")
        labels = end_labels(left, [str(j) for j in ds.component.values], list(ds.v_euler.values[-1]))

        iterations = ds.t / ds.step
        upper.plot(ds.iteration, ds.entropy_euler, color=CATEGORIES[5], lw=2.2, label="Euler, step 0.02")
        upper.plot(iterations, ds.entropy_flow, color=INK, lw=0.8, ls=(0, (4, 2)), label="exact flow")
        upper.axhline(float(ds.entropy_limit), color=FAINT, lw=0.6, ls=(0, (1, 1.5)))
        upper.text(1.0, float(ds.entropy_limit), "t → ∞", transform=upper.get_yaxis_transform(), fontsize=SMALL, ha="right", va="bottom")
        low = int(np.argmin(ds.entropy_euler.values))
        upper.annotate(
            f"{float(ds.entropy_euler[low]):.4f} at {low}", (low, float(ds.entropy_euler[low])), (0.36, 0.03), textcoords="axes fraction",
            fontsize=SMALL, arrowprops={"arrowstyle": "-", "lw": 0.4, "color": FAINT},
        )  # fmt: skip
        upper.set_ylabel("entropy")
        upper.legend(loc="upper right")
        upper.tick_params(labelbottom=False)
        lower.plot(iterations, 1e3 * ds.deviation, color=CATEGORIES[1])
        lower.set_ylabel("Euler − flow\n(10$^{-3}$)")
        for axes in (left, upper, lower):
            axes.set_xlim(0, ds.iteration.values[-1])
            few_ticks(axes, x=3 if axes is left else 4)
        for axes in (left, lower):
            axes.set_xlabel("iteration")
        letter_panels(left, upper, lower)
        figure.suptitle("The entropy of attention bounces")
        figure.align_ylabels([upper, lower])
        place_labels(figure, [labels])
    return figure


def expected(ds: xr.Dataset) -> list[Feature]:
    """Checks of the paper's run: its entropy, times to 0.9 mu, v at the end, and the distance from the exact flow."""
    s, v, mu = ds.entropy_euler.values, ds.v_euler.values, ds.mu.values
    low = int(np.argmin(ds.entropy_flow.values))
    features = [
        # each tolerance is the last digit of a script that steps as the paper's code does
        Feature(f"entropy at iteration {k}", float(s[k]), target, tolerance, SCRIPT)
        for k, target, tolerance in ((0, 2.302585, 1e-6), (1000, 1.0576, 1e-4), (2000, 1.3060, 1e-4), (4999, 1.549312, 1e-6))
    ]
    features += [
        Feature("entropy of the Euler run: smallest", float(s.min()), 0.941570, 1e-6, SCRIPT),
        Feature("entropy of the Euler run: iteration of the smallest", float(s.argmin()), 669.0, 0.0, SCRIPT),
        Feature("entropy as t -> oo", float(ds.entropy_limit), 1.621577, 1e-6),
        Feature("entropy of the exact flow: smallest", float(ds.entropy_flow.min()), 0.940723, 1e-6, SCRIPT),
        Feature("entropy of the exact flow: time of the smallest", float(ds.t[low]), 13.40, 0.011, SCRIPT),  # half a step
        Feature("entropy, Euler - exact flow: largest", float(np.abs(ds.deviation).max()), 2.1e-3, 5e-5, SCRIPT),
    ]
    for j, target in ((9, 475), (4, 4025)):
        passed = float(np.argmax(v[:, j] >= 0.9 * mu[j]))
        features.append(Feature(f"iteration at which v[{j}] passes 0.9 mu[{j}]", passed, float(target), 0.0, SCRIPT))
    # three decimals, some of them rounded twice
    features += [Feature(f"v[{j}] at iteration 4999", float(v[4999, j]), target, 6e-4, SCRIPT) for j, target in enumerate(V_END)]
    return features

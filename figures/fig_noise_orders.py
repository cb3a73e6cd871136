"""What a step of a stochastic equation costs: orders of paths and of means, an area that no step sees, balance by noise, a double well.

Stands beside Chapters 10 and 14 of kloeden1992numerical. a, error of paths at t = 1 against the step, by halving it along the same paths,
of noise in proportion to the state by three methods, and of two channels that do not commute with the law (t h/4)^(1/2) (dashed); b, error
of the second moment of the first, exactly: Milstein's correction does nothing for means; c, balance of two layers under the noise of SGD,
eight paths in Ito's sense, which fall as their law says (dashed), and one in Stratonovich's, which stays; d, density of a double well in
the end beside exp(-V/T), T = .25.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import odesim
from odesim.plot.figures import THEORY, Feature
from odesim.plot.style import CATEGORIES, FAINT, INK, few_log_ticks, few_ticks, letter_panels, picture

QUESTION = "when does it fail?"
MU, S, T = 1.5, 0.8, 0.25
CASES = (("noise.geometric", "em", "x"), ("noise.geometric", "milstein", "x"), ("noise.area", "em", "y"), ("noise.geometric", "sriw1", "x"))
RECORDED = {"Euler": (24.3138912125, 29.7797078360, 33.4655152859), "Milstein": (24.7347423691, 30.0895349041, 33.6579753983)}
"""Second moments at t = 1 of steps of 1/8, 1/16, 1/32, of which 38.0918367254 is the limit, by another script."""


def second_moment(h: np.ndarray, extra: float) -> np.ndarray:
    """E x^2 (step,) at t = 1 from 1: extra is s^4/2 for Milstein's method."""
    return ((1 + MU * h) ** 2 + S**2 * h + extra * h**2) ** np.round(1 / h)


def balances(calculus: str, members: int) -> xr.Dataset:
    """Paths of two layers, eta = .02, in steps of .0025."""
    system = replace(odesim.load_model("noise.two_layer"), calculus=calculus)
    return odesim.ensemble(system, span=(0, 10), step=0.0025, save=401, members=members, observe=("balance", "loss"), seed=4)


def data(fast: bool) -> xr.Dataset:
    """errors (case, step), moments (rule, h), balances and their laws (path, time), density (place). fast: 2,000 paths, not 20,000."""
    members = 2_000 if fast else 20_000
    found = [odesim.convergence(m, method=method, step=2**-4, levels=6, members=members, span=(0, 1)) for m, method, _ in CASES]
    h = 2.0 ** -np.arange(3, 10)
    ito, other = balances("ito", 8), balances("stratonovich", 1)
    strength = 4 * ito.loss.values + 0.25
    inside = np.concatenate([np.zeros((8, 1)), np.cumsum((strength[:, 1:] + strength[:, :-1]) / 2, axis=1)], axis=1) * (10 / 400)
    edges = np.linspace(-2.2, 2.2, 45)
    x = odesim.ensemble("noise.double_well", members=100 * members, span=(0, 20), step=0.04, save=2).x.values[:, -1]
    place = (edges[1:] + edges[:-1]) / 2
    weight = np.exp(-(place**4 / 4 - place**2 / 2) / T)
    return xr.Dataset(
        {
            "error": (("case", "step"), [f[f"{name}_strong"].values for f, (_, _, name) in zip(found, CASES, strict=True)]),
            "order": ("case", [f.attrs["strong_order"][name] for f, (_, _, name) in zip(found, CASES, strict=True)]),
            "moment": (("rule", "h"), [second_moment(h, extra) for extra in (0.0, S**4 / 2)]),
            "off": (("rule", "h"), [np.exp(2 * MU + S**2) - second_moment(h, extra) for extra in (0.0, S**4 / 2)]),
            "balance": (("path", "time"), ito.balance.values),
            "law": (("path", "time"), ito.balance.values[:, :1] * np.exp(-0.02 * inside)),
            "kept": ("time", other.balance.values[0]),
            "density": ("place", np.histogram(x, edges, density=True)[0]),
            "exact": ("place", weight / (weight.sum() * (edges[1] - edges[0]))),
        },
        coords={"step": found[0].step.values, "h": h, "rule": list(RECORDED), "time": ito.time.values, "place": place},
        attrs={"members": members},
    )


def draw(ds: xr.Dataset) -> Figure:
    """Four panels; it computes only the law of the area."""
    with picture("Steps of stochastic equations", 104.0, width=140.0) as figure:
        (paths, means), (balance, density) = figure.subplots(2, 2)
        for k, label in enumerate(("geometric, Euler", "geometric, Milstein", "area, Euler", "geometric, SRIW1")):
            paths.plot(ds.step, ds.error[k], "o^sv"[k] + "-", color=CATEGORIES[k], ms=3, lw=0.8, label=label)
        paths.plot(ds.step, np.sqrt(ds.step / 4), color=INK, ls="--", lw=0.7, label=r"$\sqrt{h / 4}$")
        paths.set(xscale="log", yscale="log", xlabel="step h", ylabel="error of a path", title="paths", ylim=(3e-5, 3))
        paths.legend(loc="lower right")
        for k, method in enumerate(ds.rule.values):
            means.plot(ds.h, ds.off.sel(rule=method), "o^"[k] + "-", color=CATEGORIES[k], ms=3, lw=0.8, label=method)
        means.set(xscale="log", yscale="log", xlabel="step h", ylabel="error of E x²", title="means")
        means.legend(loc="upper left")
        for row, law in zip(ds.balance, ds.law, strict=True):
            balance.plot(ds.time, row, color=CATEGORIES[0], lw=0.7)
            balance.plot(ds.time, law, color=INK, ls="--", lw=0.5)
        balance.plot(ds.time, ds.kept, color=CATEGORIES[1], label="Stratonovich")
        balance.plot([], [], color=CATEGORIES[0], lw=0.7, label="Itô")
        balance.plot([], [], color=INK, ls="--", lw=0.5, label="law")
        balance.set(xlabel="t", ylabel="a² − b²", title="noise balances layers", xlim=(0, 10), ylim=(1.118, 1.195))
        balance.legend(loc="lower left")
        density.fill_between(ds.place, ds.density, step="mid", color=FAINT, alpha=0.5, lw=0, label="paths")
        density.plot(ds.place, ds.exact, color=CATEGORIES[0], label="exp(−V/T)")
        density.set(xlabel="x", ylabel="density", title="a double well", xlim=(-2.2, 2.2), ylim=(0, 0.62))
        density.legend(loc="upper center")
        few_log_ticks(paths, means)
        few_ticks(balance, density)
        letter_panels(paths, means, balance, density)
    return figure


def expected(ds: xr.Dataset) -> Iterator[Feature]:
    """Orders, recorded moments, the law of the balance, the density."""
    for k, ((model, method, _), want) in enumerate(zip(CASES, (0.5, 1.0, 0.5, 1.5), strict=True)):
        yield Feature(f"order of paths, {model}, {method}", float(ds.order[k]), want, 0.1, THEORY)
    for method, row in RECORDED.items():
        for h, want in zip((1 / 8, 1 / 16, 1 / 32), row, strict=True):
            yield Feature(f"E x^2, {method}, h = {h:g}", float(ds.moment.sel(rule=method, h=h)), want, 1e-8, THEORY)
        slope = float(np.polyfit(np.log(ds.h[-3:]), np.log(ds.off.sel(rule=method)[-3:]), 1)[0])
        yield Feature(f"order of E x^2, {method}", slope, 1.0, 0.02, THEORY)
    yield Feature("error of the area over its law, worst", float(np.abs(ds.error[2] / np.sqrt(ds.step / 4) - 1).max()), 0, 0.08, THEORY)
    yield Feature("balance over its law, worst", float(np.abs(ds.balance / ds.law - 1).max()), 0, 0.003, THEORY)
    yield Feature("balance kept in Stratonovich's sense", float(np.abs(ds.kept - 1.19).max()), 0, 1e-3, THEORY)
    bound = 5 * (float(ds.exact.max()) / (100 * ds.members * 0.1)) ** 0.5 + 2e-3  # a bin of .1, whose middle stands for it
    yield Feature("density, worst", float(np.abs(ds.density - ds.exact).max()), 0, bound, THEORY)

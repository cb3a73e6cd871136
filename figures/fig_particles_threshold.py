"""Noisy tokens on the circle order above a strength of attention: little by little at low beta, at once at high beta.

Stands beside the phase transition of mun2026phase: a, order r against attention K over its threshold K# = kappa beta / I_1(beta), beta = 1:
the density of infinitely many tokens (line), 64 and 200 tokens (means over runs and times), and sqrt(1/(n (1 - K/K#))) below K# (dotted);
b, beta = 4, where order that is there lasts below K# (up), and sets in by a jump at K# (down); c, the density at 1.5 K#, beta = 1, and
all tokens of the runs, each turned to its own mean angle.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import odesim
from odesim.models.particles.claims import KAPPA, order_of_density, threshold
from odesim.plot.figures import THEORY, Feature
from odesim.plot.style import CATEGORIES, FAINT, few_ticks, letter_panels, picture

QUESTION = "why low rank?"
BETAS, MODES = (1.0, 4.0), 40
SEEN = (0.25, 0.5, 0.75, 1.1, 1.25, 1.5)
"""Shares of K# at which there are tokens; near 1 they would need long times."""
TIMES = np.arange(20.0, 61.0, 5.0)


def orders(beta: float, shares: np.ndarray, first: float) -> np.ndarray:
    """a_1 (share,) of the density after a long time, from modes first^k."""
    run = odesim.ensemble(
        "particles.density", zipped={"K": shares * threshold(beta)}, params={"beta": beta, "kappa": KAPPA}, sizes={"N": MODES},
        initial={"a": first ** np.arange(MODES)}, span=(0, 1000), observe="r", method="rodas5p", rtol=1e-8, atol=1e-12,
    )  # fmt: skip
    return np.asarray(run.r.values[:, -1])


def tokens(n: int, share: float, members: int) -> tuple[np.ndarray, np.ndarray]:
    """r (member, time), and the angles (member * time * n) about their mean, of n tokens that begin at one angle."""
    run = odesim.ensemble(
        "particles.noisy_circle", params={"beta": 1.0, "kappa": KAPPA, "K": share * threshold(1.0)}, sizes={"n": n}, members=members,
        initial={"theta": 0.0}, step=0.05, span=(0, TIMES[-1]), save=TIMES, observe="r", seed=n,
    )  # fmt: skip
    theta = run.theta.values
    turned = theta - np.angle(np.exp(1j * theta).mean(axis=-1, keepdims=True))
    return run.r.values, ((turned + np.pi) % (2 * np.pi) - np.pi).ravel()


def data(fast: bool) -> xr.Dataset:
    """r (start, beta, share) of the density; rms (n, seen), square and mean (n, seen, member) of r of tokens; density and histogram.

    fast: 64 tokens alone, in 16 runs, not 64.
    """
    shares = np.unique(np.round(np.concatenate([np.linspace(0.2, 1.5, 14), np.linspace(0.9, 1.1, 21)]), 6))
    sizes, members = ((64,), 16) if fast else ((64, 200), 64)
    found: dict[int, list[Any]] = {n: [tokens(n, share, members) for share in SEEN] for n in sizes}
    each = np.array([[[(r**2).mean(axis=1), r.mean(axis=1)] for r, _ in rows] for rows in found.values()])  # (n, seen, 2, member)
    edges = np.linspace(-np.pi, np.pi, 41)
    run = odesim.integrate(
        "particles.density", params={"beta": 1.0, "kappa": KAPPA, "K": 1.5 * threshold(1.0)}, sizes={"N": MODES, "X": 161}, span=(0, 400),
        save=2, rtol=1e-8, atol=1e-12,
    )  # fmt: skip
    density = run.final_observables["density"]
    return xr.Dataset(
        {
            "r": (("start", "beta", "share"), [[orders(beta, shares, first) for beta in BETAS] for first in (0.8, 0.05)]),
            "rms": (("n", "seen"), np.sqrt(each[:, :, 0].mean(axis=-1))),
            "square": (("n", "seen", "member"), each[:, :, 0]),
            "mean": (("n", "seen", "member"), each[:, :, 1]),
            "density": ("angle", density),
            "histogram": ("bin", np.histogram(found[sizes[-1]][-1][1], edges, density=True)[0]),
        },
        coords={
            "start": ["order", "none"], "beta": list(BETAS), "share": shares, "n": list(sizes), "seen": list(SEEN),
            "angle": np.linspace(-np.pi, np.pi, 161), "bin": (edges[1:] + edges[:-1]) / 2,
        },
        attrs={"kappa": KAPPA},
    )  # fmt: skip


def draw(ds: xr.Dataset) -> Figure:
    """Three panels in a row; it computes only the law below K#."""
    with picture("Noise keeps tokens apart up to a strength of attention", 55.0, width=160.0) as figure:
        left, middle, right = figure.subplots(1, 3)
        left.plot(ds.share, ds.r.sel(beta=1, start="order"), color=CATEGORIES[0], label="n = ∞")
        for n, color, marker in zip(ds.n.values, CATEGORIES[1:], "os", strict=False):
            left.plot(ds.seen, ds.rms.sel(n=n), marker, color=color, ms=3, label=f"n = {n}")
            below = np.linspace(0.2, 1 - 2 / n**0.5, 50)
            left.plot(below, 1 / np.sqrt(n * (1 - below)), color=FAINT, lw=0.8, ls=(0, (1, 1.5)), label=f"law below $K_\\#$, n = {n}")
        left.set(xlabel="$K / K_\\#$", ylabel="order r", title="β = 1", xlim=(0.2, 1.55), ylim=(0, 1))
        left.legend(loc="upper left")
        for start, color, ls in (("order", CATEGORIES[0], "-"), ("none", CATEGORIES[3], "--")):
            middle.plot(ds.share, ds.r.sel(beta=4, start=start), color=color, ls=ls, label=f"from {start}".replace("none", "no order"))
        middle.set(xlabel="$K / K_\\#$", ylabel="order r", title="β = 4", ylim=(0, 1), xlim=(0.8, 1.2))
        middle.legend(loc="lower right")
        wide = float(ds.bin[1] - ds.bin[0])
        right.bar(ds.bin, ds.histogram, wide, color=FAINT, lw=0, label=f"tokens, n = {ds.n.values[-1]}")
        right.plot(ds.angle, ds.density, color=CATEGORIES[0], label="modes")
        right.set(xlabel="angle", ylabel="density", title="β = 1, $K = 1.5\\,K_\\#$", xlim=(-np.pi, np.pi), ylim=(0, 1.05))
        right.set_xticks([-np.pi, 0, np.pi], ["−π", "0", "π"])
        right.legend(loc="upper left")
        few_ticks(left, middle)
        letter_panels(left, middle, right)
    return figure


def expected(ds: xr.Dataset) -> Iterator[Feature]:
    """r of the density is that of its own potential; tokens have it too, up to 1/n, and below K# that of free ones, raised."""
    for beta, share in ((1, 1.1), (1, 1.5), (4, 0.98), (4, 1.02), (4, 1.5)):
        found, want = ds.r.sel(start="order", beta=beta).sel(share=share, method="nearest"), order_of_density(beta, share * threshold(beta))
        yield Feature(f"r, beta = {beta:g}, {share:g} K#, from order", float(found), want, 1e-5, THEORY)
    for share, want in ((0.98, 0.0), (1.05, order_of_density(4.0, 1.05 * threshold(4.0)))):
        found = ds.r.sel(start="none", beta=4).sel(share=share, method="nearest")
        yield Feature(f"r, beta = 4, {share:g} K#, from no order", float(found), want, 1e-5, THEORY)
    # four standard errors of runs, and terms of higher order in 1/n, which grow towards K#
    for n in ds.n.values:
        for share in (0.25, 0.5):
            squares = n * ds.square.sel(n=n, seen=share).values
            doubt = 4 * float(squares.std(ddof=1)) / squares.size**0.5
            yield Feature(f"n r^2, n = {n}, {share:g} K#", float(squares.mean()), 1 / (1 - share), doubt + 4 / n, THEORY)
        means = ds["mean"].sel(n=n, seen=1.5).values
        doubt = 4 * float(means.std(ddof=1)) / means.size**0.5
        want = float(ds.r.sel(start="order", beta=1).sel(share=1.5, method="nearest"))
        yield Feature(f"r, n = {n}, 1.5 K#, beta = 1", float(means.mean()), want, doubt + 1 / n, THEORY)

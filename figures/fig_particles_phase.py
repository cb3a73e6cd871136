"""When tokens have merged, against temperature and dimension: sharp and on one curve in many dimensions, blurred on the circle.

Stands beside the phase diagrams of geshkovski2023mathematical: the share of pairs of 32 tokens with an inner product above .999, the mean
of 64 random starts, for 90 values of beta in each dimension; the line is the time at which equal inner products, from 0, pass .999. Below,
the same without normalisation, whose tokens are exp(beta) times as fast in the end: to t = 1, 45 values of beta, 32 starts.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.integrate import quad

import odesim
from odesim.plot.figures import SCRIPT, Feature
from odesim.plot.style import INK, letter_panels, picture

QUESTION = "why low rank?"
TOKENS, TIMES, SHORT, DIMENSIONS = 32, np.linspace(0, 30, 31), np.linspace(0, 1, 41), (2, 8, 32, 128)
SPOTS = {  # at t = 5, 10, 20, 30, by an independent script: steps of .05 of order 4; 512 starts, 256 for d = 32, 64 for d = 128
    (2, 1): (0.1438, 0.8488, 0.9943, 0.9990), (2, 4): (0.2310, 0.4542, 0.5021, 0.5279), (2, 9): (0.2069, 0.3051, 0.3300, 0.3427),
    (8, 1): (0.1198, 1, 1, 1), (8, 4): (0.0338, 0.5973, 0.7820, 0.8369), (8, 9): (0.0163, 0.0918, 0.1669, 0.2022),
    (32, 1): (0.0641, 1, 1, 1), (32, 4): (0.0001, 0.9983, 1, 1), (32, 9): (0, 0.0009, 0.0118, 0.0396),
    (128, 1): (0.0037, 1, 1, 1), (128, 4): (0, 1, 1, 1), (128, 9): (0, 0, 0, 0),
}  # fmt: skip
FAST_SPOTS = {  # without normalisation, at t = .5 and 1: share, deviation of a start; steps of .4 exp(-beta) of order 4, as many starts
    (2, 1): ((0.0160, 0.0056), (0.0189, 0.0076)), (2, 4): ((0.3823, 0.0938), (0.4763, 0.104)), (2, 7): ((0.4422, 0.0896), (0.4634, 0.0868)),
    (2, 9): ((0.4357, 0.0879), (0.4581, 0.0895)), (8, 9): ((0.4337, 0.1086), (0.4953, 0.1128)),
    (8, 1): ((0, 0), (0, 0)), (8, 4): ((0.0519, 0.0964), (0.5588, 0.1978)), (8, 7): ((0.4514, 0.1333), (0.5294, 0.1497)),
    (32, 1): ((0, 0), (0, 0)), (32, 4): ((0, 0), (0.5429, 0.3525)), (32, 7): ((0.6361, 0.2126), (0.8963, 0.1496)),
    (128, 1): ((0, 0), (0, 0)), (128, 4): ((0, 0), (0.1217, 0.3044)), (128, 7): ((0.0392, 0.1490), (1, 0)),
    (32, 9): ((0.6142, 0.1930), (0.7750, 0.2117)), (128, 9): ((0.9132, 0.1405), (1, 0)),
}  # fmt: skip
READ, READ_AT_9 = {2: 512, 8: 512, 32: 256, 128: 64}, {2: 128, 8: 128, 32: 64, 128: 32}  # at 9 with steps of .8 exp(-beta)


def merged(d: int, betas: np.ndarray, draws: int) -> np.ndarray:
    """The mean share (t, beta) of merged pairs in d dimensions: one ensemble, on disk while it is needed."""
    given = {"grid": {"beta": betas}, "vary": {"x0": "normal(0,1)"}, "members": draws, "sizes": {"n": TOKENS, "d": d}}
    kept = {"span": (0, TIMES[-1]), "save": TIMES, "observe": ["merged"], "rtol": 1e-6, "atol": 1e-8, "threads": 2}
    with tempfile.TemporaryDirectory() as folder:
        share = odesim.ensemble("particles.sphere", **given, **kept, out=Path(folder) / "members.zarr")["merged"].values
    return np.asarray(share.reshape(len(betas), draws, len(TIMES)).mean(axis=1).T)


def merged_fast(d: int, betas: np.ndarray, draws: int) -> np.ndarray:
    """The same without normalisation; tokens stay in their span, so that 32 coordinates with the same products are enough."""
    x = np.random.default_rng(d).standard_normal((len(betas) * draws, TOKENS, d))
    if d > TOKENS:
        values, vectors = np.linalg.eigh(x @ x.transpose(0, 2, 1))
        x = vectors * np.sqrt(np.maximum(values, 0))[:, None]
    given = {"params": {"beta": np.repeat(betas, draws), "x0": x}, "sizes": {"n": TOKENS, "d": x.shape[2]}}
    kept = {"span": (0, SHORT[-1]), "save": SHORT, "observe": ["merged"], "rtol": 1e-6, "atol": 1e-8, "threads": 2}
    share = odesim.ensemble("particles.unnormalised", **given, **kept)["merged"].values
    return np.asarray(share.reshape(len(betas), draws, len(SHORT)).mean(axis=1).T)


def merging_time(beta: float) -> float:
    """When equal inner products pass .999; infinite if not by the end."""
    events = odesim.integrate(
        "particles.gamma",
        params={"beta": beta, "n": TOKENS},
        span=(0, 400),
        save=2,
        events=["merged: gamma - 0.999"],
        rtol=1e-9,
        atol=1e-12,
    ).events["merged"]
    return float(events[0]["t"]) if events else np.inf


def merging_time_fast(beta: float) -> float:
    """Without normalisation: the integral over g of n exp(-beta g) / (2 (1-g) ((n-1) g + 1))."""
    slowness = lambda g: TOKENS * np.exp(-beta * g) / (2 * (1 - g) * ((TOKENS - 1) * g + 1))  # noqa: E731
    return float(quad(slowness, 0, 0.999, limit=200)[0])


def data(fast: bool) -> xr.Dataset:
    """share (d, t, beta) and curve (beta); without normalisation share_fast (d, t_fast, beta_fast) and curve_fast.

    fast: 9 and 7 values of beta, 12 starts and up to 32 dimensions; without normalisation beta ends at 7.
    """
    betas, betas_fast = (np.arange(1.0, 10.0), np.arange(1.0, 8.0)) if fast else (np.linspace(0.1, 9, 90), np.linspace(0.2, 9, 45))
    dimensions, starts, starts_fast = (DIMENSIONS[:3], 12, 12) if fast else (DIMENSIONS, 64, 32)
    return xr.Dataset(
        {
            "share": (("d", "t", "beta"), np.array([merged(d, betas, starts) for d in dimensions])),
            "curve": ("beta", [merging_time(float(beta)) for beta in betas]),
            "share_fast": (("d", "t_fast", "beta_fast"), np.array([merged_fast(d, betas_fast, starts_fast) for d in dimensions])),
            "curve_fast": ("beta_fast", [merging_time_fast(float(beta)) for beta in betas_fast]),
        },
        coords={"d": list(dimensions), "t": TIMES, "beta": betas, "t_fast": SHORT, "beta_fast": betas_fast},
        attrs={"n": TOKENS, "starts": starts, "starts_fast": starts_fast},
    )


def draw_map(axes: Axes, share: xr.DataArray, curve: xr.DataArray) -> object:
    """Shares (t, beta) as a map, with the curve on it."""
    t, beta = (share[name] for name in share.dims)
    mesh = axes.pcolormesh(t, beta, share.T, cmap="viridis", vmin=0, vmax=1, shading="nearest", rasterized=True)
    axes.plot(curve, beta, color="white", lw=1.8, label="equal products")
    axes.plot(curve, beta, color=INK, lw=0.8, ls=(0, (4, 1.5)))
    axes.set(xlim=(0, float(t[-1])), ylim=(float(beta[0]), float(beta[-1])))
    return mesh


def draw(ds: xr.Dataset) -> Figure:
    """A map for each dimension, with and without normalisation, and one colour bar; it computes nothing."""
    with picture(
        "In many dimensions tokens merge at one time, on the circle in groups", 100.0, width=45.0 * ds.sizes["d"] + 12.0
    ) as figure:
        upper, lower = figure.subplots(2, ds.sizes["d"], sharey="row")
        for k, d in enumerate(ds.d.values):
            mesh = draw_map(upper[k], ds.share.sel(d=d), ds.curve)
            draw_map(lower[k], ds.share_fast.sel(d=d), ds.curve_fast)
            upper[k].set(title=f"d = {d}")
            lower[k].set(xlabel="t")
        upper[0].set_ylabel("β")
        lower[0].set_ylabel("β, without normalisation")
        figure.colorbar(mesh, ax=[*upper, *lower], label="share of merged pairs", fraction=0.05, pad=0.02)
        lower[0].legend(loc="lower right", labelcolor="white")
        letter_panels(*upper, *lower)
    return figure


def expected(ds: xr.Dataset) -> Iterator[Feature]:
    """The recorded shares; in many dimensions the curve divides merged from not merged."""
    near = 0.03 if ds.starts == 64 else 0.12  # standard errors of .015 for 64 starts and .035 for 12, at two of both sides
    for (d, beta), row in SPOTS.items():
        for t, want in zip((5, 10, 20, 30), row, strict=True):
            if d in ds.d.values:
                yield Feature(
                    f"merged, d = {d}, beta = {beta}, t = {t}", float(ds.share.sel(d=d).sel(t=t, beta=beta, method="nearest")), want, near
                )
    # four standard errors, here and there; where no start had a merged pair, or all had, one of so many may have a twentieth
    for (d, beta), row in FAST_SPOTS.items():
        for t, (want, spread) in zip((0.5, 1.0), row, strict=True):
            if d in ds.d.values and beta <= ds.beta_fast[-1]:
                yield Feature(
                    f"not normalised: merged, d = {d}, beta = {beta}, t = {t:g}",
                    float(ds.share_fast.sel(d=d).sel(t_fast=t, beta_fast=beta, method="nearest")),
                    want,
                    4 * spread * (1 / ds.starts_fast + 1 / (READ_AT_9 if beta == 9 else READ)[d]) ** 0.5 + 0.05 / ds.starts_fast,
                    SCRIPT,
                )
    if 128 in ds.d.values:
        # products of random starts deviate by 1/sqrt(d), and merging takes a time of order exp(beta (1 - product)), or exp(-beta product)
        for kind, end, late, deviations in (("", "", 3, 1), ("not normalised: ", "_fast", 0.05, 2)):
            last, curve, beta, t = ds["share" + end].sel(d=128), ds["curve" + end], ds["beta" + end], ds["t" + end]
            before, after = last.where(t < curve * np.exp(-deviations * beta / 128**0.5)), last.where(t > curve + late)
            name = f"{kind}largest share before the curve, shortened by {deviations} deviations of products, d = 128"
            yield Feature(name, float(before.max()), 0.0, 0.05)
            yield Feature(f"{kind}least share later than {late} after the curve, d = 128", float(after.min()), 1.0, 0.05)

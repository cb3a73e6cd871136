"""When tokens have merged, against temperature and dimension: sharp and on one curve in many dimensions, blurred on the circle.

Stands beside the phase diagrams of geshkovski2023mathematical: the share of pairs of 32 tokens with an inner product above .999, the mean
of 64 random starts, for 90 values of beta in each dimension; the line is the time at which equal inner products, from 0, pass .999.
"""

import tempfile
from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import odesim
from odesim.plot.figures import Feature
from odesim.plot.style import INK, letter_panels, new_figure, project_style

TOKENS, TIMES, DIMENSIONS = 32, np.linspace(0, 30, 31), (2, 8, 32, 128)
SPOTS = {  # at t = 5, 10, 20, 30, by an independent script: steps of .05 of order 4; 512 starts, 256 for d = 32, 64 for d = 128
    (2, 1): (0.1438, 0.8488, 0.9943, 0.9990), (2, 4): (0.2310, 0.4542, 0.5021, 0.5279), (2, 9): (0.2069, 0.3051, 0.3300, 0.3427),
    (8, 1): (0.1198, 1, 1, 1), (8, 4): (0.0338, 0.5973, 0.7820, 0.8369), (8, 9): (0.0163, 0.0918, 0.1669, 0.2022),
    (32, 1): (0.0641, 1, 1, 1), (32, 4): (0.0001, 0.9983, 1, 1), (32, 9): (0, 0.0009, 0.0118, 0.0396),
    (128, 1): (0.0037, 1, 1, 1), (128, 4): (0, 1, 1, 1), (128, 9): (0, 0, 0, 0),
}  # fmt: skip


def merged(d: int, betas: np.ndarray, draws: int) -> np.ndarray:
    """The mean share (t, beta) of merged pairs in d dimensions: one ensemble, on disk while it is needed."""
    given = {"grid": {"beta": betas}, "vary": {"x0": "normal(0,1)"}, "members": draws, "sizes": {"n": TOKENS, "d": d}}
    kept = {"span": (0, TIMES[-1]), "save": TIMES, "observe": ["merged"], "rtol": 1e-6, "atol": 1e-8, "threads": 2}
    with tempfile.TemporaryDirectory() as folder:
        share = odesim.ensemble("particles.sphere", **given, **kept, out=Path(folder) / "members.zarr")["merged"].values
    return np.asarray(share.reshape(len(betas), draws, len(TIMES)).mean(axis=1).T)


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


def data(fast: bool) -> xr.Dataset:
    """share (d, t, beta) and curve (beta). fast: 9 values of beta, 12 starts and up to 32 dimensions, not 90, 64 and 128."""
    betas = np.arange(1.0, 10.0) if fast else np.linspace(0.1, 9, 90)
    dimensions = DIMENSIONS[:3] if fast else DIMENSIONS
    return xr.Dataset(
        {
            "share": (("d", "t", "beta"), np.array([merged(d, betas, 12 if fast else 64) for d in dimensions])),
            "curve": ("beta", [merging_time(float(beta)) for beta in betas]),
        },
        coords={"d": list(dimensions), "t": TIMES, "beta": betas},
        attrs={"n": TOKENS, "starts": 12 if fast else 64},
    )


def draw(ds: xr.Dataset) -> Figure:
    """A map for each dimension and one colour bar; it computes nothing."""
    with project_style():
        figure = new_figure(58.0, width=45.0 * ds.sizes["d"] + 12.0)
        row = figure.subplots(1, ds.sizes["d"], sharey=True)
        for axes, d in zip(row, ds.d.values, strict=True):
            mesh = axes.pcolormesh(ds.t, ds.beta, ds.share.sel(d=d).T, cmap="viridis", vmin=0, vmax=1, shading="nearest", rasterized=True)
            axes.plot(ds.curve, ds.beta, color="white", lw=2.4)
            axes.plot(ds.curve, ds.beta, color=INK, lw=1.2)
            axes.set(xlabel="t", title=f"d = {d}", xlim=(0, 30), ylim=(float(ds.beta[0]), float(ds.beta[-1])))
        row[0].set_ylabel("β")
        figure.colorbar(mesh, ax=list(row), label="merged pairs", fraction=0.05, pad=0.02)
        letter_panels(*row)
        figure.suptitle("In many dimensions tokens merge at one time, on the circle in groups")
    return figure


def expected(ds: xr.Dataset) -> list[Feature]:
    """The recorded shares; in many dimensions the curve divides merged from not merged."""
    near = 0.03 if ds.starts == 64 else 0.12  # standard errors of .015 for 64 starts and .035 for 12, at two of both sides
    features = [
        Feature(f"merged, d = {d}, beta = {beta}, t = {t}", float(ds.share.sel(d=d).sel(t=t, beta=beta, method="nearest")), want, near)
        for (d, beta), row in SPOTS.items()
        for t, want in zip((5, 10, 20, 30), row, strict=True)
        if d in ds.d.values
    ]
    if 128 in ds.d.values:
        last = ds.share.sel(d=128)
        # products of random starts deviate by 1/sqrt(d), and merging takes a time of order exp(beta (1 - product))
        before, after = last.where(ds.t < ds.curve * np.exp(-ds.beta / 128**0.5)), last.where(ds.t > ds.curve + 3)
        features.append(
            Feature("largest share before the curve, shortened by one deviation of products, d = 128", float(before.max()), 0.0, 0.05)
        )
        features.append(Feature("least share later than 3 after the curve, d = 128", float(after.min()), 1.0, 0.05))
    return features

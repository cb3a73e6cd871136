"""Embeddings find the classes of tokens: at once, slowly where there is room to spare, and from few pairs only by chance.

Stands beside buchholz2024partitions, which has no such pictures of two-token interactions: a, the way of six tokens of two classes in the
plane, to points; b, the spread of classes in two, three and four dimensions, to exp(-4.8 t) and to 3 (R - 2)/(2 t) (dotted); c, the share
of sets of drawn pairs from which 12 tokens and 24 become two points, against their number over N ln N.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import odesim
from odesim.base.errors import counted
from odesim.models.partitions.claims import MODEL, sampled
from odesim.plot.figures import THEORY, Feature
from odesim.plot.style import CATEGORIES, DASHES, FAINT, MARKERS, few_log_ticks, few_ticks, letter_panels, picture

QUESTION = "when does it fail?"
TIMES = np.append(0, np.geomspace(0.05, 400, 121))
SHARES = (0.25, 0.5, 1.0, 1.5, 2.0, 3.0)
TOKENS = (12, 24)
DIMENSIONS = (2, 3, 4)
FINE: dict[str, Any] = {"rtol": 1e-9, "atol": 1e-13, "backend": "numpy"}


def data(fast: bool) -> xr.Dataset:
    """V (token, axis, t) in the plane, spread (dimensions, time), found (tokens, share). fast: 3 sets, not 8."""
    sets = 3 if fast else 8
    plane = odesim.integrate(MODEL, span=(0, 8), save=161, **FINE)
    runs = []
    for R in DIMENSIONS:
        start = 0.5 * np.random.default_rng(0).standard_normal((6, R))
        runs.append(odesim.integrate(MODEL, sizes={"R": R}, initial={"V": start}, span=(0, TIMES[-1]), save=TIMES, **FINE))
    return xr.Dataset(
        {
            "V": (("token", "axis", "t"), plane.y["V"].transpose(1, 2, 0)),
            "spread": (("dimensions", "time"), [run.observables["spread"] for run in runs]),
            "found": (("tokens", "share"), [[sampled(share, n, sets) / sets for share in SHARES] for n in TOKENS]),
        },
        coords={"token": np.arange(6), "t": plane.t, "dimensions": list(DIMENSIONS), "time": TIMES}
        | {"tokens": list(TOKENS), "share": list(SHARES)},
        attrs={"sets": sets},
    )


def draw(ds: xr.Dataset) -> Figure:
    """Three panels; it computes the limits."""
    with picture("Tokens of one role, one embedding", 58.0, width=170.0) as figure:
        plane, spread, found = figure.subplots(1, 3)
        for n in ds.token.values:
            color = CATEGORIES[n % 2]
            plane.plot(ds.V[n, 0], ds.V[n, 1], color=color, lw=0.7)
            plane.plot(ds.V[n, 0, 0], ds.V[n, 1, 0], "o", color=color, ms=2.5, mfc="none")
            plane.plot(ds.V[n, 0, -1], ds.V[n, 1, -1], MARKERS[n % 2], color=color, ms=4, label=f"class {n % 2}" if n < 2 else None)
        plane.set(xlabel="first axis", ylabel="second axis", xlim=(-1, 0.3), ylim=(-0.95, 0.75), aspect="equal")
        plane.legend(loc="lower right")
        for n, R in enumerate(ds.dimensions.values):
            spread.plot(ds.time[1:], ds.spread[n, 1:], color=CATEGORIES[n + 2], ls=DASHES[n], label=f"{R} dimensions")
        late = ds.time[ds.time > 3]
        for R in ds.dimensions.values[1:]:
            spread.plot(late, 3 * (R - 2) / (2 * late), color=FAINT, lw=0.7, ls=(0, (1, 1.5)))
        spread.set(xscale="log", yscale="log", xlabel="t", ylabel="spread of classes", ylim=(1e-6, 60), xlim=(0.05, 400))
        spread.legend(loc="lower left")
        for n, tokens in enumerate(ds.tokens.values):
            found.plot(ds.share, ds.found[n], color=CATEGORIES[n], marker=MARKERS[n], ms=3, ls=DASHES[n], label=f"N = {tokens}")
        found.set(xlabel="pairs over N ln N", ylabel="share of sets", title="classes found", ylim=(-0.05, 1.05))
        found.legend(loc="lower right")
        few_log_ticks(spread)
        few_ticks(plane, found)
        letter_panels(plane, spread, found)
    return figure


def expected(ds: xr.Dataset) -> Iterator[Feature]:
    """Points in the plane, laws of the spread, and how many pairs it takes."""
    F = np.where(np.arange(6)[:, None] % 2 == np.arange(6) % 2, 1.0, 0.2)
    last = ds.V[:, :, -1].values
    a, b = (int(np.abs(ds.time.values - t).argmin()) for t in (3.0, 5.0))
    yield Feature("plane: products in the end, largest deviation", float(np.abs(last @ last.T - F).max()), 0.0, 1e-6, THEORY)
    yield Feature("plane: largest distance within a class", float(np.abs(last[:2] - last[4:]).max()), 0.0, 1e-6, THEORY)
    yield Feature(
        "two dimensions: rate of the spread, t = 3 to 5",
        float(np.log(ds.spread[0, a] / ds.spread[0, b]) / (ds.time[b] - ds.time[a])),
        4.8,
        0.2,
        THEORY,
    )
    for n, R in enumerate(DIMENSIONS[1:], 1):
        value = float(ds.spread[n, -1]) * 2 * float(ds.time[-1]) / (3 * (R - 2))
        yield Feature(f"{R} dimensions: spread over 3 (R - 2)/(2 t) at t = 400", value, 1.0, 0.02, THEORY)
    for n, tokens in enumerate(TOKENS):
        of = counted(tokens, "token")
        yield Feature(f"{of}: found from N ln N / 4 pairs", float(ds.found[n, 0]), 0.0, 0.0, THEORY)
        yield Feature(f"{of}: found from 3 N ln N pairs", float(ds.found[n, -1]), 1.0, 0.0, THEORY)

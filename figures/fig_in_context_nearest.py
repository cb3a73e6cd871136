"""A head learns the rule of the nearest neighbour: it sharpens as the cube root of time, and ties are what is left.

Stands beside li2024nearest, which has no such pictures: a, the loss of a head in prompts of two, three and five points on a sphere in three
dimensions against time, to 2 (ln 2 - 1/2) g / xi, g = N/2 (dots), and two points on a circle, where near ties are more frequent by a
logarithm; b, xi against time, to (3 (ln 2 - 1/2) N t)^(1/3); c, the share of prompts in which other labels can outweigh the nearest one.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import odesim
from odesim.base.errors import counted
from odesim.models.in_context.claims import CIRCLE, MODEL, A, on_a_circle
from odesim.plot.figures import SCRIPT, THEORY, Feature
from odesim.plot.style import CATEGORIES, DASHES, FAINT, INK, few_log_ticks, letter_panels, picture

QUESTION = "why sparse attention?"
POINTS = {2: 200, 3: 20_000, 5: 20_000}
"""Points of a prompt: prompts."""
TIMES = np.append(0, np.geomspace(1, 1e5, 101))


def data(fast: bool) -> xr.Dataset:
    """xi, loss, others (points, time) on a sphere, circle (time,), and loss_at (xi,) on a circle. fast: 4000 drawn prompts, not 20,000."""
    given: dict[str, Any] = {"span": (0, TIMES[-1]), "save": TIMES, "backend": "numpy", "rtol": 1e-7, "atol": 1e-9}
    runs = [odesim.integrate(MODEL, sizes={"N": n, "S": min(many, 4000) if fast else many}, **given) for n, many in POINTS.items()]
    others = []
    for run in runs:
        behind = run.attrs["params"]["behind"]
        others.append([float((np.exp(-xi * behind).sum(axis=1) > 2).mean()) for xi in run.y["xi"]])
    size = {"S": 1600, "N": 2}
    circle = odesim.integrate(MODEL, sizes=size, params=on_a_circle(), **given)
    at = [
        odesim.integrate(MODEL, sizes=size, params=on_a_circle(), initial={"xi": xi}, span=(0, 1e-6), save=2, backend="numpy")
        for xi in CIRCLE
    ]
    return xr.Dataset(
        {
            "xi": (("points", "time"), [run.y["xi"] for run in runs]),
            "loss": (("points", "time"), [run.observables["loss"] for run in runs]),
            "others": (("points", "time"), others),
            "circle": ("time", circle.observables["loss"]),
            "loss_at": ("at", [float(run.observables["loss"][0]) for run in at]),
        },
        coords={"points": list(POINTS), "time": TIMES, "at": list(CIRCLE)},
    )


def draw(ds: xr.Dataset) -> Figure:
    """Three panels; it computes the limits."""
    with picture("The label of the nearest point", 56.0, width=170.0) as figure:
        loss, sharp, others = figure.subplots(1, 3)
        t = ds.time[1:]
        dots = ds.time[37::8]
        for n, points in enumerate(ds.points.values):
            look = {"color": CATEGORIES[n], "ls": DASHES[n], "label": counted(int(points), "point")}
            loss.plot(t, ds.loss[n, 1:], **look)
            sharp.plot(t, ds.xi[n, 1:], **look)
            seen = ds.others[n] > 0
            others.plot(ds.time[seen], ds.others[n][seen], **look)
            limit = (3 * A * points * dots) ** (1 / 3)
            sharp.plot(dots, limit, "o", color=INK, ms=1.2, label=None if n else "late law")
            loss.plot(dots, A * points / limit, "o", color=INK, ms=1.2)
        loss.plot(t, ds.circle[1:], color=FAINT, lw=0.8, label="2 on a circle")
        loss.set(xscale="log", yscale="log", xlabel="t", ylabel="loss", xlim=(1, 1e5), ylim=(6e-3, 3))
        sharp.set(xscale="log", yscale="log", xlabel="t", ylabel="ξ", xlim=(1, 1e5))
        others.set(xscale="log", yscale="log", xlabel="t", ylabel="share where others can win", xlim=(1, 1e5), ylim=(3e-4, 1.5))
        loss.legend(loc="upper right", ncols=2)
        sharp.legend(handles=sharp.lines[1:2], loc="upper left")
        few_log_ticks(loss, sharp, others)
        letter_panels(loss, sharp, others)
    return figure


def expected(ds: xr.Dataset) -> Iterator[Feature]:
    """Losses on a circle, the exponents, and their factor."""
    for xi, want in CIRCLE.items():
        yield Feature(f"two points on a circle: loss at xi = {xi}", float(ds.loss_at.sel(at=xi)), want, 6e-7, SCRIPT)
    late = [int(np.abs(ds.time.values - t).argmin()) for t in (1e4, 1e5)]
    slope = np.log10(ds.xi[:, late[1]] / ds.xi[:, late[0]]).values
    for n, points in enumerate(ds.points.values):
        of = counted(int(points), "point")
        limit = (3 * A * points * 1e5) ** (1 / 3)
        # 1/xi of the next order, and the deviation of 4000 prompts, a third of it
        spread = 0.03 + 1.4 * (limit / 4000 / points) ** 0.5 * (points > 2)
        yield Feature(f"{of}: slope of ln xi in ln t, last decade", float(slope[n]), 1 / 3, spread / 3, THEORY)
        yield Feature(f"{of}: xi over its law at t = 1e5", float(ds.xi[n, -1] / limit), 1.0, spread, THEORY)
    ratio = float(ds.circle[-1] / ds.loss[0, -1])
    yield Feature("loss on a circle over that on a sphere at t = 1e5", ratio, 1.3, 0.2, SCRIPT)
    yield Feature("two points: share where the other can win, from t = 1 on", float(ds.others[0, 1:].max()), 0.0, 0.0, THEORY)

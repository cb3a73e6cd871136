"""Four stages of attention: even, scanning, snapping, frozen, in the flow of the theory for two classes.

Stands beside the stages of attention on the slides of tian2023scan, and its Theorems 2 and 4: ct = P exp(z) of both classes (Syn-Small:
ten common tokens, ten distinct ones each, M = 34, eta_Y = eta_Z = 1) at t = 0, K ln M, 2 K ln M and late, t = 1e4, by scan_snap.reduced.
As there: common tokens fade, distinct ones grow, the more frequent the faster; after 2 K ln M little changes. Unlike there, common
tokens keep a third of the attention at t = 1e4, for growth is like ln ln t.
"""

from collections.abc import Iterator

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import odesim
from odesim.plot.figures import SCRIPT, Feature
from odesim.plot.style import CATEGORIES, FAINT, few_ticks, letter_panels, picture

QUESTION = "why sparse attention?"
K, M, COMMON, DISTINCT = 2, 34, 10, 10
SCAN = K * np.log(M)
STAGES = {"even": 0.0, "scanning": SCAN, "snapping": 2 * SCAN, "frozen": 1e4}
TIMES = np.r_[0, np.geomspace(0.1, 1e4, 120)]
FINE = {"rtol": 1e-11, "atol": 1e-13}
WINNER, RIVAL = 19, 18
FLOW = {  # u, B, z of common tokens, z of the winner
    2 * SCAN: (4.5184, 5.27079, -0.21085, 0.69869),
    100.0: (None, 6.93577, -0.32513, 1.31727),
}
LATE = {"B": 7.81160, "attention to the winner": 0.33262, "attention to common tokens": 0.3356}
PLAIN = {100.0: (-0.22764, 0.49586, 0.10538, 0.02793), 1000.0: (None, None, 0.11542, 0.00224)}
"""z of common tokens and of the winner, attention to it and the loss of scan_snap.symmetric, whose decoder is not decorrelated."""


def data(fast: bool) -> xr.Dataset:
    """ct (stage, class, token), Z (t, class, token), B, u and c of the flow; z, zc, c, loss (time) of the plain one. fast: the same."""
    save = np.unique(np.r_[TIMES, [*STAGES.values()], 100.0])
    run = odesim.integrate("scan_snap.reduced", span=(0, save[-1]), save=save, **FINE)
    P = run.observables["c"][0]  # from Z = 0
    stages = [int(np.searchsorted(save, t)) for t in STAGES.values()]
    plain = odesim.integrate("scan_snap.symmetric", span=(0, 1000), save=[0.0, *PLAIN], **FINE)
    return xr.Dataset(
        {
            "ct": (("stage", "class", "token"), P * np.exp(run.y["Z"][stages])),
            "Z": (("t", "class", "token"), run.y["Z"]),
            "B": (("t", "class"), run.y["B"]),
            "u": ("t", run.y["u"]),
            "c": (("t", "class", "token"), run.observables["c"]),
            "plain": (
                ("time", "quantity"),
                np.stack(
                    [plain.y["zc"][1:, 0], plain.y["z"][1:, -1], plain.observables["c"][1:, -1], plain.observables["loss"][1:]], axis=1
                ),
            ),
        },
        coords={"stage": list(STAGES.values()), "t": save, "token": np.arange(P.shape[1]), "class": [0, 1], "time": list(PLAIN)},
        attrs={"K": K, "M": M, **FINE},
    )


def draw(ds: xr.Dataset) -> Figure:
    """A panel for each stage, a line for each class; it computes nothing."""
    with picture("Attention scans, snaps and freezes", 52.0, width=165.0) as figure:
        row = figure.subplots(1, 4, sharey=True)
        names = ("t = 0", "t = K ln M", "t = 2 K ln M", "t = 10⁴")
        for axes, name, t in zip(row, names, ds.stage.values, strict=True):
            for n, look in enumerate(({"marker": "o", "ms": 1.6}, {"marker": "s", "ms": 3.2, "mfc": "none", "mew": 0.6})):
                ct = ds.ct.sel(stage=t)[n]
                parts = slice(COMMON), slice(COMMON, None)  # no line from common tokens, which both classes have, to distinct ones
                for part, label in zip(parts, (f"class {n + 1}", None), strict=True):
                    axes.plot(ds.token[part], ct[part], lw=0.7, color=CATEGORIES[n], label=label, **look)
            for edge in (COMMON - 0.5, COMMON + DISTINCT - 0.5):
                axes.axvline(edge, color=FAINT, lw=0.5, ls=(0, (3, 2)))
            axes.set(xlabel="token: common | distinct", title=name, xlim=(-0.7, 29.7), ylim=(4e-3, 1))
            axes.set_yscale("log", nonpositive="mask")
            few_ticks(axes, x=3)
        row[0].set_ylabel("weight $P e^z$")
        row[0].legend(loc="lower left", handlelength=1.0)  # left of the line of the distinct tokens
        letter_panels(*row)
    return figure


def expected(ds: xr.Dataset) -> Iterator[Feature]:
    """Numbers of the flow at three times, signs and order, what comes after 2 K ln M, and the flow of plain gradients."""
    for t, row in FLOW.items():
        here = ds.sel(t=t, method="nearest")
        found = (here.u, here.B[0], here.Z[0, 0], here.Z[0, WINNER])
        for name, x, want, digit in zip(("u", "B", "z, common", "z, winner"), found, row, (5.1e-5, *[5.1e-6] * 3), strict=True):
            if want is not None:
                yield Feature(f"{name} at t = {t:.6g}", float(x), want, digit, SCRIPT)
    end, scanned = ds.isel(t=-1), float(ds.B.sel(t=2 * SCAN, method="nearest")[0])
    late = (end.B[0], end.c[0, WINNER], end.c[0, :COMMON].sum())
    for x, (name, want) in zip(late, LATE.items(), strict=True):
        yield Feature(f"{name} at t = 1e4", float(x), want, 5.1e-5 if "common" in name else 5.1e-6, SCRIPT)
    Z = ds.Z.values[:, 0]
    yield Feature("saved times at which z of a common token rises", float((np.diff(Z[:, :COMMON], axis=0) > 0).sum()), 0.0, 0.0)
    yield Feature("at which z of a distinct token falls", float((np.diff(Z[:, COMMON:20], axis=0) < 0).sum()), 0.0, 0.0)
    yield Feature("pairs of distinct tokens with z against the order of P", float((np.diff(Z[1:, COMMON:20], axis=1) <= 0).sum()), 0.0, 0.0)
    yield Feature("B gained from 2 K ln M to 1e4, over B gained before", float(end.B[0] / scanned - 1), 7.81160 / 5.27079 - 1, 1e-5, SCRIPT)
    yield Feature(
        "ct of both classes, largest difference", float(np.abs(ds.ct[:, 0, 10:20].values - ds.ct[:, 1, 20:].values).max()), 0.0, 1e-10
    )
    for t, row in PLAIN.items():
        for name, x, want in zip(("z, common", "z, winner", "c of the winner", "loss"), ds.plain.sel(time=t).values, row, strict=True):
            if want is not None:
                yield Feature(f"plain decoder: {name} at t = {t:g}", float(x), want, 5.1e-6, SCRIPT)

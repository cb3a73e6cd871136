"""How fast masked sampling mixes: gaps against the share of masked tokens and against n, total variation against time, parallel draws.

Stands beside Theorems 1 and 3 of li2024promises, which has no such pictures: a, the gap of k masked tokens of 64, Curie-Weiss, with
k/n of independent tokens; b, n gap_1 is flat below the critical coupling, falls as n^(-1/2) at it and exponentially above it; c, eight
signs from the worst start, total variation with the slope of the gap, and KL; d, where a decoder ends that draws the masked tokens
independently.
"""

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import odesim
from odesim.models.gibbs._kernels import exact, gap, lumped
from odesim.models.gibbs._laws import equal_pairs
from odesim.models.gibbs.lumped import curie_weiss, target
from odesim.plot.figures import Feature
from odesim.plot.style import CATEGORIES, DASHES, FAINT, INK, MARKERS, few_log_ticks, few_ticks, letter_panels, picture

QUESTION = "how does it scale?"
COUPLINGS, SIZES, SHARES = (0.5, 1.0, 1.5), (16, 32, 64, 128), (1, 2, 4, 8, 16, 32, 48, 56, 60, 62, 63)
MASKED, TIMES, J_TIMES = (1, 2, 4, 7), np.linspace(0, 60, 121), 0.1
DECODED, TOKENS = (0.2, 0.4, 0.9), 4
FINE = {"rtol": 1e-10, "atol": 1e-13}


def coupled(n: int, b: float, k: int) -> float:
    """The gap of the number of ones, Curie-Weiss."""
    log_w = curie_weiss({"n": n}, {"b": b})
    return gap(lumped(log_w, k), target({"n": n}, {"log_w": log_w}))


def data(fast: bool) -> xr.Dataset:
    """gap_k (b, masked), scaled n gap_1 (b, n), TV and KL (k, t) with rate (k), and TV of parallel draws (J, k). fast: the same."""
    law = equal_pairs({"S": 256}, {"q": 2, "J": J_TIMES, "h": 0.0})
    given = {"params": {"p": law}, "sizes": {"S": 256}, "span": (0, TIMES[-1]), "save": TIMES, **FINE}
    runs = [odesim.integrate("gibbs.master", **{**given, "params": {"p": law, "k": k}}) for k in MASKED]
    late = {"sizes": {"S": 2**TOKENS}, "span": (0, 20000), "save": 2, **FINE}
    ends = [
        [odesim.integrate("gibbs.parallel", params={"J": J, "k": k}, **late).observables["TV"][-1] for k in range(1, TOKENS + 1)]
        for J in DECODED
    ]
    return xr.Dataset(
        {
            "gap": (("b", "masked"), [[coupled(64, b, k) for k in SHARES] for b in COUPLINGS]),
            "scaled": (("b", "n"), [[n * coupled(n, b, 1) for n in SIZES] for b in COUPLINGS]),
            "TV": (("k", "t"), np.array([run.observables["TV"] for run in runs])),
            "KL": (("k", "t"), np.array([run.observables["KL"] for run in runs])),
            "rate": ("k", [gap(exact(law, 2, k), law) for k in MASKED]),
            "parallel": (("J", "drawn"), ends),
        },
        coords={
            "b": list(COUPLINGS), "masked": list(SHARES), "n": list(SIZES), "k": list(MASKED), "t": TIMES,
            "J": list(DECODED), "drawn": np.arange(1, TOKENS + 1),
        },
        attrs={"J_times": J_TIMES, **FINE},
    )  # fmt: skip


def draw(ds: xr.Dataset) -> Figure:
    """Four panels; it computes only k/n and the slopes exp(-gap t)."""
    with picture("Strong correlations slow masked sampling down", 110.0, width=120.0) as figure:
        (gaps, sizes), (times, parallel) = figure.subplots(2, 2)
        for j, b in enumerate(ds.b.values):
            look = {"color": CATEGORIES[j], "ls": DASHES[j], "marker": MARKERS[j], "ms": 2.5, "label": f"b = {b:g}"}
            gaps.plot(ds.masked / 64, ds.gap.sel(b=b), **look)
            sizes.plot(ds.n, ds.scaled.sel(b=b), **look)
        gaps.plot(ds.masked / 64, ds.masked / 64, color=FAINT, lw=0.8, ls=(0, (1, 1.5)), label="independent: k/n")
        gaps.set(yscale="log", xlabel="share of masked tokens k/n", ylabel="gap$_k$, n = 64")
        sizes.set(xscale="log", yscale="log", xlabel="n", ylabel="n gap$_1$")
        sizes.set_xticks(ds.n.values, [str(n) for n in ds.n.values])
        sizes.minorticks_off()
        for j, k in enumerate(ds.k.values):
            times.plot(ds.t, ds.TV.sel(k=k), color=CATEGORIES[j], label=f"k = {k}")
            times.plot(ds.t, ds.KL.sel(k=k), color=CATEGORIES[j], lw=0.7, ls=DASHES[1])
            anchor = int(np.argmax(ds.TV.sel(k=k).values < 0.2))
            slope = float(ds.TV.sel(k=k)[anchor]) * np.exp(-float(ds.rate.sel(k=k)) * (ds.t - ds.t[anchor]))
            times.plot(ds.t[anchor::10], slope[anchor::10], "o", color=INK, ms=1.4)
        times.plot([], [], color=INK, label="total variation")
        times.plot([], [], color=INK, lw=0.7, ls=DASHES[1], label="KL")
        times.plot([], [], "o", color=INK, ms=1.4, label="exp(−gap t)")
        times.set(yscale="log", ylim=(1e-8, 1e4), xlabel="t, redraws of k tokens", ylabel="distance to the target")
        for j, J in enumerate(ds.J.values):
            parallel.plot(ds.drawn, ds.parallel.sel(J=J), color=CATEGORIES[j], ls=DASHES[j], marker=MARKERS[j], ms=3, label=f"J = {J:g}")
        parallel.set(xlabel="k tokens drawn independently, n = 4", ylabel="total variation at the end", ylim=(-0.03, 1))
        parallel.set_xticks(ds.drawn.values)
        for axes, place in ((gaps, "lower right"), (sizes, "lower left"), (times, "upper right"), (parallel, "upper left")):
            axes.legend(loc=place, ncol=2 if axes is times else 1)
        few_ticks(gaps)
        few_log_ticks(gaps, times)
        letter_panels(gaps, sizes, times, parallel)
    return figure


def expected(ds: xr.Dataset) -> list[Feature]:
    """Gaps of Curie-Weiss and of parallel draws to their printed digits, order of the curves, the late slope."""
    table = {0.5: (0.5413, 0.5218, 0.5113, 0.5057), 1.0: (0.1796, 0.1295, 0.0932, 0.0669), 1.5: (0.02581, 0.003927, 1.034e-4, 6.72e-8)}
    features = [
        Feature(f"n gap_1 over its digits, b = {b:g}, n = {n}", float(ds.scaled.sel(b=b, n=n)) / want, 1.0, 6e-4)  # the last digit
        for b, row in table.items()
        for n, want in zip(SIZES, row, strict=True)
    ]
    features += [
        Feature(f"parallel draws, J = {J:g}, k = {k}", float(ds.parallel.sel(J=J, drawn=k)), want, half)
        for J, k, want, half in (
            (0.2, 1, 0.0, 1e-6), (0.4, 1, 0.0, 1e-6), (0.9, 1, 0.0, 1e-6),
            (0.4, 2, 0.03565, 1e-5), (0.4, 3, 0.12095, 1e-5), (0.4, 4, 0.54833, 1e-5),
            (0.9, 2, 0.004, 5e-4), (0.9, 3, 0.0126, 5e-5), (0.9, 4, 0.855, 5e-4),
        )
    ]  # fmt: skip
    features += [
        Feature("saved times at which masking more is further from the target", float((ds.TV.diff("k").values > 1e-12).sum()), 0.0, 0.0),
        Feature("the same of KL", float((ds.KL.diff("k").values > 1e-12).sum()), 0.0, 0.0),
        # 10 times the tolerance of the run
        Feature("saved times at which TV or KL rises", float(sum((ds[x].diff("t").values > 1e-9).sum() for x in ("TV", "KL"))), 0.0, 0.0),
        Feature("gaps above k/n", float((ds.gap > ds.masked / 64 + 1e-12).sum()), 0.0, 0.0),
        Feature("gaps that are not larger for more masked tokens", float((ds.gap.diff("masked") <= 0).sum()), 0.0, 0.0),
        Feature("gap of 32 masked tokens, b = 1.5", float(ds.gap.sel(b=1.5, masked=32)), 1.25e-4, 5e-7),
        Feature("64 times the gap of 1 masked token, b = 0.5", 64 * float(ds.gap.sel(b=0.5, masked=1)), 0.5113, 5e-5),
    ]
    for k in (1, 2):
        late = np.log(ds.TV.sel(k=k).values[[80, 120]])
        # what is left of the faster modes at t = 40
        features.append(Feature(f"slope of ln TV from t = 40, over gap_{k}", -np.diff(late)[0] / 20 / float(ds.rate.sel(k=k)), 1.0, 0.05))
    return features

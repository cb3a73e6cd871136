"""What it costs to learn a function of few bits: at once or step by step, from small weights, among many places.

Stands beside Section 5 of wies2023subtask, edelman2022inductive on samples, and wen2023uninterpretable on pruning. a, probability of right
answers in tables of two answers: with the steps of a parity as labels, for any k, and without; b, when products of k linear factors first
have correlation 1 with a parity of k bits, against each weight at the start (lines: eps^(2-k)/((k-2)(k-1)!); k = 2, with steps, ln(1/eps));
c, samples after which even attention's gradient finds one place among T, by the chance that a label is wrong; d, share of networks of N
random weights that can be pruned to any function.
"""

from collections.abc import Iterator

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import odesim
from odesim.models.parity.claims import first_success, last_stretch, time_until_sure
from odesim.models.static._limit_claims import PLACES, reached, samples
from odesim.plot.figures import SCRIPT, THEORY, Feature
from odesim.plot.style import CATEGORIES, DASHES, FAINT, MARKERS, few_log_ticks, few_ticks, letter_panels, picture

QUESTION = "why plateaus?"
BITS, FACTORS = (3, 5, 7), (2, 3, 4)
STARTS = np.array([0.3, 0.1, 0.03, 0.01, 0.003])
NOISE, EPS, WEIGHTS = (0.0, 0.1, 0.25), (0.1, 0.03, 0.01), np.arange(3, 14)
TIMES = np.geomspace(0.1, 1e5, 121)


def right_answers(rows: int) -> np.ndarray:
    """The probability (time,) of the right answer in a table of `rows` rows at TIMES."""
    given = {"sizes": {"N": rows}, "params": {"p": 1 / rows, "M": 2}}
    run = odesim.integrate("memory.softmax_regression", span=(0, TIMES[-1]), save=np.append(0, TIMES), rtol=1e-8, atol=1e-10, **given)
    return np.asarray(run.observables["probability"][1:, 0])


def data(fast: bool) -> xr.Dataset:
    """Probabilities (table, time), first successes (k, eps), samples (h, T), shares (accuracy, N). fast: the same."""
    rng = np.random.default_rng(3)
    return xr.Dataset(
        {
            "probability": (("table", "time"), [right_answers(rows) for rows in (4, *(2**k for k in BITS))]),
            "sure": ("table", [time_until_sure(rows) for rows in (4, *(2**k for k in BITS))]),
            "success": (("k", "eps"), [[first_success(k, eps) for eps in STARTS] for k in FACTORS]),
            "samples": (("h", "T"), [[samples(T, h) for T in PLACES] for h in NOISE]),
            "share": (("accuracy", "N"), [[reached(rng, n, eps, 1000) for n in WEIGHTS] for eps in EPS]),
        },
        coords={"table": ["with steps", *(f"k = {k}" for k in BITS)], "time": TIMES, "k": list(FACTORS), "eps": STARTS}
        | {"h": list(NOISE), "T": list(PLACES), "accuracy": list(EPS), "N": WEIGHTS},
    )


def draw(ds: xr.Dataset) -> Figure:
    """Four panels; it computes only straight lines."""
    with picture("What learning costs", 104.0, width=140.0) as figure:
        (tables, success), (places, pruning) = figure.subplots(2, 2)
        for n, name in enumerate(ds.table.values):
            tables.plot(ds.time, ds.probability[n], color=CATEGORIES[n], ls=DASHES[n], label=str(name))
        tables.set(xscale="log", xlabel="time", ylabel="probability of the right answer", title="a parity of k bits", ylim=(0.48, 1.01))
        tables.legend(loc="upper left")
        for n, k in enumerate(ds.k.values):
            success.plot(ds.eps, ds.success[n], MARKERS[n], color=CATEGORIES[n], ms=3, label=f"{k} factors")
            line = np.log(1 / ds.eps) if k == 2 else ds.eps ** (2 - k) / ((k - 2) * (1, 1, 2, 6)[k - 1])
            success.plot(ds.eps, line, color=FAINT, lw=0.7)
        success.set(xscale="log", yscale="log", xlabel="each weight at the start, ε", ylabel="time", title="first success")
        success.legend(loc="upper right")
        for n, h in enumerate(ds.h.values):
            places.plot(ds["T"], ds.samples[n], MARKERS[n], color=CATEGORIES[n], ms=3, ls="-", lw=0.7, label=f"{h:.0%} wrong")
        places.set(xscale="log", xlabel="places T", ylabel="samples", title="one place among T", ylim=(0, 80))
        places.legend(loc="upper left")
        for n, eps in enumerate(ds.accuracy.values):
            pruning.plot(ds.N, ds.share[n], color=CATEGORIES[n], ls=DASHES[n], label=f"to {eps:g}")
        pruning.set(xlabel="random weights N", ylabel="share of networks", title="pruned to any function", ylim=(-0.03, 1.03))
        pruning.legend(loc="lower right")
        few_log_ticks(tables, success, places)
        few_ticks(pruning)
        letter_panels(tables, success, places, pruning)
    return figure


def expected(ds: xr.Dataset) -> Iterator[Feature]:
    """Ratios of times, the powers of eps, slopes in ln T, how many weights a digit costs."""
    sure = ds.sure.values
    for name, t, k in zip(ds.table.values[1:], sure[1:], BITS, strict=True):
        yield Feature(f"time without steps over the time with them, {name}", float(t / sure[0]), 2.0 ** (k - 2), 1e-6, THEORY)
    for k, scale in ((3, 2), (4, 12)):
        whole = ds.success.sel(k=k, eps=0.003).item() + last_stretch(k)
        yield Feature(f"time to infinity times eps^{k - 2} at .003, {k} factors", whole * 0.003 ** (k - 2), 1 / scale, 1e-6, THEORY)
    two = float(ds.success.sel(k=2, eps=0.003)) + np.log(2) / 2
    yield Feature("time over ln(1/eps) at .003, two factors, ln(2)/2 later", float(two / np.log(1 / 0.003)), 1.0, 1e-6, THEORY)
    for h, want in ((0.0, 14), (0.1, 22), (0.25, 61)):
        yield Feature(f"samples at T = 16384, {h:g} wrong", float(ds.samples.sel(h=h)[-1]), want, 0.0, THEORY)
    half = [float(np.interp(0.5, ds.share.sel(accuracy=eps), ds.N)) for eps in EPS]
    # 4.21 by another program with 20,000 draws a share. Half a share has a deviation of .016 in 1000 draws, and a weight more adds .27 to
    # .37 to it: .04 of a weight at each end, four deviations of the difference. 2^N independent sums of width sqrt(N) would need 3.7.
    yield Feature("weights more for a digit, at a share of a half", half[2] - half[0], 4.21, 0.23, SCRIPT)

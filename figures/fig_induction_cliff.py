"""An induction head forms at once, after a long plateau: loss and weights against time, and the time against the length N.

Stands beside bietti2023birth (two layers of attention, one occurrence), which has no such pictures: a, the loss rests between ln V and
ln N until the head copies, N = 32, V = 64; b, the weight s1 on the previous token and s2 on the answer; c, half of the attention is on
the answer at a time of order N^(3/2) where a, b, c themselves are trained, N^(5/2) where the matrices are; d, the
flow of the three whole matrices on all 360 sequences of N = 4 of V = 6 tokens, on the lines of the three numbers, from .1.
"""

from collections.abc import Iterator

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import odesim
from odesim.models.induction.claims import MATRIX, SCALAR
from odesim.plot.figures import SCRIPT, Feature
from odesim.plot.style import CATEGORIES, DASHES, FAINT, INK, MARKERS, SMALL, few_log_ticks, few_ticks, letter_panels, picture

QUESTION = "why plateaus?"
N, V, END = 32, 64, 1000.0
VARIANTS = {"": "a, b, c", ":MATRIX": "matrices"}
WHOLE = {"N": 4, "V": 6, "S": 360}
WHOLE_TIMES = np.linspace(0, 300, 61)
FINE = {"rtol": 1e-10, "atol": 1e-12}


def half_time(variant: str, length: int) -> float:
    """When s2 = 1/2, from .01, with V = 2 N."""
    end = 1.05 * (SCALAR if variant == "" else MATRIX)[length]
    run = odesim.integrate(f"induction.stages{variant}", params={"N": length, "V": 2 * length}, span=(0, end), save=2, **FINE)
    return float(run.events["copied"][0]["t"])


def whole_and_reduced() -> dict[str, tuple[tuple[str, ...], np.ndarray]]:
    """loss, s1, s2 (model, t_whole) of `induction.full` and of `induction.stages:MATRIX`, and a, b, c (model, number) at the end."""
    save = {"span": (0, WHOLE_TIMES[-1]), "save": WHOLE_TIMES, "rtol": 1e-9, "atol": 1e-11, "backend": "numpy"}
    whole = odesim.integrate("induction.full", sizes=WHOLE, params={"eps": 0.1}, **save)
    three = odesim.integrate("induction.stages:MATRIX", params={"N": 4, "V": 6, "eps": 0.1}, **save)
    # a centred identity has entries that differ by 1 from all others of their row
    end = [whole.final[name][0] for name in ("P", "W_2", "W_3")]
    numbers = [[w.max() - w.min() for w in end], [float(three.final[name]) for name in "abc"]]
    seen = {f"whole_{name}": [run.observables[name] for run in (whole, three)] for name in ("loss", "s1", "s2")}
    return {"numbers": (("model", "number"), np.array(numbers)), **{k: (("model", "t_whole"), np.array(v)) for k, v in seen.items()}}


def data(fast: bool) -> xr.Dataset:
    """loss, s1, s2, c (t) of one run, and half times (variant, length). fast: lengths to 64."""
    lengths = sorted(SCALAR)[: -1 if fast else None]
    times = np.linspace(0, END, 1001)
    events = [f"leaves: loss - {1.02 * np.log(N)}", f"ends: loss - {0.1 * np.log(N)}"]
    run = odesim.integrate("induction.stages", params={"N": N, "V": V}, span=(0, END), save=times, events=events, **FINE)
    return xr.Dataset(
        {
            **{name: ("t", run.observables[name]) for name in ("loss", "s1", "s2")},
            "c": ("t", run.y["c"]),
            "half_time": (("trained", "length"), [[half_time(variant, length) for length in lengths] for variant in VARIANTS]),
            **whole_and_reduced(),
            "leaves": ((), run.events["leaves"][-1]["t"]),
            "ends": ((), run.events["ends"][0]["t"]),
        },
        coords={"t": times, "trained": list(VARIANTS.values()), "length": lengths}
        | {"t_whole": WHOLE_TIMES, "model": ["matrices", "three numbers"], "number": list("abc")},
        attrs={"N": N, "V": V, **FINE},
    )


def draw(ds: xr.Dataset) -> Figure:
    """Four panels; it computes only the slopes of the reference lines."""
    with picture("An induction head forms at once", 105.0, width=125.0) as figure:
        (left, middle), (right, whole) = figure.subplots(2, 2)
        left.plot(ds.t, ds.loss, color=CATEGORIES[0])
        for value, name in ((np.log(V), "ln V"), (np.log(N), "ln N")):
            left.axhline(value, color=FAINT, lw=0.6, ls=(0, (1, 1.5)))
            left.text(0.98, value, name, transform=left.get_yaxis_transform(), fontsize=SMALL, ha="right", va="bottom")
        left.set(xlabel="t", ylabel="loss", ylim=(0, 4.7))
        for j, (name, label) in enumerate((("s1", "$s_1$: previous token"), ("s2", "$s_2$: answer"))):
            middle.plot(ds.t, ds[name], color=CATEGORIES[j], ls=DASHES[j], label=label)
        middle.set(xlabel="t", ylabel="weight", ylim=(-0.02, 1.05))
        middle.legend(loc="upper left")
        for j, name in enumerate(ds.trained.values):
            times, power = ds.half_time.sel(trained=name), (1.5, 2.5)[j]
            right.plot(ds.length, times, color=CATEGORIES[j], marker=MARKERS[j], label=str(name))
            line = float(times[-1]) * (ds.length / ds.length[-1]) ** power
            right.plot(ds.length, line, color=FAINT, lw=0.6, ls=(0, (1, 1.5)))
            right.text(float(ds.length[1]), 0.45 * float(line[1]), f"$N^{{{int(2 * power)}/2}}$", fontsize=SMALL, ha="left", va="top")
        right.set(xscale="log", yscale="log", xlabel="N, with V = 2N", ylabel="time of $s_2 = 1/2$")
        right.set_xticks(ds.length.values, [str(n) for n in ds.length.values])
        right.minorticks_off()
        right.legend(loc="upper left", title="trained", title_fontsize=SMALL)
        for j, (name, label) in enumerate((("loss", "loss"), ("s1", "$s_1$"), ("s2", "$s_2$"))):
            matrices, three = (ds[f"whole_{name}"].sel(model=model) for model in ds.model.values)
            whole.plot(ds.t_whole, three, color=CATEGORIES[j], ls=DASHES[j], label=label)
            whole.plot(ds.t_whole[::3], matrices[::3], ".", ms=3, color=INK, label="matrices" if name == "s2" else None)
        whole.set(xlabel="t", ylabel="loss, weights", ylim=(-0.05, 2.05))
        whole.legend(loc="upper right", title="N = 4, V = 6", title_fontsize=SMALL)
        few_ticks(whole, left, middle)
        few_log_ticks(right)
        letter_panels(left, middle, right, whole)
    return figure


def expected(ds: xr.Dataset) -> Iterator[Feature]:
    """Half times to their digits, the plateau and the width of the cliff."""
    for name, table in zip(VARIANTS.values(), (SCALAR, MATRIX), strict=True):
        for length in ds.length.values:
            found = float(ds.half_time.sel(trained=name, length=length))
            yield Feature(f"half time over its digits, {name}, N = {length}", found / table[int(length)], 1.0, 5e-6, SCRIPT)
        # exponents still rise to 3/2 and 5/2: by 1/100 from the fourth to the fifth length
        last = np.log2(ds.half_time.sel(trained=name).values[-1] / ds.half_time.sel(trained=name).values[-2])
        yield Feature(f"last exponent, {name}", float(last), 1.5 if name == "a, b, c" else 2.5, 0.035)
    yield Feature("the loss leaves 1.02 ln N at", float(ds.leaves), 780.0, 0.3, SCRIPT)
    yield Feature("from there to .1 ln N, of that time", float((ds.ends - ds.leaves) / ds.leaves), 0.005, 0.005)
    yield Feature("loss at the start over ln V", float(ds.loss[0]) / np.log(V), 1.0, 1e-3)
    # c grows by (1/N - 1/V) t at first
    yield Feature("c at t = 1, over .01 + (1/N - 1/V) t", float(ds.c[1]) / (0.01 + 1 / N - 1 / V), 1.0, 0.02)
    for name, digits in (("a", 3.840183), ("b", 3.884294), ("c", 5.409269)):
        found = float(ds.numbers.sel(model="matrices", number=name))
        yield Feature(f"{name} of the matrices at t = 300", found, digits, 6e-7, SCRIPT)
    yield Feature("loss of the matrices at t = 300", float(ds.whole_loss.sel(model="matrices")[-1]), 0.036498, 6e-7, SCRIPT)
    for name in ("loss", "s1", "s2"):
        apart = float(np.abs(ds[f"whole_{name}"].diff("model")).max())
        yield Feature(f"{name}: matrices and three numbers are apart by", apart, 0.0, 1e-7)  # 100 rtol

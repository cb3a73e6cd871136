"""How much associative memories hold: a classical one that breaks down, errors of one update by power, and softmax in many dimensions.

Stands beside the capacities of hopfield1982neural, krotov2016dense and ramsauer2021hopfield (Theorem 5), which have no such pictures: a,
overlaps with patterns of signs once every neuron was updated twenty times, fifty at a time; b, wrong signs after one update at d = 22, for
powers of the overlap and the exponential; c, the distance that one update of a softmax memory leaves, with its bound.
"""

from collections.abc import Iterator

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from scipy.special import erfc, factorial2

import odesim
from odesim.models.hopfield._sign_claims import of_statistical_mechanics, signs_after, wrong_signs
from odesim.plot.figures import SCRIPT, Feature
from odesim.plot.style import CATEGORIES, DASHES, FAINT, MARKERS, few_log_ticks, letter_panels, picture

QUESTION = "how does it scale?"
LOADS, GROUP, SWEEPS, PATTERNS = (0.05, 0.10, 0.13, 0.14, 0.15, 0.16, 0.18), 50, 20, 4
OVERLAPS = {  # mean, and deviation of the mean of four patterns of a memory, by an independent script; 200 and 100 memories for each load
    500: ((0.13, 0.982, 0.027), (0.14, 0.950, 0.060), (0.15, 0.911, 0.086), (0.16, 0.848, 0.100), (0.18, 0.694, 0.137)),
    1000: ((0.13, 0.975, 0.036), (0.14, 0.954, 0.056), (0.15, 0.892, 0.092), (0.16, 0.762, 0.118), (0.18, 0.526, 0.120)),
}
POWERS, STORED, SIGNS = ("2", "3", "exp"), (10, 30, 100, 300, 1000, 3000), 22
DIMENSIONS, READ = (8, 16, 24), {100: 100, 1000: 100, 10000: 41}
LEFT = {  # median of what one update leaves and deviation of its logarithm, by an independent script: 4000, 2000, 400 patterns of each N
    (8, 100): (0.180, 0.12, 4000), (8, 1000): (0.328, 0.06, 2000), (8, 10000): (0.358, 0.02, 400),
    (16, 100): (0.00185, 0.88, 4000), (16, 1000): (0.0199, 0.32, 2000), (16, 10000): (0.129, 0.05, 400),
    (24, 100): (6.12e-6, 1.45, 4000), (24, 1000): (1.20e-4, 0.80, 2000), (24, 10000): (1.36e-3, 0.32, 400),
}  # fmt: skip


def overlaps(d: int, memories: int) -> np.ndarray:
    """Overlaps (load, memory * PATTERNS) with patterns of d signs that the memory starts from, GROUP neurons updated at a time."""
    found = []
    for number, load in enumerate(LOADS):
        found.append([])
        for memory in range(memories):
            rng = np.random.default_rng([number, memory])
            X = np.where(rng.random((d, round(load * d))) < 0.5, -1.0, 1.0)
            starts = X.T[:PATTERNS]
            end = signs_after("hopfield.classical", starts, SWEEPS * d // GROUP, X=X, B=d // GROUP)
            found[-1] += list((end * starts).mean(axis=1))
    return np.array(found)


def signs_lost(power: str, N: int, read: int) -> float:
    """The mean share of wrong signs after one update of all neurons, from the first of N patterns."""
    X = np.where(np.random.default_rng(N).random((SIGNS, N)) < 0.5, -1.0, 1.0)
    model = "hopfield.dense:EXPONENTIAL" if power == "exp" else "hopfield.dense"
    return float(wrong_signs(model, X, read, **({} if power == "exp" else {"m": int(power)})).mean())


def left_by_one_update(d: int, N: int) -> tuple[float, float]:
    """Medians of the relative distance that one update leaves, and of its bound, over READ[N] patterns of length sqrt(d)."""
    X = np.random.default_rng(d).standard_normal((d, N))
    X *= np.sqrt(d) / np.linalg.norm(X, axis=0)
    x, products = X.T[: READ[N]], X.T[: READ[N]] @ X
    run = odesim.ensemble("hopfield.update", params={"X": X, "beta": 1.0}, initial={"xi": x}, steps=20, save=[1, 20])
    first, last = np.linalg.norm(run["xi"].values - x[:, None], axis=2).T
    own = products[np.arange(READ[N]), np.arange(READ[N])]
    products[np.arange(READ[N]), np.arange(READ[N])] = -np.inf
    bounds = 2 * (N - 1) * np.exp(2 * last * np.sqrt(d) - (own - products.max(axis=1)))
    return float(np.median(first) / np.sqrt(d)), float(np.median(bounds))


def data(fast: bool) -> xr.Dataset:
    """overlap (load, pattern) and its mean; lost (power, stored); left and bound (d, N). fast: 500 neurons, not 1000, fewer memories."""
    lost = [[signs_lost(power, N, 50 if fast else 200) for N in STORED] for power in POWERS]
    one = np.array([[left_by_one_update(d, N) for N in READ] for d in DIMENSIONS])
    neurons, memories = (500, 6) if fast else (1000, 12)
    overlap = overlaps(neurons, memories)
    return xr.Dataset(
        {
            "overlap": (("load", "pattern"), overlap),
            "mean_overlap": ("load", overlap.mean(axis=1)),
            "lost": (("power", "stored"), lost),
            "left": (("d", "N"), one[..., 0]),
            "bound": (("d", "N"), one[..., 1]),
        },
        coords={"load": list(LOADS), "power": list(POWERS), "stored": list(STORED), "d": list(DIMENSIONS), "N": list(READ)},
        attrs={"neurons": neurons},
    )


def formula(power: str, N: np.ndarray) -> np.ndarray:
    """The share of wrong signs if the other patterns were normal noise, for a power of the overlap."""
    m = int(power)
    return np.asarray(erfc(np.sqrt(SIGNS ** (m - 1) / (2 * N * factorial2(2 * m - 3)))) / 2)


def draw(ds: xr.Dataset) -> Figure:
    """Three panels in a row; it computes only the formula of normal noise."""
    with picture("What a memory holds grows with its power", 58.0, width=170.0) as figure:
        loads, powers, softmax = figure.subplots(1, 3)
        loads.plot(
            ds["load"], ds.overlap.values, color=FAINT, ls="none", marker=".", ms=2, label=["a pattern", *[""] * (ds.sizes["pattern"] - 1)]
        )
        loads.plot(ds["load"], ds.mean_overlap, color=CATEGORIES[0], marker="o", ms=3, label="mean")
        loads.axvline(0.138, color=FAINT, lw=0.6, ls=(0, (4, 1.5)), label="load 0.138")
        loads.set(xlabel=f"load N/d, d = {ds.neurons}", ylabel="overlap at the end", ylim=(0, 1.05))
        loads.legend(loc="lower left")
        loads.set_xticks([0.05, 0.1, 0.15])
        line = np.logspace(1, 3.5, 60)
        for j, power in enumerate(ds.power.values):
            name = "exp" if power == "exp" else f"power {power}"
            lost = ds.lost.sel(power=power)
            powers.plot(ds.stored, lost, color=CATEGORIES[j], ls="none", marker=MARKERS[j], ms=3, label=name)
            if power != "exp":
                powers.plot(line, formula(str(power), line), color=FAINT, lw=0.8, zorder=1, label="normal noise" if j == 1 else None)
        powers.set(
            xscale="log", yscale="log", xlabel=f"stored patterns N, d = {SIGNS}", ylabel="wrong signs after one update", ylim=(1e-4, 1)
        )
        powers.legend(loc="lower right")
        for j, d in enumerate(ds.d.values):
            look = {"color": CATEGORIES[j], "marker": MARKERS[j], "ms": 3}
            softmax.plot(ds.N, ds.left.sel(d=d), **look, ls=DASHES[0], label=f"d = {d}")
            softmax.plot(ds.N, ds.bound.sel(d=d), **look, ls=(0, (1, 1.5)), lw=0.8)
        softmax.plot([], [], color=FAINT, ls=(0, (1, 1.5)), lw=0.8, label="bound")
        softmax.set(xscale="log", yscale="log", xlabel="stored patterns N", ylabel="error of one update / length", ylim=(1e-6, 1e4))
        softmax.legend(loc="upper left")
        few_log_ticks(powers, softmax)
        letter_panels(loads, powers, softmax)
    return figure


def expected(ds: xr.Dataset) -> Iterator[Feature]:
    """Overlaps below and beyond the load .138, errors of one update beside the formula, and recorded medians and bounds of softmax."""
    mean, lost = ds.mean_overlap, ds.lost
    # patterns deviate by .0003 and .006
    yield Feature("overlap at load .05", float(mean.sel(load=0.05)), of_statistical_mechanics(0.05), 5e-4)
    yield Feature(
        "overlap at load .10", float(mean.sel(load=0.10)), of_statistical_mechanics(0.10), 4 * 0.0063 / ds.sizes["pattern"] ** 0.5
    )
    # the other patterns of 22 signs are not yet normal noise, and some hundred wrong signs are counted
    yield Feature(
        "wrong signs over formula, power 2, N = 30", float(lost.sel(power="2", stored=30) / formula("2", np.array(30))), 1.0, 0.25
    )
    yield Feature(
        "wrong signs over formula, power 3, N = 300", float(lost.sel(power="3", stored=300) / formula("3", np.array(300))), 1.0, 0.25
    )
    yield Feature("numbers of patterns at which a higher power loses more", float((lost.diff("power") > 0.01).sum()), 0.0, 0.0)
    yield Feature("medians above their bound", float((ds.left > ds.bound).sum()), 0.0, 0.0)
    # four standard errors of the mean of so many memories
    for load, want, deviation in OVERLAPS[ds.neurons]:
        yield Feature(
            f"overlap at load {load:g}", float(mean.sel(load=load)), want, 4 * deviation * (PATTERNS / ds.sizes["pattern"]) ** 0.5, SCRIPT
        )
    # four standard errors of a median, here and there
    for (d, N), (want, deviation, read) in LEFT.items():
        yield Feature(
            f"ln of the median over its digits, d = {d}, N = {N}",
            float(np.log(ds.left.sel(d=d, N=N) / want)),
            0.0,
            4 * 1.2533 * deviation * (1 / READ[N] + 1 / read) ** 0.5,
            SCRIPT,
        )

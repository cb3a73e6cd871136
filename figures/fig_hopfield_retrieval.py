"""What a softmax memory does with a state: energies along its flow, one pattern or an average, hysteresis, and one update beside the flow.

Stands beside the energy, the fixed points and the update of ramsauer2021hopfield (eqs. 2 and 3), which has no such pictures: a, twenty
flows; b, two patterns, a pitchfork at beta |x1 - x2|^2 / 4 = 1; c, eight orthogonal patterns, from one of them and from their average; d,
the distance from the fixed point, by updates and along the flow, in one of forty memories of normal numbers.
"""

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from scipy.optimize import brentq, minimize_scalar

import odesim
from odesim.plot.figures import SCRIPT, Feature
from odesim.plot.style import CATEGORIES, FAINT, INK, few_log_ticks, letter_panels, picture

QUESTION = "why sparse attention?"
FINE = {"rtol": 1e-10, "atol": 1e-13}
FLOWS, N, MEMORIES = 20, 8, 40
ENERGY_TIMES, TIMES = np.linspace(0, 4, 81), np.linspace(0, 30, 301)
PAIRS = (0.3, 0.6, 0.8, 0.9, 1.1, 1.2, 1.4, 1.7, 2.0, 2.5, 3.0)
GAINS = (3.6, 3.9, 4.1, 4.2, 4.3, 4.5, 5.0, 5.5, 6.0, 6.5, 7.0, 7.5, 7.9, 8.1, 8.3, 8.6, 9.0)


def upper(c: float) -> float:
    """The positive root of u = tanh(c u), 0 for c <= 1."""
    return float(brentq(lambda u: np.tanh(c * u) - u, 1e-9, 1.0)) if c > 1 else 0.0


def least() -> tuple[float, float]:
    """c_s, from which on a state near one of N orthogonal patterns exists, and its overlap there."""
    found = minimize_scalar(lambda a: np.log((N - 1) * a / (1 - a)) / (a - (1 - a) / (N - 1)), bounds=(0.2, 1 - 1e-9), method="bounded")
    return float(found.fun), float(found.x)


def near_one(c: float) -> float:
    """The overlap near one of N orthogonal patterns, c > c_s: the upper root of a = 1 / (1 + (N-1) exp(-c (a - (1-a)/(N-1))))."""
    return float(brentq(lambda a: a - 1 / (1 + (N - 1) * np.exp(-c * (a - (1 - a) / (N - 1)))), least()[1], 1.0))


def from_near(X: np.ndarray, start: np.ndarray) -> tuple[np.ndarray, np.ndarray, list[float]]:
    """Distances from the fixed point along the flow (time,) and by updates (61,), and three numbers of the first update.

    They are what it leaves over its first order in exp(-gap), gap_j = (x_0 - x_j) xi; the next order; the share of pattern 0 at the end.
    """
    memory = {"params": {"X": X, "beta": 1.0}, "initial": {"xi": start}}
    flow = odesim.integrate("hopfield.modern", **memory, span=(0, TIMES[-1]), save=TIMES, rtol=1e-12, atol=1e-15)
    updates = odesim.integrate("hopfield.update", **memory, steps=60, save=61)
    rest, others = updates.final["xi"], X[:, 1:] - X[:, :1]
    shares = [np.exp(others.T @ xi) for xi in (start, rest)]  # of the other patterns, over that of pattern 0
    by_updates = np.linalg.norm(updates.y["xi"] - rest, axis=1)
    first_order = np.linalg.norm(others @ (shares[0] - shares[1]))
    numbers = [by_updates[1] / first_order, shares[0].sum() + shares[1].sum(), updates.observables["p"][-1][0]]
    return np.linalg.norm(flow.y["xi"] - rest, axis=1), by_updates, [float(x) for x in numbers]


def data(fast: bool) -> xr.Dataset:
    """energy (flow, t); u (c); z (way, gain) of the first pattern; of_flow (time) and of_updates (step), distances in one memory.

    In each of MEMORIES: left, by the first update over before; reach, the time of the flow to there; and the numbers of from_near().
    fast: the same.
    """
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6, 9))
    given = {"params": {"X": X, "beta": 0.8}, "span": (0, ENERGY_TIMES[-1]), "save": ENERGY_TIMES, **FINE}
    flows = [odesim.integrate("hopfield.modern", initial={"xi": 2 * rng.normal(size=6)}, **given) for _ in range(FLOWS)]
    one = {"span": (0, 400), "save": 2, **FINE}
    pairs = [odesim.integrate("hopfield.two_patterns", params={"beta": c}, initial={"u": 1e-3}, **one).final["u"] for c in PAIRS]
    first, average = np.eye(N)[0], np.full(N, 1 / N) + 1e-4 * (np.eye(N)[0] - 1 / N)
    ways = [
        [odesim.integrate("hopfield.potts", params={"c": c}, initial={"z": z}, **one).final["z"][0] for c in GAINS]
        for z in (first, average)
    ]
    many = []
    for _ in range(MEMORIES):
        X = rng.normal(size=(24, 40))
        many.append(from_near(X, X[:, 0] + 0.3 * rng.normal(size=24)))
    left = np.array([by_updates[1] / by_updates[0] for _, by_updates, _ in many])
    reach = [np.interp(-np.log(by_updates[1]), -np.log(of_flow), TIMES) for of_flow, by_updates, _ in many]
    numbers = np.array([three for _, _, three in many]).T
    return xr.Dataset(
        {
            "energy": (("flow", "t"), np.array([run.observables["energy"] for run in flows])),
            "u": ("c", pairs),
            "z": (("way", "gain"), ways),
            "of_flow": ("time", many[0][0]),
            "of_updates": ("step", many[0][1][:7]),
            "left": ("memory", left),
            "reach": ("memory", reach),
            **{name: ("memory", row) for name, row in zip(("over_first_order", "next_order", "share"), numbers, strict=True)},
        },
        coords={
            "t": ENERGY_TIMES, "c": list(PAIRS), "way": ["from one pattern", "from the average"], "gain": list(GAINS), "time": TIMES,
            "step": np.arange(7),
        },
        attrs=FINE,
    )  # fmt: skip


def draw(ds: xr.Dataset) -> Figure:
    """Four panels; it computes the roots of u = tanh(c u), c_s, c* and exp(-t)."""
    with picture("A softmax memory keeps one pattern, or an average", 110.0, width=120.0) as figure:
        (energies, pairs), (ways, distances) = figure.subplots(2, 2)
        energies.plot(ds.t, ds.energy.values.T, color=CATEGORIES[0], lw=0.7)
        energies.set(xlabel="t", ylabel="energy")
        line = np.linspace(0.2, 3.1, 400)
        roots = np.array([upper(c) for c in line])
        pairs.plot(line, np.where(line > 1, roots, 0), color=FAINT, lw=1, label="u = tanh(c u)")
        pairs.plot(ds.c, ds.u, color=CATEGORIES[0], ls="none", marker="o", ms=3, label="end of the flow")
        pairs.set(xlabel="c, gain of two patterns", ylabel="u at the end")
        pairs.legend(loc="lower right")
        for j, (way, marker) in enumerate(zip(ds.way.values, "os", strict=True)):
            ways.plot(ds.gain, ds.z.sel(way=way), color=CATEGORIES[j], marker=marker, ms=3 - j, lw=0.9, label=str(way))
        ways.set(xlabel=f"c, gain of {N} orthogonal patterns", ylabel="overlap with one pattern", ylim=(0, 1.16))
        star = 2 * (N - 1) * np.log(N - 1) / (N - 2)
        for place, name in ((least()[0], "$c_s$"), (star, "$c^*$"), (N, "N")):
            ways.axvline(place, color=FAINT, lw=0.6, ls=(0, (4, 1.5)), zorder=0)
            ways.text(place + (-0.08 if name == "$c_s$" else 0.08), 1.06, name, color=INK, ha="right" if name == "$c_s$" else "left")
        ways.legend(loc="center", bbox_to_anchor=(0.5, 0.52))
        distances.plot(ds.time, ds.of_flow, color=CATEGORIES[0], label="flow, against t")
        distances.plot(ds.step, ds.of_updates, color=CATEGORIES[1], marker="o", ms=3, label="updates, against their number")
        distances.plot(ds.time, ds.of_flow[0] * np.exp(-ds.time), color=FAINT, lw=0.8, ls=(0, (1, 1.5)), label="exp(−t)")
        distances.set(yscale="log", xlabel="t, or updates", ylabel="distance from the fixed point", ylim=(1e-15, 1e3))
        distances.legend(loc="upper right")
        few_log_ticks(distances)
        letter_panels(energies, pairs, ways, distances)
    return figure


def away(z: xr.DataArray) -> float:
    """The largest distance of overlaps (gain) from near_one()."""
    return float(np.abs(z - [near_one(float(c)) for c in z.gain]).max())


def expected(ds: xr.Dataset) -> list[Feature]:
    """Energies that fall, the pitchfork, both ends of the hysteresis, and the two speeds."""
    star, low = 2 * (N - 1) * np.log(N - 1) / (N - 2), least()[0]
    kept, spread = ds.z.sel(way="from one pattern"), ds.z.sel(way="from the average")
    late = slice(50, 150)
    rate = -np.polyfit(ds.time.values[late], np.log(ds.of_flow.values[late]), 1)[0]
    read = ds.isel(memory=np.flatnonzero((ds.share > 0.5) & (ds.left > 1e-9)))  # which pattern 0 rules, to 1000 rtol of the flow
    off = np.abs(np.log(read.over_first_order))
    return [
        Feature("largest rise of an energy between saved times", max(0.0, float(ds.energy.diff("t").max())), 0.0, 1e-9),
        Feature("pitchfork: largest distance from u = tanh(c u)", float(np.abs(ds.u - [upper(c) for c in PAIRS]).max()), 0.0, 1e-9),
        Feature("u at c = 3", float(ds.u.sel(c=3.0)), 0.9949015, 5e-8),
        Feature("c_s of eight patterns", low, 4.249799, 5e-7),
        Feature("c* of eight patterns", star, 4.540457, 5e-7),
        Feature("overlap from one pattern above c_s, largest distance from theory", away(kept[kept.gain > low]), 0.0, 1e-9),
        Feature("overlap from one pattern below c_s", float(kept[kept.gain < low - 0.1].max()), 1 / N, 1e-6),
        Feature("overlap from the average below c = N", float(spread[spread.gain < N - 0.15].max()), 1 / N, 1e-4),
        Feature("overlap from the average above c = N, largest distance from theory", away(spread[spread.gain > N]), 0.0, 1e-9),
        Feature("rate at which the flow comes to rest", float(rate), 1.0, 0.02),
        Feature(
            "memories whose first update is off its first order in exp(-gap) by more than the next",
            float((off > read.next_order + 1e-5).sum()),
            0.0,
            0.0,
        ),  # 1e-15 of 1e-9, and some
        Feature("ln of what it leaves over its first order, mean of memories", float(off.mean()), 0.0, float(read.next_order.mean())),
        # in a time of order 1 the flow is bent by a few times what the update leaves
        Feature(
            "time of the flow to where the first update is, over -ln of what that leaves",
            float(read.reach.sum() / -np.log(read.left).sum()),
            1.0,
            10 * float(read.left.sum() / -np.log(read.left).sum()),
        ),
        # 8 % of 400 by an independent script, and four deviations of 40
        Feature("memories that are not read, of 40", float(MEMORIES - read.sizes["memory"]), 3.2, 6.9, SCRIPT),
    ]

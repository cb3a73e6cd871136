"""What is stated of memories of signs, and of two layers of neurons: errors of one update, capacity up to exp(.55 d), fast neurons."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp
from scipy.optimize import brentq, minimize_scalar
from scipy.special import erf, erfc, factorial2, softmax
from scipy.stats import binom

import odesim
from odesim.lab.claims import Claim, Measurement, Statement
from odesim.symbolic import Source


def signs_after(model: str, starts: np.ndarray, steps: int, **params: Any) -> np.ndarray:
    """The signs (member, d) from starts (member, d), as one ensemble of a memory."""
    run = odesim.ensemble(model, params={"s0": starts, **params}, steps=steps, save=[steps])
    return np.asarray(run["s"].values[:, -1])


def wrong_signs(model: str, X: np.ndarray, read: int | None = None, **params: Any) -> np.ndarray:
    """The share of wrong signs after one update of all neurons, from each pattern, or from the first `read`."""
    starts = X.T[:read]
    return np.asarray((signs_after(model, starts, 1, X=X, B=1, **params) != starts).mean(axis=1))


def patterns(d: int, N: int, seed: int = 1) -> np.ndarray:
    """X (d, N): random signs."""
    return np.where(np.random.default_rng(seed).random((d, N)) < 0.5, -1.0, 1.0)


def classical_errors() -> Iterable[Measurement]:
    """One update of all patterns of four memories, d = 500, N = 69 and 100: loads .138 and .2."""
    for N in (69, 100):
        found = np.mean([wrong_signs("hopfield.classical", patterns(500, N, seed)).mean() for seed in range(4)])
        want = erfc(np.sqrt(500 / (2 * N))) / 2
        yield Measurement(f"error over formula at load {N / 500:g}", found / want, 1.0, 4 / float(want * 4 * 500 * N) ** 0.5)
    for N, digits in ((138, 0.003552), (200, 0.01267)):
        yield Measurement(f"formula at load {N / 1000:g}", erfc(np.sqrt(1000 / (2 * N))) / 2, digits, 5e-6 if N == 200 else 5e-7)


def wrong(d: int, N: int) -> float:
    """The probability that a sign of a pattern is wrong after one update: (N-1)(d-1) fair signs sum to less than -(d-1); half of a tie."""
    terms = (N - 1) * (d - 1)
    below = (terms - (d - 1)) / 2  # signs +1 at which the field is 0
    tie = binom.pmf(int(below), terms, 0.5) if below % 1 == 0 else 0.0
    return float(binom.cdf(int(np.ceil(below)) - 1, terms, 0.5) + tie / 2)


def exact_recall() -> Iterable[Measurement]:
    """One update of all neurons from each pattern, d = 128: 40 memories of d / (2 ln d) = 13 patterns, and 40 of d / (4 ln d) = 7."""
    for N, memories in ((13, 40), (7, 40)):
        found = np.array([wrong_signs("hopfield.classical", patterns(128, N, seed)) for seed in range(memories)]) * 128
        p, count = wrong(128, N), memories * N
        yield Measurement(f"N = {N}: wrong signs of a pattern", found.mean(), 128 * p, 4 * (128 * p / count) ** 0.5)
        if N == 13:
            exact = float((found == 0).mean())
            yield Measurement("N = 13: share of patterns without a wrong sign", exact, np.exp(-128 * p), 4 * (0.07 / count) ** 0.5)
        else:
            right = float((found == 0).all(axis=1).mean())
            yield Measurement("N = 7: memories with all patterns right, of 40", 40 * right, 39, 0.0, ">=")
    for d in (128, 512, 2048, 8192):
        each, every = round(d / (2 * np.log(d))), round(d / (4 * np.log(d)))
        yield Measurement(f"d = {d}: wrong signs of one of d / (2 ln d) patterns", d * wrong(d, each), 0.1, 0.0, "<=")
        yield Measurement(f"d = {d}: wrong signs of all d / (4 ln d) patterns", every * d * wrong(d, every), 0.01, 0.0, "<=")


def overlap(load: float, memories: int) -> float:
    """The mean overlap with four patterns of each memory, d = 1000, once every neuron was updated 20 times, fifty at a time."""
    found = []
    for seed in range(memories):
        X = patterns(1000, round(1000 * load), seed)
        starts = X.T[:4]
        found.append((signs_after("hopfield.classical", starts, 400, X=X, B=20) * starts).mean())
    return float(np.mean(found))


def load_of(y: float) -> float:
    """The load at which the overlap of infinitely many neurons is erf(y): y (sqrt(2 load) + 2 exp(-y^2) / sqrt(pi)) = erf(y)."""
    return float((erf(y) / y - 2 / np.sqrt(np.pi) * np.exp(-(y**2))) ** 2 / 2)


def of_statistical_mechanics(load: float) -> float:
    """The overlap erf(y) of infinitely many neurons at a load below .138, above y = 1.512, where the load is largest."""
    return float(erf(brentq(lambda y: load_of(y) - load, 1.512, 8)))


def below_and_beyond() -> Iterable[Measurement]:
    """The largest load with an overlap by statistical mechanics, overlaps below it, and what an independent script has around it."""
    yield Measurement("largest load", -float(minimize_scalar(lambda y: -load_of(y), bounds=(1, 3), method="bounded").fun), 0.138, 5e-4)
    for load, deviation in ((0.05, 1e-4), (0.10, 0.0014)):
        yield Measurement(f"mean overlap at load {load:g}", overlap(load, 4), of_statistical_mechanics(load), 4 * deviation / 4**0.5)
    for load, want, deviation, memories in ((0.13, 0.975, 0.036, 12), (0.15, 0.892, 0.092, 12), (0.18, 0.526, 0.120, 4)):
        yield Measurement(f"mean overlap at load {load:g}", overlap(load, memories), want, 4 * deviation / memories**0.5)


def dense_errors() -> Iterable[Measurement]:
    """One update of all patterns beside the formula of normal noise, d = 60, N = 600, m = 3."""
    want = erfc(np.sqrt(60**2 / (2 * 600 * factorial2(3)))) / 2
    yield Measurement("formula, m = 3", want, 0.0786, 5e-5)
    yield Measurement("formula, m = 3, d = 100, N = 1500", erfc(np.sqrt(100**2 / (2 * 1500 * factorial2(3)))) / 2, 0.0680, 5e-5)
    yield Measurement("error over formula, m = 3", wrong_signs("hopfield.dense", patterns(60, 600)).mean() / want, 1.0, 0.1)


def fast_neurons() -> Iterable[Measurement]:
    """v less hopfield.modern at t = 2, h at rest at the start, over tau_h = .1, .01, .001, beside its first order D.

    h lags behind X^T v by tau_h X^T v': D' = (J - 1) D - J v', J = X (diag p - p p^T) X^T.
    """
    X = np.random.default_rng(0).standard_normal((8, 5))
    start, fine = X[:, 0] / 2 + 0.3, {"rtol": 1e-9, "atol": 1e-12, "method": "rodas5p", "backend": "numpy"}
    common: dict[str, Any] = {"span": (0, 2), "save": [0, 2], **fine}
    one = odesim.integrate("hopfield.modern", params={"X": X, "beta": 1}, initial={"xi": start}, **common).final["xi"]

    def first_order(_: float, y: np.ndarray) -> np.ndarray:
        v, D = y[:8], y[8:]
        p = softmax(X.T @ v)
        J, slope = X @ (np.diag(p) - np.outer(p, p)) @ X.T, X @ p - v
        return np.concatenate([slope, J @ (D - slope) - D])

    D = solve_ivp(first_order, (0, 2), np.r_[start, np.zeros(8)], rtol=1e-10, atol=1e-12).y[8:, -1]
    for tau in (0.1, 0.01, 0.001):
        params: dict[str, Any] = {"X": X, "beta": 1, "tau_h": tau}
        two = odesim.integrate("hopfield.two_layer", params=params, initial={"v": start, "h": X.T @ start}, **common).final["v"]
        off = float(np.abs((two - one) / tau - D).max() / np.abs(D).max())
        yield Measurement(f"tau_h = {tau:g}: distance over tau_h, off its first order, as a share of it", off, 0.0, tau)


SIGNS = (
    Claim(
        "hopfield.signs_of_one_update",
        Source("hopfield1982neural", "capacity", "normal noise of the other patterns"),
        "hopfield.classical, one step of all neurons from each pattern, d = 500, four memories",
        "a sign is wrong after one update with probability erfc(sqrt(d / 2N)) / 2",
        classical_errors,
        "four standard errors of 490 and 2,500 wrong signs; half a unit of the last digit",
        slow=True,
    ),
    Claim(
        "hopfield.exact_recall",
        Source("mceliece1987capacity", "Section 1", "one update of all neurons from a pattern"),
        "hopfield.classical, one step, d = 128: 40 memories of 13 patterns and 40 of 7; the count of signs to d = 8192",
        "N = d / (2 ln d): a given pattern is kept without an error; N = d / (4 ln d): all of them are",
        exact_recall,
        "four standard errors of a count; a tenth and a hundredth of a sign, which fall as 1 / sqrt(ln d)",
        slow=True,
        depends=("hopfield.signs_of_one_update",),
    ),
    Claim(
        "hopfield.load",
        Source("hopfield1982neural", "capacity", "about .15 d; statistical mechanics by Amit, Gutfreund and Sompolinsky 1985"),
        "hopfield.classical, fifty neurons at a time, 20 rounds, d = 1000, four patterns of each of 4 or 12 memories",
        "N = .15 d random patterns are kept, with few errors",
        lambda: [Measurement("mean overlap at load .15", overlap(0.15, 12), 0.97, 0.0, ">=")],
        "overlaps of .97 and more count as few errors",
        fails=True,
        corrected=Statement(
            "they are up to .138 d, with the overlap erf(y), y (sqrt(2 N/d) + 2 exp(-y^2) / sqrt(pi)) = erf(y)",
            below_and_beyond,
            "four standard errors, of the deviations of memories of an independent script",
        ),
        slow=True,
    ),
    Claim(
        "hopfield.dense_capacity",
        Source("krotov2016dense", "eq. 5"),
        "hopfield.dense, one step of all neurons from each pattern",
        "a sign is wrong with probability erfc(sqrt(d^(m-1) / (2 N (2m-3)!!))) / 2",
        dense_errors,
        "three standard errors of 2,800 wrong signs and the correction of order 1/d; half a digit",
        slow=True,
    ),
    Claim(
        "hopfield.fast_memory_neurons",
        Source("krotov2021large", "Section 3", "tau_h -> 0"),
        "hopfield.two_layer beside hopfield.modern, tau_h from .1 to .001",
        "with fast memory neurons two layers are the modern memory, but for tau_h D, D' = (J - 1) D - J v'",
        fast_neurons,
        "the next order: tau_h, as v changes in times of order 1",
    ),
)


DIMENSIONS = (10, 14, 18, 22)
ERRORS = {  # mean, and deviation of a memory, for N = exp(a d), by an independent script of 4 to 2000 memories for each
    0.25: ((0.00567, 0.0066), (0.00102, 0.00145), (0.00017, 0.00033), (0.00003, 0.00008)),
    0.35: ((0.0152, 0.0066), (0.00398, 0.00145), (0.00101, 0.00028), (0.00027, 0.00005)),
    0.45: ((0.0400, 0.0063), (0.0160, 0.0015), (0.00622, 0.0002), (0.00248, 0.0003)),
    0.55: ((0.0956, 0.0058), (0.0588, 0.0012), (0.0352, 0.0014), (0.0211, 0.0010)),
}


def error(a: float, d: int, memories: int, read: int) -> float:
    """The share of wrong signs after one update, from `read` patterns of each of so many memories of exp(a d)."""
    drawn = (patterns(d, round(np.exp(a * d)), seed) for seed in range(memories))
    return float(np.mean([wrong_signs("hopfield.dense:EXPONENTIAL", X, read).mean() for X in drawn]))


def table() -> Iterable[Measurement]:
    """Wrong signs of exp(a d) patterns, a = .25 to .55, d = 10 to 22, beside an independent script; they fall with d and rise with a."""
    found = {}
    for a, row in ERRORS.items():
        for d, (mean, deviation) in zip(DIMENSIONS, row, strict=True):
            N = np.exp(a * d)
            memories, read = (40 if N < 100 else 4 if N < 1000 else 1), round(min(N, 600))
            found[a, d] = error(a, d, memories, read)
            # of memories, and of the signs that are read of each
            spread = 4 * (deviation**2 / memories + mean / (memories * read * d)) ** 0.5
            yield Measurement(f"error at {a:g} d, d = {d}", found[a, d], mean, spread)
        least = min(found[a, d] - found[a, d + 4] for d in DIMENSIONS[:-1])
        yield Measurement(f"{a:g} d: least fall of the error from a d to the next", least, 0.0, 0.0, ">=")
    for d in DIMENSIONS:
        rise = np.diff([found[a, d] for a in ERRORS]).min()
        yield Measurement(f"d = {d}: least rise of the error from a load to the next", rise, 0.0, 0.0, ">=")
    for d in (18, 22):
        yield Measurement(f"error at .25 d, d = {d}", found[0.25, d], 1e-3, 0.0, "<=")


EXPONENTIAL = (
    Claim(
        "hopfield.exponential_capacity",
        Source("demircigil2017model", "exponential interactions", "exp(a d) patterns, a < ln(2) / 2, as d grows"),
        "hopfield.dense:EXPONENTIAL, one step of all neurons, d = 10 to 22, exp(.25 d) to exp(.55 d) patterns",
        "exp(a d) patterns are kept: the share of wrong signs falls with d, here also above a = ln(2) / 2 = .347",
        table,
        "four standard errors, of memories and of the signs that are read",
        slow=True,
    ),
)

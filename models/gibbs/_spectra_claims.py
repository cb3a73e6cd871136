"""What is stated of how fast masked sampling mixes: spectra, gaps, mixing times, strong correlations, parallel decoding."""

from collections.abc import Iterable
from itertools import pairwise
from math import comb
from typing import Any

import numpy as np
from scipy.linalg import expm
from scipy.optimize import brentq

import odesim
from odesim.lab.claims import Claim, Measurement, deviation
from odesim.models.gibbs._kernels import exact, gap, length, lumped
from odesim.models.gibbs._laws import dirichlet, equal_pairs, two_points
from odesim.models.gibbs.lumped import curie_weiss, mixture, target
from odesim.symbolic import Source

PAPER = "li2024promises"
FINE: dict[str, Any] = {"rtol": 1e-11, "atol": 1e-13, "backend": "numpy"}


def signs(n: int, J: float, h: float = 0.0) -> np.ndarray:
    """The law (2^n,) of n signs, all pairs with coupling J, each in a field h."""
    return equal_pairs({"S": 2**n}, {"q": 2, "J": J, "h": h})


def put_together(n: int, k: int, log_w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Kernel (n+1, n+1) and law (n+1,) of the number of ones."""
    return lumped(log_w, k), target({"n": n}, {"log_w": log_w})


def coupled(n: int, b: float, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Kernel and law of the number of ones, Curie-Weiss."""
    return put_together(n, k, curie_weiss({"n": n}, {"b": b}))


def spectrum(P: np.ndarray, p: np.ndarray) -> np.ndarray:
    """The eigenvalues of a reversible kernel, from the smallest."""
    return np.linalg.eigvalsh(np.sqrt(p)[:, None] * P / np.sqrt(p))


LAWS = {
    "six signs": (signs(6, 0.3), 2),
    "two points": (two_points({"S": 64}, {"q": 2, "e": 0.1}), 2),
    "three tokens": (dirichlet({"S": 27}, {"q": 3, "seed": 0}), 3),
}


def reversible() -> Iterable[Measurement]:
    """Rows, balance and eigenvalues of P_k of three laws, all k."""
    for name, (p, q) in LAWS.items():
        for k in range(1, length(len(p), q) + 1):
            P = exact(p, q, k)
            yield deviation(f"{name}, k = {k}: sums of rows", P.sum(axis=1), 1, 1e-14)
            yield deviation(f"{name}, k = {k}: detailed balance", p[:, None] * P, (p[:, None] * P).T, 1e-14)
            yield Measurement(f"{name}, k = {k}: least eigenvalue", spectrum(P, p)[0], 0.0, 1e-13, ">=")
            yield Measurement(f"{name}, k = {k}: largest eigenvalue", spectrum(P, p)[-1], 1.0, 1e-13)


def closed_spectra() -> Iterable[Measurement]:
    """Independent tokens, two signs, and n - 1 masked tokens of a law without order."""
    bias = np.array([0.2, 0.3, 0.5])
    p = np.einsum("a,b,c,d->abcd", bias, bias[::-1], bias, bias).ravel()
    for k in range(1, 5):
        want = np.repeat([comb(4 - a, k) / comb(4, k) for a in range(5)], [2**a * comb(4, a) for a in range(5)])
        yield deviation(f"four independent tokens, k = {k}", spectrum(exact(p, 3, k), p), np.sort(want), 1e-13)
    for rho in (-0.7, 0.2, 0.99):
        p = np.array([1 + rho, 1 - rho, 1 - rho, 1 + rho]) / 4
        yield Measurement(f"two signs, rho = {rho}, k = 1", gap(exact(p, 2, 1), p), (1 - abs(rho)) / 2, 1e-13)
        yield Measurement(f"two signs, rho = {rho}, k = 2", gap(exact(p, 2, 2), p), 1.0, 1e-13)
    yield Measurement("four signs, J = .4, k = 3", gap(exact(signs(4, 0.4), 2, 3), signs(4, 0.4)), 0.26558815, 5e-9)
    log_w = mixture({"n": 20}, {"delta": 0.4})
    yield Measurement("mixture of 20 tokens, k = 19", gap(*put_together(20, 19, log_w)), 19 / 20 * (1 - 0.64), 1e-12)


def lumping() -> Iterable[Measurement]:
    """Six signs, J = .25: gibbs.master beside gibbs.lumped, and their gaps."""
    ones = np.array([bin(x).count("1") for x in range(64)])
    for k in (1, 3):
        full = odesim.integrate("gibbs.master", params={"J": 0.25, "k": k}, span=(0, 30), save=7, **FINE)
        few = odesim.integrate("gibbs.lumped", params={"b": 1.5, "k": k}, sizes={"n": 6}, span=(0, 30), save=7, **FINE)
        counted = np.array([full.y["pi"][:, ones == m].sum(axis=1) for m in range(7)]).T
        yield deviation(f"probability of m ones, k = {k}", counted, few.y["pi"], 1e-10)
        P = coupled(6, 1.5, k)[0]
        chain = np.array([few.y["pi"][0] @ expm((P - np.eye(7)) * t) for t in few.t])
        yield deviation(f"the same by the exponential of its matrix, k = {k}", few.y["pi"], chain, 1e-10)
        yield Measurement(f"gap, k = {k}", gap(exact(signs(6, 0.25), 2, k), signs(6, 0.25)), gap(*coupled(6, 1.5, k)), 1e-13)


MIXING = ((0.5, 1, 39.75, 105.08, 861.3), (1.2, 1, 422.9, 548.4, 3795.0), (1.2, 15, 14.81, 19.76, 132.9))


def mixing_times() -> Iterable[Measurement]:
    """Curie-Weiss with 30 tokens: relaxation time, time to a total variation of 1/4 from the worst number of ones, and the upper bound."""
    for b, k, least, time, most in MIXING:
        P, p = coupled(30, b, k)
        root = np.sqrt(p)
        values, vectors = np.linalg.eigh(root[:, None] * P / root)

        def worst(t: float, p: Any = p, root: Any = root, values: Any = values, vectors: Any = vectors) -> float:
            moved = (vectors * np.exp((values - 1) * t)) @ vectors.T / root[:, None] * root
            return float(np.abs(moved - p).sum(axis=1).max() / 2) - 0.25

        relaxation, found = 1 / gap(P, p), brentq(worst, 1, 5000)
        where = f"b = {b}, k = {k}"
        yield Measurement(f"{where}: mixing time, at least", found, relaxation * np.log(2), 0.0, ">=")
        yield Measurement(f"{where}: mixing time, at most", found, relaxation * np.log(4 / p.min()), 0.0, "<=")
        for name, value, digits in (("lower bound", relaxation * np.log(2), least), ("time", found, time)):
            yield Measurement(f"{where}: {name}", value / digits, 1.0, 5e-4)
        yield Measurement(f"{where}: upper bound", relaxation * np.log(4 / p.min()) / most, 1.0, 5e-4)


def late_rate() -> Iterable[Measurement]:
    """gibbs.master, six signs, J = .3, k = 1: the slope of ln TV from t = 20 to 60, and at late times."""
    run = odesim.integrate("gibbs.master", span=(0, 1200), save=[0, 20, 60, 1000, 1200], **FINE)
    slopes = -np.diff(np.log(run.observables["TV"])) / np.diff(run.t)
    rate = gap(exact(signs(6, 0.3), 2, 1), signs(6, 0.3))
    yield Measurement("slope from 20 to 60", slopes[1], 0.01008, 5e-7)
    yield Measurement("gap", rate, 0.009967, 5e-7)
    yield Measurement("slope at late times", slopes[3], rate, 1e-7)
    ends = odesim.integrate("gibbs.master", save=[0, 100, 400], **FINE).y["pi"][1:, [0, 63]]
    for t, (down, up), want in zip((100, 400), ends, (0.38, 0.96), strict=True):
        yield Measurement(f"all +1 over all -1 at t = {t}", up / down, want, 5e-3)


GAPS = {0.5: (0.5413, 0.5218, 0.5113, 0.5057), 1: (0.1796, 0.1295, 0.0932, 0.0669), 1.5: (0.02581, 0.003927, 1.034e-4, 6.72e-8)}
HALF = (0.0255, 0.00435, 1.25e-4)
MIXED = {0.1: (0.0275, 0.352), 0.2: (0.0076, 0.149), 0.3: (7.65e-4, 0.0346), 0.4: (4.07e-6, 0.00178)}


def strong_correlations() -> Iterable[Measurement]:
    """Curie-Weiss gaps to n = 128, their slopes in n, half of the tokens masked, and mixtures."""
    found = {b: [16 * 2**j * gap(*coupled(16 * 2**j, b, 1)) for j in range(4)] for b in GAPS}
    for b, row in GAPS.items():
        for j, want in enumerate(row):
            yield Measurement(f"n gap_1 over its digits, b = {b}, n = {16 * 2**j}", found[b][j] / want, 1.0, 6e-4)
    yield Measurement("n gap_1 at b = 1/2, n = 128, tends to 1 - b", found[0.5][3], 0.5, 0.01)
    slopes = [(np.log(b / a) - np.log(2)) / n for (a, b), n in zip(pairwise(found[1.5]), (16, 32, 64), strict=True)]
    for slope, want in zip(slopes, (-0.1610, -0.1353, -0.1255), strict=True):
        yield Measurement(f"slope {want} of ln gap_1 at b = 1.5", slope, want, 5e-5)
    m = float(brentq(lambda m: m - np.tanh(1.5 * m), 0.5, 1))
    odds = (1 + m) / 2
    barrier = 0.75 * m**2 - np.log(2) - odds * np.log(odds) - (1 - odds) * np.log(1 - odds)
    yield Measurement("barrier at b = 1.5", barrier, 0.1152, 5e-5)
    yield Measurement("the slope tends to minus the barrier, from below", -slopes[2], barrier, 0.0, ">=")
    for n, want in zip((16, 32, 64), HALF, strict=True):
        yield Measurement(f"gap_n/2 over its digits, b = 1.5, n = {n}", gap(*coupled(n, 1.5, n // 2)) / want, 1.0, 5e-3)
    for delta, (one, ten) in MIXED.items():
        for k, want in ((1, one), (10, ten)):
            value = gap(*put_together(20, k, mixture({"n": 20}, {"delta": delta})))
            yield Measurement(f"gap over its digits, mixture, delta = {delta}, k = {k}", value / want, 1.0, 5e-3)


def two_point_gaps() -> Iterable[Measurement]:
    """Six tokens, e = .1: gaps for all k, and the rate at which a mode is left."""
    p = two_points({"S": 64}, {"q": 2, "e": 0.1})
    for k, want in enumerate((0.00215, 0.00643, 0.01531, 0.03509, 0.08333, 1.0), 1):
        yield Measurement(f"gap_{k}", gap(exact(p, 2, k), p), want, 5e-6)
    small = 0.1 / 64
    yield Measurement("rate at which a mode is left", 1 - exact(p, 2, 1)[0, 0], small / (0.45 + 2 * small), 1e-15)
    yield Measurement("its digits", 1 - exact(p, 2, 1)[0, 0], 0.0034483, 5e-8)


PARALLEL = {(4, 0.4): (0, 0.03565, 0.12095, 0.54833), (6, 0.4): (0, 0.00508, 0.01307, 0.03256, 0.09970, 0.84419)}


def parallel_decoding() -> Iterable[Measurement]:
    """gibbs.parallel at late times: its total variation to the target."""
    late: dict[str, Any] = {"span": (0, 8000), "save": 2, **FINE}
    for rho in (0.3, -0.6):
        law = np.array([1 + rho, 1 - rho, 1 - rho, 1 + rho]) / 4
        run = odesim.integrate("gibbs.parallel", params={"p": law}, sizes={"S": 4}, **late)
        yield Measurement(f"two signs, rho = {rho}", run.observables["TV"][-1], abs(rho) / 2, 1e-9)
    for (n, J), row in PARALLEL.items():
        for k, want in enumerate(row, 1):
            run = odesim.integrate("gibbs.parallel", params={"J": J, "k": k}, sizes={"S": 2**n}, **late)
            yield Measurement(f"n = {n}, J = {J}, k = {k}", run.observables["TV"][-1], want, 1e-5)


DIGITS = "half a unit of the last recorded digit"
SPECTRA = (
    Claim(
        "gibbs.redraws",
        Source(PAPER, "k-Gibbs sampler", "talk"),
        "P_k of three laws, all k",
        "P_k is a mean of projections: reversible, with eigenvalues from 0 to 1",
        reversible,
        "rounding",
        models=("gibbs.master",),
    ),
    Claim(
        "gibbs.closed_spectra",
        Source(PAPER, "k-Gibbs sampler", "in closed form"),
        "P_k of independent tokens, of two signs, of laws without order",
        "gap_k = k/n of independent tokens; two signs: gap_1 = (1 - |rho|)/2; without order: gap_(n-1) = (n-1)(1-rho)/n",
        closed_spectra,
        "rounding; " + DIGITS,
        models=("gibbs.master", "gibbs.lumped"),
    ),
    Claim(
        "gibbs.lumping",
        Source(PAPER, "k-Gibbs sampler", "laws without order"),
        "gibbs.master and gibbs.lumped, six signs, k = 1 and 3",
        "for laws without order the number of ones is a chain of its own, with the same gap",
        lumping,
        "10 rtol",
    ),
    Claim(
        "gibbs.mixing_times",
        Source(PAPER, "Theorem 1", "talk: mixing time and gap"),
        "gibbs.lumped, Curie-Weiss, n = 30",
        "ln 2 / gap <= mixing time <= ln(4 / min p) / gap",
        mixing_times,
        "relative, " + DIGITS,
        depends=("gibbs.redraws",),
    ),
    Claim(
        "gibbs.late_rate",
        Source(PAPER, "Theorem 1", "talk: mixing and gap"),
        "gibbs.master, six signs, J = .3, k = 1",
        "the total variation to the target falls at the rate of the gap",
        late_rate,
        DIGITS + "; the run's error",
        depends=("gibbs.redraws",),
    ),
    Claim(
        "gibbs.strong_correlations",
        Source(PAPER, "Theorem 3", "talk: strong correlations"),
        "gibbs.lumped, Curie-Weiss, n = 16 to 128, and mixtures, n = 20",
        "with strong correlations the gap falls exponentially in n, masking half of the tokens too; with weak ones it is (1 - b)/n",
        strong_correlations,
        "relative, " + DIGITS + "; 2 % of (1 - b)/n at n = 128",
    ),
    Claim(
        "gibbs.two_points",
        Source(PAPER, "Theorem 3", "talk: two modes far apart"),
        "P_k of a law of two sequences and a uniform rest, n = 6",
        "a mode is left at the rate b / (a + b) of its weights",
        two_point_gaps,
        DIGITS,
        models=("gibbs.master",),
    ),
    Claim(
        "gibbs.parallel_decoding",
        Source(PAPER, "Theorem 3", "talk: parallel decoding"),
        "gibbs.parallel to t = 8000: two, four and six signs, all k",
        "a decoder that draws k > 1 masked tokens independently ends at another law, for two signs |rho|/2 from the target",
        parallel_decoding,
        DIGITS + " and as much; the run's error",
        slow=True,
    ),
)

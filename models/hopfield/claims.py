"""What is stated of continuous memories: attention as an update, one pattern or an average, states of rest, capacity; what holds."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy.integrate import simpson
from scipy.optimize import brentq, minimize_scalar
from scipy.spatial.distance import pdist
from scipy.special import lambertw, softmax

import odesim
from odesim.lab.claims import Claim, Measurement, deviation
from odesim.models.hopfield._sign_claims import EXPONENTIAL, SIGNS
from odesim.symbolic import Source

PAPER = "ramsauer2021hopfield"
FINE: dict[str, Any] = {"rtol": 1e-10, "atol": 1e-13, "backend": "numpy"}


def updated(X: np.ndarray, beta: float, xi: np.ndarray) -> np.ndarray:
    """xi (d,) after one update."""
    params: dict[str, Any] = {"X": X, "beta": beta}
    return np.asarray(odesim.integrate("hopfield.update", params=params, initial={"xi": xi}, steps=1, backend="numpy").final["xi"])


def derivative() -> Iterable[Measurement]:
    """Differences of an update beside beta X (diag p - p p^T) X^T, d = 6, N = 9, its eigenvalues, and the bound of two patterns."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X, xi, beta, h = rng.normal(size=(6, 9)), rng.normal(size=6), 0.8, 1e-5
        found = np.array([(updated(X, beta, xi + h * e) - updated(X, beta, xi - h * e)) / (2 * h) for e in np.eye(6)]).T
        p = np.exp(beta * X.T @ xi)
        p /= p.sum()
        J = beta * X @ (np.diag(p) - np.outer(p, p)) @ X.T
        yield deviation(f"differences, seed {seed}", found, J, 1e-8)
        values = np.linalg.eigvalsh((found + found.T) / 2)
        yield Measurement(f"least eigenvalue, seed {seed}", values[0], 0.0, 1e-8, ">=")
        farthest = pdist(X.T).max()
        yield Measurement(f"largest over beta D^2 / 4, seed {seed}", values[-1] / (beta * farthest**2 / 4), 1.0, 0.0, "<=")
        yield Measurement(f"beta D^2 / 4 over 2 beta M^2, seed {seed}", farthest**2 / 8 / (X**2).sum(axis=0).max(), 1.0, 0.0, "<=")
    X = np.random.default_rng(3).normal(size=(6, 2))
    X /= np.linalg.norm(X, axis=0)
    across = (X[:, 0] - X[:, 1]) / pdist(X.T)[0]
    ends = [updated(X, 0.8, X.mean(axis=1) + h * across) @ across for h in (1e-5, -1e-5)]
    middle = (ends[0] - ends[1]) / 2e-5
    yield Measurement("two patterns of length 1, half way: eigenvalue over beta D^2 / 4", middle / (0.2 * pdist(X.T)[0] ** 2), 1.0, 1e-8)


def gradient() -> Iterable[Measurement]:
    """Differences of the energy beside xi - X p, and its slope along the flow beside -|xi - X p|^2 / tau, d = 6, N = 9."""
    h, tau = 1e-5, 1.3
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X, xi, beta = rng.normal(size=(6, 9)), rng.normal(size=6), 0.8

        def run(start: np.ndarray, X: np.ndarray = X, beta: float = beta) -> Any:
            params: dict[str, Any] = {"X": X, "beta": beta, "tau": tau}
            return odesim.integrate("hopfield.modern", params=params, initial={"xi": start}, span=(0, 2e-3), save=3, **FINE)

        def slope(x: np.ndarray, X: np.ndarray = X, beta: float = beta) -> np.ndarray:
            return x - X @ softmax(beta * X.T @ x)

        ends = np.array([[run(xi + sign * h * e).observables["energy"][0] for sign in (1, -1)] for e in np.eye(6)])
        yield deviation(f"gradient by differences, seed {seed}", (ends[:, 0] - ends[:, 1]) / (2 * h), slope(xi), 1e-9)
        short = run(xi)
        found = float(short.observables["energy"][2] - short.observables["energy"][0]) / 2e-3
        middle = slope(short.y["xi"][1])
        yield Measurement(f"slope along the flow, seed {seed}", found, -middle @ middle / tau, 1e-5)


def groups(c: float) -> np.ndarray:
    """X (9, 8): two groups of four patterns, 3 e_0 and -3 e_0, each with a part of length sqrt(c) of its own."""
    return np.vstack([np.repeat([3.0, -3.0], 4), np.sqrt(c) * np.eye(8)])


def of_group(c: float, start: np.ndarray, end: float) -> np.ndarray:
    """p (8,) at the end of the flow at beta = 1."""
    run = odesim.integrate("hopfield.modern", params={"X": groups(c), "beta": 1.0}, initial={"xi": start}, span=(0, end), save=2, **FINE)
    return np.asarray(run.observables["p"][-1])


def metastable() -> Iterable[Measurement]:
    """The average of the first group at c = 3.9 and 4.1; one of its patterns at c = 3.2, 3.5 and 5. The other group has exp(-18) of it."""
    for c in (3.9, 4.1):
        X = groups(c)
        average, apart = X[:, :4].mean(axis=1), (X[:, 0] - X[:, 1]) / np.sqrt(2 * c)
        given: dict[str, Any] = {"params": {"X": X, "beta": 1.0}, "span": (0, 10), "save": 2, **FINE}
        xi = odesim.integrate("hopfield.modern", initial={"xi": average + 1e-4 * apart}, **given).final["xi"]
        yield Measurement(f"c = {c:g}: rate at which the average is left", np.log(xi @ apart / 1e-4) / 10, c / 4 - 1, 1e-6)
    for c, kept in ((3.2, False), (3.5, True), (5.0, True)):
        p = of_group(c, groups(c)[:, 0], 400)
        a = 0.25
        if kept:
            a = brentq(lambda a, c=c: a - 1 / (1 + 3 * np.exp(-c * (a - (1 - a) / 3))), 0.6, 1)
        yield Measurement(f"c = {c:g}: share of the pattern it starts from", p[0], a, 1e-6)
        yield Measurement(f"c = {c:g}: share of the other group", p[4:].sum(), 0.0, 1e-6)


REST = (
    Claim(
        "hopfield.gradient",
        Source(PAPER, "eq. 2"),
        "hopfield.modern, its energy by differences of 1e-5 and along .002 of time, d = 6, N = 9, beta = .8, tau = 1.3, three draws",
        "the flow is that down the energy: grad E = xi - X p, tau dE/dt = -|xi - X p|^2",
        gradient,
        "rounding of the energy over 1e-5, the square of 1e-5; ten times the square of .001",
    ),
    Claim(
        "hopfield.derivative",
        Source(PAPER, "eq. 3", "the derivative of an update; the bound by the diameter D is ours"),
        "hopfield.update by differences of 1e-5, d = 6, N = 9, beta = .8, three draws, and two patterns",
        "J = beta X (diag p - p p^T) X^T has eigenvalues from 0 to beta D^2 / 4 <= 2 beta M^2: the flow has none below -1",
        derivative,
        "the square of the step 1e-5, and rounding over it",
    ),
    Claim(
        "hopfield.metastable",
        Source(PAPER, "eq. 3", "metastable states; groups of patterns with orthogonal parts"),
        "hopfield.modern with two groups of four patterns, from their average and from one of them, beta = 1",
        "the average of m patterns that are close, and far from the rest, is stable for c < m, one of them from c_s of m on",
        metastable,
        "exp(-18) of the other group times what it pulls; the square of 1e-4",
        depends=("hopfield.one_pattern",),
    ),
)


def random_memory(seed: int, d: int, N: int) -> tuple[np.ndarray, np.ndarray]:
    """Patterns X (d, N) of normal numbers, and a state near pattern 0."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(d, N))
    return X, X[:, 0] + 0.1 * rng.normal(size=d)


def attention() -> Iterable[Measurement]:
    """One update, and one Euler step of length tau, beside attention: queries R W_Q, keys Y W_K, beta = 1 / sqrt(d_k)."""
    rng = np.random.default_rng(0)
    R, Y = rng.normal(size=(3, 6)), rng.normal(size=(7, 6))
    W_Q, W_K, W_V = rng.normal(size=(6, 5)), rng.normal(size=(6, 5)), rng.normal(size=(5, 4))
    Q, K, beta = R @ W_Q, Y @ W_K, 1 / np.sqrt(5)
    shares = np.exp(beta * Q @ K.T)
    want = shares / shares.sum(axis=1, keepdims=True) @ (K @ W_V)
    params: dict[str, Any] = {"X": K.T, "beta": beta}
    for row, query in enumerate(Q):
        once = odesim.integrate("hopfield.update", params=params, initial={"xi": query}, steps=1, backend="numpy").final["xi"]
        options: dict[str, Any] = {"method": "euler", "step": 0.7, "span": (0, 0.7), "backend": "numpy"}
        step = odesim.integrate("hopfield.modern", params=params | {"tau": 0.7}, initial={"xi": query}, **options).final["xi"]
        yield deviation(f"update of query {row}", once @ W_V, want[row], 1e-13)
        yield deviation(f"Euler step of query {row}", step @ W_V, want[row], 1e-13)


def bounds() -> Iterable[Measurement]:
    """The energy with its constant, log(N) / beta + M^2 / 2, along the flow from |xi| = M."""
    for seed in range(3):
        X, start = random_memory(seed, 6, 9)
        M = np.linalg.norm(X, axis=0).max()
        start *= M / np.linalg.norm(start)
        run = odesim.integrate("hopfield.modern", params={"X": X, "beta": 0.8}, initial={"xi": start}, save=101, **FINE)
        energy = run.observables["energy"] + np.log(9) / 0.8 + M**2 / 2
        yield Measurement(f"least energy, seed {seed}", energy.min(), 0.0, 0.0, ">=")
        yield Measurement(f"largest energy over 2 M^2, seed {seed}", energy.max() / (2 * M**2), 1.0, 0.0, "<=")
        yield Measurement(f"largest rise, seed {seed}", np.diff(energy).max(), 0.0, 1e-9, "<=")
        speeds = np.sum((softmax(0.8 * run.y["xi"] @ X, axis=1) @ X.T - run.y["xi"]) ** 2, axis=1)
        fall = (energy[0] - energy[-1]) / simpson(speeds, x=run.t)
        yield Measurement(f"fall, over the integral of the squared speed, seed {seed}", fall, 1.0, 0.01)


def pitchfork() -> Iterable[Measurement]:
    """The end of the flow between two patterns, with c = beta delta^2."""
    for c, end, half in ((0.9, 0.0, 1e-13), (1.5, 0.8585596366, 5e-11), (3.0, 0.9949015, 5e-8)):
        u = odesim.integrate("hopfield.two_patterns", params={"beta": c}, span=(0, 300), save=2, **FINE).final["u"]
        yield Measurement(f"u at c = {c:g}", u, end, half)


def overlaps(c: float, start: np.ndarray, end: float) -> Any:
    """A run of the overlaps from `start`."""
    return odesim.integrate("hopfield.potts", params={"c": c}, initial={"z": start}, span=(0, end), save=2, **FINE)


def least(N: int) -> float:
    """c_s: the least c with a state near one pattern, the minimum over a of log((N-1) a/(1-a)) / (a - (1-a)/(N-1))."""
    found = minimize_scalar(
        lambda a: np.log((N - 1) * a / (1 - a)) / (a - (1 - a) / (N - 1)), bounds=(1 / N + 1e-6, 1 - 1e-9), method="bounded"
    )
    return float(found.fun)


def one_pattern() -> Iterable[Measurement]:
    """c_s to its recorded digits; a thousandth above it the overlap with one pattern stays, a hundredth below it is lost."""
    for N, value in ((3, 2.745644), (4, 3.218741), (8, 4.249799), (16, 5.189036)):
        yield Measurement(f"c_s of N = {N}", least(N), value, 5e-7)
        first = np.eye(N)[0]
        yield Measurement(f"overlap above c_s, N = {N}", overlaps(1.001 * value, first, 400).final["z"][0], 0.5, 0.0, ">=")
        yield Measurement(f"overlap below c_s, N = {N}", overlaps(0.99 * value, first, 400).final["z"][0], 1 / N, 1e-6)


def average() -> Iterable[Measurement]:
    """The rate at which a small difference of two overlaps grows, around the average of all patterns."""
    for c in (7.9, 8.1):
        start = np.full(8, 1 / 8) + 1e-6 * (np.eye(8)[0] - np.eye(8)[1])
        z = overlaps(c, start, 20).final["z"]
        yield Measurement(f"rate at c = {c:g}", np.log((z[0] - z[1]) / 2e-6) / 20, c / 8 - 1, 1e-8)


def equal_energy() -> Iterable[Measurement]:
    """At c* both states have one energy, the overlap is (N-1)/N, and the flow from near each of them ends in it."""
    for N in (3, 4, 8, 16):
        c, a = 2 * (N - 1) * np.log(N - 1) / (N - 2), (N - 1) / N
        kept, spread = (overlaps(c, start, 1e-9) for start in (np.where(np.arange(N) == 0, a, (1 - a) / (N - 1)), np.full(N, 1 / N)))
        yield Measurement(f"energy difference, N = {N}", kept.observables["energy"][0] - spread.observables["energy"][0], 0.0, 1e-14)
        z = kept.y["z"][0]
        yield deviation(f"rest at the overlap, N = {N}", np.exp(c * z) / np.exp(c * z).sum(), z, 1e-14)
        for name, rest, other in (("pattern", z, spread.y["z"][0]), ("average", spread.y["z"][0], z)):
            end = overlaps(c, 0.97 * rest + 0.03 * other, 200.0)
            yield deviation(f"flow from near the {name}, N = {N}", end.final["z"], rest, 1e-7)


def capacity(beta: float, K: float, d: int, p_f: float = 0.001) -> tuple[float, float]:
    """a + ln b, and the base c of the number of patterns, N >= sqrt(p_f) c^((d-1)/4), on the sphere of radius K sqrt(d-1)."""
    a = 2 / (d - 1) * (1 + np.log(2 * beta * K**2 * p_f * (d - 1)))
    b = 2 * K**2 * beta / 5
    return float(a + np.log(b)), float(b / lambertw(np.exp(a + np.log(b))).real)


def constants() -> Iterable[Measurement]:
    """The two values that the paper gives, and what Lambert's W is taken of."""
    for K, d, inside, c, unit in ((3, 20, 1.27, 3.1546, 5e-5), (1, 75, -0.94, 1.3718, 1e-4)):
        found = capacity(1, K, d)
        yield Measurement(f"a + ln b at beta = 1, K = {K}, d = {d}", found[0], inside, 5e-3)
        yield Measurement(f"c at beta = 1, K = {K}, d = {d}", found[1], c, unit)
    for K, d, c in ((3, 20, 3.667), (1, 75, 1.503)):
        yield Measurement(f"c if d - 1 were not in the logarithm, K = {K}, d = {d}", capacity(1, K, d, 0.001 / (d - 1))[1], c, 5e-4)


def one_update() -> Iterable[Measurement]:
    """The error of one update over its bound, the largest of 150 memories of 50 patterns, beside an independent script."""
    ratios = []
    for seed in range(150):
        X, start = random_memory(seed, 20, 50)
        M, gaps = np.linalg.norm(X, axis=0).max(), X.T @ X[:, 0]
        rest = [X[:, 0]]
        for _ in range(50):
            shares = np.exp(X.T @ rest[-1] - (X.T @ rest[-1]).max())
            rest.append(X @ shares / shares.sum())
        distance = max(np.linalg.norm(start - X[:, 0]), np.linalg.norm(rest[-1] - X[:, 0]))
        bound = 2 * 49 * M * np.exp(-(gaps[0] - gaps[1:].max() - 2 * distance * M))
        run = odesim.integrate("hopfield.update", params={"X": X, "beta": 1.0}, initial={"xi": start}, steps=1, backend="numpy")
        ratios.append(np.linalg.norm(run.final["xi"] - X[:, 0]) / bound)
    yield Measurement("error over bound", max(ratios), 1.0, 0.0, "<=")
    yield Measurement("its digits", max(ratios), 4.289e-4, 6e-8)


ROUNDING = "rounding of sums of a few terms of order 1"
CLAIMS = (
    Claim(
        "hopfield.attention",
        Source(PAPER, "eq. 3"),
        "three queries and seven patterns, by hopfield.update and by one Euler step of hopfield.modern",
        "one update is attention: softmax(Q K^T / sqrt(d_k)) V with V = K W_V",
        attention,
        ROUNDING,
    ),
    Claim(
        "hopfield.energy_bounds",
        Source(PAPER, "eq. 2"),
        "hopfield.modern from |xi| = M, d = 6, N = 9, beta = .8, three draws",
        "0 <= E <= 2 M^2, and E falls",
        bounds,
        "none for the bounds; 10 times rtol for the fall; 1 % for Simpson's rule",
    ),
    Claim(
        "hopfield.pitchfork",
        Source(PAPER, "eq. 3", "two patterns"),
        "hopfield.two_patterns to t = 300",
        "the state is the average of two patterns for beta |x1 - x2|^2/4 < 1, else u = tanh(c u)",
        pitchfork,
        "half a unit of the last recorded digit; the absolute tolerance of the run",
    ),
    Claim(
        "hopfield.one_pattern",
        Source(PAPER, "eq. 3", "orthogonal patterns"),
        "hopfield.potts from one pattern to t = 400, N = 3 to 16",
        "a state near one pattern exists from c_s on, the minimum over a of log((N-1)a/(1-a)) / (a - (1-a)/(N-1))",
        one_pattern,
        "half a unit of the last recorded digit; a hundredth below c_s the rest is left at a rate of .01 or more",
    ),
    Claim(
        "hopfield.average",
        Source(PAPER, "eq. 3", "orthogonal patterns"),
        "hopfield.potts near the average, N = 8, c = 7.9 and 8.1",
        "the average of all patterns is stable if and only if c < N: rate c/N - 1",
        average,
        "the square of 1e-6",
    ),
    Claim(
        "hopfield.equal_energy",
        Source(PAPER, "eq. 3", "orthogonal patterns"),
        "hopfield.potts at rest and from near rest to t = 200, N = 3 to 16",
        "one pattern and the average have equal energy at c = 2 (N-1) log(N-1) / (N-2), with overlap (N-1)/N; the flow ends in both",
        equal_energy,
        "rounding; what is left of a start at t = 200",
        depends=("hopfield.one_pattern", "hopfield.average"),
    ),
    Claim(
        "hopfield.capacity",
        Source(PAPER, "Theorem 3"),
        "the constants of the theorem by Lambert's W",
        "N >= sqrt(p) c^((d-1)/4) patterns, c = b / W0(exp(a + log b)): 3.1546 and 1.3718",
        constants,
        "half a unit of the last digit, a unit where the paper cuts it off",
        models=("hopfield.update",),
    ),
    Claim(
        "hopfield.one_update",
        Source(PAPER, "Theorem 5"),
        "one update of 150 random memories, d = 20, N = 50, beta = 1",
        "|f(xi) - x| <= 2 (N-1) M exp(-beta (Delta - 2 max(|xi - x|, |x* - x|) M))",
        one_update,
        "none: it is a bound; half a unit of the last recorded digit",
        models=("hopfield.update",),
    ),
    *REST,
    *SIGNS,
    *EXPONENTIAL,
)

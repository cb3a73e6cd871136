"""What is stated of continuous associative memories: attention as an update, one pattern or an average, capacity; and what holds."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy.integrate import simpson
from scipy.optimize import minimize_scalar
from scipy.special import lambertw, softmax

import odesim
from odesim.lab.claims import Claim, Measurement, Statement, deviation
from odesim.models.hopfield._exponential_claims import EXPONENTIAL
from odesim.models.hopfield._rest_claims import REST
from odesim.models.hopfield._sign_claims import SIGNS
from odesim.symbolic import Source

PAPER = "ramsauer2021hopfield"
FINE: dict[str, Any] = {"rtol": 1e-10, "atol": 1e-13, "backend": "numpy"}


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
        yield Measurement(f"u at c = {c:g}", float(u), end, half)


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
        printed=Statement("one update is attention: softmax(Q K^T / sqrt(d_k)) V with V = K W_V", attention, ROUNDING),
    ),
    Claim(
        "hopfield.energy_bounds",
        Source(PAPER, "eq. 2"),
        "hopfield.modern from |xi| = M, d = 6, N = 9, beta = .8, three draws",
        printed=Statement(
            "0 <= E <= 2 M^2, and E falls", bounds, "none for the bounds; 10 times rtol for the fall; 1 % for Simpson's rule"
        ),
    ),
    Claim(
        "hopfield.pitchfork",
        Source(PAPER, "eq. 3", "two patterns"),
        "hopfield.two_patterns to t = 300",
        printed=Statement(
            "the state is the average of two patterns for beta |x1 - x2|^2/4 < 1, else u = tanh(c u)",
            pitchfork,
            "half a unit of the last recorded digit; the absolute tolerance of the run",
        ),
    ),
    Claim(
        "hopfield.one_pattern",
        Source(PAPER, "eq. 3", "orthogonal patterns"),
        "hopfield.potts from one pattern to t = 400, N = 3 to 16",
        printed=Statement(
            "a state near one pattern exists from c_s on, the minimum over a of log((N-1)a/(1-a)) / (a - (1-a)/(N-1))",
            one_pattern,
            "half a unit of the last recorded digit; a hundredth below c_s the rest is left at a rate of .01 or more",
        ),
    ),
    Claim(
        "hopfield.average",
        Source(PAPER, "eq. 3", "orthogonal patterns"),
        "hopfield.potts near the average, N = 8, c = 7.9 and 8.1",
        printed=Statement("the average of all patterns is stable if and only if c < N: rate c/N - 1", average, "the square of 1e-6"),
    ),
    Claim(
        "hopfield.equal_energy",
        Source(PAPER, "eq. 3", "orthogonal patterns"),
        "hopfield.potts at rest and from near rest to t = 200, N = 3 to 16",
        printed=Statement(
            "one pattern and the average have equal energy at c = 2 (N-1) log(N-1) / (N-2), with overlap (N-1)/N; the flow ends in both",
            equal_energy,
            "rounding; what is left of a start at t = 200",
        ),
        depends=("hopfield.one_pattern", "hopfield.average"),
    ),
    Claim(
        "hopfield.capacity",
        Source(PAPER, "Theorem 3"),
        "the constants of the theorem by Lambert's W",
        printed=Statement(
            "N >= sqrt(p) c^((d-1)/4) patterns, c = b / W0(exp(a + log b)): 3.1546 and 1.3718",
            constants,
            "half a unit of the last digit, a unit where the paper cuts it off",
        ),
        models=("hopfield.update",),
    ),
    Claim(
        "hopfield.one_update",
        Source(PAPER, "Theorem 5"),
        "one update of 150 random memories, d = 20, N = 50, beta = 1",
        printed=Statement(
            "|f(xi) - x| <= 2 (N-1) M exp(-beta (Delta - 2 max(|xi - x|, |x* - x|) M))",
            one_update,
            "none: it is a bound; half a unit of the last recorded digit",
        ),
        models=("hopfield.update",),
    ),
    *REST,
    *SIGNS,
    *EXPONENTIAL,
)

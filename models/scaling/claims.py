"""What is stated of SGD on power laws, word embeddings, escape from the equator, and saddles one after another; what holds."""

from collections.abc import Iterable
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.optimize import linprog
from scipy.signal import fftconvolve

import odesim
from odesim.lab.claims import Claim, Measurement, deviation
from odesim.models.scaling._saddles import saddles
from odesim.models.scaling.word2vec import modes, target
from odesim.symbolic import Source

# What is stated of one-pass SGD on power laws, and what holds: exponents of time, the Volterra equation, the limit of small steps.

PAPER = "paquette2024phases"
FINER: dict[str, Any] = {"rtol": 1e-10, "atol": 1e-15, "backend": "numpy"}
STIFF: dict[str, Any] = {"method": "rodas5p", "rtol": 1e-9, "atol": 1e-15}
LONG = {(1.0, 0.8, 0.1): 1.281714519e-5, (0.8, 0.5, 0.3): 8.113973581e-5, (0.8, 1.2, 0.3): 8.751949159e-7}
"""(a, b, g) -> the risk of 3,000 modes without label noise at t = 1e4, by the eigenvectors of the matrix of the flow."""
SLOPES = {(1.0, 0.8): (1.305, 1.305), (0.8, 0.5): (1.008, 1.017), (0.8, 1.2): (1.465, 1.408)}
"""(a, b) -> exponents from t = 1e2 to 1e3 and from there to 1e4, by another integrator."""
SHORT = (0.1231488154, 0.0106128618)
"""The risk of 300 modes, a = 1, b = .8, g = .1, s2 = .01, at t = 10 and 100, by another integrator."""


def risks(a: float, b: float, g: float) -> Any:
    """R (3,) of 3,000 modes without label noise at t = 1e2, 1e3, 1e4."""
    params = {"a": a, "b": b, "g": g, "s2": 0.0}
    run = odesim.integrate("scaling.sgd", params=params, sizes={"n": 3000}, save=[0, 1e2, 1e3, 1e4], span=(0, 1e4), **STIFF)
    return run.observables["R"][1:]


def slopes(R: Any) -> Any:
    """Exponents of R between two times a decade apart."""
    return -np.diff(np.log10(R))


def of_target(a: float, b: float) -> float:
    """r = (2a + 2b - 1)/(2a)."""
    return (2 * a + 2 * b - 1) / (2 * a)


def target_rules() -> Iterable[Measurement]:
    """Two cases b < a, to t = 1e4: the exponent, and the risk itself."""
    for a, b, g in ((1.0, 0.8, 0.1), (0.8, 0.5, 0.3)):
        R = risks(a, b, g)
        yield deviation(f"exponents, a = {a:g}, b = {b:g}", slopes(R), of_target(a, b), 0.02)
        yield deviation(f"recorded exponents, a = {a:g}, b = {b:g}", slopes(R), SLOPES[a, b], 6e-4)
        yield deviation(f"R at t = 1e4, a = {a:g}, b = {b:g}", R[-1], LONG[a, b, g], 1e-8, relative=True)


def easy_target() -> Iterable[Measurement]:
    """b > a: the exponent of the target is not seen."""
    yield deviation("exponents, a = .8, b = 1.2", slopes(risks(0.8, 1.2, 0.3)), of_target(0.8, 1.2), 0.02)


def noise_rules() -> Iterable[Measurement]:
    """b > a: the exponent comes to that of the kernel from above."""
    R = risks(0.8, 1.2, 0.3)
    found = slopes(R)
    yield Measurement("exponent from t = 1e3 to 1e4", found[1], 2 - 1 / 1.6, 0.04)
    yield Measurement("exponent from t = 1e2 to 1e3, above it", found[0] - found[1], 0.0, 0.0, ">=")
    yield deviation("recorded exponents", found, SLOPES[0.8, 1.2], 6e-4)
    yield deviation("R at t = 1e4", R[-1], LONG[0.8, 1.2, 0.3], 1e-8, relative=True)


def volterra(h: float, end: float, a: float = 1.0, b: float = 0.8, g: float = 0.1, s2: float = 0.01, n: int = 300) -> Any:
    """R (time,) of R = F + K * R by the trapezoidal rule: the steps solved at once, as a convolution with the resolvent's powers."""
    t = np.arange(round(end / h) + 1) * h
    lam = np.arange(1.0, n + 1) ** (-2 * a)
    decay = np.exp(-2 * g * np.outer(t, lam))
    F, K = decay @ (lam * np.arange(1.0, n + 1) ** (-2 * b)) / 2 + s2 / 2, g**2 * decay @ lam**2
    R = F.copy()
    for _ in range(30):  # ||K|| = .08, to the power 30
        inside = fftconvolve(K, R)[: len(t)] - K[0] * R / 2 - K * R[0] / 2
        R = F + h * inside
    return R


def equation() -> Iterable[Measurement]:
    """Modes beside the Volterra equation, 300 of them; the limit with label noise; and a rate at which there is none."""
    run = odesim.integrate("scaling.sgd", sizes={"n": 300}, save=[0, 10, 100], span=(0, 100), **FINER)
    modes = run.observables["R"]
    yield deviation("R at t = 10, 100 of modes", modes[1:], SHORT, 1e-9)
    yield deviation("R at t = 10, 100 of the equation, relative", volterra(0.05, 100)[[200, 2000]], modes[1:], 2e-5, relative=True)
    lam = np.arange(1.0, 61) ** -2.0
    for g in (0.1, 0.5):
        end = odesim.integrate("scaling.sgd", params={"g": g}, span=(0, 1e6), save=2, **STIFF)
        yield deviation(f"R in the end, g = {g:g}", end.observables["R"][-1], 0.005 / (1 - g / 2 * lam.sum()), 1e-8)
    wild = odesim.integrate("scaling.sgd", params={"g": 2.1 / lam.sum()}, span=(0, 1e3), save=2, **FINER).observables["R"]
    yield Measurement("R in the end over the first, ||K|| = 1.05", wild[-1] / wild[0], 1.0, 0.0, ">=")


def sampled(runs: int = 2000) -> Any:
    """(mean, standard error) (2, 2) of the risk of SGD itself after 10 and 100 steps, 300 inputs."""
    rng = np.random.default_rng(3)
    root = np.arange(1.0, 301) ** -1.0
    delta, out = np.tile(np.arange(1.0, 301) ** -0.8, (runs, 1)), []
    for step in range(1, 101):
        x = rng.normal(size=delta.shape) * root
        delta -= 0.1 * x * ((x * delta).sum(axis=1) - 0.1 * rng.normal(size=runs))[:, None]
        if step in (10, 100):
            risk = (delta**2 @ root**2 + 0.01) / 2
            out.append((risk.mean(), risk.std() / runs**0.5))
    return np.transpose(out)


def gap(g: float, B: float) -> float:
    """R of SGD above that of the limit at g t = 1, 100 inputs."""
    given: dict[str, Any] = {"params": {"g": g, "B": B}, "sizes": {"n": 100}, "save": [0, round(1 / g)]}
    steps = odesim.integrate("scaling.sgd_steps", **given, backend="numpy").observables["R"][-1]
    return float(steps - odesim.integrate("scaling.sgd", span=(0, round(1 / g)), **given, **FINER).observables["R"][-1])


def small_steps() -> Iterable[Measurement]:
    """SGD itself beside its exact moments; and how the gap to the limit falls with g, at g t = 1."""
    given: dict[str, Any] = {"sizes": {"n": 300}, "save": [0, 10, 100], "backend": "numpy"}
    steps = odesim.integrate("scaling.sgd_steps", **given).observables["R"][1:]
    for k, (mean, error) in enumerate(sampled().T):
        yield Measurement(f"R of SGD, 2,000 runs, t = {10 ** (k + 1)}", mean, steps[k], 4 * float(error))
    flow = odesim.integrate("scaling.sgd", span=(0, 100), **{**given, **FINER}).observables["R"][1:]
    yield Measurement("R of the limit below that of SGD, g = .1, t = 10, part", 1 - flow[0] / steps[0], 0.026, 0.001)
    for B, order in ((1, 2), (4, 1)):
        gaps = [gap(g, B) for g in (0.05, 0.025, 0.0125)]
        for k, found in enumerate(np.log2(np.array(gaps[:-1]) / gaps[1:])):
            yield Measurement(f"order of the gap from g = {0.05 / 2**k:g} to half of it, B = {B}", found, order, 0.15)


def best_of_compute(a: float, b: float, g: float) -> Any:
    """(exponent of the least risk, exponent of the N that has it) against compute C = N t, from 1e3 to 1e6: N modes, the rest is noise."""
    N, t = np.rint(2.0 ** np.arange(3, 9.01, 0.5)), np.logspace(1, 5.5, 91)
    far = 10**6
    rest = np.cumsum((np.arange(far, 8.0, -1)) ** (-2 * a - 2 * b))[::-1] + far ** (1 - 2 * a - 2 * b) / (
        2 * a + 2 * b - 1
    )  # from mode 9 on
    C = np.logspace(3, 6, 13)
    risk = []
    for n in N.astype(int):
        given: dict[str, Any] = {"params": {"a": a, "b": b, "g": g, "s2": float(rest[n - 8])}, "sizes": {"n": n}}
        run = odesim.integrate("scaling.sgd", **given, span=(0, t[-1]), save=[0, *t], **{**STIFF, "rtol": 1e-7})
        R = np.exp(np.interp(np.log(C / n), np.log(t), np.log(run.observables["R"][1:])))
        risk.append(np.where((C / n >= t[0]) & (C / n <= t[-1]), R, np.inf))
    best = np.argmin(risk, axis=0)
    return tuple(float(np.polyfit(np.log(C), np.log(y), 1)[0]) for y in (np.min(risk, axis=0), N[best]))


def compute(*cases: tuple[float, float, float]) -> Iterable[Measurement]:
    """Sizes from 8 to 512 modes, steps from 10 to 3e5."""
    for a, b, g in cases:
        fall, growth = best_of_compute(a, b, g)
        yield Measurement(f"exponent of the least risk, a = {a:g}, b = {b:g}", fall, -2 * a * of_target(a, b) / (1 + 2 * a), 0.015)
        yield Measurement(f"exponent of the best N, a = {a:g}, b = {b:g}", growth, 1 / (1 + 2 * a), 0.05)


SLOPE = "exponents: .02, half a decade from where the power law begins; risks: the digits recorded"
SGD_CLAIMS = (
    Claim(
        "scaling.time_exponent",
        Source(PAPER, "abstract", "forcing function"),
        "scaling.sgd, 3,000 modes without label noise, to t = 1e4",
        "the risk falls with time as t^(-(2a + 2b - 1)/(2a))",
        target_rules,
        SLOPE,
        when="b < a: else the noise of SGD falls more slowly, as t^(-(2 - 1/(2a)))",
        otherwise=easy_target,
    ),
    Claim(
        "scaling.noise_exponent",
        Source(PAPER, "abstract", "kernel function"),
        "scaling.sgd, 3,000 modes, a = .8, b = 1.2, to t = 1e4",
        "where b > a the noise of SGD sets the exponent, 2 - 1/(2a)",
        noise_rules,
        "exponent: .04, since the target's part, t^(-1.875), still adds; risk: the digits recorded",
        depends=("scaling.time_exponent",),
    ),
    Claim(
        "scaling.compute",
        Source(PAPER, "abstract", "where model capacity and the target set the risk, without random features"),
        "scaling.sgd, 8 to 512 modes to t = 3e5, the other modes as noise of labels",
        "with compute C = N t the least risk falls as C^(-(2a + 2b - 1)/(2a + 1)), at N ~ C^(1/(2a + 1))",
        partial(compute, (1.0, 0.8, 0.1), (1.0, 0.3, 0.1), (0.8, 0.5, 0.3)),
        "exponents: .015, over three decades of C; of N .05, in steps of 2^(1/2)",
        when="b < a, as the exponent of time",
        otherwise=partial(compute, (0.8, 1.2, 0.3)),
        depends=("scaling.time_exponent",),
    ),
    Claim(
        "scaling.volterra",
        Source(PAPER, "abstract", "Volterra equation"),
        "scaling.sgd, 300 modes to t = 100, 60 to 1e6; the equation in steps of .05",
        "the risk of SGD solves R = F + K * R, and rests at (s2/2)/(1 - ||K||) if ||K|| = (g/2) sum lam < 1",
        equation,
        "modes: the digits recorded; equation: the trapezoidal rule in steps of .05",
    ),
    Claim(
        "scaling.small_steps",
        Source(PAPER, "abstract", "one-pass SGD"),
        "scaling.sgd beside scaling.sgd_steps, and 2,000 runs of SGD with 300 inputs",
        "modes in continuous time have the risk of SGD up to order g, and up to order g^2 for batches of one sample",
        small_steps,
        "runs: four standard errors; orders: .15, of rates that are not small",
        depends=("scaling.volterra",),
    ),
)


WORDS, INDEX, INDICES, MIRROR, DIAGONAL = (f"scaling.{name}" for name in ("word2vec", "single_index", "multi_index", "mirror", "diagonal"))
CONTEXTS = "scaling.word2vec_untied"
FINE: dict[str, Any] = {"rtol": 1e-10, "atol": 1e-13, "backend": "numpy"}

# Word embeddings.

TOGETHER = np.array(((10, 6, 1, 1), (6, 12, 2, 1), (1, 2, 20, 8), (1, 1, 8, 20))) / 100
EIGENVALUES = (3.68972545, 0.97461589, 0.41752924, -1.67526621)
LEARNED = {2.0: (3.6897254, 0.6960785), 4.0: (3.6897254, 0.9744556)}
"""t -> the two largest eigenvalues of W W^T from s0 = .001, by the flow of all vectors with another integrator."""


def strengths(run: Any) -> Any:
    """Eigenvalues of W^T W (time, d), the largest first."""
    return np.linalg.eigvalsh(run.observables["gram"])[:, ::-1]


def of_words(flat: float, end: float, W0: Any, save: Any) -> Any:
    """A run of four words in two dimensions or more."""
    given: dict[str, Any] = {"params": {"P": TOGETHER, "flat": flat, "W0": W0}, "sizes": {"d": np.shape(W0)[1]}}
    return odesim.integrate(WORDS, **given, span=(0, end), save=save, **FINE)


def sigmoids() -> Iterable[Measurement]:
    """Four words, flat weights: aligned vectors in two dimensions, and what four dimensions learn in the end."""
    m, U = modes(TOGETHER)
    yield deviation("eigenvalues of M", m, EIGENVALUES, 1e-8)
    run = of_words(1.0, 4, np.sqrt(1e-3) * U[:, :2], [0, *LEARNED])
    for row, (t, want) in zip(strengths(run)[1:], LEARNED.items(), strict=True):
        yield deviation(f"eigenvalues of W W^T at t = {t:g}", row, want, 1e-7)
        grown = m[:2] * np.exp(4 * m[:2] * t) / (np.exp(4 * m[:2] * t) - 1 + m[:2] / 1e-3)
        yield deviation(f"sigmoids at t = {t:g}", row, grown, 1e-8)
    half = of_words(1.0, 4, np.sqrt(1e-3) * U[:, :2], [0, *sorted(np.log(m[:2] / 1e-3 - 1) / (4 * m[:2]))])
    yield deviation("a half of each, at ln(m/s0 - 1)/(4 m)", [strengths(half)[k + 1, k] for k in range(2)], m[:2] / 2, 1e-8)
    yield deviation("four dimensions in the end", strengths(of_words(1.0, 30, np.sqrt(1e-3) * U, 2))[-1], [*m[:3], 0.0], 1e-6)


def weighted() -> Iterable[Measurement]:
    """The same start with the weights of the loss, as often as they stand together, at the half times of flat weights."""
    m, U = modes(TOGETHER)
    half = of_words(0.0, 4, np.sqrt(1e-3) * U[:, :2], [0, *(np.log(m[:2] / 1e-3 - 1) / (4 * m[:2]))])
    yield deviation("a half of each, at ln(m/s0 - 1)/(4 m)", [strengths(half)[k + 1, k] for k in range(2)], m[:2] / 2, 1e-8)


def random_words() -> Iterable[Measurement]:
    """Random vectors of size 1e-4: when each eigenvalue is half of the one that is learned; gaps between these are far above a step's."""
    m, _ = modes(TOGETHER)
    t = np.linspace(0, 20, 2001)
    for seed in range(3):
        run = of_words(1.0, 20, 1e-4 * np.random.default_rng(seed).normal(size=(4, 3)), t)
        found = strengths(run)
        half = np.array([t[np.argmax(found[:, k] > m[k] / 2)] for k in range(3)])
        # a mode grows as exp(4 m t) from its projection, whose logarithm is of order 1, from the moment it is the largest one left
        yield deviation(f"m times the half time, ln(m/1e-8)/4, seed {seed}", half * m[:3], np.log(m[:3] / 1e-8) / 4, 1.0)
        yield Measurement(f"the shortest gap between modes, seed {seed}", np.diff(half).min(), 2.0, 0.0, ">=")
        yield deviation(f"in the end, seed {seed}", found[-1], m[:3], 1e-3)


def contexts() -> Iterable[Measurement]:
    """Four words with contexts of their own: random starts of size 1e-4, in four dimensions and two, and one with W = C."""
    m, U = modes(TOGETHER)
    first = np.argsort(-np.abs(m))
    given: dict[str, Any] = {"span": (0, 80), "save": np.linspace(0, 80, 801), **FINE}
    for seed in range(3):
        W0, C0 = 1e-4 * np.random.default_rng(seed).normal(size=(2, 4, 4))
        run = odesim.integrate(CONTEXTS, params={"P": TOGETHER, "W0": W0, "C0": C0}, **given)
        scores = np.einsum("ik,tij,jk->tk", U, run.observables["scores"], U)[:, first]
        yield deviation(f"W C^T - M, four dimensions, seed {seed}", run.observables["scores"][-1], target(TOGETHER), 1e-6)
        half = np.array([run.t[np.argmax(np.abs(scores[:, k]) > np.abs(m[first[k]]) / 2)] for k in range(4)])
        yield deviation(
            f"|m| times the half time, ln(|m|/1e-8)/2, seed {seed}", half * np.abs(m[first]), np.log(np.abs(m[first]) / 1e-8) / 2, 2
        )
        yield Measurement(f"shortest time from one |m| to the next, seed {seed}", np.diff(half).min(), 1.0, 0.0, ">=")
        two = odesim.integrate(CONTEXTS, params={"P": TOGETHER, "W0": W0[:, :2], "C0": C0[:, :2]}, **given).observables["scores"][-1]
        yield deviation(f"two dimensions, seed {seed}", np.diag(U.T @ two @ U)[first], [*m[first[:2]], 0, 0], 1e-6)
    W0 = 1e-2 * np.random.default_rng(3).normal(size=(4, 3))
    both = odesim.integrate(CONTEXTS, params={"P": TOGETHER, "W0": W0, "C0": W0}, span=(0, 8), save=9, **FINE)
    yield deviation("W from W = C, and of shared vectors in half the time", both.y["W"], of_words(1.0, 4, W0, 9).y["W"], 1e-7)


# Escape from the equator.

TIMES = {
    2: (0.8741268904, 2.0279070196, 3.1792243173),
    3: (2.8163235989, 32.8464352703, 332.8494353813),
    4: (12.4370634, 1250.5139535, 125001.0896),
}
"""Information exponent -> times from d^(-1/2) to 1/2 for d = 1e2, 1e4, 1e6, by another integrator's events."""
DIMENSIONS = (1e2, 1e4, 1e6)


def escape() -> Iterable[Measurement]:
    """The event `half way` for k = 1 to 4: times, and their laws."""
    for k in (1, 2, 3, 4):
        found = []
        for d, longest in zip(DIMENSIONS, 1.01 * np.array(TIMES.get(k, (1, 1, 1))), strict=True):
            run = odesim.integrate(INDEX, params={"k": k, "d": d}, span=(0, longest), save=2, **FINE)
            found.append(run.events["half way"][0]["t"])
        if k == 1:
            yield deviation(
                "k = 1: artanh(1/2) - artanh(d^(-1/2))", found, np.arctanh(0.5) - np.arctanh(np.array(DIMENSIONS) ** -0.5), 1e-8
            )
            continue
        yield deviation(f"k = {k}: times", found, TIMES[k], 1e-8, relative=True)
        if k == 2:
            yield deviation("k = 2: growth with ln d", np.diff(found) / np.diff(np.log(DIMENSIONS)), 0.25, 2e-3)
        else:
            yield deviation(f"k = {k}: exponent of d", np.diff(np.log(found)) / np.diff(np.log(DIMENSIONS)), (k - 2) / 2, 0.035)


START = np.array([0.1, 0.13, 0.07, np.sqrt(1 - 0.0318)])
TEACHERS = np.array([1.0, 0.8, 1.2, 0.0])


def winner() -> Iterable[Measurement]:
    """Three teachers and the rest, k = 3: states recorded, ratios, and the winner of 12 random starts; k = 2: the largest weight."""
    run = odesim.integrate(INDICES, params={"a": TEACHERS, "m0": START}, span=(0, 5), save=[0, 1, 2, 5], **FINE)
    m = run.y["m"]
    yield deviation("overlaps at t = 2", m[2, :3], (0.225042168, 0.310183948, 0.128350584), 1e-8)
    yield Measurement("overlap with the winner at t = 5", m[3, 1], 0.999403961, 1e-8)
    z = 1 / (m[:3, :3] * TEACHERS[:3])
    yield deviation("(z_0 - z_1)/(z_1 - z_2)", (z[:, 0] - z[:, 1]) / (z[:, 1] - z[:, 2]), -0.168, 1e-8)
    rng, wins = np.random.default_rng(5), 0
    for _ in range(12):
        start = np.abs(rng.normal(size=4)) * [0.1, 0.1, 0.1, 1]
        start /= np.linalg.norm(start)
        end = odesim.integrate(INDICES, params={"a": TEACHERS, "m0": start}, span=(0, 60), save=2, **FINE).final["m"]
        wins += int(end.argmax() == (TEACHERS * start).argmax())
    yield Measurement("starts, of 12, where the largest a_i m_i wins", wins, 12)
    flat = odesim.integrate(INDICES, params={"a": TEACHERS, "m0": START, "k": 2}, span=(0, 60), save=2, **FINE).final["m"]
    yield deviation("k = 2: the largest weight wins", flat, [0, 0, 1, 0], 1e-8)


# Saddle to saddle.

CORRELATED = np.array([[1, 0.6, 0.3], [0.6, 1, 0.2], [0.3, 0.2, 1]]), np.array([0.91, 0.3, 0.72])
REORDERED = np.array([[1, 0.9, 0], [0.9, 1, 0.3], [0, 0.3, 1]]), np.array([0.905, 0.72, -0.465])
JUMPS = ((1.098901, 1.565996, 6.314433), (1.104972, 2.150538, 8.888889))
"""Times of the jumps of CORRELATED and REORDERED, by an independent script."""
MIDDLES = {1e-5: (1.085, 1.465, 6.18), 1e-20: (1.1, 1.545, 6.285), 1e-60: (1.1, 1.56, 6.305)}
"""alpha -> those of CORRELATED in its runs, to .005."""


def middles(G: Any, c: Any, alpha: float) -> Any:
    """Times at which the loss is half way between that of one saddle and of the next."""
    levels = [0.0, *(float(beta @ G @ beta / 2 - c @ beta) for _, beta in saddles(G, c))]
    t = np.linspace(0, 12, 4801)
    run = odesim.integrate(
        MIRROR, params={"G": G, "c": c, "alpha": alpha}, span=(0, 12), save=t, method="rodas5p", rtol=1e-8, atol=1e-11, backend="numpy"
    )
    loss = run.observables["loss"]
    return np.array([t[np.argmax(loss < (a + b) / 2)] for a, b in pairwise(levels)])


def jumps() -> Iterable[Measurement]:
    """Two problems with correlations: the algorithm, runs from alpha = 1e-5, 1e-20, 1e-60 in units of 1/ln(1/alpha), and the layers."""
    for (G, c), want, late in zip((CORRELATED, REORDERED), JUMPS, (2.5, 25), strict=True):
        found = saddles(G, c)
        yield deviation(f"jumps of the algorithm, c_1 = {c[0]:g}", [tau for tau, _ in found], want, 1e-6)
        for alpha in (1e-5, 1e-20, 1e-60):
            middle = middles(G, c, alpha)
            off = np.abs(middle - want).max() * np.log(1 / alpha)
            if G is CORRELATED[0]:
                yield deviation(f"recorded jumps, alpha = {alpha:g}", middle, MIDDLES[alpha], 0.006)
            yield Measurement(f"error of a jump times ln(1/alpha), alpha = {alpha:g}, c_1 = {c[0]:g}", off, late, 0.0, "<=")
    (G, c), S = CORRELATED, np.log(1e5)
    given: dict[str, Any] = {"G": G, "c": c, "alpha": 1e-5}
    t = np.linspace(0, 8, 9)
    layers = odesim.integrate(DIAGONAL, params=given, span=(0, 8 * S), save=t * S, **FINE).observables["beta"]
    own = odesim.integrate(MIRROR, params=given, span=(0, 8), save=t, **FINE).observables["beta"]
    yield deviation("coefficients of the layers and of their own clock", layers, own, 1e-6)


def least_l1() -> Iterable[Measurement]:
    """Two equations with four unknowns, alpha = 1e-40: where it ends, beside a linear programme; and from alpha = 1, where it does not."""
    X, y = np.array([[1.0, 0.5, 0.9, -0.3], [0.2, 1.0, 0.8, 0.4]]), np.array([1.0, 0.3])
    best = np.asarray(linprog(np.ones(8), A_eq=np.hstack([X, -X]), b_eq=y).x)
    given: dict[str, Any] = {"span": (0, 400), "save": 2, "method": "rodas5p", "rtol": 1e-8, "atol": 1e-11, "backend": "numpy"}
    data = {"G": X.T @ X, "c": X.T @ y}
    end = odesim.integrate(MIRROR, params={**data, "alpha": 1e-40}, sizes={"d": 4}, **given).observables["beta"][-1]
    yield deviation("coefficients of least l1 norm", end, best[:4] - best[4:], 1e-6)
    large = odesim.integrate(DIAGONAL, params={**data, "alpha": 1.0}, sizes={"d": 4}, **given).observables["beta"][-1]
    yield Measurement("l1 norm from alpha = 1, above the least", np.abs(large).sum() - best.sum(), 0.05, 0.0, ">=")


CLAIMS = (
    *SGD_CLAIMS,
    Claim(
        "scaling.word_modes",
        Source("karkada2025closed", "abstract", "closed-form dynamics"),
        "scaling.word2vec, four words in two and four dimensions",
        "eigenvalues of W W^T grow as sigmoids to the positive ones of M, each half at ln(m/s0 - 1)/(4 m)",
        sigmoids,
        "digits recorded, and of a run",
        when="all pairs have the same weight, and the start is along eigenvectors",
        otherwise=weighted,
    ),
    Claim(
        "scaling.words_one_by_one",
        Source("karkada2025closed", "abstract"),
        "scaling.word2vec, four words in three dimensions from three random starts of size 1e-4",
        "from a small random start orthogonal directions are learned one at a time",
        random_words,
        "times: 1 of 4.6 in m t, the logarithm of a random projection, and the modes before",
        depends=("scaling.word_modes",),
    ),
    Claim(
        "scaling.words_opposed",
        Source("karkada2025closed", "abstract", "contexts with vectors of their own: derived"),
        "scaling.word2vec_untied, four words in four and two dimensions from three random starts of size 1e-4",
        "directions are learned one at a time in the order of |m|, opposed ones with the others; from W = C as with shared vectors",
        contexts,
        "times: 2 of 9 in m t, the logarithm of a random projection, and the modes before; ends: of the run",
        models=(CONTEXTS, WORDS),
        depends=("scaling.words_one_by_one",),
    ),
    Claim(
        "scaling.escape",
        Source("benarous2021online", "abstract", "the gradient flow of the population loss"),
        "scaling.single_index to m = 1/2 from d^(-1/2), d = 1e2, 1e4, 1e6, k = 1 to 4",
        "the information exponent k sets the time at the equator: of order 1, ln d, d^((k - 2)/2)",
        escape,
        "times: digits recorded; exponents: .035, of order d^(-1/2)",
    ),
    Claim(
        "scaling.winner",
        Source("benarous2021online", "abstract", "several directions of one exponent, gradient flow"),
        "scaling.multi_index, three teachers of different weights, k = 3 and 2",
        "the teacher with the largest a_i m_i(0)^(k - 2) is found",
        winner,
        "digits recorded, and of a run",
        depends=("scaling.escape",),
    ),
    Claim(
        "scaling.jumps",
        Source("pesme2023saddle", "abstract", "jump times by a recursive algorithm"),
        "scaling.mirror and scaling.diagonal, two problems with correlations, alpha = 1e-5, 1e-20, 1e-60",
        "as alpha -> 0 the flow jumps from saddle to saddle, at times and to places that an algorithm gives",
        jumps,
        "2.5/ln(1/alpha), and 25/ln(1/alpha) where a coordinate wakes with a slope of .045",
    ),
    Claim(
        "scaling.least_l1",
        Source("pesme2023saddle", "abstract"),
        "scaling.mirror, two equations with four unknowns, alpha = 1e-40",
        "the last saddle is the solution of least l1 norm",
        least_l1,
        "1e-6: of the run's end",
        models=(MIRROR, DIAGONAL),
        depends=("scaling.jumps",),
    ),
)

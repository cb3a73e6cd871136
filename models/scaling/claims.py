"""What is stated of word embeddings, of escape from the equator and of saddles one after another, and what holds."""

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.optimize import linprog

import odesim
from odesim.lab.claims import Claim, Measurement, deviation
from odesim.models.scaling._saddles import saddles
from odesim.models.scaling._sgd_claims import SGD_CLAIMS
from odesim.models.scaling.word2vec import modes, target
from odesim.symbolic import Source

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

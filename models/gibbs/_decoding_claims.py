"""What is stated of decoding in T steps: what is missed, revision, all tokens at once, a word that is said twice, masks that are chosen."""

from collections.abc import Iterable
from itertools import permutations
from math import comb
from typing import Any

import numpy as np

import odesim
from odesim.lab.claims import Claim, Measurement, Statement, deviation
from odesim.models.gibbs._decoding import entropy, mean_entropies, missed
from odesim.models.gibbs._kernels import blocks, exact, gap, length, sequences, stationary
from odesim.models.gibbs._laws import dirichlet
from odesim.models.gibbs._spectra_claims import DIGITS, FINE, PAPER, signs
from odesim.symbolic import Source

UNMASK, PREDICT = "gibbs.unmask", "gibbs.mask_predict"


def decode(model: str, T: int, p: np.ndarray | None = None, n: int = 8, **params: Any) -> Any:
    """A run of T steps of a decoder, of n signs with coupling J or of a law p (2^n,)."""
    n = n if p is None else length(len(p), 2)
    sizes = {"S": 2**n, "T": T} | ({"n": n} if model == UNMASK else {})
    given = params if p is None else {"p": p, **params}
    return odesim.integrate(model, sizes=sizes, params=given, steps=T, save=2, backend="numpy")


def ordered(n: int, block: tuple[int, ...]) -> list[tuple[int, ...]]:
    """The step of each of n tokens, for all ordered blocks of these sizes."""
    return sorted(set(permutations(np.repeat(np.arange(len(block)), block).tolist(), n)))


MISSED = {0.1: (0.337283, 0.130111, 0.040296, 0.0), 0.3: (4.069336, 1.701678, 0.548629, 0.0)}


def unmask_error() -> Iterable[Measurement]:
    """A random law of four tokens with all its blocks, eight signs, and six signs in a field in blocks of three."""
    p = dirichlet({"S": 16}, {"q": 2, "seed": 1})
    for block in ((4,), (1, 3), (2, 2), (3, 1), (1, 2, 1), (1, 1, 1, 1)):
        runs = [decode(UNMASK, len(block), p, step=when) for when in ordered(4, block)]
        mean = np.mean([run.observables["KL_missed"][-1] for run in runs])
        yield Measurement(f"random law, blocks {block}: mean KL", mean, missed(p, 2, block), 1e-13)
    yield Measurement("random law: largest rise of eta", np.diff(mean_entropies(p, 2), n=2).max(), 0.0, 0.0, "<=")
    total = sum(entropy(p, 2, (j,)) for j in range(4)) - entropy(p, 2, range(4))
    yield Measurement("random law: T = 1 misses the total correlation", missed(p, 2, (4,)), total, 1e-13)
    for J, row in MISSED.items():
        for T, want in zip((1, 2, 4, 8), row, strict=True):
            yield Measurement(f"eight signs, J = {J}, T = {T}", decode(UNMASK, T, J=J).observables["KL_missed"][-1], want, 6e-7)
    runs = [decode(UNMASK, 2, n=6, J=0.4, h=0.1, step=when) for when in ordered(6, (3, 3))]
    p, mixture = signs(6, 0.4, 0.1), np.mean([run.final["pi"] for run in runs], axis=0)
    yield Measurement("six signs in a field: mean KL", np.mean([run.observables["KL_missed"][-1] for run in runs]), 0.837165, 6e-7)
    yield Measurement("six signs in a field: KL of the mixture of all blocks", p @ np.log(p / mixture), 0.732868, 6e-7)
    yield Measurement("six signs in a field: TV of the mixture", np.abs(p - mixture).sum() / 2, 0.471282, 6e-7)


REVISED = {0.1: (0.277661, 0.135750, 0.062290, 0.034962), 0.3: (0.903442, 0.752544, 0.337456, 0.016778)}


def revision(reaches: bool) -> Iterable[Measurement]:
    """Eight signs in T steps with revision: TV, recorded; if it reaches p, 0 at T = 8."""
    for J, row in REVISED.items():
        found = [float(decode(PREDICT, T, J=J).observables["TV"][-1]) for T in (1, 2, 4, 8)]
        if reaches:
            yield Measurement(f"J = {J}: TV at T = n", found[3], 0.0, 1e-10)
            continue
        for T, value, want in zip((1, 2, 4, 8), found, row, strict=True):
            yield Measurement(f"J = {J}, T = {T}: TV", value, want, 6e-7)
        yield Measurement(f"J = {J}: largest rise of TV with T", np.diff(found).max(), 0.0, 0.0, "<=")
        yield Measurement(f"J = {J}: TV without revision at T = n", decode(UNMASK, 8, J=J).observables["TV"][-1], 0.0, 1e-12)


AT_ONCE = (0.184028, 0.154974, 0.141860, 0.140149)


def little(n: int, J: float, h: float = 0.0) -> np.ndarray:
    """exp(h sum_j x_j) prod_j 2 cosh(h + J sum_(i != j) x_i) over its sum."""
    x = 2.0 * sequences(2**n) - 1
    log_p = h * x.sum(axis=1) + np.log(2 * np.cosh(h + J * (x.sum(axis=1, keepdims=True) - x))).sum(axis=1)
    p = np.exp(log_p - log_p.max())
    return np.asarray(p / p.sum())


def at_once(law: str) -> Iterable[Measurement]:
    """Eight signs, J = .1: all tokens redrawn at each of 200 steps: TV to p or to its own law, recorded; four signs in a field."""
    run = decode(PREDICT + ":SYNCHRONOUS", 40, J=0.1)
    if law == "p":
        yield Measurement("TV to p after 40 steps", run.observables["TV"][-1], 0.0, 1e-6)
        return
    yield deviation("its own law", run.final["pi"], little(8, 0.1), 1e-12)
    for T, want in zip((1, 2, 4, 8), AT_ONCE, strict=True):
        yield Measurement(f"TV to p, T = {T}", decode(PREDICT + ":SYNCHRONOUS", T, J=0.1).observables["TV"][-1], want, 6e-7)
    yield Measurement("TV to p at rest", run.observables["TV"][-1], 0.140126, 6e-7)
    run = decode(PREDICT + ":SYNCHRONOUS", 200, n=4, J=0.2, h=0.3)
    yield deviation("its own law in a field, four signs", run.final["pi"], little(4, 0.2, 0.3), 1e-12)


def said(n: int, T: int) -> tuple[float, float]:
    """P(once), P(twice or more) of a word that stands at one of n places, uniform, in T equal blocks."""
    k, once, none = n // T, 0.0, 1.0
    for m in range(0, n, k):
        a = 1 / (n - m)
        once += none * k * a * (1 - a) ** (k - 1)
        none *= (1 - a) ** k
    return once, 1 - once - none


STUTTER = {1: (0.392696, 0.263695), 2: (0.582256, 0.232272), 4: (0.780341, 0.144891), 8: (1.0, 0.0)}


def stutter() -> Iterable[Measurement]:
    """Eight places, a word at one of them; no other sequence but with probability 1e-9, so that all contexts have a law."""
    count = sequences(256).sum(axis=1)
    p = np.where(count == 1, (1 - 1e-9) / 8, 0.0) + 1e-9 / 256
    for T, (once, more) in STUTTER.items():
        pi = decode(UNMASK, T, p).final["pi"]
        for name, want, formula, seen in (("once", once, said(8, T)[0], count == 1), ("twice or more", more, said(8, T)[1], count > 1)):
            yield Measurement(f"T = {T}: {name}", pi[seen].sum(), want, 6e-7)
            yield Measurement(f"T = {T}: {name}, from its formula", pi[seen].sum(), formula, 1e-7)
    once, more = said(10**6, 1)
    yield Measurement("a million places, T = 1: not at all", 1 - once - more, np.exp(-1), 1e-6)
    yield Measurement("a million places, T = 1: twice or more", more, 1 - 2 * np.exp(-1), 1e-6)


def chosen(p: np.ndarray, k: int, g: float, *, knows: bool) -> np.ndarray:
    """The kernel (S, S) of k masks S drawn with P(S | x) ~ prod_j p(x_j | others)^-g, j in S; knows: the draw allows for it."""
    n = length(len(p), 2)
    places = np.arange(len(p)).reshape((2,) * n)
    sure = np.array([p / (p + p[np.flip(places, j).ravel()]) for j in range(n)])
    masks = list(blocks(n, 2, k))
    weight = np.empty((len(masks), len(p)))
    for s, rows in enumerate(masks):
        # the tokens that differ within a row are those masked
        masked = (sequences(len(p))[rows].std(axis=1) > 0).any(axis=0)
        weight[s] = np.prod(sure[masked] ** -g, axis=0)
    weight /= weight.sum(axis=0)
    P = np.zeros((len(p), len(p)))
    for s, rows in enumerate(masks):
        law = (p * weight[s] if knows else p)[rows]
        P[rows[:, :, None], rows[:, None]] += weight[s][rows][:, :, None] * (law / law.sum(axis=1, keepdims=True))[:, None]
    return P


def follow(P: np.ndarray, p: np.ndarray, start: np.ndarray, end: float, **params: Any) -> Any:
    """gibbs.master with another kernel, to a time."""
    given = {"p": p, "Q": P - np.eye(len(p)), **params}
    return odesim.integrate("gibbs.master", params=given, sizes={"S": len(p)}, initial={"pi": start}, span=(0, end), save=2, **FINE)


NAIVE = {(1, 1): 0.325257, (1, 4): 0.415760, (2, 1): 0.261881, (2, 4): 0.368144}
GAPS = {(1, 0): 0.011081, (1, 1): 0.010438, (1, 4): 9.58e-6, (2, 0): 0.027817, (2, 1): 0.016638, (2, 4): 0.001128}


def chosen_masks(knows: bool) -> Iterable[Measurement]:
    """Six signs, J = .3, h = .1, masks of the least sure tokens: how far from p the chain goes that starts at p; at rest, and gaps."""
    p = signs(6, 0.3, 0.1)
    for (k, g), want in NAIVE.items():
        P = chosen(p, k, g, knows=knows)
        yield Measurement(f"k = {k}, g = {g}: TV at t = 100 from p", follow(P, p, p, 100).observables["TV"][-1], 0.0, 1e-9)
        if knows:
            naive = stationary(chosen(p, k, g, knows=False))
            yield Measurement(f"k = {k}, g = {g}: TV at rest if the draw does not know", np.abs(naive - p).sum() / 2, want, 6e-7)
    if knows:
        for (k, g), want in GAPS.items():
            tolerance = 6e-7 if want > 1e-4 else 6e-9
            yield Measurement(f"k = {k}, g = {g}: gap", gap(chosen(p, k, g, knows=True), p), want, tolerance)


def pairs(J1: float, J2: float) -> np.ndarray:
    """The law (64,) of three pairs of signs with J1 inside and J2 between them."""
    x = 2.0 * sequences(64) - 1
    J = np.full((6, 6), J2) + (J1 - J2) * np.kron(np.eye(3), np.ones((2, 2)))
    log_p = np.einsum("si,ij,sj->s", x, J - np.diag(np.diag(J)), x) / 2
    p = np.exp(log_p - log_p.max())
    return np.asarray(p / p.sum())


def pair_blocks(p: np.ndarray) -> np.ndarray:
    """The kernel (64, 64) that redraws one of the pairs."""
    P, places = np.zeros((64, 64)), np.arange(64).reshape((4,) * 3)
    for j in range(3):
        rows = np.moveaxis(places, j, 2).reshape(-1, 4)
        P[rows[:, :, None], rows[:, None]] += (p[rows] / p[rows].sum(axis=1, keepdims=True))[:, None] / 3
    return P


PAIR_GAPS = {(1.2, 0.0): (0.111025, 1 / 3), (1.2, 0.1): (0.044345, 0.124718), (2.0, 0.1): (0.026886, 0.114654)}


def rate(P: np.ndarray, p: np.ndarray) -> float:
    """How fast the mean of the slowest function of a chain falls, from where it is largest to t = 20."""
    root = np.sqrt(p)
    slow = np.linalg.eigh(root[:, None] * P / root)[1][:, -2] / root
    run = follow(P, p, np.eye(len(p))[np.abs(slow).argmax()], 20.0, f=slow)
    return float(np.log(run.observables["mean"][0] / run.observables["mean"][1]) / 20)


def dependent_masks() -> Iterable[Measurement]:
    """Three pairs of signs, two masks: rates of the slowest mean by uniform masks and by those of pairs, beside recorded gaps."""
    for (J1, J2), (uniform, by_pairs) in PAIR_GAPS.items():
        p = pairs(J1, J2)
        for name, P, want in (("uniform", exact(p, 2, 2), uniform), ("of pairs", pair_blocks(p), by_pairs)):
            yield Measurement(f"J1 = {J1}, J2 = {J2}, masks {name}", rate(P, p), want, 6e-7)
    for J1 in (2.0, 6.0):  # 1/3, and 1/15 + 4/15 (1 - tanh J1)
        p, times = pairs(J1, 0.0), 5 / (1 + 4 * (1 - np.tanh(J1)))
        faster = rate(pair_blocks(p), p) / rate(exact(p, 2, 2), p)
        yield Measurement(f"J1 = {J1:g}, J2 = 0: how many times faster, 5/(1 + 4 (1 - tanh J1))", faster, times, 1e-6)
    alone = 1 / comb(6, 2) + 8 / comb(6, 2) * (1 - np.tanh(1.2)) / 2
    yield Measurement("J1 = 1.2, J2 = 0: 1/15 + (8/15)(1 - tanh J1)/2", rate(exact(pairs(1.2, 0.0), 2, 2), pairs(1.2, 0.0)), alone, 1e-9)


DECODING = (
    Claim(
        "gibbs.unmask_error",
        Source(PAPER, "talk: decoding in T steps", "nothing is revised"),
        "gibbs.unmask: all blocks of a random law of four tokens; eight signs; six signs in a field",
        "in T blocks E KL(p | law) is the left Riemann error of eta(m), the entropy that one token more has",
        unmask_error,
        "rounding; " + DIGITS,
    ),
    Claim(
        "gibbs.revision",
        Source("ghazvininejad2019mask", "Section 3.1", "read as a sampler: masks uniform, tokens drawn and not the likeliest"),
        "gibbs.mask_predict, eight signs, J = .1 and .3, T = 1, 2, 4, 8",
        "with revision and a step for each token it samples p",
        lambda: revision(True),
        "rounding",
        fails=True,
        corrected=Statement(
            "TV falls with T and does not reach 0 at T = n, where decoding without revision does",
            lambda: revision(False),
            DIGITS + "; rounding",
        ),
        models=(PREDICT, UNMASK),
    ),
    Claim(
        "gibbs.all_at_once",
        Source(PAPER, "talk: decoding in parallel", "the law at rest of neurons all at once (Little 1974, Peretto 1984)"),
        "gibbs.mask_predict:SYNCHRONOUS, eight signs, J = .1, to step 40; four signs in a field",
        "redrawing all tokens given all others, again and again, samples p",
        lambda: at_once("p"),
        "a fast chain",
        fails=True,
        corrected=Statement(
            "it samples exp(h sum_j x_j) prod_j 2 cosh(h + J sum_(i != j) x_i) over its sum", lambda: at_once("own"), "rounding; " + DIGITS
        ),
    ),
    Claim(
        "gibbs.stutter",
        Source(PAPER, "talk: walking walking", "a word that stands at one of n places"),
        "gibbs.unmask, eight places, T = 1, 2, 4, 8",
        "drawn in blocks, a word that stands once is said once, twice or not at all: at T = 1 1/e, 1 - 2/e and 1/e for many places",
        stutter,
        "100 times the probability of other sequences; " + DIGITS + "; 1/n",
    ),
    Claim(
        "gibbs.chosen_masks",
        Source("ghazvininejad2019mask", "Section 3.1", "the least sure tokens are masked; tokens drawn"),
        "gibbs.master with masks that depend on the sequence, six signs, J = .3, h = .1",
        "redraws of the least sure tokens keep p; they make the chain slower",
        lambda: chosen_masks(True),
        "100 rtol; " + DIGITS,
        when="the draw knows how masks are chosen: from p(x) P(S | x); else TV at rest is .26 to .42",
        otherwise=lambda: chosen_masks(False),
    ),
    Claim(
        "gibbs.dependent_masks",
        Source(PAPER, "Theorem 2", "talk: which tokens to mask together"),
        "gibbs.master, three pairs of signs, masks of pairs beside uniform ones, to t = 20",
        "masking tokens together that depend on each other makes the chain of three pairs up to five times faster",
        dependent_masks,
        DIGITS + "; 100 rtol",
    ),
)

"""Statements on transformers and their data that need no training: numbers by enumeration, or by drawing, beside closed forms."""

from collections.abc import Iterable
from itertools import chain, combinations
from math import ceil, comb

import numpy as np

from odesim.lab.claims import Claim, Measurement, Statement
from odesim.models.static._contrast_claims import CONTRAST
from odesim.models.static._hypercube_claims import HYPERCUBE
from odesim.models.static._limit_claims import COMPONENTS, COMPOSITION, FACT_CLAIM, LEARNING
from odesim.symbolic import Source

# Attention at the start: gradients of sequences whose places have parents, and by a prompt; where even attention goes.
#
# Two layers without values, as in nichani2024causal. Layer 1 attends by place, h_i = sum_j S(A)[i, j] e(s_j) over j <= i; layer 2 weighs
# place i by w_i ~ exp(beta h_i[s_T]), and f[s'] = sum_i w_i 1[s_i = s'] is the prediction of s_(T+1), with the loss -ln(f + eps). The last
# place s_T is drawn uniformly, s_(T+1) from P[s_T]; every other place is drawn from P[parent], or from the stationary law pi where it has
# none; P is drawn anew for each sequence. At A = 0, for small beta and many places, -dL/dA[i, j] is beta / (T i S) times
# g(i, j) = E sum P[s, s'] / pi[s'] (p(s_j = s, s_i = s') - pi[s] pi[s']), up to what is alike for all j of a row.
#
# At the parent g is the mean of the chi-squared information. Elsewhere it is a product of two density ratios, at most the root of both
# informations (Cauchy and Schwarz), and at most the parent's (data processing). At i itself it is the mean trace of P less 1: 0 where the
# mean of P is uniform, as the paper assumes. Where it is not, a place may find itself.
#
# Of T queries, query t has t keys with 1/t each: key j gets (H_T - H_(j-1)) / T of all attention, H the harmonic numbers. At T = 35 the
# first key has .118, four times the mean, and a fifth of the keys .511. What a trained model has beyond that is its own.

PARENTS = (-1, 0, 0, 1, 2, 2, 3)  # of places 0 to 6; place 7 is the query
BETA, EPS = 0.01, 0.05
DRAWS = 10_000


def two_states(most: float) -> tuple[np.ndarray, np.ndarray]:
    """P (Q, 2, 2) and weights (Q,): chances to leave either state, uniform up to `most`, by Gauss and Legendre: exact to degree 23."""
    x, w = np.polynomial.legendre.leggauss(12)
    a, b = (leave.ravel() for leave in np.meshgrid(most * (x + 1) / 2, most * (x + 1) / 2))
    return np.moveaxis(np.array([[1 - a, a], [b, 1 - b]]), 2, 0), np.outer(w, w).ravel() / 4


def stationary(P: np.ndarray) -> np.ndarray:
    """pi (Q, S) of P (Q, S, S)."""
    k = P.shape[1]
    return np.linalg.solve((np.eye(k) - P + 1).swapaxes(1, 2), np.ones((len(P), k, 1)))[..., 0]


def weighted_sequences(most: float) -> tuple[np.ndarray, np.ndarray]:
    """All sequences of two states (n, T), and the probabilities (n, 2) of each with either answer, in the mean over P."""
    P, weights = two_states(most)
    T = len(PARENTS) + 1
    sequences = np.arange(2**T)[:, None] >> np.arange(T) & 1
    p = np.full((len(P), len(sequences)), 0.5)  # of the query
    for i, parent in enumerate(PARENTS):
        p *= stationary(P)[:, sequences[:, i]] if parent < 0 else P[:, sequences[:, parent], sequences[:, i]]
    return sequences, np.einsum("q,qn,qna->na", weights, p, P[:, sequences[:, -1]])


def loss(A: np.ndarray, sequences: np.ndarray, p: np.ndarray) -> float:
    """The loss of A (T, T), of which the lower triangle is used."""
    first = np.exp(A) * np.tri(len(A))
    first /= first.sum(axis=1, keepdims=True)
    same = sequences == sequences[:, -1:]  # (n, T): 1[s_j = s_T]
    second = np.exp(BETA * same @ first.T)
    second /= second.sum(axis=1, keepdims=True)
    f = np.array([(second * (sequences == answer)).sum(axis=1) for answer in range(2)]).T
    return float(-(p * np.log(f + EPS)).sum())


def gradient(sequences: np.ndarray, p: np.ndarray) -> np.ndarray:
    """-dL/dA (T, T) at A = 0 by the chain rule, one sequence at a time: the derivative of ln f, of both softmaxes, of the score."""
    T, result = sequences.shape[1], np.zeros((sequences.shape[1],) * 2)
    for s, chance in zip(sequences, p, strict=True):
        same = (s == s[-1]).astype(float)
        carried = np.cumsum(same) / np.arange(1, T + 1)  # h_i[s_T]
        w = np.exp(BETA * carried)
        w /= w.sum()
        for answer in range(2):
            f = w @ (s == answer)
            slope = chance[answer] / (f + EPS) * w * ((s == answer) - f)  # of the score of each place
            result += BETA * slope[:, None] * (same - carried[:, None]) / np.arange(1, T + 1)[:, None]
    return result * np.tri(T)


def gradient_finds(most: float) -> Iterable[Measurement]:
    """Eight places, all sequences, every chain of two states: differences of the loss, and the places that find their parent."""
    sequences, p = weighted_sequences(most)
    found = gradient(sequences, p)
    T, h = sequences.shape[1], 1e-3
    for i, j in ((1, 0), (3, 1), (5, 2), (5, 4), (6, 6)):
        A = np.zeros((T, T))
        A[i, j] = h
        slope = (loss(-A, sequences, p) - loss(A, sequences, p)) / (2 * h)
        yield Measurement(f"-dL/dA[{i}, {j}] by differences, over the largest", slope / found.max(), found[i, j] / found.max(), 1e-5)
    right = sum(int(np.argmax(found[i, : i + 1]) == parent) for i, parent in enumerate(PARENTS) if parent >= 0)
    yield Measurement("places whose gradient is largest at their parent, of 6", right, 6)


def in_the_limit() -> Iterable[Measurement]:
    """10,000 chains of three states: g at each ancestor and cousin beside the parent's information, and where the mean is largest."""
    P = np.random.default_rng(4).standard_exponential((DRAWS, 3, 3))
    P /= P.sum(axis=2, keepdims=True)
    pi, count = stationary(P), len(PARENTS)
    joint = np.zeros((count, count, DRAWS, 3, 3))  # [j, i]: p(s_j = s, s_i = s')
    for i, parent in enumerate(PARENTS):
        joint[i, i] = np.eye(3) * pi[:, :, None]
        for j in range(i):
            joint[j, i] = pi[:, :, None] * pi[:, None] if parent < 0 else joint[j, parent] @ P
            joint[i, j] = joint[j, i].swapaxes(1, 2)
    g = np.einsum("nab,nb,jinab->jin", P, 1 / pi, joint) - 1
    itself = g[-1, -1]  # of every place the same
    yield Measurement("mean g of a place at itself", itself.mean(), 0.0, 4 * float(itself.std()) / DRAWS**0.5)
    for i, parent in enumerate(PARENTS):
        if parent >= 0:
            others = [j for j in range(i) if j != parent]
            if others:
                over = max(float((g[j, i] - g[parent, i]).max()) for j in others)
                yield Measurement(f"place {i}: largest g elsewhere less the parent's, of each chain", over, 0.0, 1e-12, "<=")
            yield Measurement(f"place {i}: largest mean g, at", int(np.argmax(g[: i + 1, i].mean(axis=1))), parent)


GRADIENT = Claim(
    "static.parent_gradient",
    Source("nichani2024causal", "the gradient of attention at the start", "a tree of seven places and a query"),
    "all sequences of eight places over two states; 10,000 chains of three states in the limit of many places",
    "the gradient of the first attention at the start is, in each row, largest at the parent",
    lambda: chain(gradient_finds(1.0), in_the_limit()),
    "exact sums; h^2 of differences of step h = .001; rounding; four standard errors",
    when="the mean of the transition matrix is uniform; of states that last, a place finds itself",
    otherwise=lambda: gradient_finds(0.3),
)


ZETA, DELTA, SIZE, TOKENS, TRIALS = 0.3, 1.5, 0.8, 10, 200_000


def inputs(rng: np.random.Generator, q: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Labels (TRIALS,), and tokens (TRIALS, TOKENS, 4) of which the share ZETA are DELTA q + y w, the others noise."""
    y, X = rng.choice([-1.0, 1.0], TRIALS), rng.normal(size=(TRIALS, TOKENS, 4))
    X[:, : round(ZETA * TOKENS)] = DELTA * q + y[:, None, None] * w
    return y, X


def prompt_gradient() -> Iterable[Measurement]:
    """200,000 inputs of ten tokens in four dimensions, three of them delta q + y w, the others noise: E y df/dp at p = 0.

    f = w . X^T softmax(X p), so that df/dp is the covariance of x and x . w under even attention.
    """
    q, w = np.eye(4)[0], SIZE * np.eye(4)[1]
    y, X = inputs(np.random.default_rng(0), q, w)
    value = X @ w
    slope = y[:, None] * ((X * value[:, :, None]).mean(axis=1) - X.mean(axis=1) * value.mean(axis=1, keepdims=True))
    mean, error = slope.mean(axis=0), slope.std(axis=0) / TRIALS**0.5
    want = ZETA * (1 - ZETA) * DELTA * SIZE**2
    yield Measurement("zeta (1 - zeta) delta |w|^2", want, 0.2016, 1e-12)
    yield Measurement("along q", mean[0], want, 4 * float(error[0]))
    for name, a in (("along w", 1), ("across", 2), ("across, other", 3)):
        yield Measurement(f"{name}", mean[a], 0.0, 4 * float(error[a]))


PROMPT = Claim(
    "static.prompt_gradient",
    Source(
        "oymak2023role", "Abstract", "the initial trajectory of gradient descent: its first step by the prompt, tokens that matter or not"
    ),
    "200,000 inputs of ten tokens, three of which matter",
    "the gradient by the prompt at 0 is zeta (1 - zeta) delta |w|^2 q: it points to the mark q, not to the value w",
    prompt_gradient,
    "four standard errors",
)


T = 35


def even(length: int) -> np.ndarray:
    """The share of all attention (length,) that each key gets from queries that see all keys before them alike."""
    return np.cumsum(1 / np.arange(length, 0.0, -1))[::-1] / length


def most(shares: np.ndarray) -> float:
    """What the fifth of the keys with the most of it has."""
    return float(np.sort(shares)[::-1][: ceil(len(shares) / 5)].sum())


def of_random_scores(spread: float, draws: int = 2000) -> np.ndarray:
    """Mean shares (T,) of softmax attention on normal scores of this deviation."""
    scores = np.exp(spread * np.random.default_rng(0).standard_normal((draws, T, T))) * np.tri(T)
    return np.asarray((scores / scores.sum(axis=2, keepdims=True)).mean(axis=(0, 1)))


def matter() -> Iterable[Measurement]:
    """A fifth of the keys of even attention, in which no key matters more than another, has what a fifth has."""
    yield Measurement("attention of the top fifth of the keys of even attention", most(even(T)), 0.2, 0.02)


def by_the_null() -> Iterable[Measurement]:
    """Even attention by formula, by random scores, and for longer contexts."""
    yield Measurement("T = 35: first key", even(T)[0], 0.118479, 6e-7)
    yield Measurement("T = 35: top fifth", most(even(T)), 0.510785, 6e-7)
    yield Measurement("sum of the shares", even(T).sum(), 1.0, 1e-12)
    drawn = of_random_scores(1.0)
    yield Measurement("scores of deviation 1: largest difference from even attention", np.abs(drawn - even(T)).max(), 0.0, 2e-3)
    for length in (100, 1000, 10_000):
        # the first fifth: 1/5 of 1 + ln 5, from the integral of ln(1/x)
        yield Measurement(f"T = {length}: top fifth, of (1 + ln 5)/5", most(even(length)), (1 + np.log(5)) / 5, 1 / length)


SINKS = Claim(
    "static.heavy_hitters",
    Source("zhang2023h2o", "accumulated attention", "keys that get most of it"),
    "even causal attention of 35 to 10,000 keys; 2000 draws of random scores",
    "a fifth of the keys with half of all attention are those that matter",
    matter,
    "a tenth of the share",
    fails=True,
    corrected=Statement(
        "even causal attention gives the first key H_T / T, and a fifth of the keys (1 + ln 5)/5 = .52 of all: the null of such claims",
        by_the_null,
        "half a unit of the last recorded digit; the noise of 2000 draws; 1/T",
    ),
)


CHAINS, LENGTH, STATES = 10_000, 6, 3


def chi_squared(P: np.ndarray) -> dict[tuple[int, int], np.ndarray]:
    """{(i, j): information (n,) of place i on place j > i} in stationary chains P (n, k, k): sum p(s, s')^2 / (p(s) p(s')) - 1."""
    n, k, _ = P.shape
    pi = np.linalg.solve((np.eye(k) - P + 1).swapaxes(1, 2), np.ones((n, k, 1)))[..., 0]
    found: dict[tuple[int, int], np.ndarray] = {}
    steps = np.tile(np.eye(k), (n, 1, 1))
    for lag in range(1, LENGTH):
        steps = steps @ P
        information = (pi[:, :, None] * steps**2 / pi[:, None]).sum(axis=(1, 2)) - 1
        found |= {(j - lag, j): information for j in range(lag, LENGTH)}
    return found


def parents() -> Iterable[Measurement]:
    """10,000 chains of three states whose rows are uniform on the simplex: the parent of a place is the one before."""
    P = np.random.default_rng(0).standard_exponential((CHAINS, STATES, STATES))
    found = chi_squared(P / P.sum(axis=2, keepdims=True))
    for j in range(2, LENGTH):
        best = np.argmax([found[i, j] for i in range(j)], axis=0)
        yield Measurement(f"chains where place {j} is told most by the one before", (best == j - 1).sum(), CHAINS)
    for lag, mean in ((1, 0.302), (2, 0.071), (3, 0.025)):
        values = found[0, lag]
        yield Measurement(f"mean at a distance of {lag}", values.mean(), mean, 4 * float(values.std()) / CHAINS**0.5 + 5e-4)


def brackets(rng: np.random.Generator, length: int, types: int = 2, most: int = 4) -> list[tuple[int, int, int]]:
    """A Dyck sequence: (sign, type, depth) of each bracket, the depth on its inner side; opening or closing alike where both may be."""
    stack: list[int] = []
    out = []
    for _ in range(length):
        if not stack or (len(stack) < most and rng.random() < 0.5):
            stack.append(int(rng.integers(types)))
            out.append((1, stack[-1], len(stack)))
        else:
            out.append((-1, stack[-1], len(stack)))
            stack.pop()
    return out


def even_share(length: int, most: int) -> float:
    """The mean of 1/t over places t of brackets() with an open bracket: attention to the last open one if all have the same.

    Exact: the depth goes up or down alike, up from 0, down from `most`.
    """
    law, with_one, shares = np.eye(most + 1)[0], 0.0, 0.0
    step = np.eye(most + 1, k=1) / 2 + np.eye(most + 1, k=-1) / 2
    step[0, 1] = step[most, most - 1] = 1
    for t in range(1, length + 1):
        law = law @ step
        with_one += 1 - law[0]
        shares += (1 - law[0]) / t
    return float(shares / with_one)


def read_off(by_place: bool) -> Iterable[Measurement]:
    """Values +e and -e of (type, depth) of opening and closing brackets, four weights: is the type read at the present depth the one open?

    by_place: the weights of places, not of depths.
    """
    rng = np.random.default_rng(1)
    weights = {
        "uniform": np.ones(5),
        "random": rng.uniform(0.1, 1, 5),
        "increasing": np.arange(1.0, 6),
        "decreasing": np.arange(5.0, 0, -1),
    }
    last_open = {"uniform": even_share(28, 4), "increasing": 0.1466, "decreasing": 0.1347}  # within .0005, by an independent script
    for name, of_depth in weights.items():
        right, total, attention = 0, 0, []
        for _ in range(500):
            stack: list[tuple[int, float]] = []
            sums, mass = np.zeros((2, 5)), 0.0
            for sign, kind, depth in brackets(rng, 28):
                w = float(rng.uniform(0.1, 1) if by_place else of_depth[depth])
                sums[kind, depth] += sign * w
                mass += w
                stack = [*stack, (kind, w)] if sign > 0 else stack[:-1]
                if stack:
                    right += int(np.argmax(sums[:, len(stack)]) == stack[-1][0])
                    attention.append(stack[-1][1] / mass)
                    total += 1
        yield Measurement(f"{name} weights: open brackets read off, of all", right / total, 1.0)
        found = float(np.mean(attention))
        yield Measurement(f"{name} weights: mean attention to the last open bracket, below half", found, 0.5, 0.0, "<=")
        if name in last_open and not by_place:
            # means of 500 sequences deviate by .0007, and those of the script by half of it
            yield Measurement(f"{name} weights: mean attention to the last open bracket", found, last_open[name], 3e-3)


def counts_of_facts(rng: np.random.Generator, F: int, n: int) -> np.ndarray:
    """How often each of F facts (F,), all alike, comes in n draws."""
    return np.bincount(rng.integers(F, size=n), minlength=F)


def missing_mass() -> Iterable[Measurement]:
    """1000 draws of 1000 facts alike, 20,000 times: the share of draws whose fact came once, and the mass of facts that never came."""
    F = n = 1000
    rng, repeats = np.random.default_rng(2), 20_000
    counts = [counts_of_facts(rng, F, n) for _ in range(repeats)]
    once, never = np.array([(c == 1).sum() / n for c in counts]), np.array([(c == 0).sum() / F for c in counts])
    yield Measurement("mean share that came once, of (1 - 1/F)^(n-1)", once.mean(), (1 - 1 / F) ** (n - 1), 4 * once.std() / repeats**0.5)
    yield Measurement("mean mass that never came, of (1 - 1/F)^n", never.mean(), (1 - 1 / F) ** n, 4 * never.std() / repeats**0.5)
    # in the limit 2/e - 1/e^2 is n times the variance of the difference
    deviation = ((2 / np.e - np.e**-2) / n) ** 0.5
    yield Measurement("deviation of their difference, over the limit's", (once - never).std() / deviation, 1.0, 0.025)
    largest = float(np.quantile(np.abs(once - never), 0.99))
    yield Measurement("99 % of differences are below", largest, 7 / n**0.5, 0.0, "<=")
    # of a normal law 2.576 deviations; they are whole thousandths, and 200 of 20,000 are above: 4 errors are .002
    yield Measurement("99 % of differences are below, in the limit", largest, 2.5758 * deviation, 0.003)


def parities(d: int, k: int) -> np.ndarray:
    """chi (C(d, k), 2^d): the parity of each set of k of d signs."""
    signs = 1.0 - 2.0 * ((np.arange(2**d)[:, None] >> np.arange(d)) & 1)
    return np.array([signs[:, chosen].prod(axis=1) for chosen in combinations(range(d), k)])


def parity_signal() -> Iterable[Measurement]:
    """50 random units of relu on all 2^10 inputs: mean squared correlation with the parities of k bits, over E phi^2 / C(10, k).

    One more unit is a parity of k bits, for which this is an equality. With the parity of k - 1 bits worked out the next one is a
    parity of two inputs, whatever k is: relu of their sum is 2 on a quarter of the inputs, and has 1/4 of its signal.
    """
    d, rng = 10, np.random.default_rng(3)
    signs = 1.0 - 2.0 * ((np.arange(2**d)[:, None] >> np.arange(d)) & 1)
    units = np.maximum(signs @ rng.standard_normal((d, 50)) + rng.standard_normal(50), 0).T
    for k in (2, 3, 4, 5):
        chi = parities(d, k)
        found = np.concatenate([units, chi[:1]])
        over = ((found @ chi.T / 2**d) ** 2).mean(axis=1) / (found**2).mean(axis=1) * comb(d, k)
        yield Measurement(f"k = {k}: random units, largest over the bound", over[:-1].max(), 1.0, 1e-12, "<=")
        yield Measurement(f"k = {k}: the parity itself, over the bound", over[-1], 1.0, 1e-12)
        unit = np.maximum(signs[:, : k - 1].prod(axis=1) + signs[:, k - 1], 0)  # of the parity so far, and the next bit
        signal = float((unit @ chi[0] / 2**d) ** 2 / (unit**2).mean())
        yield Measurement(f"k = {k}: one step worked out, squared correlation of relu of two inputs over E phi^2", signal, 0.25, 1e-12)


EXACT = "exact counts; means within four standard errors"
CLAIMS = (
    Claim(
        "static.missing_mass",
        Source("kalai2024calibrated", "Section 3", "the Good-Turing estimate, facts alike"),
        "20,000 draws of 1000 of 1000 facts",
        "the share of facts seen once estimates the mass of those never seen, to 7/sqrt(n)",
        missing_mass,
        "four standard errors; the limit to 1/n and the noise of a deviation",
    ),
    Claim(
        "static.parent",
        Source("nichani2024causal", "the information that the gradient holds", "chains with one parent each"),
        "10,000 chains of three states, six places",
        "the chi-squared information on a place is largest at its parent",
        parents,
        EXACT,
    ),
    GRADIENT,
    PROMPT,
    Claim(
        "static.brackets_cancel",
        Source("wen2023uninterpretable", "Theorem 1", "sufficiency, one layer, bounded depth"),
        "500 sequences of 28 brackets, two types, depth 4",
        "brackets that cancel in pairs leave the last open one, whatever the attention",
        lambda: read_off(by_place=False),
        EXACT,
        when="attention depends on the depth alone",
        otherwise=lambda: read_off(by_place=True),
    ),
    Claim(
        "static.parity",
        Source("wies2023subtask", "Section 5", "parities without and with intermediate steps"),
        "all inputs of ten bits, 50 random units of relu",
        "a unit's mean squared correlation with parities of k bits is at most E phi^2 / C(d, k)",
        parity_signal,
        "rounding",
    ),
    HYPERCUBE,
    CONTRAST,
    FACT_CLAIM,
    COMPOSITION,
    COMPONENTS,
    *LEARNING,
    SINKS,
)

"""The gradient of a first layer of attention at the start, of sequences whose places have parents: by enumeration, and in the limit.

Two layers without values, as in nichani2024causal. Layer 1 attends by place, h_i = sum_j S(A)[i, j] e(s_j) over j <= i; layer 2 weighs
place i by w_i ~ exp(beta h_i[s_T]), and f[s'] = sum_i w_i 1[s_i = s'] is the prediction of s_(T+1), with the loss -ln(f + eps). The last
place s_T is drawn uniformly, s_(T+1) from P[s_T]; every other place is drawn from P[parent], or from the stationary law pi where it has
none; P is drawn anew for each sequence. At A = 0, for small beta and many places, -dL/dA[i, j] is beta / (T i S) times
g(i, j) = E sum P[s, s'] / pi[s'] (p(s_j = s, s_i = s') - pi[s] pi[s']), up to what is alike for all j of a row.

At the parent g is the mean of the chi-squared information. Elsewhere it is a product of two density ratios, at most the root of both
informations (Cauchy and Schwarz), and at most the parent's (data processing). At i itself it is the mean trace of P less 1: 0 where the
mean of P is uniform, as the paper assumes. Where it is not, a place may find itself.
"""

from collections.abc import Iterable
from itertools import chain

import numpy as np

from odesim.lab.claims import Claim, Measurement
from odesim.symbolic import Source

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

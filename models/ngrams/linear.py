"""Two layers of linear attention learn to predict a Markov chain from its context: nothing, then unigrams, then bigrams.

The first layer looks back by v_l at lag l, the second weighs what it finds by W[s, r]: in a long context the prediction after token s is
f[s'] = sum_l v_l sum_r pi_r P^l[r, s'] W[s, r], with the chain P and its law at rest pi. By symmetry W has w_d on the diagonal and w_o
elsewhere: f = w_o V pi[s'] + (w_d - w_o) pi_s sum_l v_l P^l[s, s'], V = sum v. The first part is the unigram, the second with l = 1 the
bigram but for pi_s, by which linear attention cannot divide. From small weights w0 the flow first leaves 0 along the unigram, at
ln(1/w0)/sigma; v_1 is the largest from then on. The bigram comes along a slow slope, at a time that w0 does not change.

Assumed: infinite contexts, gradient flow of E sum_s pi_s |f - P[s]|^2 / 2 over chains whose rows are uniform on the simplex. Means over
chains of two states are exact; of k > 2 states they are over 20,000 that are always the same.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sympy import Interval, Naturals, Sum, Symbol, oo

from odesim.symbolic import Event, IndexedBase, Invariant, Param, Source, System, gradient_flow, index, over, sizes

# Markov chains whose rows are uniform on the simplex, and the means over them that the loss of n-grams is made of.

NODES, DRAWS = 40, 20_000


def two_states() -> tuple[np.ndarray, np.ndarray]:
    """P (Q, 2, 2) and weights (Q,) of chains of two states, chances p and q to leave a state uniform on [0, 1].

    In s = p + q and x = q / s, where the law at rest (x, 1 - x) is smooth: rule of Gauss in s up to 1 / max(x, 1 - x), and in x on either
    half. In p and q the means have a kink at p = q = 0, and 80 nodes each give 1e-7; these 40 give rounding.
    """
    node, weight = np.polynomial.legendre.leggauss(NODES)
    node, weight = (node + 1) / 2, weight / 2
    x, w = np.concatenate([node / 2, (1 + node) / 2]), np.tile(weight / 2, 2)
    most = 1 / np.maximum(x, 1 - x)
    s, mass = most[:, None] * node, (w * most)[:, None] * weight * most[:, None] * node  # dp dq = s ds dx
    q = s * x[:, None]
    p = s - q
    P = np.stack([np.stack([1 - p, p], axis=-1), np.stack([q, 1 - q], axis=-1)], axis=-2)
    return P.reshape(-1, 2, 2), mass.ravel()


def chains(k: int) -> tuple[np.ndarray, np.ndarray]:
    """P (Q, k, k) and weights (Q,): exact means for two states; for more, 20,000 chains, always the same. Raises ValueError for k < 2."""
    if k < 2:
        raise ValueError(f"k = {k}: a chain has two states or more")
    if k == 2:
        return two_states()
    P = np.random.default_rng(0).standard_exponential((DRAWS, k, k))
    return P / P.sum(axis=2, keepdims=True), np.full(DRAWS, 1 / DRAWS)


def moments(P: np.ndarray, weights: np.ndarray, L: int) -> dict[str, Any]:
    """A (L,), B, C (L, L), D (L,), S: means over chains P (Q, k, k) with pi at rest, lags 0..L - 1."""
    k = P.shape[1]
    pi = np.linalg.solve((np.eye(k) - P + 1).swapaxes(1, 2), np.ones((len(P), k, 1)))[..., 0]
    powers = [np.tile(np.eye(k), (len(P), 1, 1))]
    for _ in range(L - 1):
        powers.append(powers[-1] @ P)
    steps = np.array(powers)
    return {
        "A": np.einsum("n,ns,nsr,lnsr->l", weights, pi**2, P, steps),
        "B": float(weights @ (pi**2).sum(axis=1)),
        "C": np.einsum("n,ns,lnsr,mnsr->lm", weights, pi**3, steps, steps),
        "D": np.einsum("n,ns,nr,lnsr->l", weights, pi**2, pi, steps),
        "S": float(np.einsum("n,ns,nsr->", weights, pi, P**2)),
    }


def least_loss(given: dict[str, Any]) -> float:
    """The least loss over all weights: a quadratic form in a v (L,) and b V."""
    A, B, C, D, S = (given[name] for name in "ABCDS")
    H, g = np.block([[C, D[:, None]], [D[None], np.array([[B]])]]), np.append(A, B)
    return float(S - g @ np.linalg.lstsq(H, g, rcond=None)[0]) / 2


l, m = index("l m")
(L,) = sizes("L")
v = IndexedBase("v", shape=(L,))
A, D, C = IndexedBase("A", shape=(L,)), IndexedBase("D", shape=(L,)), IndexedBase("C", shape=(L, L))
w_d, w_o = Symbol("w_d", real=True), Symbol("w_o", real=True)
B, S, best, w0, k = (*(Symbol(name, real=True) for name in ("B", "S", "best", "w0")), Symbol("k", positive=True))


def mean(name: str, sizes: dict[str, int], params: dict[str, Any]) -> Any:
    """One of the means over chains of k states."""
    return moments(*chains(int(params["k"])), sizes["L"])[name]


def of(name: str) -> Callable[..., Any]:
    """The default of a mean."""
    return partial(mean, name)


def lowest(sizes: dict[str, int], params: dict[str, Any]) -> float:
    """The least loss."""
    return least_loss({name: params[name] for name in "ABCDS"})


a, V = w_d - w_o, over(Sum, v[l], (l, L))
copied = over(Sum, v[l] * over(Sum, C[l, m] * v[m], (m, L)), (l, L))
of_unigram, of_bigram = over(Sum, D[l] * v[l], (l, L)), over(Sum, A[l] * v[l], (l, L))
half_square = a**2 * copied / 2 + a * w_o * V * of_unigram + w_o**2 * V**2 * B / 2  # E sum pi_s |f|^2 / 2
loss = half_square - a * of_bigram - w_o * V * B + S / 2
unigram = (S - B) / 2

SYSTEM = System(
    name="ngrams.linear",
    source=Source("edelman2024evolution", "the minimal model", "squared loss and infinite contexts are ours"),
    axes={l: L, m: L},
    # k entries of W on the diagonal share the slope of w_d, k (k - 1) others that of w_o
    equations=gradient_flow(loss, {w_d: 1 / k, w_o: 1 / (k * (k - 1)), v[l]: 1}),
    params=(
        Param(k, 2, Naturals, "states of a chain"),
        Param(A, of("A"), Interval(0, oo), "A[l] = E sum pi_s^2 P[s, r] P^l[s, r]"),
        Param(B, of("B"), Interval(0, 1), "B = E sum pi_s^2"),
        Param(C, of("C"), Interval(0, oo), "C[l, m] = E sum pi_s^3 P^l[s, r] P^m[s, r]"),
        Param(D, of("D"), Interval(0, oo), "D[l] = E sum pi_s^2 pi_r P^l[s, r]"),
        Param(S, of("S"), Interval(0, oo), "S = E sum pi_s P[s, r]^2"),
        Param(best, lowest, Interval(0, oo), "the least loss over all weights"),
        Param(w0, 0.01, Interval(0, oo), "w_d, w_o and v at the start"),
    ),
    initial={w_d: w0, w_o: w0, v[l]: w0},
    sizes={L: 5},
    span=(0.0, 400.0),
    time="steps times learning rate",
    observables={
        "loss": loss,
        # E sum pi_s |f - strategy|^2; from the bigram it is 2 loss
        "from_uniform": 2 * half_square - 2 * (w_o * V + a * V * B) / k + 1 / k,
        "from_unigram": 2 * half_square - 2 * (w_o * V * B + a * of_unigram) + B,
    },
    display={"loss": loss},
    invariants=(
        Invariant("balance of the layers", k * w_d**2 + k * (k - 1) * w_o**2 - over(Sum, v[l] ** 2, (l, L)), "constant"),
        Invariant("loss falls", loss, "nonincreasing"),
    ),
    events=(
        Event("unigram", loss - (S / 2 + unigram) / 2, -1, doc="the loss is half way from 0 to the unigram"),
        Event("bigram", loss - (unigram + best) / 2, -1, doc="the loss is half way from the unigram to its least"),
    ),
)

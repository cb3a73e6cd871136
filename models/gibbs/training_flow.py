"""Training on the loss of masked tokens, by gradient flow: a law exp(theta . F(x)) learns the conditional laws of k tokens at once.

The loss L_k is the mean of -ln p_theta(masked | others) over sequences of a true law, that of theta_star, and over all masks of k tokens.
It is convex: theta goes to theta_star, near it at the least eigenvalue of the information I_k of one masked sample. I_k grows with k, up
to the covariance of F for k = n: the more is masked, the sooner all of theta is learned. Sequences are n signs; F are products of signs,
one, two, and so on at a time; by default n = 4 with all fields and all pairs. Group g is a set of sequences which differ in masked tokens
only: N = C(n, k) 2^(n - k) groups of R = 2^k.

Assumed: the mean over all sequences and masks, no samples; a true law in the family.
"""

from itertools import combinations
from math import comb
from typing import Any

import numpy as np
from sympy import Interval, KroneckerDelta, Naturals, Naturals0, Sum, Symbol, oo, sqrt

from odesim.models.gibbs._kernels import blocks, length, sequences
from odesim.models.gibbs._laws import normalised
from odesim.symbolic import Constraint, IndexedBase, Invariant, Param, Source, System, gradient_flow, index, logsumexp, over, sizes, softmax

a, x, y, g, r = index("a x y g r")
S, A, N, R = sizes("S A N R")
theta, theta_star = IndexedBase("theta", shape=(A,)), IndexedBase("theta_star", shape=(A,))
F, p, G = IndexedBase("F", shape=(A, S)), IndexedBase("p", shape=(S,)), IndexedBase("G", shape=(N, R))


def products(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """F (A, S): the first A products of signs, the shorter ones first."""
    signs = 2.0 * sequences(sizes["S"]) - 1
    n = signs.shape[1]
    chosen = [tokens for order in range(1, n + 1) for tokens in combinations(range(n), order)][: sizes["A"]]
    if len(chosen) < sizes["A"]:
        raise ValueError(f"n = {n} signs have {len(chosen)} products, fewer than A = {sizes['A']}")
    return np.array([signs[:, tokens].prod(axis=1) for tokens in chosen])


def pairs(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """theta_star (A,): .2 for each product of two signs, 0 for the others."""
    n = length(sizes["S"], 2)
    return np.where((np.arange(sizes["A"]) >= n) & (np.arange(sizes["A"]) < n + comb(n, 2)), 0.2, 0.0)


def groups(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """G (N, R): the sequences of a group. Raises ValueError where N or R do not fit k."""
    n, k = length(sizes["S"], 2), int(params["k"])
    found = np.concatenate(list(blocks(n, 2, k)))
    if found.shape != (sizes["N"], sizes["R"]):
        raise ValueError(f"k = {k} masked tokens of n = {n} need the sizes N = {len(found)} and R = {found.shape[1]}")
    return found


def of_family(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """p (S,): the law of theta_star."""
    return normalised(params["theta_star"] @ params["F"])


def score(parameters: Any, place: Any) -> Any:
    """theta . F of a sequence."""
    return over(Sum, parameters[a] * F[a, place], (a, A))


drawn = over(Sum, p[G[g, r]], (r, R))  # the probability of a group
scores = over(Sum, KroneckerDelta(y, G[g, r]) * score(theta, y), (y, S))  # of all sequences once, then read
loss = over(Sum, drawn * logsumexp(scores, (r, R)), (g, N)) * S / (N * R) - over(Sum, p[x] * score(theta, x), (x, S))
in_family = over(Sum, (p[x] - softmax(score(theta_star, x), (x, S))) ** 2, (x, S)) <= 1e-24
error = sqrt(over(Sum, (theta[a] - theta_star[a]) ** 2, (a, A)))

SYSTEM = System(
    name="gibbs.training_flow",
    source=Source("li2024promises", "the k-masked loss", "of an exponential family, over all sequences"),
    axes={a: A, x: S, y: S, g: N, r: R},
    equations=gradient_flow(loss, {theta[a]: 1}),
    params=(
        Param(Symbol("k"), 1, Naturals, "number of masked tokens, predicted together"),
        Param(theta_star, pairs, Interval(-oo, oo), "parameters of the true law"),
        Param(F, products, Interval(-oo, oo), "F[a, x]: statistic a of sequence x, in lexicographic order"),
        Param(p, of_family, Interval.open(0, oo), "p[x]: true probability of sequence x"),
        Param(G, groups, Naturals0, "G[g, r]: sequences that differ in masked tokens only", indexes=S, cover=False),
    ),
    initial={theta[a]: 0},
    sizes={S: 16, A: 10, N: 32, R: 2},
    span=(0.0, 30.0),
    time="time of gradient flow",
    observables={"loss": loss, "error": error},
    display={"P": drawn, "score": scores, "loss": loss, "error": error},
    constraints=(Constraint("p sums to 1", over(Sum, p[x], (x, S)) - 1, "==0", 1e-9),),
    invariants=(Invariant("loss falls", loss, "nonincreasing"), Invariant("error falls", error, "nonincreasing", when=in_family)),
)

"""Tokens of one class come to have one embedding, as what is asked of pairs of tokens depends on their classes alone.

Token a has the class c[a] and the embedding V[a, :]; two tokens are to have the product f[c[a], c[b]], and the loss is a quarter of the sum
of squares of what is missed. With F[a, b] = f[c[a], c[b]] and all pairs seen, V' = (F - V V^T) V: rows of one class differ by d, with
d' = -d V^T V. So they only come closer, as exp(-lam t) if V^T V comes to have full rank, lam the least eigenvalue of F that is fitted.
With more dimensions R than F has positive eigenvalues, some have nothing to fit and fade: R - K of them leave classes of n tokens a
spread of n (R - K)/(2 t). V V^T is known: e^(F t) V0 (1 + V0^T G V0)^-1 V0^T e^(F t), G' = 2 e^(2 F t).

seen[a, b] is how often a pair is among the samples. Assumed: interactions of two tokens, without noise; gradient flow.
"""

from typing import Any

import numpy as np
from sympy import Eq, Interval, Naturals0, Piecewise, Sum, cos, oo, symbols

from odesim.symbolic import ClosedForm, IndexedBase, Invariant, Param, Source, System, gradient_flow, index, over, sizes

a, b, r, k, l = index("a b r k l")
N, R, K = sizes("N R K")
V, seen = IndexedBase("V", shape=(N, R)), IndexedBase("seen", shape=(N, N))
f, c = IndexedBase("f", shape=(K, K)), IndexedBase("c", shape=(N,))
eps = symbols("eps", positive=True)


def in_turn(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """c (N,): the classes in turn."""
    return np.arange(sizes["N"]) % sizes["K"]


def alike(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """f (K, K): 1 within a class, .2 between classes."""
    return 0.2 + 0.8 * np.eye(sizes["K"])


def products(t: float, y: dict[str, Any], y0: dict[str, Any], params: dict[str, Any]) -> np.ndarray:
    """By how much V V^T is off."""
    where = np.asarray(params["c"], int)
    F, V0 = np.asarray(params["f"])[np.ix_(where, where)], y0["V"]
    lam, basis = np.linalg.eigh((F + F.T) / 2)
    still = np.abs(lam) < 1e-12
    # of G, and e^(F t): each times exp(-2 top t), or its root, so that nothing overflows
    top = max(lam.max(), 0.0)
    late = np.exp(-2 * top * t)
    G = np.where(still, 2 * t * late, (np.exp(2 * (lam - top) * t) - late) / np.where(still, 1, lam))
    W = basis.T @ V0
    moved = np.exp((lam - top) * t)[:, None] * W
    want = moved @ np.linalg.solve(late * np.eye(V0.shape[1]) + (W.T * G) @ W, moved.T)
    return np.asarray(basis @ want @ basis.T - y["V"] @ y["V"].T)


product = over(Sum, V[a, r] * V[b, r], (r, R))
missed = f[c[a], c[b]] - product
loss = over(Sum, over(Sum, seen[a, b] * missed**2, (b, N)), (a, N)) / 4
apart = over(Sum, (V[a, r] - V[b, r]) ** 2, (r, R))
spread = over(Sum, over(Sum, Piecewise((apart, Eq(c[a], c[b])), (0, True)), (b, N)), (a, N)) / 2
all_pairs = over(Sum, over(Sum, (seen[a, b] - 1) ** 2, (b, N)), (a, N)) <= 0

SYSTEM = System(
    name="partitions.embeddings",
    source=Source("buchholz2024partitions", "Abstract", "gradient flow of embeddings; products of two tokens are a stand-in of our own"),
    axes={a: N, b: N, r: R, k: K, l: K},
    equations=gradient_flow(loss, {V[a, r]: 1}),
    params=(
        Param(f, alike, Interval(-oo, oo), "f[k, l]: the product of tokens of two classes"),
        Param(c, in_turn, Naturals0, "class of each token", indexes=K, cover=False),
        Param(seen, 1.0, Interval(0, oo), "seen[a, b]: how often the pair is among the samples"),
        Param(eps, 0.1, Interval.open(0, oo), "size of the embeddings at the start"),
    ),
    initial={V[a, r]: eps * cos((a + 1) * (2 * r + 1))},
    sizes={N: 6, R: 2, K: 2},
    span=(0.0, 8.0),
    time="steps times learning rate",
    observables={"loss": loss, "spread": spread},
    display={"loss": loss},
    invariants=(Invariant("loss falls", loss, "nonincreasing"), Invariant("classes close", spread, "nonincreasing", when=all_pairs)),
    closed_forms=(ClosedForm("products", "f symmetric, all pairs seen once", products, "implicit"),),
)

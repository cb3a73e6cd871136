"""word2vec to second order, in closed form: directions of a text are learned one after another, each as a sigmoid.

P[i, j] is how often words i and j stand together, p their frequencies, w_i.w_j their score. Up to second order in scores the loss of
skip-gram with negative samples is sum_ij G (M - w_i.w_j)^2 / 2 + const, with M = 2 (P - p p)/(P + p p) in (-2, 2) and the weights
G = (P + p p)/2. flat = 1, the paper's case, has weights 1: then from words along eigenvectors of M each eigenvalue m > 0 is learned as
s(t) = m e^(4 m t) / (e^(4 m t) - 1 + m/s0), half of it at ln(m/s0 - 1)/(4 m), and W W^T ends as the d largest positive ones. flat = 0
has the weights G, which a closed form lacks.

Assumed: words and contexts share their vectors. Skip-gram itself, not to second order, has ln(P/(p p)) in the place of M.
"""

from typing import Any

import numpy as np
from sympy import Interval, Sum, oo, symbols

from odesim.symbolic import (
    ClosedForm,
    Constraint,
    IndexedBase,
    Invariant,
    Log,
    Matrix,
    Param,
    Source,
    System,
    at,
    gradient_flow,
    index,
    over,
    sizes,
)

i, j, k, c, e = index("i j k c e")
V, d = sizes("V d")
W, P, W0 = IndexedBase("W", shape=(V, d)), IndexedBase("P", shape=(V, V)), IndexedBase("W0", shape=(V, d))
flat = symbols("flat", nonnegative=True)


def neighbours(sizes: dict[str, int]) -> np.ndarray:
    """P (V, V): words on a line, which stand together as 1/(1 + distance)^2."""
    place = np.arange(sizes["V"])
    together = 1.0 / (1 + np.abs(place - place[:, None])) ** 2
    return together / together.sum()


def target(P: Any) -> np.ndarray:
    """M (V, V) of P."""
    P = np.asarray(P, float)
    alone = np.outer(P.sum(axis=1), P.sum(axis=1))
    return 2 * (P - alone) / np.maximum(P + alone, 1e-300)  # 0 for a word that never occurs, which a constraint refuses


def modes(P: Any) -> tuple[np.ndarray, np.ndarray]:
    """(m (V,), U (V, V)): eigenvalues of M, largest first, and eigenvectors as columns, whose largest entry is positive."""
    m, U = np.linalg.eigh(target(P))
    m, U = m[::-1], U[:, ::-1]
    return m, U * np.sign(U[np.abs(U).argmax(axis=0), np.arange(len(m))])


def aligned(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """W0 (V, d): the first eigenvectors of M, with s0 = 1e-6; columns of 0 where d is above V."""
    out = np.zeros((sizes["V"], sizes["d"]))
    out[:, : sizes["V"]] = 1e-3 * modes(params["P"])[1][:, : sizes["d"]]
    return out


def sigmoids(t: float, y0: dict[str, Any], params: dict[str, Any]) -> dict[str, np.ndarray]:
    """W (V, d): what stands along an eigenvector of M grows by the root of s(t)/s(0)."""
    m, U = modes(params["P"])
    along = U.T @ y0["W"]
    s0 = (along**2).sum(axis=1)
    grown = np.exp(4 * m * t)
    stretch = grown / (1 + s0 * np.where(m == 0, 4 * t, (grown - 1) / np.where(m == 0, 1, m)))
    return {"W": U @ (np.sqrt(stretch)[:, None] * along)}


alone = over(Sum, P[i, k], (k, V))
pair = alone * at(alone, {i: j})
M = 2 * (P[i, j] - pair) / (P[i, j] + pair)
G = flat + (1 - flat) * (P[i, j] + pair) / 2
loss = over(Sum, G * (M - over(Sum, W[i, c] * W[j, c], (c, d))) ** 2, (i, V), (j, V)) / 2

SYSTEM = System(
    name="scaling.word2vec",
    source=Source("karkada2025closed", "abstract", "quadratic word embedding model, flat = 1"),
    axes={i: V, j: V, k: V, c: d, e: d},
    equations=gradient_flow(loss, {W[i, c]: 1}),
    params=(
        Param(P, neighbours, Interval(0, oo), "how often two words stand together, over all pairs"),
        Param(flat, 1.0, Interval(0, 1), "1: all pairs of words have the same weight, 0: weights by frequency"),
        Param(W0, aligned, Interval(-oo, oo), "vectors of the words at the start"),
    ),
    initial={W[i, c]: W0[i, c]},
    sizes={V: 8, d: 3},
    span=(0.0, 4.0),
    time="steps times learning rate",
    observables={"loss": loss, "gram": over(Sum, W[i, c] * W[i, e], (i, V))},
    display={"M": M},
    views=(Log("loss"), Matrix("W")),
    invariants=(Invariant("loss falls", loss, "nonincreasing"),),
    closed_forms=(ClosedForm("sigmoids", "flat = 1, W W^T at the start has the eigenvectors of M", sigmoids),),
    constraints=(
        Constraint("P sums to 1", over(Sum, P[i, j], (i, V), (j, V)) - 1, "==0", 1e-9),
        Constraint("every word occurs", over(Sum, P[i, k], (k, V)) - 1e-100, ">=0"),
        Constraint("P is symmetric", P[i, j] - P[j, i], "==0", 1e-12),
    ),
)

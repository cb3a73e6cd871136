"""scaling.word2vec with vectors of their own for contexts, W and C, and scores w_i.c_j: what is opposed is learned too.

The loss is sum_ij G (M - w_i.c_j)^2 / 2 with M and G as there, and W^T W - C^T C stays. From W = C the flow is that of shared vectors at
half the speed, which learns the positive eigenvalues of M alone; from W = -C it learns the negative ones alone; from other small starts
both, so that W C^T comes to M if there are as many dimensions as words. flat = 1: along an eigenvector of M with the value m, w + c grows
by z^(1/2) and w - c shrinks by it, z' = B + 2 m z - A z^2, where A = |w + c|^2/2 and B = |w - c|^2/2 at the start.

Assumed: each word is a context as often.
"""

from typing import Any

import numpy as np
from sympy import Interval, Sum, oo

from odesim.models.scaling.word2vec import SYSTEM as TIED
from odesim.models.scaling.word2vec import W0, G, M, V, W, c, d, e, i, j, k, modes
from odesim.symbolic import ClosedForm, IndexedBase, Invariant, Log, Matrix, Param, Source, System, gradient_flow, over

C, C0 = IndexedBase("C", shape=(V, d)), IndexedBase("C0", shape=(V, d))


def aligned(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """W0 (V, d): the eigenvectors of M with the largest |m|, times 1e-3; columns of 0 where d is above V."""
    m, U = modes(params["P"])
    out = np.zeros((sizes["V"], sizes["d"]))
    out[:, : sizes["V"]] = 1e-3 * U[:, np.argsort(-np.abs(m))][:, : sizes["d"]]
    return out


def half(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """C0 (V, d): half of W0."""
    return np.asarray(params["W0"]) / 2


def riccati(t: float, y0: dict[str, Any], params: dict[str, Any]) -> dict[str, np.ndarray]:
    """W and C (V, d): z = (1 + (m + B) T)/(1 + (A - m) T), with r^2 = m^2 + A B and T = tanh(r t)/r."""
    m, U = modes(params["P"])
    plus, minus = (U.T @ (y0["W"] + sign * y0["C"]) / 2**0.5 for sign in (1, -1))
    A, B = (plus**2).sum(axis=1), (minus**2).sum(axis=1)
    r = np.sqrt(m**2 + A * B)
    T, safe, fades = np.where(r > 0, np.tanh(r * t) / np.where(r > 0, r, 1), t), np.maximum(r, 1e-300), np.exp(-2 * r * t)
    # 1 - |m| T, of numbers that are nearly alike
    low = np.where(r > 0, (A * B / (safe + np.abs(m)) + 2 * np.abs(m) * fades / (1 + fades)) / safe, 1.0)
    high = 1 + np.abs(m) * T
    root = np.sqrt((np.where(m < 0, low, high) + B * T) / np.maximum(np.where(m < 0, high, low) + A * T, 1e-300))[:, None]
    return {"W": U @ (plus * root + minus / root) / 2**0.5, "C": U @ (plus * root - minus / root) / 2**0.5}


scores = over(Sum, W[i, c] * C[j, c], (c, d))
loss = over(Sum, G * (M - scores) ** 2, (i, V), (j, V)) / 2

SYSTEM = System(
    name="scaling.word2vec_untied",
    source=Source("karkada2025closed", "abstract", "words and contexts with vectors of their own; derived"),
    axes={i: V, j: V, k: V, c: d, e: d},
    equations=gradient_flow(loss, {W[i, c]: 1, C[i, c]: 1}),
    params=(
        *TIED.params[:2],
        Param(W0, aligned, Interval(-oo, oo), "vectors of the words at the start"),
        Param(C0, half, Interval(-oo, oo), "vectors of the contexts at the start"),
    ),
    initial={W[i, c]: W0[i, c], C[i, c]: C0[i, c]},
    sizes={V: 8, d: 3},
    span=(0.0, 10.0),
    time="steps times learning rate",
    observables={"loss": loss, "scores": scores},
    display={"M": M, "G": G},
    views=(Log("loss"), Matrix("W"), Matrix("C")),
    invariants=(
        Invariant("loss falls", loss, "nonincreasing"),
        Invariant("layers stay balanced", over(Sum, W[i, c] * W[i, e] - C[i, c] * C[i, e], (i, V)), "constant"),
    ),
    closed_forms=(ClosedForm("Riccati", "flat = 1, w and c along eigenvectors of M, at right angles between two of them", riccati),),
    constraints=TIED.constraints,
)

"""Gradient flow of a bilinear model on pairs, of which one direction is held out: embeddings that are nearly orthogonal do not help.

The logit of token m after token a is E[a] . Theta E[m], with fixed embeddings E. Sequences k are trained, sequences h are held out,
such as the reverse of one that is trained: by default all pairs are trained both ways, but for one direction of the last. The larger d,
the less the held-out loss moves: rows of E overlap by 1/sqrt(d).

Assumed: embeddings that do not move, zero start, gradient flow. Written from its loss.
"""

from typing import Any

import numpy as np
from sympy import Interval, KroneckerDelta, Naturals0, Sum, Symbol, oo

from odesim.symbolic import ClosedForm, IndexedBase, Invariant, Param, Source, System, gradient_flow, index, logsumexp, over, sizes

a, b, j, k, h, i, l = index("a b j k h i l")
M, N, H = sizes("M N H")
(d,) = sizes("d")
Theta, E = IndexedBase("Theta", shape=(d, d)), IndexedBase("E", shape=(M, d))
x1, x3 = IndexedBase("x1", shape=(N,)), IndexedBase("x3", shape=(N,))
h1, h3 = IndexedBase("h1", shape=(H,)), IndexedBase("h3", shape=(H,))
eta = Symbol("eta", nonnegative=True)


def gaussian(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """E (M, d): rows of variance 1/d, numpy's default_rng(0)."""
    return np.random.default_rng(0).normal(size=(sizes["M"], sizes["d"])) / np.sqrt(sizes["d"])


def source(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """x1 (N,): tokens 0, 1, ...; token i and token i + M/2 are a pair."""
    return np.arange(sizes["N"]) % sizes["M"]


def target(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """x3 (N,): the partner of each source."""
    return (np.arange(sizes["N"]) + sizes["M"] // 2) % sizes["M"]


def held_source(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """h1 (H,): the sources after the last trained one."""
    return (sizes["N"] + np.arange(sizes["H"])) % sizes["M"]


def held_target(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """h3 (H,): the partner of each held-out source."""
    return (sizes["N"] + np.arange(sizes["H"]) + sizes["M"] // 2) % sizes["M"]


def orthonormal(t: float, y0: dict[str, Any], params: dict[str, Any]) -> dict[str, Any]:
    """Theta (d, d) = E^T Y E, with the decoder Y (M, M) of reversal.full: rows of E that are orthonormal learn alone."""
    from scipy.special import wrightomega

    E, N = params["E"], len(params["x1"])
    hit = np.zeros((len(E), len(E)))
    hit[params["x1"], params["x3"]] = 1
    r, M = hit.sum(axis=1), len(E)
    A = (M * params["eta"] * t / N + r) / (M - r)
    v = np.where(r > 0, A - wrightomega(A + np.log(np.maximum(r, 1) / (M - r))), 0.0)
    return {"Theta": E.T @ (v[:, None] * (hit - r[:, None] / M)) @ E}


def logit(x: Any) -> Any:
    """The logit of token j after token x."""
    return over(Sum, over(Sum, E[x, i] * Theta[i, l], (i, d)) * E[j, l], (l, d))


def nll(x: Any, y: Any, axis: tuple[Any, Any]) -> Any:
    """The mean of -ln p(y | x) over axis."""
    own = over(Sum, KroneckerDelta(j, y) * logit(x), (j, M))
    return over(Sum, logsumexp(logit(x), (j, M)) - own, axis) / axis[1]


loss = nll(x1[k], x3[k], (k, N))

SYSTEM = System(
    name="reversal.bilinear",
    source=Source("zhu2024reversal", "Section 3", "one held-out direction; the wording of its theorem is not checked"),
    axes={a: d, b: d, k: N, h: H, j: M},
    equations=gradient_flow(loss, {Theta[a, b]: eta}),
    params=(
        Param(E, gaussian, Interval(-oo, oo), "embeddings of the tokens"),
        Param(x1, source, Naturals0, "source of training sequence k", indexes=M, cover=False),
        Param(x3, target, Naturals0, "target of training sequence k", indexes=M, cover=False),
        Param(h1, held_source, Naturals0, "source of held-out sequence h", indexes=M, cover=False),
        Param(h3, held_target, Naturals0, "target of held-out sequence h", indexes=M, cover=False),
        Param(eta, 1.0, Interval(0, oo), "learning rate"),
    ),
    initial={Theta[a, b]: 0},
    sizes={M: 10, d: 20, N: 9, H: 1},
    span=(0.0, 100.0),
    time="SGD steps",
    observables={"loss": loss, "loss_held": nll(h1[h], h3[h], (h, H))},
    invariants=(Invariant("loss falls", loss, "nonincreasing"),),
    display={"logit": logit(x1[k]), "held_logit": logit(h1[h])},
    closed_forms=(ClosedForm("orthonormal embeddings", "from 0, where E E^T = 1 and no pair occurs twice", orthonormal),),
)

"""Gradient flow of a one-layer transformer whose classes all look alike: the exact reduction of scan_snap.full by symmetry.

Every class has D distinct tokens with the same probabilities p and shares C groups of common tokens, mc[g] tokens of probability
pc[g] each. A query is shared by k_m classes: 1, or K. The state is what Y and Z hold for one class: a, b, d are the rows of Y of
its distinct tokens at the column of the class, of another class, and of a token that is never next; u, v the rows of a common
token at the column of a class and of a token that is never next; z and zc the attention logits.

Assumed: what scan_snap.full assumes, and classes of equal probability. The decoder gradient is the plain one, so the force on the
attention starts as O(1/M); the paper's reduced flow (scan_snap.reduced_symmetric) decorrelates it, and its attention is faster by
a factor that grows with M: the claim that this only rescales the learning rate (Remark 1 of Lemma 5) needs K = M.
"""

from typing import Any

import numpy as np
from sympy import Interval, Sum, Symbol, exp, log, oo, sqrt

from odesim.symbolic import ClosedForm, Constraint, Event, IndexedBase, Invariant, Param, Shift, Source, System, index, over, sizes, time

j, g = index("j g")
D, C = sizes("D C")
a, b, d, z, p = (IndexedBase(name, shape=(D,)) for name in ("a", "b", "d", "z", "p"))
u, v, zc, pc, mc = (IndexedBase(name, shape=(C,)) for name in ("u", "v", "zc", "pc", "mc"))
K, M, k_m = (Symbol(name, positive=True) for name in ("K", "M", "k_m"))
eta_Y, eta_Z = Symbol("eta_Y", nonnegative=True), Symbol("eta_Z", nonnegative=True)


def rising(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """p (D,) of the official generator: weights 1/D, 2/D, ..., 1, against a weight of 1 for each common token."""
    weight = np.arange(1, sizes["D"] + 1) / sizes["D"]
    return weight / (weight.sum() + np.sum(params["mc"]))


def the_rest(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """pc (C,): the probability that p leaves, divided equally among the common tokens."""
    return np.full(sizes["C"], max(1 - np.sum(params["p"]), 0) / np.sum(params["mc"]))


def separate_classes(t: float, y0: dict[str, Any], params: dict[str, Any]) -> dict[str, Any]:
    """All states where there are no common tokens (pc = 0), from 0: no force on z, and a margin m of the decoder.

    exp(m) + (M - 1) m = 1 + M eta_Y t / K by the Wright omega function; a is (1 - 1/M) m fd, b and d are -m fd / M.
    """
    from scipy.special import wrightomega

    p, M = params["p"], params["M"]
    total = 1 + M * params["eta_Y"] * t / params["K"]
    margin = np.log(M - 1) + np.log(wrightomega(total / (M - 1) - np.log(M - 1)))
    rows = margin * p / np.linalg.norm(p)
    still = {name: np.zeros_like(y0[name]) for name in ("z", "u", "v", "zc")}
    return {"a": (1 - 1 / M) * rows, "b": -rows / M, "d": -rows / M, **still}


top = over(Shift, z[j], (j, D))
ct, cc = p[j] * exp(z[j] - top), pc[g] * exp(zc[g] - top)
rho = sqrt(over(Sum, ct**2, (j, D)) + over(Sum, mc[g] * cc**2, (g, C)))
fd, fc = ct / rho, cc / rho

# odds of another class and of all tokens that are never next, against the class itself: at most 1 each from a zero start
other = exp(over(Sum, fd * (b[j] - a[j]), (j, D)))
never = exp(over(Sum, fd * (d[j] - a[j]), (j, D)) + over(Sum, mc[g] * fc * (v[g] - u[g]), (g, C)))
odds = (K - 1) * other + (M - K) * never
pa = 1 / (1 + odds)
loss = log(1 + odds)

gd = (a[j] * odds - b[j] * (K - 1) * other - d[j] * (M - K) * never) * pa
gc = (u[g] - v[g]) * (M - K) * never * pa
along = over(Sum, fd * gd, (j, D)) + over(Sum, mc[g] * fc * gc, (g, C))
whole = over(Sum, ct, (j, D)) + over(Sum, mc[g] * cc, (g, C))

PARAMS = (
    Param(mc, 10.0, Interval(0, oo), "number of common tokens in a group"),
    Param(p, rising, Interval(0, 1), "probability of a distinct token in its class"),
    Param(pc, the_rest, Interval(0, 1), "probability of each common token of a group, in every class"),
    Param(K, 2.0, Interval(1, oo), "number of classes, that is of next tokens that occur"),
    Param(M, 34.0, Interval(1, oo), "number of tokens of the vocabulary, at least K"),
    Param(k_m, 1.0, Interval(1, oo), "number of classes that share a query: 1 or K"),
    Param(eta_Y, 1.0, Interval(0, oo), "learning rate of the decoder"),
    Param(eta_Z, 1.0, Interval(0, oo), "learning rate of the attention"),
)
CONSTRAINTS = (
    Constraint("p and mc pc sum to 1", over(Sum, p[j], (j, D)) + over(Sum, mc[g] * pc[g], (g, C)) - 1, "==0", tol=1e-6),
    Constraint("M is at least K", M - K, ">=0"),
    Constraint("K is at least k_m", K - k_m, ">=0"),
)
SCANNED = Event(
    "scanning ends", time * eta_Y - K * log(M), direction=1, doc="t = K ln(M) / eta_Y: up to here the paper lets the attention scan"
)

SYSTEM = System(
    name="scan_snap.symmetric",
    source=Source("tian2023scan", "Lemmas 1 and 2", "reduced by the symmetry of the data; exact"),
    axes={j: D, g: C},
    equations={
        a[j]: eta_Y / K * fd * odds * pa,
        b[j]: -eta_Y / K * fd * other * pa,
        d[j]: -eta_Y / K * fd * never * pa,
        z[j]: eta_Z / K * fd * (gd - along * fd),
        u[g]: eta_Y / K * fc * (M - K) * never * pa,
        v[g]: -eta_Y * fc * never * pa,
        zc[g]: eta_Z * k_m / K * fc * (gc - along * fc),
    },
    params=PARAMS,
    initial={a[j]: 0, b[j]: 0, d[j]: 0, z[j]: 0, u[g]: 0, v[g]: 0, zc[g]: 0},
    sizes={D: 10, C: 1},
    span=(0.0, 100.0),
    time="SGD steps",
    observables={"loss": loss, "c": ct / whole, "cc": cc / whole},
    display={
        **{"ct": ct, "rho": rho, "fd": fd, "fc": fc, "other": other, "never": never, "odds": odds, "pa": pa},
        **{"gd": gd, "gc": gc, "along": along, "loss": loss},
    },
    constraints=CONSTRAINTS,
    invariants=(
        Invariant("row sums of Y, distinct tokens", a[j] + (K - 1) * b[j] + (M - K) * d[j], "constant"),
        Invariant("row sums of Y, common tokens", K * u[g] + (M - K) * v[g], "constant"),
        Invariant("row sums of Z", k_m * over(Sum, z[j], (j, D)) + over(Sum, mc[g] * zc[g], (g, C)), "constant"),
        Invariant("loss falls", loss, "nonincreasing"),
    ),
    events=(
        Event("half way", loss - log(2), direction=-1, doc="the next token is predicted with probability 1/2"),
        SCANNED,
    ),
    closed_forms=(ClosedForm("separate classes", "from 0, where pc = 0 and M > 1", separate_classes),),
)

"""GaLore without moments: a weight moves along the leading directions of its gradient, which are looked up again from time to time.

G is the gradient of galore.parametric_gradient with its sign turned. dW/dt = P (P^T P)^-1 P^T G, the part of G in the span of the r
columns of P. Each time a period ends P becomes an orthonormal basis of the range of G G^T G Omega, for r random columns Omega: nearly the
leading left singular vectors of G. What moves between two refreshes has rank r; all of W is trained none the less. With a period longer
than the run P stays, and the rest of the loss is never seen.

Assumed: a batch that does not change, gradient flow; the paper takes singular vectors, here a range of random columns stands for them
(Halko, Martinsson and Tropp 2011, with one power iteration), made orthonormal by scaled Newton steps towards its polar factor
(Higham 1986). A gradient whose r-th singular value is below 1e-4 of the first has no r directions to rounding, which a matrix of fourth
powers finds, and a run ends there.
"""

from typing import Any

import numpy as np
from sympy import Interval, Rational, Sum, Symbol, oo, pi, sin

from odesim.models.galore.parametric_gradient import SYSTEM as PLAIN
from odesim.models.galore.parametric_gradient import G as PLAIN_G
from odesim.models.galore.parametric_gradient import N, W, gradient, i, j, loss, m, n
from odesim.symbolic import (
    ClosedForm,
    Event,
    IndexedBase,
    Invariant,
    Param,
    Source,
    System,
    index,
    inverse,
    layers,
    named,
    over,
    sizes,
    time,
)

NEWTON = 7  # steps to rounding from singular values as far apart as 1 and 1e-6
a, b, k = index("a b k")
(r,) = sizes("r")
P, P0, Omega = IndexedBase("P", shape=(m, r)), IndexedBase("P0", shape=(m, r)), IndexedBase("Omega", shape=(n, r))
period = Symbol("period", positive=True)


def sketch(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """Omega (n, r): standard normal, the same in every run."""
    return np.random.default_rng(0).standard_normal((sizes["n"], sizes["r"]))


def leading(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """P0 (m, r): the leading left singular vectors of the gradient at W = 0. Raises ValueError unless r is at most m and n."""
    size, r = (sizes["m"], sizes["n"]), sizes["r"]
    if r > min(size):
        raise ValueError(f"r = {r}: the rank of a gradient of m = {size[0]} rows and n = {size[1]} columns is at most {min(size)}")
    U, _, _ = np.linalg.svd(gradient(np.zeros(size), params["A"], params["B"], params["C"]))
    return np.asarray(U[:, :r])


def polar(Y: np.ndarray) -> np.ndarray:
    """The orthonormal columns (m, r) nearest to those of Y (m, r)."""
    U, _, V = np.linalg.svd(Y, full_matrices=False)
    return np.asarray(U @ V)


def refreshed(W: np.ndarray, params: dict[str, Any]) -> np.ndarray:
    """P (m, r) after a refresh at W."""
    G = gradient(W, params["A"], params["B"], params["C"])
    return polar(G @ (G.T @ polar(G @ params["Omega"])))


def periods(t: float, y0: dict[str, Any], params: dict[str, Any]) -> dict[str, Any]:
    """W (m, n) and P (m, r) at time t: a matrix exponential for each period, a refresh at its end."""
    from scipy.linalg import expm

    W, P, A, B, C, T = y0["W"], y0["P"], params["A"], params["B"], params["C"], float(params["period"])
    S, start = np.einsum("sik,sjl->ijkl", B, C).reshape(W.size, W.size) / len(B), 0.0
    while start < t:
        span = min(T, t - start)
        along = np.kron(P @ np.linalg.solve(P.T @ P, P.T), np.eye(W.shape[1]))
        moving = np.zeros((W.size + 1, W.size + 1))
        moving[:-1, :-1], moving[:-1, -1] = -along @ S, along @ A.mean(axis=0).ravel()
        W = (expm(span * moving) @ np.r_[W.ravel(), 1.0])[:-1].reshape(W.shape)
        start += span
        if np.isclose(span, T, rtol=1e-12) and start <= t:
            P = refreshed(W, params)
    return {"W": W, "P": P}


G = named("G", PLAIN_G, (i, m), (j, n))
metric = inverse(over(Sum, P[i, a] * P[i, b], (i, m)), (a, r), (b, r), name="metric")
shadow = over(Sum, metric[a, b] * over(Sum, P[k, b] * G[k, j], (k, m)), (b, r))


def orthonormal(Y: Any, name: str, i: Any = i, m: Any = m) -> Any:
    """The polar factor of Y[i, a]: X <- (mu X + X (X^T X)^-1 / mu) / 2, mu^4 = trace (X^T X)^-1 / trace X^T X."""

    def closer(level: int, X: Any) -> Any:
        square = over(Sum, X[i, a] * X[i, b], (i, m))
        turned = inverse(square, (a, r), (b, r), name=f"{name}{level}_inverse")
        mu = named(f"{name}{level}_mu", (over(Sum, turned[a, a], (a, r)) / over(Sum, X[i, a] ** 2, (i, m), (a, r))) ** Rational(1, 4))
        return (mu * X[i, a] + over(Sum, X[i, b] * turned[b, a], (b, r)) / mu) / 2

    return layers(NEWTON, closer, named(f"{name}0", Y, (i, m), (a, r))[i, a], name=name)[NEWTON]


first = orthonormal(over(Sum, G[i, j] * Omega[j, a], (j, n)), "X")
found = orthonormal(over(Sum, G[i, j] * over(Sum, G[k, j] * first[k, a], (k, m)), (j, n)), "Y")

SYSTEM = System(
    name="galore.projected",
    source=Source("zhao2024galore", "Algorithm 1 and Theorem 3.8", "one-sided, without moments; a random sketch for singular vectors"),
    axes={**PLAIN.axes, a: r, b: r},
    equations={W[i, j]: over(Sum, P[i, a] * shadow, (a, r)), P[i, a]: 0},
    params=(
        *PLAIN.params,
        Param(P0, leading, Interval(-oo, oo), "directions at the start, as columns"),
        Param(Omega, sketch, Interval(-oo, oo), "random columns that a refresh multiplies the gradient with"),
        Param(period, 2.0, Interval.open(0, oo), "time between two refreshes of the directions"),
    ),
    initial={W[i, j]: 0, P[i, a]: P0[i, a]},
    sizes={m: 4, n: 5, N: 6, r: 2},
    span=(0.0, 20.0),
    time="steps times learning rate",
    observables={"loss": loss, "shadow": over(Sum, P[k, a] * G[k, j], (k, m))},
    constraints=PLAIN.constraints,
    events=(
        Event(
            "refresh",
            sin(pi * time / period),
            resets={P[i, a]: found[i, a]},
            doc="a period ends, and the directions are looked up in the gradient",
        ),
    ),
    invariants=(Invariant("loss falls", loss, "nonincreasing"),),
    closed_forms=(ClosedForm("matrix exponentials", "for every start", periods),),
)

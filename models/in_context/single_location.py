"""One token in L tells the label: attention learns where to look (kappa) and what to read (nu).

Tokens N(0, I) in d dimensions but one, N(sqrt(d/2) k*, gamma2 I), whose product with v* is the label, with noise of variance eps2. The
predictor is sum_l erf(lam X_l . k) X_l . v, k and v of length 1. With kappa = k . k*, nu = v . v* and k . v = k . v* = v . k* = 0, which
projected gradient flow keeps, the risk is closed in (kappa, nu); L enters it by a constant alone. The limits are (1, 1) and (-1, -1).

With g = lam gamma, E erf(t + g G)^2 over a normal G is 1 - 8 T(sqrt(2) t / sqrt(1 + 2 g^2), 1 / sqrt(1 + 4 g^2)) by Owen's T function, an
integral from 0 to at most 1. From 20 nodes of Gauss and Legendre on it and its slope, which is 4 / sqrt(pi) exp(-A^2) erf(b A) with the A
and b below, are right to 1e-15 for every t and g.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from sympy import Interval, Rational, Sum, asin, erf, exp, oo, pi, sqrt, symbols

from odesim.symbolic import Constraint, Event, IndexedBase, Invariant, Param, Source, System, gradient_flow, index, over, sizes

(n,) = index("n")
(Q,) = sizes("Q")
kappa, nu = symbols("kappa nu")
d, L, lam, gamma2 = symbols("d L lam gamma2", positive=True)
eps2 = symbols("eps2", nonnegative=True)
node, weight = IndexedBase("node", shape=(Q,)), IndexedBase("weight", shape=(Q,))

b = 1 / sqrt(1 + 4 * lam**2 * gamma2)
A = lam * sqrt(d / (2 + 4 * lam**2 * gamma2)) * kappa
along = 1 + (b * node[n]) ** 2
square = 1 - 4 * b / pi * over(Sum, weight[n] * exp(-(A**2) * along) / along, (n, Q))
others = (L - 1) * 2 / pi * asin(2 * lam**2 / (1 + 2 * lam**2))
risk = gamma2 * (1 - 2 * nu * erf(A) + square) + others + eps2


def nodes(sizes: Mapping[str, int]) -> Any:
    """Nodes (Q,) for the mean over [0, 1]."""
    return (1 + np.polynomial.legendre.leggauss(sizes["Q"])[0]) / 2


def weights(sizes: Mapping[str, int]) -> Any:
    """Their weights (Q,), of sum 1."""
    return np.polynomial.legendre.leggauss(sizes["Q"])[1] / 2


SYSTEM = System(
    name="in_context.single_location",
    source=Source("marion2025attention", "Abstract", "the flow of the two overlaps on the invariant manifold, from its exact risk"),
    axes={n: Q},
    # on the sphere the overlap with k* moves by the projection of its gradient: the rate is |k* - (k . k*) k|^2
    equations=gradient_flow(risk, {kappa: 1 - kappa**2, nu: 1 - nu**2}),
    params=(
        Param(d, 400.0, Interval(2, oo), "dimension of a token"),
        Param(L, 10.0, Interval(1, oo), "tokens of an input"),
        Param(lam, 0.1, Interval.open(0, oo), "inverse temperature of attention"),
        Param(gamma2, 0.5, Interval.open(0, oo), "variance of the token that tells the label"),
        Param(eps2, 0.0, Interval(0, oo), "variance of the noise of labels"),
        Param(node, nodes, Interval(0, 1), "nodes of the integral in the risk"),
        Param(weight, weights, Interval(0, 1), "weights of the nodes"),
    ),
    constraints=(
        Constraint("k is a unit vector", 1 - kappa**2, ">=0", 1e-6),
        Constraint("v is a unit vector", 1 - nu**2, ">=0", 1e-6),
        Constraint("20 nodes give the risk to rounding", Q - 20, ">=0"),
    ),
    initial={kappa: Rational(1, 20), nu: Rational(1, 20)},
    sizes={Q: 24},
    span=(0.0, 80.0),
    time="steps times learning rate",
    observables={"risk": risk},
    invariants=(Invariant("risk falls", risk, "nonincreasing", when=(kappa**2 <= 1) & (nu**2 <= 1)),),
    events=(
        Event("located", kappa**2 - Rational(1, 4), 1, doc="attention is half way towards k*"),
        Event("read", nu**2 - Rational(1, 4), 1, doc="the output is half way towards v*"),
    ),
)

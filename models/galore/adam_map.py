"""GaLore as it is run, Algorithm 1: Adam on the gradient in r directions, which are looked up again every T steps while moments are kept.

At the start of a period P becomes an orthonormal basis of r directions of the gradient G (its sign turned, as in galore.projected). Then
h = P^T G, M and V are Adam's moments of h, and W <- W + eta alpha P u with u = M / (1 - b1^t) / (sqrt(V / (1 - b2^t)) + eps). Moments
are numbers of the columns of P and stay when P changes: so it matters which basis of the directions is taken, down to the signs of its
columns. Moments that are turned with P, by R = P_new^T P_old, do better.

The paper takes singular vectors, here a range of random columns stands for them, as in galore.projected: the basis moves with G and has
no signs to choose. The power iteration is made orthonormal half by half, as singular values of 1 and 1e-4 would be 1 and 1e-16 in the
product of all: the directions are known until the r-th singular value of the gradient is some 1e-6 of the first, as at the minimum, and a
run ends there. period = 0: the directions stay.

Assumed: a batch that does not change.
"""

from typing import Any

from sympy import And, Eq, Interval, Max, Naturals0, Piecewise, Rational, Sum, Symbol, floor, oo, sqrt

from odesim.models.galore.parametric_gradient import SYSTEM as PLAIN
from odesim.models.galore.parametric_gradient import N, W, i, j, loss, m, n
from odesim.models.galore.projected import NEWTON, P0, G, Omega, P, a, b, k, leading, orthonormal, r, sketch
from odesim.models.galore.projected import first as sketched
from odesim.symbolic import IndexedBase, Map, Param, Source, inverse, layers, named, over, time

M, V = IndexedBase("M", shape=(r, n)), IndexedBase("V", shape=(r, n))
period = Symbol("period", real=True)
eta, alpha, b1, b2, eps = (Symbol(name, real=True) for name in ("eta", "alpha", "b1", "b2", "eps"))

# With X the polar factor of G Omega, that of Y = G G^T X is Q times that of the r x r matrix Q^T Y; Q: an orthonormal basis of the range of
# Y. Of Y itself (Y^T Y)^-1 would be taken, which has no digit left where Y has half of them.
half = orthonormal(over(Sum, G[i, j] * sketched[i, a], (i, m)), "H", j, n)
Q = orthonormal(over(Sum, G[i, j] * half[j, a], (j, n)), "Q")
seen = over(Sum, over(Sum, Q[i, b] * G[i, j], (i, m)) * over(Sum, G[k, j] * sketched[k, a], (k, m)), (j, n))


def closer(level: int, S: Any) -> Any:
    """S[b, a] <- (mu S + S^-T / mu) / 2, mu^4 = trace (S^T S)^-1 / trace S^T S."""
    turned = inverse(S[b, a], (b, r), (a, r), name=f"S{level}_inverse")
    mu = named(f"S{level}_mu", (over(Sum, turned[a, b] ** 2, (a, r), (b, r)) / over(Sum, S[b, a] ** 2, (b, r), (a, r))) ** Rational(1, 4))
    return (mu * S[b, a] + turned[a, b] / mu) / 2


square = layers(NEWTON + 2, closer, named("S0", seen, (b, r), (a, r))[b, a], name="S")[NEWTON + 2]
found = over(Sum, Q[i, b] * square[b, a], (b, r))

begins = And(period > 0, Eq(time, period * floor(time / Max(period, 1))))
along = named("along", Piecewise((found, begins), (P[i, a], True)), (i, m), (a, r))
h = named("h", over(Sum, along[i, a] * G[i, j], (i, m)), (a, r), (j, n))
first, second = b1 * M[a, j] + (1 - b1) * h[a, j], b2 * V[a, j] + (1 - b2) * h[a, j] ** 2
# V is a mean of squares: Max is for states that no run is in
u = named("u", first / (1 - b1 ** (time + 1)) / (sqrt(Max(second, 0) / (1 - b2 ** (time + 1))) + eps), (a, r), (j, n))

SYSTEM = Map(
    name="galore.adam_map",
    source=Source("zhao2024galore", "Algorithm 1", "one-sided; a random sketch for singular vectors"),
    axes={**PLAIN.axes, a: r, b: r},
    updates={
        W[i, j]: W[i, j] + eta * alpha * over(Sum, along[i, a] * u[a, j], (a, r)),
        M[a, j]: first,
        V[a, j]: second,
        P[i, a]: along[i, a],
    },
    params=(
        *PLAIN.params,
        Param(P0, leading, Interval(-oo, oo), "directions at the start, as columns"),
        Param(Omega, sketch, Interval(-oo, oo), "random columns that a refresh multiplies the gradient with"),
        Param(period, 10, Naturals0, "steps between two refreshes of the directions; 0: they stay"),
        Param(eta, 0.05, Interval.open(0, oo), "learning rate"),
        Param(alpha, 1.0, Interval.open(0, oo), "scale of the update"),
        Param(b1, 0.9, Interval.Ropen(0, 1), "memory of the mean of h"),
        Param(b2, 0.999, Interval.Ropen(0, 1), "memory of the mean of h^2"),
        Param(eps, 1e-8, Interval.open(0, oo), "what is added to the root of the second moment"),
    ),
    initial={W[i, j]: 0, M[a, j]: 0, V[a, j]: 0, P[i, a]: P0[i, a]},
    sizes={m: 3, n: 4, N: 2, r: 2},
    steps=200,
    time="steps of Adam",
    observables={"loss": loss},
    display={},
    constraints=PLAIN.constraints,
)

"""The paper's reduced attention flow for any table of classes: the decoder in closed form drives the attention logits.

Z (Q, S) holds the attention logits of the Q queries, u = M h the margin of the decoder (scan_snap.decoder), B (K,) the strength of each
class. Class n is one next token, seen with query psi[n] after context tokens drawn from P[n]; f[n] is what attention makes of it, at
length one. The K x K matrix G of their overlaps is inverted: `mixing` is G^-1 Q. Z follows gamma(t) times a field of its own,
so that eta_Y, eta_Z and t matter by Gamma = eta_Z int gamma dt alone.

A token that one class alone has gains where its xi > 0. exp(-2 Z)/P^2 falls by the same number for all distinct tokens of a class, so
that c[l]^2/c[l']^2 - 1 grows as chi_l = exp(2 Z_l) (Theorem 3). A common token loses where it is the only one or the classes are alike.

Assumed: decorrelated decoder gradient (Lemma 3), eta_Z much below eta_Y, K classes of equal probability with linearly independent f.
It is the limit of scan_snap.full_decorrelated for small eta_Z, not of the plain gradients of scan_snap.full, whose attention is slower
by a factor that grows with M. Time in SGD steps: the paper's eq. 10 lacks the factor 1/K that goes with it. The term of order 1/M in
beta is that of the inverse, -q0 (1 - sum); eq. 88 prints +q0.
"""

from typing import Any

from sympy import Interval, KroneckerDelta, Naturals0, Sum, Symbol, exp, log, oo, sign, sqrt

from odesim.models.scan_snap.full import every_token, generated_table, own_query
from odesim.models.scan_snap.reduced_symmetric import margin as margin_of
from odesim.symbolic import (
    ClosedForm,
    Constraint,
    Event,
    IndexedBase,
    Invariant,
    Param,
    Source,
    System,
    at,
    index,
    inverse,
    over,
    shifted_exp,
    sizes,
    softmax,
    time,
)

n, m, l = index("n m l")
(k,) = index("k")  # another class, summed over
K, Q, S = sizes("K Q S")
Z, B, u = IndexedBase("Z", shape=(Q, S)), IndexedBase("B", shape=(K,)), Symbol("u", real=True)
P, psi = IndexedBase("P", shape=(K, S)), IndexedBase("psi", shape=(K,))
M, eta_Y, eta_Z = Symbol("M", positive=True), Symbol("eta_Y", nonnegative=True), Symbol("eta_Z", nonnegative=True)


def margin(t: float, y0: dict[str, Any], params: dict[str, Any]) -> dict[str, Any]:
    """u at time t, K the rows of P."""
    return margin_of(t, y0, {**params, "K": len(params["P"])})


z = Z[psi[n], l]
seen = shifted_exp(z, (l, S), weight=P[n, l])
f = seen / sqrt(over(Sum, seen**2, (l, S)))
c = softmax(z, (l, S), weight=P[n, l])

left = exp(-u) / (1 + (M - 1) * exp(-u))
gamma = (M - 1) ** 2 / M * u * left
q0, q1 = -M / (M - 1) ** 2, M / (M - 1)  # products of two rows of onehot - 1/M, scaled by M/(M - 1): different ones, a row with itself
G_inverse = inverse(over(Sum, at(f, {n: k}) * f, (l, S)), (k, K), (n, K), name="G_inverse")
mixing = (q1 - q0) * G_inverse[k, n] + q0 * over(Sum, G_inverse[k, n], (n, K))
xi = gamma * (at(mixing, {k: n}) - q1)
g = over(Sum, at(f, {n: k}) * mixing, (k, K))  # f . g = q1

own = sign(P[n, l]) * (1 - sign(over(Sum, (1 - KroneckerDelta(k, n)) * P[k, l], (k, K))))
weight = over(Sum, own * P[n, l] ** 2, (l, S))
fallen = over(Sum, own * exp(-2 * z), (l, S))
ahead = own * (weight * exp(-2 * z) - P[n, l] ** 2 * fallen)  # of the other distinct tokens of the class
loss = log(1 + (M - 1) * exp(-u))

SYSTEM = System(
    name="scan_snap.reduced",
    source=Source("tian2023scan", "Theorem 1 (eq. 10) and Lemma 4", "in SGD steps; classes of equal probability"),
    axes={n: K, m: Q, l: S, k: K},
    equations={
        Z[m, l]: eta_Z / K * gamma * over(Sum, KroneckerDelta(m, psi[n]) * f * (g - q1 * f), (n, K)),
        B[n]: eta_Z / K * xi,
        u: M * eta_Y / K * left,
    },
    params=(
        Param(P, generated_table, Interval(0, 1), "P[n, l]: probability of context token l in class n"),
        Param(psi, own_query, Naturals0, "psi[n]: the query of class n, a row of Z", indexes=Q),
        Param(M, every_token, Interval.open(1, oo), "number of tokens of the vocabulary, at least K; need not be whole"),
        Param(eta_Y, 1.0, Interval(0, oo), "learning rate of the decoder"),
        Param(eta_Z, 1.0, Interval(0, oo), "learning rate of the attention"),
    ),
    initial={Z[m, l]: 0, B[n]: 0, u: 0},
    sizes={K: 2, S: 30},
    span=(0.0, 100.0),
    time="SGD steps",
    observables={"c": c, "chi": exp(2 * z), "xi": xi, "gamma": gamma, "loss": loss},
    display={
        **{"f": f, "c": c, "left": left, "gamma": gamma, "mixing": mixing, "xi": xi, "g": g},
        **{"own": own, "weight": weight, "fallen": fallen},
    },
    constraints=(
        Constraint("each row of P sums to 1", over(Sum, P[n, l], (l, S)) - 1, "==0", tol=1e-6),
        Constraint("M is at least K", M - K, ">=0"),
        Constraint("S is at least K", S - K, ">=0"),
    ),
    invariants=(
        Invariant("row sums of Z", over(Sum, Z[m, l], (l, S)), "constant"),
        Invariant("Theorem 3, one number for the distinct tokens of a class", ahead, "constant"),
        Invariant("the decoder learns", u, "nondecreasing"),
    ),
    events=(
        Event("half way", u - log(M - 1), direction=1, doc="the next token is predicted with probability 1/2"),
        Event("gamma peaks", u - 1 - (M - 1) * exp(-u), direction=1, doc="gamma, the push of the decoder, is largest"),
        Event(
            "scanning ends", time * eta_Y - K * log(M), direction=1, doc="t = K ln(M) / eta_Y: up to here the paper lets the attention scan"
        ),
    ),
    closed_forms=(ClosedForm("margin of the decoder", "for every start", margin),),
)

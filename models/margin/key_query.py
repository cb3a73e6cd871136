"""Attention with keys and queries trained apart, W = K Q^T: towards small nuclear norm, and from a small start long near rank one.

As margin.weights, but the gradient is that of K and Q. K^T K - Q^T Q stays. Where the product of the two has grown, the weights of least
nuclear norm that separate the best tokens attract its direction, so far as the start and the data let it.

Assumed: as margin.prompt; K and Q are square at the start, multiples of the identity.
"""

from sympy import Interval, KroneckerDelta, Sum, exp, oo, symbols

from odesim.models.margin._softmax import TIME, attention, i, l, mean_loss
from odesim.models.margin.weights import AXES, PARAMS, SIZES, X, a, b, c, d, e, z
from odesim.symbolic import Attention, IndexedBase, Invariant, Lines, Matrix, Param, Source, System, gradient_flow, over, time

K, Q, size = IndexedBase("K", shape=(d, d)), IndexedBase("Q", shape=(d, d)), symbols("size", real=True)
product = over(Sum, K[a, c] * Q[b, c], (c, d))
logit = over(Sum, over(Sum, X[i, l, a] * K[a, c], (a, d)) * over(Sum, z[i, b] * Q[b, c], (b, d)), (c, d))
loss = mean_loss(logit)

SYSTEM = System(
    name="margin.key_query",
    source=Source("sheen2024implicit", "abstract", "with the logistic loss, in the time ln(1 + t)"),
    axes=AXES,
    equations=gradient_flow(loss, {K[a, c]: exp(time), Q[b, c]: exp(time)}),
    params=(*PARAMS, Param(size, 1.0, Interval(-oo, oo), "K and Q at the start, over the identity")),
    initial={K[a, c]: size * KroneckerDelta(a, c), Q[b, c]: size * KroneckerDelta(b, c)},
    sizes=SIZES,
    span=(0.0, 14.0),
    time=TIME,
    observables={"loss": loss, "attention": attention(logit), "product": product},
    views=(Lines("loss"), Attention("attention"), Matrix("product")),
    invariants=(
        Invariant("loss falls", loss, "nonincreasing"),
        Invariant("balance", over(Sum, K[a, c] * K[a, e] - Q[a, c] * Q[a, e], (a, d)), "constant"),
    ),
)

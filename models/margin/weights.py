"""Attention with one matrix W between query and tokens: in direction to the separator of least Frobenius norm.

Sequence i has tokens x_it and a query z_i, attention is the softmax of x_it^T W z_i. The time is ln(1 + t), as in margin.prompt. With keys
and queries trained apart it is margin.key_query.

Assumed: as margin.prompt.
"""

from sympy import Sum, exp

from odesim.models.margin._sequences import AXES, PARAMS, SIZES, X, a, b, d, z
from odesim.models.margin._softmax import TIME, attention, i, l, mean_loss
from odesim.symbolic import Attention, IndexedBase, Invariant, Lines, Matrix, Source, System, gradient_flow, over, time

W = IndexedBase("W", shape=(d, d))
logit = over(Sum, X[i, l, a] * over(Sum, W[a, b] * z[i, b], (b, d)), (a, d))
loss = mean_loss(logit)

SYSTEM = System(
    name="margin.weights",
    source=Source("tarzanagh2023transformers", "W-parameterisation", "in the time ln(1 + t)"),
    axes=AXES,
    equations=gradient_flow(loss, {W[a, b]: exp(time)}),
    params=PARAMS,
    initial={W[a, b]: 0.0},
    sizes=SIZES,
    span=(0.0, 14.0),
    time=TIME,
    observables={"loss": loss, "attention": attention(logit)},
    views=(Lines("loss"), Attention("attention"), Matrix("W")),
    invariants=(Invariant("loss falls", loss, "nonincreasing"),),
)

"""SimSiam whose target has a gradient too: the gradient flow of |W_p W x1 - W x2|^2 / 2, in which the representation dies out.

W' = -H W with H = sigma2 (W_p^T W_p + I) + (W_p - I)^T (W_p - I) + eta I, which is positive: noise of views or weight decay is enough for
W to go to 0. Assumed: as self_supervised.simsiam. The decay of W_p is that of W, whatever its rate alpha.
"""

from sympy import KroneckerDelta, Sum

from odesim.models.self_supervised._matrices import (
    AXES,
    PARAMS,
    STARTS,
    W0,
    F,
    W,
    W_p,
    W_p0,
    alpha,
    eta,
    i,
    j,
    k,
    n1,
    n2,
    predicted,
    sigma2,
    squared,
)
from odesim.symbolic import Invariant, Log, Matrix, Source, System, gradient_flow, over

norm = over(Sum, W[i, j] ** 2, (i, n2), (j, n1))
gap = over(Sum, (predicted(i, j) - W[i, j]) ** 2 + sigma2 * (predicted(i, j) ** 2 + W[i, j] ** 2), (i, n2), (j, n1))
loss = (gap + eta * (norm + squared(W_p[i, k]) / alpha)) / 2

SYSTEM = System(
    name="self_supervised.no_stop",
    source=Source("tian2021understanding", "Theorem 2"),
    axes=AXES,
    equations=gradient_flow(loss, {W[k, j]: 1, W_p[i, k]: alpha}),
    params=(*PARAMS, *STARTS),
    initial={W[k, j]: W0[k, j], W_p[i, k]: W_p0[i, k] + KroneckerDelta(i, k)},
    sizes={n2: 3, n1: 5},
    span=(0.0, 60.0),
    time="steps times learning rate",
    observables={"F": F, "loss": loss, "size": norm},
    views=(Log("loss"), Log("size"), Matrix("F"), Matrix("W_p")),
    invariants=(Invariant("loss falls", loss, "nonincreasing"), Invariant("W dies out", norm, "nonincreasing")),
)

"""SimSiam with linear networks, as matrices: weights W, a predictor W_p, and no gradient through the target.

Views are x + noise of variance sigma2, inputs have unit covariance. W_p and W learn from E|W_p W x1 - stop(W x2)|^2 / 2, with weight decay.
As the target has no gradient, this is no gradient flow. W_p becomes symmetric, F = W W^T and W_p come to have the same eigenvectors, and
from then on each is self_supervised.modes.
"""

from odesim.models.self_supervised._matrices import AXES, DECAYS, OBSERVABLES, PARAMS, STARTS, W0, W, W_p, W_p0, i, j, k, n1, n2, slopes
from odesim.symbolic import Log, Matrix, Source, System

SYSTEM = System(
    name="self_supervised.simsiam",
    source=Source("tian2021understanding", "eqs. 2 and 3", "with unit covariance of inputs, and W_a = W"),
    axes=AXES,
    equations=slopes(W),
    params=(*PARAMS, *STARTS),
    initial={W[k, j]: W0[k, j], W_p[i, k]: W_p0[i, k]},
    sizes={n2: 3, n1: 5},
    span=(0.0, 60.0),
    time="steps times learning rate",
    observables=OBSERVABLES,
    views=(Log("asymmetry"), Log("commutator"), Matrix("F"), Matrix("W_p")),
    invariants=(DECAYS,),
)

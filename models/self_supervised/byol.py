"""BYOL with linear networks, as matrices: self_supervised.simsiam with a target network W_a that follows W by a moving average.

The balance of W and W_p decays as without it, whatever W_a does. From common eigenvectors and W_a = tau W each mode is
self_supervised.modes_ema.
"""

from sympy import Interval, oo, symbols

from odesim.models.self_supervised._matrices import (
    AXES,
    DECAYS,
    OBSERVABLES,
    PARAMS,
    STARTS,
    W0,
    W,
    W_a,
    W_p,
    W_p0,
    i,
    j,
    k,
    n1,
    n2,
    slopes,
)
from odesim.symbolic import Log, Matrix, Param, Source, System

beta = symbols("beta", nonnegative=True)

SYSTEM = System(
    name="self_supervised.byol",
    source=Source("tian2021understanding", "eqs. 2 to 4", "with unit covariance of inputs"),
    axes=AXES,
    equations={**slopes(W_a), W_a[k, j]: beta * (W[k, j] - W_a[k, j])},
    params=(*PARAMS, Param(beta, 0.4, Interval(0, oo), "rate of the moving average, over that of the network"), *STARTS),
    initial={W[k, j]: W0[k, j], W_p[i, k]: W_p0[i, k], W_a[k, j]: W0[k, j]},
    sizes={n2: 3, n1: 5},
    span=(0.0, 60.0),
    time="steps times learning rate",
    observables=OBSERVABLES,
    views=(Log("asymmetry"), Log("commutator"), Matrix("F"), Matrix("W_p")),
    invariants=(DECAYS,),
)

"""BYOL with linear networks, as matrices: self_supervised.simsiam with a target network Wa that follows W by a moving average.

The balance of W and Wp decays as without it, whatever Wa does. From common eigenvectors and Wa = tau W each mode is
self_supervised.modes_ema.
"""

from sympy import Interval, oo, symbols

from odesim.models.self_supervised._matrices import AXES, DECAYS, OBSERVABLES, PARAMS, STARTS, W0, W, Wa, Wp, Wp0, i, j, k, n1, n2, slopes
from odesim.symbolic import Log, Matrix, Param, Source, System

beta = symbols("beta", nonnegative=True)

SYSTEM = System(
    name="self_supervised.byol",
    source=Source("tian2021understanding", "eqs. 2 to 4", "with unit covariance of inputs"),
    axes=AXES,
    equations={**slopes(Wa), Wa[k, j]: beta * (W[k, j] - Wa[k, j])},
    params=(*PARAMS, Param(beta, 0.4, Interval(0, oo), "rate of the moving average, over that of the network"), *STARTS),
    initial={W[k, j]: W0[k, j], Wp[i, k]: Wp0[i, k], Wa[k, j]: W0[k, j]},
    sizes={n2: 3, n1: 5},
    span=(0.0, 60.0),
    time="steps times learning rate",
    observables=OBSERVABLES,
    views=(Log("asymmetry"), Log("commutator"), Matrix("F"), Matrix("Wp")),
    invariants=(DECAYS,),
)

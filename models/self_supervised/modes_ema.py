"""BYOL in its eigenmodes: as self_supervised.modes, with a target network that follows by a moving average, W_a = tau W.

tau is below 1 while a mode grows, and so p has a nearer goal, tau/(1 + sigma2), until the target has come. The rest states are those of
self_supervised.modes, with tau = 1. From W_a = tau W it follows tau' = beta (1 - tau) - tau s'/(2s), and s'/s is a polynomial: nothing is
divided by s.

Assumed: as there; each mode has its tau, which is exact where the matrices have common eigenvectors.
"""

from sympy import Interval, exp, oo, symbols

from odesim.symbolic import Constraint, IndexedBase, Invariant, Log, Param, Source, System, index, sizes, time

(j,) = index("j")
(n,) = sizes("n")
p, s, tau = (IndexedBase(name, shape=(n,)) for name in ("p", "s", "tau"))
alpha = symbols("alpha", positive=True)
eta, sigma2, beta = symbols("eta sigma2 beta", nonnegative=True)
lack = tau[j] - (1 + sigma2) * p[j]
growth = p[j] * lack - eta  # of sqrt(s)

SYSTEM = System(
    name="self_supervised.modes_ema",
    source=Source("tian2021understanding", "eqs. 11 to 13"),
    axes={j: n},
    equations={p[j]: alpha * s[j] * lack - eta * p[j], s[j]: 2 * s[j] * growth, tau[j]: beta * (1 - tau[j]) - tau[j] * growth},
    params=(
        Param(alpha, 1.0, Interval.open(0, oo), "learning rate of the predictor, over that of the network"),
        Param(eta, 0.04, Interval(0, oo), "weight decay"),
        Param(sigma2, 0.1, Interval(0, oo), "variance of the noise of a view"),
        Param(beta, 0.4, Interval(0, oo), "rate of the moving average, over that of the network"),
    ),
    constraints=(Constraint("s[j] is at least 0", s[j], ">=0", 1e-9),),
    initial={p[j]: 0.4 / 2**j, s[j]: 0.1, tau[j]: 1.0},
    sizes={n: 4},
    span=(0.0, 60.0),
    time="steps times learning rate",
    observables={"balance": s[j] - p[j] ** 2 / alpha},
    display={"lack": lack},
    views=(Log("s"),),
    invariants=(Invariant("balance decays", (s[j] - p[j] ** 2 / alpha) * exp(2 * eta * time), "constant"),),
)

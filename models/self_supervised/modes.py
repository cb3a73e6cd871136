"""SimSiam in its eigenmodes: p of the predictor and s of the representation; a mode is learned, or collapses, by where it starts.

A mode is an eigenvector that the symmetric predictor W_p and F = W W^T have in common, with eigenvalues p and s. Weight decay eta makes
them forget their start, s -> p^2/alpha. On that parabola p rests at 0, where the representation has collapsed, and at
p+- = (1 +- sqrt(1 - 4 c eta)) / (2c), c = 1 + sigma2: above p- a mode is learned, up to p+. For eta > 1/(4c) each mode collapses. The rate
alpha of the predictor does not change p+-.

Assumed: linear networks, inputs of unit covariance, views with added noise of variance sigma2, one common set of eigenvectors, no moving
average: self_supervised.modes_ema has one, self_supervised.simsiam the matrices.
"""

from typing import Any

import numpy as np
from sympy import Interval, exp, oo, symbols

from odesim.models.self_supervised._parabola import modes_at
from odesim.symbolic import ClosedForm, Constraint, Event, IndexedBase, Invariant, Log, Param, Source, System, index, sizes, time

(j,) = index("j")
(n,) = sizes("n")
p, s = IndexedBase("p", shape=(n,)), IndexedBase("s", shape=(n,))
alpha = symbols("alpha", positive=True)
eta, sigma2 = symbols("eta sigma2", nonnegative=True)
lack = 1 - (1 + sigma2) * p[j]


def on_the_parabola(t: float, y0: dict[str, Any], params: dict[str, Any]) -> dict[str, np.ndarray]:
    """p and s (n,) by partial fractions."""
    p = modes_at(t, y0["p"], params)
    return {"p": p, "s": p**2 / params["alpha"]}


SYSTEM = System(
    name="self_supervised.modes",
    source=Source("tian2021understanding", "eqs. 11 and 12", "tau = 1"),
    axes={j: n},
    equations={p[j]: alpha * s[j] * lack - eta * p[j], s[j]: 2 * p[j] * s[j] * lack - 2 * eta * s[j]},
    params=(
        Param(alpha, 1.0, Interval.open(0, oo), "learning rate of the predictor, over that of the network"),
        Param(eta, 0.04, Interval(0, oo), "weight decay"),
        Param(sigma2, 0.1, Interval(0, oo), "variance of the noise of a view"),
    ),
    constraints=(Constraint("s[j] is at least 0", s[j], ">=0", 1e-9),),
    initial={p[j]: 0.32 / 2**j, s[j]: (0.32 / 2**j) ** 2 / alpha},
    sizes={n: 4},
    span=(0.0, 100.0),
    time="steps times learning rate",
    observables={"balance": s[j] - p[j] ** 2 / alpha},
    display={"lack": lack},
    views=(Log("s"), Log("p")),  # whose halves are events
    events=(
        Event("half way", p[j] - 1 / (2 + 2 * sigma2), doc="a balanced mode grows fastest, by the part of itself: p = 1/(2 (1 + sigma2))"),
    ),
    invariants=(Invariant("balance decays", (s[j] - p[j] ** 2 / alpha) * exp(2 * eta * time), "constant"),),
    closed_forms=(ClosedForm("on the parabola", "from p > 0 and s = p^2/alpha, 0 < eta, eta not 1/(4 + 4 sigma2)", on_the_parabola),),
)

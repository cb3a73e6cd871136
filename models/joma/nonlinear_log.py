"""joma.nonlinear in the logarithm of its distance from rest, exact at late times.

L = ln 1/(1 - v/mu) measures how far a component v has come on its way to mu: L -> exp(mu^2/2) t - K(mu). After a while v = mu to the
last bit, and only L still tells components apart: mu = 3.2 has L = 1245 at t = 8. dL/dt = exp(v^2/2), v = mu (1 - exp(-L)).

Assumed: what joma.nonlinear assumes, and starts v0 below mu.
"""

from typing import Any

import numpy as np
from sympy import Interval, exp, log, oo

from odesim.models.joma.nonlinear import rising
from odesim.symbolic import ClosedForm, Constraint, IndexedBase, Invariant, Param, Source, System, entropy, index, sizes, softmax

(l,) = index("l")
(M,) = sizes("M")
L, mu, v0 = IndexedBase("L", shape=(M,)), IndexedBase("mu", shape=(M,)), IndexedBase("v0", shape=(M,))


def time_between(L0: np.ndarray, L: np.ndarray, mu: np.ndarray) -> np.ndarray:
    """The time int exp(-v^2/2) dL (M,) from L0 to L: exp(-mu^2/2) of each unit, and what the start takes more."""
    from scipy.special import roots_legendre

    x, weight = roots_legendre(200)
    early = np.minimum(L - L0, 40.0)[:, None]  # after 40 units v is mu to the last bit
    gap = np.exp(-L0[:, None] - early * (x + 1) / 2)
    more = np.expm1((mu[:, None] ** 2) * gap * (2 - gap) / 2)
    return np.exp(-(mu**2) / 2) * (L - L0 + (early / 2 * weight * more).sum(axis=1))


def late(t: float, y: dict[str, Any], y0: dict[str, Any], params: dict[str, Any]) -> np.ndarray:
    """The distance (M,) of L, to first order and relative to 1 + |L|, from its value at time t by separation of variables."""
    L, mu = y["L"], params["mu"]
    rate = np.exp((mu * -np.expm1(-L)) ** 2 / 2)
    return (time_between(y0["L"], L, mu) - t) * rate / (1 + np.abs(L))


v = mu[l] * (1 - exp(-L[l]))
z = v**2 / 2

SYSTEM = System(
    name="joma.nonlinear_log",
    source=Source("tian2023joma", "Theorem 4", "exp attention, no normaliser; L = ln 1/(1 - v/mu)"),
    axes={l: M},
    equations={L[l]: exp(z)},
    params=(
        Param(mu, rising, Interval.open(0, oo), "where a component comes to rest"),
        Param(v0, 0.05, Interval(-oo, oo), "where a component starts, below mu"),
    ),
    initial={L[l]: -log(1 - v0[l] / mu[l])},
    sizes={M: 10},
    span=(0.0, 5.0),
    time="time of gradient flow",
    observables={"v": v, "gap": mu[l] * exp(-L[l]), "entropy": entropy(softmax(z, (l, M)), (l, M))},
    display={"v": v},
    constraints=(Constraint("v0 lies below mu", mu[l] - v0[l] - 1e-9, ">=0"),),
    invariants=(Invariant("progress", L[l], "nondecreasing"),),
    closed_forms=(ClosedForm("separation of variables", "for every start", late, "implicit"),),
)

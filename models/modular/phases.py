"""Modular addition: while logits are small, each frequency of each neuron of a two-layer network grows alone, until one runs away.

Neuron n reads theta_x + theta_y, squares it, and writes xi_z for z = x + y mod p. Its weights are waves: theta_j is the sum over k of
alpha cos(2 pi k j / p + phi), xi_j that of beta cos(2 pi k j / p + psi). Cross-entropy for small logits is -f_(x+y), with the mean over
z taken off; over all pairs its mean is the sum of -alpha^2 beta cos(psi - 2 phi) / 2: no frequency sees another one. D = psi - 2 phi
goes to 0 and alpha, beta blow up at t*; the frequency with the smallest t* is what the neuron learns. Weight decay lam only bends the
clock: with x = e^(-lam t) X and dtau = e^(-lam t) dt it disappears, so that t* becomes -ln(1 - lam t*) / lam, and none where lam t* > 1.

Assumed: p odd, all pairs, logits much smaller than 1. alpha = 0 stays. Frequencies are k = 1, 2, ..., up to (p - 1)/2.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from sympy import Interval, Mod, Rational, Sum, cos, exp, oo, sin, symbols

from odesim.models.modular._times import elapsed
from odesim.symbolic import (
    ClosedForm,
    Constraint,
    Event,
    IndexedBase,
    Invariant,
    Lines,
    Log,
    Param,
    Source,
    System,
    gradient_flow,
    index,
    over,
    sizes,
    time,
)

n, k = index("n k")
N, K = sizes("N K")
alpha, beta, phi, psi = (IndexedBase(name, shape=(N, K)) for name in ("alpha", "beta", "phi", "psi"))
p = symbols("p", positive=True)
lam = symbols("lam", nonnegative=True)


def quadrature(t: float, y: Mapping[str, Any], y0: Mapping[str, Any], params: Mapping[str, Any]) -> np.ndarray:
    """The time (N, K) from beta(0) to beta(t) less t, of the clock without decay, in units of p / beta(0); 0 where cos D(0) <= 0.1."""
    p, lam = float(params["p"]), float(params["lam"])
    clock = -np.expm1(-lam * t) / lam if lam else t
    off = np.zeros_like(y0["alpha"])
    for at in np.ndindex(off.shape):
        a, b, D = y0["alpha"][at], y0["beta"][at], y0["psi"][at] - 2 * y0["phi"][at]
        if np.cos(D) > 0.1:
            took = elapsed(float(a), float(b), float(D), p, float(y["beta"][at]) * np.exp(lam * t))
            off[at] = (took - clock) * b / p
    return off


D = psi[n, k] - 2 * phi[n, k]
fit = over(Sum, alpha[n, k] ** 2 * beta[n, k] * cos(D), (n, N), (k, K))
size = over(Sum, alpha[n, k] ** 2 + beta[n, k] ** 2, (n, N), (k, K))
loss = p * lam * size / 4 - fit / 2

SYSTEM = System(
    name="modular.phases",
    source=Source("he2026mechanism", "Abstract", "quadratic units; the flow was derived again"),
    axes={n: N, k: K},
    # of a wave of length p the square has the mean 1/2: the metric of amplitudes and phases
    equations=gradient_flow(
        loss, {alpha[n, k]: 2 / p, beta[n, k]: 2 / p, phi[n, k]: 2 / (p * alpha[n, k] ** 2), psi[n, k]: 2 / (p * beta[n, k] ** 2)}
    ),
    params=(Param(p, 23.0, Interval.open(0, oo), "the modulus"), Param(lam, 0.0, Interval(0, oo), "weight decay")),
    constraints=(Constraint("p is odd", Mod(p, 2) - 1, "==0"), Constraint("k goes up to (p - 1)/2", (p - 1) / 2 - K, ">=0")),
    initial={alpha[n, k]: 0.02, beta[n, k]: 0.02, phi[n, k]: Rational(1, 10), psi[n, k]: Rational(1, 2) + (k + n) / 5},
    sizes={N: 1, K: 11},
    span=(0.0, 600.0),
    time="steps times learning rate",
    observables={"D": D, "loss": loss, "C1": alpha[n, k] ** 2 - 2 * beta[n, k] ** 2, "C2": alpha[n, k] ** 2 * beta[n, k] * sin(D)},
    display={"D": D},
    views=(Lines("loss"), Lines("D"), Log("alpha"), Log("beta")),
    invariants=(
        Invariant("sizes are balanced", (alpha[n, k] ** 2 - 2 * beta[n, k] ** 2) * exp(2 * lam * time), "constant"),
        Invariant("phases align", alpha[n, k] ** 2 * beta[n, k] * sin(D) * exp(3 * lam * time), "constant"),
        Invariant("loss falls", loss, "nonincreasing"),
    ),
    events=(Event("right angle", cos(D), direction=1, doc="the phase gap is a right angle: beta, which fell until then, grows"),),
    closed_forms=(ClosedForm("quadrature", "from cos D > 0", quadrature, kind="implicit"),),
)

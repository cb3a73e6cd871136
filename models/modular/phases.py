"""Each frequency of a neuron grows alone, until one runs away: modular addition while logits are small.

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
from scipy.integrate import quad
from scipy.special import gamma, hyp2f1
from sympy import Interval, Mod, Rational, Sum, cos, exp, oo, sin, symbols

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

# Times of blow-up of one frequency of one neuron: in closed form for balanced sizes, else as one integral.

WHOLE = float(np.sqrt(np.pi) * gamma(7 / 6) / gamma(2 / 3))
"""2F1(1/2, 1/6; 7/6; 1) = 1.2143253239."""


def balanced(beta: Any, D: Any, p: float) -> Any:
    """t* (...) from alpha = sqrt(2) beta and the phase gaps D (...): beta falls to beta |sin D|^(1/3) first where |D| > pi/2."""
    s = np.abs(np.sin(D))
    direct = hyp2f1(0.5, 1 / 6, 7 / 6, s**2)
    around = 2 * WHOLE * np.maximum(s, 1e-300) ** (-1 / 3) - direct
    return np.where(np.cos(D) >= 0, direct, around) * p / (2 * beta)


def elapsed(alpha: float, beta: float, D: float, p: float, to: float = np.inf) -> float:
    """The time in which beta > 0 grows to `to`, from |D| < pi/2; to infinity: t*.

    p beta' = sqrt((2 beta^2 + C1)^2 - (C2 / beta)^2) with the two constants C1 and C2 of the flow, here in u = beta(0) / beta.
    """
    C1, C2 = alpha**2 - 2 * beta**2, alpha**2 * beta * np.sin(D)

    def slowness(u: float) -> float:
        return float(1 / np.sqrt((2 * beta**2 + C1 * u**2) ** 2 - (C2 * u**3 / beta) ** 2))

    return p * beta * float(quad(slowness, beta / to, 1, epsabs=0, epsrel=1e-12, limit=200)[0])


def blow_up(alpha: float, beta: float, D: float, p: float) -> float:
    """t* from any alpha, beta > 0 and D in (-pi, pi): before the gap is a right angle beta falls, from the lowest point on it grows."""
    if np.cos(D) > 0:
        return elapsed(alpha, beta, D, p)
    C1, C2 = alpha**2 - 2 * beta**2, alpha**2 * beta * abs(np.sin(D))
    # beta at the right angle: (2 beta^2 + C1) beta = |C2|
    low = max(float(r.real) for r in np.roots([2, 0, C1, -C2]) if abs(r.imag) < 1e-9 * abs(r))

    # beta = low + w^2 takes the root at the lowest point away; (2 b^2 + C1)^2 b^2 - C2^2 = g(b) (b - low)
    def slowness(w: float) -> float:
        b = low + w * w
        up = (2 * b * b + C1) * b
        step = 2 * (b * b + b * low + low * low) + C1  # (up - C2) / (b - low)
        return float(2 * b / np.sqrt((up + C2) * step))

    back = quad(slowness, 0, np.sqrt(beta - low), epsabs=0, epsrel=1e-12, limit=200)[0]
    on = quad(slowness, 0, np.inf, epsabs=0, epsrel=1e-12, limit=400)[0]
    return float(back + on) * p


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

"""A linear network of three layers on whitened inputs: gradient flow of |Sigma - W3 W2 W1|^2 / 2.

The product of the layers learns the singular values of Sigma one after another, each with a plateau before it; W2^T W2 - W1 W1^T and
W3^T W3 - W2 W2^T stay what they are. From balanced, aligned layers each singular value obeys classics.deep_linear_modes with L = 3.

Assumed: whitened inputs, gradient flow, square layers.
"""

from typing import Any

import numpy as np
from scipy.integrate import quad
from sympy import Interval, KroneckerDelta, Rational, Sum, oo, symbols

from odesim.symbolic import ClosedForm, IndexedBase, Invariant, Param, Source, System, gradient_flow, index, over, sizes

# The time that a mode of a deep linear network takes, by quadrature.


def off(t: float, start: float, end: float, s: float, L: float) -> float:
    """By how much a of da/dt = L a^(2 - 2/L) (s - a) is off at time t: the integral of da / rate minus the time, times the rate.

    a = 0 stays, and once a is at s to nine digits its distance from it is returned.
    """
    if start <= 0 or abs(end - s) < 1e-9 * s:
        return end - (start if start <= 0 else s)
    # in y = log(a / (s - a)) the integrand is smooth: a constant for two layers
    first, last = (float(np.log(a / (s - a))) for a in (start, end))
    passed = quad(lambda y: (s / (1 + np.exp(-y))) ** (2 / L - 1) / (L * s), first, last, epsabs=1e-11, epsrel=1e-11)[0]
    return float((passed - t) * L * end ** (2 - 2 / L) * (s - end))


i, j, k, l = index("i j k l")
(d,) = sizes("d")
W1, W2, W3 = layers = [IndexedBase(name, shape=(d, d)) for name in ("W1", "W2", "W3")]
Sigma, a0 = IndexedBase("Sigma", shape=(d, d)), symbols("a0", nonnegative=True)


def strengths(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """Sigma (d, d): 3, 3/2, 1, ... on the diagonal."""
    return np.diag(3 / np.arange(1, sizes["d"] + 1))


def modes(t: float, y: dict[str, Any], y0: dict[str, Any], params: dict[str, Any]) -> np.ndarray:
    """By how much each singular value of the product is off its own equation."""
    strength, basis = np.linalg.eigh(params["Sigma"])
    start, end = (np.diag(basis.T @ at["W3"] @ at["W2"] @ at["W1"] @ basis) for at in (y0, y))
    return np.array([off(t, float(x0), float(x), float(s), 3.0) for x0, x, s in zip(start, end, strength, strict=True)])


product = over(Sum, W3[i, k] * over(Sum, W2[k, l] * W1[l, j], (l, d)), (k, d))
loss = over(Sum, (Sigma[i, j] - product) ** 2, (i, d), (j, d)) / 2


def balance(upper: IndexedBase, lower: IndexedBase) -> Any:
    """upper^T upper - lower lower^T."""
    return over(Sum, upper[k, i] * upper[k, j] - lower[i, k] * lower[j, k], (k, d))


SYSTEM = System(
    name="classics.deep_linear",
    source=Source("saxe2014exact", "Section 2", "three square layers"),
    axes=dict.fromkeys((i, j, k, l), d),
    equations=gradient_flow(loss, {W[i, j]: 1 for W in layers}),
    params=(
        Param(Sigma, strengths, Interval(-oo, oo), "correlation of inputs and outputs"),
        Param(a0, 1e-2, Interval(0, oo), "each singular value of the product at the start"),
    ),
    initial={W[i, j]: a0 ** Rational(1, 3) * KroneckerDelta(i, j) for W in layers},
    sizes={d: 3},
    span=(0.0, 8.0),
    time="epochs times learning rate",
    observables={"product": product, "loss": loss},
    invariants=(
        Invariant("balance of W1 and W2", balance(W2, W1), "constant"),
        Invariant("balance of W2 and W3", balance(W3, W2), "constant"),
        Invariant("loss falls", loss, "nonincreasing"),
    ),
    closed_forms=(ClosedForm("modes", "from multiples of the identity, Sigma symmetric and positive", modes, "implicit"),),
    display={"product": product},
)

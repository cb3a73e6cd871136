"""Descent by signs, in continuous time: every weight moves at the rate 1, until its slope is 0; then it slides with the others.

The sign is smooth over a width eps, s(g) = g / sqrt(g^2 + eps^2), so that sliding is a motion like any other: a weight whose slope has
come to 0 keeps it there while the others move. With H diagonal each reaches its minimum at t = |w - w*|, whatever its curvature. Muon's
step is the sign of singular values in the place of weights: from W = 0 those of |W - A|^2 / 2 are min(t, s_i), the case H = 1, b = s.

Assumed: full gradients, no momentum.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from sympy import Interval, oo, sqrt, symbols

from odesim.models.optimisers._quadratic import AXES, PARAMS, SYMMETRIC, g, i, loss, n, w, w0
from odesim.symbolic import ClosedForm, Invariant, Param, Source, System

eps = symbols("eps", positive=True)


def alone(t: float, y: Mapping[str, Any], y0: Mapping[str, Any], params: Mapping[str, Any]) -> Any:
    """How far (n,) w is from where it is at t: S(x) = sqrt(x^2 + e^2) - e arsinh(e/x) falls by t, x = |w - w*|, e = eps / H_ii."""
    h = np.diag(params["H"])
    e, rest = params["eps"] / h, params["b"] / h

    def S(w: Any) -> Any:
        x = np.maximum(np.abs(w - rest), 1e-300)
        return np.sqrt(x**2 + e**2) - e * np.arcsinh(e / x)

    x = np.abs(y["w"] - rest)
    return (S(y0["w"]) - S(y["w"]) - t) * x / np.sqrt(x**2 + e**2)


SYSTEM = System(
    name="optimisers.sign",
    source=Source("bernstein2018signsgd", "Algorithm 1", "in continuous time, with a smooth sign"),
    axes=AXES,
    equations={w[i]: -g / sqrt(g**2 + eps**2)},
    params=(*PARAMS, Param(eps, 0.02, Interval.open(0, oo), "slopes below which the sign is not sharp")),
    constraints=SYMMETRIC,
    initial={w[i]: w0[i]},
    sizes={n: 2},
    span=(0.0, 1.2),
    time="steps times learning rate",
    observables={"loss": loss, "slope": g},
    invariants=(Invariant("loss falls", loss, "nonincreasing"),),
    closed_forms=(ClosedForm("alone", "H diagonal and positive", alone, kind="implicit"),),
)

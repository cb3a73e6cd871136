"""One token in n + 1 tells the label: attention finds it, after a time of order n, and goes to 1.

A context is one of K keys and n of N noise tokens; the label is the key's, one of K. One head with a query that is always the same: token
i has the logit Z[x_i], the output is sum_i alpha_i W[x_i, :]. By symmetry all is in two numbers, z = Z[key] - Z[noise] and
u = W[k, k] - W[k, other]; W of noise stays 0. alpha = 1/(1 + n e^-z) is the attention to the key. First z stands and u grows as alpha t:
no attention without an output to attend for. Late, e^z/n = c u^2/2, c = (1/K + 1/N)(K - 1), and u grows as ln t: z is frozen.

Assumed: keys and noise uniform and independent, gradient flow of the population's cross-entropy, Z and W equal at the start.
"""

from typing import Any

import numpy as np
from scipy.special import wrightomega
from sympy import Interval, Rational, exp, log, oo, symbols

from odesim.models.patterns.aggregate import late
from odesim.symbolic import ClosedForm, Event, Invariant, Param, Source, System, gradient_flow

z, u = symbols("z u", real=True)
K, N, n = symbols("K N n", positive=True)

alpha = 1 / (1 + n * exp(-z))
loss = log(1 + (K - 1) * exp(-alpha * u))
balance = exp(z) / n + z - (1 / K + 1 / N) * (K - 1) * u**2 / 2


def passage(t: float, y: dict[str, Any], y0: dict[str, Any], params: dict[str, Any]) -> Any:
    """By how much z is off the level of the balance, and u the time it takes along it."""
    K, N, n = (float(params[name]) for name in ("K", "N", "n"))
    c, u0, u, z0 = (1 / K + 1 / N) * (K - 1) / 2, float(y0["u"]), float(y["u"]), float(y0["z"])
    level = np.exp(z0) / n + z0 - c * u0**2

    def logit(u: float) -> float:
        """z on the level: A - W(e^A/n), A = level + c u^2."""
        return float(level + c * u**2 - wrightomega(level + c * u**2 - np.log(n)))

    def rate(u: float) -> float:
        alpha = 1 / (1 + n * np.exp(-logit(u)))
        return float(alpha / (np.exp(alpha * u) + K - 1))

    return np.array([float(y["z"]) - logit(u), late(t, u0, u, rate)])


SYSTEM = System(
    name="patterns.skip_gram",
    source=Source("elhage2021mathematical", "skip-trigrams", "one key among noise, population loss, by symmetry"),
    axes={},
    # K logits of keys and N of noise share the slope of z; K entries W[k, k] and K (K - 1) others that of u
    equations=gradient_flow(loss, {z: 1 / K + 1 / N, u: 1 / (K - 1)}),
    params=(
        Param(K, 3.0, Interval(2, oo), "keys, and labels"),
        Param(N, 2.0, Interval(1, oo), "noise tokens of the vocabulary"),
        Param(n, 4.0, Interval.open(0, oo), "noise tokens of a context"),
    ),
    initial={z: 0, u: 0},
    span=(0.0, 100.0),
    time="steps times learning rate",
    observables={"loss": loss, "alpha": alpha},
    display={"alpha": alpha},
    invariants=(Invariant("balance", balance, "constant"), Invariant("loss falls", loss, "nonincreasing")),
    events=(Event("found", alpha - Rational(1, 2), 1, doc="half of the attention is on the key"),),
    closed_forms=(ClosedForm("passage", "while u grows, as it does from u >= 0", passage, "implicit"),),
)

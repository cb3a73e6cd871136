"""Every token tells a little of the label: attention stays even for ever, and the output learns to weigh what was counted.

T tokens each show the topic with chance (1 + rho)/2, else the other one; the label is the topic, one of two. The head of
patterns.skip_gram, with logits Z of both tokens: as they tell equally much, Z[0] = Z[1] is kept, attention is 1/T to each token, and the
output is a mean. What is left is u = W[0, 0] - W[0, 1]: c tokens for the topic are the margin u (2 c - T)/T. u rests at
T ln((1 + rho)/(1 - rho)), where the output is the posterior of Bayes' rule. The contrast W00 - W01 - W10 + W11 is 2 u.

Assumed: topics equally likely, gradient flow of the population's cross-entropy, Z and W equal at the start.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.integrate import quad
from scipy.special import expit, gammaln
from sympy import Interval, Sum, Symbol, exp, log

from odesim.symbolic import ClosedForm, Event, IndexedBase, Invariant, Param, Source, System, gradient_flow, index, over, sizes

# The time that a state takes between two values, by quadrature of its rate.


def late(t: float, start: float, end: float, rate: Callable[[float], float]) -> float:
    """By how much x of dx/dt = rate(x) > 0 is off at time t, in its own unit: (passed - t) rate(end), passed the integral of dx / rate."""
    passed = quad(lambda x: 1 / rate(x), start, end, epsabs=1e-11, epsrel=1e-11, limit=200)[0]
    return float((passed - t) * np.float64(rate(end)))


(c,) = index("c")
(T,) = sizes("T")
u, rho = Symbol("u", real=True), Symbol("rho", positive=True)
p = IndexedBase("p", shape=(T + 1,))


def counts(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """p (T + 1,): the probability that c of the tokens show the topic."""
    T, right = sizes["T"], (1 + float(params["rho"])) / 2
    c = np.arange(T + 1)
    log_p = gammaln(T + 1) - gammaln(c + 1) - gammaln(T - c + 1) + c * np.log(right) + (T - c) * np.log1p(-right)
    return np.asarray(np.exp(log_p))


def passage(t: float, y: dict[str, Any], y0: dict[str, Any], params: dict[str, Any]) -> Any:
    """By how much u is off the time it takes."""
    p = np.asarray(params["p"])
    d = np.linspace(-1, 1, len(p))
    return np.array([late(t, float(y0["u"]), float(y["u"]), lambda u: float(p @ (d * expit(-u * d))))])


bayes = T * log((1 + rho) / (1 - rho))
loss = over(Sum, p[c] * log(1 + exp(-u * (2 * c - T) / T)), (c, T + 1))

SYSTEM = System(
    name="patterns.aggregate",
    source=Source("clark2019bert", "Section 3.3", "heads of broad attention, bags of vectors; population loss, by symmetry"),
    axes={c: T + 1},
    # both rows of W share the slope of u, and each has two entries
    equations=gradient_flow(loss, {u: 1}),
    params=(
        Param(rho, 0.2, Interval.open(0, 1), "by how much the topic's token is more likely than the other"),
        Param(p, counts, Interval(0, 1), "p[c]: probability that c of the tokens show the topic"),
    ),
    initial={u: 0},
    sizes={T: 16},
    span=(0.0, 1000.0),
    time="steps times learning rate",
    observables={"loss": loss, "of_bayes": u / bayes},
    display={"loss": loss},
    invariants=(Invariant("loss falls", loss, "nonincreasing"),),
    events=(Event("half way", u - bayes / 2, 1, doc="the output is half of that of Bayes' rule"),),
    closed_forms=(ClosedForm("passage", "while u is below its rest and moves", passage, "implicit"),),
)

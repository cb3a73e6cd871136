"""The decoder of a one-layer transformer whose attention does not move: one margin u, and its push on the attention.

The decoder gradient is decorrelated (Lemma 3): the classes then learn apart from each other. For each of them the logit of the next
token exceeds those of the other M - 1 by u = M h, and u descends the loss ln(1 + (M - 1) exp(-u)). gamma is the push of the decoder on
the attention, Gamma = eta_Z int gamma dt the distance that the attention has gone by then: Z(t) depends on eta_Y, eta_Z and t by it alone.
Both are known: u by the Wright omega function, Gamma = (eta_Z K / (2 eta_Y)) ((M - 1) / M)^2 u^2.

Assumed: K classes of equal probability, and attention much slower than the decoder. Time in SGD steps: a class is visited at every
K-th. gamma grows like eta_Y t / K, is largest at u = 1 + W((M - 1) / e), and falls off like K ln(M eta_Y t / K) / (eta_Y t).
The steps of training, h* in the paper, are gradient descent on this flow: odesim.symbolic.descent makes that Map.
"""

from typing import Any

from sympy import Interval, Symbol, exp, log, oo

from odesim.models.scan_snap.reduced_symmetric import margin
from odesim.symbolic import ClosedForm, Constraint, Event, Invariant, Param, Source, System, gradient_flow, time

u, Gamma = Symbol("u", real=True), Symbol("Gamma", real=True)
K, M = Symbol("K", positive=True), Symbol("M", positive=True)
eta_Y, eta_Z = Symbol("eta_Y", positive=True), Symbol("eta_Z", nonnegative=True)


def solution(t: float, y0: dict[str, Any], params: dict[str, Any]) -> dict[str, Any]:
    """u and Gamma at time t: Gamma is quadratic in u."""
    K, M, eta_Y, eta_Z = (params[name] for name in ("K", "M", "eta_Y", "eta_Z"))
    u = margin(t, y0, params)["u"]
    return {"u": u, "Gamma": y0["Gamma"] + eta_Z * K / (2 * eta_Y) * ((M - 1) / M) ** 2 * (u**2 - y0["u"] ** 2)}


loss = log(1 + (M - 1) * exp(-u))
wrong = (M - 1) * exp(-u) / (1 + (M - 1) * exp(-u))  # 1 - alpha: a difference would round to 0
gamma = (M - 1) / M * u * wrong
path = eta_Z * K / (2 * eta_Y) * ((M - 1) / M) ** 2 * u**2

EVENTS = (
    Event("half way", u - log(M - 1), direction=1, doc="the next token is predicted with probability 1/2"),
    Event("gamma peaks", u - 1 - (M - 1) * exp(-u), direction=1, doc="gamma, the push of the decoder, is largest"),
    Event("scanning ends", time * eta_Y - K * log(M), direction=1, doc="t = K ln(M) / eta_Y: up to here the paper lets the attention scan"),
)

SYSTEM = System(
    name="scan_snap.decoder",
    source=Source("tian2023scan", "Lemmas 3, 5 and 6", "with decorrelated classes; in SGD steps"),
    axes={},
    equations=gradient_flow(loss, {u: M / (M - 1) * eta_Y / K}) | {Gamma: eta_Z * gamma},
    params=(
        Param(K, 1.0, Interval(1, oo), "number of classes, that is of next tokens that occur"),
        Param(M, 10000.0, Interval.open(1, oo), "number of tokens of the vocabulary, at least K"),
        Param(eta_Y, 1.0, Interval.open(0, oo), "learning rate of the decoder"),
        Param(eta_Z, 1.0, Interval(0, oo), "learning rate of the attention"),
    ),
    initial={u: 0, Gamma: 0},
    span=(0.0, 50.0),
    time="SGD steps",
    observables={"h": u / M, "gamma": gamma, "alpha": 1 / (1 + (M - 1) * exp(-u)), "loss": loss},
    display={"wrong": wrong, "gamma": gamma, "loss": loss},
    constraints=(Constraint("M is at least K", M - K, ">=0"),),
    invariants=(
        Invariant("Gamma of u", Gamma - path, "constant"),
        Invariant("loss falls", loss, "nonincreasing"),
        Invariant("attention moves on", Gamma, "nondecreasing", when=u >= 0),
    ),
    events=EVENTS,
    closed_forms=(ClosedForm("margin of the decoder", "for every start", solution),),
)

"""The paper's reduced attention flow on symmetric data: four numbers for any number of tokens, classes and words.

Data as in scan_snap.symmetric. The decoder gradient is decorrelated (Lemma 3), which gives the decoder in closed form, and the
attention then follows gamma(t) times a field of its own. Along it 1/ct^2 = 1/p^2 - S_d for every distinct token and
1/cc^2 = 1/pc^2 + S_c for every common one, with ct = p exp(z), cc = pc exp(zc): so two numbers carry all of z. B is the strength
B_n of Theorem 3, exp(2 f^2 B) <= exp(2 z) <= exp(2 B) for the most frequent distinct token; u is M h, the margin of the decoder.

Assumed: decorrelated decoder gradient and eta_Z much below eta_Y. Not the flow of plain gradients, whose attention is slower by a
factor that grows with M. Time in SGD steps: the paper's eq. 10 lacks the factor 1/K that goes with it. beta is that of Lemma 14
with the sign of E' that makes it positive, and -q0 (1 - sum), not +q0, in eq. 88.
S_d stays below 1 / max(p)^2. It comes so near that rounding tells once z of the most frequent token exceeds about 8.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from sympy import And, Eq, Interval, Piecewise, Sum, Symbol, exp, log, nan, oo

from odesim.models.scan_snap.symmetric import CONSTRAINTS, PARAMS, SCANNED, C, D, K, M, eta_Y, eta_Z, g, j, k_m, mc, p, pc
from odesim.symbolic import ClosedForm, Event, Invariant, MaxOver, Source, System, over

S_d, S_c, B, u = (Symbol(name, real=True) for name in ("S_d", "S_c", "B", "u"))


def margin(t: float, y0: dict[str, Any], params: dict[str, Any]) -> dict[str, Any]:
    """u at time t: the solution of e^u + (M - 1) u = e^u0 + (M - 1) u0 + M eta_Y t / K, by the Wright omega function."""
    from scipy.special import wrightomega

    u, M = y0["u"], params["M"]
    total = np.exp(u) + (M - 1) * u + M * params["eta_Y"] * t / params["K"]
    return {"u": np.log(M - 1) + np.log(wrightomega(total / (M - 1) - np.log(M - 1)))}


x = p[j] ** 2 * S_d
z, zc = -log(1 - x) / 2, -log(1 + pc[g] ** 2 * S_c) / 2
ct, cc = p[j] * exp(z), pc[g] * exp(zc)
# beyond its domain the flow is not a number, so that the integrator takes the step back
square = over(Sum, Piecewise((ct**2, x < 1), (nan, True)), (j, D))
common = over(Sum, mc[g] * cc**2, (g, C))
rho2 = square + common
eps = common / rho2
whole = over(Sum, ct, (j, D)) + over(Sum, mc[g] * cc, (g, C))

left = exp(-u) / (1 + (M - 1) * exp(-u))
gamma = (M - 1) ** 2 / M * u * left
E_off = eps * rho2 / square / (1 + (K - 1) * eps)
E_diag = -(K - 1) * eps * E_off
beta = M / (M - 1) * E_off + M / (M - 1) ** 2 * (1 - E_diag - (K - 2) * E_off)
push = eta_Z / K * gamma * (K - 1) * beta

winner = over(MaxOver, z, (j, D))
share = over(MaxOver, p[j] ** 2, (j, D)) / (over(Sum, p[j] ** 2, (j, D)) + over(Sum, mc[g] * pc[g] ** 2, (g, C)))
from_zero = And(Eq(S_d, 0), Eq(S_c, 0), Eq(B, 0), u >= 0)  # the start that Theorem 3 assumes

SYSTEM = System(
    name="scan_snap.reduced_symmetric",
    source=Source("tian2023scan", "Theorem 1 (eq. 10) and Lemma 4", "in SGD steps; on symmetric data"),
    axes={j: D, g: C},
    equations={S_d: 2 * push * eps / rho2, S_c: 2 * k_m * push * square / rho2**2, B: push * eps, u: M * eta_Y / K * left},
    params=tuple(replace(q, domain=Interval.open(1, oo)) if q.symbol == M else q for q in PARAMS),
    initial={S_d: 0, S_c: 0, B: 0, u: 0},
    sizes={D: 10, C: 1},
    span=(0.0, 100.0),
    time="SGD steps",
    observables={"z": z, "zc": zc, "gamma": gamma, "c": ct / whole, "cc": cc / whole, "loss": log(1 + (M - 1) * exp(-u))},
    display={
        **{"z": z, "zc": zc, "ct": ct, "cct": cc, "square": square, "common": common, "rho_sq": rho2, "epsilon": eps, "left": left},
        **{"gamma": gamma, "E_off": E_off, "E_diag": E_diag, "beta": beta, "push": push},
    },
    constraints=CONSTRAINTS,
    invariants=(
        Invariant("row sums of Z", k_m * over(Sum, z, (j, D)) + over(Sum, mc[g] * zc, (g, C)), "constant"),
        Invariant("distinct tokens gain", S_d, "nondecreasing", when=u >= 0),
        Invariant("common tokens lose", S_c, "nondecreasing", when=u >= 0),
        Invariant("Theorem 3, upper bound", B - winner, "nonnegative", when=from_zero),
        Invariant("Theorem 3, lower bound", winner - share * B, "nonnegative", when=from_zero),
    ),
    events=(
        Event("half way", u - log(M - 1), direction=1, doc="the next token is predicted with probability 1/2"),
        Event("gamma peaks", u - 1 - (M - 1) * exp(-u), direction=1, doc="gamma, the push of the decoder, is largest"),
        SCANNED,
    ),
    closed_forms=(ClosedForm("margin of the decoder", "for every start", margin),),
)

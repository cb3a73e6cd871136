"""Attention to one common token, with a constant normaliser: the equation behind Theorem 4 and its scan-and-snap picture.

z is the logit of the common token, B the strength that bounds the growth exp(2 B) of a distinct one, u = M h the margin of the
decoder in closed form. While u grows like t attention scans; once exp(u) outgrows (M - 1) u it snaps: B is all but frozen,
at a value that depends on K, M, C0 and nu = eta_Y / eta_Z alone.

Assumed: a single common token, a rate that goes with exp(4 z), a constant C0. Time as in the paper: h runs at 1/K, z does not.
The solution is B = 1/4 ln(1 + 4 Gamma / C0); eqs. 14 and 129-131 print ln(C0 + 4 Gamma), which is not 0 at t = 0 unless C0 = 1.
On real data the k_m classes of the query all push, rho grows, and B rises more slowly, with a prefactor of at most 1 / (4 k_m).
"""

from typing import Any

import numpy as np
from sympy import Interval, Symbol, exp, oo

from odesim.models.scan_snap.decoder import EVENTS, K, M, eta_Y, eta_Z, u
from odesim.models.scan_snap.decoder import solution as of_decoder
from odesim.symbolic import ClosedForm, Event, Invariant, Param, Source, System

z, B, C0 = Symbol("z", real=True), Symbol("B", real=True), Symbol("C0", positive=True)


def solution(t: float, y0: dict[str, Any], params: dict[str, Any]) -> dict[str, Any]:
    """z, B and u at time t: u and Gamma as of scan_snap.decoder; exp(-4 z) and exp(4 B) are linear in Gamma."""
    moved = of_decoder(t, {"u": y0["u"], "Gamma": 0.0}, params)
    grown = np.log1p(4 * moved["Gamma"] * np.exp(4 * y0["z"]) / params["C0"]) / 4
    return {"z": y0["z"] - grown, "B": y0["B"] + grown, "u": moved["u"]}


left = exp(-u) / (1 + (M - 1) * exp(-u))
gamma = (M - 1) ** 2 / M * u * left
xi = gamma * exp(4 * z) / C0

SYSTEM = System(
    name="scan_snap.theorem4",
    source=Source("tian2023scan", "Theorem 4 (eq. 14)", "a = 1, in the paper's time"),
    axes={},
    equations={z: -eta_Z * xi, B: eta_Z * xi, u: M * eta_Y / K * left},
    params=(
        Param(K, 1.0, Interval(1, oo), "number of classes"),
        Param(M, 10000.0, Interval.open(1, oo), "number of tokens of the vocabulary"),
        Param(eta_Y, 1.0, Interval.open(0, oo), "learning rate of the decoder"),
        Param(eta_Z, 1.0, Interval(0, oo), "learning rate of the attention"),
        Param(C0, 1.0, Interval.open(0, oo), "normaliser of the rate, 1 / (K eps0^2) for an overlap eps0 of the classes"),
    ),
    initial={z: 0, B: 0, u: 0},
    span=(0.0, 50.0),
    time="the paper's time",
    observables={"gamma": gamma, "chi_bound": exp(2 * B)},
    display={"gamma": gamma, "xi": xi},
    invariants=(Invariant("z + B", z + B, "constant"), Invariant("B grows", B, "nondecreasing", when=u >= 0)),
    events=(
        *EVENTS,
        Event("snap", 1 - (M - 1) * u * exp(-u), direction=1, doc="exp(u) outgrows (M - 1) u: from here on B is all but frozen"),
    ),
    closed_forms=(ClosedForm("scan and snap", "for every start", solution),),
)

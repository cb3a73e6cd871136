"""Momentum in continuous time: weights with a mass, which slopes push and friction slows, so that they swing where friction is small.

Heavy balls of optimisers.heavy_ball move so in time sqrt(lr) t, with the friction gamma = (1 - mu) / sqrt(lr). A direction of curvature h
swings where h > gamma^2 / 4 and creeps where h is less.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.linalg import expm
from sympy import Interval, Sum, oo, symbols

from odesim.models.optimisers._quadratic import AXES, PARAMS, SYMMETRIC, g, i, loss, n, w, w0
from odesim.symbolic import ClosedForm, IndexedBase, Invariant, Param, Source, System, over

u = IndexedBase("u", shape=(n,))
gamma = symbols("gamma", nonnegative=True)


def exponential(t: float, y0: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
    """w and u (n,) by the exponential of the matrix of the linear flow."""
    H, n = np.asarray(params["H"]), len(y0["w"])
    A = np.zeros((2 * n + 1, 2 * n + 1))
    A[:n, n : 2 * n] = np.eye(n)
    A[n : 2 * n, :n], A[n : 2 * n, n : 2 * n], A[n : 2 * n, -1] = -H, -params["gamma"] * np.eye(n), params["b"]
    end = expm(t * A) @ np.concatenate([y0["w"], y0["u"], [1.0]])
    return {"w": end[:n], "u": end[n : 2 * n]}


energy = loss + over(Sum, u[i] ** 2, (i, n)) / 2
SYSTEM = System(
    name="optimisers.momentum",
    source=Source("polyak1964methods", "the method of a heavy ball", "in continuous time"),
    axes=AXES,
    equations={w[i]: u[i], u[i]: -gamma * u[i] - g},
    params=(*PARAMS, Param(gamma, 0.5, Interval(0, oo), "friction of the weights")),
    constraints=SYMMETRIC,
    initial={w[i]: w0[i], u[i]: 0},
    sizes={n: 2},
    span=(0.0, 20.0),
    time="steps times the root of the learning rate",
    observables={"loss": loss, "energy": energy},
    invariants=(Invariant("energy falls", energy, "nonincreasing"),),
    closed_forms=(ClosedForm("exponential", "everywhere", exponential),),
)

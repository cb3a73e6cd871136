"""Gradient descent with momentum, step by step: it is stable where lr h < 2 + 2 mu, up to twice as far as without.

A direction of curvature h has the multipliers of z^2 - (1 + mu - lr h) z + mu, of modulus sqrt(mu) where they are complex: there it is
as fast for all h. In torch's form the velocity is v <- mu v + g and the step -lr v.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from sympy import Interval, oo, symbols

from odesim.models.optimisers._quadratic import AXES, PARAMS, SYMMETRIC, g, i, loss, n, w, w0
from odesim.symbolic import ClosedForm, IndexedBase, Map, Param, Source

v = IndexedBase("v", shape=(n,))
lr = symbols("lr", positive=True)
mu = symbols("mu", nonnegative=True)


def power(t: float, y0: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
    """w and v (n,) by a power of the matrix of one step."""
    H, b, n = np.asarray(params["H"]), np.broadcast_to(params["b"], len(y0["w"])), len(y0["w"])
    lr, mu, one = params["lr"], params["mu"], np.eye(len(y0["w"]))
    rows = [[one - lr * H, -lr * mu * one, lr * b[:, None]], [H, mu * one, -b[:, None]], [np.zeros((1, 2 * n)), np.ones((1, 1))]]
    end = np.linalg.matrix_power(np.block(rows), round(t)) @ np.concatenate([y0["w"], y0["v"], [1.0]])
    return {"w": end[:n], "v": end[n : 2 * n]}


SYSTEM = Map(
    name="optimisers.heavy_ball",
    source=Source("polyak1964methods", "the method of a heavy ball", "in torch's form"),
    axes=AXES,
    updates={w[i]: w[i] - lr * (mu * v[i] + g), v[i]: mu * v[i] + g},
    params=(*PARAMS, Param(lr, 0.1, Interval.open(0, oo), "learning rate"), Param(mu, 0.9, Interval(0, 1), "memory of the velocity")),
    constraints=SYMMETRIC,
    initial={w[i]: w0[i], v[i]: 0},
    sizes={n: 2},
    steps=200,
    observables={"loss": loss},
    closed_forms=(ClosedForm("power", "everywhere", power),),
)

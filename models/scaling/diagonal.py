"""A linear network with diagonal layers: from a small start it goes from saddle to saddle, one coefficient after another.

The coefficients are beta = (u^2 - v^2)/2, both layers begin at alpha. u v stays alpha^2, and as alpha -> 0 the loss falls in steps at the
times tau ln(1/alpha), where tau and the saddles follow from the data alone: scaling.mirror has the same flow in that clock. Without
correlations of inputs coefficient i is learned at tau = 1/|c_i|; correlations change times and order, and turn coefficients off again.

Assumed: gradient flow of the squared loss.
"""

from typing import Any

import numpy as np
from sympy import Interval, oo

from odesim.models.scaling._saddles import CONSTRAINTS, DATA, alpha, d, i, j, loss_of, uncorrelated
from odesim.symbolic import ClosedForm, IndexedBase, Invariant, Param, Source, System, gradient_flow

u, v = IndexedBase("u", shape=(d,)), IndexedBase("v", shape=(d,))


def beta(i: Any) -> Any:
    """(u^2 - v^2)/2."""
    return (u[i] ** 2 - v[i] ** 2) / 2


def without_correlations(t: float, y0: dict[str, Any], params: dict[str, Any]) -> dict[str, np.ndarray]:
    """u and v (d,): exp(x) and exp(-x) times the root of u v."""
    product = y0["u"] * y0["v"]
    x = uncorrelated(t, np.log(y0["u"] / y0["v"]) / 2, product, params)
    return {"u": np.sqrt(product) * np.exp(x), "v": np.sqrt(product) * np.exp(-x)}


loss = loss_of(beta)

SYSTEM = System(
    name="scaling.diagonal",
    source=Source("pesme2023saddle", "abstract"),
    axes={i: d, j: d},
    equations=gradient_flow(loss, {u[i]: 1, v[i]: 1}),
    params=(*DATA, Param(alpha, 1e-3, Interval.open(0, oo), "both layers at the start")),
    constraints=CONSTRAINTS,
    initial={u[i]: alpha, v[i]: alpha},
    sizes={d: 3},
    span=(0.0, 60.0),
    time="steps times learning rate",
    observables={"beta": beta(i), "loss": loss},
    display={"beta": beta(i)},
    invariants=(Invariant("product of the layers", u[i] * v[i], "constant"), Invariant("loss falls", loss, "nonincreasing")),
    closed_forms=(ClosedForm("without correlations", "G diagonal, u, v > 0", without_correlations),),
)

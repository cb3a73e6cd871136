"""The diagonal network in its own clock: s, the integral of the gradient, with beta = alpha^2 sinh(2 S s) and S = ln(1/alpha).

Time is that of scaling.diagonal over S. A coefficient is 0 as long as |s| < 1 and wakes when |s| comes to 1: as alpha -> 0 the loss falls
in steps whose times and heights depend on the data alone, and at a finite alpha they are off by order 1/S. In s a start as small as
alpha = 1e-60 is no smaller number than others.

Assumed: as scaling.diagonal, u = v = alpha at the start.
"""

from typing import Any

import numpy as np
from sympy import Interval, Sum, exp, log

from odesim.models.scaling._saddles import CONSTRAINTS, DATA, G, alpha, c, d, i, j, loss_of, uncorrelated
from odesim.symbolic import ClosedForm, IndexedBase, Invariant, Param, Source, System, over

s = IndexedBase("s", shape=(d,))
S = -log(alpha)


def beta(i: Any) -> Any:
    """alpha^2 sinh(2 S s), the powers of alpha within the exponentials."""
    return (exp(2 * S * (s[i] - 1)) - exp(-2 * S * (s[i] + 1))) / 2


def without_correlations(t: float, y0: dict[str, Any], params: dict[str, Any]) -> dict[str, np.ndarray]:
    """s (d,)."""
    S = -np.log(params["alpha"])
    return {"s": uncorrelated(S * t, S * y0["s"], params["alpha"] ** 2, params) / S}


loss = loss_of(beta)

SYSTEM = System(
    name="scaling.mirror",
    source=Source("pesme2023saddle", "abstract", "in accelerated time, as the mirror flow of beta"),
    axes={i: d, j: d},
    equations={s[i]: c[i] - over(Sum, G[i, j] * beta(j), (j, d))},
    params=(*DATA, Param(alpha, 1e-2, Interval.open(0, 1), "both layers at the start")),
    constraints=CONSTRAINTS,
    initial={s[i]: 0.0},
    sizes={d: 3},
    span=(0.0, 8.0),
    time="steps times learning rate over ln(1/alpha)",
    observables={"beta": beta(i), "loss": loss},
    display={"beta": beta(i)},
    invariants=(Invariant("loss falls", loss, "nonincreasing"),),
    closed_forms=(ClosedForm("without correlations", "G diagonal", without_correlations),),
)

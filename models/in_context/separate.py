"""Linear attention with a key and a query of rank one in each head learns regression one principal component after another.

W = sum_h v_h k_h q_h^T. Gradient flow of the mean squared error keeps v_h^2 - |k_h|^2 and |k_h|^2 - |q_h|^2. From small weights the loss
waits near tr - sum_{d in S} lam_d^2 / Gamma_d, the sets S of learned components growing by the largest variance that is left; H heads
learn H components. A component waits for about 1 / (2 lam_d^2 a0), a power of the start and no logarithm as in in_context.merged.

At the start head h lies on component h, v = |k| = |q| = a0; other starts by initial. Assumed: population loss, prompts of N pairs.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.optimize import brentq
from sympy import Interval, KroneckerDelta, Rational, Sum, oo, symbols

from odesim.models.in_context._regression import PARAMS, D, Gamma, H, a, b, c, gammas, h, loss_of
from odesim.symbolic import ClosedForm, Event, IndexedBase, Invariant, Lines, Matrix, Param, Source, System, gradient_flow, over

v, k, q = IndexedBase("v", shape=(H,)), IndexedBase("k", shape=(H, D)), IndexedBase("q", shape=(H, D))
a0 = symbols("a0", nonnegative=True)


def W(a: Any, b: Any) -> Any:
    """sum_h v_h k_h q_h^T."""
    return over(Sum, v[h] * k[h, a] * q[h, b], (h, H))


def passage(gap: float) -> float:
    """F(x), x = 1 - gap, with F' = 1 / (x^2 (1 - x^3))."""
    x = 1 - gap
    return float(-1 / x - np.log(gap) / 3 + np.log(1 + x + x * x) / 6 - np.arctan((2 * x + 1) / 3**0.5) / 3**0.5)


def grown(start: float, lam: float, Gamma: float, t: float) -> float:
    """a(t) of a' = 2 lam^2 (1 - Gamma a^3) a^2, a(0) = start below its rest."""
    scale = Gamma ** (1 / 3)
    end, first = passage(1 - scale * start) + 2 * lam**2 * t / scale, np.log(1 - scale * start)
    # in the logarithm of the gap, which falls to exp(-700) at most: F is steep there, and x itself is 1
    if passage(float(np.exp(-600.0))) < end:
        return 1 / scale
    return float(-np.expm1(brentq(lambda z: passage(float(np.exp(z))) - end, -600.0, first, xtol=1e-15, rtol=1e-14)) / scale)


def one_by_one(t: float, y0: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
    """Each head by itself: v_h(t), and k_h and q_h in proportion."""
    count = min(y0["k"].shape)
    v = [grown(float(y0["v"][n]), float(params["lam"][n]), float(gammas(params)[n]), t) for n in range(count)]
    factor = np.append(v, y0["v"][count:]) / y0["v"]
    return {"v": factor * y0["v"], "k": factor[:, None] * y0["k"], "q": factor[:, None] * y0["q"]}


loss = loss_of(W)

SYSTEM = System(
    name="in_context.separate",
    source=Source("zhang2025training", "Abstract", "separate key and query of rank one, gradient flow of the mean squared error"),
    axes={h: H, a: D, b: D, c: D},
    equations=gradient_flow(loss, {v[h]: 1, k[h, a]: 1, q[h, a]: 1}),
    params=(*PARAMS, Param(a0, 0.05, Interval(0, oo), "v, |k| and |q| of each head at the start")),
    initial={v[h]: a0, k[h, a]: a0 * KroneckerDelta(h, a), q[h, a]: a0 * KroneckerDelta(h, a)},
    sizes={H: 4, D: 4},
    span=(0.0, 1500.0),
    time="steps times learning rate",
    observables={"loss": loss, "share": W(a, a) * Gamma(a), "W": W(a, b)},
    views=(Lines("loss"), Lines("share"), Matrix("W")),
    invariants=(
        Invariant("balance of output and key", v[h] ** 2 - over(Sum, k[h, a] ** 2, (a, D)), "constant"),
        Invariant("balance of key and query", over(Sum, k[h, a] ** 2 - q[h, a] ** 2, (a, D)), "constant"),
        Invariant("loss falls", loss, "nonincreasing"),
    ),
    events=(Event("learned", W(a, a) * Gamma(a) - Rational(1, 2), 1, doc="component a is half learned"),),
    closed_forms=(ClosedForm("one by one", "head h on component h, v = |k| = |q| below their rest", one_by_one),),
    display={"W": W(a, b), "Gamma": Gamma(a)},
)

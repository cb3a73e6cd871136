"""Gradient flow of a deep linear network of width 1: the modes of its product are learned one after another, the largest first.

Each mode a[m] of the product w2[m] w1[m] follows its target s[m] along a sigmoid, if both layers start equal. L layers: the exponent
2 - 2 / L is that of the product alone.
"""

from typing import Any

import numpy as np
from sympy import Interval, Rational, oo, symbols

from odesim.symbolic import ClosedForm, IndexedBase, Invariant, Param, Source, System, index, sizes

(m,) = index("m")
(M,) = sizes("M")
a, s = IndexedBase("a", shape=(M,)), IndexedBase("s", shape=(M,))
tau = symbols("tau", positive=True)


def sigmoid(t: float, y0: dict[str, Any], params: dict[str, Any]) -> dict[str, Any]:
    """a(t) of two layers, in a form that does not overflow."""
    s, a0, tau = params["s"], y0["a"], params["tau"]
    decay = np.exp(-2 * s * t / tau)
    return {"a": s / (1 + (s / a0 - 1) * decay)}


def make(layers: int, name: str) -> System:
    """The product of this many equal layers."""
    return System(
        name=name,
        source=Source("saxe2014exact", "arXiv:1312.6120, dynamics of one mode"),
        axes={m: M},
        equations={a[m]: layers * a[m] ** (2 - Rational(2, layers)) * (s[m] - a[m]) / tau},
        params=(
            Param(s, lambda sizes: np.linspace(3, 1, sizes["M"]), Interval.open(0, oo), "singular values of the data"),
            Param(tau, 1.0, Interval.open(0, oo), "time constant"),
        ),
        initial={a[m]: 0.01},
        sizes={M: 3},
        span=(0.0, 6.0),
        invariants=(Invariant("distance to the data", (s[m] - a[m]) ** 2, "nonincreasing"),),
        closed_forms=(ClosedForm("sigmoid", "two layers", sigmoid),) if layers == 2 else (),
    )


SYSTEM = make(2, "my.two_layers")
DEEP = make(4, "my.two_layers_deep")

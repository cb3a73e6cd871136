"""A deep linear network in its modes: da/dt = L a^(2 - 2/L) (s - a), a mode of the product of L layers for each singular value s.

Modes are learned one after another. For two layers each is a sigmoid that reaches s/2 at ln(s/a - 1) / (2 s); for more the time is of
order a^(2/L - 1) / s.

Assumed: whitened inputs, gradient flow of the squared loss, layers that are balanced and aligned with the modes at the start.
"""

from typing import Any

import numpy as np
from sympy import Interval, oo, symbols

from odesim.models.classics.deep_linear import off
from odesim.symbolic import ClosedForm, IndexedBase, Param, Source, System, index, sizes

(i,) = index("i")
(r,) = sizes("r")
a, s, L = IndexedBase("a", shape=(r,)), IndexedBase("s", shape=(r,)), symbols("L", positive=True)


def strengths(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """s (r,): 3, 3/2, 1, 3/4, ..."""
    return 3 / np.arange(1, sizes["r"] + 1)


def passage(t: float, y: dict[str, Any], y0: dict[str, Any], params: dict[str, Any]) -> np.ndarray:
    """By how much each mode is off, by quadrature."""
    triples = zip(y0["a"], y["a"], params["s"], strict=True)
    return np.array([off(t, float(x0), float(x), float(s), float(params["L"])) for x0, x, s in triples])


SYSTEM = System(
    name="classics.deep_linear_modes",
    source=Source("saxe2014exact", "Section 2", "L layers"),
    axes={i: r},
    equations={a[i]: L * a[i] ** (2 - 2 / L) * (s[i] - a[i])},
    params=(
        Param(s, strengths, Interval.open(0, oo), "singular values of the correlation of inputs and outputs"),
        Param(L, 2.0, Interval(1, oo), "number of layers"),
    ),
    initial={a[i]: 1e-3},
    sizes={r: 4},
    span=(0.0, 6.0),
    time="epochs times learning rate",
    closed_forms=(ClosedForm("time of passage", "from 0 < a < s", passage, "implicit"),),
)

"""hopfield.modern with N orthogonal patterns of equal length, in their overlaps: dz/dt = softmax(c z) - z, a mean-field Potts model.

z_k is the overlap of the state with pattern k, divided by their squared length R, and c = beta R. The average of all patterns, z = 1/N,
is stable for c < N; a state near one pattern exists for c above c_s, which is 4.2498 for N = 8. Between them both are stable, and the
start decides.

Assumed: X^T X = R I. The sum of the overlaps goes to 1 as exp(-t), whatever else happens.
"""

from typing import Any

import numpy as np
from sympy import Interval, KroneckerDelta, Sum, Symbol, oo

from odesim.symbolic import ClosedForm, IndexedBase, Invariant, Param, Source, System, index, logsumexp, over, sizes, softmax

k, l = index("k l")
(N,) = sizes("N")
z, c = IndexedBase("z", shape=(N,)), Symbol("c", positive=True)


def total(t: float, y: dict[str, Any], y0: dict[str, Any], params: dict[str, Any]) -> np.ndarray:
    """By how much the sum of the overlaps is off its way to 1."""
    return np.asarray(1 - y["z"].sum() - np.exp(-t) * (1 - y0["z"].sum()))


energy = over(Sum, z[l] ** 2, (l, N)) / 2 - logsumexp(c * z[l], (l, N)) / c

SYSTEM = System(
    name="hopfield.potts",
    source=Source("ramsauer2021hopfield", "eqs. 2 and 3", "orthogonal patterns, in their overlaps"),
    axes={k: N, l: N},
    equations={z[k]: softmax(c * z[k], (k, N)) - z[k]},
    params=(Param(c, 6.0, Interval.open(0, oo), "inverse temperature times squared length of a pattern"),),
    initial={z[k]: KroneckerDelta(k, 0) / 2},
    sizes={N: 8},
    span=(0.0, 12.0),
    time="time constants",
    observables={"energy": energy},
    invariants=(Invariant("energy falls", energy, "nonincreasing"),),
    closed_forms=(ClosedForm("sum of overlaps", "everywhere", total, "implicit"),),
)

"""One student and several teachers in different directions: which of them wins, by its weight and its overlap at the start.

m[i] are coordinates of a unit vector in an orthonormal basis that begins with the teachers; a[i] are their weights, 0 beyond them. The
loss is -sum_i a_i m_i^k. For k >= 3 the numbers z_i = m_i^(2 - k)/a_i all obey z' = k (2 - k) (1 - S z) with one S, so that ratios of their
differences are conserved, and the teacher with the largest a_i m_i^(k - 2) at the start wins. For k = 2 it is the one of largest weight:
m_i grows as exp(2 a_i t) before it is normalised.

Assumed: population loss of the k-th Hermite part alone, which is the same for all teachers; positive overlaps.
"""

from typing import Any

import numpy as np
from sympy import Interval, Naturals, Sum, Symbol, oo

from odesim.symbolic import ClosedForm, Constraint, IndexedBase, Invariant, Param, Source, System, gradient_flow, index, over, sizes

i, j = index("i j")
(n,) = sizes("n")
m, a, m0 = (IndexedBase(name, shape=(n,)) for name in ("m", "a", "m0"))
k = Symbol("k", integer=True, positive=True)


def weights(sizes: dict[str, int]) -> list[float]:
    """1, .8, .6, ..., and at the end 0, of all other directions."""
    return [max(1 - 0.2 * r, 0.0) for r in range(sizes["n"] - 1)] + [0.0]


def start(sizes: dict[str, int]) -> np.ndarray:
    """m0 (n,), of length 1: weak teachers have the larger overlap, but most is elsewhere."""
    m = 0.1 + 0.04 * np.arange(sizes["n"])
    m[-1] = np.sqrt(max(1 - (m[:-1] ** 2).sum(), 0.01))
    return m / np.linalg.norm(m)


def power_steps(t: float, y0: dict[str, Any], params: dict[str, Any]) -> dict[str, np.ndarray]:
    """m (n,): each grows by itself, and the length is 1 again."""
    m = y0["m"] * np.exp(2 * params["a"] * t)
    return {"m": m * np.linalg.norm(y0["m"]) / np.linalg.norm(m)}


loss = -over(Sum, a[j] * m[j] ** k, (j, n))

SYSTEM = System(
    name="scaling.multi_index",
    source=Source("benarous2021online", "abstract", "several directions, gradient flow of the population loss"),
    axes={i: n, j: n},
    equations=gradient_flow(loss, {m[i]: 1}, metric={m[i]: "sphere"}),
    params=(
        Param(k, 3, Naturals, "information exponent"),
        Param(a, weights, Interval(0, oo), "weights of the teachers; 0 where there is none"),
        Param(m0, start, Interval(-oo, oo), "overlaps at the start, of length 1"),
    ),
    constraints=(Constraint("m is a unit vector", over(Sum, m[j] ** 2, (j, n)) - 1, "==0", 1e-6),),
    initial={m[i]: m0[i]},
    sizes={n: 4},
    span=(0.0, 6.0),
    time="steps times learning rate",
    observables={"loss": loss},
    invariants=(Invariant("length", over(Sum, m[j] ** 2, (j, n)), "constant"), Invariant("loss falls", loss, "nonincreasing")),
    closed_forms=(ClosedForm("power iteration", "k = 2, a start of length 1", power_steps),),
)

"""modular.energy in its frequencies: the powers of a unit's weights compete as in a game, and one frequency takes everything.

U_k and V_k, k = 1, ..., K = (M - 1)/2, are the real Fourier powers of the weights u and v, rest is what their means hold; together they
are 1. Phases never move, as E = M sum_k U_k V_k sees powers alone. Without the sphere a frequency blows up at
t_k = ln(U_k/V_k) / (4 M (U_k - V_k)), so that the winner is the one with the largest logarithmic mean (U_k - V_k) / ln(U_k/V_k) at
the start, not with the largest product or sum.

Assumed: M = 2K + 1 odd, all pairs, quadratic units, one unit alone.
"""

from typing import Any

import numpy as np
from scipy.optimize import brentq
from sympy import Interval, Sum, symbols

from odesim.symbolic import ClosedForm, Constraint, IndexedBase, Invariant, Lines, Log, Param, Source, System, index, over, sizes

k, j = index("k j")
(K,) = sizes("K")
U, V = IndexedBase("U", shape=(K,)), IndexedBase("V", shape=(K,))
rest = symbols("rest", real=True)
rest0 = symbols("rest0", nonnegative=True)
M = 2 * K + 1


def free(s: float, U: Any, V: Any, M: int) -> tuple[Any, Any]:
    """Powers U, V (K,) without the sphere at time s: U - V = c stays, V/U = V0/U0 exp(-4 M c s), of equal ones 1/U falls by 4 M s."""
    c = U - V
    near = np.abs(c) < 1e-12 * (U + V)
    with np.errstate(divide="ignore", invalid="ignore"):
        moved = np.where(near, U / (1 - 4 * M * U * s), c / (1 - V / U * np.exp(4 * M * c * s)))
    return moved, moved - c


def logarithmic_mean(U: Any, V: Any) -> Any:
    """(U - V) / ln(U/V) of positive powers, and U where they are equal."""
    ratio = np.log(np.asarray(U) / np.asarray(V))
    small = np.abs(ratio) < 1e-6
    return np.where(small, np.sqrt(np.asarray(U) * np.asarray(V)), (np.asarray(U) - np.asarray(V)) / np.where(small, 1.0, ratio))


def from_free(t: float, y0: dict[str, Any], params: dict[str, Any]) -> dict[str, Any]:
    """The powers without the sphere, over their sum; dt is their sum times ds, whose integral is a logarithm."""
    U0, V0, rest0 = y0["U"], y0["V"], float(y0["rest"])
    M = 2 * len(U0) + 1
    end = float(1 / (4 * M * logarithmic_mean(U0, V0).max()))

    def clock(s: float) -> float:
        u, v = free(s, U0, V0, M)
        return float(np.log(u / U0 * v / V0).sum() / (4 * M) + rest0 * s)

    # up to 1e-13 of the blow-up, beyond which t is as large as one likes
    s = brentq(lambda s: clock(s) - t, 0.0, end * (1 - 1e-13), xtol=1e-18, rtol=1e-15) if t > 0 else 0.0
    u, v = free(s, U0, V0, M)
    total = u.sum() + v.sum() + rest0
    return {"U": u / total, "V": v / total, "rest": rest0 / total}


energy = M * over(Sum, U[j] * V[j], (j, K))
total = over(Sum, U[j] + V[j], (j, K)) + rest

SYSTEM = System(
    name="modular.powers",
    source=Source("tian2025provable", "Abstract", "quadratic units on Z/M, in Fourier powers; derived"),
    axes={k: K, j: K},
    equations={U[k]: 4 * U[k] * (M * V[k] - 2 * energy), V[k]: 4 * V[k] * (M * U[k] - 2 * energy), rest: -8 * energy * rest},
    params=(Param(rest0, 0.1, Interval(0, 1), "share of the means of the weights at the start"),),
    constraints=(Constraint("U[k] is at least 0", U[k], ">=0", 1e-9), Constraint("V[k] is at least 0", V[k], ">=0", 1e-9)),
    initial={U[k]: (1 - rest0) * (k + 1) / (K * (K + 1)), V[k]: (1 - rest0) / (2 * K), rest: rest0},
    sizes={K: 3},
    span=(0.0, 0.8),
    time="time of the ascent",
    observables={"energy": energy},
    display={"E": energy},
    views=(Lines("energy"), Log("U"), Log("V")),
    invariants=(
        Invariant("powers add up to 1", total, "constant", when=(total - 1) ** 2 <= 1e-24),
        Invariant("energy grows", energy, "nondecreasing", when=(total - 1) ** 2 <= 1e-24),
    ),
    closed_forms=(ClosedForm("without the sphere", "from positive powers that add up to 1", from_free),),
)

"""Modular addition by one hidden unit on the sphere: it climbs the energy of its outputs, up to a wave of one frequency.

The unit squares u_a + v_b for the pair a, b; F_m is the sum of that over the pairs a + b = m mod M, and the energy is
E = sum_m (F_m - mean F)^2 / 2, what the layer above can learn from it. By the real Fourier powers U_k = 2 |u_k|^2/M and V_k of the
weights it is E = M sum_k U_k V_k, so that phases never move: modular.powers has the closed form. The maxima are waves of one frequency
with U_k = V_k = 1/2, of any phases, E = M/4; a memorised pair, u and v on one place each, has (1 - 1/M)/2.

With part of the data, `seen` 0 for pairs that are left out, sums are over the sample, its mean square is taken off each, and frequencies
and the mean couple. Assumed: M odd, quadratic units, |w| = 1, which the flow keeps: the loss -E/|w|^4 does not know the length.
"""

from typing import Any

import numpy as np
from sympy import Interval, Naturals0, Sum, oo

from odesim.symbolic import IndexedBase, Invariant, Lines, Param, Source, System, gradient_flow, index, over, sizes

a, m = index("a m")
(M,) = sizes("M")
u, v = IndexedBase("u", shape=(M,)), IndexedBase("v", shape=(M,))
u0, v0 = IndexedBase("u0", shape=(M,)), IndexedBase("v0", shape=(M,))
other, seen = IndexedBase("other", shape=(M, M)), IndexedBase("seen", shape=(M, M))


def second(sizes: dict[str, int]) -> Any:
    """other (M, M): b with a + b = m mod M, for a and m."""
    at = np.arange(sizes["M"])
    return (at[None, :] - at[:, None]) % sizes["M"]


def normal(sizes: dict[str, int]) -> tuple[Any, Any]:
    """u, v (M,): normal numbers of length 1 together."""
    w = np.random.default_rng(0).normal(size=2 * sizes["M"])
    return tuple((w / np.sqrt(w @ w)).reshape(2, -1))  # type: ignore[return-value]


def first_weights(sizes: dict[str, int]) -> Any:
    """u0 (M,)."""
    return normal(sizes)[0]


def second_weights(sizes: dict[str, int]) -> Any:
    """v0 (M,)."""
    return normal(sizes)[1]


square = (u[a] + v[other[a, m]]) ** 2
count = over(Sum, seen[a, m], (a, M), (m, M))
mean = over(Sum, seen[a, m] * square, (a, M), (m, M)) / count
F = over(Sum, seen[a, m] * (square - mean), (a, M))
energy = over(Sum, F**2, (m, M)) / 2
norm = over(Sum, u[a] ** 2 + v[a] ** 2, (a, M))

SYSTEM = System(
    name="modular.energy",
    source=Source("tian2025provable", "Abstract", "quadratic units on Z/M, |w| = 1"),
    axes={a: M, m: M},
    equations=gradient_flow(-energy / norm**2, {u[a]: 1, v[a]: 1}),
    params=(
        Param(other, second, Naturals0, "other[a, m]: the second term of the sum m with the first term a", indexes=M, cover=False),
        Param(seen, 1.0, Interval(0, oo), "seen[a, m]: weight of the pair a, other[a, m] in the data; 0: left out"),
        Param(u0, first_weights, Interval(-oo, oo), "weights of the first term at the start"),
        Param(v0, second_weights, Interval(-oo, oo), "weights of the second term at the start"),
    ),
    initial={u[a]: u0[a], v[a]: v0[a]},
    sizes={M: 7},
    span=(0.0, 1.0),
    time="time of the ascent",
    observables={"energy": energy, "F": F},
    views=(Lines("energy"),),
    invariants=(Invariant("the sphere stays", norm, "constant"), Invariant("energy grows", energy / norm**2, "nondecreasing")),
)

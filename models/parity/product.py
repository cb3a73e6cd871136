"""A product of three linear factors learns the parity of three bits: slowly from a small start, and then in a finite time.

f(x) = (u.x)(v.x)(w.x) of N independent signs x, the loss -E f(x) chi(x), chi = x_0 x_1 x_2. E x_a x_b x_c chi is 1 where a, b, c are the
three relevant inputs in some order, and 0 elsewhere: the correlation is the permanent of the relevant columns of (u, v, w). Weights of
other inputs stay. From equal weights each relevant one obeys w' = 2 w^2, infinite at 1/(2 eps); with k factors w' = (k-1)! w^(k-1), until
eps^(2-k) / ((k-2) (k-1)!), and with two, where each bit joins the parity of those before, ln(1/eps) is enough.

Assumed: gradient flow of the correlation loss on all inputs; the loss has no least value, so that this is the way to a first success.
"""

from itertools import permutations
from typing import Any

import numpy as np
from sympy import Interval, Sum, oo, symbols

from odesim.symbolic import ClosedForm, Event, IndexedBase, Invariant, Param, Source, System, gradient_flow, index, over, sizes

a, b, c = index("a b c")
(N,) = sizes("N")
u, v, w = (IndexedBase(name, shape=(N,)) for name in "uvw")
s, eps = IndexedBase("s", shape=(N, N, N)), symbols("eps", positive=True)


def relevant(sizes: dict[str, int]) -> Any:
    """s (N, N, N): 1 where the three indices are 0, 1, 2 in some order, of inputs that there are."""
    found = np.zeros((sizes["N"],) * 3)
    for order in permutations(range(3)):
        if sizes["N"] > 2:
            found[order] = 1.0
    return found


def hyperbola(t: float, y0: dict[str, Any], params: dict[str, Any]) -> dict[str, Any]:
    """u, v, w (N,) at time t < 1/(2 w(0)): the three relevant entries of each are w(0)/(1 - 2 w(0) t), the others stay."""
    moves = params["s"].any(axis=(1, 2))
    return {name: np.where(moves, start / (1 - 2 * start * t), start) for name, start in y0.items()}


correlation = over(Sum, u[a] * over(Sum, v[b] * over(Sum, s[a, b, c] * w[c], (c, N)), (b, N)), (a, N))


def square(f: IndexedBase) -> Any:
    """|f|^2."""
    return over(Sum, f[a] ** 2, (a, N))


# From larger weights the flow soon runs away, and a difference of squares of what is infinite has no digits.
SMALL = square(u) + square(v) + square(w) < 1

SYSTEM = System(
    name="parity.product",
    source=Source("wies2023subtask", "Section 5", "three factors in place of a network: a reduction of our own"),
    axes={a: N, b: N, c: N},
    equations=gradient_flow(-correlation, {u[a]: 1, v[b]: 1, w[c]: 1}),
    params=(
        Param(s, relevant, Interval(-1, 1), "E x_a x_b x_c chi: which three inputs make the parity"),
        Param(eps, 0.1, Interval.open(0, oo), "each weight at the start"),
    ),
    initial={u[a]: eps, v[b]: eps, w[c]: eps},
    sizes={N: 5},
    span=(0.0, 4.2),
    time="time of gradient flow",
    observables={"correlation": correlation},
    display={"correlation": correlation},
    invariants=(
        Invariant("balance of u and v", square(u) - square(v), "constant", when=SMALL),
        Invariant("balance of v and w", square(v) - square(w), "constant", when=SMALL),
        Invariant("the correlation grows", correlation, "nondecreasing"),
    ),
    events=(Event("learned", correlation - 1, 1, doc="the correlation with the parity reaches 1: a first success"),),
    closed_forms=(ClosedForm("hyperbola", "from equal weights", hyperbola),),
)

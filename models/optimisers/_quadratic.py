"""The loss w^T H w / 2 - b^T w, its slope and its parameters, which the optimisers of this family share."""

from typing import Any

import numpy as np
from sympy import Interval, Sum, oo

from odesim.symbolic import Constraint, IndexedBase, Param, index, over, sizes

i, j = index("i j")
(n,) = sizes("n")
w, H = IndexedBase("w", shape=(n,)), IndexedBase("H", shape=(n, n))
b, w0 = IndexedBase("b", shape=(n,)), IndexedBase("w0", shape=(n,))
AXES = {i: n, j: n}


def diagonal(sizes: dict[str, int]) -> Any:
    """H (n, n): 1, 2, ... on its diagonal."""
    return np.diag(np.arange(1.0, sizes["n"] + 1))


def falling(sizes: dict[str, int]) -> Any:
    """w0 (n,): 1, 1/2, 1/3, ..."""
    return 1 / np.arange(1.0, sizes["n"] + 1)


def slope(at: Any) -> Any:
    """The gradient (n,) at weights with the elements at(j)."""
    return over(Sum, H[i, j] * at(j), (j, n)) - b[i]


g = slope(lambda j: w[j])
loss = over(Sum, w[i] * (over(Sum, H[i, j] * w[j], (j, n)) / 2 - b[i]), (i, n))
PARAMS = (
    Param(H, diagonal, Interval(-oo, oo), "the Hessian, symmetric"),
    Param(b, 0.0, Interval(-oo, oo), "what the loss falls by along w, to first order"),
    Param(w0, falling, Interval(-oo, oo), "weights at the start"),
)
SYMMETRIC = (Constraint("H is symmetric", H[i, j] - H[j, i], "==0", 1e-12),)


def at_one_rate(t: float, y0: dict[str, Any], params: dict[str, Any]) -> dict[str, Any]:
    """w (n,) of Adam for a slope that does not change: it moves at the rate 1, but for eps."""
    b = np.asarray(params["b"])
    return {"w": y0["w"] + float(params.get("lr", 1.0)) * t * b / (np.abs(b) + params["eps"])}

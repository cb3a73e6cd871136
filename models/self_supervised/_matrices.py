"""What the models of linear networks with a predictor share: weights, parameters, starts, the balance of the layers."""

from typing import Any

import numpy as np
from sympy import Interval, Sum, exp, oo, sqrt, symbols

from odesim.symbolic import IndexedBase, Invariant, Param, at, index, over, sizes, time

i, j, k, l = index("i j k l")
n2, n1 = sizes("n2 n1")
W, W_a, W_p = IndexedBase("W", shape=(n2, n1)), IndexedBase("W_a", shape=(n2, n1)), IndexedBase("W_p", shape=(n2, n2))
W0, W_p0 = IndexedBase("W0", shape=(n2, n1)), IndexedBase("W_p0", shape=(n2, n2))
alpha = symbols("alpha", positive=True)
eta, sigma2 = symbols("eta sigma2", nonnegative=True)
AXES = {i: n2, k: n2, l: n2, j: n1}


def weights(sizes: dict[str, int]) -> Any:
    """W (n2, n1): normal entries of standard deviation .3."""
    return 0.3 * np.random.default_rng(4).normal(size=(sizes["n2"], sizes["n1"]))


def predictor(sizes: dict[str, int]) -> Any:
    """W_p (n2, n2): as the weights; not symmetric."""
    return 0.3 * np.random.default_rng(5).normal(size=(sizes["n2"], sizes["n2"]))


def predicted(row: Any, column: Any) -> Any:
    """W_p W."""
    return over(Sum, W_p[row, k] * W[k, column], (k, n2))


def slopes(target: IndexedBase) -> dict[Any, Any]:
    """The equations of W and W_p for a target without a gradient."""

    def lack(row: Any, column: Any) -> Any:
        return target[row, column] - (1 + sigma2) * predicted(row, column)

    return {
        W[k, j]: over(Sum, W_p[i, k] * lack(i, j), (i, n2)) - eta * W[k, j],
        W_p[i, k]: alpha * over(Sum, lack(i, j) * W[k, j], (j, n1)) - eta * W_p[i, k],
    }


PARAMS = (
    Param(alpha, 1.0, Interval.open(0, oo), "learning rate of the predictor, over that of the network"),
    Param(eta, 0.04, Interval(0, oo), "weight decay"),
    Param(sigma2, 0.1, Interval(0, oo), "variance of the noise of a view"),
)
STARTS = (
    Param(W0, weights, Interval(-oo, oo), "weights at the start"),
    Param(W_p0, predictor, Interval(-oo, oo), "predictor at the start"),
)
BALANCE = over(Sum, W[i, j] * W[k, j], (j, n1)) - over(Sum, W_p[l, i] * W_p[l, k], (l, n2)) / alpha
DECAYS = Invariant("balance decays", BALANCE * exp(2 * eta * time), "constant")
"""W W^T - W_p^T W_p / alpha, whatever the target is."""
F = over(Sum, W[i, j] * W[k, j], (j, n1))


def squared(entry: Any) -> Any:
    """The sum of squares of a matrix (n2, n2), by its entry at i, k."""
    return over(Sum, entry**2, (i, n2), (k, n2))


OBSERVABLES = {
    "F": F,
    "asymmetry": sqrt(squared(W_p[i, k] - W_p[k, i])),
    "commutator": sqrt(squared(over(Sum, at(F, {k: l}) * W_p[l, k] - W_p[i, l] * at(F, {i: l}), (l, n2)))),
}

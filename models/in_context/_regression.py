"""Regression in context: the exact loss of one layer of linear attention on prompts of N pairs.

Inputs x_1 .. x_N and x_q are N(0, diag(lam)), the task w is N(0, I), labels y_n = w . x_n. With beta = (1/N) sum_n y_n x_n the prediction
is beta^T W x_q. By Isserlis' theorem E beta beta^T = diag(Gamma lam), Gamma = (1 + 1/N) lam + tr/N with tr = sum(lam), and
E beta w^T = diag(lam), so that E (w . x_q - beta^T W x_q)^2 = tr - 2 sum_a lam_a^2 W_aa + sum_ab Gamma_a lam_a W_ab^2 lam_b,
least at W = diag(1 / Gamma). N counts pairs: the query has no label.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from sympy import Expr, Interval, Sum, oo, symbols

from odesim.symbolic import IndexedBase, Param, index, over, sizes

h, g, a, b, c = index("h g a b c")
H, D = sizes("H D")
lam, N = IndexedBase("lam", shape=(D,)), symbols("N", positive=True)
tr = over(Sum, lam[c], (c, D))


def Gamma(d: Any) -> Expr:
    """The mean square of a direction of beta over its variance."""
    return (1 + 1 / N) * lam[d] + tr / N


def loss_of(W: Any) -> Expr:
    """The mean squared error of W(a, b)."""
    gain = over(Sum, lam[a] ** 2 * W(a, a), (a, D))
    return tr - 2 * gain + over(Sum, Gamma(a) * lam[a] * lam[b] * W(a, b) ** 2, (a, D), (b, D))


best = tr - over(Sum, lam[a] ** 2 / Gamma(a), (a, D))


def variances(sizes: Mapping[str, int]) -> np.ndarray:
    """lam (D,): .4, .3, .2, .1 for D = 4."""
    return 0.4 * (1 - np.arange(sizes["D"]) / sizes["D"])


def gammas(params: Mapping[str, Any]) -> np.ndarray:
    """Gamma (D,) in numbers."""
    lam, N = np.asarray(params["lam"], float), float(params["N"])
    return (1 + 1 / N) * lam + lam.sum() / N


PARAMS = (
    Param(lam, variances, Interval.open(0, oo), "variances of the inputs along their principal directions"),
    Param(N, 31.0, Interval(1, oo), "pairs of input and label in a prompt"),
)

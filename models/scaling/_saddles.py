"""What the models of diagonal networks share: data, the solution without correlations, and the saddles that a small start visits."""

from typing import Any

import numpy as np
from scipy.optimize import nnls
from sympy import Interval, Sum, oo, symbols

from odesim.symbolic import Constraint, IndexedBase, Param, index, over, sizes

i, j = index("i j")
(d,) = sizes("d")
G, c = IndexedBase("G", shape=(d, d)), IndexedBase("c", shape=(d,))
alpha = symbols("alpha", positive=True)
skew, least, outside = symbols("skew least outside", real=True)
ROUNDING = 1e-12  # of products of data with themselves: the eigenvalues of a thousand inputs are off by 2e-13 of the largest


def correlated(sizes: dict[str, int]) -> np.ndarray:
    """G (d, d): .5^|i - j|."""
    place = np.arange(sizes["d"])
    return 0.5 ** np.abs(place - place[:, None])


def of_target(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """c (d,) of the coefficients 1, -1/2, 1/3, ..."""
    target = np.array([(-1.0) ** n / (1 + n) for n in range(sizes["d"])])
    return np.asarray(params["G"] @ target)


def asymmetry(sizes: dict[str, int], params: dict[str, Any]) -> float:
    """The largest entry of |G - G^T| over that of |G|: the scale of G is free."""
    G = np.asarray(params["G"])
    return float(np.abs(G - G.T).max() / (np.abs(G).max() or 1))


def least_eigenvalue(sizes: dict[str, int], params: dict[str, Any]) -> float:
    """The least eigenvalue of G over the largest in size; of no covariance is it below 0."""
    values = np.linalg.eigvalsh(params["G"])
    return float(values[0] / (np.abs(values).max() or 1))


def out_of_range(sizes: dict[str, int], params: dict[str, Any]) -> float:
    """The length of c where G is 0 to rounding, over that of c: along it the loss falls without end, as of no data."""
    values, vectors = np.linalg.eigh(params["G"])
    flat = vectors[:, values <= ROUNDING * np.abs(values).max()]
    return float(np.linalg.norm(np.asarray(params["c"]) @ flat) / (np.linalg.norm(params["c"]) or 1))


DATA = (
    Param(G, correlated, Interval(-oo, oo), "covariance of the inputs, symmetric and positive"),
    Param(skew, asymmetry, Interval(-oo, oo), "|G - G^T| over |G|, by the largest entries, which follows from it"),
    Param(least, least_eigenvalue, Interval(-oo, oo), "least eigenvalue of G over its largest, which follows from it"),
    Param(c, of_target, Interval(-oo, oo), "correlation of inputs and output"),
    Param(outside, out_of_range, Interval(-oo, oo), "part of c outside of the range of G, which follows from them"),
)
CONSTRAINTS = (
    Constraint("G is symmetric", skew, "==0", ROUNDING),
    Constraint("G is a covariance, without an eigenvalue below 0", least, ">=0", ROUNDING),  # of fewer samples than inputs it is 0
    # the flat directions of data are known to ROUNDING over the gap to the next eigenvalue, and c is small along the next one
    Constraint("c is in the range of G, as of any data", outside, "==0", 1e-8),
)


def loss_of(beta: Any) -> Any:
    """beta^T G beta / 2 - c.beta: the squared loss without its constant; beta of an index."""
    return over(Sum, beta(i) * over(Sum, G[i, j] * beta(j), (j, d)), (i, d)) / 2 - over(Sum, c[i] * beta(i), (i, d))


def uncorrelated(t: float, x0: np.ndarray, product: np.ndarray, params: dict[str, Any]) -> np.ndarray:
    """x (d,) at time t of x' = c - G beta, beta = product sinh(2 x), for diagonal G: exp(2 x) moves between two roots."""
    kappa, c = np.diag(params["G"]) * product, params["c"]
    r = np.hypot(c, kappa)
    high = np.where(c >= 0, (c + r) / kappa, kappa / np.where(c >= 0, 1, r - c))  # no difference of numbers nearly alike
    low = np.where(c >= 0, -kappa / np.where(c >= 0, c + r, 1), (c - r) / kappa)
    y0 = np.exp(2 * x0)
    share = (y0 - high) / (y0 - low) * np.exp(-2 * r * t)
    return np.asarray(np.log((high - low * share) / (1 - share)) / 2)


def saddles(G: Any, c: Any) -> list[tuple[float, np.ndarray]]:
    """(tau, beta (d,)) of the jumps of a start that goes to 0, in the time t / ln(1/alpha), up to the last.

    s moves with the slope c - G beta until a coordinate comes to 1 or -1. beta is then the least loss with the sign of s where |s| = 1,
    and 0 elsewhere: a problem of least squares with signs, by scipy.
    """
    G, c = np.asarray(G, float), np.asarray(c, float)
    L = np.linalg.cholesky(G)
    s, beta, tau, jumps = np.zeros_like(c), np.zeros_like(c), 0.0, list[tuple[float, np.ndarray]]()
    while True:
        slope = c - G @ beta
        slope[np.abs(slope) < 1e-12] = 0
        free = (slope != 0) & ~((np.abs(s) == 1) & (np.sign(s) * slope > 0))
        waits = np.full_like(c, np.inf)
        waits[free] = (1 - np.sign(slope[free]) * s[free]) / np.abs(slope[free])
        if not np.isfinite(waits).any():
            return jumps
        step = waits.min()
        tau, s = tau + step, s + step * slope
        s[waits <= step * (1 + 1e-12)] = np.sign(slope[waits <= step * (1 + 1e-12)])
        awake = np.abs(s) == 1
        beta = np.zeros_like(c)
        beta[awake] = s[awake] * nnls(L.T[:, awake] * s[awake], np.linalg.solve(L, c))[0]
        jumps.append((float(tau), beta.copy()))

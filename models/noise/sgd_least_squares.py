"""Stochastic gradients of least squares as a diffusion: delta = w - w* falls to the optimum and stays around it at the noise's level.

Inputs x ~ N(0, diag(lam)), labels w*.x + N(0, s2), mini-batches of B drawn anew. The gradient of a batch has the mean lam delta and the
covariance (1/B) (diag(lam) (q + s2) + (lam delta)(lam delta)^T), q = sum_j lam_j delta_j^2: that is one channel for each weight, and
one, C, that shakes all along the gradient. Time is the learning rate eta times steps of SGD.

second = 1 adds the drift -(eta/2) lam^2 delta: with it the law is that of SGD to order eta^2, without it (second = 0) to order eta.
"""

from collections.abc import Mapping

from sympy import Interval, Sum, oo, sqrt, symbols

from odesim.symbolic import IndexedBase, Param, Source, System, index, over, sizes

i, j = index("i j")
(D,) = sizes("D")
delta, lam, W = (IndexedBase(name, shape=(D,)) for name in ("delta", "lam", "W"))
C = symbols("C")
eta, B, s2, second = symbols("eta B s2 second", nonnegative=True)
rate = lam[i] * (1 + second * eta * lam[i] / 2)
q = over(Sum, lam[j] * delta[j] ** 2, (j, D))


def variances(sizes: Mapping[str, int]) -> list[float]:
    """2, 1, 2/3, ..."""
    return [2 / (1 + n) for n in range(sizes["D"])]


SYSTEM = System(
    name="noise.sgd_least_squares",
    source=Source("li2017stochastic", "Theorem 1", "least squares with Gaussian inputs, where the covariance is exact"),
    axes={i: D, j: D},
    equations={delta[i]: -rate * delta[i]},
    noise={delta[i]: {W[i]: sqrt(eta * lam[i] * (q + s2) / B), C: sqrt(eta / B) * lam[i] * delta[i]}},
    step=0.01,
    params=(
        Param(lam, variances, Interval.open(0, oo), "variances of the inputs"),
        Param(eta, 0.05, Interval(0, oo), "learning rate"),
        Param(B, 1.0, Interval.open(0, oo), "size of a mini-batch"),
        Param(s2, 0.25, Interval(0, oo), "variance of the noise of labels"),
        Param(second, 0.0, Interval(0, 1), "weight of the drift of the second order in eta"),
    ),
    initial={delta[i]: (-1.0) ** i},
    sizes={D: 3},
    span=(0.0, 10.0),
    time="steps times learning rate",
    observables={"risk": q / 2},
    display={"rate": rate, "q": q},
)

"""Muon on |W - A|^2 / 2: each step has all singular directions of its gradient at nearly one length.

The velocity V <- beta V + (1 - beta) G, looked ahead by Nesterov, is divided by its norm and goes five times through the polynomial of
optimisers.newton_schulz, as a matrix. So singular values of W rise at rates of .68 to 1.13 of lr, whatever they are of A, until each is
there: with the exact polar factor, and no momentum, from W = 0 they would be min(t, s_i), as optimisers.sign has it.

Assumed: at most as many rows as columns, where the published step has no further factor.
"""

from typing import Any

import numpy as np
from sympy import Interval, Sum, oo, sqrt, symbols

from odesim.symbolic import IndexedBase, Map, Param, Source, index, layers, named, over, sizes

i, j, k, l = index("i j k l")
m, n = sizes("m n")
W, V, A = (IndexedBase(name, shape=(m, n)) for name in "WVA")
lr = symbols("lr", positive=True)
beta = symbols("beta", nonnegative=True)
a, b, c = 3.4445, -4.7750, 2.0315


def target(sizes: dict[str, int]) -> Any:
    """A (m, n): 2, 1, 2/3, ... on its diagonal, and a little beside it."""
    A = 0.1 * np.cos(np.arange(sizes["m"])[:, None] + 2 * np.arange(sizes["n"]))
    at = np.arange(min(A.shape))
    A[at, at] += 2 / (1 + at)
    return A


G = W[i, j] - A[i, j]
velocity = beta * V[i, j] + (1 - beta) * G
ahead = named("ahead", (1 - beta) * G + beta * velocity, (i, m), (j, n))
first = named("X", ahead[i, j] / (sqrt(over(Sum, ahead[k, l] ** 2, (k, m), (l, n))) + 1e-7), (i, m), (j, n))


def polynomial(number: int, X: Any) -> Any:
    """a X + (b X X^T + c (X X^T)^2) X."""
    square = named(f"B{number + 1}", over(Sum, X[i, l] * X[k, l], (l, n)), (i, m), (k, m))
    cubic = named(f"C{number + 1}", over(Sum, square[i, k] * X[k, j], (k, m)), (i, m), (j, n))
    return a * X[i, j] + b * cubic[i, j] + c * over(Sum, square[i, k] * cubic[k, j], (k, m))


step = layers(5, polynomial, first[i, j], name="X")[-1]

SYSTEM = Map(
    name="optimisers.muon",
    source=Source("jordan2024muon", "muon.py"),
    axes={i: m, k: m, j: n, l: n},
    updates={W[i, j]: W[i, j] - lr * step[i, j], V[i, j]: velocity},
    params=(
        Param(A, target, Interval(-oo, oo), "what W is to be"),
        Param(lr, 0.02, Interval.open(0, oo), "learning rate"),
        Param(beta, 0.0, Interval.Ropen(0, 1), "memory of the velocity"),
    ),
    initial={W[i, j]: 0, V[i, j]: 0},
    sizes={m: 3, n: 3},
    steps=60,
    observables={"loss": over(Sum, G**2, (i, m), (j, n)) / 2},
)

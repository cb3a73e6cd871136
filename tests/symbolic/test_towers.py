"""Two layers of one name with letters of their own, added, multiplied and divided: the numbers of numpy."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sympy import KroneckerDelta, Sum, tanh

from odesim.base.arrays import Array
from odesim.symbolic import IndexedBase, Param, System, index, inverse, layers, named, over, sizes, solve
from tests.support.products import rates
from tests.support.systems import REAL, SOURCE

a, b, i, j, k, p, q, r = index("a b i j k p q r")
(K,) = sizes("K")
x, A, B = (IndexedBase(name, shape=(K, K)) for name in "xAB")

Letters = tuple[Any, Any, Any]
Element = Callable[[Any, Any], Any]


def tower(W: Any, u: Any, v: Any, w: Any) -> Element:
    h = layers(2, lambda l, h: tanh(over(Sum, W[u, w] * h[w, v], (w, K))) + l, x[u, v])
    return lambda c, d: h[2][c, d]


def inverted(W: Any, u: Any, v: Any, w: Any) -> Element:
    X = inverse(W[u, v] + x[v, u] + 5 * KroneckerDelta(u, v), (u, K), (v, K))
    return lambda c, d: X[c, d]


def solved(W: Any, u: Any, v: Any, w: Any) -> Element:
    X = solve(W[u, v] + 5 * KroneckerDelta(u, v), over(Sum, x[u, w] * W[w, u], (w, K)), (u, K), (v, K))
    return lambda c, d: X[c] * x[c, d]


def given(W: Any, u: Any, v: Any, w: Any) -> Element:
    X = named("G", over(Sum, W[u, w] * x[w, v], (w, K)), (u, K), (v, K))
    return lambda c, d: X[c, d]


KINDS: dict[str, tuple[Callable[..., Element], Callable[[Array, Array], Array]]] = {
    "layers": (tower, lambda W, x: np.tanh(W @ np.tanh(W @ x)) + 1),
    "inverse": (inverted, lambda W, x: np.linalg.inv(W + x.T + 5 * np.eye(3))),
    "solve": (solved, lambda W, x: np.linalg.solve(W + 5 * np.eye(3), np.einsum("uw,wu->u", x, W))[:, None] * x),
    "named": (given, lambda W, x: W @ x),
}
LETTERS: tuple[tuple[Letters, Letters], ...] = (((i, j, k), (p, q, r)), ((i, j, k), (j, i, k)), ((a, b, i), (q, p, j)))


@pytest.mark.parametrize("letters", LETTERS, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_two_of_one_name(kind: str, letters: tuple[Letters, Letters]) -> None:
    """X + Y, X Y and X/(1 + Y^2) by element, also with Y transposed; Y is of other weights, or the same array in other letters."""
    make, numbers = KINDS[kind]
    rng = np.random.default_rng(0)
    weights, start = {"A": rng.normal(size=(3, 3)), "B": rng.normal(size=(3, 3))}, rng.normal(size=(3, 3))
    for name, W in (("A", A), ("B", B)):
        X, Y = make(A, *letters[0]), make(W, *letters[1])
        s = System(
            name="test.two", source=SOURCE, axes={a: K, b: K}, params=(Param(A, 1.0, REAL, ""), Param(B, 1.0, REAL, "")), sizes={K: 3},
            equations={x[a, b]: X(a, b) + 2 * Y(a, b) + X(a, b) * Y(b, a) - X(a, b) / (1 + Y(a, b) ** 2)}, initial={x[a, b]: 0.0},
        )  # fmt: skip
        out = rates(s, {"K": 3}, weights, start.ravel())
        left, right = numbers(weights["A"], start), numbers(weights[name], start)
        np.testing.assert_allclose(out.reshape(3, 3), left + 2 * right + left * right.T - left / (1 + right**2), rtol=1e-11)

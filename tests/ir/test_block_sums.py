"""Sums over the block of an element: each is computed once a block and read where the element's index parameter points."""

from typing import Any

import numpy as np
import pytest
from sympy import KroneckerDelta, S, Sum, exp, tanh

from odesim.ir.passes import lower
from odesim.symbolic import IndexedBase, Param, System, at, index, over, sensitivities, sizes
from odesim.targets.compiled import compile_system
from tests.support.products import backward, jacobian, rates
from tests.support.systems import REAL, SOURCE

(i, j, g), (D, B) = index("i j g"), sizes("D B")
x, w, blk = (IndexedBase(name, shape=(D,)) for name in ("x", "w", "blk"))


def total(f: Any) -> Any:
    """The sum of f[j] over block g."""
    return over(Sum, KroneckerDelta(g, blk[j]) * f, (j, D))


def picked(e: Any) -> Any:
    """The entry of e at the block of i."""
    return over(Sum, KroneckerDelta(g, blk[i]) * e, (g, B))


BLOCK = np.array([0, 2, 1, 2, 0])
SAME = (BLOCK[:, None] == BLOCK).astype(float)  # 1 where two elements share a block
FORMS: dict[str, tuple[Any, Any]] = {  # {what: (right-hand side of x[i], the same in numpy)}
    "a sum": (picked(total(w[j] * x[j])), lambda x, w: SAME @ (w * x)),
    "a function of it": (x[i] * picked(tanh(total(x[j])) ** 2), lambda x, w: x * np.tanh(SAME @ x) ** 2),
    "softmax in blocks": (exp(x[i]) / picked(total(exp(x[j]))), lambda x, w: np.exp(x) / (SAME @ np.exp(x))),
    "with a term": (picked(w[i] + total(x[j])) * x[i], lambda x, w: (w + SAME @ x) * x),
    "by substitution": (tanh(at(total(w[j] * x[j]), {g: blk[i]})) - x[i], lambda x, w: np.tanh(SAME @ (w * x)) - x),
}


def system(what: str) -> System:
    return System(
        name="test.blocks", source=SOURCE, axes={i: D, g: B}, equations={x[i]: FORMS[what][0]}, initial={x[i]: 0.1},
        params=(Param(blk, 0, S.Naturals0, "the block of an element", indexes=B), Param(w, 1.0, REAL, "a weight")),
    )  # fmt: skip


@pytest.mark.first(2)
@pytest.mark.parametrize("what", FORMS)
def test_values_and_cost(what: str) -> None:
    """The right-hand side and its products with vectors are those of numpy, by loops over one index."""
    s, f = system(what), FORMS[what][1]
    assert max(len(statement.loops) for statement in lower(s).statements()) == 1
    assert max(len(statement.loops) for statement in lower(sensitivities(s, "x")).statements()) == 2  # and one for the start
    y, w, u = np.random.default_rng(0).normal(size=(3, 5))
    sizes_, params = {"D": 5, "B": 3}, {"blk": BLOCK, "w": w}
    bound = compile_system(s).bind(sizes_, params)
    np.testing.assert_allclose(rates(s, sizes_, params, y), f(y, w), rtol=1e-13)
    J = np.array([f(y + 1e-6 * e, w) - f(y - 1e-6 * e, w) for e in np.eye(5)]).T / 2e-6
    np.testing.assert_allclose(jacobian(bound, 0.0, y).dense(), J, atol=1e-8)  # the rounding of differences
    np.testing.assert_allclose(backward(bound, 0.0, y, u), u @ J, atol=1e-8)

"""What counts as affine in the states and in time."""

from typing import Any

import pytest
from sympy import Integer, Interval, Max, Sum, exp, log, oo, symbols

from odesim.symbolic import IndexedBase, Param, Source, System, index, over, sizes, time
from odesim.transforms.events import is_affine

(k,), (K,) = index("k"), sizes("K")
v, a = (IndexedBase(name, shape=(K,)) for name in ("v", "a"))
u, c = symbols("u c", real=True)
SYSTEM = System(
    name="test.affine",
    source=Source("none", "test"),
    axes={k: K},
    equations={v[k]: -a[k] * v[k], u: -u},
    params=(Param(a, 1.0, Interval(0, oo), "rate"), Param(c, 1.0, Interval(0, oo), "number")),
    initial={v[k]: 1.0, u: 1.0},
    sizes={K: 3},
)
AFFINE = [u, v[k] - a[k] / 2, 2 * (u - c) - exp(c) * time, u - log(K - 1), over(Sum, a[k] * v[k], (k, K)) + u, v[0] - v[1], Integer(1)]
OTHERS = [u**2, u * v[k], u * time, exp(u), v[k] / u, over(Sum, v[k] ** 2, (k, K)), Max(u, c), abs(u), time**2]


@pytest.mark.parametrize("e", AFFINE, ids=str)
def test_affine(e: Any) -> None:
    """Sums of states and time, each times what stays the same."""
    assert is_affine(SYSTEM, e)


@pytest.mark.parametrize("e", OTHERS, ids=str)
def test_not_affine(e: Any) -> None:
    """Anything else, also where it would become affine by another writing."""
    assert not is_affine(SYSTEM, e)

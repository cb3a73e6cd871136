"""Long kernels: passes are functions of their own, equal ones one function; the numbers are those of one function."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sympy import Sum, tanh

import odesim
from odesim.ir.passes import lower
from odesim.runtime.constants import SEPARATE
from odesim.symbolic import IndexedBase, Param, System, gradient_flow, index, layers, over, sizes
from odesim.targets import numba_text as kernels
from odesim.targets.numba_module import module_text
from tests.support.systems import REAL, SOURCE

(a, b, i, j, n), (D, N) = index("a b i j n"), sizes("D N")
X = IndexedBase("X", shape=(D, N))
RUN: dict[str, Any] = {"method": "rk4", "step": 1e-3, "span": (0.0, 3e-3), "save": 2}
MODELS = (
    "joma.linear_softmax",
    "joma.joint_softmax",
    "scan_snap.full_decorrelated",
    "classics.committee",
    "galore.projected",
    "topics.reduced",
)


def deep(depth: int) -> System:
    """Gradient descent of |h_L|^2/2."""
    W = [IndexedBase(f"W{l}", shape=(D, D)) for l in range(depth)]
    h = layers(depth, lambda l, h: tanh(over(Sum, W[l][i, j] * h[j, n], (j, D))), X[i, n])
    equations = gradient_flow(over(Sum, h[depth][i, n] ** 2, (i, D), (n, N)) / 2, {w[a, b]: 1 for w in W})
    return System(
        name="test.deep", source=SOURCE, axes={a: D, b: D}, equations=equations, params=(Param(X, 1.0, REAL, "inputs"),),
        initial={w[a, b]: 0.3 + a - 0.5 * b for w in W}, sizes={D: 3, N: 2}, span=(0.0, 0.2),
    )  # fmt: skip


def source(depth: int, *, strict: bool = False) -> str:
    made = deep(depth)
    return module_text(made, lower(made), dtype="float64", strict=strict).source


@pytest.mark.first(1)
@pytest.mark.parametrize("strict", [False, True])
def test_layers_share_functions(strict: bool) -> None:
    """The functions of 8 layers are those of 16 to the letter; each layer calls some."""
    few, many = (source(depth, strict=strict) for depth in (8, 16))
    own = [text.split("\n\n\ndef rhs(")[0].split("@kernel\ndef rhs(")[0].split("import tanh", 1)[1] for text in (few, many)]
    assert own[0] == own[1] and 5 < own[0].count(f"def {SEPARATE}") < 20
    calls = [text.count(f"    {SEPARATE}") for text in (few, many)]
    assert calls[0] > 8 * 4 and abs(calls[1] - 2 * calls[0]) < 8
    assert SEPARATE not in source(4)


@pytest.mark.slow
def test_deep_layers() -> None:
    """numba is numpy, to the roundings of 30 products."""
    found, want = (odesim.integrate(deep(8), backend=backend, **RUN) for backend in ("numba", "numpy"))
    for name in want.final:
        np.testing.assert_allclose(found.final[name], want.final[name], rtol=1e-13, atol=1e-14)


@pytest.mark.first(1)
@pytest.mark.parametrize("model", MODELS)
def test_numbers_do_not_change(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Split after every pass: numbers, sums and maxima that later passes read are handed on; the strict bits are the same."""
    made = odesim.load_model(model)
    one = odesim.integrate(made, strict=True, **RUN)
    monkeypatch.setattr(kernels, "MANY", 1)
    again = replace(made)  # what is compiled of a System is kept with it
    assert SEPARATE in module_text(again, lower(again), dtype="float64", strict=True).source
    split = odesim.integrate(again, strict=True, **RUN)
    for name in one.final:
        np.testing.assert_array_equal(split.final[name], one.final[name], err_msg=name)

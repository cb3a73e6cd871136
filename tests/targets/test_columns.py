"""Loops that read a column or a diagonal of an array beside rows: numpy's numbers, without an index that might be negative."""

import re
from typing import Any

import numpy as np
import pytest
from sympy import S, Sum, exp

from odesim.symbolic import IndexedBase, Param, System, index, over, sizes
from odesim.targets.compiled import compile_system
from tests.support.products import rates
from tests.support.systems import REAL, SOURCE

(i, j, k), (D, N, M) = index("i j k"), sizes("D N M")
x, W = IndexedBase("x", shape=(D,)), IndexedBase("W", shape=(D, D))
Z, p, at = IndexedBase("Z", shape=(D, N, M)), IndexedBase("p", shape=(N,)), IndexedBase("at", shape=(D,))
FORMS: dict[str, tuple[Any, Any]] = {  # {what: (right-hand side of x[i], the same in numpy)}
    "a column": (over(Sum, exp(W[j, i] * x[j]), (j, D)), lambda x, W, Z, p: np.exp(W.T * x).sum(axis=1)),
    "a diagonal": (
        over(Sum, exp(W[i, j] * x[j] + W[j, j]), (j, D)),
        lambda x, W, Z, p: np.exp(W * x + W.diagonal()).sum(axis=1),
    ),
    "of three axes": (
        over(Sum, exp(p[j]) * over(Sum, exp(Z[i, j, k] * p[j]), (k, M)), (j, N)),
        lambda x, W, Z, p: (np.exp(p) * np.exp(Z * p[:, None]).sum(axis=2)).sum(axis=1),
    ),
    "gathered": (over(Sum, exp(W[at[j], i] * x[j]), (j, D)), lambda x, W, Z, p: np.exp(W[::-1].T * x).sum(axis=1)),
}


@pytest.mark.first(1)
@pytest.mark.parametrize("backend", ["numba", "numpy"])
@pytest.mark.parametrize("what", FORMS)
def test_values(what: str, backend: str) -> None:
    """The right-hand side is numpy's, up to rounding."""
    form, want = FORMS[what]
    params = (
        Param(W, 0.5, REAL, "a matrix"), Param(Z, 0.5, REAL, "three axes"), Param(p, 0.5, REAL, "weights"),
        Param(at, 0, S.Naturals0, "a place", indexes=D),
    )  # fmt: skip
    system = System(name="test.columns", source=SOURCE, axes={i: D, j: D, k: M}, equations={x[i]: form}, initial={x[i]: 0.1}, params=params)
    if what in {"a column", "a diagonal"} and backend == "numba":
        text = compile_system(system).source
        loops = re.findall(r"store\(.*", text)
        assert loops and not any("W[" in line for line in loops)
    rng = np.random.default_rng(0)
    values = {"W": rng.normal(size=(5, 5)), "Z": rng.normal(size=(5, 3, 4)), "p": rng.normal(size=3), "at": np.arange(5)[::-1]}
    y = rng.normal(size=5)
    used = {name: value for name, value in values.items() if name in {str(q.symbol) for q in system.params}}
    out = rates(system, {"D": 5, "N": 3, "M": 4}, used, y, backend)
    np.testing.assert_allclose(out, want(y, values["W"], values["Z"], values["p"]), rtol=1e-13)

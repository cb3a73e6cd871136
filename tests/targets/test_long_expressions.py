"""Expressions of hundreds of operands: their text is not nested deeply, and is written in a time that grows with its length."""

import ast
import math
from collections.abc import Callable

import numpy as np
import pytest
import sympy as sp

import odesim
from odesim.base.errors import CodegenError
from odesim.ir.passes import lower
from odesim.ir.scalars import Operation, parsed
from odesim.symbolic import System
from odesim.targets.expressions import Printer
from odesim.targets.unroll import write_out
from tests.support.systems import SOURCE

x = sp.Symbol("x", real=True)
LONG: dict[str, Callable[[list[sp.Expr]], sp.Expr]] = {
    "sum": lambda terms: sp.Add(*(term if k % 3 else -term for k, term in enumerate(terms))),
    "product": lambda terms: sp.Mul(*(1 + term for term in terms)),
    "quotient": lambda terms: 1 / sp.Mul(*(1 + term for term in terms)),
    "maximum": lambda terms: sp.Max(*terms, evaluate=False),
    "minimum": lambda terms: sp.Min(*terms, evaluate=False),
    "cases": lambda terms: sp.Piecewise(*((term, x < k / 1000) for k, term in enumerate(terms)), (0, True), evaluate=False),
}
WORDS = {"sin": math.sin, "maximum": max, "minimum": min}


def depth(node: ast.AST) -> int:
    return 1 + max(map(depth, ast.iter_child_nodes(node)), default=0)


@pytest.mark.first(2)
@pytest.mark.parametrize("value", [0.0004, 0.3, 0.8])
@pytest.mark.parametrize("name", LONG)
def test_values_and_depth(name, value):
    """1000 operands: the value is that of numpy but for rounding, and no bracket is deeper than compilers allow."""
    text = Printer(set()).text(LONG[name]([sp.sin(k * x) / k for k in range(1, 1001)]))
    tree = ast.parse(text, mode="eval")
    assert depth(tree) < 200
    truth: dict[str, Callable[[np.ndarray], float]] = {
        "sum": lambda s: sum(-s[k] if k % 3 == 0 else s[k] for k in range(1000)),
        "product": lambda s: np.prod(1 + s),
        "quotient": lambda s: 1 / np.prod(1 + s),
        "maximum": np.max,
        "minimum": np.min,
        "cases": lambda s: s[int(value * 1000) + 1],
    }
    want = truth[name](np.sin(np.arange(1, 1001) * value) / np.arange(1, 1001))
    got = eval(compile(tree, "expression", "eval"), {"x": value, **WORDS})
    assert got == pytest.approx(float(want), rel=1e-11, abs=1e-11)  # rounding of 1000 operations of size 1


@pytest.mark.parametrize("sign", ["+", "-", "*", "/"])
def test_a_chain_is_written_once(sign):
    """The text of a chain of 60 operations: each operand is written once, where twice would be 2^60 of them."""
    chain = "a"
    for k in range(60):
        chain = f"{chain} {sign} b{k}"
    operation = parsed(chain)
    assert isinstance(operation, Operation) and str(operation) == chain


def long_system(count: int) -> System:
    rate = sum((k + 1) * (x - sp.Float(k / 100)) ** 2 for k in range(count)) / -(count**2)
    return System(name="long", source=SOURCE, axes={}, equations={x: rate}, params=(), initial={x: 0.3}, span=(0.0, 0.5))


def test_written_out():
    """A right-hand side of 300 terms without loops, against the same sum by numpy."""
    system = long_system(300)
    formulas = write_out(system, lower(system), {}, {})
    names: dict[str, float] = {"y0": 0.7}
    exec("\n".join(formulas.lines), {"powi": pow}, names)
    k = np.arange(300)
    assert names[formulas.outputs[0]] == pytest.approx(float(np.sum((k + 1) * (0.7 - k / 100) ** 2) / -(300**2)), rel=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["tsit5", "rodas5p"])
def test_members_are_runs(method):
    """The ensemble of a sum of 150 terms, and the run."""
    system = long_system(150)
    run = odesim.integrate(system, method=method, rtol=1e-9, atol=1e-12).y["x"][-1]
    members = odesim.ensemble(system, initial={"x": [0.3, 0.3]}, method=method, rtol=1e-9, atol=1e-12).x[:, -1]
    np.testing.assert_allclose(members, run, rtol=1e-8)


@pytest.mark.parametrize("backend", ["numba", "numpy"])
def test_an_exponent_beyond_int64(backend):
    """One sentence, at once."""
    system = System(name="steep", source=SOURCE, axes={}, equations={x: -(x ** (10**30))}, params=(), initial={x: 0.3}, span=(0.0, 1.0))
    for method in ("tsit5", "rodas5p"):
        with pytest.raises(CodegenError, match=r"the exponent in x\*\*(1000|999).* is above 2\^63"):
            odesim.integrate(system, method=method, backend=backend)
    with pytest.raises(CodegenError, match="above 2"):
        odesim.ensemble(system, initial={"x": [0.3, 0.4]})

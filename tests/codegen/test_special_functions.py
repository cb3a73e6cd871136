"""Special functions on every path from a System to numbers: values, slopes, printed forms, typed events, refusals."""

from typing import Any

import mpmath as mp
import numpy as np
import pytest
import sympy as sp
from sympy import Symbol, binomial, symbols

import odesim
from odesim.codegen.compiled import compile_system
from odesim.codegen.unrolled.elimination import sparse_system
from odesim.codegen.unrolled.formulas import write_out
from odesim.codegen.unrolled.operations import printed
from odesim.errors import SpecError
from odesim.symbolic import IndexedBase, Param, System, index, sizes
from odesim.symbolic.derive import directional_derivative
from odesim.symbolic.mathml import MathML
from tests.codegen.unrolled.test_elimination import WORDS
from tests.support.systems import SOURCE

x = Symbol("x", real=True)
INSIDE: dict[str, tuple[Any, Any, tuple[float, ...]]] = {
    "asinh": (sp.asinh(x), mp.asinh, (-3.0, 0.2, 40.0)),
    "acosh": (sp.acosh(x), mp.acosh, (1.1, 2.0, 40.0)),
    "atanh": (sp.atanh(x), mp.atanh, (-0.9, 0.1, 0.99)),
    "erfc": (sp.erfc(x), mp.erfc, (-2.0, 0.3, 6.0)),
    "sinc": (sp.sinc(x), mp.sinc, (-0.5, 0.9, 1.5, 30.0)),
    "jn": (sp.jn(1, x), lambda a: (mp.sin(a) / a - mp.cos(a)) / a, (-0.5, 0.9, 3.0, 30.0)),
}
"""{name: (expression, the same by mpmath, places)}"""
AT_ZERO = {"asinh": 1.0, "atanh": 1.0, "erfc": -2 / np.sqrt(np.pi), "sinc": 0.0, "jn": 1 / 3}
"""Slopes at 0, where the formulas of some of them are 0/0."""


POINTS = [(name, at) for name, (_, _, places) in INSIDE.items() for at in places]
a = symbols("a")


def together(rates: list[Any], scale: Any = 1) -> System:
    """One System with a state for each rate, in which x is the state."""
    keys = [Symbol(f"x{n}", real=True) for n in range(len(rates))]
    return System(
        name="many",
        source=SOURCE,
        axes={},
        equations={key: scale * rate.xreplace({x: key}) for key, rate in zip(keys, rates, strict=True)},
        params=(Param(a, 0.1, sp.Interval(0, 1), ""),) if scale != 1 else (),
        initial=dict.fromkeys(keys, 0.3),
        span=(0.0, 1.0),
    )


def right_side(rates: list[Any], at: Any, backend: str, *, strict: bool = False) -> Any:
    """The rates at these values of x, computed as one right-hand side."""
    bound = compile_system(together(rates), backend=backend, strict=strict).bind({}, {})
    out = np.empty(len(rates))
    bound(0.0, np.array(at, dtype=float), out)
    return out[np.argsort([int(name[1:]) for name in bound.layout.names])]


def line_slopes(rates: list[Any], at: Any) -> Any:
    """The derivatives of the written-out right-hand side, by Python with numpy's words."""
    system = together(rates)
    linear = sparse_system(write_out(system, compile_system(system).program, {}, {}))
    known: dict[str, Any] = {**WORDS, "t": 0.0, **{f"y{k}": float(y) for k, y in enumerate(at)}}
    exec("\n".join(printed(linear.code)), known)
    lines, out = linear.tangent({f"y{k}": "1.0" for k in range(len(rates))})
    exec("\n".join(lines), known)
    return np.array([float(eval(out[f"y{k}"], known)) for k in range(len(rates))])


def test_values_and_slopes():
    """numpy, numba and strict numba have the value; the symbolic slope, its slope, and that of written-out lines those of mpmath."""
    rates, at = [INSIDE[name][0] for name, _ in POINTS], [place for _, place in POINTS]
    with mp.workdps(40):
        value, first, second = ([float(mp.diff(INSIDE[name][1], mp.mpf(p), k)) for name, p in POINTS] for k in range(3))
    slopes = [directional_derivative(e, {"x": lambda _: sp.S.One}) for e in rates]
    bends = [directional_derivative(e, {"x": lambda _: sp.S.One}) for e in slopes]
    for backend, strict in (("numpy", False), ("numba", False), ("numba", True)):
        np.testing.assert_allclose(right_side(rates, at, backend, strict=strict), value, rtol=4e-15)
    # a derivative is a formula of some ten operations
    np.testing.assert_allclose(right_side(slopes, at, "numpy"), first, rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(right_side(slopes, at, "numba", strict=True), first, rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(right_side(bends, at, "numpy"), second, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(line_slopes(rates, at), first, rtol=1e-13, atol=1e-15)


def test_slopes_at_0():
    """Where the formula of a slope would be 0/0."""
    rates, want = [INSIDE[name][0] for name in AT_ZERO], list(AT_ZERO.values())
    slopes = [directional_derivative(e, {"x": lambda _: sp.S.One}) for e in rates]
    np.testing.assert_allclose(right_side(slopes, [0.0] * len(rates), "numpy"), want, rtol=1e-15)
    np.testing.assert_allclose(line_slopes(rates, [0.0] * len(rates)), want, rtol=1e-15)


@pytest.mark.parametrize("method", ["tsit5", pytest.param("rodas5p", marks=pytest.mark.slow)])
def test_lanes_and_sensitivities(method):
    """x' = -a f(b + x/9): strict members in lanes have the bits of single runs; dx/da is the difference of two runs."""
    system = together([e.xreplace({x: places[1] + x / 9}) for e, _, places in INSIDE.values()], scale=-a)
    options: dict[str, Any] = {"rtol": 1e-9, "atol": 1e-12, "method": method}
    many = odesim.ensemble(system, params={"a": [0.1, 0.2]}, strict=True, **options)
    one = odesim.integrate(system, params={"a": 0.2}, strict=True, **options)
    assert all(many[state].values[1, -1] == one.y[state][-1] for state in system.states)
    options["backend"] = "numpy"
    slope = odesim.integrate(system, sensitivities="a", **options)
    low, high = (odesim.integrate(system, params={"a": 0.1 + h}, **options) for h in (-1e-4, 1e-4))
    for state in system.states:
        difference = (high.y[state][-1] - low.y[state][-1]) / 2e-4
        assert slope.y[f"d{state}_da"][-1] == pytest.approx(difference, rel=1e-6)  # the square of the difference of a


PRINTED = {
    "jn": (sp.jn(1, x), "j", "j_{1}"),
    "binomial": (binomial(Symbol("n", integer=True), Symbol("k", integer=True)), 'linethickness="0"', r"\binom{n}{k}"),
    "sinc": (sp.sinc(x), "<mi>sinc</mi>", "sinc"),
}


@pytest.mark.parametrize("name", PRINTED)
def test_printed_forms(name):
    """MathML and LaTeX have the field's signs."""
    e, mathml, latex = PRINTED[name]
    assert mathml in MathML().doprint(e)
    assert latex in sp.latex(e)


def test_binomial_takes_whole_numbers():
    """Of an index and a size it is the table of numpy and numba; of a state it is refused."""
    (i,), (n,) = index("i"), sizes("n")
    y = IndexedBase("y", shape=(n,))
    system = System(name="choices", source=SOURCE, axes={i: n}, equations={y[i]: binomial(n, i)}, params=(), initial={y[i]: 0}, span=(0, 1))
    for backend in ("numpy", "numba"):
        run = odesim.integrate(system, sizes={"n": 5}, method="tsit5", backend=backend)
        np.testing.assert_allclose(run.y["y"][-1], [1, 5, 10, 10, 5], rtol=1e-14)  # y' is constant
    with pytest.raises(SpecError, match=r"y\[i\] is no whole number; binomial\(\) takes"):
        System(name="choices", source=SOURCE, axes={i: n}, equations={y[i]: binomial(y[i], i)}, params=(), initial={y[i]: 0})

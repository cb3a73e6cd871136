"""Special functions on every path from a System to numbers: values, slopes, printed forms, typed events, refusals."""

from dataclasses import replace
from typing import Any

import mpmath as mp
import numpy as np
import pytest
import sympy as sp
from sympy import Symbol, binomial, symbols

import odesim
from odesim.base.errors import CodegenError, SpecError
from odesim.display.formulas import LatexPrinter
from odesim.ir.derive import directional_derivative
from odesim.ir.elimination import sparse_system
from odesim.ir.scalars import printed
from odesim.symbolic import IndexedBase, Param, System, index, sizes
from odesim.targets.compiled import compile_system
from odesim.targets.unroll import write_out
from tests.ir.test_elimination import WORDS
from tests.support.systems import SOURCE

x = Symbol("x", real=True)
INSIDE: dict[str, tuple[Any, Any, tuple[float, ...]]] = {
    "asin": (sp.asin(x), mp.asin, (-0.9, 0.3, 0.6)),
    "acos": (sp.acos(x), mp.acos, (-0.9, 0.3, 0.6)),
    "atan": (sp.atan(x), mp.atan, (-3.0, 0.3, 40.0)),
    "atan2": (sp.atan2(x, -2), lambda a: mp.atan2(a, -2), (-3.0, 0.3, 40.0)),
    "asinh": (sp.asinh(x), mp.asinh, (-3.0, 0.2, 40.0)),
    "acosh": (sp.acosh(x), mp.acosh, (1.1, 2.0, 40.0)),
    "atanh": (sp.atanh(x), mp.atanh, (-0.9, 0.1, 0.99)),
    "erfc": (sp.erfc(x), mp.erfc, (-2.0, 0.3, 6.0)),
    "sinc": (sp.sinc(x), mp.sinc, (-0.5, 0.9, 1.5, 30.0)),
    "jn": (sp.jn(1, x), lambda a: (mp.sin(a) / a - mp.cos(a)) / a, (-0.5, 0.9, 3.0, 30.0)),
    "upper W": (sp.LambertW(x), lambda a: mp.lambertw(a).real, (-0.35, -0.2, 0.4, 20.0)),
    "lower W": (sp.LambertW(x, -1), lambda a: mp.lambertw(a, -1).real, (-0.35, -0.2, -0.01)),
}
"""{name: (expression, the same by mpmath, places)}"""
COMPILED = tuple(name for name in INSIDE if name != "jn")
AT_ZERO = {
    "asinh": 1.0,
    "atanh": 1.0,
    "erfc": -2 / np.sqrt(np.pi),
    "sinc": 0.0,
    "jn": 1 / 3,
    "upper W": 1.0,
}
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
    compiled = compile_system(together(rates), backend=backend, strict=strict)
    if backend == "numpy":
        outputs = compiled.arrays({}, {"t": 0.0, **{f"x{n}": np.float64(value) for n, value in enumerate(at)}})
        return np.array([float(outputs[f"d_x{n}"]) for n in range(len(rates))])
    bound, out = compiled.bind({}, {}), np.empty(len(rates))
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


@pytest.mark.slow
def test_values_and_slopes():
    """numpy and strict numba have the value; the symbolic slope, its slope, and that of written-out lines those of mpmath."""
    rates, at = [INSIDE[name][0] for name, _ in POINTS], [place for _, place in POINTS]
    with mp.workdps(40):
        value, first, second = ([float(mp.diff(INSIDE[name][1], mp.mpf(p), k)) for name, p in POINTS] for k in range(3))
    slopes = [directional_derivative(e, {"x": lambda _: sp.S.One}) for e in rates]
    bends = [directional_derivative(e, {"x": lambda _: sp.S.One}) for e in slopes]
    np.testing.assert_allclose(right_side(rates, at, "numpy"), value, rtol=1e-14)  # docs/functions.md: some 20 ulp
    # a derivative is a formula of some ten operations
    np.testing.assert_allclose(right_side(slopes, at, "numpy"), first, rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(right_side(bends, at, "numpy"), second, rtol=1e-12, atol=1e-14)
    rows = [k for k, (name, _) in enumerate(POINTS) if name in COMPILED]
    chosen, places = [rates[k] for k in rows], [at[k] for k in rows]
    np.testing.assert_allclose(right_side(chosen, places, "numba", strict=True), np.array(value)[rows], rtol=4e-15)
    np.testing.assert_allclose(line_slopes(chosen, places), np.array(first)[rows], rtol=1e-13, atol=1e-15)
    sincs = [k for k, (name, _) in enumerate(POINTS) if name == "sinc"]  # its symbolic slope is compiled too
    found = right_side([slopes[k] for k in sincs], [at[k] for k in sincs], "numba", strict=True)
    np.testing.assert_allclose(found, np.array(first)[sincs], rtol=1e-13, atol=1e-15)


def test_what_is_computed_on_arrays_is_refused_elsewhere():
    """One sentence that names the function and what to choose, for one run and for members; numpy runs it."""
    system = together([sp.jn(2, 1 + x / 9)])
    for run in (lambda: odesim.integrate(system), lambda: odesim.ensemble(system, initial={"x0": [0.1, 0.2]})):
        with pytest.raises(CodegenError, match=r"^jn\(2, .*\) is computed on whole arrays, not in compiled code: choose"):
            run()
    assert odesim.integrate(system, backend="numpy").status == "ok"


def test_other_special_functions_are_refused():
    """One sentence with the functions that there are, when the System is built."""
    for e in (sp.besseli(0, x), sp.loggamma(x), sp.polygamma(1, x), sp.erfinv(x)):
        with pytest.raises(SpecError, match=rf"no function '{type(e).__name__}'; choose from"):
            together([e])


@pytest.mark.slow
def test_slopes_at_0():
    """Where the formula of a slope would be 0/0."""
    rates, want = [INSIDE[name][0] for name in AT_ZERO], list(AT_ZERO.values())
    slopes = [directional_derivative(e, {"x": lambda _: sp.S.One}) for e in rates]
    np.testing.assert_allclose(right_side(slopes, [0.0] * len(rates), "numpy"), want, rtol=1e-14)
    compiled = [name for name in AT_ZERO if name in COMPILED]
    found = line_slopes([INSIDE[name][0] for name in compiled], [0.0] * len(compiled))
    np.testing.assert_allclose(found, [AT_ZERO[name] for name in compiled], rtol=1e-15)


FEW = ("sinc", "erfc")


@pytest.mark.parametrize(
    ("method", "names"),
    [("tsit5", FEW), *(pytest.param(method, COMPILED, marks=pytest.mark.slow) for method in ("tsit5", "rodas5p"))],
)
def test_lanes_and_sensitivities(method, names):
    """x' = -a f(b + x/9): strict members in lanes have the bits of single runs; dx/da is the difference of two runs."""
    system = together([e.xreplace({x: places[1] + x / 9}) for e, _, places in (INSIDE[name] for name in names)], scale=-a)
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
    "jn": (sp.jn(1, x), "j_{1}"),
    "binomial": (binomial(Symbol("n", integer=True), Symbol("k", integer=True)), r"\binom{n}{k}"),
    "sinc": (sp.sinc(x), "sinc"),
    "lower W": (sp.LambertW(x, -1), "W_{-1}"),
}


@pytest.mark.parametrize("name", PRINTED)
def test_printed_forms(name):
    """LaTeX has the field's signs."""
    e, latex = PRINTED[name]
    assert latex in LatexPrinter().doprint(e)


WRONG = {
    "jn(37, y[i])": "the order 37 must be a whole number from 0 to 36",
    "jn(1/2, y[i])": "the order 1/2 must be a whole number",
    "LambertW(y[i], 1)": "1 is no branch of LambertW that is real; choose from 0, -1",
    "binomial(y[i], i)": "y[i] is no whole number; binomial() takes whole numbers, indices, sizes and parameters whose domain is",
}


@pytest.mark.parametrize("text", WRONG)
def test_arguments_are_checked(text):
    """One sentence when the System is built."""
    (i,), (n,) = index("i"), sizes("n")
    y = IndexedBase("y", shape=(n,))
    words = {name: getattr(sp, name) for name in ("jn", "LambertW", "binomial")}
    rate = eval(text.replace("1/2", "half"), {**words, "half": sp.S.Half, "y": y, "i": i, "a": a})
    with pytest.raises(SpecError) as error:
        System(name="wrong", source=SOURCE, axes={i: n}, equations={y[i]: rate}, params=(), initial={y[i]: 0})
    assert WRONG[text] in str(error.value) and "\n" not in str(error.value)


def test_binomial_takes_whole_numbers():
    """Of an index and a size, or a parameter of whole numbers, it is the table of numpy and numba; of a state it is refused."""
    (i,), (n,) = index("i"), sizes("n")
    y = IndexedBase("y", shape=(n,))
    system = System(name="choices", source=SOURCE, axes={i: n}, equations={y[i]: binomial(n, i)}, params=(), initial={y[i]: 0}, span=(0, 1))
    for backend in ("numpy", "numba"):
        run = odesim.integrate(system, sizes={"n": 5}, method="tsit5", backend=backend)
        np.testing.assert_allclose(run.y["y"][-1], [1, 5, 10, 10, 5], rtol=1e-14)  # y' is constant
    many = Param(Symbol("many", integer=True), 4, sp.Integers, "")
    system = replace(system, equations={y[i]: binomial(many.symbol, i - 1)}, params=(many,))
    for count, row in ((4, [0, 1, 4, 6, 4]), (1, [0, 1, 1, 0, 0]), (-2, [0] * 5)):
        run = odesim.integrate(system, sizes={"n": 5}, params={"many": count}, method="tsit5", backend="numpy")
        np.testing.assert_allclose(run.y["y"][-1], row, rtol=1e-14)

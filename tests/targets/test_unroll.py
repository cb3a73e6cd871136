"""Kernels written out without loops."""

import math
from dataclasses import replace

import numba
import numpy as np
import pytest

from odesim.base.errors import CodegenError
from odesim.ir.scalars import Formulas, Operation
from odesim.runtime import elementary
from odesim.runtime import stages as runtime
from odesim.symbolic import System, sensitivities
from odesim.targets.compiled import compile_system
from odesim.targets.unroll import write_out
from odesim.transforms.sensitivity import names_that_matter
from tests.support.systems import SYSTEMS, numbers

WORDS = {name: getattr(elementary, name) for name in ("exp", "log", "tanh", "expm1", "log1p", "erf", "pow")}
WORDS |= {name: getattr(runtime, name) for name in ("maximum", "minimum", "powi")} | {"sqrt": math.sqrt, "nan": math.nan, "inf": math.inf}
WORDS |= {"float32": numba.float32, "float64": numba.float64}


def function(f: Formulas, compiled: bool):
    """(t, y, p) -> the outputs, by Python or by numba without contraction."""
    lines = [*(f"y{k} = y[{k}]" for k in range(f.states)), *(f"p{k} = p[{k}]" for k in range(f.count)), *f.lines]
    text = "\n".join(["def right(t, y, p):", *(f"    {line}" for line in lines), f"    return ({', '.join(f.outputs)},)"])
    plain = {name: getattr(np, name, None) for name in ("exp", "log", "tanh", "expm1", "log1p", "sqrt")}
    plain |= {"maximum": max, "minimum": min, "powi": pow, "pow": pow, "nan": math.nan, "inf": math.inf, "erf": math.erf}
    words = dict(WORDS if compiled else plain)
    exec(text, words)
    return numba.njit(error_model="numpy")(words["right"]) if compiled else words["right"]


def written(system: System, big: int):
    """A test system written out for its numbers, with them and its parameters in one vector."""
    rhs, x = compile_system(system, strict=True), numbers(system, big=big)
    f = write_out(system, rhs.program, x.sizes, {p.name: x.params[p.name] for p in system.params if p.integer})
    return f, rhs, x, np.concatenate([[], *(np.ravel(np.asarray(x.params[n], float)) for n in f.values)])


def with_all_sensitivities(system: System) -> System:
    known = names_that_matter(system)
    return sensitivities(system, *(p.name for p in system.params if not p.integer and p.name in known), *system.states)


@pytest.mark.first(7)
@pytest.mark.parametrize(
    ("name", "big", "slopes"),
    [(name, 7, False) for name in SYSTEMS]
    + [(name, 70, False) for name in ("softmax", "mean_field", "two_of_one")]
    + [(name, 3, True) for name in SYSTEMS],
)
def test_written_out_is_the_right_side(name, big, slopes):
    """The straight lines compute what arrays do, for systems with sensitivities too; rounding of some hundred operations."""
    system = with_all_sensitivities(SYSTEMS[name]) if slopes else SYSTEMS[name]
    f, rhs, x, p = written(system, big)
    layout = rhs.layout(x.sizes)
    y = layout.join(x.states)
    truth = rhs.arrays(x.sizes, {**x.env, **layout.split(y)})
    want = layout.join({n: truth[f"d_{n}"] for n in layout.names})
    np.testing.assert_allclose(function(f, False)(x.env.get("t", 0.3), y, p), want, rtol=1e-12, atol=1e-12 * np.abs(want).max())


@pytest.mark.first(1)
@pytest.mark.parametrize(
    ("name", "big"),
    [("elementwise", 7), pytest.param("mean_field", 7, marks=pytest.mark.slow), ("mean_field", 70)],
)
def test_the_bits_of_strict_mode(name, big):
    """Operation by operation the kernel of strict mode, sums of more than 64 terms too."""
    f, rhs, x, p = written(SYSTEMS[name], big)
    bound = rhs.bind(x.sizes, x.params)
    y = bound.layout.join(x.states)
    out = np.empty_like(y)
    bound(0.3, y, out)
    np.testing.assert_array_equal(function(f, True)(0.3, y, p), out)


def test_a_system_too_large():
    """Beyond a bound nothing is written out."""
    with pytest.raises(CodegenError, match="operations"):
        written(SYSTEMS["softmax"], 100_000)


@pytest.mark.parametrize(
    ("name", "big"), [("softmax", 7), *(pytest.param(*row, marks=pytest.mark.slow) for row in (("elementwise", 7), ("mean_field", 70)))]
)
def test_the_bits_of_float32(name, big):
    """Numbers of float32 are rounded where the kernel stores them: the same bits again. A parameter without an axis is float64."""
    system = SYSTEMS[name]
    rhs, x = compile_system(system, dtype="float32", strict=True), numbers(system, big=big)
    f = write_out(system, rhs.program, x.sizes, {p.name: x.params[p.name] for p in system.params if p.integer}, "float32")
    values = np.concatenate([[], *(np.ravel(np.asarray(x.params[n], float)) for n in f.values)])
    bound = rhs.bind(x.sizes, x.params)
    y = bound.layout.join(x.states, "float32")
    out = np.empty_like(y)
    bound(0.3, y, out)
    casts = {f"p{k}": Operation("float32", (f"p{k}",)) for k in range(f.count) if k not in f.doubles}
    again = function(replace(f, code=casts | f.code), True)(0.3, y, values)
    np.testing.assert_array_equal(np.array(again), out)

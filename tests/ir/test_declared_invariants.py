"""Constants that a System declares: kept where they are linear in the states and the right-hand side does keep them, and nowhere else."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sympy import Eq, Expr, exp, log, sqrt, symbols

import odesim
from odesim.inputs.bind import bind
from odesim.ir.invariants import exact_sums, parameter_values
from odesim.symbolic import Invariant, System, time
from odesim.targets.compiled import compile_system
from odesim.targets.linearization import declared_invariants, verified_invariants
from odesim.targets.unroll import write_out
from tests.support.stiff_set import drag, states, system

y1, y2, y3, y4 = states(4)
p, q = symbols("p q", real=True)
first, second = p * exp(y1), q * exp(2 * y2)
norm = sqrt(first**2 + second**2)
pull = y3 * first + y4 * second


def of(name: str, right: tuple[Any, ...], law: Any, **more: Any) -> System:
    """A System of scalars with parameters p and q that declares that law is constant."""
    made = system(name, dict(zip((y1, y2, y3, y4), right, strict=False)), [1.0] * len(right), 1.0, {p: 0.7, q: 1.3})
    return replace(made, invariants=(Invariant("law", law, "constant", **more),))


ONWARD = (-p * y1 * y2, p * y1 * y2 / q)
# the System, and the weights that its law has where p = 0.7 and q = 1.3; () where it is not to be kept
TABLE: dict[str, tuple[System, tuple[float, ...]]] = {
    "weights": (of("weights", ONWARD, y1 + q * y2), (1.0, 1.3)),
    "quotients": (of("quotients", ONWARD, (y1 / q + y2) / p**2 + q), (1 / 1.3 / 0.49, 1 / 0.49)),
    "shares": (of("shares", (first / (first + second) - q / (q + p), second / (first + second) - p / (q + p)), y1 + y2), (1.0, 1.0)),
    "roots": (of("roots", (first / norm, -second * first / norm**2, (first / norm) ** 2 - 1, (second / norm) ** 2), y3 + y4), (1.0, 1.0)),
    "wrong": (of("wrong", ONWARD, y1 + p * y2), ()),
    "nearly": (of("nearly", (-p * y1, p * y1 * (1 + 1e-9)), y1 + y2), ()),
    "not linear": (of("squares", (y2, -y1), y1**2 + y2**2), ()),
    "a logarithm": (of("logarithm", ONWARD, log(exp(y1 + q * y2))), ()),
    "with time": (of("with_time", (-p * y1 + 1, p * y1), y1 + y2 - time), ()),
    "sometimes": (of("sometimes", ONWARD, y1 + q * y2, when=Eq(y1, 1)), ()),
    "one state": (of("one_state", (0 * y1, -y2), y1), ()),
}


def kept(made: System) -> Any:
    """The declared invariants with numbers."""
    known = bind(made)
    formulas = write_out(made, compile_system(made).program, known.sizes, {})
    found = verified_invariants(declared_invariants(made, known.sizes, {}), formulas)
    return tuple(i.with_numbers(parameter_values(formulas.values, i.reads, known.params, {})) for i in found)


@pytest.mark.parametrize("name", TABLE)
def test_declared_constants(name):
    """Their weights, and that a law which the right-hand side does not keep is not forced on it."""
    made, weights = TABLE[name]
    found = kept(made)
    assert len(found) == bool(weights)
    if weights:
        assert found[0].weights == pytest.approx(weights, rel=1e-15)


def test_weights_of_members():
    """Weights from parameters that members share and from their own."""
    made, rng = drag(), np.random.default_rng(0)
    formulas = write_out(made, compile_system(made).program, {}, {})
    (found,) = verified_invariants(declared_invariants(made, {}, {}), formulas)
    own, shared, starts = {"m2": rng.uniform(1, 2, 5)}, {"m1": 0.5, "k": 1.0}, rng.normal(size=(5, 2))
    sums = exact_sums(found, starts, parameter_values(formulas.values, found.reads, shared, own))
    assert sums == pytest.approx(0.5 * starts[:, 0] + own["m2"] * starts[:, 1], rel=1e-15)


@pytest.mark.first(1)
@pytest.mark.parametrize("way", ["single", "strict", pytest.param("lanes", marks=pytest.mark.slow)])
def test_declared_constants_are_kept(way):
    """Momentum 0 of velocities that fall to e^-24: to rounding of what they are, at the end and on the way there."""
    made, masses = drag(), np.array([0.5, 0.25, 2.0, 4.0])
    options: dict[str, Any] = {"method": "rodas5p", "save": 7, "rtol": 1e-6, "atol": 1e-20, "initial": {"v2": -2.0}}
    if way == "single":
        run = odesim.integrate(made, backend="numpy", **options)
        v1, v2, m1 = run.y["v1"][None], run.y["v2"][None], np.array([0.5])
    else:
        m1 = masses
        options |= {"initial": {"v1": 0.5 / masses, "v2": np.full(4, -2.0)}, "params": {"m1": masses}}
        many = odesim.ensemble(made, strict=way == "strict", **options)
        v1, v2 = many["v1"].values, many["v2"].values
    rate = 1 / m1 + 4
    assert v1[:, -1] == pytest.approx(v1[:, 0] * np.exp(-4 * rate), rel=1e-4)
    momentum, size = m1[:, None] * v1 + 0.25 * v2, np.abs(m1[:, None] * v1) + np.abs(0.25 * v2)
    assert np.all(np.abs(momentum) <= 4 * np.finfo(float).eps * size)


def test_expressions_are_as_written():
    """The table's laws are expressions of sympy: a law that is a number of Python would be none."""
    assert all(isinstance(made.invariants[0].expr, Expr) for made, _ in TABLE.values())

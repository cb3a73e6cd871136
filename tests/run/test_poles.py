"""Steps that pass over a pole of the right-hand side: a run that is ok has not, and what only looks like a pole ends none."""

from typing import Any

import numpy as np
import pytest
import sympy as sp
from scipy.special import lambertw
from sympy import Max

import odesim
from odesim.symbolic import Event, IndexedBase, Param, System, index, sizes
from tests.support.systems import REAL, SOURCE

q, p, x, L = sp.symbols("q p x L", real=True)
K = sp.Symbol("K", positive=True)
(i,), (N,) = index("i"), sizes("N")
Q = IndexedBase("Q", shape=(N,))
BOUNDS = 10.0 ** np.arange(0, -13, -1)


def model(equations: Any, initial: Any, **more: Any) -> System:
    return System("test.poles", SOURCE, {i: N}, equations, (Param(K, 1.0), Param(L, 0.0, REAL)), initial, sizes={N: 2}, **more)


SATURATED = {
    "one": model({q: -q / (K + q)}, {q: 1.0}, span=(0, 4)),
    "array": model({Q[i]: -Q[i] / (K + Q[i]), p: Q[0]}, {Q[i]: 1.0, p: 0.0}, span=(0, 4)),
    "never below 0": model({q: -Max(q, 0) / (K + Max(q, 0))}, {q: 1.0}, span=(0, 4)),
}


def right(bound: float) -> float:
    """q(4) of q' = -q/(K + q), q(0) = 1: q + K log q = 1 - 4 (Schnell and Mendoza 1997)."""
    return float(bound * lambertw(np.exp(-np.log(bound) - 3 / bound)).real)


@pytest.mark.parametrize("method", ["auto", "rodas5p"])
@pytest.mark.parametrize("form", SATURATED)
def test_no_wrong_number_is_ok(form: str, method: str) -> None:
    """From K = 1 to 1e-12 a run and a member end right, to 1e-6 of the start, or not at all; the remedy reaches every end."""
    members = odesim.ensemble(SATURATED[form], params={"K": BOUNDS}, method=method)
    name = "Q" if form == "array" else "q"
    for k, bound in enumerate(BOUNDS):
        run = odesim.integrate(SATURATED[form], params={"K": bound}, method=method)
        for ok, value in ((run.ok, run.final[name]), (members.status[k] == 0, members[name][k, -1])):
            assert np.abs(value - right(bound)).max() < 1e-6 if ok else form != "never below 0"
        assert run.ok or "a step passed over a pole of the right-hand side, where K + " in run.message


@pytest.mark.parametrize("rate", [sp.tanh(q), sp.exp(q) - 1])
def test_a_divisor_need_not_be_affine(rate: sp.Expr) -> None:
    """q' = -q/(K + r(q)) stays above 0; a run and a member to t = 2 with K = 1e-9 are not right, and not ok. K = 1 is."""
    system = model({q: -q / (K + rate)}, {q: 1.0}, span=(0, 2))
    run = odesim.integrate(system, params={"K": 1e-9})
    assert run.status == "non_finite" and f"where {K + rate} = 0" in run.message
    assert odesim.ensemble(system, params={"K": [1e-9, 1.0]}).status.values.tolist() == [4, 0]


LEGAL = {
    "large numbers": ({q: K / x, x: 1 - x}, {q: 0.0, x: 1e200}, ()),
    "a factor that is 0": ({q: L**2 / x**3 - 1, x: -1}, {q: 1.0, x: 1.0}, ()),
    "poles that cancel": ({q: 1 / x - 2 / (x * (x + 2)), x: -1}, {q: 0.0, x: 1.0}, ()),
    "inside a bounded function": ({q: sp.atan(1 / x), x: -1}, {q: 0.0, x: 1.0}, ()),
    "an event goes across": ({q: 1 / x, x: 0}, {q: 0.0, x: 1.0}, (Event("turn", q - 1, 1, resets={x: -x}),)),
}


@pytest.mark.parametrize("case", LEGAL)
def test_what_is_no_pole(case: str) -> None:
    equations, initial, events = LEGAL[case]
    system = model(equations, initial, span=(0, 1.7), events=events)
    assert odesim.integrate(system, method="tsit5", save=5).ok
    assert (odesim.ensemble(system, params={"K": [1.0, 2.0]}, method="tsit5").status == 0).all()


def test_what_comes_before_is_kept() -> None:
    """1/x is infinite at t = 1: a run that saves ends at the last time before."""
    run = odesim.integrate(model({q: 1 / x, x: -1}, {q: 0.0, x: 1.0}, span=(0, 1.7)), save=[0, 0.5, 0.9, 1.1, 1.7], method="rk4", step=0.1)
    assert run.status in ("non_finite", "step_too_small") and run.t[-1] == pytest.approx(0.9) and len(run.t) == 3
    assert run.final["q"] == pytest.approx(-np.log(0.1), rel=1e-2)  # four digits of a step of 0.1

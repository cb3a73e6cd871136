"""Steps that pass over a pole, or through a 0 that no solution leaves: a run that is ok has not, and what only looks so ends none."""

from typing import Any

import numpy as np
import pytest
import sympy as sp
from scipy.special import lambertw
from sympy import Max, Sum

import odesim
from odesim.symbolic import Event, IndexedBase, Param, System, index, over, sizes
from odesim.symbolic import time as t
from tests.support.systems import REAL, SOURCE

q, p, x, L = sp.symbols("q p x L", real=True)
K = sp.Symbol("K", positive=True)
(i, j), (N,) = index("i j"), sizes("N")
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


TOTAL = over(Sum, Q[j] - 1, (j, N))
OVER: dict[str, Any] = {  # from 1 or 2; none comes to where its divisor, or the factor 1/K of its rate, is for K = 1e-9
    "tanh": (model({q: -q / (K + sp.tanh(q))}, {q: 1.0}, span=(0, 2)), f"where {K + sp.tanh(q)} = 0"),
    "exp": (model({q: -q / (K + sp.exp(q) - 1)}, {q: 1.0}, span=(0, 2)), f"where {K + sp.exp(q) - 1} = 0"),
    "order 2": (model({q: -((q - 1) ** 2) / (K + q - 1) ** 2}, {q: 2.0}, span=(0, 2)), "where K + q - 1 = 0"),
    "a sum": (model({Q[i]: -(Q[i] - 1) / (K + TOTAL), p: 0}, {Q[i]: 2.0, p: 0.0}, span=(0, 4)), "a pole of the right-hand side, where"),
    "no pole": (model({q: -(q**2) / (K**2 + q**2)}, {q: 1.0}, span=(0, 2)), "took q through 0"),
    "a root": (model({q: -sp.sqrt(q**2) / (K + sp.sqrt(q**2))}, {q: 1.0}, span=(0, 2)), "took q through 0"),
    "a pole on this side": (
        model({Q[i]: -(Q[i] ** 4) / (K + over(Sum, Q[j] ** 2, (j, N))) ** 2}, {Q[i]: 1.0}, span=(0, 8)),
        "took Q through 0",
    ),
}


@pytest.mark.parametrize("case", OVER)
def test_steps_that_go_where_no_solution_does(case: str) -> None:
    """A run and a member with K = 1e-9 are not right, and not ok; the member with K = 1 is."""
    system, words = OVER[case]
    run = odesim.integrate(system, params={"K": 1e-9})
    assert run.status == "non_finite" and words in run.message
    assert odesim.ensemble(system, params={"K": [1e-9, 1.0]}).status.values.tolist() == [4, 0]


LEGAL = {
    "large numbers": ({q: K / x, x: 1 - x}, {q: 0.0, x: 1e200}, ()),
    "a factor that is 0": ({q: L**2 / x**3 - 1, x: -1}, {q: 1.0, x: 1.0}, ()),
    "poles that cancel": ({q: 1 / x - 2 / (x * (x + 2)), x: -1}, {q: 0.0, x: 1.0}, ()),
    "inside a bounded function": ({q: sp.atan(1 / x), x: -1}, {q: 0.0, x: 1.0}, ()),
    "a pole of the time": ({q: q / (t - 1)}, {q: -1.0}, ()),
    "0 that solutions leave": ({q: -sp.sqrt(sp.Abs(q))}, {q: 0.25}, ()),
    "a sum of squares": ({q: -q / over(Sum, (Q[j] - 1) ** 2, (j, N)), Q[i]: -1}, {q: 1.0, Q[i]: 4.0}, ()),
    "a state that fades": ({q: -500 * q, x: -1}, {q: 1.0, x: 1.0}, ()),
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


@pytest.mark.filterwarnings("ignore:.* fall below atol")
@pytest.mark.parametrize("save", [None, 200])
def test_a_blow_up_behind_0_is_none(save: int | None) -> None:
    """Prey q and predators p from (20, 20): q - log q + p - log p is constant, so that all solutions stay bounded. A step of rodas5p takes
    p below 0, by less than atol, from where p does run to infinity. With a smaller atol the run comes to its end with that constant."""
    system = model({q: q * (1 - p), p: p * (q - 1)}, {q: 20.0, p: 20.0}, span=(0, 100))
    run = odesim.integrate(system, method="rodas5p", save=save)
    assert run.status == "non_finite" and "a step took p through 0, where its rate is 0 too" in run.message
    if save:
        assert run.t_end < 82 and (run.y["p"] > -1e-6).all()
        members = odesim.ensemble(system, initial={"q": [20.0, 2.0]}, method="rodas5p", save=save)
        assert members.status.values.tolist() == [4, 0]
    exact = odesim.integrate(system, method="rodas5p", rtol=1e-9, atol=1e-20).final
    assert sum(exact[n] - np.log(exact[n]) for n in "qp") == pytest.approx(40 - 2 * np.log(20), rel=1e-6)

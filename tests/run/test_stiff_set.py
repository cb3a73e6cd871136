"""The stiff test set, by single runs, strict ones and members in lanes: right at the end, and every linear invariant kept."""

import re
from itertools import product
from typing import Any

import numpy as np
import pytest
import scipy.integrate

import odesim
from odesim.ir.invariants import linear_invariants, weight_at
from odesim.stepper.rosenbrock_methods import ROSENBROCK
from odesim.targets.compiled import compile_system
from odesim.targets.unroll import write_out
from tests.support.matrix import in_turn
from tests.support.stiff_set import E5, SET, Known

FAST = {"e5", "hires", "pollution", "robertson", "orego"}
SLOW = pytest.mark.slow


def cases() -> list[Any]:
    """(problem, method, rtol, atol); what takes a second or more is slow."""
    out = []
    for name, known in SET.items():
        for method in ROSENBROCK if not known.long else ():
            for rtol, atol in known.tolerances:
                fast = name in FAST and method == "rodas5p" and rtol > 1e-7
                out.append(pytest.param(name, method, rtol, atol, id=f"{name}-{method}-{rtol:g}-{atol:g}", marks=() if fast else SLOW))
    return out


CASES = pytest.mark.parametrize(("name", "method", "rtol", "atol"), cases())


def check(known: Known, y: dict[str, Any], rtol: float, atol: float) -> None:
    """Every state, at every time that is known, is right to some tolerances of its own size."""
    got, true = np.array(list(y.values())).T, np.array(list(known.states.values()))
    off = np.abs(got - true) / (atol + rtol * np.abs(true))
    assert off.max() < known.error, off


def sums(known: Known) -> Any:
    """The matrix of its invariants (k, n)."""
    program = compile_system(known.system).program
    found = linear_invariants(write_out(known.system, program, {}, {}))
    W = np.zeros((len(found), len(known.system.states)))
    for w, invariant in zip(W, found, strict=True):
        w[list(invariant.places)] = [weight_at(weight, {}) for weight in invariant.weights]
    return W


def check_sums(known: Known, y: dict[str, Any]) -> None:
    """Each invariant has its value at the start to rounding of what it is made of at the time; a state that is moved for one that shares
    it breaks the others by a part of what was moved."""
    W, path = sums(known), np.array(list(y.values()))
    start = np.array([float(x) for x in known.system.initial.values()])
    off = np.abs(W @ path - (W @ start)[:, None])
    assert np.all(off <= 64 * np.finfo(float).eps * (np.abs(W) @ np.abs(path)))


@pytest.mark.first(1)
@CASES
def test_single_runs(name, method, rtol, atol):
    """Single runs, whose linear algebra is LAPACK's."""
    known = SET[name]
    run = odesim.integrate(known.system, method=method, rtol=rtol, atol=atol, save=np.array(list(known.states)), backend="numpy")
    assert run.status == "ok"
    check(known, run.y, rtol, atol)
    check_sums(known, run.y)


@pytest.mark.parametrize("name", ["robertson", *(pytest.param(n, marks=SLOW) for n in ("e5", "pollution", "orego", "van_der_pol_1e03"))])
def test_auto_sees_it_early(name: str) -> None:
    """`auto` ends with rodas5p, and its pilot took fewer right-hand sides than that does; an explicit method would need 3e5 to 1e17."""
    known = SET[name]
    rtol, atol = known.tolerances[0]
    run = odesim.integrate(known.system, rtol=rtol, atol=atol, save=np.array(list(known.states)))
    check(known, run.y, rtol, atol)
    spent = re.search(r"with (\d+) right-hand sides and would need", run.attrs["auto"])
    assert run.method == "rodas5p" and spent and int(spent[1]) < run.stats["rhs_calls"]


@pytest.mark.parametrize("strict", [False, pytest.param(True, marks=SLOW)])
def test_a_run_in_segments(strict):
    """Where a run stops on its way its sums stay those of its start: those of a later state have the rounding of larger numbers."""
    known = SET["e5"]
    options: dict[str, Any] = {"method": "rodas5p", "rtol": 1e-6, "atol": 1e-30, "save": np.array(list(known.states)), "strict": strict}
    run = odesim.integrate(known.system, stop_at=(1e2, 1e3, 1e5, 1e8), backend="numba" if strict else "numpy", **options)
    check(known, run.y, 1e-6, 1e-30)
    check_sums(known, run.y)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "method", "strict"),
    [
        pytest.param(name, method, strict, marks=() if (name, method, strict) == ("e5", "rodas5p", True) else SLOW)
        for (name, strict), method in in_turn(product(SET, (False, True)), tuple(ROSENBROCK))
    ],
)
def test_lanes(name, method, strict):
    """Members in lanes, and strict single runs with the bits of strict members."""
    known = SET[name]
    for rtol, atol in known.tolerances:
        options: dict[str, Any] = {"method": method, "rtol": rtol, "atol": atol, "save": np.array(list(known.states))}
        y0 = {state: np.full(3, float(x)) for state, x in zip(known.system.states, known.system.initial.values(), strict=True)}
        y0[known.system.states[0]] *= [1.0, 1.25, 1.0]
        many = odesim.ensemble(known.system, initial=y0, strict=strict, **options)
        assert not many.status.values.any()
        found = {state: many[state].values[[0, 2]] for state in known.system.states}
        check(known, {state: y[0] for state, y in found.items()}, rtol, atol)
        check_sums(known, {state: y[1] for state, y in found.items()})
        if strict:
            one = odesim.integrate(known.system, strict=True, **options)
            assert all(np.array_equal(one.y[state], y[1]) for state, y in found.items())


@pytest.mark.slow
@pytest.mark.parametrize("method", list(ROSENBROCK))
def test_ring_modulator_begins_alike(method):
    """A fiftieth of its span by a single run and in lanes: apart by some tolerances, as each is from the solution."""
    made = SET["ring_modulator"].system
    options: dict[str, Any] = {"method": method, "rtol": 1e-6, "atol": 1e-9, "span": (0.0, 2e-5)}
    one, many = odesim.integrate(made, **options), odesim.ensemble(made, initial={"y1": np.zeros(2)}, **options)
    for state, y in one.y.items():
        assert many[state].values[0, -1] == pytest.approx(y[-1], rel=2e-5, abs=2e-8)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["Radau", "BDF"])
def test_e5_by_others(method):
    """The values of E5 by scipy, with y2 = y3 + y4 put in, to ten of its tolerances."""

    def f(t: float, y: Any) -> Any:
        a, c, d = y
        return -7.89e-10 * a - 1.1e7 * a * c, 7.89e-10 * a - 1.1e7 * a * c - 1.13e9 * (c + d) * c + 1.13e3 * d, 1.1e7 * a * c - 1.13e3 * d

    solve_ivp: Any = scipy.integrate.solve_ivp
    run = solve_ivp(f, (0, 1e13), (1.76e-3, 0.0, 0.0), method, list(E5), rtol=1e-9, atol=1e-45)
    a, c, d = run.y
    true = np.array(list(E5.values()))
    assert run.status == 0
    np.testing.assert_allclose(np.array([a, c + d, c, d]).T[:, :3], true[:, :3], rtol=1e-8 if method == "Radau" else 1e-6, atol=1e-40)

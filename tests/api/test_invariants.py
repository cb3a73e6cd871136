"""How far a run was from its laws: over every step, whatever is saved, the same number wherever it is asked for."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from sympy import IndexedBase, Piecewise, Sum, Symbol, cos, log

import odesim
from odesim.base.errors import SpecError
from odesim.cli import cli
from odesim.stepper.laws import SENSES
from odesim.stepper.methods import METHODS
from odesim.stepper.rosenbrock_methods import ROSENBROCK
from odesim.store.read import read_solution
from odesim.store.write import write_solution
from odesim.symbolic import Invariant, System, index, over, sizes, time
from tests.support.systems import SOURCE

(m, k) = index("m k")
(M,) = sizes("M")
x = IndexedBase("x", shape=(M,))
u, w = Symbol("u", real=True), Symbol("w", real=True)
LAWS = {sense: Invariant(sense, x[m] * (2 + cos(3 * time)), sense) for sense in SENSES}
SYSTEM = System(
    name="made.waves", source=SOURCE, axes={m: M}, equations={x[m]: (1 + m) * (1 - time / 2) - x[m]}, params=(), initial={x[m]: 1 + m},
    sizes={M: 3}, span=(0.0, 6.0), invariants=tuple(LAWS.values()), growth=over(Sum, x[k] ** 2, (k, M)) + 1,
)  # fmt: skip


def by_definition(values: np.ndarray, sense: str) -> float:
    """The worst violation of values (T, ...), all of them kept."""
    before = {"constant": values[:1], "nonincreasing": np.minimum.accumulate(values), "nondecreasing": np.maximum.accumulate(values)}
    if sense == "nonnegative":
        off = -values
    else:
        off = values - before[sense]
        off = np.abs(off) if sense == "constant" else off if sense == "nonincreasing" else -off
    return float(max(0.0, np.max(off)))


STEPS: list[dict[str, Any]] = [{"method": name, "step": 0.25} for name in (*METHODS, *ROSENBROCK)]


@pytest.mark.parametrize("backend", [pytest.param("numba", marks=pytest.mark.slow), "numpy"])
@pytest.mark.parametrize("options", STEPS, ids=lambda o: o["method"])
def test_every_step_counts_whatever_is_saved(options: dict[str, Any], backend: str) -> None:
    """The states of all steps, saved, give by definition what a run says that saves its end alone; to rounding: numpy adds otherwise."""
    every = odesim.integrate(SYSTEM, save=np.arange(25) * 0.25, backend=backend, **options)
    values = every.y["x"] * (2 + np.cos(3 * every.t))[:, None]
    few = [odesim.integrate(SYSTEM, save=save, backend=backend, **options).invariants for save in ([6.0], None, 7, 1001)]
    for sense in SENSES:
        assert every.invariants[sense] == pytest.approx(by_definition(values, sense), abs=1e-13)
        assert {said[sense] for said in few} == {every.invariants[sense]}


@pytest.mark.first(1)
@pytest.mark.parametrize(
    "options",
    [
        *({"method": name} for name in ("tsit5", "dop853", "rodas5p")),
        {"clock": "rescaled"},
        pytest.param({"method": "rodas5p", "strict": True}, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_adaptive_steps_count_too(options: dict[str, Any]) -> None:
    """What is saved changes nothing; of values between the steps none is worse by more than the piece of a wave that a step passes."""
    ends, fine = (odesim.integrate(SYSTEM, save=save, rtol=1e-10, atol=1e-12, **options) for save in (None, np.linspace(0, 6, 2001)))
    assert ends.invariants == fine.invariants
    values = fine.y["x"] * (2 + np.cos(3 * fine.t))[:, None]
    for sense in SENSES:
        assert ends.invariants[sense] == pytest.approx(by_definition(values, sense), rel=0.2)


@pytest.mark.parametrize(("dtype", "near"), [("float64", 1e-12), ("float32", 1e-5)])
def test_backends_say_the_same(dtype: str, near: float) -> None:
    """numba and numpy, in both widths, to roundings of values of 9."""
    a, b = (odesim.integrate(SYSTEM, backend=name, dtype=dtype, method="rk4", step=0.25).invariants for name in ("numba", "numpy"))
    assert a == pytest.approx(b, abs=9 * near)


def test_one_number_in_python_json_table_and_store(tmp_path: Any) -> None:
    """Euler over the fixed point of joma.nonlinear rises; neither what is saved nor who asks changes by how much."""
    found = set()
    for save in ("4", "1001", "0.5,1"):
        args = ["integrate", "joma.nonlinear", "--method", "euler", "--step", "0.4", "--save", save]
        done = CliRunner().invoke(cli, [*args, "--out", str(tmp_path / f"{save}.zarr"), "--json"])
        found.add(json.loads(done.stdout)["invariants"]["approach"])
        found.add(read_solution(tmp_path / f"{save}.zarr").invariants["approach"])
        assert "17.3482" in CliRunner().invoke(cli, args).stdout
    run = odesim.integrate("joma.nonlinear", method="euler", step=0.4)
    assert found == {run.invariants["approach"]}
    write_solution(run, tmp_path / "python.zarr")
    assert read_solution(tmp_path / "python.zarr").invariants == run.invariants


@pytest.mark.slow
def test_a_run_that_a_terminal_event_ends_is_watched_up_to_it() -> None:
    """u falls from 1 and would violate u >= 1/2 by more than it does where it ends, at u = 0.25."""
    from odesim.symbolic import Event

    law, end = Invariant("above", u - 0.5, "nonnegative"), Event("quarter", u - 0.25, terminal=True)
    system = System(
        name="made.fall", source=SOURCE, axes={}, equations={u: -1}, params=(), initial={u: 1}, invariants=(law,), events=(end,)
    )
    for options in ({"method": "tsit5"}, {"method": "rodas5p", "strict": True}):
        assert odesim.integrate(system, span=(0, 3), **options).invariants["above"] == pytest.approx(0.25, abs=1e-12)


@pytest.mark.first(2)
@pytest.mark.parametrize(
    "options", [{"backend": "numpy"}, {"method": "tsit5"}, {"method": "rodas5p"}, {"method": "rodas4", "strict": True}], ids=str
)
def test_a_violated_law_and_one_that_is_no_number_are_in_the_message(options: dict[str, Any]) -> None:
    """By more than the tolerance that it declares, with value and time; within it, or where it declares none, nothing is said."""
    laws = (Invariant("u stays", u, "constant", tol=0.3), Invariant("w stays", w, "constant", tol=3.0), Invariant("free", u, "constant"))
    parts: dict[str, Any] = {
        "name": "made.two",
        "source": SOURCE,
        "axes": {},
        "equations": {u: -1, w: 1},
        "params": (),
        "initial": {u: 1, w: 0},
    }
    log_law = Invariant("log", log(u), "nonincreasing")
    run = odesim.integrate(System(**parts, invariants=(*laws, log_law)), span=(0, 0.75), save=3, **options)
    assert run.status == "ok" and "the invariant 'u stays' is violated by 0.75 at t = 0.75, more than its tolerance 0.3" in run.message
    assert "w stays" not in run.message and "free" not in run.message
    lost = odesim.integrate(System(**parts, invariants=(*laws, log_law)), span=(0, 3), save=3, **options)
    assert np.isnan(lost.invariants["log"] or 0.0) and "the invariant 'log' is not a number from t = " in lost.message
    assert 1 < float(lost.message.split("from t = ")[1].split()[0]) <= 3


@pytest.mark.slow
def test_an_observable_that_is_no_number_is_named(tmp_path: Path) -> None:
    """u' = -1 from 1: log(u) is no number from t = 1 on, which is said with the first saved time after it; what is finite is not named."""
    text = """
from odesim.symbolic import Source, System
from sympy import Symbol, log
u = Symbol("u", real=True)
SYSTEM = System(name="made.falls", source=Source("none", ""), axes={}, equations={u: -1}, params=(), initial={u: 1}, span=(0.0, 3.0),
    observables={"log": log(u), "square": u**2})
"""
    (tmp_path / "falls.py").write_text(text)
    for save, first in (([0.5, 0.9, 1.4, 3.0], 1.4), (2, 3.0), ([0.25, 0.5], 3.0)):
        run = odesim.integrate(tmp_path / "falls.py", save=save, method="rodas5p")
        assert run.not_numbers == {"log": first} and run.status == "ok"
    assert odesim.integrate(tmp_path / "falls.py", span=(0, 0.5)).not_numbers == {}
    found = CliRunner().invoke(cli, ["integrate", str(tmp_path / "falls.py"), "--save", "0.5,1.4,3", "--json"])
    said = "the observable 'log' is not a number at t = 1.4"
    assert found.exit_code == 0 and json.loads(found.stdout)["message"].endswith(said) and said in found.stderr
    assert "square" not in found.stderr


def test_a_broken_law_of_a_rescaled_run_is_told_in_t() -> None:
    """u' = u^2 from 1: where the run to the blow-up at t = 1 ends, u - 1 has passed every bound; in s the time would be 30 or more."""
    law = Invariant("below", 1 - u, "constant", tol=1.0)
    system = System(name="made.up", source=SOURCE, axes={}, equations={u: u**2}, params=(), initial={u: 1}, invariants=(law,), growth=u)
    run = odesim.integrate(system, clock="rescaled", span=(0, 3))
    assert run.status == "blow_up" and float(run.message.split("at t = ")[-1].split(",")[0]) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("tol", [-1, float("nan"), "0.1", True])
def test_a_tolerance_is_a_number(tol: Any) -> None:
    """One sentence, when the System is built."""
    with pytest.raises(SpecError, match="invariant 'x': tol is a number of at least 0, or None, not"):
        System(
            name="a",
            source=SOURCE,
            axes={},
            equations={u: -u},
            params=(),
            initial={u: 1},
            invariants=(Invariant("x", u, "constant", tol=tol),),
        )


def test_a_run_that_ends_before_its_first_step_has_broken_no_law():
    """u' = 1 up to 0 and -1 above, from 0, to which both sides push back."""
    laws = (Invariant("square", u**2, "nonincreasing"),)
    system = System(
        name="made.kink",
        source=SOURCE,
        axes={},
        equations={u: Piecewise((-1, u > 0), (1, True))},
        params=(),
        initial={u: 0.0},
        span=(0.0, 1.0),
        invariants=laws,
    )
    run = odesim.integrate(system, backend="numpy")
    assert (run.status, run.t_end, run.invariants) == ("sliding", 0.0, {"square": 0.0})

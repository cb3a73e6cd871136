"""A long run of a small system goes on with a driver that is compiled for it: with the same bits, from the same trial on."""

import threading
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sympy import symbols

import odesim
from odesim.stepper import drive
from odesim.symbolic import IndexedBase, Invariant, System, index, over, sizes, time
from odesim.symbolic.parts import Event, Param, Source
from odesim.symbolic.reductions import Sum

(m,), (M,) = index("m"), sizes("M")
x, v, w = (IndexedBase(name, shape=(M,)) for name in "xvw")
nu = symbols("nu")
PENDULA = System(
    name="test.pendula",
    source=Source("none", "a row of pendula, pushed together"),
    axes={m: M},
    equations={x[m]: v[m], v[m]: -w[m] * x[m] / (1 + x[m] ** 2) - nu * v[m] + time / 100},
    params=(Param(w, 1.0), Param(nu, 0.1)),
    initial={x[m]: 1.0, v[m]: 0.0},
    sizes={M: 2},
    span=(0.0, 20.0),
    events=(Event("turns", v[m]),),
    invariants=(Invariant("speed", over(Sum, v[m] ** 2, (m, M)), "constant", tol=1e9),),
)
PARAMS = [{"w": [1.0, 2.5]}, {"w": [0.7, 1.1], "nu": 0.0}]
OPTIONS: dict[str, dict[str, Any]] = {
    "saved": {"save": 23},
    "tight": {"rtol": 1e-11, "atol": 1e-13, "method": "vern9"},
    "tolerances of states": {"atol": {"x": 1e-4, "v": [1e-6, 1e-9]}, "method": "dop853"},
    "fixed steps": {"step": 0.03, "method": "rk4", "save": 50},
    "short steps": {"max_step": 0.1, "first_step": 0.01},
    "no events": {"system": replace(PENDULA, name="test.quiet", events=()), "method": "vern7", "save": 2},
}


def numbers(run):
    """All that a run says, in bits."""
    events = [float(e["t"]) for name in sorted(run.events) for e in run.events[name]]
    counts = [run.stats[name] for name in ("steps", "rejected", "rhs_calls")]
    return b"".join(np.asarray(a, float).tobytes() for a in (*run.y.values(), *run.y_end.values(), run.t, events, counts))


def integrate(monkeypatch, long, system=PENDULA, **options):
    """A run that goes on with a driver of its own after `long` trials, and how often it did."""
    addresses, make = [], drive.written_run

    def counted(*arguments):
        addresses.append(make(*arguments))
        return addresses[-1]

    with monkeypatch.context() as patch:
        patch.setattr(drive, "LONG", long)
        patch.setattr(drive, "written_run", counted)
        return odesim.integrate(system, **options), len(addresses)


@pytest.mark.parametrize("name", OPTIONS)
def test_its_bits_are_those_of_the_driver_of_all(name, monkeypatch):
    """States, times of events, steps, rejections, right-hand sides; one driver serves all parameters, which it finds in memory."""
    for params in PARAMS:
        (usual, none), (own, once) = (integrate(monkeypatch, n, strict=True, params=params, **OPTIONS[name]) for n in (10**9, 5))
        assert (none, once) == (0, 1)
        assert numbers(own) == numbers(usual)


def test_no_clock_decides_when_it_begins(monkeypatch):
    """Without strict mode the drivers round differently: a run has the same bits however it is cut into slices."""
    first, _ = integrate(monkeypatch, 20, params=PARAMS[0])
    monkeypatch.setattr(drive, "next_slice", lambda *_: 3)
    second, once = integrate(monkeypatch, 20, params=PARAMS[0])
    assert once == 1
    assert numbers(first) == numbers(second)


@pytest.fixture
def begun(monkeypatch) -> list[int]:
    """The trials after which a driver was made, where EARLY is 32 and LONG is 1000."""
    make, trials = drive.written_run, []

    def seen(rhs, state):
        trials.append(int(state["steps"] + state["rejected"]))
        return make(rhs, state)

    monkeypatch.setattr(drive, "EARLY", 32)
    monkeypatch.setattr(drive, "LONG", 1000)
    monkeypatch.setattr(drive, "written_run", seen)
    return trials


@pytest.mark.parametrize(("until", "trials"), [(2000.0, [32]), (40.0, [])])
def test_it_begins_early_where_the_steps_say_so(until, trials, begun):
    """After EARLY trials, if LONG will be needed: by `auto`, which stops to look, as by the method that it takes."""
    bits = [numbers(odesim.integrate(PENDULA, method=method, span=(0.0, until))) for method in ("tsit5", "auto")]
    assert begun == 2 * trials and bits[0] == bits[1]


def test_it_does_not_begin_early_where_stability_limits_the_steps(begun):
    """Friction holds the steps of tsit5 at some 3/1000: it has a driver from LONG on; auto ends with rodas5p, and makes none."""
    run: dict[str, Any] = {"params": {"nu": 1e3}, "span": (0.0, 200.0)}
    assert odesim.integrate(PENDULA, method="tsit5", **run).stats["steps"] > 1000 and begun == [1000]
    assert odesim.integrate(PENDULA, method="auto", **run).method == "rodas5p" and begun == [1000]


CASES: dict[str, tuple[dict[str, Any], int]] = {
    "small": ({}, 1),
    "short": ({"span": (0.0, 0.01)}, 0),
    "many states": ({"sizes": {"M": 17}}, 0),
    "float32": ({"dtype": "float32", "rtol": 1e-4}, 0),
    "numpy": ({"backend": "numpy"}, 0),
}


@pytest.mark.parametrize("name", CASES)
def test_who_has_one(name, monkeypatch):
    """Runs of small systems in float64 that are not over."""
    options, often = CASES[name]
    assert integrate(monkeypatch, 20, **options)[1] == often


@pytest.mark.parametrize("long", [64, 128], ids=["in the pilot of auto", "after it"])
def test_to_compile_does_not_count(long, monkeypatch):
    """A limit of time does not run while the driver is compiled: the run goes on, however long that took."""
    monkeypatch.setattr(drive, "LONG", long)
    make, waited = drive.written_run, []

    def slow(*arguments):
        waited.append(time_left())
        return make(*arguments)

    monkeypatch.setattr(drive, "written_run", slow)
    run = odesim.integrate(PENDULA, span=(0.0, 200.0), max_seconds=600.0)
    assert run.status == "ok" and waited == [False]


def time_left():
    """Whether a limit of time runs: whether a timer would stop the run."""
    return any(isinstance(thread, threading.Timer) and not thread.finished.is_set() for thread in threading.enumerate())


def test_an_interrupt_while_it_is_compiled_keeps_the_run(monkeypatch):
    """What was computed until then is kept, and said to be a part."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(drive, "LONG", 64)
    monkeypatch.setattr(drive, "written_run", interrupt)
    run = odesim.integrate("joma.nonlinear", sizes={"M": 3}, span=(0, 10), step=0.01)
    assert run.status == "interrupted" and run.t_end == pytest.approx(0.64) and run.stats["steps"] == 64

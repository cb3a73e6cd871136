"""Steep event functions of large arrays: each zero is at its time, though one step has too many to search each on the functions."""

from typing import Any

import numpy as np
import pytest
from sympy import IndexedBase, atan, cos, exp, tanh

import odesim
from odesim.symbolic import Event, Param, Source, System, index, sizes
from odesim.symbolic import time as t
from tests.run.test_switches import REALS

(i, j), (N, K) = index("i j"), sizes("N K")
x, c, w = (IndexedBase(name, shape=(N,)) for name in "xcw")
d = IndexedBase("d", shape=(K,))
u = x[i] - c[i]
STEEP = {
    "tanh": tanh(30 * u), "wall": tanh(1e9 * u), "exp": exp(40 * u) - 1, "fall": exp(-20 * u) - 1, "power": (x[i] / c[i]) ** 25 - 1,
    "cube": u**3, "square": x[i] ** 2 - c[i] ** 2, "atan": atan(200 * u),
}  # fmt: skip
NUMBA: dict[str, Any] = {"backend": "numba"}
RUNS: dict[str, dict[str, Any]] = {
    "numpy tsit5": {"backend": "numpy", "method": "tsit5"}, "numpy rodas5p": {"backend": "numpy", "method": "rodas5p"},
    "tsit5": {**NUMBA, "method": "tsit5"}, "vern7": {**NUMBA, "method": "vern7"}, "dop853": {**NUMBA, "method": "dop853", "strict": True},
    "rk4": {**NUMBA, "method": "rk4", "step": 0.05}, "rodas4": {**NUMBA, "method": "rodas4"}, "rodas5p": {**NUMBA, "method": "rodas5p"},
}  # fmt: skip


def system(*events: Event) -> System:
    """x[i] = 4 w[i] sin(t/4) from 0 on, which rises up to t = 6."""
    return System(
        name="steep", source=Source("own", "test"), axes={i: N, j: K}, equations={x[i]: w[i] * cos(t / 4)},
        params=(Param(c, 1.0, REALS, "where"), Param(w, 1.0, REALS, "how fast"), Param(d, 0.0, REALS, "further")),
        initial={x[i]: 0.0}, span=(0.0, 6.0), events=events, sizes={N: 3, K: 2},
    )  # fmt: skip


def numbers(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Places and speeds. A quarter of them are the same."""
    rng = np.random.default_rng(size)
    where, fast = rng.uniform(1.0, 3.2, size), rng.uniform(0.95, 1.05, size)
    where[: size // 4], fast[: size // 4] = where[0], fast[0]
    return where, fast


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("form", STEEP)
@pytest.mark.parametrize("size", [70, 150, 400])
def test_times(size: int, form: str, run: str) -> None:
    """Each component passes zero once, when 4 w sin(t/4) = c. 1e-7: 100 rtol."""
    where, fast = numbers(size)
    options = {"rtol": 1e-9, "atol": 1e-11, **RUNS[run]}
    events = odesim.integrate(system(Event("here", STEEP[form])), params={"c": where, "w": fast}, sizes={"N": size}, **options).events[
        "here"
    ]
    assert sorted(e["index"][0] for e in events) == list(range(size))
    at = {e["index"][0]: e["t"] for e in events}
    assert [at[k] for k in range(size)] == pytest.approx(4 * np.arcsin(where / fast / 4), abs=1e-7)


@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_the_first_of_many_ends_a_run(backend: str) -> None:
    """The terminal component with the first zero ends the run there; those of other events up to there are listed."""
    where, fast = numbers(100)
    events = Event("end", tanh(500 * (u - 0.2)), terminal=True), Event("before", tanh(30 * u))
    run = odesim.integrate(system(*events), params={"c": where, "w": fast}, sizes={"N": 100}, rtol=1e-9, method="tsit5", backend=backend)
    ends, times = 4 * np.arcsin((where + 0.2) / fast / 4), 4 * np.arcsin(where / fast / 4)
    assert (run.status, run.t[-1]) == ("event", pytest.approx(ends.min(), abs=1e-7))
    assert {e["index"][0] for e in run.events["before"]} == set(np.flatnonzero(times < ends.min()))
    assert {e["index"][0] for e in run.events["end"]} == set(np.flatnonzero(ends == ends.min()))


@pytest.mark.slow  # a kernel of 70 functions is written out, and compiled for a minute
def test_members_in_lanes() -> None:
    """Members with 70 components of an event have the times of their closed forms."""
    where, fast = numbers(7)
    further = np.linspace(0.0, 0.3, 10)
    event = Event("here", (x[i] / (c[i] + d[j])) ** 25 - 1)
    options: dict[str, Any] = {"sizes": {"N": 7, "K": 10}, "method": "tsit5", "rtol": 1e-9, "max_events": 80}
    many = np.stack([where, where + 0.01, where - 0.01])
    members = odesim.ensemble(system(event), params={"c": many, "w": fast, "d": further}, **options)
    for member, times in enumerate(members["here_t"].values):
        truth = 4 * np.arcsin((many[member][:, None] + further) / fast[:, None] / 4)
        assert times[np.isfinite(times)] == pytest.approx(np.sort(truth.ravel()), abs=1e-7)

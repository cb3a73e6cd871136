"""Observables of members: at every saved time what `integrate` says of that member."""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from sympy import Interval, Piecewise, Range, Sum, exp, oo, symbols

import odesim
from odesim.base.errors import ModelError, ParamError
from odesim.base.memo import Memo
from odesim.run import observables as observed
from odesim.symbolic import IndexedBase, Param, Source, System, index, over, sizes, time

(m,), (M,) = index("m"), sizes("M")
x, a = IndexedBase("x", shape=(M,)), IndexedBase("a", shape=(M,))
k = symbols("k", integer=True, positive=True)
N = 11
A = np.random.default_rng(0).uniform(0.2, 2.0, (N, 3))


def slope(t, states, derivatives, params):
    """The largest derivative plus what the member's own rate adds."""
    return np.array([np.max(derivatives["x"]), t * params["a"][0]])


@cache
def decay() -> System:
    """x = exp(-a t), with a sum, an array, a number of time alone, an integer's power, a part, and a function of numpy."""
    return System(
        name="test.observed",
        source=Source("none", "test"),
        axes={m: M},
        equations={x[m]: -a[m] * x[m]},
        params=(Param(a, 1.0, Interval(-oo, oo), "rate"), Param(k, 2, Range(1, 9), "power")),
        initial={x[m]: 1.0},
        sizes={M: 3},
        span=(0.0, 1.0),
        observables={
            "total": over(Sum, x[m], (m, M)),
            "log": exp(-a[m] * time) - x[m],
            "clock": 2 * time,
            "power": x[0] ** k,
            "part": Piecewise((x[0], x[0] > 0)),  # not a number elsewhere
            "slope": slope,
        },
    )


def run(**options: Any) -> Any:
    return odesim.ensemble(
        decay(), **{"method": "tsit5", "params": {"a": A}, "save": 4, "observe": "all", "rtol": 1e-9, "atol": 1e-12, **options}
    )


@pytest.mark.first(1)
@pytest.mark.parametrize(
    "options",
    [
        pytest.param({}, id="lanes"),
        pytest.param({"strict": True}, id="strict", marks=pytest.mark.slow),
        pytest.param({"method": "rodas5p"}, id="stiff", marks=pytest.mark.slow),
        pytest.param({"dtype": "float32", "rtol": 1e-5, "atol": 1e-6}, id="float32", marks=pytest.mark.slow),
        pytest.param({"params": {"a": A, "k": np.arange(N) % 3 + 1}}, id="whole"),
    ],
)
def test_values_are_those_of_single_runs(options):
    """Every observable at every saved time, on the axes it has, from any engine."""
    found = run(**options)
    assert found["log"].dims == ("member", "time", "m") and found["total"].dims == ("member", "time")
    assert found["slope"].dims == ("member", "time", "slope_0")
    params = options.get("params", {"a": A})
    one = {**{"method": "tsit5", "rtol": 1e-9, "atol": 1e-12}, **{name: v for name, v in options.items() if name != "params"}}
    for i in (0, 7, N - 1):
        alone = odesim.integrate(decay(), params={name: v[i] for name, v in params.items()}, save=4, **one)
        for name, values in alone.observables.items():
            # rounding; the states of two modes differ by it, and slope and log are differences of numbers up to 2
            np.testing.assert_allclose(found[name][i], values, rtol=1e-13, atol=1e-14 if "dtype" not in options else 1e-6)


@pytest.mark.slow
def test_closed_forms():
    """The sum of exp(-a t), and 2 t."""
    found = run()
    exact = np.exp(-A[:, None, :] * found.time.values[:, None])
    np.testing.assert_allclose(found.total, exact.sum(axis=-1), atol=1e-8)  # ten times the tolerance
    np.testing.assert_array_equal(found.clock, np.tile(2 * found.time.values, (N, 1)))


def test_where_a_member_did_not_come_there_is_nothing():
    """NaN after the last time reached, also of an observable that knows the time alone."""
    found = run(max_steps=5)
    late = found.t_end.values[:, None] < found.time.values
    assert late.any() and not late.all()
    for name in ("clock", "total", "slope", "log"):
        missing = np.isnan(found[name].values).reshape(*late.shape, -1)
        assert (missing == late[..., None]).all()


def test_long_text_goes_member_by_member(monkeypatch):
    """Observables that are too long to be written out have the same values to rounding."""
    fast = run()
    monkeypatch.setattr(observed, "MOST_LINES", 0)
    monkeypatch.setattr(observed, "_MADE", Memo())
    slow = run()
    for name in ("total", "log", "clock", "power", "slope"):
        np.testing.assert_allclose(slow[name], fast[name], rtol=1e-14, atol=1e-15)


def test_what_is_asked_for_is_kept():
    """None by default, some by name, in that order."""
    assert not {"total", "slope"} & set(run(observe=()).data_vars)
    found = run(observe="clock, total")
    assert [name for name in found.data_vars if name in decay().observables] == ["clock", "total"]
    assert found.identical(run(observe=["clock", "total"]))


@pytest.mark.parametrize(
    ("observe", "words"),
    [
        ("totl", "no observable 'totl' in test.observed; choose from all, clock, log, part, power, slope, total; did you mean 'total'"),
        (["total", 3], "observe takes names, such as .*, not 3"),
        (7, "observe takes names, such as .*, not 7"),
    ],
)
def test_wrong_names(observe, words):
    """One sentence with the choices and the nearest spelling."""
    with pytest.raises(ParamError, match=words):
        run(observe=observe)


@pytest.mark.slow
def test_a_function_that_raises_is_named():
    """A Python observable that fails says which one, and when."""

    def broken(t, states, derivatives, params):
        return t if t < 0.9 else [][1]

    with pytest.raises(ModelError, match=r"observable 'broken' of test\.observed raised at t = 1: IndexError"):
        odesim.ensemble(replace(decay(), observables={"broken": broken}), params={"a": A}, observe="all", save=4, method="tsit5")

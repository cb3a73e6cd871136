"""Sizes, elements named by numbers, and starting values that depend on the time of the start."""

from typing import Any

import numpy as np
import pytest
from sympy import Max, Min, Sum, Symbol

import odesim
from odesim.base.errors import ParamError, SpecError
from odesim.symbolic import Constraint, Event, IndexedBase, Invariant, MaxOver, Param, System, index, over, sizes, time
from tests.support.systems import REAL, SOURCE

i, j, k = index("i j k")
(N,) = sizes("N")
x, s = IndexedBase("x", shape=(N,)), IndexedBase("s", shape=(N,))
RUN: dict[str, Any] = {"backend": "numpy", "method": "euler", "step": 0.5, "save": 2}


def system(**parts: Any) -> System:
    made = {"axes": {i: N}, "equations": {x[i]: -s[i] * x[i]}, "params": (Param(s, 1.0, REAL, "rates"),), "initial": {x[i]: 1.0}}
    return System("test.places", SOURCE, **{**made, "sizes": {N: 3}, **parts})


@pytest.mark.parametrize("part", ["equations", "initial", "observables", "invariants", "events", "constraints", "growth"])
def test_element_outside_its_array(part):
    """An element named by a number that the size does not have is refused in a sentence, in any part; with room for it all runs."""
    e = x[5] if part in ("equations", "observables", "invariants", "events", "growth") else s[5]
    parts = {
        "equations": {x[i]: -e * x[i]}, "initial": {x[i]: e}, "observables": {"fifth": e}, 
        "invariants": (Invariant("fifth", e, "nonincreasing"),),
        "events": (Event("fifth", e - 2),), "constraints": (Constraint("fifth", e, ">=0"),), "growth": e,
    }  # fmt: skip
    made = system(**{part: parts[part]})
    for call in (lambda: odesim.integrate(made, **RUN), lambda: odesim.ensemble(made, params={"s": np.ones((2, 3))})):
        with pytest.raises(ParamError, match=r"[xs]\[5\]( in the event 'fifth')? is out of range: that axis has 3 elements \(N = 3\)"):
            call()
    run = odesim.integrate(made, sizes={"N": 6}, **RUN)
    assert run.status == "ok" and len(run.observables) == (part == "observables")


def test_axes_need_not_fit_together():
    """Indices of a large size that no array has together are no array: 1e6 states with three indices are fine, 1e18 are not."""
    made = system(axes={i: N, j: N, k: N}, equations={x[i]: -s[i] * x[i] + over(Sum, s[j], (j, N)) / N})
    run = odesim.integrate(made, sizes={"N": 10**6}, **RUN)
    assert run.status == "ok" and run.y["x"].shape == (2, 10**6)
    cube = IndexedBase("c", shape=(N, N, N))
    with pytest.raises(ParamError, match=r"1e\+18 entries|takes 8e\+09 GB"):
        odesim.integrate(
            system(axes={i: N, j: N, k: N}, equations={cube[i, j, k]: -cube[i, j, k]}, params=(), initial={cube[i, j, k]: 1.0}),
            sizes={"N": 10**6}, **RUN,
        )  # fmt: skip


def test_time_in_starting_values():
    """The time in a starting value is that of the start, in single runs, in members and in sensitivities."""
    a = Symbol("a", real=True)
    made = system(params=(Param(s, 0.0, REAL, "rates"), Param(a, 1.0, REAL, "a")), initial={x[i]: a * (time + 1) + i})
    run = odesim.integrate(made, span=(2.0, 3.0), sensitivities="a", **RUN)
    np.testing.assert_array_equal(run.y["x"][0], [3.0, 4.0, 5.0])
    np.testing.assert_array_equal(run.sensitivities["a"]["x"][0], [3.0, 3.0, 3.0])
    from odesim.ensembles.members import make_members

    members = make_members(made, {"a": np.array([1.0, 2.0])}, {}, sizes={}, span=(2.0, 3.0), seed=0)
    np.testing.assert_array_equal(members.chunk(0, 2)[1]["x"], [[3.0, 4.0, 5.0], [6.0, 7.0, 8.0]])


@pytest.mark.parametrize("part", ["constraints", "invariants"])
def test_no_time_where_there_is_none(part):
    law: Any = Constraint("late", time - 1, ">=0") if part == "constraints" else Invariant("late", x[i], "nonincreasing", time > 1)
    with pytest.raises(SpecError, match=r"'late' is one on .*, and cannot hold the time t"):
        system(**{part: (law,)})


@pytest.mark.parametrize("name", ["lambda", "class", "N.1", "2N", "N M"])
def test_names_of_sizes(name):
    """A size that is no name of Python's is refused when the System is built."""
    size = Symbol(name, integer=True, positive=True)
    y = IndexedBase("y", shape=(size,))
    with pytest.raises(SpecError, match=f"'{name}' is (a keyword of Python; write {name}_|not a plain name)"):
        System("test.names", SOURCE, {i: size}, {y[i]: -y[i]}, (), {y[i]: 1.0}, sizes={size: 3})


@pytest.mark.parametrize("largest", [Max, Min])
@pytest.mark.parametrize("kind", [Sum, MaxOver])
def test_larger_of_a_sum_and_another(largest, kind):
    """Max and Min of a sum or maximum and a plain symbol, an element or a number can be written and run."""
    z = Symbol("z")
    total = over(kind, x[k], (k, N))
    for other in (z, x[i], 0.5, over(Sum, s[k], (k, N))):
        made = system(
            equations={x[i]: largest(total, other) - s[i] * x[i], z: -z}, initial={x[i]: 1.0 + i, z: 0.25}
        )  # fmt: skip
        run = odesim.integrate(made, span=(0.0, 0.5), **RUN)
        start = np.array([1.0, 2.0, 3.0])
        a = start.sum() if kind is Sum else start.max()
        b = {0: 0.25, 1: start, 2: 0.5, 3: 3.0}[[z, x[i], 0.5].index(other) if other in (z, x[i], 0.5) else 3]
        np.testing.assert_allclose(run.y["x"][-1], start + 0.5 * (getattr(np, {Max: "maximum", Min: "minimum"}[largest])(a, b) - start))

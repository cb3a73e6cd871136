"""Observables that are functions of a model file: what they may return, and one sentence for the rest."""

import sys
from typing import Any

import numpy as np
import pytest
from sympy import Interval, Naturals0, Piecewise, Sum, Symbol, exp, oo

from odesim.api.integrate import integrate
from odesim.base.errors import ModelError
from odesim.symbolic import IndexedBase, Param, System, index, over, sizes, time
from odesim.targets import observe
from odesim.targets.observe import Observer
from tests.support.systems import SOURCE

x = Symbol("x")


def seen(f: Any) -> np.ndarray:
    """The observable f of x' = -x at t = 0 and 1."""
    system = System(name="decay", source=SOURCE, axes={}, equations={x: -x}, params=(), initial={x: 1}, observables={"seen": f})
    return integrate(system, span=(0, 1), backend="numpy").observables["seen"]


@pytest.mark.parametrize(
    ("f", "shape"), [(x, (2,)), (7, (2,)), (lambda t, y, d, p: 7, (2,)), (lambda t, y, d, p: np.zeros((3, 4)), (2, 3, 4))]
)
def test_an_observable_has_a_row_for_each_time(f, shape):
    """Expressions, numbers and functions alike."""
    assert seen(f).shape == shape


@pytest.mark.parametrize(
    ("f", "words"),
    [
        (lambda t, y, d, p: np.zeros(2 if t == 0 else 3), r"has shape \(3,\) at t = 1, and \(2,\) at t = 0"),
        (lambda t, y, d, p: None, "raised at t = 0: TypeError: it returned None"),
        (lambda t, y, d, p: "a", "raised at t = 0: ValueError: could not convert"),
        (lambda t, y, d, p: 1 / (t - 1), "raised at t = 1: ZeroDivisionError"),
        (lambda t, y, d, p: sys.exit(3), "raised at t = 0: SystemExit: 3"),
    ],
)
def test_what_a_function_does_wrong_is_one_sentence(f, words):
    """It names the observable, the model and the time."""
    with pytest.raises(ModelError, match=f"observable 'seen' of decay {words}") as error:
        seen(f)
    assert "\n" not in str(error.value)


(m, n), (M, N) = index("m n"), sizes("M N")
v, w, place = IndexedBase("v", shape=(M,)), IndexedBase("w", shape=(N, M)), IndexedBase("place", shape=(N,))
MANY = System(
    "many",
    SOURCE,
    {m: M, n: N},
    {v[m]: -v[m], x: -x},
    (Param(w, 1.0, Interval(-oo, oo), "weights"), Param(place, lambda sizes: np.arange(sizes["N"]) % 2, Naturals0, "places", indexes=M)),
    {v[m]: 1.0, x: 1.0},
    sizes={M: 3, N: 2},
    observables={
        "one": Symbol("x") * time,
        "sums": over(Sum, w[n, m] * exp(v[m]), (m, M)),
        "placed": v[place[n]] - x,
        "late": Piecewise((v[m], time < 2), (0, True)),
        "weights": 2 * w[n, m],
        "large": x / (1 + x**2) ** 0.5,
    },
)


@pytest.mark.parametrize("numbers", [1, 13, 10**6])
def test_times_together_are_each_by_itself(numbers, monkeypatch):
    """Of five times, evaluated one by one, in blocks of two and all together, each row is numpy's; a square overflows at one time alone."""
    monkeypatch.setattr(observe, "AT_ONCE", numbers)
    rng = np.random.default_rng(3)
    t = np.arange(5.0)
    y = {"v": rng.normal(size=(5, 3)), "x": np.array([1.0, 2.0, 1e200, 3.0, -1.0])}
    q = {"w": rng.normal(size=(2, 3)), "place": np.array([2, 0])}
    assert Observer(MANY)._times_at_once({"M": 3, "N": 2}) == max(1, numbers // 6)  # of the longest array, N M
    found = Observer(MANY)(t, y, {"M": 3, "N": 2}, q, lambda t, now: {})
    right = {
        "one": y["x"] * t,
        "sums": np.exp(y["v"]) @ q["w"].T,
        "placed": y["v"][:, [2, 0]] - y["x"][:, None],
        "late": np.where(t[:, None] < 2, y["v"], 0),
        "weights": np.broadcast_to(2 * q["w"].T, (5, 3, 2)),
        "large": np.where(y["x"] > 1e100, np.nan, y["x"] / np.sqrt(1 + np.minimum(y["x"], 10) ** 2)),
    }
    assert list(found) == list(right)
    for name, values in right.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-13, atol=1e-13, err_msg=name)  # rounding

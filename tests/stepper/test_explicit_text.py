"""The text of an explicit step, interpreted in plain Python, takes the steps of odesim.integrate, bit for bit."""

from typing import Any

import numpy as np
import pytest
from sympy import Interval, oo, symbols

import odesim
from odesim.base.arrays import Array
from odesim.stepper import control
from odesim.stepper.methods import MAP, METHODS
from odesim.symbolic import IndexedBase, Map, Param, Source, System, index, sizes
from tests.support.interpreted import Interpreted

(m,), (M,) = index("m"), sizes("M")
v, mu = (IndexedBase(name, shape=(M,)) for name in ("v", "mu"))
rate = symbols("rate", positive=True)
SOURCE, NUMBERS = (
    Source("none", "made for the tests"),
    (Param(mu, 1.0, Interval(-oo, oo), "ends"), Param(rate, 2.0, Interval.open(0, oo), "rate")),
)
# products and sums alone: their bits are those of numpy's one operation after another
SYSTEM = System(
    "test.cubic", SOURCE, {m: M}, {v[m]: (mu[m] - v[m]) * (v[m] * v[m] * rate + 1)}, NUMBERS, {v[m]: 0.1}, sizes={M: 3}, span=(0, 4)
)
MAP_SYSTEM = Map("test.quadratic", SOURCE, {m: M}, {v[m]: mu[m] - v[m] * v[m]}, NUMBERS[:1], {v[m]: 0.3}, sizes={M: 3}, steps=40)

CASES: dict[str, dict[str, Any]] = {
    "tsit5": {}, "vern7": {}, "dop853": {}, "tsit5, loose": {"rtol": 1e-2, "atol": 1e-2}, "rk4": {"step": 0.03}, "euler": {"step": 0.007},
    "tsit5, few steps": {"max_steps": 7}, "vern7, first step": {"first_step": 0.5},
}  # fmt: skip


def ends(count: int) -> Array:
    return np.linspace(0.5, 3.0, count)


def interpreted(
    method: str, n: int, save: Array, *, max_steps: int = 10**6, rules: dict[str, Any] | None = None, **options: Any
) -> Interpreted:
    """SYSTEM with n components, by the text."""
    at, two = ends(n), 2.0
    return Interpreted(
        METHODS[method],
        lambda t, y: (at - y) * (y * y * two + 1),
        np.full(n, 0.1),
        (0.0, 4.0),
        save,
        most=max_steps,
        rules=rules,
        **options,
    ).run()


def assert_same(text: Interpreted, run: Any) -> None:
    """States at saved times, and counts, are equal."""
    names = text.names
    assert (names["steps"], names["rejected"], text.calls) == tuple(run.stats[x] for x in ("steps", "rejected", "rhs_calls"))
    saved = np.array(text.states)
    np.testing.assert_array_equal(saved, run.y["v"][: len(saved)])
    np.testing.assert_array_equal(names["y"], run.y_end["v"])
    assert names["t"] == run.t_end


@pytest.mark.parametrize("n", [3, 70], ids=["few", "strided sums"])
@pytest.mark.parametrize("case", CASES)
def test_the_text_has_the_bits_of_a_strict_run(case, n):
    """Adaptive and fixed, with saved times inside steps: states, steps, rejections, right-hand sides."""
    method = case.split(",")[0]
    run = odesim.integrate(SYSTEM, params={"mu": ends(n)}, save=9, method=method, strict=True, **CASES[case])
    assert_same(interpreted(method, n, np.linspace(0, 4, 9), **CASES[case]), run)


def test_steps_are_rejected():
    """The cases above are not all smooth."""
    assert interpreted("tsit5", 3, np.empty(0), rtol=1e-2, atol=1e-2).names["rejected"] > 0


def test_a_map():
    """A Map is a fixed step of one stage."""
    at = np.array([0.4, 1.1, 1.4])
    run = odesim.integrate(MAP_SYSTEM, params={"mu": at}, strict=True, save=5)
    text = Interpreted(MAP, lambda t, y: at - y * y, np.full(3, 0.3), (0.0, 40.0), np.asarray(run.t, float), step=1.0).run()
    assert_same(text, run)


def test_a_sign_in_the_control_is_seen():
    """With the sign of beta turned around the text takes other steps: the comparison is not empty."""
    turned = {"pi_goal": lambda size, old, fits, alpha, beta: control.pi_goal(size, old, fits, alpha, -beta)}
    run = odesim.integrate(SYSTEM, params={"mu": ends(3)}, save=9, method="tsit5", strict=True)
    with pytest.raises(AssertionError):
        assert_same(interpreted("tsit5", 3, np.linspace(0, 4, 9), rules=turned), run)

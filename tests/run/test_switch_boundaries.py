"""Boundaries of conditions that are hard to see: hidden by other conditions, moved by them, or made of sums."""

from typing import Any

import pytest
import sympy as sp
from sympy import Abs, Heaviside, IndexedBase, Max, Mod, Piecewise, Sum, floor

import odesim
from odesim.symbolic import Param, Source, System, over
from odesim.symbolic import time as t
from tests.run.test_switches import REALS, M, a, m, system, w, y

HIDDEN: dict[str, tuple[Any, tuple[float, float]]] = {  # y' with a jump at y = a, y(1) and its slope in a, for a = .3 and w = .6
    "and": (Piecewise((1, (t < w) & (y < a)), (2, True)), (1.7, -1.0)),
    "or, negated": (Piecewise((2, ~((t < w) & (y < a))), (1, True)), (1.7, -1.0)),
    "in a window": (Piecewise((1, (t > w / 4) & (t < w) & (y < a)), (2, True)), (1.7, -1.0)),
    "nested": (Piecewise((Piecewise((1, y < a), (2, True)), t < w), (5, True)), (0.3 + 2 * 0.3 + 5 * 0.4, -1.0)),
    "product": (1 + Heaviside(w - t) * Heaviside(a - y), (0.15 * 2 + 0.85, 0.5)),
    "under a maximum": (1 + Max(0, w - t) * Heaviside(y - a), (1 + 0.09 / 2, -0.3)),
    "under a modulus": (1 + (w - t + Abs(w - t)) * Heaviside(y - a) / 2, (1 + 0.09 / 2, -0.3)),
    "two states": (Piecewise((1, (y < a) & (y < 5)), (2, True)), (1.7, -1.0)),
}


@pytest.mark.parametrize("case", HIDDEN)
def test_a_jump_that_other_conditions_hide(case: str) -> None:
    """At most places one condition decides for the other: the jump is located all the same, and slopes have it."""
    rhs, (end, slope) = HIDDEN[case]
    if case == "in a window":  # y' = 2 to t = .15, where y = .3 = a: the window opens on its boundary; a little above
        rhs = rhs.xreplace({a: a + sp.Rational(1, 10)})
        end, slope = 0.3 + 0.1 + 2 * 0.75, -1.0
    run = odesim.integrate(system(rhs, {a: 0.3, w: 0.6}), sensitivities=("a",), span=(0, 1), backend="numpy")
    assert [float(run.final[name]) for name in ("y", "dy_da")] == pytest.approx([end, slope], abs=1e-6)


MOVED: dict[str, tuple[Any, dict[Any, float], float, float, tuple[float, float, float]]] = {
    # y', its parameters, the start, the end of the span, and there y and its slopes in a and w; by hand, piece by piece
    "remainder": (Piecewise((1, Mod(y, 1) < w), (2 * a, True)), {a: 1.0, w: 0.3}, 0.0, 3.0, (4.5, 3.0, -5.0)),
    "step of a remainder": (a + Heaviside(Mod(y, 1) - w), {a: 1.0, w: 0.3}, 0.0, 3.0, (4.5, 4.5, -5.0)),
    "threshold rounded up": (Piecewise((a, y < w + sp.ceiling(t) / 2), (3, True)), {a: 1.0, w: 0.3}, 0.0, 3.0, (7.4, 2.4, -2.0)),
    "threshold rounded down": (Piecewise((1, y < floor(t) + w), (a, True)), {a: 0.25, w: 0.3}, 0.0, 1.4, (0.875, 0.7, 0.75)),
    "threshold with a step": (Piecewise((1, y < Heaviside(t - a) + w), (0.25, True)), {a: 1.0, w: 0.3}, 0.0, 1.4, (0.875, -0.75, 0.75)),
    "either, not both": (Piecewise((1, sp.Xor(t < a, y < w)), (2, True)), {a: 0.1, w: 0.5}, 0.0, 0.5, (0.7, 2.0, -1.0)),
}


@pytest.mark.first(3)
@pytest.mark.parametrize("case", MOVED)
def test_boundaries_that_jump(case: str) -> None:
    """Where the boundary itself jumps onto the other side of the solution nothing pushes back, and slopes are those of the cause."""
    rhs, params, start, end, expected = MOVED[case]
    run = odesim.integrate(system(rhs, params, start), sensitivities=("a", "w"), span=(0, end), backend="numpy")
    assert run.status == "ok"
    assert [float(run.final[name]) for name in ("y", "dy_da", "dy_dw")] == pytest.approx(expected, abs=1e-6)


def test_a_threshold_of_a_sum_whose_terms_expand() -> None:
    """sum_m (v_m + 1)**2 - 1 = 14 t**2 + 12 t for v_m = (m + 1) t passes w at its root, to the rounding of a located boundary."""
    held = IndexedBase("v", shape=(M,))
    total = over(Sum, (held[m] + 1) ** 2 - 1, (m, M))
    made = System(
        name="expanded", source=Source("own", "test"), axes={m: M}, equations={held[m]: m + 1, y: Heaviside(total - w)},
        params=(Param(w, 5.0, REALS, "threshold"),), initial={held[m]: 0.0, y: 0.0}, sizes={M: 3}, span=(0.0, 3.0),
    )  # fmt: skip
    for at in (0.7, 5.0, 40.0):
        run = odesim.integrate(made, params={"w": at}, backend="numpy")
        assert float(run.final["y"]) == pytest.approx(3 - ((144 + 56 * at) ** 0.5 - 12) / 28, abs=1e-12)


@pytest.mark.parametrize("total", [Sum(v_k := IndexedBase("v", shape=(M,))[m], (m, 0, M - 1)), Sum(v_k**2, (m, 0, M - 1))])
@pytest.mark.parametrize("sign_", [1, -1])
def test_thresholds_of_a_sum(total: Any, sign_: int) -> None:
    """z counts the time after a sum of states has passed w: at t_w, where the slope is -dt_w/dw."""
    held = IndexedBase("v", shape=(M,))
    made = System(
        name="summed", source=Source("own", "test"), axes={m: M}, equations={held[m]: m + 1, y: Heaviside(sign_ * (total - w))},
        params=(Param(w, 2.0, REALS, "threshold"),), initial={held[m]: 0.0, y: 0.0}, sizes={M: 2}, span=(0.0, 3.0),
    )  # fmt: skip
    run = odesim.integrate(made, sensitivities=("w",), backend="numpy")
    passed, slope = (2 / 3, 1 / 3) if total.function == v_k else ((2 / 5) ** 0.5, 0.5 / (10**0.5))
    expected = [3 - passed, -slope] if sign_ > 0 else [passed, slope]
    assert [float(run.final[name]) for name in ("y", "dy_dw")] == pytest.approx(expected, abs=1e-6)

"""Random systems that switch on two lines in the plane, against scipy from one located switch to the next."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from sympy import Interval, cos, oo, sign, symbols

import odesim
from odesim.symbolic import Param, Source, System
from odesim.symbolic import time as t

x, v, p = symbols("x v p", real=True)
END = 6.0
Rates = Callable[[float, Any, Any], Any]


def random_switches(seed: int) -> tuple[System, Callable[[float], tuple[Any, float]]]:
    """A System with the parameter p = 1, and (state at the end or None where it slides, that time) as a function of p."""
    rng = np.random.default_rng(seed)
    turn = rng.normal(size=(2, 2)) * 0.7
    turn = turn - 0.9 * turn.T - 0.15 * np.eye(2)
    kick, push, lines, levels = rng.normal(size=(2, 2)), rng.normal(size=2), rng.normal(size=(2, 2)), 0.4 * rng.normal(size=2)
    beat, start = rng.uniform(0.5, 2), rng.normal(size=2)

    def reference(value: float) -> tuple[Any, float]:
        def gap(k: int) -> Callable[[float, Any], float]:
            return lambda _, z: float(lines[k] @ z - levels[k] * value)

        def rates(s: float, z: Any, sides: Any) -> Any:
            force = kick @ sides * np.array([value, 1.0])
            return turn @ z + force + np.array([push[0] * np.cos(beat * s), push[1]])

        now, z = 0.0, start.copy()
        sides = np.array([np.sign(gap(k)(0.0, z)) for k in range(2)])
        while now < END:
            events: list[Any] = [gap(0), gap(1)]
            for event, side in zip(events, sides, strict=True):
                event.terminal, event.direction = True, -side
            held = sides.copy()
            run: Any = solve_ivp(  # type: ignore[call-overload]
                lambda s, q, held=held: rates(s, q, held), (now, END), z, "DOP853", rtol=1e-11, atol=1e-12, events=events
            )
            now, z = run.t[-1], run.y[:, -1]
            for k in (k for k in range(2) if len(run.t_events[k])):
                sides[k] *= -1
                if lines[k] @ rates(now, z, sides) * sides[k] < 0:
                    return None, now
        return z, now

    sides = [sign(float(a) * x + float(b) * v - float(c) * p) for (a, b), c in zip(lines, levels, strict=True)]
    rows = [[float(n) for n in row] for row in (*turn, *kick)]
    driven = float(push[0]) * cos(float(beat) * t)
    made = System(
        name="random.switches",
        source=Source("own", "test"),
        axes={},
        equations={
            x: rows[0][0] * x + rows[0][1] * v + driven + p * (rows[2][0] * sides[0] + rows[2][1] * sides[1]),
            v: rows[1][0] * x + rows[1][1] * v + float(push[1]) + rows[3][0] * sides[0] + rows[3][1] * sides[1],
        },
        params=(Param(p, 1.0, Interval(-oo, oo), ""),),
        initial={x: float(start[0]), v: float(start[1])},
        span=(0.0, END),
    )
    return made, reference


# the last one comes within rounding of its line again, just after it has crossed it
@pytest.mark.first(1)
@pytest.mark.parametrize(("seed", "method"), [(0, "tsit5"), (1, "dop853"), (2, "rodas5p"), (3, "vern7"), (125, "dop853")])
def test_random_switches(seed: int, method: str) -> None:
    """States, slopes in p against central differences, or the time at which the run slides."""
    made, reference = random_switches(seed)
    exact, end = reference(1.0)
    run = odesim.integrate(made, method=method, backend="numpy", rtol=1e-10, atol=1e-11, sensitivities="p")
    assert run.status == ("ok" if exact is not None else "sliding") and run.t_end == pytest.approx(end, abs=1e-7)
    if exact is None:
        return
    assert [float(run.final[name]) for name in ("x", "v")] == pytest.approx(exact, abs=1e-7)
    up, down = (reference(1.0 + h)[0] for h in (1e-5, -1e-5))
    slopes = (up - down) / 2e-5
    assert [float(run.final[f"d{name}_dp"]) for name in ("x", "v")] == pytest.approx(slopes, abs=1e-5 * (1 + np.abs(slopes).max()))

"""Jumps that no condition states: poles inside bounded functions, the cut of atan2, v/|v|; and conditions that change at a pole."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import sympy as sp
from scipy.integrate import quad
from scipy.special import erf
from sympy import Abs, Heaviside, Piecewise, atan, atan2, cos, exp, pi, sign, sin, symbols, tan, tanh

import odesim
from odesim.symbolic import Param, Source, System
from odesim.symbolic import time as t
from tests.run.test_switches import REALS

x, y, c, g = symbols("x y c g", real=True)
METHODS = ("tsit5", "vern7", "rodas5p")
END = 10.0
Truth = Any


def poles(c: float) -> list[float]:
    """The poles of tan(u - c) in the span."""
    return list(c + np.pi / 2 + np.pi * np.arange(-3, 4))


FORMS: dict[str, tuple[Any, Truth, Any]] = {  # of u; its value with numpy, and where it jumps
    "saw": (atan(tan(x - c)), lambda u, c: np.arctan(np.tan(u - c)), poles),
    "arc": (atan(2 / (x - c)), lambda u, c: np.arctan(2 / (u - c)), lambda c: [c]),
    "cubic arc": (atan(1 / (x - c) ** 3 + x), lambda u, c: np.arctan(1 / (u - c) ** 3 + u), lambda c: [c]),
    "saturated": (tanh(1 / (x - c)), lambda u, c: np.tanh(1 / (u - c)), lambda c: [c]),
    "error function": (sp.erf(1 / (c - x)), lambda u, c: erf(1 / (c - u)), lambda c: [c]),
    "saturated teeth": (tanh(tan(x - c)), lambda u, c: np.tanh(np.tan(u - c)), poles),
    "angle": (atan2(sin(x - c), cos(x - c)), lambda u, c: np.arctan2(np.sin(u - c), np.cos(u - c)), lambda c: c + np.pi * np.arange(-5, 6)),
    "direction": (3 * (x - c) * x / Abs(x - c), lambda u, c: 3 * u * np.sign(u - c), lambda c: [c]),
    "direction, inverted": (Abs(x - c) / (x - c), lambda u, c: np.sign(u - c), lambda c: [c]),
}
CONDITIONS: dict[str, tuple[Any, Truth, Any]] = {  # on states: those on time have their own laws
    "reciprocal": (Piecewise((1, 1 / (x - c) > 0), (2, True)), lambda u, c: 2.0 - (u > c), lambda c: [c]),
    "steps": (Heaviside(1 / (x - c)) + sign(1 / (c - x)), lambda u, c: 1.0 * (u > c) - np.sign(u - c), lambda c: [c]),
    "level": (Piecewise((1, 4 / (x - c) <= 1), (2, True)), lambda u, c: 1.0 + (0 < u - c < 4), lambda c: [c, c + 4]),
    "tangent": (
        Piecewise((1, tan(x - c) > 0), (2, True)), lambda u, c: 2.0 - (np.tan(u - c) > 0),
        lambda c: [*poles(c), *(np.pi * np.arange(-4, 5) + c)],
    ),
}  # fmt: skip
REAL: dict[str, tuple[Any, Truth, Any]] = {  # not by rodas
    "logistic": (1 / (1 + exp(1 / (x - c))), lambda u, c: 1 / (1 + np.exp(min(1 / (u - c), 700.0))), lambda c: [c]),
}
CASES = {
    f"{name}-{at}": (form, at)
    for name, form in {**FORMS, **CONDITIONS, **REAL}.items()
    for at in "tx"
    if at == "x" or name not in CONDITIONS
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("case", CASES)
def test_jumps_at_poles(case: str, method: str) -> None:
    """The integral, of a function of time and of a state x = t, is that of scipy between the jumps."""
    (rate, value, jumps), at = CASES[case]
    if method.startswith("rodas") and "logistic" in case:
        pytest.skip("rodas cannot take the derivative of an exponential that overflows")
    made = System(
        name="pole", source=Source("own", "test"), axes={}, equations={x: 1, g: rate if at == "x" else rate.xreplace({x: t})},
        params=(Param(c, 1.0, REALS, "place"),), initial={x: 0, g: 0}, span=(0, END),
    )  # fmt: skip
    for place in np.random.default_rng(1).uniform(1.0, END - 2, 2):
        edges = sorted({0.0, END, *(float(e) for e in jumps(place) if 0 < e < END)})
        parts = (quad(value, a + 1e-12, b - 1e-12, (place,), epsabs=1e-11, epsrel=1e-11, limit=200)[0] for a, b in pairwise(edges))
        run = odesim.integrate(made, params={"c": place}, method=method, backend="numpy", rtol=1e-9, atol=1e-11)
        assert (run.status, float(run.final["g"])) == ("ok", pytest.approx(sum(parts), abs=1e-7)), place  # 100 rtol


def test_fifty_teeth() -> None:
    """The mean of a sawtooth of fifty teeth at default tolerances."""
    made = System(
        name="teeth", source=Source("own", "test"), axes={}, equations={g: sp.Rational(1, 2) + atan(tan(pi * t)) / pi}, params=(),
        initial={g: 0}, span=(0, 50),
    )  # fmt: skip
    for method in METHODS:
        assert float(odesim.integrate(made, method=method, backend="numpy").final["g"]) == pytest.approx(25, abs=1e-9)


@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_members_and_friction(backend: str) -> None:
    """A mass that v/|v| brakes slides as far as energy says, at c of its speed: until it rests."""
    made = System(
        name="friction", source=Source("own", "test"), axes={}, equations={x: y, y: -c * y / Abs(y)},
        params=(Param(c, 1.0, REALS, "friction"),), initial={x: 0, y: 1}, span=(0, 0.9),
    )  # fmt: skip
    for friction in (0.5, 1.0):
        run = odesim.integrate(made, params={"c": friction}, backend=backend)
        assert float(run.final["x"]) == pytest.approx(0.9 - friction * 0.405, abs=1e-9)
    assert odesim.integrate(made, params={"c": 2.0}, backend=backend).status == "sliding"


@pytest.mark.parametrize("angle", [atan(tan(pi * t)), sp.asin(sin(pi * t)), atan(sin(pi * t) / cos(pi * t))])
def test_a_condition_on_an_angle_in_time(angle: sp.Expr) -> None:
    """Every zero and every pole is a time of the condition: the time for which it holds is that of numpy's own points."""
    made = System(
        name="angle", source=Source("own", "test"), axes={}, equations={g: sp.Piecewise((1, angle > 0), (0, True))}, params=(),
        initial={g: 0}, span=(0.1, 3.2),
    )  # fmt: skip
    points = np.linspace(0.1, 3.2, 310_001)
    share = np.mean(sp.lambdify(t, angle, "numpy")(points) > 0)
    for method in METHODS:
        assert float(odesim.integrate(made, method=method, backend="numpy").final["g"]) == pytest.approx(3.1 * share, abs=2e-4)  # of points

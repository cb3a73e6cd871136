"""Systems that blow up at a time that is known in closed form, and random numbers for them."""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import erf, exp1
from sympy import Interval, Sum, Symbol, cos, exp, oo, sqrt

from odesim.inputs.registry import load_model
from odesim.symbolic import IndexedBase, Param, System, index, over, sizes, time
from tests.support.systems import SOURCE

Numbers = dict[str, Any]
y, x, a, c, p = (Symbol(n, real=True) for n in ["y", "x", "a", "c", "p"])
l, k = index("l k")
(M,) = sizes("M")
v = IndexedBase("v", shape=(M,))
LINE = Interval(-oo, oo)


def made(name: str, equations: Any, growth: Any, *params: Any, **parts: Any) -> System:
    """A System whose states start at 1 unless something else is given."""
    given = tuple(Param(s, 1.0, LINE, f"the number {s}") for s in params)
    return System(
        name=f"made.{name}", source=SOURCE, equations=equations, params=given, initial=dict.fromkeys(equations, 1), growth=growth,
        **{"axes": {}, **parts},
    )  # fmt: skip


def power(rng: np.random.Generator) -> tuple[Numbers, Numbers, float]:
    """y' = c y^p: separation."""
    q, rate, start = rng.uniform(1.3, 4), 10 ** rng.uniform(-2, 2), 10 ** rng.uniform(-1, 1)
    return {"c": rate, "p": q}, {"y": start}, start ** (1 - q) / (rate * (q - 1))


def exponential(rng: np.random.Generator) -> tuple[Numbers, Numbers, float]:
    """y' = c exp(a y)."""
    rate, steep, start = 10 ** rng.uniform(-2, 2), rng.uniform(0.3, 3), rng.normal()
    return {"c": rate, "a": steep}, {"y": start}, np.exp(-steep * start) / (rate * steep)


def tangent(rng: np.random.Generator) -> tuple[Numbers, Numbers, float]:
    """y' = a^2 + y^2: y = a tan(a t + b)."""
    rate, start = 10 ** rng.uniform(-1, 1), rng.normal()
    return {"a": rate}, {"y": start}, (np.pi / 2 - np.arctan(start / rate)) / rate


def attention(rng: np.random.Generator) -> tuple[Numbers, Numbers, float]:
    """y' = c y exp(y^2/2): the integral of exp(-y^2/2)/y is E1(y^2/2)/2."""
    rate, start = 10 ** rng.uniform(-1, 1), rng.uniform(0.2, 2)
    return {"c": rate}, {"y": start}, float(exp1(start**2 / 2)) / (2 * rate)


def season(rng: np.random.Generator) -> tuple[Numbers, Numbers, float]:
    """y' = y^2 cos(a t): 1/y0 = sin(a t)/a, where that is reached."""
    rate = rng.uniform(0.2, 2)
    start = rate / rng.uniform(0.1, 0.9)
    return {"a": rate}, {"y": start}, float(np.arcsin(rate / start)) / rate


def spiral(rng: np.random.Generator) -> tuple[Numbers, Numbers, float]:
    """(x, y)' = r^2 (x, y) + a (-y, x): r' = r^3."""
    start = rng.normal(size=2)
    return {"a": rng.uniform(-2, 2)}, {"x": start[0], "y": start[1]}, 1 / (2 * float(start @ start))


def together(rng: np.random.Generator) -> tuple[Numbers, Numbers, float]:
    """v' = v |v|^2: r = |v|^2 has r' = 2 r^2."""
    start = rng.normal(size=4)
    return {}, {"v": start}, 1 / (2 * float(start @ start))


def joma(rng: np.random.Generator) -> tuple[Numbers, Numbers, float]:
    """joma.linear: the first component of erf(v / sqrt 2) = ... + sqrt(2/pi) Delta t to reach its end."""
    D, start = rng.normal(size=5), 0.3 * rng.normal(size=5)
    return {"Delta": D}, {"v": start}, float(np.min(np.sqrt(np.pi / 2) * (1 - np.sign(D) * erf(start / np.sqrt(2))) / np.abs(D)))


Draw = Callable[[np.random.Generator], tuple[Numbers, Numbers, float]]
FAMILIES: dict[str, tuple[System, Draw]] = {
    "power": (made("power", {y: c * y**p}, y ** (p - 1), c, p), power),
    "exponential": (made("exponential", {y: c * exp(a * y)}, exp(a * y), a, c), exponential),
    "tangent": (made("tangent", {y: a**2 + y**2}, sqrt(a**2 + y**2), a), tangent),
    "attention": (made("attention", {y: c * y * exp(y**2 / 2)}, exp(y**2 / 2), c), attention),
    "season": (made("season", {y: y**2 * cos(a * time)}, y, a), season),
    "spiral": (made("spiral", {x: (x**2 + y**2) * x - a * y, y: (x**2 + y**2) * y + a * x}, x**2 + y**2, a), spiral),
    "together": (
        made("together", {v[l]: v[l] * over(Sum, v[k] ** 2, (k, M))}, over(Sum, v[k] ** 2, (k, M)), axes={l: M}, sizes={M: 4}),
        together,
    ),
    "joma": (load_model("joma.linear"), joma),
}
"""{name: (System, what draws parameters, a start, and the time t* that they have)}."""

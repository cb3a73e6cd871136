"""Maps for the tests, each with the same update in plain numpy."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sympy import Interval, Piecewise, Sum, oo, sin, symbols

from odesim.symbolic import IndexedBase, Invariant, Map, Param, Source, System, index, over, sizes, softmax, time

SOURCE, REAL = Source("none", "made for the tests"), Interval(-oo, oo)
(i, j, n), (M, N) = index("i j n"), sizes("M N")
w, u, xi = (IndexedBase(name, shape=(M,)) for name in ("w", "u", "xi"))
H, X = IndexedBase("H", shape=(M, M)), IndexedBase("X", shape=(N, M))
eta, beta, momentum, x, y = symbols("eta beta momentum x y", real=True)


def number(symbol: Any, default: Any) -> Param:
    return Param(symbol, default, REAL, "a number")


def spread(count: int, *shape: int) -> Any:
    """Numbers that differ, between -1 and 1."""
    return np.sin(1.0 + 2.4 * np.arange(float(np.prod(shape)))).reshape(shape) / count


MOMENTUM = Map(
    name="test.momentum", source=SOURCE, axes={i: M},
    updates={
        w[i]: w[i] + momentum * u[i] - eta * over(Sum, H[i, j] * w[j], (j, M)),
        u[i]: momentum * u[i] - eta * over(Sum, H[i, j] * w[j], (j, M)),
    },
    params=(
        Param(H, lambda given: np.eye(given["M"]) + spread(9, given["M"], given["M"]), REAL, "curvature"), number(eta, 0.1),
        number(momentum, 0.8),
    ),
    initial={w[i]: 1.0 + i, u[i]: 0.0}, sizes={M: 3}, steps=40,
)  # fmt: skip
HOPFIELD = Map(
    name="test.hopfield", source=SOURCE, axes={i: M},
    updates={xi[i]: over(Sum, X[n, i] * softmax(beta * over(Sum, X[n, j] * xi[j], (j, M)), (n, N)), (n, N))},
    params=(Param(X, lambda given: 2 * spread(1, given["N"], given["M"]), REAL, "patterns"), number(beta, 3.0)),
    initial={xi[i]: 0.3 - 0.1 * i}, sizes={M: 3, N: 5}, steps=20, observables={"size": over(Sum, xi[i] ** 2, (i, M))},
)  # fmt: skip
SCHEDULE = Map(
    name="test.schedule", source=SOURCE, axes={}, updates={x: x - eta * sin(x) / (1 + time)}, params=(number(eta, 0.5),),
    initial={x: 1.0}, steps=30,
)  # fmt: skip
TENT = Map(
    name="test.tent", source=SOURCE, axes={}, updates={x: Piecewise((2 * x, x < 0.5), (2 - 2 * x, True)), y: y + time},
    params=(), initial={x: 0.34375, y: 0.0}, steps=12, invariants=(Invariant("inside", x, "nonnegative"),),
)  # fmt: skip


def descend(t: float, s: dict[str, Any], p: dict[str, Any]) -> dict[str, Any]:
    v = p["momentum"] * s["u"] - p["eta"] * (p["H"] @ s["w"])
    return {"w": s["w"] + v, "u": v}


def retrieve(t: float, s: dict[str, Any], p: dict[str, Any]) -> dict[str, Any]:
    z = p["beta"] * p["X"] @ s["xi"]
    a = np.exp(z - z.max())
    return {"xi": p["X"].T @ (a / a.sum())}


@dataclass(frozen=True)
class Case:
    """A Map and its update update(t, states, params) -> states. exact: rounding plays no part. by: a parameter for derivatives."""

    system: System
    update: Callable[[float, dict[str, Any], dict[str, Any]], dict[str, Any]]
    by: str = ""
    exact: bool = False
    params: dict[str, Any] = field(default_factory=dict)


CASES = {
    case.system.name.partition(".")[2]: case
    for case in (
        Case(MOMENTUM, descend, by="eta"),
        Case(HOPFIELD, retrieve, by="beta"),
        Case(SCHEDULE, lambda t, s, p: {"x": s["x"] - p["eta"] * np.sin(s["x"]) / (1 + t)}, by="eta"),
        Case(TENT, lambda t, s, p: {"x": 2 * s["x"] if s["x"] < 0.5 else 2 - 2 * s["x"], "y": s["y"] + t}, exact=True),
    )
}


def orbit(case: Case, start: dict[str, Any], params: dict[str, Any], steps: int) -> dict[str, Any]:
    """{state: (steps + 1, *shape)}: the states after 0, 1, ... updates, by a plain loop."""
    rows = [{name: np.array(value, float) for name, value in start.items()}]
    for t in range(steps):
        rows.append(case.update(float(t), rows[-1], params))
    return {name: np.array([row[name] for row in rows]) for name in start}

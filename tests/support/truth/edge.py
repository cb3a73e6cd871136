"""Steps of gradient descent at the edge of stability: losses by hand, their derivatives in other forms than in the models."""

from math import cosh, erfc, exp, pi, sinh, sqrt

import numpy as np

from tests.support.truth.arrays import Arrays


def self_stabilisation(t: float, y: Arrays, q: Arrays) -> Arrays:
    x = y["x"]
    return {"x": -x - y["y"] * x, "y": y["y"] + q["ea"] - q["b"] * x * x / 2}


def product(t: float, y: Arrays, q: Arrays) -> Arrays:
    s = float(y["x"] * y["y"])
    slope = sinh(s) / cosh(s) if q["shape"] >= 0.5 else s * (1 + s * s) ** -0.5
    return {"x": y["x"] - q["eta"] * slope * y["y"], "y": y["y"] - q["eta"] * slope * y["x"]}


def four_layers(t: float, y: Arrays, q: Arrays) -> Arrays:
    """All four weights, x = z and y = w."""
    w = np.array([y["x"], y["y"], y["x"], y["y"]], dtype=float)
    step = w - q["eta"] * (np.prod(w) - 1) * np.array([np.prod(np.delete(w, k)) for k in range(4)])
    return {"x": step[0], "y": step[1]}


def threshold_neuron(t: float, y: Arrays, q: Arrays) -> Arrays:
    A, b = float(y["A"]), float(y["b"])
    share = erfc(-b / sqrt(2)) / 2
    g = exp(-b * b / 2) / sqrt(2 * pi) + b * share
    slope = (1 / (1 + exp(-A * g)) - 1 / (1 + exp(A * g))) / 2  # of [ln(1 + e^s) + ln(1 + e^-s)]/2
    return {"A": A - 2 * q["d"] ** 2 * q["eta"] * slope * g, "b": b - q["eta"] * slope * A * share}


def sam(t: float, y: Arrays, q: Arrays) -> Arrays:
    """The gradient of lam w^2 / 2 at the point that the ascent leads to, along the slope or its sign."""
    w = float(y["w"])
    slope = q["lam"] * w
    up = w + q["rho"] * (slope if q["kind"] else np.sign(slope))
    return {"w": w - q["eta"] * q["lam"] * up}


def floor(y: Arrays, q: Arrays) -> tuple[float, np.ndarray, np.ndarray]:
    """S, its gradient and that of the loss on the floor of the valley, at y."""
    at = np.array([y["y1"], y["y2"]], dtype=float)
    return 10 + 6 * at[0] + 2 * at[1] ** 2, np.array([6.0, 4 * at[1]]), q["kap"] * (at - [q["c1"], q["c2"]])


def valley(t: float, y: Arrays, q: Arrays) -> Arrays:
    """Slopes of S x^2/2 + kap |y - c|^2/2."""
    S, n, down = floor(y, q)
    step = n * y["x"] ** 2 / 2 + down
    return {"x": y["x"] * (1 - q["eta"] * S), "y1": y["y1"] - q["eta"] * step[0], "y2": y["y2"] - q["eta"] * step[1]}


def central_flow(t: float, y: Arrays, q: Arrays) -> Arrays:
    """The part of the descent along the edge, where it is one; the rest brings S to the edge."""
    S, n, down = floor(y, q)
    spread = (q["stiff"] * (S - 2 / q["eta"]) - 2 * n @ down) / (n @ n)
    step = -q["eta"] * (down + max(spread, 0) / 2 * n)
    return {"y1": step[0], "y2": step[1]}


def directions(t: float, y: Arrays, q: Arrays) -> Arrays:
    """The descent along a, turned back by each direction over the edge."""
    step = np.array(q["eta"] * q["a"] * np.ones_like(y["y"]))
    for row, s in zip(q["G"], q["s"], strict=True):
        over = s + float(row @ y["y"]) - 2 / q["eta"]
        step = step - (q["eta"] * q["stiff"] * over / 2 * row if over > 0 else 0)
    return {"y": step}

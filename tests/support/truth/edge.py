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
    """The gradient of lam w^2 / 2 at the point that the normalised ascent leads to."""
    w = float(y["w"])
    up = w + q["rho"] * np.sign(q["lam"] * w)
    return {"w": w - q["eta"] * q["lam"] * up}

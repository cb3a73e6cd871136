"""Optimisers by hand: one step of each, or its rate, weight by weight; Muon by singular values."""

import numpy as np

from tests.support.truth.arrays import Arrays


def gradient(y: Arrays, q: Arrays) -> np.ndarray:
    """By the symmetric and the other part of H: as printed, sum_j H_ij w_j - b_i."""
    return np.array([sum(h * x for h, x in zip(row, y["w"], strict=True)) - b for row, b in zip(q["H"], q["b"], strict=True)])


def sign(t: float, y: Arrays, q: Arrays) -> Arrays:
    angle = np.arctan2(gradient(y, q), q["eps"])
    return {"w": -np.sin(angle)}


def adam(t: float, y: Arrays, q: Arrays) -> Arrays:
    g, since = gradient(y, q), t + q["first"]
    m = y["m"] / -np.expm1(-since / q["t1"])
    v = np.maximum(y["v"], 0) / -np.expm1(-since / q["t2"])
    return {"w": -m / (v**0.5 + q["eps"]), "m": g / q["t1"] - y["m"] / q["t1"], "v": g * g / q["t2"] - y["v"] / q["t2"]}


def adam_steps(t: float, y: Arrays, q: Arrays) -> Arrays:
    g, k = gradient(y, q), int(t) + 1
    m = q["b1"] * y["m"] + (1 - q["b1"]) * g
    v = q["b2"] * y["v"] + (1 - q["b2"]) * g * g
    right = np.sqrt(np.maximum(v, 0) / (1 - q["b2"] ** k)) + q["eps"]
    return {"w": y["w"] - q["lr"] / (1 - q["b1"] ** k) * m / right, "m": m, "v": v}


def momentum(t: float, y: Arrays, q: Arrays) -> Arrays:
    return {"w": y["u"], "u": -gradient(y, q) - q["gamma"] * y["u"]}


def heavy_ball(t: float, y: Arrays, q: Arrays) -> Arrays:
    v = gradient(y, q) + q["mu"] * y["v"]
    return {"w": y["w"] - q["lr"] * v, "v": v}


def newton_schulz(t: float, y: Arrays, q: Arrays) -> Arrays:
    return {"s": np.array([np.polyval([q["c"], 0, q["b"], 0, q["a"], 0], s) for s in y["s"]])}


def muon(t: float, y: Arrays, q: Arrays) -> Arrays:
    G = y["W"] - q["A"]
    V = q["beta"] * y["V"] + (1 - q["beta"]) * G
    U, s, R = np.linalg.svd((1 - q["beta"]) * G + q["beta"] * V, full_matrices=False)
    s = s / (np.sqrt((s**2).sum()) + 1e-7)
    for _ in range(5):
        s = np.polyval([2.0315, 0, -4.7750, 0, 3.4445, 0], s)
    return {"W": y["W"] - q["lr"] * (U * s) @ R, "V": V}

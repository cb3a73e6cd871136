"""Right-hand sides of the reversal curse, by hand in numpy, straight from the papers."""

import numpy as np

from tests.support.truth.arrays import Arrays


def reversal_row(t: float, y: Arrays, q: Arrays) -> Arrays:
    logits = np.zeros(int(q["M"]))
    logits[: int(q["r"])] = y["v"]
    p = np.exp(logits) / np.exp(logits).sum()
    return {"v": q["eta_Y"] / q["N"] * ((1 - q["r"] * p[0]) + q["r"] * p[-1])}  # of a target, less that of another token


def reversal_full(t: float, y: Arrays, q: Arrays) -> Arrays:
    dY = np.zeros_like(y["Y"])
    for source, target in zip(q["x1"], q["x3"], strict=True):
        p = np.exp(y["Y"][source])
        dY[source] -= p / p.sum()
        dY[source, target] += 1
    return {"Y": q["eta_Y"] / len(q["x1"]) * dY}


def reversal_bilinear(t: float, y: Arrays, q: Arrays) -> Arrays:
    E, dTheta = q["E"], np.zeros_like(y["Theta"])
    for source, target in zip(q["x1"], q["x3"], strict=True):
        p = np.exp(E @ (E[source] @ y["Theta"]))
        dTheta += np.outer(E[source], E[target] - p @ E / p.sum())
    return {"Theta": q["eta"] / len(q["x1"]) * dTheta}

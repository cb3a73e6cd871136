"""Right-hand sides of n-grams and of parents by hand."""

import numpy as np

from tests.support.truth.arrays import Arrays


def linear(t: float, y: Arrays, q: Arrays) -> Arrays:
    """By x = (a v, b V), in which the loss is x.H x / 2 - g.x + S / 2."""
    v, a, b, k = y["v"], float(y["w_d"] - y["w_o"]), float(y["w_o"]), float(q["k"])
    H, g = np.block([[q["C"], q["D"][:, None]], [q["D"], q["B"]]]), np.append(q["A"], q["B"])
    *of_v, of_sum = g - H @ np.append(a * v, b * v.sum())
    of_a, of_b = np.dot(of_v, v), of_sum * v.sum()
    return {"w_d": of_a / k, "w_o": (of_b - of_a) / (k * (k - 1)), "v": a * np.array(of_v) + b * of_sum}


def parent_row(t: float, y: Arrays, q: Arrays) -> Arrays:
    """Each logit by the Jacobian of the softmax."""
    S = np.exp(y["A"]) / np.exp(y["A"]).sum()
    return {"A": np.array([sum(S[j] * ((i == j) - S[i]) * q["G"][i] for i in range(len(S))) for j in range(len(S))])}

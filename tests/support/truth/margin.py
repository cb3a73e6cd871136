"""Right-hand sides of attention as a maximiser of margins: the gradient by hand, one sequence after another, in the time ln(1 + t)."""

from typing import Any

import numpy as np

from tests.support.truth.arrays import Arrays


def pulls(logits: Any, q: Arrays) -> Any:
    """Minus the derivative of the mean loss by each logit (N, T)."""
    out = np.zeros_like(logits)
    for i, row in enumerate(logits):
        a = np.exp(row) / np.exp(row).sum()
        score = q["best"] - q["lack"][i]
        slope = 1 / (1 + np.exp(a @ score))  # minus the derivative of ln(1 + exp(-x))
        out[i] = slope * a * (score - a @ score) / len(logits)
    return out


def prompt(t: float, y: Arrays, q: Arrays) -> Arrays:
    return {"p": np.exp(t) * np.einsum("it,itm->m", pulls(q["X"] @ y["p"], q), q["X"])}


def along_weights(W: Any, q: Arrays) -> Any:
    """Minus the gradient by W (d, d)."""
    logits = np.array([x @ W @ z for x, z in zip(q["X"], q["z"], strict=True)])
    return sum(np.outer(pull @ x, z) for pull, x, z in zip(pulls(logits, q), q["X"], q["z"], strict=True))


def weights(t: float, y: Arrays, q: Arrays) -> Arrays:
    return {"W": np.exp(t) * along_weights(y["W"], q)}


def key_query(t: float, y: Arrays, q: Arrays) -> Arrays:
    G = np.exp(t) * along_weights(y["K"] @ y["Q"].T, q)
    return {"K": G @ y["Q"], "Q": G.T @ y["K"]}


def next_token(t: float, y: Arrays, q: Arrays) -> Arrays:
    odds = q["m"] * np.exp(y["w"])
    return {"w": np.exp(t) * (q["y"] - odds / odds.sum())}

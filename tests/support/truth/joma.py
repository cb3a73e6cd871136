"""Right-hand sides of JoMA, and the entropy of a distribution, by hand in numpy, straight from the papers."""

import numpy as np

from tests.support.truth.arrays import Arrays


def linear(t: float, y: Arrays, q: Arrays) -> Arrays:
    return {"v": q["Delta"] * np.exp(y["v"] ** 2 / 2)}


def linear_softmax(t: float, y: Arrays, q: Arrays) -> Arrays:
    e = np.exp(y["v"] ** 2 / 2)
    return {"v": q["Delta"] * e / e.sum()}


def linear_multinode(t: float, y: Arrays, q: Arrays) -> Arrays:
    return {"V": np.diag(np.exp((y["V"] ** 2).sum(axis=1) / 2)) @ q["Delta"]}


def nonlinear(t: float, y: Arrays, q: Arrays) -> Arrays:
    return {"v": (q["mu"] - y["v"]) * np.exp(y["v"] ** 2 / 2)}


def nonlinear_softmax(t: float, y: Arrays, q: Arrays) -> Arrays:
    e = np.exp(y["v"] ** 2 / q["T"])
    return {"v": (q["mu"] - y["v"]) * e / e.sum()}


def linear_attention(t: float, y: Arrays, q: Arrays) -> Arrays:
    return {"V": np.diag(y["z"]) @ q["Delta"], "z": (y["V"] * q["Delta"]).sum(axis=1)}


def linear_bterm(t: float, y: Arrays, q: Arrays) -> Arrays:
    e = np.exp((y["v"] ** 2 - y["v"] @ y["v"] * q["b"]) / 2)
    return {"v": q["Delta"] * e / e.sum()}


def self_consistent(t: float, y: Arrays, q: Arrays) -> Arrays:
    b = np.exp(y["v"] ** 2 / 2)
    return {"v": b * (q["c"] - y["v"] * b)}


def nonlinear_log(t: float, y: Arrays, q: Arrays) -> Arrays:
    return {"L": np.exp((q["mu"] * (1 - np.exp(-y["L"]))) ** 2 / 2)}


def entropy(p: np.ndarray) -> float:
    """- sum p ln p, with 0 ln 0 = 0."""
    p = p[p > 0]
    return float(-(p * np.log(p)).sum())

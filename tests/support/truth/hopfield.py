"""Right-hand sides of associative memories, by hand in numpy, straight from the papers."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.support.truth.arrays import Arrays


def hopfield_update(t: float, y: Arrays, q: Arrays) -> Arrays:
    e = np.exp(q["beta"] * (y["xi"] @ q["X"]))
    return {"xi": q["X"] @ e / e.sum()}


def hopfield_modern(t: float, y: Arrays, q: Arrays) -> Arrays:
    return {"xi": (hopfield_update(t, y, q)["xi"] - y["xi"]) / q["tau"]}


def hopfield_potts(t: float, y: Arrays, q: Arrays) -> Arrays:
    e = np.exp(q["c"] * y["z"])
    return {"z": e / e.sum() - y["z"]}


def hopfield_two_patterns(t: float, y: Arrays, q: Arrays) -> Arrays:
    up, down = np.exp(q["beta"] * q["delta"] ** 2 * y["u"]), np.exp(-q["beta"] * q["delta"] ** 2 * y["u"])
    return {"u": (up - down) / (up + down) - y["u"]}


def hopfield_graded(t: float, y: Arrays, q: Arrays) -> Arrays:
    return {"u": np.array([sum(w * np.tanh(q["g"] * x) for w, x in zip(row, y["u"], strict=True)) for row in q["W"]]) - y["u"]}


def hopfield_two_layer(t: float, y: Arrays, q: Arrays) -> Arrays:
    e = np.exp(q["beta"] * y["h"])
    return {"v": (q["X"] @ (e / e.sum()) - y["v"]) / q["tau_v"], "h": (q["X"].T @ y["v"] - y["h"]) / q["tau_h"]}


def signs(energy: Callable[[np.ndarray, Arrays], float]) -> Any:
    """The next state: neurons of the group of step t take the sign of lower energy, +1 of two that are equal, given the others."""

    def step(t: float, y: Arrays, q: Arrays) -> Arrays:
        s, after = y["s"], np.array(y["s"])
        for i in range(len(s)):
            if i % int(q["B"]) == t % q["B"]:
                up, down = (np.where(np.arange(len(s)) == i, sign, s) for sign in (1.0, -1.0))
                after[i] = 1.0 if energy(up, q) <= energy(down, q) else -1.0
        return {"s": after}

    return step


hopfield_classical = signs(lambda s, q: -s @ q["W"] @ s / 2)
hopfield_dense = signs(lambda s, q: -sum(float(x @ s) ** int(q["m"]) for x in q["X"].T))

"""Shipped models at the largest sizes of their papers' pictures, each beside what one would write in numpy."""

from collections.abc import Callable, Mapping
from math import perm
from typing import Any

import numpy as np
from contraction_cases import Case, Numbers

from odesim.inputs.bind import bind
from odesim.inputs.registry import load_model

Rates = Callable[[Numbers, Any], Numbers]


def softmax(z: np.ndarray, axis: int = -1) -> np.ndarray:
    """Along an axis."""
    e = np.exp(z - z.max(axis=axis, keepdims=True))
    return np.asarray(e / e.sum(axis=axis, keepdims=True))


def case(name: str, numpy: Rates, large: Mapping[str, int], small: Mapping[str, int], params: Mapping[str, Any] | None = None) -> Case:
    """A Case of a shipped model: its parameters by default and as given, states near its start."""
    system = load_model(name)

    def values(n: Mapping[str, int], rng: np.random.Generator) -> tuple[Numbers, dict[str, Any]]:
        numbers = bind(system, sizes=dict(n), params=dict(params or {}))
        states = {key: np.asarray(start + 0.1 * rng.standard_normal(np.shape(start))) for key, start in numbers.initial.items()}
        return states, dict(numbers.params)

    return Case(name, system, numpy, large, small, values)


def induction_full() -> Case:
    """All sequences and queries at once."""

    def numpy(y: Numbers, p: Any) -> Numbers:
        X, after = p["X"].astype(int), p["after"].astype(int)
        P, W2, W3 = y["P"], y["W_2"], y["W_3"]
        first = softmax(P)
        rows = W2[X[:, :, None], X[:, None, :]]  # (s, q, i)
        second = softmax(rows @ first.T)
        columns = W3.T[X]  # (s, j, y)
        off = softmax(second @ columns)
        targets = X[:, after]
        np.put_along_axis(off, targets[..., None], np.take_along_axis(off, targets[..., None], 2) - 1, 2)
        off /= targets.size
        pull = off @ columns.transpose(0, 2, 1)  # (s, q, j)
        d3, d2 = np.zeros_like(W3.T), np.zeros_like(W2)
        np.add.at(d3, X, second.transpose(0, 2, 1) @ off)
        pull = second * (pull - (second * pull).sum(axis=2, keepdims=True))
        np.add.at(d2, (X[:, :, None], X[:, None, :]), pull @ first)
        seen = np.tensordot(pull, rows, ((0, 1), (0, 1)))  # (j, i)
        return {"P": -first * (seen - (first * seen).sum(axis=1, keepdims=True)), "W_2": -d2, "W_3": -d3.T}

    return case("induction.full", numpy, {"N": 6, "V": 7, "S": perm(7, 6)}, {"N": 3, "V": 5, "S": 60})


def lumped() -> Case:
    return case("gibbs.lumped", lambda y, p: {"pi": y["pi"] @ p["Q"]}, {"n": 512}, {"n": 8})


def circle() -> Case:
    def numpy(y: Numbers, p: Any) -> Numbers:
        apart = y["theta"][:, None] - y["theta"]
        return {"theta": -(softmax(p["beta"] * np.cos(apart)) * np.sin(apart)).sum(axis=1)}

    return case("particles.circle", numpy, {"n": 256}, {"n": 8}, {"beta": 5.0})


def rescaled() -> Case:
    def numpy(y: Numbers, p: Any) -> Numbers:
        z = y["z"]
        x = z @ y["E"].T
        a = softmax((x @ p["Q"].T) @ (x @ p["K"].T).T)
        return {"z": (a @ z - z) @ p["V"].T, "E": p["V"] @ y["E"]}

    return case("particles.rescaled", numpy, {"n": 256, "d": 16}, {"n": 6, "d": 2})


def two_layer() -> Case:
    def numpy(y: Numbers, p: Any) -> Numbers:
        v, h, X = y["v"], y["h"], p["X"]
        return {"v": (X @ softmax(p["beta"] * h) - v) / p["tau_v"], "h": (X.T @ v - h) / p["tau_h"]}

    return case("hopfield.two_layer", numpy, {"d": 512, "N": 1000}, {"d": 6, "N": 4})


def graded() -> Case:
    numpy = lambda y, p: {"u": p["W"] @ np.tanh(p["g"] * y["u"]) - y["u"]}  # noqa: E731
    return case("hopfield.graded", numpy, {"d": 1000}, {"d": 8})


def margins() -> Case:
    numpy = lambda y, p: {"m": p["M"] * p["p"] / (np.exp(y["m"]) + p["M"] - 1)}  # noqa: E731
    return case("memory.softmax_regression", numpy, {"N": 100_000}, {"N": 10})


def stage1() -> Case:
    def numpy(y: Numbers, p: Any) -> Numbers:
        P, shown = p["P"], p["P_shown"]
        return {"W_V": 2 * (P - shown @ y["W_V"].T).T @ shown / len(P)}

    return case("topics.stage1", numpy, {"d": 101, "N": 45}, {"d": 31, "N": 45}, {"T": 10, "tau": 2})


def facts() -> Case:
    def numpy(y: Numbers, p: Any) -> Numbers:
        x1, x3 = p["x1"].astype(int), p["x3"].astype(int)
        off = softmax(y["Y"][x1])
        off[np.arange(len(x1)), x3] -= 1
        rate = np.zeros_like(y["Y"])
        np.add.at(rate, x1, off)
        return {"Y": -p["eta_Y"] / len(x1) * rate}

    return case("reversal.full", numpy, {"R": 800, "M": 802, "N": 540}, {"R": 6, "M": 8, "N": 4})


MODEL_CASES = (induction_full, lumped, circle, rescaled, two_layer, graded, margins, stage1, facts)
__all__ = ["MODEL_CASES"]

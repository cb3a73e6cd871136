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


def parallel() -> Case:
    return case("gibbs.parallel", lambda y, p: {"pi": y["pi"] @ p["Q"]}, {"S": 1024}, {"S": 16})


def training() -> Case:
    """Signs with all fields and pairs, two masked."""

    def numpy(y: Numbers, p: Any) -> Numbers:
        F, P, G = p["F"], p["p"], p["G"].astype(int)
        pulls = softmax((y["theta"] @ F)[G]) * P[G].sum(axis=1, keepdims=True)
        return {"theta": F @ (P - np.bincount(G.ravel(), pulls.ravel(), len(P)) * len(P) / G.size)}

    return case("gibbs.training_flow", numpy, {"S": 256, "A": 36, "N": 1792, "R": 4}, {"S": 16, "A": 10, "N": 24, "R": 4}, {"k": 2})


def unnormalised() -> Case:
    """One head."""

    def numpy(y: Numbers, p: Any) -> Numbers:
        x = y["x"]
        pull = np.exp(p["beta"] * (x @ p["Q"][0].T) @ (x @ p["K"][0].T).T) @ x @ p["V"][0].T / len(x)
        return {"x": pull - (pull * x).sum(axis=1, keepdims=True) * x}

    return case("particles.unnormalised", numpy, {"n": 256, "d": 16, "H": 1}, {"n": 6, "d": 3, "H": 1})


def tied() -> Case:
    def numpy(y: Numbers, p: Any) -> Numbers:
        E, P, shown = y["E"], p["P"], p["P_shown"]
        read = shown @ E.T
        off = read @ E - P
        return {"E": -2 * (read.T @ off + E @ off.T @ shown) / len(P)}

    return case("topics.tied", numpy, {"d": 101, "N": 45, "K": 101}, {"d": 31, "N": 45, "K": 31}, {"T": 10, "tau": 2})


def deep_linear() -> Case:
    """Three layers."""

    def numpy(y: Numbers, p: Any) -> Numbers:
        W1, W2, W3 = y["W1"], y["W2"], y["W3"]
        low, high = W2 @ W1, W3 @ W2
        off = p["Sigma"] - W3 @ low
        return {"W1": high.T @ off, "W2": W3.T @ off @ W1.T, "W3": off @ low.T}

    return case("classics.deep_linear", numpy, {"d": 100}, {"d": 3})


def committee() -> Case:
    """The means of erf units over fields with covariances C, students and teachers together, weights w of the error."""

    def numpy(y: Numbers, p: Any) -> Numbers:
        Q, R, v, eta = y["Q"], y["R"], y["v"], p["eta"]
        K = len(v)
        C, w = np.block([[Q, R], [R.T, p["T"]]]), np.concatenate([v, -p["A"]])
        one = 1 + C.diagonal()
        both = np.outer(one, one)
        pull = 2 / np.pi * (C * one[:K, None, None] - C[:K, :, None] * C[:K, None]) @ (w / np.sqrt(both - C**2)[:K])[..., None]
        pull = -v[:, None] * pull[..., 0] / one[:K, None]
        students, fields = C[:K, :K], C[:K]
        det = (both - C**2)[:K, :K]
        left, right = fields[:, None], fields[None]  # (i, 1, f), (1, k, f)
        det3 = det[..., None] * one + 2 * students[..., None] * left * right - right**2 * one[:K, None, None] - left**2 * one[:K, None]
        cross = left[..., None] * right[..., None, :]
        top = students[..., None, None] * (cross + cross.swapaxes(2, 3)) + C * det[..., None, None]
        top -= (right[..., None] * right[..., None, :]) * one[:K, None, None, None]
        top -= (left[..., None] * left[..., None, :]) * one[:K, None, None]
        angles = np.arcsin(top / np.sqrt(det3[..., None] * det3[..., None, :]))
        spread = (4 / np.pi**2 * (angles @ w) @ w + 2 * p["sigma"] ** 2 / np.pi) / np.sqrt(det)
        dQ = eta * (pull[:, :K] + pull[:, :K].T) + eta**2 * np.outer(v, v) * spread
        dv = -p["eta_2"] * 2 / np.pi * np.arcsin(fields / np.sqrt(both[:K])) @ w
        return {"Q": dQ, "R": eta * pull[:, K:], "v": dv}

    return case("classics.committee", numpy, {"K": 8, "M": 8}, {"K": 2, "M": 2})


def modes() -> Case:
    numpy = lambda y, p: {"a": p["L"] * y["a"] ** (2 - 2 / p["L"]) * (p["s"] - y["a"])}  # noqa: E731
    return case("classics.deep_linear_modes", numpy, {"r": 100}, {"r": 4}, {"L": 2.0})


def potts() -> Case:
    return case("hopfield.potts", lambda y, p: {"z": softmax(p["c"] * y["z"]) - y["z"]}, {"N": 64}, {"N": 8})


def master() -> Case:
    """Signs in pairs, one token redrawn at a time."""
    return case("gibbs.master", lambda y, p: {"pi": y["pi"] @ p["Q"]}, {"S": 4096}, {"S": 64})


def modern() -> Case:
    def numpy(y: Numbers, p: Any) -> Numbers:
        X = p["X"]
        return {"xi": (X @ softmax(p["beta"] * (X.T @ y["xi"])) - y["xi"]) / p["tau"]}

    return case("hopfield.modern", numpy, {"d": 64, "N": 100_000}, {"d": 8, "N": 10})


def classical() -> Case:
    """One update of all neurons."""
    numpy = lambda y, p: {"s": np.where(p["W"] @ y["s"] >= 0, 1.0, -1.0)}  # noqa: E731
    return case("hopfield.classical", numpy, {"d": 1000, "N": 138}, {"d": 16, "N": 4}, {"B": 1})


def dense() -> Case:
    """One update of all neurons, cubes of overlaps."""

    def numpy(y: Numbers, p: Any) -> Numbers:
        X, s, m = p["X"], y["s"], p["m"]
        others = X.T @ s - X * s[:, None]
        return {"s": np.where(((others + X) ** m - (others - X) ** m).sum(axis=1) >= 0, 1.0, -1.0)}

    return case("hopfield.dense", numpy, {"d": 100, "N": 1500}, {"d": 8, "N": 6}, {"B": 1, "m": 3})


MODEL_CASES = (
    induction_full, lumped, circle, rescaled, two_layer, graded, margins, stage1, facts, parallel, training, unnormalised, tied,
    deep_linear, committee, modes, potts, master, modern, classical, dense,
)  # fmt: skip
__all__ = ["MODEL_CASES"]

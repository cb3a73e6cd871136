"""Losses with gradients derived by hand in numpy: deep linear networks, topics, attention, gathers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy as sp
from sympy import Interval, Sum, Symbol, log, oo, tanh

from odesim.symbolic import IndexedBase, MaxOver, Param, Source, System, gradient_flow, index, layers, logsumexp, over, sizes, softmax

SOURCE, REAL = Source("none", "a test"), Interval(-oo, oo)
a, b, i, j, k, n, w, x, l = index("a b i j k n w x l")
C, D, N, S = sizes("C D N S")
Arrays = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """A loss of states and parameters, and its gradient {state: array} as a function of numbers."""

    loss: Any
    states: tuple[Any, ...]
    params: tuple[Any, ...]
    by_hand: Callable[[Arrays], Arrays]
    axes: dict[Any, Any]
    whole: tuple[Any, ...] = ()

    @property
    def system(self) -> System:
        """The gradient flow, with the loss as an observable."""
        return System(
            name="flow",
            source=SOURCE,
            axes=self.axes,
            equations=gradient_flow(self.loss, dict.fromkeys(self.states, 1)),
            params=(*(Param(p, 1.0, REAL, "numbers") for p in self.params), *self.whole),
            initial=dict.fromkeys(self.states, 0),
            observables={"loss": self.loss},
        )


def deep_linear(depth: int) -> Case:
    """|W_L ... W_1 X - T|^2 / 2: dW_m is (W_L ... W_m+1)^T R (W_m-1 ... W_1 X)^T, R the residual."""
    X, T = IndexedBase("X", shape=(D, N)), IndexedBase("T", shape=(C, N))
    W = [IndexedBase(f"W{m}", shape=(C if m == depth - 1 else D, D)) for m in range(depth)]
    h = layers(depth, lambda l, h: over(Sum, W[l][i, k] * h[k, n], (k, D)), X[i, n])

    def by_hand(y: Arrays) -> Arrays:
        weights = [y[f"W{m}"] for m in range(depth)]
        below = [y["X"]]
        for weight in weights:
            below.append(weight @ below[-1])
        back, found = below[-1] - y["T"], {}
        for m in reversed(range(depth)):
            found[f"W{m}"], back = back @ below[m].T, weights[m].T @ back
        return found

    loss = over(Sum, (h[depth][k, n] - T[k, n]) ** 2, (k, C), (n, N)) / 2
    states = tuple(weight[b if m == depth - 1 else a, j] for m, weight in enumerate(W))
    return Case(loss, states, (X, T), by_hand, {a: D, b: C, j: D})


def topics() -> Case:
    """Masked language model with one attention layer: E_s sum_{w, x} J |e_x - W_V A_s[:, w]|^2, A the softmax of W_K^T W_Q."""
    V, K, Q = (IndexedBase(f"W_{name}", shape=(D, D)) for name in "VKQ")
    J, P = IndexedBase("J", shape=(S, D, D)), IndexedBase("P", shape=(S, D))  # J[s, w, x] shown, true; P[s, l] of the masked text
    M = over(Sum, K[k, l] * Q[k, w], (k, D))
    A = softmax(M, (l, D), weight=P[n, l])
    F = over(Sum, V[i, l] * A, (l, D))
    loss = over(Sum, J[n, w, x] * (sp.KroneckerDelta(i, x) - F) ** 2, (i, D), (x, D), (w, D), (n, S))

    def by_hand(y: Arrays) -> Arrays:
        dV, dM = np.zeros_like(y["W_V"]), np.zeros_like(y["W_V"])
        M = y["W_K"].T @ y["W_Q"]
        for P, J in zip(y["P"], y["J"], strict=True):
            A = P[:, None] * np.exp(M)
            A /= A.sum(axis=0)
            R = 2 * (y["W_V"] @ A * J.sum(axis=1) - J.T)
            back = y["W_V"].T @ R
            dV += R @ A.T
            dM += A * (back - (A * back).sum(axis=0))
        return {"W_V": dV, "W_K": y["W_Q"] @ dM.T, "W_Q": y["W_K"] @ dM}

    return Case(loss, (V[a, j], K[a, j], Q[a, j]), (J, P), by_hand, {a: D, j: D})


def two_layers() -> Case:
    """Cross-entropy of a network with tanh units: mean_n (logsumexp_i - the label's logit), labels as parameters."""
    X, U, V = IndexedBase("X", shape=(N, D)), IndexedBase("U", shape=(S, D)), IndexedBase("V", shape=(C, S))
    label = IndexedBase("label", shape=(N,))
    hidden = tanh(over(Sum, U[l, j] * X[n, j], (j, D)))
    logits = over(Sum, V[i, l] * hidden, (l, S))
    own = over(Sum, sp.KroneckerDelta(i, label[n]) * logits, (i, C))
    loss = over(Sum, logsumexp(logits, (i, C)) - own, (n, N)) / N

    def by_hand(y: Arrays) -> Arrays:
        hidden = np.tanh(y["X"] @ y["U"].T)
        p = np.exp(hidden @ y["V"].T)
        p /= p.sum(axis=1, keepdims=True)
        p[np.arange(len(p)), y["label"]] -= 1
        p /= len(p)
        return {"V": p.T @ hidden, "U": ((p @ y["V"]) * (1 - hidden**2)).T @ y["X"]}

    whole = Param(label, 0, sp.Naturals0, "class", indexes=C)
    return Case(loss, (V[b, k], U[k, a]), (X,), by_hand, {b: C, k: S, a: D}, (whole,))


def mixed() -> Case:
    """A number, a gather, a maximum and a scalar state: c^2 sum_n z[label_n]^3 + ln(1 + c^2) + max_i z_i."""
    z, label, c = IndexedBase("z", shape=(C,)), IndexedBase("label", shape=(N,)), Symbol("c", real=True)
    loss = c**2 * over(Sum, z[label[n]] ** 3, (n, N)) + log(1 + c**2) + over(MaxOver, z[i], (i, C))

    def by_hand(y: Arrays) -> Arrays:
        z, c = y["z"], float(y["c"])
        dz = np.zeros_like(z)
        np.add.at(dz, y["label"], 3 * c**2 * z[y["label"]] ** 2)
        dz[z.argmax()] += 1
        return {"z": dz, "c": np.array(2 * c * (z[y["label"]] ** 3).sum() + 2 * c / (1 + c**2))}

    whole = Param(label, 0, sp.Naturals0, "class", indexes=C)
    return Case(loss, (z[b], c), (), by_hand, {b: C}, (whole,))


CASES: dict[str, Callable[[], Case]] = {
    **{f"deep linear, {depth} layers": lambda depth=depth: deep_linear(depth) for depth in (1, 2, 3, 6)},  # type: ignore[misc]
    "topics": topics,
    "two layers": two_layers,
    "mixed": mixed,
}
SIZES = {"C": 3, "D": 4, "N": 5, "S": 6}


def draw(system: System, seed: int = 0) -> Arrays:
    """Numbers for sizes, states and parameters of a System."""
    from odesim.targets.compiled import extents

    rng = np.random.default_rng(seed)
    chosen = {name: SIZES[name] for name in system.size_names}
    numbers: Arrays = dict(chosen)
    for param in system.params:
        shape = extents(param.shape, chosen)
        numbers[param.name] = np.arange(shape[0]) % SIZES["C"] if param.integer else rng.uniform(0.2, 1.0, shape)
    for name, extent in system.shapes.items():
        numbers[name] = rng.normal(0, 0.6, extents(extent, chosen))
    return numbers

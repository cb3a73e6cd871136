"""Observables of the models by hand-written numpy, at states where nothing vanishes."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import sympy as sp
from scipy.special import lambertw

from odesim.inputs.registry import list_models
from odesim.symbolic.parts import free_in_order
from odesim.targets.numpy_text import evaluate
from odesim.targets.observe import Observer
from tests.models.test_right_sides import odd_case, value
from tests.support.truth.scan_snap import decoded

Numbers = Mapping[str, Any]
MODELS = list_models()
Function = Callable[[Numbers, Numbers], Any]


def soft(z: Any) -> Any:
    """exp(z) over its sum, along the last axis."""
    odds = np.exp(z)
    return odds / odds.sum(axis=-1, keepdims=True)


def entropy(p: Any) -> Any:
    """- sum p ln p along the last axis, of a p that is normalised first."""
    p = np.abs(p) / np.abs(p).sum(axis=-1, keepdims=True)
    return -np.where(p > 0, p * np.log(np.where(p > 0, p, 1)), 0).sum(axis=-1)


def squares(y: Numbers, q: Numbers) -> Any:
    """The entropy of attention whose logits are v^2 / 2."""
    return entropy(np.exp(y["v"] ** 2 / 2))


def divergence(p: Any, q: Any) -> Any:
    """sum p ln(p / q), p cut off at 0."""
    p = np.maximum(p, 0)
    return np.where(p > 0, p * np.log(np.where(p > 0, p, 1) / q), 0).sum()


def gibbs(y: Numbers, q: Numbers) -> dict[str, Any]:
    return {"TV": np.abs(y["pi"] - q["p"]).sum() / 2, "KL": divergence(y["pi"], q["p"])}


def by_b(y: Numbers, q: Numbers) -> Any:
    return soft(y["v"] ** 2 / 2 - q["b"] * (y["v"] ** 2).sum() / 2)


def logged(y: Numbers, q: Numbers) -> Any:
    return q["mu"] * (1 - np.exp(-y["L"]))


def occurrence(q: Numbers, L: int) -> Any:
    H = np.arange(1, L)
    return 1 - (1 - q["rho"] ** (2 * H)) / 2 / (1 - q["rho"] ** (L - 1) * q["rho0"])


def heights(y: Numbers, q: Numbers) -> tuple[Any, Any]:
    """The attention to all leaves of a height, and to one of them."""
    count = (q["N"] - 1) * q["N"] ** np.arange(len(y["v"]))
    mass = count * np.exp(y["v"] ** 2 / 2)
    return mass / mass.sum(), mass / mass.sum() / count


def leaves(y: Numbers, q: Numbers) -> Any:
    """The entropy over all leaves."""
    mass, share = heights(y, q)
    return -(mass * np.log(share)).sum()


def patterns(y: Numbers, q: Numbers) -> Any:
    """The attention of a state to the patterns, the columns of X."""
    return soft(q["beta"] * q["X"].T @ y["xi"])


def modern(y: Numbers, q: Numbers) -> dict[str, Any]:
    lse = np.log(np.exp(q["beta"] * q["X"].T @ y["xi"]).sum()) / q["beta"]
    return {"energy": y["xi"] @ y["xi"] / 2 - lse, "p": patterns(y, q), "entropy": entropy(patterns(y, q))}


def binary(y: Numbers, q: Numbers) -> Any:
    return q["X"].T @ y["s"] / len(y["s"])


def joint(y: Numbers, q: Numbers, weights: Callable[[Any, Any], Any]) -> dict[str, Any]:
    """The attention (N, Mc) of the samples and its mean entropy."""
    z = y["Z"][:, q["q"].astype(int)].T / q["T"]
    b = weights(q["X"], z)
    return {"attention": b, "entropy": q["pi"] @ entropy(b)}


def driven(y: Numbers, q: Numbers) -> dict[str, Any]:
    """Of a margin u before M - 1 other tokens."""
    M, u = q["M"], y["u"]
    rest = (M - 1) * np.exp(-u)
    return {"gamma": (M - 1) ** 2 / M * u * np.exp(-u) / (1 + rest), "alpha": 1 / (1 + rest), "loss": np.log(1 + rest), "h": u / M}


def contexts(y: Numbers, q: Numbers) -> Any:
    """c (K, S), normalised."""
    c = q["P"] * np.exp(y["Z"][q["psi"].astype(int)])
    return c / c.sum(axis=1, keepdims=True)


def own_tokens(y: Numbers, q: Numbers) -> Any:
    """The entropy over the tokens that no other class has; 0 of a class without any."""
    alone = (q["P"] > 0).sum(axis=0) == 1
    rows = contexts(y, q) * alone
    return np.array([entropy(row) if row.any() else 0.0 for row in rows])


def full(y: Numbers, q: Numbers) -> dict[str, Any]:
    alpha = decoded(dict(y), {**q, "psi": q["psi"].astype(int)})[1]
    found = {"loss": -q["p"] @ np.log(np.diagonal(alpha)), "c": contexts(y, q), "entropy": entropy(contexts(y, q))}
    return {**found, "entropy_distinct": own_tokens(y, q)}


def lengths(y: Numbers, q: Numbers) -> dict[str, Any]:
    return {f"norm_{name}": np.linalg.norm(matrix) for name, matrix in y.items() if name.startswith("W_")}


def merged(y: Numbers, q: Numbers) -> Any:
    """The share of pairs of different tokens whose product is above .999."""
    n, near = len(y["x"]), y["x"] @ y["x"].T > 0.999
    return (near.sum() - n) / max(n * (n - 1), 1)


OBSERVED: dict[str, Callable[[Numbers, Numbers], Mapping[str, Any]]] = {
    "classics.deep_linear": lambda y, q: {
        "product": y["W3"] @ y["W2"] @ y["W1"],
        "loss": ((q["Sigma"] - y["W3"] @ y["W2"] @ y["W1"]) ** 2).sum() / 2,
    },
    "gibbs.lumped": lambda y, q: gibbs(y, q) | {"mean": np.arange(len(y["pi"])) @ y["pi"] / (len(y["pi"]) - 1)},
    "gibbs.master": lambda y, q: gibbs(y, q) | {"mean": q["f"] @ y["pi"]},
    "gibbs.parallel": lambda y, q: {"mean": q["f"] @ y["pi"]},
    "hierarchy.grouped": lambda y, q: {"P": occurrence(q, len(y["v"]) + 1), "mass": heights(y, q)[0], "entropy": leaves(y, q)},
    "hopfield.classical": lambda y, q: {"overlap": binary(y, q), "energy": -y["s"] @ q["W"] @ y["s"] / 2},
    "hopfield.dense": lambda y, q: {"overlap": binary(y, q), "energy": -(binary(y, q) ** q["m"]).sum()},
    "hopfield.graded": lambda y, q: {"output": np.tanh(q["g"] * y["u"])},
    "hopfield.modern": modern,
    "hopfield.update": modern,
    "hopfield.potts": lambda y, q: {"energy": y["z"] @ y["z"] / 2 - np.log(np.exp(q["c"] * y["z"]).sum()) / q["c"]},
    "hopfield.two_layer": lambda y, q: {"p": soft(q["beta"] * y["h"]), "entropy": entropy(soft(q["beta"] * y["h"]))},
    "joma.joint_exp": lambda y, q: joint(y, q, lambda X, z: X * np.exp(z)),
    "joma.joint_linear": lambda y, q: joint(y, q, lambda X, z: X * z),
    "joma.joint_softmax": lambda y, q: joint(y, q, lambda X, z: X * np.exp(z) / (X * np.exp(z)).sum(axis=1, keepdims=True)),
    **dict.fromkeys(("joma.linear", "joma.linear_softmax"), lambda y, q: {"entropy": squares(y, q)}),
    "joma.linear_attention": lambda y, q: {"entropy": entropy(y["z"] ** 2)},
    "joma.linear_bterm": lambda y, q: {"p": by_b(y, q), "entropy": entropy(by_b(y, q))},
    "joma.linear_multinode": lambda y, q: {"entropy": entropy(np.exp((y["V"] ** 2).sum(axis=1) / 2))},
    "joma.nonlinear": lambda y, q: {"entropy": squares(y, q), "gap": q["mu"] - y["v"]},
    "joma.nonlinear_log": lambda y, q: {"v": logged(y, q), "gap": q["mu"] - logged(y, q), "entropy": squares({"v": logged(y, q)}, q)},
    "joma.nonlinear_softmax": lambda y, q: {"entropy": entropy(np.exp(y["v"] ** 2 / q["T"])), "gap": q["mu"] - y["v"]},
    "joma.self_consistent": lambda y, q: {
        "loss": ((q["c"] - y["v"] * np.exp(y["v"] ** 2 / 2)) ** 2).sum() / 2,
        "entropy": squares(y, q),
        "rest": np.sign(q["c"]) * np.sqrt(lambertw(q["c"] ** 2).real),
    },
    "memory.softmax_regression": lambda y, q: {
        "loss": q["p"] @ np.log1p((q["M"] - 1) * np.exp(-y["m"])),
        "probability": np.exp(y["m"]) / (np.exp(y["m"]) + q["M"] - 1),
    },
    "particles.circle": lambda y, q: {
        "energy": np.exp(q["beta"] * (np.cos(y["theta"][:, None] - y["theta"]) - 1)).mean(),
        "x": np.stack([np.cos(y["theta"]), np.sin(y["theta"])], axis=1),
    },
    "particles.sphere": lambda y, q: {"product": y["x"] @ y["x"].T, "merged": merged(y, q)},
    "particles.unnormalised": lambda y, q: {
        "product": y["x"] @ y["x"].T,
        "merged": merged(y, q),
        "energy": np.exp(q["beta"] * y["x"] @ y["x"].T).mean(),
    },
    "reversal.row": lambda y, q: {
        "p_target": np.exp(y["v"]) / (q["r"] * np.exp(y["v"]) + q["M"] - q["r"]),
        "p_other": 1 / (q["r"] * np.exp(y["v"]) + q["M"] - q["r"]),
        "loss": np.log((q["r"] * np.exp(y["v"]) + q["M"] - q["r"]) / np.exp(y["v"])),
    },
    "scan_snap.decoder": driven,
    "scan_snap.full": full,
    "scan_snap.full_decorrelated": full,
    "scan_snap.reduced": lambda y, q: driven(y, q) | {"c": contexts(y, q), "chi": np.exp(2 * y["Z"][q["psi"].astype(int)])},
    "scan_snap.theorem4": lambda y, q: driven(y, q) | {"chi_bound": np.exp(2 * y["B"])},
    **dict.fromkeys(("topics.full", "topics.stage1"), lengths),
}


@pytest.mark.parametrize("name", OBSERVED)
def test_observables(name: str) -> None:
    """To rounding, an axis for each of their indices."""
    system, numbers, states = odd_case(name)
    states = {k: np.asarray(v) for k, v in states.items()}
    wanted = OBSERVED[name](states, {k: np.asarray(v) for k, v in numbers.params.items()} | dict(numbers.sizes))
    for observable in system.observables.keys() & wanted.keys():
        expr = system.observables[observable]
        want = np.asarray(wanted[observable])
        got = value(system, expr, numbers, states, free_in_order(expr, system.axes))
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-13 * max(np.abs(want).max(), 0.01), err_msg=observable)
    assert system.observables.keys() & wanted.keys()


@pytest.mark.first(8)
@pytest.mark.parametrize("name", MODELS)
def test_times_together_are_each_by_itself(name):
    """The observables at four times and states are those at each, up to rounding of sums."""
    system, numbers, states = odd_case(name)
    expressions = {name: e for name, e in system.observables.items() if isinstance(e, sp.Basic)}
    t, factors = np.arange(4.0), np.array([1.0, 0.9, 1.2, 0.7])
    y = {state: np.multiply.outer(factors, x) for state, x in states.items()}
    found = Observer(replace(system, observables=expressions, views=()))(t, y, numbers.sizes, numbers.params, lambda t, now: {})
    for k, at in enumerate(t):
        here = {"t": at, **numbers.params, **{state: values[k] for state, values in y.items()}}
        for seen, e in expressions.items():
            right = evaluate(e, free_in_order(e, system.axes), system.axes, numbers.sizes, here)
            np.testing.assert_allclose(found[seen][k], right, rtol=1e-11, atol=1e-12 * np.fmax(1.0, np.abs(right)).max(), err_msg=seen)

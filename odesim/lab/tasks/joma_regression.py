"""The task joma_regression: one node with exp attention learns a linear function of independent inputs, by SGD on a squared loss.

Source: tian2023joma, Theorems 1 and 4, on a loss: h = sum_l x_l exp(z_l) v_l, the target is c . x with normal x. The attention logits z
are trained like the weights v, from 0: at equal rates gradient flow keeps z = v^2 / 2, and v follows joma.self_consistent, where a
component comes to rest at sqrt(W(c^2)). What a batch adds is noise of order sqrt(eta / batch).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType

import numpy as np
from numpy.random import Generator

from odesim.base.arrays import Array, array_namespace, shaped
from odesim.lab.networks.joma import JomaBlock
from odesim.lab.networks.measures import entropy, softmax
from odesim.lab.training.optimizers import SGD
from odesim.lab.training.randomness import Drawn
from odesim.lab.training.task import Batch, Experiment, Observable, Params, ReferenceTask, Setting, Settings, TrainingFacts, pair_of


def draw_targets(c: Array, dtype: str, rng: Generator, count: int) -> Batch:
    """Samples of one seed for a JoMA block with the signal mse: x (count, M) iid normal, target c . x (count, 1), one query."""
    x = rng.standard_normal((count, len(c)))
    fixed = {"query": np.zeros(count, np.int64), "pi": np.full(count, 1 / count, dtype)}
    return {"x": x.astype(dtype), "target": (x @ c)[..., None].astype(dtype), **fixed}


@dataclass(frozen=True, eq=False)
class OneNode(JomaBlock):
    """A JoMA block whose query has no weight: Xi has a learning rate of its own, 0."""

    groups = MappingProxyType({"V": "w", "Xi": "query", "Z": "z"})  # type: ignore[assignment]


def node_observables(c: Array) -> tuple[Observable, ...]:
    """Weights, logits and the loss in the mean over x, under the names of joma.self_consistent."""

    def loss(params: Params) -> Array:
        xp, v = array_namespace(params["V"]), params["V"][..., 0]
        off = xp.asarray(c, v.dtype) - v * xp.exp(params["Z"][..., 0])
        return (off * off).sum(axis=-1) / 2

    return (
        Observable("v", lambda params: params["V"][..., 0].copy(), ("l",), "weights of the node"),
        Observable("z", lambda params: params["Z"][..., 0].copy(), ("l",), "attention logits"),
        Observable("loss_population", loss, (), "loss in the mean over inputs"),
        Observable("entropy", lambda params: entropy(softmax(params["Z"][..., 0])), (), "entropy of softmax(z)"),
        Observable("invariant", lambda params: (params["Z"] - params["V"] ** 2 / 2)[..., 0], ("l",), "z - v^2 / 2: gradient flow keeps it"),
    )


SETTINGS = (
    Setting("M", 10, "inputs", low=1),
    Setting("c", None, "coefficients of the target (M,); equal steps to 2", rank=1),
    Setting("batch", 512, "inputs of a step", low=1),
    Setting("eta", 1e-3, "learning rate of v, and of z where eta_z is 0", low=0.0, open_low=True, rate_of="w"),
    Setting("eta_z", 0.0, "learning rate of z; 0: eta", low=0.0),
    *SGD,
)


def memory(values: Settings, seeds: int, model: str) -> Mapping[str, int]:
    """{what takes memory: number of numbers} of a training: batches and what a step computes."""
    return {"the batches": seeds * values["batch"] * (5 * values["M"] + 8), "the parameters": seeds * values["M"] * 8}


def make(values: Settings, seeds: tuple[int, ...], model: str, dtype: str) -> Experiment:
    """The experiment. Raises ParamError: coefficients of another number."""
    M = values["M"]
    c = shaped("c", values["c"], 2 * np.arange(1, M + 1) / M, f"M={M}")
    rates = {"w": float(values["eta"]), "z": float(values["eta_z"] or values["eta"]), "query": 0.0}
    node = OneNode((M, 1, 1), attention="exp", signal="mse", scale=0.0)
    return Experiment(
        model=replace(node, observables=node_observables(c)),
        stream=Drawn(seeds, partial(draw_targets, c, dtype), batch=values["batch"]),
        rates=rates,
        exact={"c": c},
        theory={"joma.self_consistent": {"c": c}},
    )


def unequal_rates(facts: TrainingFacts) -> list[str]:
    """A phrase where weights and logits do not move alike."""
    w, z = (facts.optimizer["rates"][name] for name in "wz")
    return [f"eta_z is {z:g}, not eta = {w:g}"] * (w != z)


DOC = "one node with exp attention learns a linear function by SGD (tian2023joma, Theorem 4 on a squared loss)"
PAIRS = {
    # the System eliminates z by an invariant of the flow, which discrete descent does not keep
    "joma.self_consistent": pair_of(
        *("v", "loss=loss_population", "entropy"), step="w", linear=False, requirements={"momentum": (0,)}, other_misfits=unequal_rates
    )
}
TASK = ReferenceTask("joma_regression", DOC, SETTINGS, make, memory, ("joma",), PAIRS)

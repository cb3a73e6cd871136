"""The task joma_gaussian: the JoMA block on one sample for each class (Figs. 2 and 3 of tian2023joma).

Class k of K has the distribution x_k over contextual tokens: num_distinct whose weights are exp(-(l - k num_distinct / K)^2 / 30)
(data=gaussian) or uniform (data=random), and num_common with uniform weights U[0, 1/2]. One query, full batch, K nodes.
The signals: ce has h as the scores of the classes, mse the class as a unit vector, fixed G = I - 1/K (1 where K = 1).

Settings and numbers of the original: `joma/draw_figure_2_3.py` of luckmatters, which fixes no seed; X is drawn for each seed.
Time of gradient flow is eta_w times the iteration. At init_scale=0 linear attention never moves: a dead fixed point.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from odesim.base.arrays import Array
from odesim.base.errors import ParamError
from odesim.lab.networks.joma import ACTIVATIONS, SIGNALS, JomaBlock, equal_cosines, joma_observables
from odesim.lab.training.optimizers import SGD
from odesim.lab.training.randomness import DATA, INITIAL, generators
from odesim.lab.training.task import Batch, Experiment, Link, Optimizer, Params, ReferenceTask, Setting, Settings, TrainingFacts, pair_of

WIDTH2 = 30.0  # of the hill: exp(-distance^2 / 30)


def distributions(values: Mapping[str, Any], seeds: Sequence[int]) -> Array:
    """Distributions x (R, K, Mc) of the tokens of each class; rows sum to 1."""
    K, distinct, common = values["num_classes"], values["num_distinct"], values["num_common"]
    X = np.stack([rng.random((K, distinct + common)) / 2 for rng in generators(seeds, DATA)])
    if values["data"] == "gaussian":
        peak = np.arange(K)[:, None] * distinct / K
        X[:, :, :distinct] = np.exp(-((np.arange(distinct) - peak) ** 2) / WIDTH2)
    return X / X.sum(axis=-1, keepdims=True)


def sample(values: Mapping[str, Any], seeds: Sequence[int], dtype: str) -> dict[str, Array]:
    """The full batch: x (R, K, Mc), query (R, K), pi (R, K) and the data of the signal."""
    R, K = len(seeds), values["num_classes"]
    X = distributions(values, seeds).astype(dtype)
    shared = {"x": X, "query": np.zeros((R, K), np.int64), "pi": np.full((R, K), 1 / K, dtype)}
    if values["signal"] == "ce":
        return shared | {"label": np.tile(np.arange(K), (R, 1))}
    if values["signal"] == "mse":
        return shared | {"target": np.tile(np.eye(K, dtype=dtype), (R, 1, 1))}
    G = np.eye(K, dtype=dtype) - (1 / K if K > 1 else 0)
    return shared | {"signal": np.tile(G, (R, 1, 1)).astype(dtype)}


def theory(block: JomaBlock, data: Batch, start: Params, ratio: float) -> dict[str, dict[str, Any]]:
    """{System: parameters} for which the flow is exactly that of a System: exp attention, identity phi, fixed signal, r = T^2.

    Delta (R, Mc) of joma.linear for one class, Delta (R, Mc, K) of joma.linear_multinode for more. The offset z / T - |v|^2 / 2 at the
    start is a factor of Delta.
    """
    T = block.temperature
    is_exact = (block.attention, block.phi, block.signal) == ("exp", "identity", "fixed")
    if not is_exact or not np.isclose(ratio, T * T, rtol=1e-12):
        return {}
    V, z = block.nodes(start)[0].astype(np.float64), start["Z"].astype(np.float64)
    offset = z[..., 0] / T - (V * V).sum(axis=-1) / 2  # (R, Mc)
    weighted = data["x"] * data["pi"][..., None]  # (R, N, Mc)
    Delta = np.exp(offset)[..., None] * (weighted.swapaxes(1, 2) @ data["signal"]).astype(np.float64)  # (R, Mc, K)
    return {"joma.linear": {"Delta": Delta[..., 0]}} if Delta.shape[-1] == 1 else {"joma.linear_multinode": {"Delta": Delta}}


def joint_theory(block: JomaBlock, data: Batch, ratio: float) -> dict[str, dict[str, Any]]:
    """{System: parameters (R, ...)} of the whole block on its loss: joma.joint_*, its variants for another phi or another signal.

    Time in learning rate of the weights times iterations. No System has both another phi and another signal.
    """
    others = [word for word in (block.phi, block.signal) if word not in ("identity", "ce")]
    R, K = data["pi"].shape
    if len(others) > 1 or (block.signal == "fixed" and K == 1):  # a single class sends nothing back there
        return {}
    every = np.ones(R)
    numbers = {"T": block.temperature * every, "eta_w": every, "eta_z": ratio * every}
    samples = {"X": data["x"], "pi": data["pi"], "q": data["query"]}
    samples |= {"y": np.tile(np.arange(K), (R, 1)), "A": np.tile(np.eye(K), (R, 1, 1))}
    return {".".join((f"joma.joint_{block.attention}", *others)): {**samples, **numbers}}


SETTINGS = (
    Setting("data", "gaussian", "weights of the distinct tokens", choices=("gaussian", "random")),
    Setting("attention", "softmax", "how logits weigh the tokens", choices=("linear", "exp", "softmax")),
    Setting("temperature", 0.5, "attention logits are z over it", low=0.0, open_low=True),
    Setting("phi", "identity", "activation of the nodes", choices=tuple(ACTIVATIONS)),
    Setting("signal", "ce", "loss above the nodes; fixed: a signal that stays", choices=tuple(SIGNALS)),
    Setting("coordinates", "v", "v: V, Xi and Z are trained; w: W (d, K) and Z", choices=("v", "w")),
    Setting("cosine", 0.0, "between any two embeddings; needs coordinates=w", low=-1.0, high=1.0),
    Setting("init_scale", 0.01, "normal numbers times it at the start", low=0.0),
    Setting("eta", 0.1, "learning rate", low=0.0, open_low=True),
    Setting("eta_w", 0.0, "learning rate of V and Xi, or W; 0: eta", low=0.0),
    Setting("eta_z", 0.0, "learning rate of Z; 0: eta", low=0.0),
    *SGD[::-1],
    Setting("num_distinct", 10, "tokens that tell classes apart", low=0),
    Setting("num_common", 10, "tokens of every class", low=0),
    Setting("num_classes", 20, "classes, and nodes", low=1),
    Setting("d", 30, "width of the embeddings; counts where coordinates=w", low=1),
)


def memory(values: Settings, seeds: int, model: str) -> Mapping[str, int]:
    """{what takes memory: number of numbers} of a training: samples, parameters with gradients, a step, embeddings."""
    K, Mc = values["num_classes"], values["num_distinct"] + values["num_common"]
    w = values["coordinates"] == "w"
    return {
        "the samples": seeds * K * (3 * Mc + 2 * K),
        "the parameters and their gradients": seeds * K * (6 * (Mc + 1) + (4 * values["d"] if w else 0)),
        "what a step computes": seeds * K * (3 * Mc + 4 * K),
        "the embeddings": 3 * values["d"] * (Mc + 1) if w else 0,
    }


def make(values: Settings, seeds: tuple[int, ...], model: str, dtype: str) -> Experiment:
    """The experiment. Raises ParamError: no tokens, impossible embeddings, a cosine without embeddings."""
    Mc, K = values["num_distinct"] + values["num_common"], values["num_classes"]
    if Mc == 0:
        raise ParamError("num_distinct + num_common must be at least 1, not 0")
    if values["coordinates"] == "v" and values["cosine"] != 0:
        raise ParamError(f"cosine={values['cosine']:g} needs coordinates=w: V and Xi are coordinates of orthonormal embeddings")
    block = JomaBlock(
        (Mc, 1, K),
        attention=values["attention"],
        temperature=float(values["temperature"]),
        phi=values["phi"],
        signal=values["signal"],
        embeddings=equal_cosines(values["d"], Mc + 1, values["cosine"]) if values["coordinates"] == "w" else None,
        scale=float(values["init_scale"]),
    )
    rates = {group: float(values[f"eta_{group}"] or values["eta"]) for group in ("w", "z")}
    ratio = rates["z"] / rates["w"]
    data = sample(values, seeds, dtype)
    start = block.initial(generators(seeds, INITIAL), dtype)
    return Experiment(
        model=replace(block, observables=joma_observables(block, data, start, ratio)),
        stream=lambda i: data,
        optimizer=Optimizer(values["optimizer"], rates, values["momentum"]),  # the setting cosine is of embeddings
        steps=2000,
        exact={"X": data["x"]},
        theory={**theory(block, data, start, ratio), **joint_theory(block, data, ratio)},
    )


# The settings that Systems describe. JoMA's own Systems keep V alone: they eliminate the logits by the invariant of Theorem 1, which
# gradient flow keeps and discrete descent does not. So they are not linear in what is trained, and have no discrete map.

JOMA_EXAMPLE: Mapping[str, Any] = {"attention": "exp", "signal": "fixed", "temperature": 1}
ONE_NODE = Link("v", ("V",), lambda seen, facts: seen["V"][..., 0])
JOMA_SETTINGS: Mapping[str, tuple[Any, ...]] = {"attention": ("exp",), "phi": ("identity",), "signal": ("fixed",), "cosine": (0,)}
JOINT_STATES = ("V", "Xi", "Z=z")


def not_exact(facts: TrainingFacts) -> list[str]:
    """Phrases on why V alone does not determine the flow of a joma_gaussian training: ratio of the rates, momentum."""
    rates, T = facts.optimizer["rates"], facts.config["temperature"]
    ratio = rates["z"] / rates["w"]
    phrases = [] if np.isclose(ratio, T * T, rtol=1e-12) else [f"eta_z / eta_w is {ratio:g}, not temperature^2 = {T * T:g}"]
    return phrases + [f"momentum is {facts.momentum:g}, not 0"] * bool(facts.momentum)


REDUCED = pair_of(
    "V",
    step="w",
    linear=False,
    start="V",
    per_seed=True,
    requirements=JOMA_SETTINGS,
    other_misfits=lambda facts: not_exact(facts) + ["num_classes is 1, not more"] * (facts.config["num_classes"] == 1),
    example=JOMA_EXAMPLE,
)
DOC = "one MLP layer and its attention on classes of overlapping tokens (tian2023joma, Figs. 2 and 3)"
PAIRS = {
    "joma.linear": replace(
        REDUCED,
        links=(ONE_NODE,),
        start={"v": ONE_NODE},
        requirements={**JOMA_SETTINGS, "num_classes": (1,)},
        other_misfits=not_exact,
        example={**JOMA_EXAMPLE, "num_classes": 1},
    ),
    "joma.linear_multinode": REDUCED,
    **{
        f"joma.joint_{attention}": pair_of(
            *("loss", "entropy", *JOINT_STATES, "attention"),
            step="w",
            start=JOINT_STATES,
            per_seed=True,
            requirements={"attention": (attention,), "phi": ("identity",), "signal": ("ce",), "cosine": (0,)},
            example={"attention": attention},
        )
        for attention in ("exp", "linear", "softmax")
    },
}
TASK = ReferenceTask("joma_gaussian", DOC, SETTINGS, make, memory, ("joma",), PAIRS)

"""The task selection: attention learns to select the best token of each of N sequences, and so separates these tokens.

Source: Tarzanagh, Li, Zhang and Oymak 2023, arXiv 2306.13596 and 2308.16898; Sheen, Chen, Wang and Zhou 2024, arXiv 2403.08699. Attention
of sequence i is the softmax over tokens of X_i q_i, with one trained query q_i = p, or q_i = W z_i by one matrix of its own query z_i, or
q_i = K Q^T z_i. The first token has the score 1, the others 0, and the loss is the mean of ln(1 + exp(-score)). Every step has all
sequences: gradient descent, which follows margin.prompt, weights and key_query in the clock ln(1 + eta i).
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from odesim.base.arrays import Array, array_namespace, on_same_device, shaped
from odesim.base.errors import ParamError
from odesim.lab.networks.measures import norm, softmax
from odesim.lab.training.network import InitialLaw, Network, constant
from odesim.lab.training.optimizers import descent
from odesim.lab.training.randomness import DATA, generators
from odesim.lab.training.task import Batch, Experiment, Observable, Pair, Params, ReferenceTask, Setting, Settings, pair_of

KINDS: Mapping[str, tuple[str, ...]] = {"prompt": ("p",), "weights": ("W",), "key_query": ("K", "Q")}


@dataclass(frozen=True, eq=False)
class Selector(Network):
    """p (d,), W (d, d), or K and Q (d, d) as a Model. Its batch: X (R, N, T, d), and z (R, N, d) where there are matrices."""

    laws: Mapping[str, InitialLaw]
    kind: str
    sequences: Batch

    name = "attention"

    @property
    def observables(self) -> tuple[Observable, ...]:
        """Under the names of margin.prompt, weights and key_query."""
        axes = {"p": ("m",), "W": ("a", "b"), "K": ("a", "c"), "Q": ("b", "c")}
        states = (Observable.parameter(name, axes[name], "trained") for name in self.laws)
        more = {
            "prompt": (Observable("norm", lambda p: norm(p["p"]), (), "|p|"),),
            "key_query": (Observable("product", lambda p: p["K"] @ p["Q"].swapaxes(1, 2), ("a", "b"), "K Q^T"),),
        }
        seen = Observable("attention", lambda p: self.attention(p, self.sequences), ("i", "l"), "attention to each token")
        return (*states, *more.get(self.kind, ()), seen)

    def attention(self, params: Params, batch: Batch) -> Array:
        """(R, N, T)."""
        batch = on_same_device(next(iter(params.values())), batch)
        if self.kind == "prompt":
            logits = batch["X"] @ params["p"][:, None, :, None]
        else:
            W = params["W"] if self.kind == "weights" else params["K"] @ params["Q"].swapaxes(1, 2)
            logits = batch["X"] @ (batch["z"] @ W.swapaxes(1, 2))[..., None]
        return softmax(logits[..., 0])

    def loss_and_gradients(self, params: Params, batch: Batch) -> tuple[Array, Params]:
        """Loss (R,) and its gradient by parameter (R, ...)."""
        a = self.attention(params, batch)
        xp, batch = array_namespace(a), on_same_device(a, batch)
        missed = a[:, :, 1:].sum(axis=2)  # (R, N): 1 less the score, without the digits that 1 - a would lose
        back = 1 / (1 + xp.exp(1 - missed)) * (1 / missed.shape[1])
        of_logits = xp.concatenate([a[:, :, :1] * -missed[..., None], a[:, :, 1:] * (1 - missed)[..., None]], axis=2) * back[..., None]
        G = (of_logits[:, :, None] @ batch["X"])[:, :, 0]  # (R, N, d), of queries
        loss = xp.log(1 + xp.exp(missed - 1)).mean(axis=1)
        if self.kind == "prompt":
            return loss, {"p": G.sum(axis=1)}
        of_W = G.swapaxes(1, 2) @ batch["z"]
        return loss, {"W": of_W} if self.kind == "weights" else {"K": of_W @ params["Q"], "Q": of_W.swapaxes(1, 2) @ params["K"]}


SETTINGS = (
    Setting("N", 4, "sequences", low=1),
    Setting("T", 5, "tokens of each, the first is the best", low=2),
    Setting("d", 20, "dimension of a token", low=1),
    Setting("X", None, "tokens (N, T, d); normal, drawn by seed", rank=3),
    Setting("z", None, "queries of the sequences (N, d); normal, drawn by seed"),
    Setting("trained", "prompt", "what is: one query, one matrix, or two", choices=tuple(KINDS)),
    Setting("size", 1.0, "K and Q at the start are this times the identity", low=0.0, open_low=True),
    Setting("init_scale", 0.0, "deviation of normal K and Q at the start; 0: size", low=0.0),
    *descent(1.0),
)


def memory(values: Settings, seeds: int, model: str) -> Mapping[str, int]:
    """{what takes memory: number of numbers} of a training: tokens, attention, weights."""
    N, T, d = (values[name] for name in ("N", "T", "d"))
    return {"the tokens": 2 * seeds * N * (T + 1) * d, "attention": 6 * seeds * N * T, "the weights": 6 * seeds * d * d}


def make(values: Settings, seeds: tuple[int, ...], model: str, dtype: str) -> Experiment:
    """The experiment. Raises ParamError: tokens or queries of another shape, queries where there is no matrix."""
    N, T, d, kind = (values[name] for name in ("N", "T", "d", "trained"))
    if kind == "prompt" and values["z"] is not None:
        raise ParamError("z: with trained=prompt all sequences have one query, which is trained")
    shapes = {"X": (N, T, d), "z": (N, d)}
    drawn = [{name: rng.standard_normal(shape) for name, shape in shapes.items()} for rng in generators(seeds, DATA)]
    sequences = {
        name: np.stack([shaped(name, values[name], one[name], f"N={N}, T={T} and d={d}") for one in drawn])
        for name in (shapes if kind != "prompt" else ("X",))
    }
    batch = {name: value.astype(dtype) for name, value in sequences.items()}
    size, scale = float(values["size"]), float(values["init_scale"])
    of_two = InitialLaw((d, d), "normal", scale) if scale else constant(size * np.eye(d))
    laws = {"prompt": constant(np.zeros(d)), "weights": constant(np.zeros((d, d)))}
    sizes = {"size": np.full(len(seeds), size)} if kind == "key_query" else {}
    return Experiment(
        model=Selector(dict.fromkeys(KINDS[kind], laws.get(kind, of_two)), kind, batch),
        stream=lambda i: batch,
        theory={f"margin.{kind}": {**sequences, **sizes}},
    )


def pair(kind: str, *more: str) -> Pair:
    """How margin.prompt, weights or key_query describes the task. Its time is ln(1 + t): descent on its states is none of the task's."""
    requirements = {"trained": (kind,), "momentum": (0,)}
    links, example = ("loss", "attention", *more, *KINDS[kind]), {"trained": kind}
    return pair_of(*links, step="all", linear=False, start=KINDS[kind], per_seed=True, requirements=requirements, example=example)


DOC = "attention selects the best tokens, and becomes their separator (tarzanagh2023maxmargin)"
PAIRS = {
    "margin.prompt": pair("prompt", "norm"),
    "margin.weights": pair("weights"),
    "margin.key_query": pair("key_query", "product"),
}
TASK = ReferenceTask("selection", DOC, SETTINGS, make, memory, ("attention",), PAIRS)

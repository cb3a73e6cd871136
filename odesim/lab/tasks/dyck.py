"""The task dyck: the next bracket of a Dyck sequence of bounded depth, by a transformer of one layer.

Source: Wen, Li, Liu and Risteski 2023, arXiv 2312.01429, and its program YuchenLi01/transformers_are_uninterpretable. A token is a bracket
with its depth, as in the paper's minimal first layer. One layer can tell the bracket that must close by attention that looks for the last
open one, but also by any attention under which matched brackets cancel: runs differ. The paper's experiment: width=50, batch=100, 10000
steps of Adam with lr=.01 and cosine=10000, tests of 400 to 500 brackets.

accuracy: of closing brackets in test sequences, whose type the layer knows. right_at: how many are right at each place.
last: attention to the last open bracket where one closes.
balance: how little matched brackets cancel, |sum of what both add| / (mean of either), over queries and pairs; 0 is the paper's condition.
In exact: accuracy_window, the most that a predictor reaches on these sequences which sees the last D brackets, as many as can be open; it
guesses where the bracket to close lies before these; closings: the number of closing brackets. window_at, closings_at: such numbers of
right ones, and of closing ones, at each place.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import exp, lgamma, sqrt

import numpy as np
from numpy.random import Generator

from odesim.base.arrays import Array, array_namespace, on_host
from odesim.lab.networks.architecture import Architecture, transformer_memory
from odesim.lab.networks.transformer import Transformer
from odesim.lab.training.optimizers import COSINE, of_settings
from odesim.lab.training.protocols import Batch, Experiment, Observable, Params, ReferenceTask, Setting, Settings
from odesim.lab.training.randomness import BATCHES, TESTS, generators

# Dyck sequences of bounded depth: brackets of k types that close in the order in which they opened, last first.
#
# Token 0 starts a sequence. An opening bracket of type t that leads to depth d = 1, ..., D is token 1 + (d - 1) k + t. A closing one that
# leads from depth d to d - 1 is token 1 + D k + (d - 1) k + t. At depth 0 a bracket opens, at depth D it closes, between with
# probability 1/2. Targets are the next brackets: t for an opening one, k + t for a closing one.


def vocabulary(k: int, D: int) -> int:
    """The number of tokens."""
    return 1 + 2 * k * D


def draw_brackets(rng: Generator, count: int, k: int, D: int, length: int) -> tuple[Array, Array]:
    """Types and depths (count, length): of brackets that open, the depth that they lead to; of closing ones minus the depth they leave."""
    rows = np.arange(count)
    stack, depth = np.zeros((count, D + 1), np.int64), np.zeros(count, np.int64)
    types, depths = np.empty((length, count), np.int64), np.empty((length, count), np.int64)
    opens, fresh = rng.random((length, count)) < 0.5, rng.integers(k, size=(length, count))
    for t in range(length):
        up = np.where(depth == 0, True, np.where(depth == D, False, opens[t]))
        types[t] = np.where(up, fresh[t], stack[rows, depth])
        depths[t] = np.where(up, depth + 1, -depth)
        depth = depth + np.where(up, 1, -1)
        stack[rows[up], depth[up]] = fresh[t][up]
    return types.T.copy(), depths.T.copy()


def last_unmatched(depths: Array) -> Array:
    """The place (..., length) of the last bracket that is open after each of depths (..., length); -1 where none is."""
    where = np.full((*depths.shape[:-1], int(np.abs(depths).max()) + 1), -1)
    places, rows = np.empty_like(depths), np.ogrid[tuple(slice(n) for n in depths.shape[:-1])]
    for t in range(depths.shape[-1]):
        d = depths[..., t]
        here = np.where(d > 0, d, -d - 1)  # the depth that it leads to
        where[(*rows, here)] = np.where(d > 0, t, where[(*rows, here)])
        places[..., t] = np.where(here > 0, where[(*rows, here)], -1)
    return places


class DyckSequences:
    """A Stream {"tokens": (R, B, T), "targets": (R, B, T)}: new sequences in every iteration; T brackets, the last only as a target."""

    def __init__(self, seeds: Sequence[int], k: int, D: int, length: int, batch: int) -> None:
        self.seeds, self.k, self.D, self.length, self.batch = tuple(seeds), k, D, length, batch

    def __call__(self, iteration: int) -> Batch:
        return self.drawn(self.batch, self.length, BATCHES, iteration)

    def test(self, count: int, length: int) -> Batch:
        """Sequences that are not trained on."""
        return self.drawn(count, length, TESTS)

    def drawn(self, count: int, length: int, purpose: int, place: int = 0) -> Batch:
        """A batch of `count` sequences for each seed."""
        brackets = [draw_brackets(rng, count, self.k, self.D, length) for rng in generators(self.seeds, purpose, place)]
        types, depths = (np.stack(arrays) for arrays in zip(*brackets, strict=True))
        closing = depths < 0
        tokens = 1 + closing * self.D * self.k + (np.abs(depths) - 1) * self.k + types
        start = np.zeros((*tokens.shape[:-1], 1), tokens.dtype)
        return {"tokens": np.concatenate([start, tokens[..., :-1]], axis=-1), "targets": types + closing * self.k}


TEST_SEQUENCES = 32


def depths_of(tokens: Array, k: int, D: int) -> Array:
    """The depths of tokens as draw_brackets has them, 0 for the start."""
    level = (tokens - 1) // k
    return np.where(tokens == 0, 0, np.where(level < D, level + 1, D - 1 - level))


def rights(outputs: Array, targets: Array, k: int) -> Array:
    """Which of targets (R, B, T) are closing brackets whose type has the largest output (R, B, T, 2 k) of closing ones."""
    right: Array = (outputs[..., k:].argmax(axis=-1) == targets - k) & (targets >= k)
    return right


def accuracy(outputs: Array, targets: Array, k: int) -> Array:
    """The share (R,) of closing brackets of targets (R, B, T) whose type has the largest output (R, B, T, 2 k) of closing ones."""
    return np.asarray(rights(outputs, targets, k).sum(axis=(1, 2)) / (targets >= k).sum(axis=(1, 2)))


def in_window(batch: Batch, k: int, D: int, width: int) -> Array:
    """How often (R, B, T) the best predictor of the last `width` brackets is right: 1 if the bracket to close is there, else 1/k."""
    last = last_unmatched(depths_of(batch["tokens"], k, D)[..., 1:])  # of brackets; token t + 1 is bracket t
    last = np.pad(last + 1, [(0, 0), (0, 0), (1, 0)])  # (R, B, T)
    return (batch["targets"] >= k) * np.where(np.arange(last.shape[-1]) - last < width, 1, 1 / k)


def window_accuracy(batch: Batch, k: int, D: int, width: int) -> Array:
    """The accuracy (R,) that the best predictor of the last `width` brackets expects: 1/k where the bracket to close is not among them."""
    return np.asarray(in_window(batch, k, D, width).sum(axis=(1, 2)) / (batch["targets"] >= k).sum(axis=(1, 2)))


def attention_to_last(a: Array, batch: Batch, k: int, D: int) -> Array:
    """The mean attention (R, H), from weights (R, B, H, T, T), to the last open bracket, over queries before a closing bracket."""
    places = last_unmatched(depths_of(batch["tokens"], k, D)[..., 1:])  # of brackets; token t + 1 is bracket t
    places = np.pad(places + 1, [(0, 0), (0, 0), (1, 0)])  # (R, B, T)
    closes = (batch["targets"] >= k)[:, :, None]
    seen = np.take_along_axis(a, places[:, :, None, :, None], axis=4)[..., 0]  # (R, B, H, T)
    return np.asarray((seen * closes).sum(axis=(1, 3)) / closes.sum(axis=(1, 3)))


def imbalance(logits: Array, values: Array, k: int, D: int) -> Array:
    """balance (R,) from logits (R, H, V, V), query before key, and what each token adds if it has all attention (R, H, V, d)."""
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    adds = weights[..., None] * values[:, :, None]  # (R, H, query, key, d)
    centred = adds.sum(axis=1)  # over heads
    centred = centred - centred.mean(axis=-1, keepdims=True)  # which the norm removes
    opening, closing = centred[:, :, 1 : 1 + k * D], centred[:, :, 1 + k * D :]
    both = np.linalg.norm(opening + closing, axis=-1)
    either = (np.linalg.norm(opening, axis=-1) + np.linalg.norm(closing, axis=-1)) / 2
    return np.asarray(both.sum(axis=(1, 2)) / either.sum(axis=(1, 2)))


def independent_balance(width: int, pairs: int) -> tuple[float, float]:
    """Mean and deviation of balance if both brackets of a pair add alike much, in directions of their own, uniform in width - 1 dimensions.

    It is the mean over pairs of 2 sqrt(u), u of the law Beta(a, a), a = width / 2 - 1. If they add more and less, balance is larger.
    """
    a = width / 2 - 1
    mean = 2 * exp(lgamma(a + 0.5) + lgamma(2 * a) - lgamma(2 * a + 0.5) - lgamma(a))
    return mean, sqrt((2 - mean**2) / pairs)


def observables(model: Transformer, test: Batch, k: int, D: int) -> tuple[Observable, ...]:
    """accuracy, right_at, last, balance and map, in numpy."""
    every: Batch = {"tokens": np.tile(np.arange(model.vocabulary), (len(test["tokens"]), 1, 1))}  # each token, by itself

    def of_tokens(params: Params) -> tuple[Array, Array]:
        """Attention logits (R, H, V, V), and values (R, H, V, d) behind the projection, of one token each."""
        tape = model.forward(params, every).tapes[0]
        q, key, v, W = (on_host(a) for a in (tape.q, tape.k, tape.v, params["layer0.projection"]))
        R, V, d = q.shape
        q, key, v = (a.reshape(R, V, model.heads, -1).swapaxes(1, 2) for a in (q, key, v))
        return q @ key.swapaxes(2, 3) / np.sqrt(q.shape[-1]), v @ W.reshape(R, model.heads, -1, d)

    def attention_map(params: Params) -> Array:
        logits = of_tokens(params)[0]
        weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
        return np.asarray((weights / weights.sum(axis=-1, keepdims=True)).mean(axis=1))

    def in_type(params: Params, values: Array) -> Array:
        xp, dtype = array_namespace(params["embedding"]), params["embedding"].dtype
        return xp.asarray(values.astype(str(dtype)))

    return (
        Observable(
            "accuracy",
            lambda p: in_type(p, accuracy(on_host(model.forward(p, test).outputs), test["targets"], k)),
            (),
            "of closing brackets of test sequences",
            costly=True,
        ),
        Observable(
            "right_at",
            lambda p: in_type(p, rights(on_host(model.forward(p, test).outputs), test["targets"], k).sum(axis=1)),
            ("place",),
            "closing brackets at each place of test sequences whose type is right",
            costly=True,
        ),
        Observable(
            "last",
            lambda p: in_type(p, attention_to_last(on_host(model.forward(p, test).attention[0]), test, k, D)),
            ("head",),
            "attention to the last open bracket, where one closes",
            costly=True,
        ),
        Observable("balance", lambda p: in_type(p, imbalance(*of_tokens(p), k, D)), (), "how little matched brackets cancel", costly=True),
        Observable("map", lambda p: in_type(p, attention_map(p)), ("query", "key"), "attention between tokens, each once", costly=True),
    )


SETTINGS = (
    Setting("k", 2, "types of brackets", low=1),
    Setting("depth", 4, "the largest depth", low=1),
    Setting("length", 28, "brackets of a sequence", low=2),
    Setting("test_length", 100, "of a test sequence", low=2),
    Setting("batch", 64, "sequences of an iteration", low=1),
    Setting("width", 32, "of the embeddings", low=1),
    Setting("mlp", 64, "nodes of the MLP", low=0),
    Setting("heads", 1, "heads, which divide the width", low=1),
    Setting("norm", "pre", "layer norm", choices=("pre", "post", "none")),
    Setting("optimizer", "adam", "how it descends", choices=("adam", "adamw", "sgd")),
    Setting("lr", 0.01, "learning rate", low=0.0),
    Setting("momentum", 0.0, "of sgd", low=0.0, high=1.0),
    COSINE,
)


def memory(values: Settings, seeds: int, model: str) -> Mapping[str, int]:
    """{what takes memory: number of numbers} of a training: the transformer, a step or a test, the sequences."""
    design = Architecture(vocabulary(values["k"], values["depth"]), values["width"], 1, values["mlp"], values["heads"])
    of_step, of_test = (
        transformer_memory(design, seeds=seeds, batch=batch, length=length, read=length)
        for batch, length in ((values["batch"], values["length"]), (TEST_SEQUENCES, values["test_length"]))
    )
    largest = max(of_step, of_test, key=lambda numbers: sum(numbers.values()))
    return {
        **largest,
        "the sequences": seeds * (8 * values["batch"] * values["length"] + 4 * TEST_SEQUENCES * values["test_length"]),
        "attention between all tokens": seeds * design.vocabulary**2 * (4 + 2 * values["width"]),
    }


def make(values: Settings, seeds: tuple[int, ...], model: str, dtype: str) -> Experiment:
    """The experiment. Raises ParamError for heads that do not divide the width."""
    k, D = values["k"], values["depth"]
    shape = {name: values[name] for name in ("width", "mlp", "heads", "norm")}
    network = Transformer(vocabulary(k, D), layers=1, outputs=2 * k, at="all", activation="relu", **shape)
    stream = DyckSequences(seeds, k, D, values["length"], values["batch"])
    test = stream.test(TEST_SEQUENCES, values["test_length"])
    brackets = [f"{bracket}{t} at {d}" for bracket in ("(", ")") for d in range(1, D + 1) for t in range(k)]
    return Experiment(
        model=replace(network, extra=observables(network, test, k, D)),
        stream=stream,
        optimizer=of_settings(values, network.groups),
        steps=400,
        vocabulary=network.vocabulary,
        exact={
            "accuracy_window": window_accuracy(test, k, D, D),
            "closings": (test["targets"] >= k).sum(axis=(1, 2)),
            "window_at": in_window(test, k, D, D).sum(axis=1),
            "closings_at": (test["targets"] >= k).sum(axis=1),
        },
        labels={"query": ("start", *brackets), "key": ("start", *brackets)},
    )


TASK = ReferenceTask(
    name="dyck",
    doc="the next bracket of a Dyck sequence of bounded depth (wen2023uninterpretable)",
    settings=SETTINGS,
    memory_of=memory,
    experiment_of=make,
    models=("transformer",),
)

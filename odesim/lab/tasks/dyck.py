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

from collections.abc import Callable, Mapping
from functools import partial
from math import exp, lgamma, sqrt

import numpy as np
from numpy.random import Generator

from odesim.base.arrays import Array, on_host
from odesim.lab.networks.measures import softmax
from odesim.lab.networks.sequences import Sequences, network_of, sequence_task
from odesim.lab.networks.transformer import Transformer, like
from odesim.lab.training.optimizers import adam
from odesim.lab.training.task import Batch, Observable, Params, Setting, Settings

# Dyck sequences of bounded depth: brackets of k types that close in the order in which they opened, last first.
#
# Token 0 starts a sequence. An opening bracket of type t that leads to depth d = 1, ..., D is token 1 + (d - 1) k + t. A closing one that
# leads from depth d to d - 1 is token 1 + D k + (d - 1) k + t. At depth 0 a bracket opens, at depth D it closes, between with
# probability 1/2. Targets are the next brackets: t for an opening one, k + t for a closing one.


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


def draw_sequences(rng: Generator, count: int, *, k: int, D: int, length: int) -> Batch:
    """Tokens and targets (count, length) of sequences of so many brackets, the last only as a target."""
    types, depths = draw_brackets(rng, count, k, D, length)
    closing = depths < 0
    tokens = 1 + closing * D * k + (np.abs(depths) - 1) * k + types
    return {"tokens": np.pad(tokens[:, :-1], [(0, 0), (1, 0)]), "targets": types + closing * k}


TEST_SEQUENCES = 32


def depths_of(tokens: Array, k: int, D: int) -> Array:
    """The depths of tokens as draw_brackets has them, 0 for the start."""
    level = (tokens - 1) // k
    return np.where(tokens == 0, 0, np.where(level < D, level + 1, D - 1 - level))


def rights(outputs: Array, targets: Array, k: int) -> Array:
    """Which of targets (R, B, T) are closing brackets whose type has the largest output (R, B, T, 2 k) of closing ones."""
    return (outputs[..., k:].argmax(axis=-1) == targets - k) & (targets >= k)


def last_open(batch: Batch, k: int, D: int) -> Array:
    """The place (R, B, T) in the tokens of the last bracket that is open after each of them; 0, the start, where none is."""
    last = last_unmatched(depths_of(batch["tokens"], k, D)[..., 1:])  # of brackets; token t + 1 is bracket t
    return np.pad(last + 1, [(0, 0), (0, 0), (1, 0)])


def in_window(batch: Batch, k: int, D: int, width: int) -> Array:
    """How often (R, B, T) the best predictor of the last `width` brackets is right: 1 if the bracket to close is there, else 1/k."""
    last = last_open(batch, k, D)
    return (batch["targets"] >= k) * np.where(np.arange(last.shape[-1]) - last < width, 1, 1 / k)


def of_closing(right: Array, batch: Batch, k: int) -> Array:
    """The share (R,) of closing brackets that are right, from how often each place is (R, B, T)."""
    return np.asarray(right.sum(axis=(1, 2)) / (batch["targets"] >= k).sum(axis=(1, 2)))


def attention_to_last(a: Array, batch: Batch, k: int, D: int) -> Array:
    """The mean attention (R, H), from weights (R, B, H, T, T), to the last open bracket, over queries before a closing bracket."""
    closes = (batch["targets"] >= k)[:, :, None]
    seen = np.take_along_axis(a, last_open(batch, k, D)[:, :, None, :, None], axis=4)[..., 0]  # (R, B, H, T)
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

    def right(params: Params) -> Array:
        return rights(on_host(model.forward(params, test).outputs), test["targets"], k)

    def last(params: Params) -> Array:
        return attention_to_last(on_host(model.forward(params, test).attention[0]), test, k, D)

    def costly(name: str, function: Callable[[Params], Array], dims: tuple[str, ...], doc: str) -> Observable:
        return Observable(name, lambda params: like(params, function(params)), dims, doc, costly=True)

    return (
        costly("accuracy", lambda p: of_closing(right(p), test, k), (), "of closing brackets of test sequences"),
        costly(
            "right_at", lambda p: right(p).sum(axis=1), ("place",), "closing brackets at each place of test sequences whose type is right"
        ),
        costly("last", last, ("head",), "attention to the last open bracket, where one closes"),
        costly("balance", lambda p: imbalance(*of_tokens(p), k, D), (), "how little matched brackets cancel"),
        costly("map", lambda p: softmax(of_tokens(p)[0]).mean(axis=1), ("query", "key"), "attention between tokens, each once"),
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
    *adam(0.01),
)


def sequences(values: Settings) -> Sequences:
    """For one layer, and longer ones for the test."""
    k, D = values["k"], values["depth"]
    network, draw = (
        network_of(values, 1 + 2 * k * D, layers=1, outputs=2 * k, at="all", activation="relu"),
        partial(draw_sequences, k=k, D=D),
    )

    def labels() -> Mapping[str, tuple[str, ...]]:  # of the sizes that have passed the check of memory
        brackets = ("start", *(f"{bracket}{t} at {d}" for bracket in ("(", ")") for d in range(1, D + 1) for t in range(k)))
        return {"query": brackets, "key": brackets}

    return Sequences(
        network,
        partial(draw, length=values["length"]),
        length=values["length"],
        tests=TEST_SEQUENCES,
        watch=partial(observables, k=k, D=D),
        draw_test=partial(draw, length=values["test_length"]),
        test_length=values["test_length"],
        exact=partial(best_in_window, k=k, D=D),
        labels=labels,
        other={"attention between all tokens": network.vocabulary**2 * (4 + 2 * values["width"])},
    )


def best_in_window(test: Batch, k: int, D: int) -> Mapping[str, Array]:
    """accuracy_window, closings, window_at and closings_at."""
    window, closes = in_window(test, k, D, D), test["targets"] >= k
    exact = {"accuracy_window": of_closing(window, test, k), "closings": closes.sum(axis=(1, 2))}
    return {**exact, "window_at": window.sum(axis=1), "closings_at": closes.sum(axis=1)}


DOC = "the next bracket of a Dyck sequence of bounded depth (wen2023uninterpretable)"
TASK = sequence_task("dyck", DOC, SETTINGS, sequences, steps=400)

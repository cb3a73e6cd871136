"""The task induction: the token after the one that is asked for again, by a transformer of two layers of attention alone.

Source: Bietti et al. 2023, "Birth of a Transformer", arXiv 2306.00802; sequences as in induction.stages: N different tokens of V, then a
query that repeats one of them; the answer is the token after it. An induction head needs both layers: the first attends to the token
before, the second to the place of the answer. The loss rests between ln V and ln N, where tokens of the context are copied alike, and
then falls. Positions are learned and attention is causal, so that the numbers of induction.stages describe it in outline only.
"""

from functools import partial

import numpy as np
from numpy.random import Generator

from odesim.base.arrays import Array, array_namespace
from odesim.base.errors import ParamError
from odesim.lab.networks.sequences import Sequences, network_of, sequence_task
from odesim.lab.networks.transformer import Transformer
from odesim.lab.training.optimizers import adam
from odesim.lab.training.task import Batch, Observable, Params, Setting, Settings

# Sequences of different tokens with a query that repeats one of them: the answer is the token after it.


def draw_repeats(rng: Generator, count: int, *, N: int, V: int) -> Batch:
    """Tokens (count, N + 1), the last the query, targets (count,), and the places `answer` (count,) of the targets, 1 to N - 1."""
    tokens = np.argsort(rng.random((count, V)), axis=1)[:, :N]
    places, rows = rng.integers(1, N, size=count), np.arange(count)
    return {"tokens": np.column_stack([tokens, tokens[rows, places - 1]]), "targets": tokens[rows, places], "answer": places}


TEST_SEQUENCES, RECALLED = 128, 64  # sequences of the test; the first tokens, of which memories are read


def head_scores(first: Array, second: Array, answer: Array) -> Array:
    """The attention (R, 2) of a layer to the place before that of the answer's, and of the other from the query to the answer.

    first, second (R, B, H, T, T): weights of the layers, of which the head that attends most counts. answer (R, B): its place.
    """
    xp = array_namespace(first)
    place = xp.arange(first.shape[-1])
    here = (place == answer[..., None]).astype(first.dtype)  # (R, B, T)
    before = (place == answer[..., None] - 1).astype(first.dtype)
    to_previous = (first * here[:, :, None, :, None] * before[:, :, None, None, :]).sum(axis=(3, 4)).mean(axis=1)  # (R, H)
    to_answer = (second[:, :, :, -1] * here[:, :, None]).sum(axis=3).mean(axis=1)
    return xp.stack([to_previous.max(axis=1), to_answer.max(axis=1)], axis=1)


def memories(params: Params) -> Array:
    """The shares (R, 3) of what three memories recall, all heads together, from what the weights of two layers take tokens and places to.

    W_O^2: the token that layer 2 writes for a token it attends to, itself. W_K^2: the key of layer 2 that a query fits best, among those
    of what layer 1 moves from a token: its own. W_K^1: the place before each place of the context, by positions alone. Of the first
    RECALLED tokens, so that a large vocabulary takes no more memory than its outputs.
    """
    E, P = params["embedding"], params["position"]
    xp = array_namespace(E)
    first, second = ({name: params[f"layer{i}.{name}"] for name in ("query", "key", "value", "projection")} for i in range(2))
    recalled = E[:, :RECALLED]
    copied = recalled @ second["value"] @ second["projection"] @ params["head"]  # (R, token, output)
    fits = (recalled @ second["query"]) @ (E @ first["value"] @ first["projection"] @ second["key"]).swapaxes(1, 2)
    places = (P @ first["query"]) @ (P @ first["key"]).swapaxes(1, 2)
    T = P.shape[1]
    places = xp.where(xp.arange(T)[:, None] >= xp.arange(T), places, -xp.inf)[:, 1:-1]
    diagonals = ((scores[:, xp.arange(scores.shape[1]), xp.arange(scores.shape[1])], scores) for scores in (copied, fits, places))
    return xp.stack([(score >= scores.max(axis=2)).astype(E.dtype).mean(axis=1) for score, scores in diagonals], axis=1)


def observables(model: Transformer, test: Batch) -> tuple[Observable, ...]:
    """heads, accuracy and loss_test, of the test sequences; memories, of the weights."""
    tokens = {name: test[name] for name in ("tokens", "targets")}

    def heads(params: Params) -> Array:
        run = model.forward(params, tokens)
        return head_scores(run.attention[0], run.attention[1], array_namespace(run.outputs).asarray(test["answer"]))

    def accuracy(params: Params) -> Array:
        outputs = model.forward(params, tokens).outputs[:, :, 0]  # (R, B, V)
        xp = array_namespace(outputs)
        best = outputs.max(axis=2)
        mine = xp.take_along_axis(outputs, xp.asarray(test["targets"])[..., None], axis=2)[..., 0]
        return (mine == best).astype(outputs.dtype).mean(axis=1)

    return (
        Observable("heads", heads, ("layer",), "attention of layer 1 to the previous token, of layer 2 to the answer"),
        Observable("accuracy", accuracy, (), "of test sequences"),
        Observable("memories", memories, ("memory",), "what W_O of layer 2, W_K of layer 2 and W_K of layer 1 recall", costly=True),
        Observable("loss_test", lambda params: model.loss_of(params, tokens), (), "loss of sequences that are not trained on", costly=True),
    )


SETTINGS = (
    Setting("N", 8, "different tokens of a sequence", low=2),
    Setting("V", 16, "tokens of the vocabulary", low=2),
    Setting("samples", 0, "sequences of a fixed sample, one batch; 0: new ones in every iteration", low=0),
    Setting("batch", 64, "sequences of a new batch", low=1),
    Setting("width", 32, "of the embeddings", low=1),
    Setting("heads", 1, "heads, which divide the width", low=1),
    Setting("init_scale", 0.1, "standard deviation of every weight at the start", low=0.0, open_low=True),
    *adam(0.002),
)


def sequences(values: Settings) -> Sequences:
    """For two layers of attention alone. Raises ParamError for too small a vocabulary."""
    N, V = values["N"], values["V"]
    if V < N:
        raise ParamError(f"N = {N} different tokens need a vocabulary of as many, not V = {V}")
    plain = {"norm": "none", "biases": (), "start": "normal", "std": values["init_scale"]}
    return Sequences(
        network_of(values, V, layers=2, positions=N + 1, **plain),
        partial(draw_repeats, N=N, V=V),
        length=N + 1,
        tests=TEST_SEQUENCES,
        watch=observables,
        labels=lambda: {"head": ("previous token", "answer"), "memory": ("W_O^2", "W_K^2", "W_K^1")},
    )


DOC = "the token after the one that is asked for again, by two layers of attention (bietti2023birth)"
TASK = sequence_task("induction", DOC, SETTINGS, sequences, steps=1000)

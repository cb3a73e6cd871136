"""The task hops: follow a chain of earlier occurrences, k hops back, where the first token says how many.

Source: Sanford, Hsu and Telgarsky 2024, arXiv 2402.09268, and its program chsanford/hop-induction-heads. A hop leads from a place to the
one after the last earlier occurrence of its letter: the answer of one hop is an induction head's, that of two the composition of such
functions (on tables: the task composition). floor(log2 k) + 2 layers suffice, by doubling. The published experiment: 4 letters, length
100, k up to 16, width 128, 4 heads, rate 1e-4, batches of 32, 100,000 steps.

error: share of wrong answers in test sequences, by hops. In exact: error_guess, that of the most frequent answer to so many hops.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.random import Generator

from odesim.base.arrays import Array, array_namespace, on_host
from odesim.lab.networks.transformer import Transformer
from odesim.lab.training.optimizers import adam, of_settings
from odesim.lab.training.randomness import Drawn
from odesim.lab.training.task import Batch, Experiment, Observable, Params, ReferenceTask, Setting, Settings

# Letters are tokens 0 to A - 1, none twice in a row; token A + k says k hops. Targets are letters, or A where a chain ends before.


def draw_letters(rng: Generator, count: int, letters: int, length: int) -> Array:
    """Sequences (count, length) of letters, each uniform among those that differ from the one before."""
    steps = rng.integers(1, letters, size=(count, length))
    steps[:, 0] = rng.integers(letters, size=count)
    return steps.cumsum(axis=1) % letters


def one_hop(x: Array) -> Array:
    """The place (n, T) after the last earlier occurrence of the letter at each place of x (n, T); -1 where there is none."""
    n, T = x.shape
    rows, last, to = np.arange(n), np.full((n, int(x.max()) + 1), -2), np.empty_like(x)
    for t in range(T):
        to[:, t] = last[rows, x[:, t]] + 1
        last[rows, x[:, t]] = t
    return to


def answers(x: Array, k: Array, letters: int) -> Array:
    """The letter (n, T) that k (n,) hops from each place of x (n, T) lead to; `letters` where a hop leads nowhere."""
    to, place = one_hop(x), np.tile(np.arange(x.shape[1]), (len(x), 1))
    for hop in range(int(k.max(initial=0))):
        there = np.take_along_axis(to, np.maximum(place, 0), axis=1)
        place = np.where(hop < k[:, None], np.where(place < 0, -1, there), place)
    return np.where(place < 0, letters, np.take_along_axis(x, np.maximum(place, 0), axis=1))


def draw_sequences(rng: Generator, count: int, *, letters: int, hops: int, length: int, each: bool = False) -> Batch:
    """Tokens and targets (count, 1 + length), with no target at the number of hops. each: the numbers 0 to hops in turn, else drawn."""
    x = draw_letters(rng, count, letters, length)
    k = np.arange(count) % (hops + 1) if each else rng.integers(hops + 1, size=count)
    targets = answers(x, k, letters)
    return {"tokens": np.column_stack([letters + k, x]), "targets": np.column_stack([np.full(count, -1), targets])}


TEST_SEQUENCES = 64
"""For each number of hops."""


def wrong(outputs: Array, targets: Array, hops: int) -> Array:
    """The share of wrong answers (R, hops + 1) from outputs (R, B, T, C) and targets (R, B, T) of numbers of hops in turn."""
    off = (outputs[:, :, 1:].argmax(axis=-1) != targets[:, :, 1:]).mean(axis=2)  # (R, B)
    return np.stack([off[:, k :: hops + 1].mean(axis=1) for k in range(hops + 1)], axis=1)


def guess(targets: Array, letters: int, hops: int) -> Array:
    """The error (R, hops + 1) of the most frequent target to so many hops."""
    by_hops = [targets[:, k :: hops + 1, 1:].reshape(len(targets), -1) for k in range(hops + 1)]
    counts = [[np.bincount(row, minlength=letters + 1).max() for row in rows] for rows in by_hops]
    return 1 - np.array(counts).T / by_hops[0].shape[1]


SETTINGS = (
    Setting("letters", 4, "letters, none of them twice in a row", low=3),
    Setting("hops", 3, "the largest number of hops", low=0),
    Setting("length", 24, "letters of a sequence", low=2),
    Setting("batch", 64, "sequences of an iteration", low=1),
    Setting("layers", 2, "of the transformer", low=1),
    Setting("width", 64, "of the embeddings", low=1),
    Setting("mlp", 128, "nodes of the MLP", low=0),
    Setting("heads", 2, "heads, which divide the width", low=1),
    *adam(1e-3),
)


def network(values: Settings) -> Transformer:
    """With learned positions. Raises ParamError for heads that do not divide the width."""
    letters, shape = values["letters"], {name: values[name] for name in ("width", "layers", "mlp", "heads")}
    tokens = letters + values["hops"] + 1
    return Transformer(tokens, outputs=letters + 1, positions=values["length"] + 1, at="all", **shape)


def memory(values: Settings, seeds: int, model: str) -> Mapping[str, int]:
    """{what takes memory: number of numbers} of a training: the transformer, a step or a test, the sequences."""
    places, tests, transformer = values["length"] + 1, TEST_SEQUENCES * (values["hops"] + 1), network(values)
    most = max(values["batch"], tests)
    return {
        **transformer.memory(seeds=seeds, batch=most, length=places, read=places),
        "the sequences": 6 * seeds * (values["batch"] + tests) * places,
    }


def make(values: Settings, seeds: tuple[int, ...], model: str, dtype: str) -> Experiment:
    """The experiment. Raises ParamError for heads that do not divide the width."""
    transformer, hops, letters = network(values), values["hops"], values["letters"]
    draw = partial(draw_sequences, letters=letters, hops=hops, length=values["length"])
    test = Drawn(seeds, partial(draw, each=True), batch=0).test(TEST_SEQUENCES * (hops + 1))

    def error(params: Params) -> Array:
        E, outputs = params["embedding"], on_host(transformer.forward(params, test).outputs)
        return array_namespace(E).asarray(wrong(outputs, test["targets"], hops).astype(str(E.dtype)))

    watched = Observable("error", error, ("hops",), "wrong answers in test sequences, by hops", costly=True)
    return Experiment(
        model=replace(transformer, extra=(watched,)),
        stream=Drawn(seeds, draw, batch=values["batch"]),
        optimizer=of_settings(values, transformer.rates(values["lr"])),
        steps=1000,
        vocabulary=transformer.vocabulary,
        exact={"error_guess": guess(test["targets"], letters, hops)},
        labels={"hops": tuple(map(str, range(hops + 1)))},
    )


DOC = "k hops along earlier occurrences, which takes of order log k layers (sanford2024transformers)"
TASK = ReferenceTask("hops", DOC, SETTINGS, make, memory, ("transformer",))

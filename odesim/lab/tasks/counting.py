"""The task counting: how many ones there are in each bracketed region of a row of bits.

Source: Golkar et al. 2024, arXiv 2406.02585, contextual counting. A row of bits has regions [ ... ] that do not overlap; questions 1, 2,
... follow it, and each is answered by the number of ones in the region of that number. The published experiment: 512 tokens, 4 regions, an
encoder that sees both sides or the past alone, and a decoder of the questions; the past alone is much better, and without positions most
accurate. Here one transformer reads both. Without positions and with both sides seen it cannot know the order of its tokens: no question
can be answered better than by the number of all ones.

error: share of wrong counts in test rows, by question. In exact: error_guess, that of the most frequent count of each question.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.random import Generator

from odesim.base.arrays import Array, array_namespace, on_host
from odesim.base.errors import ParamError, counted
from odesim.lab.networks.transformer import Transformer
from odesim.lab.training.optimizers import adam, of_settings
from odesim.lab.training.randomness import Drawn
from odesim.lab.training.task import Batch, Experiment, Observable, Params, ReferenceTask, Setting, Settings

OPEN, CLOSE = 2, 3
"""Tokens of the brackets; 0 and 1 are the bits, 4, 5, ... the questions."""


def draw_rows(rng: Generator, count: int, *, length: int, regions: int) -> Batch:
    """Tokens (count, length + regions), and positions and targets (count, regions) of the questions. length: of bits and brackets."""
    row = rng.integers(2, size=(count, length))
    places = np.sort(rng.random((count, length)).argsort(axis=1)[:, : 2 * regions], axis=1)
    ones = np.concatenate([np.zeros((count, 1), int), row.cumsum(axis=1)], axis=1)  # before each place
    start, end = places[:, ::2], places[:, 1::2]
    counts = np.take_along_axis(ones, end, axis=1) - np.take_along_axis(ones, start + 1, axis=1)
    np.put_along_axis(row, start, OPEN, axis=1)
    np.put_along_axis(row, end, CLOSE, axis=1)
    region = np.tile(np.arange(regions), (count, 1))
    return {"tokens": np.concatenate([row, 4 + region], axis=1), "positions": length + region, "targets": counts}


TEST_ROWS = 256


def wrong(outputs: Array, targets: Array) -> Array:
    """The share of wrong counts (R, regions) from outputs (R, B, regions, C) and targets (R, B, regions)."""
    return np.asarray((outputs.argmax(axis=-1) != targets).mean(axis=1))


def guess(targets: Array) -> Array:
    """The error (R, regions) of the most frequent count of each question."""
    most = [[np.bincount(column).max() for column in rows.T] for rows in targets]
    return 1 - np.array(most) / targets.shape[1]


SETTINGS = (
    Setting("length", 16, "bits and brackets of a row", low=2),
    Setting("regions", 2, "regions of a row, with two brackets each", low=1),
    Setting("positions", "none", "whether tokens have learned positions", choices=("none", "learned")),
    Setting("sees", "past", "what a token attends to", choices=("past", "all")),
    Setting("batch", 64, "rows of an iteration", low=1),
    Setting("layers", 2, "of the transformer", low=1),
    Setting("width", 32, "of the embeddings", low=1),
    Setting("mlp", 64, "nodes of the MLP", low=0),
    Setting("heads", 2, "heads, which divide the width", low=1),
    *adam(3e-3),
)


def network(values: Settings) -> Transformer:
    """Of the questions' answers. Raises ParamError for heads that do not divide the width, and for more brackets than a row has places."""
    length, regions = values["length"], values["regions"]
    if 2 * regions > length:
        raise ParamError(f"{counted(regions, 'region')} of two brackets each need a length of {2 * regions}, not {length}")
    shape = {name: values[name] for name in ("width", "layers", "mlp", "heads")}
    positions = length + regions if values["positions"] == "learned" else 0
    return Transformer(
        4 + regions, outputs=length - 2 * regions + 1, positions=positions, causal=values["sees"] == "past", at="given", **shape
    )


def memory(values: Settings, seeds: int, model: str) -> Mapping[str, int]:
    """{what takes memory: number of numbers} of a training: the transformer, a step or a test, the rows."""
    places = values["length"] + values["regions"]
    most = max(values["batch"], TEST_ROWS)
    return {
        **network(values).memory(seeds=seeds, batch=most, length=places, read=values["regions"]),
        "the rows": 6 * seeds * (values["batch"] + TEST_ROWS) * places,
    }


def make(values: Settings, seeds: tuple[int, ...], model: str, dtype: str) -> Experiment:
    """The experiment. Raises ParamError for settings that do not fit together."""
    transformer = network(values)
    draw = partial(draw_rows, length=values["length"], regions=values["regions"])
    test = Drawn(seeds, draw, batch=0).test(TEST_ROWS)

    def error(params: Params) -> Array:
        E, outputs = params["embedding"], on_host(transformer.forward(params, test).outputs)
        return array_namespace(E).asarray(wrong(outputs, test["targets"]).astype(str(E.dtype)))

    watched = Observable("error", error, ("region",), "wrong counts in test rows, by region", costly=True)
    return Experiment(
        model=replace(transformer, extra=(watched,)),
        stream=Drawn(seeds, draw, batch=values["batch"]),
        optimizer=of_settings(values, transformer.rates(values["lr"])),
        steps=600,
        vocabulary=transformer.vocabulary,
        exact={"error_guess": guess(test["targets"])},
        labels={"region": tuple(str(n + 1) for n in range(values["regions"]))},
    )


DOC = "how many ones stand in each bracketed region (golkar2024counting)"
TASK = ReferenceTask("counting", DOC, SETTINGS, make, memory, ("transformer",))

"""The task counting: how many ones there are in each bracketed region of a row of bits.

Source: Golkar et al. 2024, arXiv 2406.02585, contextual counting. A row of bits has regions [ ... ] that do not overlap; questions 1, 2,
... follow it, and each is answered by the number of ones in the region of that number. The published experiment: 512 tokens, 4 regions, an
encoder that sees both sides or the past alone, and a decoder of the questions; the past alone is much better, and without positions most
accurate. Here one transformer reads both. Without positions and with both sides seen it cannot know the order of its tokens: no question
can be answered better than by the number of all ones.

error: share of wrong counts in test rows, by question.
"""

from functools import partial

import numpy as np
from numpy.random import Generator

from odesim.base.arrays import Array
from odesim.base.errors import ParamError, counted
from odesim.lab.networks.sequences import Sequences, errors, network_of, sequence_task, shape_settings
from odesim.lab.training.task import Batch, Setting, Settings

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


def wrong(outputs: Array, targets: Array) -> Array:
    """The share of wrong counts (R, regions) from outputs (R, B, regions, C) and targets (R, B, regions)."""
    return np.asarray((outputs.argmax(axis=-1) != targets).mean(axis=1))


SETTINGS = (
    Setting("length", 16, "bits and brackets of a row", low=2),
    Setting("regions", 2, "regions of a row, with two brackets each", low=1),
    Setting("positions", "none", "whether tokens have learned positions", choices=("none", "learned")),
    Setting("sees", "past", "what a token attends to", choices=("past", "all")),
    *shape_settings("rows", width=32, mlp=64, rate=3e-3),
)


def sequences(values: Settings) -> Sequences:
    """Rows with their questions. Raises ParamError for more brackets than a row has places."""
    length, regions = values["length"], values["regions"]
    if 2 * regions > length:
        raise ParamError(f"{counted(regions, 'region')} of two brackets each need a length of {2 * regions}, not {length}")
    places = {"positions": length + regions if values["positions"] == "learned" else 0, "causal": values["sees"] == "past"}
    return Sequences(
        network_of(values, 4 + regions, outputs=length - 2 * regions + 1, at="given", **places),
        partial(draw_rows, length=length, regions=regions),
        length=length + regions,
        tests=256,
        watch=errors(wrong, ("region",), "wrong counts in test rows, by region"),
        read=regions,
        labels=lambda: {"region": tuple(str(n + 1) for n in range(regions))},
    )


DOC = "how many ones stand in each bracketed region (golkar2024counting)"
TASK = sequence_task("counting", DOC, SETTINGS, sequences, steps=600)

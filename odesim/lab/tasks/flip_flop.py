"""The task flip_flop: remember one bit, and pass over all others until it is asked for.

Source: Liu, Ash, Goel, Krishnamurthy and Zhang 2023, arXiv 2306.00946, flip-flop language modelling. A sequence is of pairs of an
instruction and a bit: write, ignore or read; after a read stands the bit that was written last, any other bit is a coin's. The first
instruction writes, the last reads. A transformer that is trained where a share `ignore` is ignored errs now and then on rare sequences,
sparser ones, whose reads are further from their writes, and denser ones: attention glitches. The published experiment: 512 tokens, .8
ignored, tested on .98 and on .1, 6 layers of width 512 with 8 heads.

error: share of wrong bits at reads of test sequences, as trained, sparse and dense.
"""

from functools import partial

import numpy as np
from numpy.random import Generator

from odesim.base.arrays import Array
from odesim.lab.networks.sequences import Sequences, errors, network_of, sequence_task, shape_settings
from odesim.lab.training.task import Batch, Setting, Settings

WRITE, READ, IGNORE = 2, 3, 4
"""Tokens of the instructions; 0 and 1 are the bits."""
SETS = ("as trained", "sparse", "dense")
DENSE = 0.1
"""The share that is ignored in dense test sequences."""


def draw_sequences(rng: Generator, count: int, *, instructions: int, ignore: tuple[float, ...]) -> Batch:
    """Tokens and targets (count, 2 * instructions): a target at each read. ignore: shares, for sequences in turn."""
    share = np.resize(ignore, count)[:, None]
    u = rng.random((count, instructions))
    kind = np.where(u < share, IGNORE, np.where(u < (1 + share) / 2, WRITE, READ))
    kind[:, 0], kind[:, -1] = WRITE, READ
    bit = rng.integers(2, size=kind.shape)
    last = np.maximum.accumulate(np.where(kind == WRITE, np.arange(instructions), 0), axis=1)
    bit = np.where(kind == READ, np.take_along_axis(bit, last, axis=1), bit)
    tokens, targets = np.empty((count, 2 * instructions), dtype=int), np.full((count, 2 * instructions), -1)
    tokens[:, ::2], tokens[:, 1::2] = kind, bit
    targets[:, ::2] = np.where(kind == READ, bit, -1)
    return {"tokens": tokens, "targets": targets}


TEST_SEQUENCES = 64
"""Of each set."""


def wrong(answers: Array, targets: Array) -> Array:
    """The share of wrong bits (R, 3) from answers and targets (R, B, T) of the sets in turn."""
    is_read, off = targets >= 0, (answers != targets) & (targets >= 0)
    return np.stack([off[:, k::3].sum(axis=(1, 2)) / np.maximum(is_read[:, k::3].sum(axis=(1, 2)), 1) for k in range(3)], axis=1)


SETTINGS = (
    Setting("instructions", 16, "pairs of an instruction and a bit", low=2),
    Setting("ignore", 0.8, "share of instructions that are ignored in training", low=0.0, high=1.0),
    Setting("sparse", 0.98, "that share in sparse test sequences", low=0.0, high=1.0),
    *shape_settings("sequences", width=32, mlp=64, rate=3e-3),
)


def sequences(values: Settings) -> Sequences:
    """With learned positions."""
    ignore, length = values["ignore"], 2 * values["instructions"]
    draw = partial(draw_sequences, instructions=values["instructions"])
    return Sequences(
        network_of(values, 5, outputs=2, positions=length, at="all"),
        partial(draw, ignore=(ignore,)),
        length=length,
        tests=3 * TEST_SEQUENCES,
        watch=errors(lambda outputs, bits: wrong(outputs.argmax(axis=-1), bits), ("sequences",), "wrong bits at reads of test sequences"),
        draw_test=partial(draw, ignore=(ignore, values["sparse"], DENSE)),
        labels=lambda: {"sequences": SETS},
    )


DOC = "one bit is remembered while others are passed over (liu2023flipflop)"
TASK = sequence_task("flip_flop", DOC, SETTINGS, sequences, steps=1000)

"""The task composition: g(f(x)) of two tables and x, all in the context: two hops, on tables.

Source: Peng, Narayanan and Papadimitriou 2024, arXiv 2402.08164. A sequence has the entries f(0), ..., f(n - 1) of a table, those of g, and
x; all are uniform. The place of an entry is its argument, so that one layer can look up f(x). For g(f(x)) it would have to bring all of g
to the last token before it knows f(x): one layer of H heads, width d and p bits a number errs where H (d + 1) p < n log n. Two layers can
first give each entry of f its value under g.

error: share of wrong answers in test sequences.
"""

from functools import partial

import numpy as np
from numpy.random import Generator

from odesim.base.arrays import Array
from odesim.lab.networks.sequences import Sequences, errors, network_of, sequence_task, shape_settings
from odesim.lab.training.task import Batch, Setting, Settings


def draw_tables(rng: Generator, count: int, *, entries: int) -> Batch:
    """Tokens (count, 2 entries + 1) of f, g and x, and targets (count,)."""
    tokens = rng.integers(entries, size=(count, 2 * entries + 1))
    row = np.arange(count)
    return {"tokens": tokens, "targets": tokens[row, entries + tokens[row, tokens[:, -1]]]}


def wrong(outputs: Array, targets: Array) -> Array:
    """The share of wrong answers (R,) from outputs (R, B, 1, C) and targets (R, B)."""
    return np.asarray((outputs[:, :, 0].argmax(axis=-1) != targets).mean(axis=1))


SETTINGS = (Setting("entries", 6, "entries of each table", low=2), *shape_settings("sequences", width=64, mlp=128, rate=1e-3))


def sequences(values: Settings) -> Sequences:
    """With learned positions, read at x."""
    n = values["entries"]
    return Sequences(
        network_of(values, n, positions=2 * n + 1, causal=False),
        partial(draw_tables, entries=n),
        length=2 * n + 1,
        tests=512,
        watch=errors(wrong, (), "wrong answers in test sequences"),
    )


DOC = "g(f(x)) of two tables in the context, which one layer cannot tell (peng2024limitations)"
TASK = sequence_task("composition", DOC, SETTINGS, sequences, steps=2000)

"""The task hops: follow a chain of earlier occurrences, k hops back, where the first token says how many.

Source: Sanford, Hsu and Telgarsky 2024, arXiv 2402.09268, and its program chsanford/hop-induction-heads. A hop leads from a place to the
one after the last earlier occurrence of its letter: the answer of one hop is an induction head's, that of two the composition of such
functions (on tables: the task composition). floor(log2 k) + 2 layers suffice, by doubling. The published experiment: 4 letters, length
100, k up to 16, width 128, 4 heads, rate 1e-4, batches of 32, 100,000 steps.

error: share of wrong answers in test sequences, by hops.
"""

from functools import partial

import numpy as np
from numpy.random import Generator

from odesim.base.arrays import Array
from odesim.lab.networks.sequences import Sequences, errors, network_of, sequence_task, shape_settings
from odesim.lab.training.task import Batch, Setting, Settings

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


SETTINGS = (
    Setting("letters", 4, "letters, none of them twice in a row", low=3),
    Setting("hops", 3, "the largest number of hops", low=0),
    Setting("length", 24, "letters of a sequence", low=2),
    *shape_settings("sequences", width=64, mlp=128, rate=1e-3),
)


def sequences(values: Settings) -> Sequences:
    """With learned positions."""
    letters, hops, length = (values[name] for name in ("letters", "hops", "length"))
    draw = partial(draw_sequences, letters=letters, hops=hops, length=length)
    return Sequences(
        network_of(values, letters + hops + 1, outputs=letters + 1, positions=length + 1, at="all"),
        draw,
        length=length + 1,
        tests=TEST_SEQUENCES * (hops + 1),
        watch=errors(partial(wrong, hops=hops), ("hops",), "wrong answers in test sequences, by hops"),
        draw_test=partial(draw, each=True),
        labels=lambda: {"hops": tuple(map(str, range(hops + 1)))},
    )


DOC = "k hops along earlier occurrences, which takes of order log k layers (sanford2024transformers)"
TASK = sequence_task("hops", DOC, SETTINGS, sequences, steps=1000)

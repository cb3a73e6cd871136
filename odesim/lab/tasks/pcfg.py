"""The task pcfg: the masked letter of a sentence of a small grammar, by a transformer that sees both sides.

Source: Zhao, Panigrahi, Ge and Arora 2023, arXiv 2303.08117, on parsing while predicting masked words; the grammar is one of our own in
which all is counted. A symbol a of 4 becomes (a + 2c, 2a + c) mod 4 with c = 0 or 1, each with probability 1/2, the root is uniform, and
after `depth` generations the letters are the sentence. A pair of siblings tells its parent: so a letter has, of ln 4, all left if nothing
is known, 1/2 from its sibling, 1/4 from its block of four, 1/8 from one of eight. That is what inside and outside probabilities give, and
a network learns level by level.

share: the loss of all sentences with each letter masked, over ln 4. In exact: levels, the conditional entropy of a letter over ln 4, mean
over places, if the block of 1, 2, 4, ... around it is known.
"""

from functools import partial
from itertools import product

import numpy as np
from numpy.random import Generator

from odesim.base.arrays import Array
from odesim.lab.networks.sequences import Sequences, network_of, sequence_task, shape_settings
from odesim.lab.networks.transformer import Transformer
from odesim.lab.training.task import Batch, Observable, Params, Setting, Settings

SYMBOLS = 4
MASK = SYMBOLS
"""The token of a masked letter."""


def sentences(roots: Array, choices: Array) -> Array:
    """Sentences (n, 2^depth) of roots (n,) by the choices (n, 2^depth - 1) of rules, generation by generation."""
    row, used = roots[:, None], 0
    while used < choices.shape[1]:
        c = choices[:, used : used + row.shape[1]]
        used += row.shape[1]
        row = np.stack([row + 2 * c, 2 * row + c], axis=2).reshape(len(row), -1) % SYMBOLS
    return row


def all_sentences(depth: int) -> Array:
    """Each sentence (n, 2^depth), all equally probable, once."""
    choices = np.array(list(product(range(2), repeat=2**depth - 1)))
    return sentences(np.repeat(np.arange(SYMBOLS), len(choices)), np.tile(choices, (SYMBOLS, 1)))


def masked(row: Array, place: Array) -> Batch:
    """Tokens (n, T) of sentences (n, T) with the letter at each place (n,) masked, its position and it as target (n, 1)."""
    tokens, here = row.copy(), (np.arange(len(row)), place)
    tokens[here] = MASK
    return {"tokens": tokens, "positions": place[:, None], "targets": row[here][:, None]}


def draw_masked(rng: Generator, count: int, *, depth: int) -> Batch:
    """Sentences with a masked letter each."""
    row = sentences(rng.integers(SYMBOLS, size=count), rng.integers(2, size=(count, 2**depth - 1)))
    return masked(row, rng.integers(2**depth, size=count))


def levels(depth: int) -> Array:
    """The mean conditional entropy (depth + 1,) of a letter over ln 4, if the others of its block of 2^0, ..., 2^depth are known."""
    every = all_sentences(depth)
    result = []
    for size in 2 ** np.arange(depth + 1):
        left = 0.0
        for j in range(2**depth):
            block = np.arange(j - j % size, j - j % size + size)
            left += entropy(every[:, block]) - entropy(every[:, block[block != j]])
        result.append(left / 2**depth / np.log(SYMBOLS))
    return np.array(result)


def entropy(rows: Array) -> float:
    """The entropy of equally probable rows (n, m)."""
    _, counts = np.unique(rows, axis=0, return_counts=True) if rows.shape[1] else (None, np.array([len(rows)]))
    return float(np.log(len(rows)) - (counts * np.log(counts)).sum() / len(rows))


def share(model: Transformer, test: Batch) -> tuple[Observable, ...]:
    """The observable `share`."""

    def function(params: Params) -> Array:
        result: Array = model.loss_of(params, test) / np.log(SYMBOLS)
        return result.astype(params["embedding"].dtype)

    return (Observable("share", function, (), "loss of all sentences with each letter masked, over ln 4", costly=True),)


SETTINGS = (
    Setting("depth", 3, "generations: a sentence has 2^depth letters", low=1, high=3),
    *shape_settings("sentences", width=32, mlp=64, rate=3e-3),
)


def sequences(values: Settings) -> Sequences:
    """A transformer that sees both sides, with learned positions; its test is every letter of every sentence."""
    depth, places = values["depth"], 2 ** values["depth"]

    def cases(rng: Generator, count: int) -> Batch:
        every = all_sentences(depth)
        return masked(np.repeat(every, places, axis=0), np.tile(np.arange(places), len(every)))

    return Sequences(
        network_of(values, SYMBOLS + 1, outputs=SYMBOLS, positions=places, causal=False, at="given", start="normal", std=0.1),
        partial(draw_masked, depth=depth),
        length=places,
        tests=SYMBOLS * 2 ** (places - 1) * places,
        watch=share,
        draw_test=cases,
        exact=lambda test: {"levels": np.tile(levels(depth), (len(test["tokens"]), 1))},
        labels=lambda: {"level": tuple(f"block of {2**n}" for n in range(depth + 1))},
    )


DOC = "the masked letter of a sentence of a small grammar, level by level (zhao2023parse)"
TASK = sequence_task("pcfg", DOC, SETTINGS, sequences, steps=1000)

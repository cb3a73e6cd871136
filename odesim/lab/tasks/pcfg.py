"""The task pcfg: the masked letter of a sentence of a small grammar, by a transformer that sees both sides.

Source: Zhao, Panigrahi, Ge and Arora 2023, arXiv 2303.08117, on parsing while predicting masked words; the grammar is one of our own in
which all is counted. A symbol a of 4 becomes (a + 2c, 2a + c) mod 4 with c = 0 or 1, each with probability 1/2, the root is uniform, and
after `depth` generations the letters are the sentence. A pair of siblings tells its parent: so a letter has, of ln 4, all left if nothing
is known, 1/2 from its sibling, 1/4 from its block of four, 1/8 from one of eight. That is what inside and outside probabilities give, and
a network learns level by level.

share: the loss of all sentences with each letter masked, over ln 4. In exact: levels, the conditional entropy of a letter over ln 4, mean
over places, if the block of 1, 2, 4, ... around it is known.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np
from numpy.random import Generator

from odesim.base.arrays import Array
from odesim.lab.networks.transformer import Transformer
from odesim.lab.training.optimizers import adam, of_settings
from odesim.lab.training.randomness import Drawn
from odesim.lab.training.task import Batch, Experiment, Observable, Params, ReferenceTask, Setting, Settings

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


SETTINGS = (
    Setting("depth", 3, "generations: a sentence has 2^depth letters", low=1, high=3),
    Setting("batch", 64, "sentences of an iteration", low=1),
    Setting("layers", 2, "of the transformer", low=1),
    Setting("width", 32, "of the embeddings", low=1),
    Setting("mlp", 64, "nodes of the MLP", low=0),
    Setting("heads", 2, "heads, which divide the width", low=1),
    *adam(3e-3),
)


def network(values: Settings) -> Transformer:
    """It sees both sides, with learned positions. Raises ParamError for heads that do not divide the width."""
    shape = {name: values[name] for name in ("width", "layers", "mlp", "heads")}
    return Transformer(
        SYMBOLS + 1, outputs=SYMBOLS, positions=2 ** values["depth"], causal=False, at="given", start="normal", std=0.1, **shape
    )


def memory(values: Settings, seeds: int, model: str) -> Mapping[str, int]:
    """{what takes memory: number of numbers} of a training: the transformer, on a batch or on all sentences."""
    places = 2 ** values["depth"]
    cases = SYMBOLS * 2 ** (places - 1) * places
    most = max(values["batch"], cases)
    return {
        **network(values).memory(seeds=seeds, batch=most, length=places),
        "the sentences": 3 * seeds * (values["batch"] + cases) * places,
    }


def make(values: Settings, seeds: tuple[int, ...], model: str, dtype: str) -> Experiment:
    """The experiment. Raises ParamError for heads that do not divide the width."""
    transformer, depth = network(values), values["depth"]
    every, places = all_sentences(depth), 2**depth
    cases = masked(np.repeat(every, places, axis=0), np.tile(np.arange(places), len(every)))
    test = {name: np.tile(a, (len(seeds), 1, 1)) for name, a in cases.items()}

    def share(params: Params) -> Array:
        result: Array = transformer.loss_of(params, test) / np.log(SYMBOLS)
        return result.astype(params["embedding"].dtype)

    watched = Observable("share", share, (), "loss of all sentences with each letter masked, over ln 4", costly=True)
    return Experiment(
        model=replace(transformer, extra=(watched,)),
        stream=Drawn(seeds, partial(draw_masked, depth=depth), batch=values["batch"]),
        optimizer=of_settings(values, transformer.rates(values["lr"])),
        steps=1000,
        vocabulary=transformer.vocabulary,
        exact={"levels": np.tile(levels(depth), (len(seeds), 1))},
        labels={"level": tuple(f"block of {2**n}" for n in range(depth + 1))},
    )


DOC = "the masked letter of a sentence of a small grammar, level by level (zhao2023parse)"
TASK = ReferenceTask("pcfg", DOC, SETTINGS, make, memory, ("transformer",))

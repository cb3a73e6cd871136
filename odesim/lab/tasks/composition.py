"""The task composition: g(f(x)) of two tables and x, all in the context: two hops, on tables.

Source: Peng, Narayanan and Papadimitriou 2024, arXiv 2402.08164. A sequence has the entries f(0), ..., f(n - 1) of a table, those of g, and
x; all are uniform. The place of an entry is its argument, so that one layer can look up f(x). For g(f(x)) it would have to bring all of g
to the last token before it knows f(x): one layer of H heads, width d and p bits a number errs where H (d + 1) p < n log n. Two layers can
first give each entry of f its value under g.

error: share of wrong answers in test sequences. In exact: error_guess, of the entry that comes most often in g.
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


def draw_tables(rng: Generator, count: int, *, entries: int) -> Batch:
    """Tokens (count, 2 entries + 1) of f, g and x, and targets (count,)."""
    tokens = rng.integers(entries, size=(count, 2 * entries + 1))
    row = np.arange(count)
    return {"tokens": tokens, "targets": tokens[row, entries + tokens[row, tokens[:, -1]]]}


def guess(tokens: Array, targets: Array, entries: int) -> Array:
    """The error (R,) of the most frequent entry of g, for each row of tokens (R, B, 2 entries + 1); the least of several."""
    g = tokens[:, :, entries:-1]
    most = (g[..., None] == np.arange(entries)).sum(axis=2).argmax(axis=-1)
    return np.asarray((most != targets).mean(axis=1))


TEST_SEQUENCES = 512

SETTINGS = (
    Setting("entries", 6, "entries of each table", low=2),
    Setting("batch", 64, "sequences of an iteration", low=1),
    Setting("layers", 2, "of the transformer", low=1),
    Setting("width", 64, "of the embeddings", low=1),
    Setting("mlp", 128, "nodes of the MLP", low=0),
    Setting("heads", 2, "heads, which divide the width", low=1),
    *adam(1e-3),
)


def network(values: Settings) -> Transformer:
    """With learned positions, read at x. Raises ParamError for heads that do not divide the width."""
    shape = {name: values[name] for name in ("width", "layers", "mlp", "heads")}
    return Transformer(values["entries"], positions=2 * values["entries"] + 1, causal=False, at="last", **shape)


def memory(values: Settings, seeds: int, model: str) -> Mapping[str, int]:
    """{what takes memory: number of numbers} of a training: the transformer, a step or a test, the sequences."""
    places, most = 2 * values["entries"] + 1, max(values["batch"], TEST_SEQUENCES)
    return {
        **network(values).memory(seeds=seeds, batch=most, length=places),
        "the sequences": 4 * seeds * (values["batch"] + TEST_SEQUENCES) * places,
    }


def make(values: Settings, seeds: tuple[int, ...], model: str, dtype: str) -> Experiment:
    """The experiment. Raises ParamError for heads that do not divide the width."""
    transformer, draw = network(values), partial(draw_tables, entries=values["entries"])
    test = Drawn(seeds, draw, batch=0).test(TEST_SEQUENCES)

    def error(params: Params) -> Array:
        E, outputs = params["embedding"], on_host(transformer.forward(params, test).outputs)
        off = (outputs[:, :, 0].argmax(axis=-1) != test["targets"]).mean(axis=1)
        return array_namespace(E).asarray(off.astype(str(E.dtype)))

    watched = Observable("error", error, (), "wrong answers in test sequences", costly=True)
    return Experiment(
        model=replace(transformer, extra=(watched,)),
        stream=Drawn(seeds, draw, batch=values["batch"]),
        optimizer=of_settings(values, transformer.rates(values["lr"])),
        steps=2000,
        vocabulary=transformer.vocabulary,
        exact={"error_guess": guess(test["tokens"], test["targets"], values["entries"])},
    )


DOC = "g(f(x)) of two tables in the context, which one layer cannot tell (peng2024limitations)"
TASK = ReferenceTask("composition", DOC, SETTINGS, make, memory, ("transformer",))

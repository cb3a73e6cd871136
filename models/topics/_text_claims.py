"""What is stated of a transformer on a real text with masked tokens: values first, and what embeddings and attention know of topics."""

from collections.abc import Iterable
from functools import cache
from typing import Any

import numpy as np

import odesim
from odesim.lab.claims import Claim, Measurement, Statement
from odesim.symbolic import Source

PAPER = "li2023topic"
TEXT: dict[str, Any] = {"objective": "masked", "vocabulary": 800, "length": 48, "batch": 16, "heads": 4, "start": "normal"}
"""Two layers of width 64 on Python's help; matrices start as N(0, .02^2)."""
SEEDS = (0, 1)


def first_to_grow(values: dict[str, Any], steps: int, save: int) -> Iterable[Measurement]:
    """When the values of each head of the first layer have grown by 5 %, over when its queries or keys have, or the end."""
    given: dict[str, Any] = {"model": "transformer", "settings": TEXT | values, "seeds": SEEDS, "dtype": "float32"}
    run = odesim.train("corpus", steps=steps, save=save, observe=("attention_norm_heads",), **given)
    norms = run.observables["attention_norm_heads"][:, :, 0]  # (seed, time, part, head)
    there = norms >= 1.05 * norms[:, :1]
    when = np.where(there.any(axis=1), run.t[there.argmax(axis=1)], run.t[-1])
    for (seed, head), ratio in np.ndenumerate(when[:, 2] / when[:, :2].min(axis=1)):
        yield Measurement(f"seed {seed}, head {head}: time of 5 % of values over that of queries or keys", ratio, 2 / 3, 0.0, "<=")


def by_sgd() -> Iterable[Measurement]:
    """SGD at rate .1."""
    return first_to_grow({"optimizer": "sgd", "lr": 0.1}, 800, 81)


def by_adam() -> Iterable[Measurement]:
    """Adam at rate 1e-3: each entry moves by the rate at first, whatever its gradient."""
    return first_to_grow({}, 120, 61)


@cache
def trained() -> tuple[np.ndarray, np.ndarray]:
    """topic_cosine (seed, labels, pair) and topic_attention (seed, labels, layer), mean over heads, after 2000 steps of Adam."""
    given: dict[str, Any] = {"model": "transformer", "settings": TEXT, "seeds": SEEDS, "dtype": "float32"}
    found = odesim.train("corpus", steps=2000, save=2, **given).final
    return found["topic_cosine"], found["topic_attention"].mean(axis=3)


def known(layers: tuple[int, ...]) -> Iterable[Measurement]:
    """Cosines of embeddings, and attention of these layers, beside words with topics in random orders."""
    cosines, attention = trained()
    yield Measurement("cosine of embeddings, one topic", cosines[:, 0, 0].mean(), 0.12, 0.03)
    yield Measurement("cosine of embeddings, two topics", cosines[:, 0, 1].mean(), -0.015, 0.005)
    yield Measurement("cosine of embeddings, one random topic", cosines[:, 1:, 0].mean(), 0.0, 0.02)
    off = (attention[:, 0] - attention[:, 1:].mean(axis=1)) / attention[:, 1:].std(axis=1)  # (seed, layer)
    for layer in layers:
        name = f"layer {layer + 1}: attention to one topic, above that to random ones, in their deviations"
        yield Measurement(name, off[:, layer].mean(), 2.0, 0.0, ">=")
    yield Measurement("layer 1: attention, one topic over two", attention[:, 0, 0].mean(), 1.16, 0.08)


def every_layer() -> Iterable[Measurement]:
    """Both layers."""
    return known((0, 1))


def first_layer() -> Iterable[Measurement]:
    """The first layer; the second is not above random orders in every seed.

    There it differs by seed and by the windows that are looked at: 1.01 and 1.03 here, where random orders spread by .04. Two other
    programs: .75 and .95, spread .09 and .03; and, in numpy alone, four seeds, .91, 1.01, 1.02 and 1.24 in 640 windows, spread .02, but
    .99, 1.19, .96 and 1.33 in 64 of them, spread .04 to .10.
    """
    yield from known((0,))
    attention = trained()[1][:, :, 1]
    off = (attention[:, 0] - attention[:, 1:].mean(axis=1)) / attention[:, 1:].std(axis=1)
    yield Measurement(
        "layer 2: attention to one topic, above that to random ones, in their deviations, least of the seeds", off.min(), 2.0, 0.0, "<="
    )


TEXT_CLAIMS = (
    Claim(
        "topics.values_first_on_text",
        Source(PAPER, "experiments on Wikipedia", "two stages, on another text; the measure is ours"),
        "the task corpus with masked tokens, two seeds: 800 steps of SGD, 120 of Adam",
        "in each head of the first layer values grow before queries and keys",
        by_sgd,
        "none: in no head of two seeds is the ratio of times above 1/2",
        when="trained by SGD",
        otherwise=by_adam,
        models=("topics.full",),
        slow=True,
        depends=("topics.two_stages",),
    ),
    Claim(
        "topics.on_text",
        Source(
            PAPER, "experiments on Wikipedia", "on another text; topics by nonnegative factors, and random orders as the null, are ours"
        ),
        "the task corpus with masked tokens, two seeds, 2000 steps of Adam",
        "embeddings and the attention of every layer know which words are of one topic",
        every_layer,
        "of cosines and attention, ranges of seeds; two deviations of 20 random orders",
        fails=True,
        corrected=Statement(
            "embeddings and the first layer do, the second not in every seed",
            first_layer,
            "of cosines and attention, ranges of seeds; two deviations of 20 random orders",
        ),
        models=("topics.full",),
        slow=True,
    ),
)

"""What is stated of attention to text, at the size of the figure beside Fig. 7: sinks and sparse entries, beside even attention."""

from collections.abc import Iterable
from functools import cache

import numpy as np

import odesim
from odesim.lab.claims import Claim, Measurement, Statement, Verdict
from odesim.models.static._sink_claims import even
from odesim.symbolic import Source

LENGTH, LAYERS = 35, 3


@cache
def trained() -> tuple[np.ndarray, np.ndarray]:
    """Attention to the first token, and shares of small entries (layer, head), after 1000 steps of SGD at rate 5 with clipped gradients."""
    settings = {"vocabulary": 500, "length": LENGTH, "batch": 16, "layers": LAYERS, "optimizer": "sgd", "lr": 5.0, "clip": 0.25}
    run = odesim.train("corpus", model="transformer", settings=settings, steps=1000, save=2, dtype="float32")
    return run.final["attention_first"][0], run.final["attention_sparse"][0]


def sink() -> Iterable[Measurement]:
    """The first token has more than even attention gives it, in at least one head."""
    yield Measurement("most of a head to the first token, over even attention", float(trained()[0].max() / even(LENGTH)[0]), 1.2, 0.0, ">=")


def no_sink() -> Iterable[Measurement]:
    """It has less in every head."""
    for (layer, head), share in np.ndenumerate(trained()[0] / even(LENGTH)[0]):
        yield Measurement(f"layer {layer + 1}, head {head}: attention to the first token, over even attention", float(share), 0.75, 0.25)


def sparse() -> Iterable[Measurement]:
    """Small entries of every head."""
    yield Measurement("least share of small entries of a head", float(trained()[1].min()), 0.95, 0.0, ">=")


def one_head() -> Iterable[Measurement]:
    """Small entries of the sharper head of the lowest layer, and of all others."""
    shares = trained()[1]
    yield Measurement("share of small entries, sharper head of the lowest layer", float(shares[0].max()), 0.6, 0.2)
    yield Measurement("other head of the lowest layer", float(shares[0].min()), 0.1, 0.1)
    for (layer, head), share in np.ndenumerate(shares[1:]):
        yield Measurement(f"layer {layer + 2}, head {head}", float(share), 0.25, 0.25)


RUN = "the task corpus, three layers, vocabulary 500, windows of 35 tokens, 1000 steps of SGD at rate 5 with clipped gradients"
TEXT_CLAIMS = (
    Claim(
        "scan_snap.sinks_on_text",
        Source("xiao2024efficient", "attention sinks", "of far larger models; even attention as the null is ours"),
        RUN,
        ("scan_snap.full",),
        Statement("some heads give the first token much more than even attention does", sink, Verdict.FAILS, "none"),
        Statement(
            "at this size every head gives it less: .5 to 1 of that", no_sink, Verdict.HOLDS, "range of three seeds and two optimizers"
        ),
        slow=True,
        depends=("static.heavy_hitters",),
    ),
    Claim(
        "scan_snap.sparse_on_text",
        Source("zhang2023h2o", "sparsity of attention", "entries below .01 of their row's largest, of far larger models"),
        RUN,
        ("scan_snap.full",),
        Statement("over .95 of the entries are small", sparse, Verdict.FAILS, "none"),
        Statement(
            "at this size some .6 are in one head of the lowest layer, hardly any in its other head",
            one_head,
            Verdict.HOLDS,
            "range of three seeds",
        ),
        slow=True,
    ),
)

"""How contexts overlap, in the data of the Scan & Snap paper, and attention to text at the size of the figure beside Fig. 7."""

from collections.abc import Iterable
from functools import cache
from typing import Any

import numpy as np

import odesim
from odesim.lab.claims import Claim, Measurement, Statement, deviation
from odesim.models.scan_snap._snap_claims import FINE, PAPER
from odesim.models.static.claims import even
from odesim.symbolic import Source


def overlaps(c: np.ndarray) -> np.ndarray:
    """Eigenvalues (K,) of F^T F - I, for the contexts c (K, S) of the classes."""
    f = c / np.linalg.norm(c, axis=1, keepdims=True)
    return np.linalg.eigvalsh(f @ f.T - np.eye(len(c)))


def small() -> tuple[np.ndarray, int, float]:
    """(those eigenvalues of Syn-Small at the start, K, M)."""
    run = odesim.integrate("scan_snap.reduced", span=(0, 1), save=2, **FINE)
    c = run.observables["c"][0]
    return overlaps(c), len(c), float(run.attrs["params"]["M"])


def assumed() -> Iterable[Measurement]:
    """The two bounds on eigenvalues, of Syn-Small."""
    E, classes, M = small()
    yield Measurement("largest |eigenvalue of E| of Syn-Small, below 1/K", np.abs(E).max(), 1 / classes, 1e-12, "<=")
    yield Measurement("least |eigenvalue of E| of Syn-Small, 6 / sqrt(M) at least", np.abs(E).min(), 6 / np.sqrt(M), 1e-12, ">=")


def any_overlap() -> Iterable[Measurement]:
    """The overlap of Syn-Small; xi along the reduced flow of it, and of classes all of whose tokens are common."""
    E, _, M = small()
    yield deviation("eigenvalues of E of Syn-Small", E, [-0.722, 0.722], 5.1e-4)
    yield Measurement("6 / sqrt(M) of Syn-Small", 6 / np.sqrt(M), 1.03, 5.1e-3)
    rng = np.random.default_rng(0)
    tables: list[dict[str, Any]] = [{}, *({"P": rng.dirichlet(np.full(8, 2.0), 3), "M": 1e4} for _ in range(2))]
    for k, params in enumerate(tables):
        run = odesim.integrate("scan_snap.reduced", params=params, save=41, **FINE)
        c, xi = run.observables["c"], run.observables["xi"]
        if not params:
            yield deviation("eigenvalues of E of Syn-Small at t = 100", overlaps(c[-1]), [-0.199964, 0.199964], 5.1e-7)
        else:
            largest = float(np.abs(overlaps(c[0])).max())
            yield Measurement(f"largest |eigenvalue of E|, table {k}, above 1/K", largest, 1 / len(c[0]), 0.0, ">=")
        yield Measurement(f"least xi from t = 2.5 to 100, table {k}", xi[1:].min(), 0.0, 0.0, ">=")


OVERLAP = (
    Claim(
        "scan_snap.weak_overlap",
        Source(PAPER, "Assumption 2", "on the data of its own Fig. 4, Syn-Small"),
        "scan_snap.reduced at its defaults, and with two random tables of three classes without a distinct token, to t = 100",
        "contexts overlap weakly: eigenvalues of E = F^T F - I are below 1/K in size, and 6 / sqrt(M) at least",
        assumed,
        "rounding",
        fails=True,
        corrected=Statement(
            "those of Syn-Small are -.722 and .722, where 1/K is .5 and 6 / sqrt(M) is 1.03, and .199964 at t = 100; xi >= 0 needs none",
            any_overlap,
            "half a unit of the last digit; rounding",
        ),
    ),
)


LENGTH, LAYERS, SEEDS = 35, 3, (0, 1, 2)


@cache
def trained() -> tuple[np.ndarray, np.ndarray]:
    """Attention to the first token over even attention's, and shares of small entries (seed, layer, head), of heads of 3 layers.

    After 1500 steps of SGD at rate 5 with clipped gradients; norms after attention and MLP.
    """
    rule = {"optimizer": "sgd", "lr": 5.0, "clip": 0.25, "norm": "post"}
    settings = {"vocabulary": 500, "length": LENGTH, "batch": 16, "layers": LAYERS} | rule
    run = odesim.train("corpus", model="transformer", settings=settings, seeds=SEEDS, steps=1500, save=2, dtype="float32")
    return run.final["attention_first"] / even(LENGTH)[0], run.final["attention_sparse"]


def sink() -> Iterable[Measurement]:
    """The first token has more than even attention gives it, in at least one head."""
    yield Measurement("most of a head to the first token, over even attention", trained()[0].max(), 1.2, 0.0, ">=")


def no_sink() -> Iterable[Measurement]:
    """It has less in the mean over heads, in no head more, and half of it in the sharper head of the lowest layer.

    Another program with three seeds has .50 to .90 in its heads. Before training heads are between .93 and 1.05: that is the noise.
    """
    first, sparse = trained()
    sharper = np.take_along_axis(first[:, 0], sparse[:, 0].argmax(axis=1)[:, None], axis=1)
    yield Measurement("mean over heads: attention to the first token, over even attention", first.mean(), 0.75, 0.05)
    yield Measurement("sharper head of the lowest layer", sharper.mean(), 0.5, 0.05)
    yield Measurement("largest of all heads", first.max(), 1.0, 0.05, "<=")


def sparse() -> Iterable[Measurement]:
    """Small entries of every head."""
    yield Measurement("least share of small entries of a head", trained()[1].min(), 0.95, 0.0, ">=")


def one_head() -> Iterable[Measurement]:
    """Small entries of the sharper head of the lowest layer, and of all others: .85 to .89, and .07 to .65, by another program.

    Of seeds 0 to 7 the sharper head has .88 to .90 in seven, and .72 in seed 2, where the other one has .60.
    """
    shares = trained()[1]
    sharper, other = shares[:, 0].max(axis=1), shares[:, 0].min(axis=1)
    yield Measurement("share of small entries, sharper head of the lowest layer, median", np.median(sharper), 0.875, 0.03)
    yield Measurement("all other heads, the largest", max(other.max(), shares[:, 1:].max()), 0.65, 0.0, "<=")
    yield Measurement("all other heads, the least", shares.min(), 0.05, 0.0, ">=")


RUN = "the task corpus, three layers, vocabulary 500, windows of 35 tokens, three seeds, 1500 steps of SGD at rate 5 with clipped gradients"
TEXT_CLAIMS = (
    Claim(
        "scan_snap.sinks_on_text",
        Source("xiao2024efficient", "attention sinks", "of far larger models; even attention as the null is ours"),
        RUN,
        "some heads give the first token much more than even attention does",
        sink,
        "none",
        fails=True,
        corrected=Statement(
            "at this size no head gives it more, the mean of all .75 of that, the sharp one half",
            no_sink,
            "half the difference between heads before training, .05; a mean of 18 heads has a standard error of .03",
        ),
        models=("scan_snap.full",),
        slow=True,
        depends=("static.heavy_hitters",),
    ),
    Claim(
        "scan_snap.sparse_on_text",
        Source("zhang2023h2o", "sparsity of attention", "entries below .01 of their row's largest, of far larger models"),
        RUN,
        "over .95 of the entries are small",
        sparse,
        "none",
        fails=True,
        corrected=Statement(
            "at this size .85 to .90 are in one head of the lowest layer in most seeds, at most .65 in every other head",
            one_head,
            "the range of seeds, ours and another program's; none for the others",
        ),
        models=("scan_snap.full",),
        slow=True,
    ),
)

"""The task next_token: attention with one query word learns which word comes next, from labels in batches.

Source: Li, Huang, Ildiz, Rawat and Oymak 2024, arXiv 2403.08081. The prediction is softmax(w) weighted by m, how often each word is in the
context; labels are drawn by their frequencies y. Words that are never a label are dropped as ln t, the hard part; among labels the
differences of w settle, the soft part. In the mean over labels a step is one of margin.next_token, in its clock ln(1 + eta i).
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from odesim.base.arrays import Array, array_namespace, on_same_device, shaped
from odesim.base.errors import ParamError
from odesim.lab.networks.measures import log_softmax
from odesim.lab.training.network import InitialLaw, Network, constant
from odesim.lab.training.optimizers import descent
from odesim.lab.training.randomness import InBlocks
from odesim.lab.training.task import Batch, Experiment, Observable, Params, ReferenceTask, Setting, Settings, pair_of

BLOCK = 1000  # steps whose labels are drawn at once


@dataclass(frozen=True, eq=False)
class Column(Network):
    """Logits w (K,) of the query's column as a Model. Its batch: often (R, K), the share of each word among the labels."""

    laws: Mapping[str, InitialLaw]
    m: Array
    y: Array

    name = "column"

    @property
    def observables(self) -> tuple[Observable, ...]:
        """Under the names of margin.next_token."""
        return (
            Observable.parameter("w", ("j",), "logits"),
            Observable("loss_population", self.population_loss, (), "loss in the mean over labels"),
            Observable("probability", lambda params: array_namespace(params["w"]).exp(self.log_p(params["w"])), ("j",), "prediction"),
        )

    def log_p(self, w: Array) -> Array:
        """ln of the prediction (R, K)."""
        return log_softmax(w + array_namespace(w).asarray(np.log(self.m), dtype=w.dtype))

    def loss_and_gradients(self, params: Params, batch: Batch) -> tuple[Array, Params]:
        """Loss (R,), the mean cross-entropy of the labels, and its gradient {w: (R, K)}."""
        often, log_p = on_same_device(params["w"], batch)["often"], self.log_p(params["w"])
        return -(often * log_p).sum(axis=1), {"w": array_namespace(log_p).exp(log_p) - often}

    def population_loss(self, params: Params) -> Array:
        """(R,)."""
        log_p = self.log_p(params["w"])
        return -(log_p * array_namespace(log_p).asarray(self.y, dtype=log_p.dtype)).sum(axis=1)


SETTINGS = (
    Setting("K", 3, "words", low=2),
    Setting("y", None, "how often each is the label (K,), of sum 1; 0, 2, 1, 1, ... over their sum", low=0.0, rank=1),
    Setting("m", None, "how often each is in the context (K,); once", low=0.0, open_low=True, rank=1),
    Setting("batch", 64, "labels of a step", low=1),
    *descent(0.05),
)


def memory(values: Settings, seeds: int, model: str) -> Mapping[str, int]:
    """{what takes memory: number of numbers} of a training: labels that are drawn at once, logits."""
    return {"the labels": (3 * seeds + 2) * BLOCK * values["K"], "the logits": 10 * seeds * values["K"]}


def make(values: Settings, seeds: tuple[int, ...], model: str, dtype: str) -> Experiment:
    """The experiment. Raises ParamError: another number of words, labels whose frequencies do not sum to 1."""
    K, batch = values["K"], values["batch"]
    default = np.minimum(np.arange(K), 1.0) + (np.arange(K) == 1)
    y, m = (shaped(name, values[name], usual, f"K={K}") for name, usual in (("y", default / default.sum()), ("m", np.ones(K))))
    if abs(y.sum() - 1) > 1e-12:
        raise ParamError(f"y has the sum {y.sum():g}: the label is some word, and its frequencies sum to 1")

    def labels(rng: Generator, r: int) -> Batch:
        return {"often": (rng.multinomial(batch, y, size=BLOCK) / batch).astype(dtype)}

    return Experiment(
        model=Column({"w": constant(np.zeros(K))}, m, y),
        stream=InBlocks(seeds, BLOCK, labels),
        steps=2000,
        exact={"y": y},
        theory={"margin.next_token": {"m": m, "y": y}},
    )


DOC = "attention with one query learns the next word from drawn labels (li2024mechanics)"
# in the time ln(1 + t) descent on w is not that of the task
PAIRS = {
    "margin.next_token": pair_of(
        "loss=loss_population", "probability", "w", step="all", linear=False, start="w", requirements={"momentum": (0,)}
    )
}
TASK = ReferenceTask("next_token", DOC, SETTINGS, make, memory, ("column",), PAIRS)

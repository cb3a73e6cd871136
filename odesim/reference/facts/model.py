"""The one-layer model on facts (source, relation, target): its decoder alone, with hand-written gradients.

With one contextual token, the source, attention is 1 whatever its logits are, and its gradient is exactly 0. So only Y is left of the
one-layer model of tian2023scan; its row of the source holds the logits of the next token. Source: zhu2024reversal, Section 4.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.random import Generator

from odesim.base.arrays import Array, array_namespace, on_same_device
from odesim.lab.training.protocols import Batch, Observable, Params


@dataclass(frozen=True, eq=False)
class Decoder:
    """The decoder as a Model. Its batch: source and target (R, B), rows and columns of Y.

    trained (2, N): the facts that are trained, source and target; held_out (2, n): those that are asked for. shape: (rows, M).
    steps (2, n): the two trained facts that lead, one after the other, to each held-out fact; None where none do.
    """

    trained: Array
    held_out: Array
    shape: tuple[int, int]
    steps: Array | None = None

    name = "decoder"
    groups = MappingProxyType({"Y": "Y"})

    @property
    def observables(self) -> tuple[Observable, ...]:
        """Means over facts, under the names of reversal.row, and Y under that of reversal.full."""
        return (
            Observable("loss_population", lambda params: self.surprise(params, self.trained).mean(axis=1), (), "mean over trained facts"),
            Observable("p_target", lambda params: self.probability(params, self.trained).mean(axis=1), (), "mean over trained facts"),
            Observable("p_least", lambda params: self.probability(params, self.trained).min(axis=1), (), "the least of a trained fact"),
            Observable("p_held_out", lambda params: self.probability(params, self.held_out).mean(axis=1), (), "mean over facts held out"),
            *(
                [Observable("p_two_steps", self.two_steps, (), "of facts held out, by two trained facts in a row: mean of their product")]
                if self.steps is not None
                else []
            ),
            Observable("p", lambda params: self.probability(params, self.trained), ("k",), "of each trained fact"),
            Observable("v", self.margin, (), "logit of the target less the mean of the others, mean over trained facts"),
            Observable("Y", lambda params: params["Y"].copy(), ("a", "m"), "decoder", costly=True),
        )

    def initial(self, rngs: Sequence[Generator], dtype: str) -> Params:
        """Y (R, rows, M): 0."""
        return {"Y": np.zeros((len(rngs), *self.shape), dtype)}

    def loss_and_gradients(self, params: Params, batch: Batch) -> tuple[Array, Params]:
        """The loss (R,), the mean of -ln p(target | source) over the batch, and its gradient {Y: (R, rows, M)}: 0 but in the rows seen."""
        Y, batch = params["Y"], on_same_device(params["Y"], batch)
        xp = array_namespace(Y)
        source, target = batch["source"], batch["target"]  # (R, B)
        r = xp.arange(len(Y))
        losses, gradient = xp.zeros(len(Y), Y.dtype), xp.zeros_like(Y)
        share = 1 / source.shape[1]
        for b in range(source.shape[1]):  # one after the other: a row may come twice
            rows = Y[r, source[:, b]]  # (R, M)
            logits = rows - rows.max(axis=1, keepdims=True)
            p = xp.exp(logits)
            total = p.sum(axis=1)
            losses += share * (xp.log(total) - logits[r, target[:, b]])
            p *= share / total[:, None]
            p[r, target[:, b]] -= share
            gradient[r, source[:, b]] += p
        return losses, {"Y": gradient}

    def surprise(self, params: Params, facts: Array) -> Array:
        """-ln p(target | source) (R, n) of facts (2, n)."""
        Y = params["Y"]
        xp = array_namespace(Y)
        source, target = xp.asarray(facts)
        rows = Y[:, source]  # (R, n, M)
        top = rows.max(axis=2)
        own = rows[:, xp.arange(len(source)), target]
        result: Array = xp.log(xp.exp(rows - top[..., None]).sum(axis=2)) + top - own
        return result

    def probability(self, params: Params, facts: Array) -> Array:
        """p(target | source) (R, n) of facts (2, n)."""
        surprise = self.surprise(params, facts)
        result: Array = array_namespace(surprise).exp(-surprise)
        return result

    def two_steps(self, params: Params) -> Array:
        """The mean (R,) over facts held out of the product of the probabilities of the two trained facts that lead to each."""
        p = self.probability(params, self.trained)
        first, second = array_namespace(p).asarray(self.steps)
        result: Array = (p[:, first] * p[:, second]).mean(axis=1)
        return result

    def margin(self, params: Params) -> Array:
        """The mean (R,) over trained facts of the target's logit less the mean of the others in its row."""
        Y = params["Y"]
        xp = array_namespace(Y)
        source, target = xp.asarray(self.trained)
        rows = Y[:, source]
        own = rows[:, xp.arange(len(source)), target]
        result: Array = ((own * self.shape[1] - rows.sum(axis=2)) / (self.shape[1] - 1)).mean(axis=1)
        return result

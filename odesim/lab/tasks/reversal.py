"""The task reversal: facts A -> B and B <- A of pairs of tokens, one a step; some pairs are trained in one direction alone.

With data=chains they are A -> B, B -> C and A ~> C of triples, some without the last, which is asked for: directly, and in two steps.
Source: zhu2024reversal, Section 4, Theorems 3 and 4; the numbers of tokens and pairs are those of its program's data,
`marlo-z/reversal_curse_analysis`, whose runs are of a GPT-2. The one-layer model on three tokens is its decoder alone: SGD with one fact
a step moves one row of Y. order=shuffled shows each fact once an epoch, so that all rows learn alike; order=replacement draws them, and
rows scatter. reversal.row follows both to first order in eta_Y,
reversal.full chains too, in which A has two targets that the model cannot tell apart: it does not see the relation.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator

from odesim.base.arrays import Array, array_namespace, on_same_device
from odesim.base.errors import ParamError
from odesim.lab.training.network import InitialLaw, Network
from odesim.lab.training.optimizers import SGD
from odesim.lab.training.randomness import InBlocks
from odesim.lab.training.task import Batch, Experiment, Observable, Params, ReferenceTask, Setting, Settings, Stream, pair_of, same_quantity

# Facts about pairs and chains of tokens, and the order in which a training sees them.


def pair_facts(pairs: int, both: int) -> tuple[Array, Array]:
    """Trained facts (2, N) and those held out (2, n), source and target: A_i -> B_i of all pairs, B_i -> A_i of the first `both`.

    A_i is token i, B_i token pairs + i.
    """
    A, B = np.arange(pairs), pairs + np.arange(pairs)
    trained = np.stack([np.r_[A, B[:both]], np.r_[B, A[:both]]])
    return trained, np.stack([B[both:], A[both:]])


def chain_facts(chains: int, whole: int) -> tuple[Array, Array, Array]:
    """Trained facts (2, N), those held out (2, n), and the two trained facts (2, n), by number, that lead to each of these.

    Trained: A_i -> B_i and B_i -> C_i of all chains, A_i ~> C_i of the first `whole`; held out: A_i ~> C_i of the others, source and
    target. A_i is token i, B_i token chains + i, C_i token 2 chains + i.
    """
    A = np.arange(chains)
    B, C = A + chains, A + 2 * chains
    trained = np.stack([np.r_[A, B, A[:whole]], np.r_[B, C, C[:whole]]])
    return trained, np.stack([A[whole:], C[whole:]]), np.stack([A[whole:], B[whole:]])


def fact_stream(facts: Array, seeds: Sequence[int], *, shuffled: bool) -> Stream:
    """The Stream {"source": (R, 1), "target": (R, 1)}: one of facts (2, N) an iteration, with replacement, or each epoch in a new order."""
    count = facts.shape[1]

    def epoch(rng: Generator, _: int) -> Batch:
        source, target = facts[:, rng.permutation(count) if shuffled else rng.integers(count, size=count), None]
        return {"source": source, "target": target}

    return InBlocks(seeds, count, epoch)


# The one-layer model on facts (source, relation, target): its decoder alone, with hand-written gradients.
#
# With one contextual token, the source, attention is 1 whatever its logits are, and its gradient is exactly 0. So only Y is left of the
# one-layer model of tian2023scan; its row of the source holds the logits of the next token. Source: zhu2024reversal, Section 4.


@dataclass(frozen=True, eq=False)
class Decoder(Network):
    """The decoder as a Model. Its batch: source and target (R, B), rows and columns of Y.

    trained (2, N): the facts that are trained, source and target; held_out (2, n): those that are asked for. shape: (rows, M).
    steps (2, n): the two trained facts that lead, one after the other, to each held-out fact; None where none do.
    """

    trained: Array
    held_out: Array
    shape: tuple[int, int]
    steps: Array | None = None

    name, group = "decoder", "Y"

    @property
    def laws(self) -> Mapping[str, InitialLaw]:
        """Y (rows, M): 0."""
        return {"Y": InitialLaw(self.shape, "constant", 0.0)}

    @property
    def observables(self) -> tuple[Observable, ...]:
        """Means over facts, under the names of reversal.row, and Y under that of reversal.full."""
        mean = "mean over trained facts"
        two_steps = Observable("p_two_steps", self.two_steps, (), "of facts held out, by two trained facts in a row: mean of their product")
        return (
            Observable("loss_population", lambda p: self.surprise(p, self.trained).mean(axis=1), (), mean),
            Observable("p_target", lambda p: self.probability(p, self.trained).mean(axis=1), (), mean),
            Observable("p_least", lambda p: self.probability(p, self.trained).min(axis=1), (), "the least of a trained fact"),
            Observable("p_held_out", lambda p: self.probability(p, self.held_out).mean(axis=1), (), "mean over facts held out"),
            *([] if self.steps is None else [two_steps]),
            Observable("p", lambda p: self.probability(p, self.trained), ("k",), "of each trained fact"),
            Observable("v", self.margin, (), f"logit of the target less the mean of the others, {mean}"),
            Observable.parameter("Y", ("a", "m"), "decoder", costly=True),
        )

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

    def rows_of(self, params: Params, facts: Array) -> tuple[Array, Array]:
        """The rows of Y (R, n, M) of facts (2, n), and in each the logit of the target (R, n)."""
        xp = array_namespace(params["Y"])
        source, target = xp.asarray(facts)
        # Y[:, source] would lie in memory by facts where there are several seeds, and sums over facts would round in another order
        rows = params["Y"].take(source, axis=1)
        return rows, xp.take_along_axis(rows, target[None, :, None], axis=2)[..., 0]

    def surprise(self, params: Params, facts: Array) -> Array:
        """-ln p(target | source) (R, n) of facts (2, n)."""
        rows, target_logits = self.rows_of(params, facts)
        xp, top = array_namespace(rows), rows.max(axis=2)
        return xp.log(xp.exp(rows - top[..., None]).sum(axis=2)) + top - target_logits

    def probability(self, params: Params, facts: Array) -> Array:
        """p(target | source) (R, n) of facts (2, n)."""
        surprise = self.surprise(params, facts)
        return array_namespace(surprise).exp(-surprise)

    def two_steps(self, params: Params) -> Array:
        """The mean (R,) over facts held out of the product of the probabilities of the two trained facts that lead to each."""
        p = self.probability(params, self.trained)
        first, second = array_namespace(p).asarray(self.steps)
        return (p.take(first, axis=1) * p.take(second, axis=1)).mean(axis=1)

    def margin(self, params: Params) -> Array:
        """The mean (R,) over trained facts of the target's logit less the mean of the others in its row."""
        rows, target_logits = self.rows_of(params, self.trained)
        return ((target_logits * self.shape[1] - rows.sum(axis=2)) / (self.shape[1] - 1)).mean(axis=1)


ORDERS = ("shuffled", "replacement")
MEAN = "mean over trained facts beside that of one row"
EPOCHS = 100  # of a training by default
DATA = {"reversals": 2, "chains": 3}  # tokens of an entry, and as many relations: -> and <-, or ->, -> and ~>


SETTINGS = (
    Setting("data", "reversals", "facts of pairs, A -> B and B <- A, or of chains, A -> B, B -> C and A ~> C", choices=tuple(DATA)),
    Setting("pairs", 200, "pairs of tokens, or chains", low=1),
    Setting("both", 0.7, "share of the pairs that are trained in both directions, or of the chains with A ~> C", low=0.0, high=1.0),
    Setting("vocabulary", 802, "tokens: two a pair and two relations, or three a chain and three relations, and others", low=4),
    Setting("order", "shuffled", "each fact once an epoch, or drawn with replacement", choices=ORDERS),
    Setting("eta_Y", 0.5, "learning rate", low=0.0),
    *SGD,
)


def memory(values: Settings, seeds: int, model: str) -> Mapping[str, int]:
    """{what takes memory: number of numbers} of a training: Y with its gradient, rows of all facts."""
    pairs, M = values["pairs"], values["vocabulary"]
    return {
        "the decoder and its gradient": seeds * 2 * pairs * M * 4,
        "the rows of all facts": seeds * DATA[values["data"]] * pairs * M * 3,
    }


def make(values: Settings, seeds: tuple[int, ...], model: str, dtype: str) -> Experiment:
    """The experiment. Raises ParamError: a vocabulary without room for the pairs, or no pair held out."""
    pairs, M = values["pairs"], values["vocabulary"]
    parts, chained = DATA[values["data"]], values["data"] == "chains"
    if parts * (pairs + 1) > M:
        raise ParamError(f"vocabulary must be at least {parts} pairs + {parts} = {parts * (pairs + 1)}, not {M}")
    both = round(values["both"] * pairs)
    if both == pairs:
        left = "chains leaves none without A ~> C" if chained else "pairs leaves none that is trained in one direction alone"
        raise ParamError(f"both={values['both']:g} of {pairs} {left}")
    trained, held_out, *steps = chain_facts(pairs, both) if chained else pair_facts(pairs, both)
    N = trained.shape[1]
    theory: dict[str, dict[str, Any]] = {"reversal.full": {"x1": trained[0], "x3": trained[1], "eta_Y": values["eta_Y"]}}
    if not chained:  # every row has one target
        theory["reversal.row"] = {"M": M, "N": N, "eta_Y": values["eta_Y"]}
    return Experiment(
        model=Decoder(trained, held_out, (2 * pairs, M), *steps),
        stream=fact_stream(trained, seeds, shuffled=values["order"] == "shuffled"),
        steps=EPOCHS * N,
        exact={"trained": trained, "held_out": held_out},
        theory=theory,
    )


DOC = "facts about pairs of tokens, some trained in one direction alone, or about chains (zhu2024reversal)"
PAIRS = {
    "reversal.row": pair_of(
        *(same_quantity("loss", "loss_population", MEAN), same_quantity("p_target", doc=MEAN), same_quantity("v", doc=MEAN)),
        linear=False,  # a step of descent moves one row, by N times the mean
        requirements={"data": ("reversals",), "momentum": (0,)},
    ),
    "reversal.full": pair_of("loss=loss_population", "p", "Y", linear=False, start="Y", requirements={"momentum": (0,)}),
}
TASK = ReferenceTask("reversal", DOC, SETTINGS, make, memory, ("decoder",), PAIRS)

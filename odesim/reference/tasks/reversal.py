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

from odesim.base.arrays import check_dtype
from odesim.base.errors import ParamError, no_such
from odesim.reference.data.facts import FactStream, chain_facts, pair_facts
from odesim.reference.facts.model import Decoder
from odesim.reference.protocols import Experiment, Optimizer, Setting
from odesim.reference.training.optimizers import OPTIMIZERS

ORDERS = ("shuffled", "replacement")
EPOCHS = 100  # of a training by default
DATA = {"reversals": 2, "chains": 3}  # tokens of an entry, and as many relations: -> and <-, or ->, -> and ~>


@dataclass(frozen=True)
class ReversalTask:
    """The task reversal: facts and their reversals."""

    name: str = "reversal"
    doc: str = "facts about pairs of tokens, some trained in one direction alone, or about chains (zhu2024reversal)"
    models: tuple[str, ...] = ("decoder",)
    settings: tuple[Setting, ...] = (
        Setting("data", "reversals", "facts of pairs, A -> B and B <- A, or of chains, A -> B, B -> C and A ~> C", choices=tuple(DATA)),
        Setting("pairs", 200, "pairs of tokens, or chains", low=1),
        Setting("both", 0.7, "share of the pairs that are trained in both directions, or of the chains with A ~> C", low=0.0, high=1.0),
        Setting("vocabulary", 802, "tokens: two a pair and two relations, or three a chain and three relations, and others", low=4),
        Setting("order", "shuffled", "each fact once an epoch, or drawn with replacement", choices=ORDERS),
        Setting("eta_Y", 0.5, "learning rate", low=0.0),
        Setting("optimizer", "sgd", "how it descends", choices=OPTIMIZERS),
        Setting("momentum", 0.0, "of sgd", low=0.0, high=1.0),
    )

    def memory(self, values: Mapping[str, Any], seeds: int, model: str | None = None) -> Mapping[str, int]:
        """{what takes memory: number of numbers} of a training: Y with its gradient, rows of all facts."""
        pairs, M = values["pairs"], values["vocabulary"]
        return {
            "the decoder and its gradient": seeds * 2 * pairs * M * 4,
            "the rows of all facts": seeds * DATA[values["data"]] * pairs * M * 3,
        }

    def make(self, values: Mapping[str, Any], *, seeds: Sequence[int], model: str | None = None, dtype: str = "float64") -> Experiment:
        """The experiment. Raises ParamError: a vocabulary without room for the pairs, or no pair held out."""
        if model not in (None, *self.models):
            raise ParamError(no_such("model", str(model), self.models, self.name))
        check_dtype(dtype)
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
        described = values["optimizer"] == "sgd" and values["momentum"] == 0
        theory: dict[str, dict[str, Any]] = {"reversal.full": {"x1": trained[0], "x3": trained[1], "eta_Y": values["eta_Y"]}}
        if not chained:  # every row has one target
            theory["reversal.row"] = {"M": M, "N": N, "eta_Y": values["eta_Y"]}
        return Experiment(
            task=self.name,
            config=dict(values),
            seeds=tuple(seeds),
            model=Decoder(trained, held_out, (2 * pairs, M), *steps),
            stream=FactStream(trained, seeds, shuffled=values["order"] == "shuffled"),
            optimizer=Optimizer(values["optimizer"], {"Y": values["eta_Y"]}, momentum=values["momentum"]),
            steps=EPOCHS * N,
            vocabulary=M,
            exact={"trained": trained, "held_out": held_out},
            theory=theory if described else {},
        )


TASK = ReversalTask()

"""The task topics: masked words of documents of a few topics, predicted by one layer of attention.

Source: Li, Li and Risteski 2023, arXiv 2303.04245, and the program YuchenLi01/transformer_topic_model_LDA. Words of T topics of v words
each; a document has tau of them (mixture=sets), or proportions of Dirichlet's law (mixture=dirichlet, the paper's alpha is .1). A word is
masked with probability p_m: then itself (p_c), any word (p_r), or the mask is shown, and the layer predicts it. The paper's experiment:
T=10 v=10 p_c=.1 mixture=dirichlet documents=10000 masks=once keys=unmasked loss=cross_entropy optimizer=adamw lr=.01.

contexts=infinite: documents without end and the exact gradient, of which optimizer=sgd is topics.full in steps. In documents of N words
a masked place is 1/N of its own context, so that values copy the shown word a little already in the first stage; keys=unmasked removes it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import comb
from typing import Any

import numpy as np

from odesim.base.arrays import check_dtype
from odesim.base.errors import ParamError, no_such
from odesim.reference.data.topic_documents import KEYS, MASKS, MIXTURES, Laws, Reading, TopicBatches, stacked
from odesim.reference.protocols import Batch, Experiment, Optimizer, Setting
from odesim.reference.topics.model import INITS, LOSSES, PAIRS, TopicAttention
from odesim.reference.training.optimizers import OPTIMIZERS


@dataclass(frozen=True)
class Topics:
    """The task topics: the masked words of documents."""

    name: str = "topics"
    doc: str = "masked words of documents of a few topics, by one layer of attention (li2023topic)"
    models: tuple[str, ...] = ("attention",)
    settings: tuple[Setting, ...] = (
        Setting("T", 4, "topics", low=1),
        Setting("v", 3, "words of a topic", low=1),
        Setting("tau", 2, "topics of a document, with mixture=sets", low=1),
        Setting("p_m", 0.15, "probability that a word is masked", low=0.0, high=1.0, open_low=True),
        Setting("p_c", 0.3, "that a masked word is shown itself", low=0.0, high=1.0),
        Setting("p_r", 0.1, "that any word is shown in its place", low=0.0, high=1.0),
        Setting("mixture", "sets", "tau topics alike, or proportions of Dirichlet's law", choices=MIXTURES),
        Setting("alpha", 0.1, "of Dirichlet's law", low=0.0, open_low=True),
        Setting("contexts", "finite", "documents that are drawn, or without end", choices=("finite", "infinite")),
        Setting("shortest", 100, "words of a document, at least", low=1),
        Setting("longest", 150, "at most", low=1),
        Setting("documents", 0, "documents drawn once; 0: new ones in every iteration", low=0),
        Setting("masks", "new", "of those documents: new ones whenever they are read, or drawn once", choices=MASKS),
        Setting("batch", 40, "documents of an iteration", low=1),
        Setting("keys", "all", "what attention sees: all places, or those that are not masked", choices=KEYS),
        Setting("loss", "squared", "of the output, or cross-entropy", choices=LOSSES),
        Setting("init", "normal", "of the matrices: normal, or alike for alike words", choices=INITS),
        Setting("init_V", 1e-3, "deviation of W_V at the start, or its size", low=0.0),
        Setting("init_KQ", 1e-3, "of W_K and W_Q", low=0.0),
        Setting("optimizer", "sgd", "how it descends", choices=OPTIMIZERS),
        Setting("lr", 1.0, "learning rate", low=0.0),
        Setting("momentum", 0.0, "of sgd", low=0.0, high=1.0),
    )

    def memory(self, values: Mapping[str, Any], seeds: int, model: str | None = None) -> Mapping[str, int]:
        """{what takes memory: number of numbers} of a training: matrices with gradients, documents, the rows of a batch."""
        T, tau, longest, batch = (values[name] for name in ("T", "tau", "longest", "batch"))
        d, endless = T * values["v"] + 1, values["contexts"] == "infinite"
        sets = comb(T, min(tau, T)) if values["mixture"] == "sets" else 0
        # words, what is shown, masks; those of the seed that is drawn are there twice
        drawn = longest * (values["documents"] * (seeds + 2) + batch * (5 * seeds + 6) // 2)
        rows = batch * min(values["tau"] * values["v"] + 1, d, longest) * d  # of the different words of a document
        return {
            "the matrices and their gradients": seeds * 12 * d * d,
            "the documents": 0 if endless else drawn,
            "the rows of a batch": 0 if endless else rows * (5 * seeds + 3) // 5,
            "the laws of the sets of topics": (12 if endless else 10) * sets * d * d,
        }

    def make(self, values: Mapping[str, Any], *, seeds: Sequence[int], model: str | None = None, dtype: str = "float64") -> Experiment:
        """The experiment. Raises ParamError for settings that do not fit together."""
        if model not in (None, *self.models):
            raise ParamError(no_such("model", str(model), self.models, self.name))
        check_dtype(dtype)
        check_together(values)
        laws = Laws(*(values[name] for name in ("T", "v", "tau", "p_m", "p_c", "p_r", "mixture", "alpha")))
        network = TopicAttention(laws, values["loss"], values["init"], values["init_V"], values["init_KQ"])
        described = (values["mixture"], values["loss"], values["keys"]) == ("sets", "squared", "all")
        numbers = {name: values[name] for name in ("T", "tau", "p_m", "p_c", "p_r")}
        theory: dict[str, Mapping[str, Any]] = {"topics.full": {**numbers, "P": laws.documents()}} if described else {}
        if described and values["init"] == "symmetric":
            theory["topics.reduced"] = {**numbers, "v": values["v"]}
        return Experiment(
            task=self.name,
            config=dict(values),
            seeds=tuple(seeds),
            model=network,
            stream=stream_of(values, laws, seeds),
            optimizer=Optimizer(values["optimizer"], {"W": values["lr"]}, momentum=values["momentum"]),
            steps=2500,
            vocabulary=laws.d,
            exact={"P": laws.documents()} if values["mixture"] == "sets" else {},
            theory=theory,
            labels={"pair": PAIRS},
        )


def check_together(values: Mapping[str, Any]) -> None:
    """Raises ParamError for settings that do not fit together."""
    T, v, tau = values["T"], values["v"], values["tau"]
    if values["mixture"] == "sets" and tau > T:
        raise ParamError(f"tau = {tau} topics of a document are more than there are, T = {T}")
    if values["p_c"] + values["p_r"] > 1:
        raise ParamError(f"p_c + p_r must be at most 1, not {values['p_c'] + values['p_r']:g}: the rest is shown as the mask")
    if values["shortest"] > values["longest"]:
        raise ParamError(f"shortest = {values['shortest']} is above longest = {values['longest']}")
    if values["init"] == "symmetric" and min(T, v) < 2:
        raise ParamError(f"init=symmetric needs at least two topics of at least two words, not T = {T} and v = {v}")
    if values["masks"] == "once" and not values["documents"]:
        raise ParamError("masks=once needs documents that are drawn once: documents=N")
    if values["contexts"] == "infinite":
        for name, right in (("mixture", "sets"), ("keys", "all"), ("documents", 0)):
            if values[name] != right:
                raise ParamError(f"contexts=infinite needs {name}={right}, not {values[name]}")


def stream_of(values: Mapping[str, Any], laws: Laws, seeds: Sequence[int]) -> Any:
    """The Stream of these settings: drawn documents, or the same rows of all sets of topics in every iteration."""
    if values["contexts"] == "infinite":
        one = stacked([laws.population()])
        same: Batch = {name: np.broadcast_to(a, (len(seeds), *a.shape[1:])) for name, a in one.items()}
        return lambda iteration: same
    names = ("shortest", "longest", "batch", "documents", "masks", "keys")
    return TopicBatches(seeds, laws, Reading(**{name: values[name] for name in names}))


TASK = Topics()

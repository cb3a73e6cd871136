"""The task hierarchy_dag: classes of shared latents of tokens (Table 1 of tian2023joma), read by a transformer.

Source: `ssl/real-dataset/decoder_only_hier.py` of luckmatters, settings of its README for the table; draw_table_1.py keeps lr = 1e-4,
where the README says 1e-5. As there: the hierarchy of a seed (Python's random), the label alone is random, a class has one set of
tokens, pads before it, no positions, the class is read at the last token. Choices of ours: tokens stand in ascending order, and
labels and initial parameters come from numpy's generators. With rng=official the order is that of a CPython set, and start and labels
are the original's, so that a seed is its run of that seed, up to the rounding of its float32.

The gradient is that of the batch, from every class once: weighted by how often its label was drawn, its pads merged into one key
that counts as many; attention_entropy is over the positions of these short sequences. NCorr[s] is the correlation of a latent of
layer s with its best MLP node of block s, the largest activation over all positions, averaged over the latents that occur in the
test labels. Untrained networks reach most of the published NCorr, for s = 0 all of it: training adds what comes after iteration 0.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from odesim.base.arrays import Array, array_namespace, check_dtype
from odesim.base.errors import ParamError, no_such
from odesim.reference.data.dag import Dag, draw_dag
from odesim.reference.data.dag_labels import BLOCK, EveryClass, LabelCounts, NumpyLabels
from odesim.reference.data.dag_official import STEPS, OfficialLabels, official_start, official_tokens
from odesim.reference.data.latents import mean_best_correlation
from odesim.reference.protocols import Batch, Experiment, Observable, Optimizer, Params, Setting
from odesim.reference.training.randomness import RNGS
from odesim.reference.transformer.architecture import Architecture
from odesim.reference.transformer.memory import transformer_memory
from odesim.reference.transformer.model import Transformer


def correlation(model: Transformer, test: Batch, latents: Sequence[Array]) -> Observable:
    """The observable NCorr (R, S): correlations of layer s of latents (R, C, n_s) with nodes of block s, s < S."""

    def ncorr(params: Params) -> Array:
        hidden = model.forward(params, test).hidden  # (R, C, T, mlp) each
        values = [mean_best_correlation(y, h.max(axis=2), test["weight"]) for y, h in zip(latents, hidden, strict=False)]
        return array_namespace(hidden[0]).stack(values, axis=1)

    return Observable("NCorr", ncorr, ("layer_of_latents",), "correlation of a latent with its best MLP node, mean over latents")


@dataclass(frozen=True)
class HierarchyDag:
    """The task hierarchy_dag: classes made of shared latents."""

    name: str = "hierarchy_dag"
    doc: str = "classes made of shared latents made of tokens (tian2023joma, Table 1)"
    models: tuple[str, ...] = ("transformer",)
    settings: tuple[Setting, ...] = (
        Setting("num_classes", 20, "classes, each a set of upper latents", low=1),
        Setting("num_children", 2, "members of every set", low=1),
        Setting("n0", 10, "lower latents, sets of tokens", low=1),
        Setting("n1", 20, "upper latents, sets of lower ones", low=1),
        Setting("vocabulary", 100, "tokens, the last of which pads", low=2),
        Setting("length", 30, "tokens of a sequence", low=1),
        Setting("batch", 128, "labels of a batch", low=1),
        Setting("width", 256, "of the embeddings; the original has 1024", low=1),
        Setting("layers", 3, "blocks", low=1),
        Setting("mlp", 400, "nodes of the MLP of a block", low=1),
        Setting("optimizer", "adam", "how it descends", choices=("adam", "adamw", "sgd")),
        Setting("lr", 1e-4, "learning rate", low=0.0),
        Setting("weight_decay", 1e-4, "of adam and sgd: added to the gradient", low=0.0),
        Setting("rng", "numpy", "random numbers: numpy's, or of the paper's code, whose runs a seed then replays", choices=RNGS),
    )

    def memory(self, values: Mapping[str, Any], seeds: int, model: str | None = None) -> Mapping[str, int]:
        """{what takes memory: number of numbers} of a training: hierarchies, labels, parameters, a step on all classes."""
        C, vocabulary = values["num_classes"], values["vocabulary"]
        short = min(values["length"], 1 + min(values["num_children"] ** 3, vocabulary - 1))
        sizes = {name: values[name] for name in ("width", "layers", "mlp")}
        transformer_numbers = transformer_memory(Architecture(vocabulary, outputs=C, **sizes), seeds=seeds, batch=C, length=short)
        nodes = values["n0"] + values["n1"] + C
        hierarchy = nodes * (values["num_children"] + 20) + (C + values["n0"]) * vocabulary
        return {**transformer_numbers, "the hierarchies": seeds * hierarchy, "the labels": seeds * C * BLOCK}

    def make(self, values: Mapping[str, Any], *, seeds: Sequence[int], model: str | None = None, dtype: str = "float64") -> Experiment:
        """The experiment. Raises ParamError: more latents than distinct sets, sequences too short for a class."""
        if model not in (None, *self.models):
            raise ParamError(no_such("model", str(model), self.models, self.name))
        check_dtype(dtype)
        dags = [self.dag(values, seed) for seed in seeds]
        length, vocabulary = values["length"], values["vocabulary"]
        network = Transformer(
            vocabulary=vocabulary,
            outputs=values["num_classes"],
            norm="post",
            activation="relu",
            projection=False,
            biases=("mlp", "head"),
            **{name: values[name] for name in ("width", "layers", "mlp")},
        )
        official = values["rng"] == "official"
        # the same length for all seeds, so that the order of a seed's sums does not depend on other seeds
        short = min(length, 1 + min(values["num_children"] ** 3, vocabulary - 1))
        merged = [dag.merge_pads(length, short, official_tokens(dag) if official else dag.ascending) for dag in dags]
        labels: LabelCounts = (
            OfficialLabels(seeds, network, values["batch"]) if official else NumpyLabels(seeds, network.classes, values["batch"])
        )
        stream = EveryClass(np.stack([m[0] for m in merged]), np.stack([m[1] for m in merged]).astype(dtype), labels)
        latents = [np.stack([dag.active[s] for dag in dags]) for s in range(2)]  # (R, C, n0), (R, C, n1)
        test = stream.test()
        rates = dict.fromkeys(sorted(set(network.groups.values())), values["lr"])
        return Experiment(
            task=self.name,
            config=dict(values),
            seeds=tuple(seeds),
            model=replace(network, watch=test, extra=(correlation(network, test, latents),)),
            stream=stream,
            optimizer=Optimizer(values["optimizer"], rates, weight_decay=values["weight_decay"]),
            steps=STEPS,
            start=partial(official_start, tuple(seeds), network) if official else None,
            vocabulary=vocabulary,
            exact={
                "latents0": latents[0],
                "latents1": latents[1],
                "present": np.stack([dag.present for dag in dags]),
                "loss_floor": np.array([dag.loss_floor for dag in dags]),
            },
        )

    def dag(self, values: Mapping[str, Any], seed: int) -> Dag:
        """The hierarchy of a seed. Raises ParamError if it does not exist or a class has more tokens than a sequence."""
        sizes = {name: values[name] for name in ("n0", "n1", "num_classes")}
        dag = draw_dag(seed, sizes, values["num_children"], values["vocabulary"])
        most = int(dag.present.sum(axis=1).max())
        if most > values["length"]:
            raise ParamError(f"length must be at least {most}, the tokens of one of the classes of seed {seed}, not {values['length']}")
        return dag


TASK = HierarchyDag()

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

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import comb, prod
from random import Random
from typing import Any

import numpy as np
from numpy.random import Generator

from odesim.base.arrays import Array
from odesim.base.errors import ParamError, counted
from odesim.lab.networks.measures import by_layer
from odesim.lab.networks.sequences import network_of
from odesim.lab.networks.transformer import Transformer
from odesim.lab.training.optimizers import ADAM
from odesim.lab.training.randomness import OFFICIAL_SHIFT, RNGS, TESTS, InBlocks, InOrder, TorchGenerator, generators, normal_outputs
from odesim.lab.training.task import Batch, Experiment, Observable, Params, ReferenceTask, Setting, Settings, Stream

# A hierarchy of latent variables with shared children: each node is a set of nodes of the layer below, or of tokens.


@dataclass(frozen=True, eq=False)
class Dag:
    """A hierarchy. children: an array (n_s, N) for each layer, from the lowest up, with distinct sets as rows; the last layer is classes.

    vocabulary: number of tokens; the last one is the pad and no child.
    """

    children: tuple[Array, ...]
    vocabulary: int

    @cached_property
    def active(self) -> tuple[Array, ...]:
        """Whether each class contains a node: (C, n_s) for each layer, from the lowest up."""
        layers = [np.eye(len(self.children[-1]), dtype=bool)]
        for children, below in zip(self.children[:0:-1], self.children[-2::-1], strict=True):
            layers.append(_nodes_below(layers[-1], children, len(below)))
        return tuple(reversed(layers))

    @cached_property
    def present(self) -> Array:
        """Whether each class contains a token: (C, vocabulary). A sequence depends on its class alone."""
        return _nodes_below(self.active[0], self.children[0], self.vocabulary)

    @property
    def loss_floor(self) -> float:
        """The least mean cross entropy of the class, above 0 if classes have the same set of tokens."""
        _, sizes = np.unique(self.present, axis=0, return_counts=True)
        return float(np.sum(sizes * np.log(sizes)) / np.sum(sizes))

    @property
    def ascending(self) -> list[list[int]]:
        """The tokens of each class in ascending order."""
        return [np.flatnonzero(present).tolist() for present in self.present]

    def sequences(self, length: int, tokens: Sequence[Sequence[int]]) -> Array:
        """Sequences (C, length) of the classes: their tokens, in the order given, after pads."""
        sequences = np.full((len(self.present), length), self.vocabulary - 1)
        for row, chosen in zip(sequences, tokens, strict=True):
            row[length - len(chosen) :] = chosen
        return sequences


def draw_dag(seed: int, sizes: Mapping[str, int], num_children: int, vocabulary: int) -> Dag:
    """The random hierarchy of a seed, as the published generator draws it. sizes {name: nodes}: layers from the lowest up.

    Each node is the first num_children of the layer below after a random.shuffle, repeated while the set exists already.
    Raises ParamError if a layer has more nodes than there are sets.
    """
    below, of = vocabulary - 1, f"{counted(vocabulary - 1, 'token')} (the last one of the vocabulary pads)"
    for name, size in sizes.items():
        most = comb(below, num_children)
        if size > most:
            raise ParamError(f"{name} must be at most {most}, the sets of {num_children} out of {of}, not {size}")
        below, of = size, f"{name}={size} latents"
    shuffle = Random(seed).shuffle
    below, layers = vocabulary - 1, []
    for size in sizes.values():
        indices, sets = list(range(below)), dict[tuple[int, ...], None]()
        while len(sets) < size:
            shuffle(indices)
            sets[tuple(sorted(indices[:num_children]))] = None
        layers.append(np.array(list(sets)))
        below = size
    return Dag(tuple(layers), vocabulary)


def _nodes_below(active: Array, children: Array, size: int) -> Array:
    """Whether nodes of the layer below are children of an active node: (C, size), from active (C, n) and children (n, N)."""
    members = np.zeros((len(children), size), int)
    members[np.arange(len(children))[:, None], children] = 1
    return active.astype(int) @ members > 0


BLOCK = 64  # iterations whose labels are drawn at once
TEST_LABELS = 1280


def numpy_labels(seeds: Sequence[int], classes: int, batch: int) -> tuple[Stream, Array]:
    """A Stream of how often each class was drawn, {"weight": (R, C)}, and such counts (R, C) of the test labels, by numpy's generators."""

    def draw(rng: Generator, labels: int, times: int) -> Batch:
        return {"weight": rng.multinomial(labels, np.full(classes, 1 / classes), times)}

    tests = np.stack([draw(rng, TEST_LABELS, 1)["weight"][0] for rng in generators(seeds, TESTS)])
    return InBlocks(seeds, BLOCK, lambda rng, _: draw(rng, batch, BLOCK)), tests


# Sequences, start and labels of the published runs of Table 1 of tian2023joma, number for number, from the seeds of its code.
#
# Source: facebookresearch/luckmatters, `ssl/real-dataset/decoder_only_hier.py`, and `set_all_seeds` of `ssl/common_utils/helper.py`: a
# run with seed s draws its hierarchy by Python's generator with seed s; torch's, with seed s + 2, draws the start and then the labels.

STEPS = 10000  # batches before the test labels
OF_A_BLOCK = ("key", "query", "value", "up", "up_bias", "down", "down_bias")


def official_tokens(dag: Dag) -> list[list[int]]:
    """The tokens of each class in the order of a CPython set, which follows from how it was filled."""
    layers = [children.tolist() for children in dag.children]
    result = []
    for label in range(len(layers[-1])):
        nodes = {label}
        for sets in reversed(layers):
            nodes = set().union(*[sets[k] for k in nodes])
        result.append(list(nodes))
    return result


def drawn_names(design: Transformer) -> list[str]:
    """The parameters that torch draws, in the order in which the network's parts are made."""
    return ["embedding", "head", "head_bias", *(f"layer{i}.{name}" for i in range(design.layers) for name in OF_A_BLOCK)]


def draw_start(torch: TorchGenerator, design: Transformer) -> Iterator[tuple[str, Array]]:
    """(name, values) of the parameters that are drawn: a table of N(0, 1), layers uniform, torch's rows being their outputs."""
    laws = design.laws
    for name in drawn_names(design):
        law = laws[name]
        yield name, torch.normal(law.shape) if law.law == "normal" else torch.uniform(-law.value, law.value, law.shape[::-1]).T


def start_outputs(design: Transformer) -> int:
    """How many of torch's 32-bit outputs draw_start takes."""
    laws = [design.laws[name] for name in drawn_names(design)]
    return sum(normal_outputs(prod(law.shape)) if law.law == "normal" else prod(law.shape) for law in laws)


def official_start(seeds: Sequence[int], design: Transformer, dtype: str) -> Params:
    """The parameters {name: (R, ...)} of the published runs before the first update."""
    params = {name: np.full((len(seeds), *law.shape), law.value, dtype) for name, law in design.laws.items()}
    for r, seed in enumerate(seeds):
        for name, values in draw_start(TorchGenerator(seed + OFFICIAL_SHIFT), design):
            params[name][r] = values
    return params


def official_labels(seeds: Sequence[int], design: Transformer, batch: int) -> tuple[Stream, Array]:
    """As numpy_labels, by torch's generator after the start. Test labels come after STEPS batches, as the published runs end."""
    C, drawn_before = design.classes, start_outputs(design)

    def begin(seed: int, batches: int = 0) -> TorchGenerator:
        torch = TorchGenerator(seed + OFFICIAL_SHIFT)
        torch.skip(drawn_before + batches * batch)
        return torch

    def draw(torch: TorchGenerator, labels: int = batch) -> Batch:
        return {"weight": np.bincount(torch.randint(C, (labels,)), minlength=C)}

    tests = np.stack([draw(begin(seed, STEPS), TEST_LABELS)["weight"] for seed in seeds])
    return InOrder(seeds, begin, lambda torch, batches: torch.skip(batches * batch), draw), tests


def correlation(model: Transformer, test: Batch, latents: Sequence[Array]) -> Observable:
    """The observable NCorr (R, S): correlations of layer s of latents (R, C, n_s) with nodes of block s, s < S."""

    def ncorr(params: Params) -> Array:
        hidden = model.forward(params, test).hidden  # (R, C, T, mlp) each
        return by_layer(latents, [h.max(axis=2) for h in hidden], test["weight"])

    return Observable("NCorr", ncorr, ("layer_of_latents",), "correlation of a latent with its best MLP node, mean over latents")


SETS = (
    Setting("num_classes", 20, "classes, each a set of upper latents", low=1),
    Setting("num_children", 2, "members of every set", low=1),
    Setting("n0", 10, "lower latents, sets of tokens", low=1),
    Setting("n1", 20, "upper latents, sets of lower ones", low=1),
)
SETTINGS = (
    *SETS,
    Setting("vocabulary", 100, "tokens, the last of which pads", low=2),
    Setting("length", 30, "tokens of a sequence", low=1),
    Setting("batch", 128, "labels of a batch", low=1),
    Setting("width", 256, "of the embeddings; the original has 1024", low=1),
    Setting("layers", 3, "blocks", low=1),
    Setting("mlp", 400, "nodes of the MLP of a block", low=1),
    ADAM,
    Setting("lr", 1e-4, "learning rate", low=0.0),
    Setting("weight_decay", 1e-4, "of adam and sgd: added to the gradient", low=0.0),
    Setting("rng", "numpy", "random numbers: numpy's, or of the paper's code, whose runs a seed then replays", choices=RNGS),
)


def network(values: Settings) -> Transformer:
    """The transformer of the published program."""
    plain = {"norm": "post", "activation": "relu", "projection": False, "biases": ("mlp", "head")}
    return network_of(values, values["vocabulary"], outputs=values["num_classes"], **plain)


def short_length(values: Settings) -> int:
    """Tokens of a sequence whose pads are merged: the same for all seeds, so that the order of a seed's sums does not depend on others."""
    return min(values["length"], 1 + min(values["num_children"] ** 3, values["vocabulary"] - 1))


def memory(values: Settings, seeds: int, model: str) -> Mapping[str, int]:
    """{what takes memory: number of numbers} of a training: hierarchies, labels, parameters, a step on all classes."""
    C, nodes = values["num_classes"], values["n0"] + values["n1"] + values["num_classes"]
    hierarchy = nodes * (values["num_children"] + 20) + (C + values["n0"]) * values["vocabulary"]
    transformer_numbers = network(values).memory(seeds=seeds, batch=C, length=short_length(values))
    return {**transformer_numbers, "the hierarchies": seeds * hierarchy, "the labels": seeds * C * BLOCK}


def make(values: Settings, seeds: tuple[int, ...], model: str, dtype: str) -> Experiment:
    """The experiment. Raises ParamError: more latents than distinct sets, sequences too short for a class."""
    dags, transformer = [dag_of_seed(values, seed) for seed in seeds], network(values)
    official, short = values["rng"] == "official", short_length(values)
    tokens = np.stack([dag.sequences(short, official_tokens(dag) if official else dag.ascending) for dag in dags])
    # pads attend only pads, so without positions they are equal in every layer, and the first one counts for all of them
    log_weight = np.zeros(tokens.shape, dtype)
    log_weight[..., 0] = np.log(values["length"] - short + 1)
    classes = {"tokens": tokens, "targets": np.tile(np.arange(tokens.shape[1]), (len(seeds), 1)), "log_weight": log_weight}
    labels, tests = (
        official_labels(seeds, transformer, values["batch"]) if official else numpy_labels(seeds, transformer.classes, values["batch"])
    )
    latents, test = latents_of(dags), {**classes, "weight": tests.astype(dtype)}
    return Experiment(
        model=replace(transformer, watch=test, extra=(correlation(transformer, test, latents),)),
        stream=lambda iteration: {**classes, "weight": labels(iteration)["weight"].astype(dtype)},  # each class once, as often as drawn
        steps=STEPS,
        start=partial(official_start, seeds, transformer) if official else None,
        exact={
            "latents0": latents[0],
            "latents1": latents[1],
            "present": np.stack([dag.present for dag in dags]),
            "loss_floor": np.array([dag.loss_floor for dag in dags]),
        },
    )


def dag_of_seed(values: Mapping[str, Any], seed: int) -> Dag:
    """The hierarchy of a seed. Raises ParamError if it does not exist, or a class has more tokens than a sequence that has a length."""
    sizes = {name: values[name] for name in ("n0", "n1", "num_classes")}
    dag = draw_dag(seed, sizes, values["num_children"], values["vocabulary"])
    most = int(dag.present.sum(axis=1).max())
    if most > values.get("length", most):
        raise ParamError(f"length must be at least {most}, the tokens of one of the classes of seed {seed}, not {values['length']}")
    return dag


def latents_of(dags: Sequence[Dag]) -> tuple[Array, Array]:
    """Whether each class has the lower latents (R, C, n0), and the upper ones (R, C, n1)."""
    lower, upper = (np.stack([dag.active[s] for dag in dags]) for s in range(2))
    return lower, upper


DOC = "classes made of shared latents made of tokens (tian2023joma, Table 1)"
NOT_DESCRIBED = (
    "its transformer has keys, queries and layer norms, which no System keeps; "
    "hierarchy_layers (task and recipe) has the same classes, read by the nodes of hierarchy.multilayer"
)
TASK = ReferenceTask("hierarchy_dag", DOC, SETTINGS, make, memory, ("transformer",), not_described=NOT_DESCRIBED)

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

from odesim.base.arrays import Array
from odesim.base.errors import ParamError, counted
from odesim.lab.networks.measures import by_layer
from odesim.lab.networks.transformer import Transformer
from odesim.lab.training.optimizers import ADAM, of_settings
from odesim.lab.training.randomness import OFFICIAL_SHIFT, RNGS, TESTS, InBlocks, TorchGenerator, generators, normal_outputs
from odesim.lab.training.task import Batch, Experiment, Observable, Params, ReferenceTask, Setting, Settings

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
        for row, own in zip(sequences, tokens, strict=True):
            row[length - len(own) :] = own
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


# Batches of the classes of hierarchies: each class once, weighted by how often its label was drawn.

BLOCK = 64  # iterations whose labels are drawn at once
TEST_LABELS = 1280


class NumpyLabels:
    """Counts (R, C) of each class among the labels of a batch, uniform by numpy's generators."""

    def __init__(self, seeds: Sequence[int], classes: int, batch: int) -> None:
        self.seeds, self.classes = tuple(seeds), classes
        self.counts = InBlocks(seeds, BLOCK, lambda rng, _: (self.draw(rng, batch, BLOCK),))

    def __call__(self, iteration: int) -> Array:
        return self.counts(iteration)[0]

    def test(self) -> Array:
        """Counts (R, C) of TEST_LABELS labels."""
        return np.stack([self.draw(rng, TEST_LABELS, 1)[0] for rng in generators(self.seeds, TESTS)])

    def draw(self, rng: np.random.Generator, labels: int, times: int) -> Array:
        """Counts (times, C) of classes among `labels` uniform random labels."""
        return rng.multinomial(labels, np.full(self.classes, 1 / self.classes), times)


@dataclass(frozen=True)
class EveryClass:
    """A Stream with each class once: tokens (R, C, T), log_weight (R, C, T), and as weight (R, C) its number of labels in the batch."""

    tokens: Array
    log_weight: Array
    labels: "NumpyLabels | OfficialLabels"

    def __call__(self, iteration: int) -> Batch:
        return self.weighted_batch(self.labels(iteration))

    def weighted_batch(self, counts: Array) -> Batch:
        """The batch in which classes occur counts (R, C) times."""
        targets = np.tile(np.arange(self.tokens.shape[1]), (len(self.tokens), 1))
        fixed = {"tokens": self.tokens, "targets": targets, "log_weight": self.log_weight}
        return {**fixed, "weight": counts.astype(self.log_weight.dtype)}


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
    laws = design.starts()
    for name in drawn_names(design):
        law = laws[name]
        yield name, torch.normal(law.shape) if law.law == "normal" else torch.uniform(-law.value, law.value, law.shape[::-1]).T


def start_outputs(design: Transformer) -> int:
    """How many of torch's 32-bit outputs draw_start takes."""
    laws = [design.starts()[name] for name in drawn_names(design)]
    return sum(normal_outputs(prod(law.shape)) if law.law == "normal" else prod(law.shape) for law in laws)


def official_start(seeds: Sequence[int], design: Transformer, dtype: str) -> Params:
    """The parameters {name: (R, ...)} of the published runs before the first update."""
    params = {name: np.full((len(seeds), *law.shape), law.value, dtype) for name, law in design.starts().items()}
    for r, seed in enumerate(seeds):
        for name, values in draw_start(TorchGenerator(seed + OFFICIAL_SHIFT), design):
            params[name][r] = values
    return params


class OfficialLabels:
    """Counts as NumpyLabels, by torch's generator after the start. Test labels come after STEPS batches, as the published runs end.

    A batch needs those before it: going back starts again.
    """

    def __init__(self, seeds: Sequence[int], design: Transformer, batch: int) -> None:
        self.seeds, self.classes, self.batch, self.drawn_before = tuple(seeds), design.classes, batch, start_outputs(design)
        self.next = 0
        self.generators: list[TorchGenerator] = []
        self.counts: Array = np.empty(0)

    def __call__(self, iteration: int) -> Array:
        if iteration != self.next - 1:
            if iteration < self.next or not self.generators:
                self.generators, self.next = self.generators_after(0), 0
            for torch in self.generators:
                torch.skip((iteration - self.next) * self.batch)
            self.counts = self.count(self.generators, self.batch)
            self.next = iteration + 1
        return self.counts

    def test(self) -> Array:
        return self.count(self.generators_after(STEPS), TEST_LABELS)

    def generators_after(self, batches: int) -> list[TorchGenerator]:
        """A generator for each seed, after the start and so many batches."""
        result = [TorchGenerator(seed + OFFICIAL_SHIFT) for seed in self.seeds]
        for torch in result:
            torch.skip(self.drawn_before + batches * self.batch)
        return result

    def count(self, generators: Sequence[TorchGenerator], labels: int) -> Array:
        """Counts (R, C) of the next labels."""
        return np.stack([np.bincount(torch.randint(self.classes, (labels,)), minlength=self.classes) for torch in generators])


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
    sizes = {name: values[name] for name in ("vocabulary", "width", "layers", "mlp")}
    return Transformer(**sizes, outputs=values["num_classes"], norm="post", activation="relu", projection=False, biases=("mlp", "head"))


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
    labels = OfficialLabels(seeds, transformer, values["batch"]) if official else NumpyLabels(seeds, transformer.classes, values["batch"])
    stream = EveryClass(tokens, log_weight, labels)
    latents = latents_of(dags)
    test = stream.weighted_batch(labels.test())
    return Experiment(
        model=replace(transformer, watch=test, extra=(correlation(transformer, test, latents),)),
        stream=stream,
        optimizer=of_settings(values, transformer.rates(values["lr"])),
        steps=STEPS,
        start=partial(official_start, seeds, transformer) if official else None,
        vocabulary=values["vocabulary"],
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


TASK = ReferenceTask(
    "hierarchy_dag",
    "classes made of shared latents made of tokens (tian2023joma, Table 1)",
    SETTINGS,
    make,
    memory,
    ("transformer",),
    not_described="its transformer has keys, queries and layer norms, which no System keeps; "
    "hierarchy_layers (task and recipe) has the same classes, read by the nodes of hierarchy.multilayer",
)

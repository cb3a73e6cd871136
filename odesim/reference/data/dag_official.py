"""Sequences, start and labels of the published runs of Table 1 of tian2023joma, number for number, from the seeds of its code.

Source: facebookresearch/luckmatters, `ssl/real-dataset/decoder_only_hier.py`, and `set_all_seeds` of `ssl/common_utils/helper.py`: a
run with seed s draws its hierarchy by Python's generator with seed s; torch's, with seed s + 2, draws the start and then the labels.
"""

from collections.abc import Iterator, Sequence
from math import prod

import numpy as np

from odesim.base.arrays import Array
from odesim.lab.networks.architecture import Architecture
from odesim.lab.tasks.hierarchy_dag import TEST_LABELS, Dag
from odesim.lab.training.protocols import Params
from odesim.lab.training.randomness import OFFICIAL_SHIFT, TorchGenerator, normal_outputs

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


def drawn_names(made: Architecture) -> list[str]:
    """The parameters that torch draws, in the order in which the network's parts are made."""
    return ["embedding", "head", "head_bias", *(f"layer{i}.{name}" for i in range(made.layers) for name in OF_A_BLOCK)]


def draw_start(torch: TorchGenerator, made: Architecture) -> Iterator[tuple[str, Array]]:
    """(name, values) of the parameters that are drawn: a table of N(0, 1), layers uniform, torch's rows being their outputs."""
    laws = made.starts()
    for name in drawn_names(made):
        law = laws[name]
        yield name, torch.normal(law.shape) if law.law == "normal" else torch.uniform(-law.value, law.value, law.shape[::-1]).T


def start_outputs(made: Architecture) -> int:
    """How many of torch's 32-bit outputs draw_start takes."""
    laws = [made.starts()[name] for name in drawn_names(made)]
    return sum(normal_outputs(prod(law.shape)) if law.law == "normal" else prod(law.shape) for law in laws)


def official_start(seeds: Sequence[int], made: Architecture, dtype: str) -> Params:
    """The parameters {name: (R, ...)} of the published runs before the first update."""
    params = {name: np.full((len(seeds), *law.shape), law.value, dtype) for name, law in made.starts().items()}
    for r, seed in enumerate(seeds):
        for name, values in draw_start(TorchGenerator(seed + OFFICIAL_SHIFT), made):
            params[name][r] = values
    return params


class OfficialLabels:
    """LabelCounts of torch's generator, after the start. The test labels are those after STEPS batches, as the published runs end.

    A batch needs those before it: going back starts again.
    """

    def __init__(self, seeds: Sequence[int], made: Architecture, batch: int) -> None:
        self.seeds, self.classes, self.batch, self.drawn_before = tuple(seeds), made.classes, batch, start_outputs(made)
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

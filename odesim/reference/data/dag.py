"""A hierarchy of latent variables with shared children: each node is a set of nodes of the layer below, or of tokens."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import comb
from random import Random

import numpy as np

from odesim.base.arrays import Array
from odesim.base.errors import ParamError, counted


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

    def merge_pads(self, length: int, short: int, tokens: Sequence[Sequence[int]]) -> tuple[Array, Array]:
        """Tokens (C, short) and log weights (C, short): sequences of `length` tokens whose first one counts for length - short + 1.

        Pads attend only pads, so without positions they are equal in every layer and can be merged.
        """
        weights = np.zeros((len(self.present), short))
        weights[:, 0] = np.log(length - short + 1)
        return self.sequences(short, tokens), weights


def draw_dag(seed: int, sizes: Mapping[str, int], num_children: int, vocabulary: int) -> Dag:
    """The random hierarchy of a seed, as the published generator draws it. sizes {name: nodes}: layers from the lowest up.

    Each node is the first num_children of the layer below after a random.shuffle, repeated while the set exists already.
    Raises ParamError if a layer has more nodes than there are sets.
    """
    check_sizes(sizes, num_children, vocabulary)
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


def check_sizes(sizes: Mapping[str, int], num_children: int, vocabulary: int) -> None:
    """Raises ParamError if a layer has more nodes than there are sets. sizes {name: nodes}: layers from the lowest up."""
    below, of = vocabulary - 1, f"{counted(vocabulary - 1, 'token')} (the last one of the vocabulary pads)"
    for name, size in sizes.items():
        most = comb(below, num_children)
        if size > most:
            raise ParamError(f"{name} must be at most {most}, the sets of {num_children} out of {of}, not {size}")
        below, of = size, f"{name}={size} latents"


def _nodes_below(active: Array, children: Array, size: int) -> Array:
    """Whether nodes of the layer below are children of an active node: (C, size), from active (C, n) and children (n, N)."""
    members = np.zeros((len(children), size), int)
    members[np.arange(len(children))[:, None], children] = 1
    return active.astype(int) @ members > 0

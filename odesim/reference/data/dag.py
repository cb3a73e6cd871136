"""A hierarchy of latents in which children are shared: each node is a set of nodes of the layer below, the lowest one of tokens."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import comb
from random import Random

import numpy as np

from odesim.base.arrays import Array
from odesim.errors import ParamError, counted


@dataclass(frozen=True, eq=False)
class Dag:
    """children: one array (n_s, N) a layer, from the lowest up, whose rows are different sets; the last layer is the classes.

    vocabulary: tokens, the last of which pads and is nobody's child.
    """

    children: tuple[Array, ...]
    vocabulary: int

    @cached_property
    def active(self) -> tuple[Array, ...]:
        """Which nodes each class contains, true or false: (C, n_s) of each layer, from the lowest up."""
        found = [np.eye(len(self.children[-1]), dtype=bool)]
        for children, below in zip(self.children[:0:-1], self.children[-2::-1], strict=True):
            found.append(_nodes_below(found[-1], children, len(below)))
        return tuple(reversed(found))

    @cached_property
    def present(self) -> Array:
        """Which tokens each class contains (C, vocabulary): the class is all that a sequence depends on."""
        return _nodes_below(self.active[0], self.children[0], self.vocabulary)

    @property
    def loss_floor(self) -> float:
        """The least mean cross entropy of the class: those of one set of tokens cannot be told apart."""
        _, sizes = np.unique(self.present, axis=0, return_counts=True)
        return float(np.sum(sizes * np.log(sizes)) / np.sum(sizes))

    def sequences(self, length: int) -> Array:
        """Tokens (C, length) of the classes: in ascending order, with pads before them."""
        pad = self.vocabulary - 1
        out = np.full((len(self.present), length), pad)
        for row, present in zip(out, self.present, strict=True):
            (tokens,) = np.nonzero(present)
            row[length - len(tokens) :] = tokens
        return out

    def merged(self, length: int, short: int) -> tuple[Array, Array]:
        """Tokens (C, short) and log weights (C, short): sequences of `length` tokens whose first position stands for length - short + 1.

        Pads see nothing but pads, so that without positions they are all alike in every layer.
        """
        weights = np.zeros((len(self.present), short))
        weights[:, 0] = np.log(length - short + 1)
        return self.sequences(short), weights


def draw_dag(seed: int, sizes: Mapping[str, int], num_children: int, vocabulary: int) -> Dag:
    """The hierarchy that the published generator makes of a seed; sizes {name: nodes} from the lowest layer up, the classes last.

    Each node is the first num_children of the layer below after another random.shuffle, drawn again where that set is there already.
    Raises ParamError where a layer has more nodes than there are sets.
    """
    check_sizes(sizes, num_children, vocabulary)
    shuffle = Random(seed).shuffle
    below, layers = vocabulary - 1, []
    for size in sizes.values():
        indices, found = list(range(below)), dict[tuple[int, ...], None]()
        while len(found) < size:
            shuffle(indices)
            found[tuple(sorted(indices[:num_children]))] = None
        layers.append(np.array(list(found)))
        below = size
    return Dag(tuple(layers), vocabulary)


def check_sizes(sizes: Mapping[str, int], num_children: int, vocabulary: int) -> None:
    """Raises ParamError where a layer has more nodes than there are sets; sizes {name: nodes} from the lowest layer up."""
    below, of = vocabulary - 1, f"{counted(vocabulary - 1, 'token')} (the last one of the vocabulary pads)"
    for name, size in sizes.items():
        most = comb(below, num_children)
        if size > most:
            raise ParamError(f"{name} must be at most {most}, the sets of {num_children} out of {of}, not {size}")
        below, of = size, f"{name}={size} latents"


def _nodes_below(active: Array, children: Array, size: int) -> Array:
    """Which of `size` nodes below are children of an active one: (C, size) of active (C, n) and children (n, N)."""
    members = np.zeros((len(children), size), int)
    members[np.arange(len(children))[:, None], children] = 1
    return active.astype(int) @ members > 0

"""Rooted trees and their order conditions: sum_j b_j Phi_j(tree) = theta^order / density."""

from collections.abc import Iterator
from functools import cache
from math import prod

import numpy as np

from odesim.base.arrays import Array

Tree = tuple["Tree", ...]


@cache
def trees(order: int) -> tuple[Tree, ...]:
    """All rooted trees with this many nodes; a tree is the sorted tuple of the trees that hang from its root."""
    return tuple(sorted(forests(order - 1, order - 1)))


@cache
def forests(nodes: int, largest: int) -> tuple[Tree, ...]:
    """All sorted tuples of trees with this many nodes together, none with more than `largest`."""
    if nodes == 0:
        return ((),)
    found = set()
    for size in range(1, min(nodes, largest) + 1):
        for tree in trees(size):
            found |= {tuple(sorted((tree, *rest))) for rest in forests(nodes - size, size)}
    return tuple(found)


def size(tree: Tree) -> int:
    """The number of nodes."""
    return 1 + sum(map(size, tree))


def density(tree: Tree) -> int:
    """The product of the sizes of all subtrees."""
    return size(tree) * prod(map(density, tree))


def weights(A: Array, tree: Tree) -> Array:
    """Phi_j(tree) (stages,)."""
    out = np.ones(len(A))
    for child in tree:
        out = out * (A @ weights(A, child))
    return out


def conditions(A: Array, b: Array, order: int, theta: float = 1.0) -> Iterator[tuple[Tree, float, float]]:
    """(tree, residual, size of the summed terms) for all trees up to this order."""
    for nodes in range(1, order + 1):
        for tree in trees(nodes):
            terms = b * weights(A, tree)
            yield tree, float(terms.sum() - theta**nodes / density(tree)), float((np.abs(b) * weights(np.abs(A), tree)).sum())

"""Loop nests as data: what a kernel computes, in the order of all targets. A nest is made once from a Program; targets print it.

r0 = sum_k v[k]*z[k]  ->  Blocks(K, [v_0, z_0 = blocks of v, z], Elements(k, w0[k] = v_0[k]*z_0[k]), Fold(0, "sum")), Total(r0, 0)

Scalar expressions are trees (odesim.targets.expressions). What is not said is the target's: numba loads with a promise that blocks do not
overlap, a GPU divides loops among its threads, members written out have no loops at all.
"""

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from odesim.runtime.constants import BLOCK as BLOCK
from odesim.targets.expressions import Tree

LOW = "lo_"
"""The first place of a block on its axis."""
HERE = "here_"
"""The name of the block of the state that a loop computes."""
WORK = "work_"
"""Scratch memory: a block for each sum of a loop."""


@dataclass
class Set:
    """target = value, or target += value. The target is a number, an element, or an element of a view of a block."""

    target: Tree
    value: Tree
    add: bool = False


@dataclass
class Fill:
    """All elements of an array = value."""

    array: ast.Name
    value: Tree


@dataclass
class Loop:
    """Nodes for index = 0 ... extent - 1."""

    index: str
    extent: Tree
    body: "list[Node]" = field(default_factory=list)


@dataclass
class Part:
    """The elements of a block in an array, or in that row of it which the indices `row` select."""

    array: str
    row: Sequence[Tree] = ()


@dataclass
class View:
    """A part of an array under a name of its own; `length`: the whole memory of the array as a vector of that length."""

    name: str
    part: Part
    length: Tree | None = None


@dataclass
class Elements:
    """Statements for each element of a block. value: the element of the state, where the loop itself computes it; number: of the loop.

    factors: views of arrays of which that state has multiples.
    """

    number: int
    index: str
    body: list[Set]
    value: str = ""
    factors: Sequence[str] = ()


@dataclass
class Fold:
    """The sum or maximum ("max") of a block of scratch memory or of an array; "dot": the sum of products of two."""

    slot: int
    op: str
    of: list[Part]


@dataclass
class Blocks:
    """For each block of an axis: views, a loop over its elements, and sums. forms: whether the state is computed there."""

    extent: Tree
    forms: bool
    views: list[View]
    elements: Elements | None
    folds: list[Fold]


@dataclass
class Total:
    """target = the sums of all blocks added, or their maximum."""

    target: Tree
    op: str
    slot: int
    extent: Tree


@dataclass
class Multiply:
    """out = left right, matrices in the memory of arrays from a place on; where add is not 0 it is added.

    steps: distances in memory of rows and columns of out, left, right. shape: rows, depth, columns.
    """

    arrays: list[tuple[str, Tree]]
    steps: list[Tree]
    shape: list[Tree]
    add: Tree


@dataclass
class Inverse:
    """result = the inverses of `count` matrices of n rows, which it destroys; a copy of them tells how exact it is."""

    matrices: str
    result: str
    copy: str
    count: Tree
    n: Tree


@dataclass
class PartialSums:
    """Sums of an array along an axis of n, in place, from its start on or from its end; before, after: numbers of lines."""

    array: str
    downwards: bool
    before: Tree
    n: Tree
    after: Tree


Node = Set | Fill | Loop | Blocks | Total | Multiply | Inverse | PartialSums


def nodes_of(nodes: Iterable[Node]) -> Iterator[Node]:
    """All nodes, those in loops too."""
    for node in nodes:
        yield node
        if isinstance(node, Loop):
            yield from nodes_of(node.body)

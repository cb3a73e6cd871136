"""The order in which a sparse matrix is eliminated, found once from its pattern: dense fronts, each added to the next (multifrontal).

I. Duff, J. Reid, The multifrontal solution of indefinite sparse symmetric linear equations, ACM TOMS 9 (1983). The pattern is taken as
symmetric. Unknowns of one front are eliminated together, with pivots among themselves; what is left of a front goes to its parent. Fronts
of one unknown each would be mostly overhead: one joins its parent where few zeros come in.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from odesim.base.arrays import Array
from odesim.ir.linear_systems import Pattern, Sparse

FEW = 24
"""Unknowns that are one dense front, with every pivot free."""
FULL = 1.5
"""The most places beside the diagonal of a band, in units of the entries there, at which it counts as a full one."""
ZEROS, WIDE = 0.3, 12
"""The part of a front that may be zeros let in by joining, and the fewest unknowns of one: shorter loops cost more than they do."""


@dataclass(frozen=True)
class Fronts:
    """An elimination in fronts. Front s eliminates the unknowns rows[first[s]] ... of its rows, widths[s] of them.

    The fronts stand in levels, those farthest from the end first. No front of a level waits for another one, so that a processor overlaps
    what it does for them. Those of one parent are neighbours, in the order of the parents.

    first (S + 1,), rows: the unknowns of each front, those that it eliminates and then those that it changes. widths (S,). parents (S,):
    the front that takes what is left, -1 at the end. places: of the rows that are left, their places in the parent, at the places of rows.
    """

    first: Array
    rows: Array
    widths: Array
    parents: Array
    places: Array

    @cached_property
    def sizes(self) -> Array:
        """The rows of each front (S,)."""
        return np.diff(self.first)

    @cached_property
    def first_left(self) -> Array:
        """Where what is left of each front waits for its parent (S,), and the size of this memory: levels take turns in its halves."""
        depth = np.zeros(len(self.parents), np.int64)
        for s in range(len(depth) - 1, -1, -1):
            depth[s] = depth[self.parents[s]] + 1 if self.parents[s] >= 0 else 0
        squares = (self.sizes - self.widths) ** 2
        before = np.cumsum(squares) - squares
        levels = before - before[np.searchsorted(-depth, -depth)]
        half = int(np.max(levels + squares, initial=0))
        return np.concatenate([levels + half * (depth % 2), [2 * half]])

    def places_of(self, rows: Array, columns: Array) -> tuple[Array, Array]:
        """The front to which each entry of the matrix goes, and its place there, column by column."""
        front_of = np.empty(int(self.widths.sum()), np.int64)
        for s, (first, width) in enumerate(zip(self.first[:-1].tolist(), self.widths.tolist(), strict=True)):
            front_of[self.rows[first : first + width]] = s
        front = np.minimum(front_of[rows], front_of[columns])
        keys = np.repeat(np.arange(len(self.widths)), self.sizes) * len(front_of) + self.rows
        order = np.argsort(keys)
        row, column = (order[np.searchsorted(keys, front * len(front_of) + i, sorter=order)] - self.first[front] for i in (rows, columns))
        return front, row + column * self.sizes[front]

    @cached_property
    def operations(self) -> float:
        """Multiplications of an elimination."""
        f, w = self.sizes.astype(float), self.widths.astype(float)
        return float(np.sum(w * f * f - w * w * f + w**3 / 3))

    @cached_property
    def numbers(self) -> int:
        """Entries of both factors."""
        f, w = self.sizes.astype(np.int64), self.widths
        return int(np.sum(w * (2 * f - w)))


@dataclass(frozen=True)
class Entries:
    """Where the entries of a sparse Jacobian stand, and of which numbers they are made.

    n states come first among the unknowns. rows, columns, factors, sources (entries,): an entry is its factor times the number `source` of
    the slopes, which lie flat one after another (count of them), and then a 1. tangent: the entries in the order in which J v follows.
    """

    n: int
    unknowns: int
    count: int
    rows: Array
    columns: Array
    factors: Array
    sources: Array
    tangent: Array

    @cached_property
    def pattern(self) -> Pattern:
        return Pattern(self.n, self.unknowns, self.rows, self.columns)

    @cached_property
    def fronts(self) -> Fronts:
        """The order in which compiled code eliminates the unknowns."""
        return make_fronts(self.unknowns, self.rows, self.columns)

    @cached_property
    def layout(self) -> dict[str, Array]:
        """Entries front by front, those that the shift goes to among them, and the fronts: as front_solver.py reads them."""
        n, f, w = self.n, self.fronts.sizes, self.fronts.widths
        rows, columns = (np.concatenate([a, np.arange(n)]) for a in (self.rows, self.columns))
        front, place = self.fronts.places_of(rows, columns)
        order = np.argsort(front, kind="stable")
        turned = np.empty(len(order), np.int64)
        turned[order] = np.arange(len(order))
        arrays = {
            "SOURCE": np.concatenate([self.sources, np.full(n, self.count + 1)])[order], "ROW": rows[order], "COLUMN": columns[order],
            "PLACE": place[order], "FIRST_ENTRY": np.searchsorted(front[order], np.arange(len(w) + 1)), "TANGENT": turned[self.tangent],
            "FIRST_ROW": self.fronts.first, "ROWS": self.fronts.rows, "WIDTHS": w, "FIRST_LEFT": self.fronts.first_left,
            "FIRST_CHILD": np.searchsorted(self.fronts.parents % (len(w) + 1), np.arange(len(w) + 1)),  # -1 is the last of these
            "PLACES": self.fronts.places, "FIRST_FACTOR": np.concatenate([[0], np.cumsum(w * (2 * f - w))]),
        }  # fmt: skip
        factors = np.concatenate([self.factors, np.ones(n)])[order]
        return {"FACTOR": factors, **{name: np.ascontiguousarray(a, np.int64) for name, a in arrays.items()}}

    def at(self, numbers: Array) -> Sparse:
        """The Jacobian for all slopes, flat, and a 1."""
        return Sparse(self.pattern, self.pattern.fill(self.factors * numbers[self.sources]))


def make_fronts(unknowns: int, rows: Array, columns: Array) -> Fronts:
    """The fronts for a matrix with entries at these places; every place of the diagonal counts as one."""
    if unknowns <= FEW:
        return _fronts(unknowns, [(list(range(unknowns)), [])] if unknowns else [])
    order = _order(unknowns, rows, columns)
    place = np.empty(unknowns, np.int64)
    place[order] = np.arange(unknowns)
    below, parents = _structure(unknowns, place[rows], place[columns])
    after = _postorder(parents)
    turned = np.empty(unknowns, np.int64)
    turned[after] = np.arange(unknowns)
    below = [np.sort(turned[below[j]]) for j in after]
    groups = [(order[after[eliminated]].tolist(), order[after[changed]].tolist()) for eliminated, changed in _joined(below)]
    return _fronts(unknowns, _in_levels(groups))


def _order(unknowns: int, rows: Array, columns: Array) -> Array:
    """The unknowns in an order of little fill: from both ends where this fills a full band, else by SuperLU's minimum degree."""
    low, high = np.minimum(rows, columns), np.maximum(rows, columns)
    entries = len(np.unique((low * unknowns + high)[low < high]))
    if unknowns * np.max(high - low, initial=0) <= FULL * entries:  # and scipy need not be imported, a seventh of a first call
        half = unknowns // 2  # from both ends: an unknown of a chain waits for the one before, and a processor overlaps two chains
        return np.concatenate([np.arange(half), np.arange(unknowns - 1, half - 1, -1)])
    from scipy.sparse import csc_array
    from scipy.sparse.linalg import splu  # only stiff methods need scipy

    places = np.concatenate([rows, columns]), np.concatenate([columns, rows])
    both: Any = csc_array((np.ones(2 * len(rows)), places), shape=(unknowns, unknowns))
    both.setdiag(1.0 + both.sum(axis=0))  # dominant, so that no pivot is anywhere else
    lu = splu(both.tocsc(), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    return np.argsort(lu.perm_c)


def _structure(unknowns: int, rows: Array, columns: Array) -> tuple[list[Array], Array]:
    """Of each unknown, in the order of elimination, the later ones that its elimination changes, and the first of these (-1: none)."""
    low, high = np.minimum(rows, columns), np.maximum(rows, columns)
    keys = np.unique(low[low < high] * unknowns + high[low < high])
    starts = np.searchsorted(keys, np.arange(unknowns + 1) * unknowns)
    later = keys % unknowns
    below: list[Array] = []
    parents = np.full(unknowns, -1)
    children: list[list[int]] = [[] for _ in range(unknowns)]
    for j in range(unknowns):
        parts = [later[starts[j] : starts[j + 1]], *(below[c][1:] for c in children[j])]  # a child's first one is j itself
        mine = parts[0] if len(parts) == 1 else np.unique(np.concatenate(parts))
        below.append(mine)
        if len(mine):
            parents[j] = mine[0]
            children[mine[0]].append(j)
    return below, parents


def _postorder(parents: Array) -> Array:
    """The unknowns so that those below one stand directly before it."""
    children: list[list[int]] = [[] for _ in range(len(parents) + 1)]
    for j, parent in enumerate(parents.tolist()):
        children[parent].append(j)  # roots at the end, by -1
    out: list[int] = []
    waiting = list(children[-1])
    while waiting:
        j = waiting.pop()
        out.append(j)
        waiting += children[j]
    return np.array(out[::-1])


def _joined(below: Sequence[Array]) -> list[tuple[Array, Array]]:
    """The fronts (unknowns eliminated, unknowns changed): a chain of unknowns is one where that lets few zeros in."""
    fronts: list[tuple[int, int, Array, int]] = []  # first unknown, width, changed ones, zeros
    for j, left in enumerate(below):
        first, width, zeros = j, 1, 0
        while fronts:
            start, w, changed, z = fronts[-1]
            if not len(changed) or changed[0] != first:
                break
            more = z + zeros + w * (width + len(left) - len(changed))
            total = w + width
            if more > ZEROS * total * (total + len(left)) or total + len(left) < WIDE:
                break
            first, width, zeros = start, total, more
            fronts.pop()
        fronts.append((first, width, left, zeros))
    return [(np.arange(first, first + width), left) for first, width, left, _ in fronts]


Groups = Sequence[tuple[list[int], list[int]]]
"""Fronts as (unknowns eliminated, unknowns changed)."""


def _in_levels(groups: Groups) -> Groups:
    """The fronts as a breadth-first search from the last ones sees them, backwards."""
    front_of = {i: s for s, (eliminated, _) in enumerate(groups) for i in eliminated}
    children: list[list[int]] = [[] for _ in range(len(groups) + 1)]
    for s, (_, changed) in enumerate(groups):
        children[front_of[changed[0]] if changed else -1].append(s)
    found = children[-1]
    for s in found:  # it grows
        found += children[s]
    return [groups[s] for s in reversed(found)]


def _fronts(unknowns: int, groups: Groups) -> Fronts:
    """The Fronts of these, in their order."""
    front_of = np.full(unknowns, -1)
    for s, (eliminated, _) in enumerate(groups):
        front_of[eliminated] = s
    rows = [[*eliminated, *changed] for eliminated, changed in groups]
    first = np.concatenate([[0], np.cumsum([len(r) for r in rows], dtype=np.int64)]).astype(np.int64)
    parents = np.array([front_of[changed[0]] if changed else -1 for _, changed in groups], np.int64)
    places = np.full(int(first[-1]), -1, np.int64)
    at = np.empty(unknowns, np.int64)
    for s in range(len(groups) - 1, -1, -1):
        parent, (eliminated, changed) = parents[s], groups[s]
        if parent >= 0:
            at[rows[parent]] = np.arange(len(rows[parent]))
            places[first[s] + len(eliminated) : first[s + 1]] = at[changed]
    flat = np.array([i for r in rows for i in r], np.int64)
    return Fronts(first, flat, np.array([len(eliminated) for eliminated, _ in groups], np.int64), parents, places)

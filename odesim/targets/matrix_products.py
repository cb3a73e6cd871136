"""Sums of products of two arrays as matrix products, and the order of axes that suits them.

Which indices are rows, columns, summed, or loops around a product; temporaries with their axes in the order of the products.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import sympy as sp
from sympy import Expr, Indexed, Symbol

from odesim.ir.program import Program, Statement, is_plain
from odesim.symbolic.indices import IndexedBase, base_name
from odesim.transforms.lanes import is_lane

ROUNDS = 4
"""Changes of the order; each may show more loops around matrix products."""

LARGE = 100
"""The weight of an index over many products, beside one that is around a product because its arrays are not in order."""


@dataclass(frozen=True)
class Dimension:
    """One dimension of a product: indices that are neighbours in memory in the same way in all arrays act as one.

    extents: of these indices. last: the last of them, whose distance in memory is that of the dimension.
    """

    extents: tuple[Expr, ...]
    last: Symbol

    @property
    def extent(self) -> Expr:
        return sp.expand(sp.prod(self.extents))


@dataclass(frozen=True)
class Product:
    """out[rows, columns] = sum of left[rows, depth] * right[depth, columns], for all values of the indices in `loops`.

    loops: the last `added` of them are summed over as well. None: a matrix with one row, or one column.
    """

    loops: tuple[Symbol, ...]
    added: int
    rows: Dimension | None
    depth: Dimension
    columns: Dimension | None
    arrays: tuple[Indexed, Indexed, Indexed]

    @property
    def along_rows(self) -> bool:
        """Whether it is a matrix times a vector, and the elements of a row are neighbours in memory."""
        matrix = self.arrays[1] if self.columns is None else self.arrays[2]
        return (self.columns is None or self.rows is None) and strides(matrix)[self.depth.last] == 1

    @property
    def extents(self) -> tuple[Expr, ...]:
        """Extents whose product is the number of multiplications; () for a matrix times a vector."""
        if self.rows is None or self.columns is None:
            return ()
        return (*self.rows.extents, *self.depth.extents, *self.columns.extents)


def strides(a: Indexed) -> dict[Symbol, Expr]:
    """The distances in memory between neighbours of an array along each index of this element."""
    shape = a.base.shape
    return {i: sp.expand(sp.prod(shape[d + 1 :])) for d, i in enumerate(a.indices)}


def find_product(s: Statement, extents: Mapping[Symbol, Expr]) -> Product | None:
    """A statement as a Product; None where it is none."""
    factors: tuple[Expr, ...] = s.body.args if s.op == "dot" or (s.op == "sum" and isinstance(s.body, sp.Mul)) else ()
    if len(factors) != 2 or not s.free or not all(isinstance(f, Indexed) and is_plain(f) for f in factors):
        return None
    first, second = factors[0], factors[1]
    alone = {f: [i for i in s.free if i in f.indices and i not in g.indices] for f, g in ((first, second), (second, first))}
    left, right = sorted(factors, key=lambda f: s.free.index(alone[f][0]) if alone[f] else len(s.free))
    summed = {s.bound, *s.more}
    batch = tuple(i for i in s.free if i in left.indices and i in right.indices)
    # lanes hold sixteen members side by side: a plain sum over k with the lane innermost is what vectorises there
    if any(is_lane(extents[i]) for i in batch):
        return None  # a matrix for each member, whose elements are no neighbours
    if not alone[left] or not summed <= {*left.indices} & {*right.indices} or {*left.indices, *right.indices} != {*s.free, *summed}:
        return None
    assert isinstance(s.target, Indexed)
    down, rows = _dimension(alone[left], (left, s.target), extents)
    beside, columns = _dimension(alone[right], (right, s.target), extents)
    added, depth = _dimension(summed, (left, right), extents)
    assert depth is not None
    return Product((*batch, *down, *beside, *added), len(added), rows, depth, columns, (s.target, left, right))


def join_products(program: Program) -> Program:
    """The Program in which a sum of matrix products is one statement, and a product that is an output is computed there.

    r0[s, i, j] = sum_k Z[s, i, k] * U[s, k, j], r1[i, j] = sum_s r0[s, i, j]  ->  r1[i, j] = sum_(k, s) Z[s, i, k] * U[s, k, j]
    """
    statements = {s.name: s for s in program.statements()}
    readers: dict[str, list[Statement]] = {name: [] for name in statements}
    for t in statements.values():
        for name in t.reads() & readers.keys():
            readers[name].append(t)
    changed: dict[str, tuple[Statement, ...]] = {}
    for name in statements:  # each after what it reads
        (s,) = changed.get(name, (statements[name],))
        joined = _joined(s, readers[name], program) if s.op == "dot" and len(readers[name]) == 1 else None
        if joined is not None:
            changed |= {name: (), joined.name: (joined,)}
    passes = (tuple(joined for s in group for joined in changed.get(s.name, (s,))) for group in program.passes)
    return replace(program, passes=tuple(filter(None, passes)))


def _joined(s: Statement, readers: list[Statement], program: Program) -> Statement | None:
    """The only statement that reads the matrix product s, with the product in its place; None where it is neither a sum nor an output."""
    (reader,) = readers
    if not reader.free or not is_plain(reader.body) or base_name(reader.body) != s.name or reader.op not in ("map", "sum"):
        return None
    if reader.op == "map" and reader.name not in program.outputs:
        return None
    swap = dict(zip(s.free, reader.body.indices, strict=True))
    if {s.bound, *s.more} & {*reader.loops}:
        return None
    factors = sp.Mul(*(f.xreplace(swap) for f in s.body.args), evaluate=False)
    more = s.more if reader.bound is None else (reader.bound, *s.more)
    joined = replace(reader, op="dot", body=factors, bound=s.bound, more=more)
    return joined if find_product(joined, program.extents) else None


def _dimension(
    indices: Collection[Symbol], arrays: tuple[Indexed, Indexed], extents: Mapping[Symbol, Expr]
) -> tuple[tuple[Symbol, ...], Dimension | None]:
    """(indices that are loops, the dimension of all others): in the order of the first array, as many as possible in the dimension."""
    order = [i for i in arrays[0].indices if i in indices]
    if not order:
        return (), None
    first = len(order) - 1
    while first and all(sp.expand(strides(a)[order[first - 1]] - extents[order[first]] * strides(a)[order[first]]) == 0 for a in arrays):
        first -= 1
    return tuple(order[:first]), Dimension(tuple(extents[i] for i in order[first:]), order[-1])


def lay_out(program: Program) -> Program:
    """The Program with the axes of its temporaries in the order that suits products, then in that of the arrays they are made of.

    r0[i, j, s] = sum_k Z[s, i, k] * U[s, k, j], r1[i, s] = sum_j r0[i, j, s]  ->  r0[s, i, j] = ..., r1[s, i] = ...
    """
    # a search step by step: each round settles the arrays of the products that the last one made plain
    for _ in range(ROUNDS):
        better = {name: order for name, order in _orders(program).items() if order != sorted(order)}
        if not better:
            break
        program = replace(program, passes=tuple(tuple(turned(s, better) for s in group) for group in program.passes))
    return program


def _orders(program: Program) -> dict[str, list[int]]:
    """{temporary: its axes in a better order}."""
    around: Counter[tuple[str, int]] = Counter()
    for s in program.statements():
        product = find_product(s, program.extents)
        if product is not None and product.rows and product.columns:
            for i, a in ((i, a) for i in product.loops for a in product.arrays if i in a.indices):
                many = all(i in b.indices for b in product.arrays)  # any other loop depends on the order, and may go with it
                around[base_name(a), a.indices.index(i)] += LARGE if many else 1
    orders = {}
    fixed = {name for s in program.statements() if s.op == "inverse" for name in (s.name, *s.reads())}
    for s in program.statements():
        if s.name in fixed or s.name in program.outputs or len(s.free) < 2 or s.op == "scatter":
            continue
        axes = range(len(s.free))
        if any(around[s.name, d] for d in axes):
            orders[s.name] = sorted(axes, key=lambda d, name=s.name: -around[name, d])  # type: ignore[misc]
        elif s.op != "dot":
            places = _places(s)
            orders[s.name] = sorted(axes, key=lambda d, s=s, places=places: places.get(s.free[d], 0.0))  # type: ignore[misc]
    return orders


def _places(s: Statement) -> dict[Symbol, float]:
    """{index: its mean place, from 0 for the first axis to 1 for the last, in the arrays that a statement reads}."""
    seen_at: defaultdict[Symbol, list[float]] = defaultdict(list)
    for a in s.body.atoms(Indexed):
        for place, i in enumerate(a.indices):
            if isinstance(i, Symbol) and len(a.indices) > 1:
                seen_at[i] += [round(place / (len(a.indices) - 1), 6)] * len(a.indices)
    return {i: sum(places) / len(places) for i, places in seen_at.items()}


def turned(s: Statement, orders: Mapping[str, Sequence[int]]) -> Statement:
    """A statement with the axes of these arrays in another order."""

    def turn(e: Expr) -> Expr:
        if isinstance(e, Indexed):
            order = orders.get(base_name(e), range(len(e.indices)))
            base = IndexedBase(base_name(e), shape=tuple(e.base.shape[d] for d in order)) if base_name(e) in orders else e.base
            return base[tuple(turn(e.indices[d]) for d in order)]
        return e.func(*map(turn, e.args)) if e.args and e.has(Indexed) else e

    free = tuple(s.free[d] for d in orders[s.name]) if s.name in orders else s.free
    body = sp.Mul(*map(turn, s.body.args), evaluate=False) if s.op == "dot" else turn(s.body)
    return replace(s, target=turn(s.target), free=free, body=body)


def along_lanes(program: Program) -> Program:
    """The Program with the lane as the last axis of every temporary, and sums of products of two members' arrays as plain sums.

    r0[l, i, j] = sum_k Z[l, i, k] * U[l, k, j]  ->  r0[i, j, l] = ..., which loops over k outside of l. A program without lanes stays.
    """
    lanes = {i for i, extent in program.extents.items() if is_lane(extent)}
    if not lanes:
        return program
    fixed = {name for s in program.statements() if s.op == "inverse" for name in (s.name, *s.reads())} | set(program.outputs)
    orders = {
        s.name: [*(d for d, i in enumerate(s.free) if i not in lanes), *(d for d, i in enumerate(s.free) if i in lanes)]
        for s in program.statements()
        if s.name not in fixed
    }

    def plain(s: Statement) -> Statement:
        both = s.op == "dot" and all(lanes & f.free_symbols for f in s.body.args)
        return replace(s, op="sum") if both else s

    return replace(program, passes=tuple(tuple(plain(turned(s, orders)) for s in group) for group in program.passes))

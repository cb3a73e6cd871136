"""The order of the axes of temporaries: neighbours in memory are what the loops of a program run along."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

import sympy as sp
from sympy import Expr, Indexed, Symbol

from odesim.ir.program import Program, Statement
from odesim.symbolic.indices import IndexedBase, base_name
from odesim.targets.matrix_products import find_product

ROUNDS = 4
"""Changes of the order; each may show more loops around matrix products."""

LARGE = 100
"""The weight of an index over many products, beside one that is around a product because its arrays are not in order."""


def lay_out(program: Program) -> Program:
    """The Program with the axes of its temporaries in the order that suits products, then in that of the arrays they are made of.

    r0[i, j, s] = sum_k Z[s, i, k] * U[s, k, j], r1[i, s] = sum_j r0[i, j, s]  ->  r0[s, i, j] = ..., r1[s, i] = ...
    """
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
    found: defaultdict[Symbol, list[float]] = defaultdict(list)
    for a in s.body.atoms(Indexed):
        for place, i in enumerate(a.indices):
            if isinstance(i, Symbol) and len(a.indices) > 1:
                found[i] += [round(place / (len(a.indices) - 1), 6)] * len(a.indices)
    return {i: sum(places) / len(places) for i, places in found.items()}


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

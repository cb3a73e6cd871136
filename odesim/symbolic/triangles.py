"""Sums and maxima up to, or from, an index: sum_{j <= i} f. A summand without i is a partial sum, computed along the axis once."""

from typing import Any, Protocol

import sympy as sp
from sympy import Expr, KroneckerDelta, Symbol

from odesim.symbolic.functions import LOWEST
from odesim.symbolic.indices import Padded, padded_as_choice
from odesim.symbolic.reductions import AtMax, MaxOver, Shift, Triangle, triangle


class Lowering(Protocol):
    """The methods of a lowering in progress that sums and maxima call (see odesim.ir.lowering)."""

    extents: dict[Symbol, Expr]

    def hoist(self, e: Expr) -> Expr: ...
    def free(self, e: Any) -> tuple[Symbol, ...]: ...
    def loop_index(self, k: Symbol, extent: Expr, near: Expr) -> Symbol: ...
    def new(self, e: Expr, op: str, free: tuple[Symbol, ...], bound: Symbol | None = None, *, along: Symbol | None = None) -> Any: ...
    def largest(self, body: Expr, k: Symbol) -> Expr: ...
    def at_largest(self, f: Expr, g: Expr, over: list[Symbol]) -> Expr: ...
    def terms(self, body: Expr, k: Symbol) -> tuple[Expr, ...]: ...
    def removes(self, d: KroneckerDelta, k: Symbol) -> bool: ...
    def sum(self, body: Expr, k: Symbol) -> Expr: ...


def hoisted(work: Lowering, e: Expr) -> Expr:
    """The value of a sum or maximum one of whose limits is an index, in terms of temporaries."""
    if len(e.limits) > 1:
        inner = e.func(e.function, e.limits[0])
        return work.hoist(e.func(inner, *e.limits[1:]))
    ((k, low, high),) = e.limits
    t = triangle(low, high)
    assert t is not None
    j = work.loop_index(k, t.extent(work.extents), e)
    body, inside = e.function.xreplace({k: j}), t.condition(j)
    if isinstance(e, AtMax):
        return work.at_largest(_masked(work.hoist(body[0]), inside, LOWEST), work.hoist(body[1]), [j])
    body = work.hoist(body)
    if isinstance(e, Shift):
        return work.new(_masked(body, inside, LOWEST), "max", tuple(f for f in work.free(sp.Tuple(body, t.index)) if f != j), j)
    if isinstance(e, MaxOver):
        return work.largest(_masked(body, inside, LOWEST), j)
    return sp.Add(*(_sum(work, term, j, t) for term in work.terms(body, j)))


def _masked(e: Any, inside: Any, otherwise: Any) -> Expr:
    return sp.Piecewise((e, inside), (otherwise, True))


def _sum(work: Lowering, term: Expr, j: Symbol, t: Triangle) -> Expr:
    """The sum of a product over j: factors without j leave it; where no other factor has the index, it is a partial sum.

    sum_{j <= i} a[i]*x[j]  ->  a[i] * r0[i], r0 the partial sums
    sum_{j <= i} A[i, j]*x[j]  ->  sum_j (A[i, j] if j <= i else 0)*x[j]
    """
    factors = sp.Mul.make_args(term)
    outside = sp.Mul(*(f for f in factors if j not in f.free_symbols))
    inside = [f for f in factors if j in f.free_symbols]
    if not inside:
        return outside * t.count(work.extents[j])
    deltas = [f for f in inside if isinstance(f, KroneckerDelta) and work.removes(f, j)]
    both = [f for f in inside if t.index.free_symbols & f.free_symbols & work.extents.keys() and f not in deltas]
    alone = [f for f in inside if f not in both and f not in deltas]
    if deltas or both:
        masked = _masked(sp.Mul(*(both or alone)), t.condition(j), sp.S.Zero)
        return outside * work.sum(sp.Mul(masked, *deltas, *(alone if both else ())), j)
    body = sp.Mul(*alone)
    partial = work.new(body, t.op, work.free(body), along=j)
    place = Padded(t.index, t.shift, work.extents[j]) if t.shift else t.index
    return outside * padded_as_choice(partial.xreplace({j: place}))

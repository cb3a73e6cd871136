"""The rewriting of expressions into statements: reductions get names, sums become loops."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, combinations, count, permutations
from typing import Any

import sympy as sp
from sympy import Expr, Indexed, KroneckerDelta, Symbol

from odesim.ir.program import Statement, SumOrder, is_plain, sum_order
from odesim.symbolic.definition import Definition, twin_state
from odesim.symbolic.functions import LOWEST
from odesim.symbolic.indices import Clipped, Inside, Neighbour, Padded, Wrapped, array_at, base_name, index, padded_as_choice
from odesim.symbolic.layered import Inverse, Layer, layers_in, with_layers
from odesim.symbolic.parts import Key, key_indices
from odesim.symbolic.reductions import (
    NOT_PLAIN,
    REDUCTIONS,
    AtMax,
    BoundIndex,
    MaxOver,
    Shift,
    SumOver,
    Triangle,
    free_indices,
    has_triangle,
    plain_cases,
    plain_condition,
    subexpressions,
    triangle,
)

# 24 orders at most: each is a look-up of the whole statement.
MOST_TURNED = 4
"""Indices of a temporary up to which it is also found with its axes in another order."""


def index_ranges(system: Definition) -> dict[str, Any]:
    """{parameter that names rows: the extent of the axis of these rows}."""
    return {p.name: p.indexes for p in system.params if p.indexes is not None}


def default_sizes(system: Definition) -> dict[str, int]:
    """{size: its default}."""
    return {s.name: n for s, n in system.sizes.items()}


def derivative(key: Key) -> Key:
    """The output d_v[i] of a right-hand side, for the state v[i]."""
    return twin_state(key, f"d_{base_name(key)}")


class Lowering:
    """A lowering in progress: the statements so far, and the extents of all indices.

    near: the expressions to lower. taken: further names that no temporary and no summed index may have. ranges: {integer array: the
    extent of an axis that all its values are in}. sizes: {name: int}, by which the order of sums over several indices is chosen.
    """

    def __init__(
        self,
        axes: Mapping[Symbol, Any],
        near: Iterable[Any],
        taken: Iterable[str],
        ranges: Mapping[str, Any] | None = None,
        sizes: Mapping[str, int] | None = None,
    ) -> None:
        self._ranges, self._sizes = ranges or {}, sizes or {}
        self.extents: dict[Symbol, Expr] = {i: sp.sympify(n) for i, n in axes.items()}
        self.statements: list[Statement] = []
        self.orders: list[SumOrder] = []
        self._order = list(axes)
        symbols = subexpressions([*with_layers(near), *self.extents.values()], Symbol)
        self._symbols, self._others = symbols, set(taken)
        self.taken = self._others | {s.name for s in (*symbols, *self.extents)}
        self._hoisted: dict[Expr, Expr] = {}
        self.layers: dict[Layer, tuple[tuple[Symbol, ...], Key]] = {}
        self._temporaries: dict[tuple[Any, ...], Indexed | Symbol] = {}

    def assign(self, target: Key, e: Expr) -> None:
        """Appends the statement target = e, after those of the temporaries that e needs."""
        for layer in layers_in(e):
            self._layer(layer)
        self.statements.append(Statement(target, key_indices(target), "map", self.hoist(e)))

    def hoist(self, e: Expr) -> Expr:
        """e with each reduction replaced by its temporary, and conditions written with `and` and `or` only.

        a[m] * sum_k f(k)  ->  a[m] * r0        not (a > b or c > d)  ->  a <= b and c <= d
        """
        if e not in self._hoisted:
            self._hoisted[e] = self._hoist(e)
        return self._hoisted[e]

    def _hoist(self, e: Expr) -> Expr:
        if isinstance(e, REDUCTIONS) and has_triangle(e):
            return hoisted(self, e)
        if isinstance(e, REDUCTIONS):
            body, limits = e.function, list(e.limits)
            while isinstance(e, SumOver) and isinstance(body, SumOver) and not has_triangle(body):
                body, limits = body.function, [*body.limits, *limits]
            bound: list[Symbol] = []
            for k, low, high in limits:  # all of them first: the inner sum may hold the index of an outer one
                j = self.loop_index(k, sp.expand(high - low + 1), sp.Tuple(e, *bound))
                body = body if j == k else body.xreplace({k: j})
                bound.append(j)
            if isinstance(e, AtMax):
                return self.at_largest(self.hoist(body[0]), self.hoist(body[1]), bound)
            for j in self._in_order(self.hoist(body), bound) if isinstance(e, SumOver) else bound:
                body = self._reduce(type(e), self.hoist(body), j)
            return body
        if isinstance(e, Indexed) and isinstance(e.base, Layer):
            loops, element = self._layer(e.base)
            read = element.xreplace(dict(zip(loops, e.base.places(e).values(), strict=True)))
            return padded_as_choice(read) if loops else read
        if isinstance(e, Indexed):
            return padded_as_choice(e)
        if isinstance(e, KroneckerDelta) and any(isinstance(i, Padded) for i in e.args):
            padded = [i for i in e.args if isinstance(i, Padded)]
            clipped = e.xreplace({i: Clipped(*i.args) for i in padded})
            return sp.Piecewise((clipped, sp.And(*(Inside(*i.args) for i in padded))), (sp.S.Zero, True))
        if isinstance(e, sp.im):
            return sp.S.Zero  # of a real number; sympy has it in |exp(exp(x))|, and it would make arrays of statements without indices
        if isinstance(e, NOT_PLAIN):
            plain = plain_condition(e)
            return self.hoist(plain) if plain != e else e
        rebuilt = e.func(*map(self.hoist, e.args)) if e.args else e
        return plain_cases(rebuilt) if isinstance(rebuilt, sp.Piecewise) else rebuilt

    def _layer(self, layer: Layer) -> tuple[tuple[Symbol, ...], Indexed]:
        """(loop indices, element at them) of the temporary that holds a layer."""
        if layer not in self.layers:
            loops, others = list[Symbol](), [s for s in layer.free_symbols if isinstance(s, Symbol)]
            for i, extent in layer.axes.items():
                loops.append(self.loop_index(i, extent, sp.Tuple(*others, *loops)))
            body = self.hoist(layer.definition.xreplace(dict(zip(layer.along, loops, strict=True))))
            held = self.new(body, "map", tuple(loops))
            self.layers[layer] = tuple(loops), self._inverse(held, tuple(loops)) if isinstance(layer, Inverse) else held
        return self.layers[layer]

    def free_name(self, names: Iterable[str]) -> str:
        """The first of these names that nothing has; from then on it is taken."""
        name = next(name for name in names if name not in self.taken)
        self.taken.add(name)
        return name

    def _inverse(self, matrix: Indexed, free: tuple[Symbol, ...]) -> Indexed:
        """The temporary that holds the inverses of matrices; they are copied first, because elimination destroys them."""
        copied = array_at(self.free_name(f"a{n}" for n in count()), free, self.extents)
        self.statements.append(Statement(copied, free, "map", matrix))
        return self.new(copied, "inverse", free, via=matrix)

    def _in_order(self, body: Expr, bound: list[Symbol]) -> list[Symbol]:
        """The indices that body is summed over in the order that is cheapest with the sizes."""
        order = sum_order(body, bound, self.free, self.extents)
        if order is None:
            return bound
        self.orders.append(order)
        return order.best(self._sizes)

    def free(self, e: Any) -> tuple[Symbol, ...]:
        """The indices of e, in the order of the axes they belong to."""
        return tuple(sorted(free_indices(e, set(self.extents)), key=self._rank))

    def first(self, array: Expr, largest: Expr, k: Symbol) -> Expr:
        """The first k at which array is as large as `largest`, its maximum; the extent of k where that is not a number.

        Both are what the maximum was taken of and gave, so that one entry equals it to the last bit.
        """
        place = sp.Piecewise((-k, array >= largest), (-self.extents[k], True))
        return -self.new(place, "max", tuple(f for f in self.free(array) if f != k), k)

    def new(
        self,
        e: Expr,
        op: str,
        free: tuple[Symbol, ...],
        bound: Symbol | None = None,
        via: Indexed | None = None,
        *,
        slopes: bool = False,
        along: Symbol | None = None,
    ) -> Indexed | Symbol:
        """The temporary that holds a statement; the same statement is made once, whatever its indices are called, turned where needed."""
        for order in permutations(free) if len(free) <= MOST_TURNED else (free,):
            known = self._temporaries.get(self._key(e, op, order, bound, via, (slopes, along)))
            if known is not None and (op not in ("scatter", "inverse") or order == free):
                return known.base[order] if free else known
        target = array_at(self.free_name(f"r{n}" for n in count(len(self._temporaries))), free, self.extents)
        self._temporaries[self._key(e, op, free, bound, via, (slopes, along))] = target
        self.statements.append(Statement(target, free, op, e, bound, via, slopes, along=along))
        return target

    def _key(
        self, e: Expr, op: str, free: tuple[Symbol, ...], bound: Symbol | None, via: Indexed | None, how: tuple[bool, Symbol | None]
    ) -> tuple[Any, ...]:
        """A key that is equal for two statements if they hold the same numbers in arrays with the same axes."""
        slots = {f: Symbol(f"_{n}", integer=True) for n, f in enumerate(free)}
        slots |= {bound: Symbol("_k", integer=True)} if bound is not None else {}
        body = e.xreplace(slots)
        shape = tuple(self.extents[f] for f in free)
        slopes, along = how
        return op, slopes, along and slots[along], shape, bound is not None and self.extents[bound], body, via and via.xreplace(slots)

    def loop_index(self, k: Symbol, extent: Expr, near: Expr) -> Symbol:
        """The loop index for k: an index with its name, or a new one where that name has another extent or meaning in near."""
        first = index(k.name)[0] if isinstance(k, BoundIndex) else k
        used = {s.name for s in subexpressions([near], Symbol) if not isinstance(s, BoundIndex)}
        used |= self._others | {s.name for s in self._symbols if s.name == k.name and s not in (k, first) and not isinstance(s, BoundIndex)}
        fresh = (index(f"{k}_{n}")[0] for n in count(1))
        fit = (j for j in fresh if (self.extents[j] == extent if j in self.extents else j.name not in self.taken))
        j = next(j for j in chain([first] if self.extents.get(first, extent) == extent else [], fit) if j.name not in used)
        self.extents[j] = extent
        return j

    def _rank(self, i: Symbol) -> tuple[int, str]:
        same = [n for n, a in enumerate(self._order) if a == i or self.extents[a] == self.extents[i]]
        exact = [n for n in same if self._order[n] == i]
        return ((exact or same or [len(self._order)])[0], i.name)

    def _reduce(self, op: type, body: Expr, k: Symbol) -> Expr:
        if issubclass(op, Shift):
            return self.new(body, "max", tuple(f for f in self.free(body) if f != k), k)
        if issubclass(op, MaxOver):
            return self.largest(body, k)
        return sp.Add(*(self.sum(term, k) for term in self.terms(body, k)))

    def largest(self, body: Expr, k: Symbol) -> Expr:
        """The maximum of body over k, as a temporary; body is stored in an array first."""
        if k not in body.free_symbols:
            return body
        array = self._array(body)
        return self.new(array, "max", tuple(f for f in self.free(array) if f != k), k, slopes=True)

    def at_largest(self, f: Expr, g: Expr, over: list[Symbol]) -> Expr:
        """g at the first element where f is largest: one index after the other, in the order in which the maximum is computed."""
        for k in over:
            if k in f.free_symbols:
                array = self._array(f)
                f = self.largest(array, k)
                g = self.sum(sp.Piecewise((g, sp.Eq(k, self.first(array, f, k))), (0, True)), k)
            else:
                g = self.hoist(g).xreplace({k: sp.S.Zero})
        return g

    def terms(self, body: Expr, k: Symbol) -> tuple[Expr, ...]:
        """body, or its terms where a Kronecker delta in one of them removes the sum."""
        factors = sp.Mul.make_args(body)
        inside = [f for f in factors if not isinstance(f, KroneckerDelta)]
        if any(self.removes(d, k) for f in inside for d in f.atoms(KroneckerDelta)):
            return tuple(distributed(body))
        return (body,)

    def removes(self, d: KroneckerDelta, k: Symbol) -> bool:
        a, b = d.args
        other = b if a == k else a
        if k not in d.args:
            if any(isinstance(x, Wrapped) and x.args[0] == k for x in d.args):
                return any(x.is_Integer or self.extents.get(x) == self.extents[k] for x in d.args)
            if self._rows_of(d, k) is not None:
                return True
            return any(isinstance(x, Indexed) and k in self.free(x) for x in d.args) and any(x in self.extents for x in d.args)
        if isinstance(other, Neighbour):
            return k not in other.free_symbols and other.args[2] == self.extents[k]
        if isinstance(other, Indexed):
            return k not in other.free_symbols and self._ranges.get(base_name(other)) == self.extents[k]
        return other == 0 or (isinstance(other, Symbol) and self.extents.get(other) == self.extents[k])

    def _rows_of(self, d: KroneckerDelta, k: Symbol) -> tuple[Indexed, Indexed, Expr] | None:
        """(row of k, other row, number of rows) where d compares two elements of index parameters, and one of them has k; else None."""
        if not all(isinstance(x, Indexed) and base_name(x) in self._ranges for x in d.args):
            return None
        via, other = sorted(d.args, key=lambda x: k not in self.free(x))
        extents = {self._ranges[base_name(x)] for x in d.args}
        return (via, other, extents.pop()) if k not in self.free(other) and len(extents) == 1 else None

    def sum(self, body: Expr, k: Symbol) -> Expr:
        """The sum of body over k: factors without k are moved out, a delta removes the sum, a matrix product becomes one statement.

        sum_k a[m]*x[m, k]  ->  a[m] * r0[m]        sum_n delta(m, psi[n])*x[n]  ->  r0[m], scattered
        sum_m delta(m, psi[n])*x[m]  ->  x[psi[n]]    sum_n delta(psi[m], psi[n])*x[n]  ->  r0[psi[m]], r0 scattered
        """
        factors = sp.Mul.make_args(body)
        outside = sp.Mul(*(f for f in factors if k not in f.free_symbols))
        inside = [f for f in factors if k in f.free_symbols]
        if not inside:
            return outside * self.extents[k]
        for d in (f for f in inside if isinstance(f, KroneckerDelta) and self.removes(f, k)):
            rest = sp.Mul(*(f for f in inside if f is not d))
            if k in d.args:
                other = d.args[1] if d.args[0] == k else d.args[0]
                return outside * rest.xreplace({k: other})
            if isinstance(d.args[0], Wrapped) or isinstance(d.args[1], Wrapped):
                ring, other = sorted(d.args, key=lambda x: not isinstance(x, Wrapped))
                return outside * rest.xreplace({k: Wrapped(other, -ring.args[1], ring.args[2])})
            if (rows := self._rows_of(d, k)) is not None:
                via, picked, extent = rows
                along = tuple(f for f in self.free(sp.Tuple(rest, via)) if f != k)
                if set(along) & set(self.free(picked)):
                    continue  # one scattered array for each pair of rows would be no saving
                row = self.loop_index(Symbol(f"{k}_row", integer=True, nonnegative=True), extent, body)
                scattered = self.new(rest, "scatter", (row, *along), k, via)
                return outside * scattered.base[(picked, *along)]
            row, via = sorted(d.args, key=lambda x: isinstance(x, Indexed))
            inside_free = self.free(sp.Tuple(rest, via))
            if row not in inside_free:
                return outside * self.new(rest, "scatter", (row, *(f for f in inside_free if f != k)), k, via)
        free = tuple(f for f in self.free(sp.Mul(*inside)) if f != k)
        product = self._product(inside, free, k)
        if product is not None:
            return outside * self.new(product, "dot", free, k)
        return outside * self.new(sp.Mul(*self._vector_product(inside, free)), "sum", free, k)

    def _product(self, factors: list[Expr], free: tuple[Symbol, ...], k: Symbol) -> Expr | None:
        """left * right, each an element of an array, where the factors of a sum over k are a product of matrices; None elsewhere.

        Each matrix has a free index that the other lacks; indices that both have make it many products. A matrix times a vector needs
        no array for the matrix.
        """
        indices = [set(self.free(f)) for f in factors]
        apart = [(a, b) for a, b in combinations(free, 2) if not any({a, b} <= i for i in indices)]
        splits = [[self._side(a, b, i, indices) for i in indices] for a, b in apart]
        if not splits:
            return None
        sides = max(splits, key=lambda sides: len(set().union(*_of(indices, sides, 0)) ^ set().union(*_of(indices, sides, 1))))
        left, right = (sp.Mul(*_of(factors, sides, side)) for side in (0, 1))
        return sp.Mul(*sorted((self._array(left), self._array(right)), key=str), evaluate=False)

    @staticmethod
    def _side(a: Symbol, b: Symbol, indices_of_factor: set[Symbol], indices: list[set[Symbol]]) -> int:
        """The number of the matrix to which a factor with these indices goes: 0 is that with a, 1 that with b.

        A factor with neither goes where it adds no index.
        """
        left, right = (set().union(*(i for i in indices if x in i)) for x in (a, b))
        return int(b in indices_of_factor or (a not in indices_of_factor and not indices_of_factor <= left and indices_of_factor <= right))

    def _vector_product(self, factors: list[Expr], free: tuple[Symbol, ...]) -> list[Expr]:
        """The factors; all but one are moved into an array if that one is a matrix element and they lack one of its free indices."""
        matrices = [f for f in factors if is_plain(f) and set(free) <= set(self.free(f))]
        if len(matrices) != 1 or len(factors) < 2:
            return factors
        vector = sp.Mul(*(f for f in factors if f is not matrices[0]))
        return factors if set(free) <= set(self.free(vector)) else [matrices[0], self._array(vector)]

    def _array(self, e: Expr) -> Expr:
        return e if is_plain(e) else self.new(e, "map", self.free(e))


def _of(items: list[Any], sides: list[int], side: int) -> list[Any]:
    """The items that are on this side."""
    return [item for item, s in zip(items, sides, strict=True) if s == side]


def distributed(e: Expr) -> Iterator[Expr]:
    """The terms of e, where sums that hold a Kronecker delta are multiplied out: others stay together, as does what is inside functions."""
    for term in sp.Add.make_args(e):
        parts = sp.Mul.make_args(term)
        total = next((f for f in parts if f.is_Add and f.has(KroneckerDelta)), None)
        if total is None:
            yield term
        else:
            rest = sp.Mul(*(f for f in parts if f is not total))
            for part in total.args:
                yield from distributed(part * rest)


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
    return sp.Add(*(_partial_sum(work, term, j, t) for term in work.terms(body, j)))


def _masked(e: Any, inside: Any, otherwise: Any) -> Expr:
    return sp.Piecewise((e, inside), (otherwise, True))


# Sums and maxima up to, or from, an index. A summand without that index is a partial sum: M additions for all i, and not M**2 / 2.
def _partial_sum(work: Lowering, term: Expr, j: Symbol, t: Triangle) -> Expr:
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

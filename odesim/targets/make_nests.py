"""The nests of a Program: which loops there are, what is hoisted out of them, and which arrays a block reads by views.

Matrix products, sums by rows or by columns, additions onto gathered places, blocks with their sums: the choice is made here, once.
"""

import ast
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

import sympy as sp
from sympy import Expr, Indexed, IndexedBase, Symbol

from odesim.ir.program import Program, Statement
from odesim.symbolic.indices import base_name
from odesim.symbolic.reductions import free_indices
from odesim.targets import nest
from odesim.targets.expressions import Printer, Tree, added, call, element, name, number, whole
from odesim.targets.loop_plan import integers_as_real
from odesim.targets.matrix_products import Product, find_product, strides


class Nests:
    """The nests of one kernel: for each pass of its Program some nodes.

    sizes: names of integers beside the indices. double: arrays are float64, except the integer arrays named in `integers`.
    blas: large matrix products are left to BLAS. state: that which the first pass computes, block by block, where it does.
    factors: where that loop computes it by itself, the parameter arrays of which the state has multiples.
    """

    def __init__(
        self,
        program: Program,
        sizes: Iterable[str],
        *,
        double: bool = True,
        integers: Iterable[str] = (),
        blas: bool = False,
        state: str = "",
        factors: Sequence[str] | None = None,
    ):
        self.state, self.factors, self.blas, self.double = state, factors, blas, double
        self._loops, self.slots = 0, dict[str, int]()
        self.program = integers_as_real(program, set(integers))
        self.scratch_blocks = 1  # in use at the same time
        self.products = list[tuple[Expr, ...]]()
        self.printer = Printer(set(sizes) | {i.name for i in program.extents})
        self._indices = set(program.extents)
        # new names are chosen among the free ones, so that a model may call its parameters t0, x1 or work_
        self._taken = self.printer.integers | set[str]().union(*(s.reads() | {s.name} for s in program.statements()))
        self.passes = list[list[nest.Node]]()
        for n, group in enumerate(self.program.passes):
            self._forms_state, self._out = bool(state) and n == 0, list[nest.Node]()
            self.passes.append(self._out)
            self._pass(group)

    def _pass(self, group: tuple[Statement, ...]) -> None:
        first = group[0]
        product = find_product(first, self.program.extents)
        # a matrix times a vector with rows in order is a sum for each row: in strict mode its bits are those of all sums
        if product is not None and (self.blas or not product.along_rows):
            self._product(product)
        elif first.op == "scatter":
            self._scatter(first)
        elif first.op == "inverse":
            lengths = [self.program.extents[i] for i in first.free]
            n = self.number(lengths[-1])
            self._out.append(nest.Inverse(base_name(first.body), first.name, base_name(first.via), self.number(sp.prod(lengths[:-2])), n))
        elif first.along is not None:
            self._partial_sums(first)
        elif len(first.loops) == 1 and (first.free or first.bound):
            self._line(group)
        elif not first.loops:
            self._bodies([(self._target(s), s.body) for s in group])
        elif first.bound is not None:
            (self._columns if self._is_by_columns(first) else self._rows)(first)
        else:
            self._map(first)

    # -- one index

    def _line(self, group: tuple[Statement, ...]) -> None:
        i = group[0].loops[0]
        extent = self._extent(i)
        group = tuple(self._renamed(s, i) for s in group)
        bodies = self._hoist([s.body for s in group], set())
        maps = [(s, e) for s, e in zip(group, bodies, strict=True) if s.op == "map"]
        folds = [(s, e) for s, e in zip(group, bodies, strict=True) if s.op != "map"]
        if not folds and not self._forms_state:
            self._enter(i)
            targets = {s.target for s in group}
            # two statements of one pass may read each other at the same index only; cse over both would read a value before it is stored
            if any(e.has(target) for e in bodies for target in targets):  # one after another, so that each is stored before it is read
                for s, e in maps:
                    self._bodies([(self._target(s), e)])
            else:
                self._bodies([(self._target(s), e) for s, e in maps])
            return
        # blocks also where nothing is summed but the state is formed: 8 KiB of it stay in the first cache until they are used
        direct = [_direct_arrays(s.op, e, i) if self.double else None for s, e in folds]
        work = [(self._scratch(slot)[i], e) for slot, (_, e) in enumerate(folds) if direct[slot] is None]
        views, elements = self._elements(i, [(s.target, e) for s, e in maps] + work)
        self.scratch_blocks = max(self.scratch_blocks, len(folds))
        sums = list[nest.Fold]()
        for slot, (s, _) in enumerate(folds):
            arrays = direct[slot]
            of = [_part_of_work(slot)] if arrays is None else [self._part(array) for array in arrays]
            sums.append(nest.Fold(slot, "dot" if len(of) == 2 else s.op, of))
        self._out.append(nest.Blocks(extent, self._forms_state, views, elements, sums))
        self._out += [nest.Total(name(s.name), s.op, slot, extent) for slot, (s, _) in enumerate(folds)]

    def _part(self, array: str, row: Sequence[Tree] = ()) -> nest.Part:
        """The block in an array, or in a row of it."""
        return nest.Part(nest.HERE) if self._forms_state and array == self.state else nest.Part(array, row)

    def _elements(self, i: Symbol, pairs: list[tuple[Indexed, Expr]]) -> tuple[list[nest.View], nest.Elements | None]:
        """The views and the loop over one block: target = expression for each i of it."""
        fused = self._forms_state and self.factors is not None
        if not pairs and not fused:
            return [], None
        self._loops += 1
        state = None
        if fused:
            state = IndexedBase(self.state, shape=(nest.BLOCK,))[i]
            swap = {a: state for _, e in pairs for a in e.atoms(Indexed) if base_name(a) == self.state}
            pairs = [(target, e.xreplace(swap)) for target, e in pairs]
        return _BlockLoop(self, i, pairs, state).views_and_loop()

    def _scratch(self, slot: int) -> IndexedBase:
        """One block of scratch memory, as an array of symbols."""
        base = IndexedBase(f"{nest.WORK}[{slot}]", shape=(nest.BLOCK,))
        self.slots[str(base.label)] = slot
        return base

    # -- several indices

    def _extent(self, i: Symbol) -> Tree:
        return self.number(self.program.extents[i])

    def _enter(self, i: Symbol) -> None:
        """What follows is in a loop over i."""
        loop = nest.Loop(i.name, self._extent(i))
        self._out.append(loop)
        self._out = loop.body

    def _open(self, loops: Iterable[Symbol], bodies: list[Expr]) -> list[Expr]:
        """Enters loops over all indices, and hoists what the inner ones do not change; returns what remains of bodies."""
        known = set[Symbol]()
        for i in loops:
            bodies = self._hoist(bodies, known)
            self._enter(i)
            known |= {i}
        return bodies

    def _map(self, s: Statement) -> None:
        self._bodies([(self._target(s), self._open(s.loops, [s.body])[0])])

    def _rows(self, s: Statement) -> None:
        assert s.bound is not None
        (body,) = self._hoist(self._open(s.free, [s.body]), set(s.free))
        extent = self._extent(s.bound)
        views, elements = self._elements(s.bound, [(self._scratch(0)[s.bound], body)])
        self._out.append(nest.Blocks(extent, self._forms_state, views, elements, [nest.Fold(0, s.op, [_part_of_work(0)])]))
        self._out.append(nest.Total(self._target(s), s.op, 0, extent))

    def _is_by_columns(self, s: Statement) -> bool:
        """Whether neighbours in memory belong to different sums or maxima, more often than to one. The fixed order of sums is by rows."""
        last = [a.indices[-1] for a in s.body.atoms(Indexed) if isinstance(a.indices[-1], Symbol)]
        return self.blas and self.double and last.count(s.free[-1]) > last.count(s.bound)

    def _columns(self, s: Statement) -> None:
        """Sums or maxima that are next to each other in memory, all together."""
        assert s.bound is not None
        self._out.append(nest.Fill(name(s.name), number(0.0) if s.op == "sum" else call("float", ast.Constant("-inf"))))
        (body,) = self._open((*s.free[:-1], s.bound, s.free[-1]), [s.body])
        if s.op == "sum":
            self._bodies([(self._target(s), body)], add=True)
        else:
            self._out.append(nest.Set(self._target(s), call("maximum", self._target(s), self.printer.tree(body))))

    def _scatter(self, s: Statement) -> None:
        self._out.append(nest.Fill(name(s.name), number(0.0)))
        (body,) = self._open(s.loops, [s.body])
        assert s.via is not None
        self._bodies([(element(s.name, self.printer.subscript(s.via), *(name(i.name) for i in s.free[1:])), body)], add=True)

    def _partial_sums(self, s: Statement) -> None:
        assert s.along is not None
        outside = self._out
        self._map(s)
        place, lengths = s.free.index(s.along), [self.program.extents[i] for i in s.free]
        shape = (sp.prod(lengths[:place]), lengths[place], sp.prod(lengths[place + 1 :]))
        outside.append(nest.PartialSums(s.name, s.op != "prefix", *map(self.number, shape)))

    def _product(self, p: Product) -> None:
        for i in p.loops:
            self._enter(i)
        out, left, right = p.arrays
        shapes = ((out, p.rows, p.columns), (left, p.rows, p.depth), (right, p.depth, p.columns))
        steps = [whole(strides(a)[d.last] if d else 1) for a, *pair in shapes for d in pair]
        shape = [whole(d.extent if d else 1) for d in (p.rows, p.depth, p.columns)]
        add = whole(0)
        for n, i in enumerate(p.loops[len(p.loops) - p.added :]):
            add = added(add, name(i.name)) if n else name(i.name)
        self._out.append(nest.Multiply([self._vector(a, p.loops) for a in p.arrays], steps, shape, add))
        self.products += [p.extents] * bool(self.blas and p.extents)

    def _vector(self, a: Indexed, loops: Iterable[Symbol]) -> tuple[str, Tree]:
        """An array, and where its memory begins in loops."""
        steps = strides(a)
        return base_name(a), whole(sp.expand(sum((i * steps[i] for i in loops if i in steps), sp.S.Zero)))

    # -- expressions

    def number(self, e: Any) -> Tree:
        """An extent or a scalar expression, with sizes as integers."""
        e = sp.sympify(e)
        if all(x.name in self.printer.integers for x in e.free_symbols if isinstance(x, Symbol)) and e.is_integer:
            return whole(e)
        return self.printer.tree(e)

    def new(self, letter: str) -> Symbol:
        """A symbol with an unused name."""
        text = next(f"{letter}{n}" for n in count() if f"{letter}{n}" not in self._taken)
        self._taken.add(text)
        return Symbol(text, real=True)

    def _target(self, s: Statement) -> Tree:
        return self.printer.element(s.target) if isinstance(s.target, Indexed) else name(s.name)

    def _renamed(self, s: Statement, i: Symbol) -> Statement:
        swap = {s.loops[0]: i}
        return replace(s, target=s.target.xreplace(swap), free=tuple(i for _ in s.free), body=s.body.xreplace(swap), bound=s.bound and i)

    def _bodies(self, pairs: list[tuple[Tree, Expr]], *, add: bool = False) -> None:
        """Assignments in the innermost loop, with common subexpressions named once."""
        # order="none": sympy's canonical order is slow for long expressions, and nobody reads these in it
        common, bodies = sp.cse([e for _, e in pairs], symbols=iter(lambda: self.new("x"), None), order="none")
        self._out += [nest.Set(name(symbol.name), self.printer.tree(e)) for symbol, e in common]
        self._out += [nest.Set(target, self.printer.tree(e), add) for (target, _), e in zip(pairs, bodies, strict=True)]

    def _hoist(self, bodies: list[Expr], known: set[Symbol]) -> list[Expr]:
        """The bodies with parts that depend on no index outside `known` replaced by names, which are assigned before the loop.

        for i: d_v[i] = f[i]*a*b/r0  ->  t0 = a*b/r0; for i: d_v[i] = f[i]*t0
        """
        hoisted: dict[Expr, Symbol] = {}

        def before(e: Expr) -> Symbol:
            if e not in hoisted:
                hoisted[e] = self.new("t")
                self._out.append(nest.Set(name(hoisted[e].name), self.printer.tree(e)))
            return hoisted[e]

        def fixed(e: Expr) -> bool:
            return not e.is_number and free_indices(e, self._indices) <= known

        def walk(e: Expr) -> Expr:
            if e.is_Symbol or e.is_number:
                return e
            if fixed(e):
                return before(e)
            # what a branch guards stays in it: hoisted, 1/x or log(x) would be computed where the condition says no
            if isinstance(e, Indexed | sp.KroneckerDelta | sp.Piecewise):
                return e
            if e.is_Mul or e.is_Add:
                inside = [a for a in e.args if fixed(a)]
                if len(inside) > 1:
                    return e.func(before(e.func(*inside)), *(walk(a) for a in e.args if a not in inside))
            return e.func(*map(walk, e.args))

        return [walk(e) for e in bodies]


class _BlockLoop:
    """A loop over one block under construction: target = expression for each element i of it.

    Its views start at 0 and do not overlap, so that LLVM vectorises the loop. state: the element of the state that the loop computes.
    """

    def __init__(self, nests: Nests, i: Symbol, pairs: Sequence[tuple[Indexed, Expr]], state: Indexed | None):
        self.nests, self.i = nests, i
        self.views = list[nest.View]()
        self.arrays: dict[Indexed, Indexed] = {}
        vectors: dict[str, str] = {}
        written = {base_name(target) for target, _ in pairs}
        # each array that moves with the loop gets a view that starts at 0: without numba's promise that views do not overlap LLVM compares
        # pairs of pointers, and leaves a loop over more than a few arrays scalar
        for a in sorted({a for pair in pairs for e in pair for a in e.atoms(Indexed)} - {state}, key=str):
            if a.indices[-1] == i and not any(x.has(i) for x in a.indices[:-1]):
                self.view(a, nests._part(base_name(a), [nests.printer.subscript(x) for x in a.indices[:-1]]))
            elif state is None and _is_strided(a, i) and base_name(a) not in written | set(vectors):
                vectors[base_name(a)] = self._vector(a)
        self.place = nests.new(f"{i}_")
        self.value = nests.new(base_name(state)).name if state is not None else ""
        swap = {**self.arrays, **({state: Symbol(self.value, real=True)} if state is not None else {})}
        self.pairs = [(target.xreplace(swap), _at_place(e.xreplace(swap), i, self.place)) for target, e in pairs]
        self.printer = _BlockPrinter(nests.printer.integers | {self.place.name}, vectors, self.place)
        self.factors = [self.view(IndexedBase(a, shape=(nest.BLOCK,))[i], nest.Part(a)) for a in nests.factors or ()] if self.value else []

    def views_and_loop(self) -> tuple[list[nest.View], nest.Elements]:
        """The views, and the loop."""
        body = self._body()
        return self.views, nest.Elements(self.nests._loops - 1, self.i.name, body, self.value, self.factors)

    def view(self, a: Indexed, part: nest.Part) -> str:
        """The name of the view of a block, of which a is an element."""
        same = [other for other in self.arrays if base_name(other) == base_name(a) and other.indices == a.indices]
        if not same:
            slot = self.nests.slots.get(base_name(a))
            view = self.nests.new(f"{base_name(a)}_" if slot is None else "w").name
            self.views.append(nest.View(view, part if slot is None else _part_of_work(slot)))
            self.arrays[a] = IndexedBase(view, shape=(nest.BLOCK,))[self.i]
        return base_name(self.arrays[same[0] if same else a])

    def _vector(self, a: Indexed) -> str:
        """The memory of an array as a vector, of which the loop reads elements: indexed, they might be negative, or what it writes.

        R[l, n] for l  ->  R_0[l*M + n]
        """
        view = self.nests.new(f"{base_name(a)}_").name
        self.views.append(nest.View(view, nest.Part(base_name(a)), whole_product(a.base.shape)))
        return view

    def _body(self) -> list[nest.Set]:
        """The statements for one element."""
        body = (
            [nest.Set(name(self.place.name), added(name(nest.LOW), name(self.i.name)))]
            if any(e.has(self.place) for _, e in self.pairs)
            else []
        )
        registers: dict[Expr, Symbol] = {}
        order: list[tuple[Symbol | Indexed, Expr]] = []
        for target, e in self.pairs:  # an element just computed is read from its register
            e = e.xreplace(registers)
            if any(other.has(target) for _, other in self.pairs):
                registers[target] = self.nests.new("x")
                order += [(registers[target], e), (target, registers[target])]
            else:
                order.append((target, e))
        common, bodies = sp.cse([e for _, e in order], symbols=iter(lambda: self.nests.new("x"), None), order="none")
        waiting = list(common)
        for (target, _), e in zip(order, bodies, strict=True):
            before = _parts_before(waiting, e)
            body += [nest.Set(name(symbol.name), self.printer.tree(part)) for symbol, part in waiting[:before]]
            waiting = waiting[before:]
            body.append(nest.Set(self.printer.tree(target), self.printer.tree(e)))
        return body


class _BlockPrinter(Printer):
    """vectors: {array: the vector of its memory}. place: the index of the axis."""

    def __init__(self, integers: set[str], vectors: dict[str, str], place: Symbol):
        super().__init__(integers)
        self.vectors, self.moving = vectors, place

    def element(self, e: Indexed) -> Tree:
        if base_name(e) not in self.vectors or not _is_strided(e, self.moving):
            return super().element(e)
        at: Tree = name(e.indices[0].name)
        for i, extent in zip(e.indices[1:], e.base.shape[1:], strict=True):
            at = added(ast.BinOp(at, ast.Mult(), whole(extent)), name(i.name))
        return element(self.vectors[base_name(e)], at)


def whole_product(shape: Iterable[Any]) -> Tree:
    """The number of elements of an array of this shape."""
    first, *others = map(whole, shape)
    for extent in others:
        first = ast.BinOp(first, ast.Mult(), extent)
    return first


def _part_of_work(slot: int) -> nest.Part:
    return nest.Part(nest.WORK, (number(slot),))


def _direct_arrays(op: str, e: Expr, i: Symbol) -> list[str] | None:
    """The names of the arrays where e is the element i of one array, or for a sum a product of two; else None."""
    factors = sp.Mul.make_args(e)
    if len(factors) > (2 if op == "sum" else 1) or not all(isinstance(f, Indexed) and f.indices == (i,) for f in factors):
        return None
    return [base_name(f) for f in factors]


def _is_strided(a: Indexed, i: Symbol) -> bool:
    """Whether a is an element of a matrix, or of more axes, and moves with i; no gathered one, and no neighbour."""
    return len(a.indices) > 1 and i in a.indices and all(isinstance(x, Symbol) for x in a.indices) and a.base.shape is not None


def _parts_before(common: list[tuple[Symbol, Expr]], e: Expr) -> int:
    """The number of common parts, in order, that must be computed before e."""
    last = 0
    for n, (symbol, _) in enumerate(common):
        if e.has(symbol):
            last = n + 1
    return last


def _at_place(e: Expr, i: Symbol, place: Symbol) -> Expr:
    """e with the index i of the block replaced by the index `place` of the axis, except in elements of views."""
    if isinstance(e, Indexed) and e.indices == (i,):
        return e
    if e == i:
        return place
    return e.func(*(_at_place(a, i, place) for a in e.args)) if e.args and e.has(i) else e

"""Loop nests of a Program, as Python text for numba."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import sympy as sp
from sympy import Expr, Indexed, IndexedBase, Symbol

from odesim.ir.program import Program, Statement
from odesim.symbolic.indices import base_name
from odesim.symbolic.reductions import free_indices
from odesim.targets.blocks import BLOCK, HERE, BlockLoop, FusedLoops
from odesim.targets.expressions import ScalarPrinter
from odesim.targets.loop_plan import integers_as_real
from odesim.targets.matrix_products import Product, find_product

UNIT_NAMES = ["one_", "zero_"]
UNITS = f"{', '.join(UNIT_NAMES)} = nb.int64(1), nb.int64(0)"
"""The line that a product's strides need."""


@dataclass(frozen=True)
class Start:
    """How the first pass computes the state block by block: its name ("": it is there), the lines for that; the block is HERE.

    fused: where given, the loop computes the state itself.
    """

    state: str = ""
    prologue: Sequence[str] = ()
    fused: FusedLoops | None = None


class Nests:
    """The lines of one kernel.

    sizes: names of integers beside the indices. double: arrays are float64, except the integer arrays named in whole.
    blas: large matrix products are left to BLAS. start: where the state comes from.
    """

    def __init__(
        self,
        program: Program,
        sizes: Iterable[str],
        *,
        double: bool = True,
        whole: Iterable[str] = (),
        blas: bool = False,
        start: Start | None = None,
    ):
        start = start or Start()
        self.state, self.prologue, self.fused = start.state, start.prologue, start.fused
        self._loops, self.blas = 0, blas
        self.uses_blas, self.products = False, list[tuple[Expr, ...]]()
        self.program, self.double = integers_as_real(program, set(whole)), double
        self.lines, self.passes = list[str](), list[list[str]]()
        self.scratch_blocks = 1  # in use at the same time
        self.printer = ScalarPrinter(set(sizes) | {i.name for i in program.extents})
        self._forms_state = self._has_products = False
        self._indices = set(program.extents)
        # new names are chosen among the free ones, so that a model may call its parameters t0, x1 or work_
        self._taken = self.printer.integers | set[str]().union(*(s.reads() | {s.name} for s in program.statements()))

    def emit(self) -> list[str]:
        """The lines of the kernel's body."""
        for n, group in enumerate(self.program.passes):
            self._forms_state, start = bool(self.state) and n == 0, len(self.lines)
            self._pass(group)
            self.passes.append(self.lines[start:])
        return self.lines

    def _put(self, depth: int, line: str) -> None:
        self.lines.append("    " * depth + line)

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
            count = self.text(sp.prod(lengths[:-2]))
            arrays = (base_name(first.body), first.name, base_name(first.via))
            self._put(1, f"invert({', '.join(f'vector({name}, 0)' for name in arrays)}, {count}, {self.text(lengths[-1])})")
        elif first.along is not None:
            self._partial_sums(first)
        elif len(first.loops) == 1 and (first.free or first.bound):
            self._line(group)
        elif not first.loops:
            self._numbers(group)
        elif first.bound is not None:
            (self._columns if self._is_by_columns(first) else self._rows)(first)
        else:
            self._map(first)

    # -- one index

    def _line(self, group: tuple[Statement, ...]) -> None:
        i = group[0].loops[0]
        extent = self.text(self.program.extents[i])
        group = tuple(self._renamed(s, i) for s in group)
        bodies = self._hoist([s.body for s in group], set(), 1)
        maps = [(s, e) for s, e in zip(group, bodies, strict=True) if s.op == "map"]
        folds = [(s, e) for s, e in zip(group, bodies, strict=True) if s.op != "map"]
        if not folds and not self._forms_state:
            self._put(1, f"for {i} in range({extent}):")
            targets = {s.target for s in group}
            # two statements of one pass may read each other at the same index only; cse over both would read a value before it is stored
            if any(e.has(target) for e in bodies for target in targets):  # one after another, so that each is stored before it is read
                for s, e in maps:
                    self._bodies(2, [(self._target(s), e)])
            else:
                self._bodies(2, [(self._target(s), e) for s, e in maps])
            return
        # blocks also where nothing is summed but the state is formed: 8 KiB of it stay in the first cache until they are used
        self._put(1, f"for lo_ in range(0, {extent}, {BLOCK}):")
        self._put(2, f"hi_ = min(lo_ + {BLOCK}, {extent})")
        for line in self.prologue if self._forms_state else ():
            self._put(2, line)
        self._block(2, i, maps, folds)
        for slot, (s, _) in enumerate(folds):
            self._put(1, f"{s.name} = tree_{s.op}(part_[{slot}], ({extent} + {BLOCK - 1}) // {BLOCK})")

    def _block(self, depth: int, i: Symbol, maps: list[tuple[Statement, Expr]], folds: list[tuple[Statement, Expr]]) -> None:
        """Writes the lines for elements lo..hi-1: maps are stored; summands go to scratch memory and are added up."""
        direct = [_direct_arrays(s.op, e, i) if self.double else None for s, e in folds]
        work = [(_scratch(slot)[i], e) for slot, (_, e) in enumerate(folds) if direct[slot] is None]
        self._block_loop(depth, i, [(s.target, e) for s, e in maps] + work)
        self.scratch_blocks = max(self.scratch_blocks, len(folds))
        for slot, (s, _) in enumerate(folds):
            of = [f"work_[{slot}]"] if direct[slot] is None else [self._slice(name) for name in direct[slot] or ()]
            op = "dot" if len(of) == 2 else s.op
            self._put(depth, f"part_[{slot}, lo_ // {BLOCK}] = block_{op}({', '.join(of)}, hi_ - lo_)")

    def _slice(self, name: str, lead: Sequence[str] = ()) -> str:
        """The text of a block of an array, or of the row that its first indices select."""
        if name.startswith("work_["):
            return name
        if self._forms_state and name == self.state:
            return HERE
        if not lead:
            return f"block({name}, lo_, hi_)"
        *first, row = lead
        return f"row_block({name}[{', '.join(first)}], {row}, lo_, hi_)" if first else f"row_block({name}, {row}, lo_, hi_)"

    def _block_loop(self, depth: int, i: Symbol, pairs: list[tuple[Indexed, Expr]]) -> None:
        """Writes a loop over one block."""
        if self._forms_state and self.fused is not None:
            for line in self.fused.loops(self._loop(i, pairs, IndexedBase(self.state, shape=(BLOCK,))[i])):
                self._put(depth, line)
        elif pairs:
            loop = self._loop(i, pairs)
            for line in loop.views:
                self._put(depth, line)
            self._put(depth, f"for {i} in range(hi_ - lo_):")
            for line in loop.body():
                self._put(depth + 1, line)

    def _loop(self, i: Symbol, pairs: list[tuple[Indexed, Expr]], state: Indexed | None = None) -> BlockLoop:
        self._loops += 1
        whole = {a: IndexedBase(self.state, shape=(BLOCK,))[i] for _, e in pairs for a in e.atoms(Indexed) if base_name(a) == self.state}
        moved = [(target, e.xreplace(whole)) for target, e in pairs] if state is not None else pairs
        return BlockLoop(i, moved, self._loops - 1, self._new, self.printer, self._slice, state)

    def _numbers(self, group: tuple[Statement, ...]) -> None:
        self._bodies(1, [(self._target(s), s.body) for s in group])

    # -- several indices

    def _open(self, loops: Iterable[Symbol], bodies: list[Expr]) -> tuple[int, list[Expr]]:
        """Writes the heads of loops over all indices, hoists what the inner ones do not change; returns (depth, remaining bodies)."""
        depth, known = 1, set[Symbol]()
        for i in loops:
            bodies = self._hoist(bodies, known, depth)
            self._put(depth, f"for {i} in range({self.text(self.program.extents[i])}):")
            depth, known = depth + 1, known | {i}
        return depth, bodies

    def _map(self, s: Statement) -> None:
        depth, (body,) = self._open(s.loops, [s.body])
        self._bodies(depth, [(self._target(s), body)])

    def _rows(self, s: Statement) -> None:
        assert s.bound is not None
        depth, (body,) = self._open(s.free, [s.body])
        (body,) = self._hoist([body], set(s.free), depth)
        extent = self.text(self.program.extents[s.bound])
        self._put(depth, f"for lo_ in range(0, {extent}, {BLOCK}):")
        self._put(depth + 1, f"hi_ = min(lo_ + {BLOCK}, {extent})")
        self._block_loop(depth + 1, s.bound, [(_scratch(0)[s.bound], body)])
        self._put(depth + 1, f"part_[0, lo_ // {BLOCK}] = block_{s.op}(work_[0], hi_ - lo_)")
        self._put(depth, f"{self._target(s)} = tree_{s.op}(part_[0], ({extent} + {BLOCK - 1}) // {BLOCK})")

    def _is_by_columns(self, s: Statement) -> bool:
        """Whether neighbours in memory belong to different sums or maxima, more often than to one. The fixed order of sums is by rows."""
        last = [a.indices[-1] for a in s.body.atoms(Indexed) if isinstance(a.indices[-1], Symbol)]
        return self.blas and self.double and last.count(s.free[-1]) > last.count(s.bound)

    def _columns(self, s: Statement) -> None:
        """Sums or maxima that are next to each other in memory, all together."""
        assert s.bound is not None
        self._put(1, f"{s.name}[...] = {'0.0' if s.op == 'sum' else 'float(' + repr('-inf') + ')'}")
        depth, (body,) = self._open((*s.free[:-1], s.bound, s.free[-1]), [s.body])
        if s.op == "sum":
            self._bodies(depth, [(self._target(s), body)], sign="+=")
        else:
            self._put(depth, f"{self._target(s)} = maximum({self._target(s)}, {self.printer.text(body)})")

    def _scatter(self, s: Statement) -> None:
        self._put(1, f"{s.name}[...] = 0.0")
        depth, (body,) = self._open(s.loops, [s.body])
        assert s.via is not None
        place = ", ".join([self.printer.subscript(s.via), *(i.name for i in s.free[1:])])
        self._bodies(depth, [(f"{s.name}[{place}]", body)], sign="+=")

    def _partial_sums(self, s: Statement) -> None:
        assert s.along is not None
        self._map(s)
        place, lengths = s.free.index(s.along), [self.program.extents[i] for i in s.free]
        shape = (sp.prod(lengths[:place]), lengths[place], sp.prod(lengths[place + 1 :]))
        word = "add_up" if s.op == "prefix" else "add_down"
        self._put(1, f"{word}(vector({s.name}, 0), {', '.join(map(self.text, shape))})")

    def _product(self, p: Product) -> None:
        if not self._has_products:
            self._put(1, UNITS)
            self._has_products = True
        for depth, i in enumerate(p.loops):
            self._put(depth + 1, f"for {i} in range({self.text(self.program.extents[i])}):")
        self._put(len(p.loops) + 1, p.call("blas_product(gemm_, " if self.blas else "product("))
        self.uses_blas |= self.blas
        self.products += [p.extents] * bool(self.blas and p.extents)

    # -- expressions

    def text(self, e: Any) -> str:
        """An extent or a scalar expression as text, with sizes as integers."""
        e = sp.sympify(e)
        if all(x.name in self.printer.integers for x in e.free_symbols if isinstance(x, Symbol)) and e.is_integer:
            return str(e)
        return self.printer.text(e)

    def _new(self, letter: str) -> Symbol:
        """A symbol with an unused name."""
        name = next(f"{letter}{n}" for n in count() if f"{letter}{n}" not in self._taken)
        self._taken.add(name)
        return Symbol(name, real=True)

    def _target(self, s: Statement) -> str:
        return self.printer.element(s.target) if isinstance(s.target, Indexed) else s.name

    def _renamed(self, s: Statement, i: Symbol) -> Statement:
        swap = {s.loops[0]: i}
        return replace(s, target=s.target.xreplace(swap), free=tuple(i for _ in s.free), body=s.body.xreplace(swap), bound=s.bound and i)

    def _bodies(self, depth: int, pairs: list[tuple[str, Expr]], sign: str = "=") -> None:
        """Writes assignments in the innermost loop, with common subexpressions named once."""
        # order="none": sympy's canonical order is slow for long expressions, and nobody reads these in it
        common, bodies = sp.cse([e for _, e in pairs], symbols=iter(lambda: self._new("x"), None), order="none")
        for symbol, e in common:
            self._put(depth, f"{symbol} = {self.printer.text(e)}")
        for (target, _), e in zip(pairs, bodies, strict=True):
            self._put(depth, f"{target} {sign} {self.printer.text(e)}")

    def _hoist(self, bodies: list[Expr], known: set[Symbol], depth: int) -> list[Expr]:
        """The bodies with parts that depend on no index outside `known` replaced by names, which are assigned before the loop.

        for i: d_v[i] = f[i]*a*b/r0  ->  t0 = a*b/r0; for i: d_v[i] = f[i]*t0
        """
        hoisted: dict[Expr, Symbol] = {}

        def name(e: Expr) -> Symbol:
            if e not in hoisted:
                hoisted[e] = self._new("t")
                self._put(depth, f"{hoisted[e]} = {self.printer.text(e)}")
            return hoisted[e]

        def fixed(e: Expr) -> bool:
            return not e.is_number and free_indices(e, self._indices) <= known

        def walk(e: Expr) -> Expr:
            if e.is_Symbol or e.is_number:
                return e
            if fixed(e):
                return name(e)
            # what a branch guards stays in it: hoisted, 1/x or log(x) would be computed where the condition says no
            if isinstance(e, Indexed | sp.KroneckerDelta | sp.Piecewise):
                return e
            if e.is_Mul or e.is_Add:
                inside = [a for a in e.args if fixed(a)]
                if len(inside) > 1:
                    return e.func(name(e.func(*inside)), *(walk(a) for a in e.args if a not in inside))
            return e.func(*map(walk, e.args))

        return [walk(e) for e in bodies]


def _scratch(slot: int) -> IndexedBase:
    """One block of scratch memory, as an array of symbols."""
    return IndexedBase(f"work_[{slot}]", shape=(BLOCK,))


def _direct_arrays(op: str, e: Expr, i: Symbol) -> list[str] | None:
    """The names of the arrays where e is the element i of one array, or for a sum a product of two; else None."""
    factors = sp.Mul.make_args(e)
    if len(factors) > (2 if op == "sum" else 1) or not all(isinstance(f, Indexed) and f.indices == (i,) for f in factors):
        return None
    return [base_name(f) for f in factors]

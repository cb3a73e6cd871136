"""A right-hand side written out for given sizes: its nests are run on symbols, and straight-line code remains.

for k in range(M): d_v[k] = mu[k] - v[k]  ->  x0 = mu_0 - v_0; x1 = mu_1 - v_1

Whole numbers are known here and vanish, with the loops, choices and views that they govern. Arithmetic of reals is left, in the
order of the nests, so that both give the same bits. Small systems are integrated many at a time by such code.
"""

import ast
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import product as iterate
from math import prod
from typing import Any

import numpy as np

from odesim.base.arrays import Array
from odesim.base.errors import CodegenError
from odesim.ir.program import Program
from odesim.ir.scalars import SIGNS, Code, Formulas, Operand, Operation, is_number, is_real, real_of
from odesim.ir.sizes import extents
from odesim.runtime.constants import LANES, LOST, SEQUENCE
from odesim.symbolic.system import System
from odesim.targets import nest
from odesim.targets.expressions import Tree
from odesim.targets.loop_plan import make_loop_plan
from odesim.targets.numba_text import LATE, Kernel, RightSide, Slice

MOST = 20_000
"""Operations: beyond it a system is too large to be written out."""
ZERO = "0.0"
WHOLE: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    **{ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv, ast.Pow: operator.pow},
    **{ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Eq: operator.eq, ast.NotEq: operator.ne},
}
"""Operations on whole numbers, which are places such as M**2 + M, where a state begins; they have no fractions."""
COMPARED = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)
Names = dict[str, Any]
"""{variable: a whole number, a View, or an operand}."""


@dataclass(frozen=True)
class View:
    """An array of operands or whole numbers, whose memory others may share. cast: the conversion of a value that is stored."""

    cells: Array
    cast: str = ""

    def place(self, index: tuple[int, ...]) -> tuple[int, ...]:
        """The index, if it is that of an element: numpy counts a negative one from the end."""
        if not all(0 <= i < n for i, n in zip(index, self.cells.shape, strict=True)):
            raise CodegenError(f"index {index} is out of range for {self.cells.shape}")
        return index

    def values(self) -> list[Any]:
        """All elements, in C order."""
        return list(self.cells.ravel())

    def part(self, start: int, shape: tuple[int, ...]) -> "View":
        """A contiguous part of the memory, reshaped."""
        return replace(self, cells=self.cells.reshape(-1)[start : start + prod(shape)].reshape(shape))

    def flat(self) -> "View":
        """The array as a vector."""
        return replace(self, cells=self.cells.reshape(-1))

    def row(self, r: int) -> "View":
        return replace(self, cells=self.cells[r])

    def stored(self, value: Operand) -> Operand:
        """A value as the cells hold it, after the cast."""
        return Operation(self.cast, (value,)) if self.cast else value


def make_view(cells: Sequence[Any], shape: tuple[int, ...], cast: str = "") -> View:
    """A view of these cells in C order."""
    return View(np.array(cells, object).reshape(shape), cast)


class Writer:
    """Straight-line code under construction: sums, products, inverses and maxima, each in the order of odesim.runtime.

    shifts: names of what has no derivatives: maxima over an axis, with all that these are made of, and the sizes of inverses.
    """

    def __init__(self) -> None:
        self.code: Code = {}
        self.shifts: set[str] = set()
        self._chains: dict[Operand, set[str]] = {}

    def named(self, value: Any) -> Any:
        """A value as an operand: a name or a number."""
        if not isinstance(value, Operation):
            return value
        # compiling more takes far longer than running it: loops with members as lanes serve such systems
        if len(self.code) >= MOST:
            raise CodegenError(f"written out the system has more than {MOST} operations")
        name = f"x{len(self.code)}"
        self.code[name] = value
        return name

    def keep(self, value: Any) -> None:
        """Records a maximum that has a derivative, with its arguments; it is not a shift of an exponential."""
        self.shifts -= self._chains.get(value, set())

    def put(self, view: View, place: int | tuple[int, ...], value: Operand) -> None:
        """Stores a value in a cell."""
        view.cells[place] = self.named(view.stored(value))

    # -- sums

    def sum(self, terms: Sequence[Operand]) -> Any:
        """The sum of the numbers of a block."""
        lanes = LANES if len(terms) > SEQUENCE else 1
        sums = [ZERO] * lanes
        for i, term in enumerate(terms):
            sums[i % lanes] = self._add(sums[i % lanes], term)
        return self.tree_sum(sums)

    def tree_sum(self, sums: list[Any]) -> Any:
        """The sum of numbers, the upper half added to the lower one again and again; they are used up."""
        while len(sums) > 1:
            half = (len(sums) + 1) // 2
            for k in range(len(sums) - half):
                sums[k] = self._add(sums[k], sums[k + half])
            sums = sums[:half]
        return sums[0]

    def multiply(self, arrays: Sequence[tuple[View, int]], steps: Sequence[int], shape: Sequence[int], add: int) -> None:
        """odesim.runtime.matrices.product: arrays with the place in each where its matrix begins."""
        out = arrays[0][0]
        c, a, b = (view.flat().cells for view, _ in arrays)
        to, left, right = (start for _, start in arrays)
        down, beside, a_down, along, below, b_beside = steps
        rows, depth, columns = shape
        for i, j in iterate(range(rows), range(columns)):
            place = to + i * down + j * beside
            total = c[place] if add else self.named(out.stored(ZERO))
            for k in range(depth):
                total = self._add(total, Operation("*", (a[left + i * a_down + k * along], b[right + k * below + j * b_beside])))
            c[place] = total

    def invert(self, a: View, x: View, matrix: View, count: int, n: int) -> None:
        """odesim.runtime.matrices.invert, with choices in the place of branches."""
        for start in range(0, count * n * n, n * n):
            self._invert_one(n, *(view.part(start, (n, n)) for view in (a, x, matrix)))

    def _invert_one(self, n: int, a: View, x: View, matrix: View) -> None:
        for r, k in iterate(range(n), range(n)):
            x.cells[r, k] = "1.0" if r == k else ZERO
        for c in range(n):
            for r in range(c + 1, n):
                sizes = [self.named(Operation("abs", (a.cells[row, c],))) for row in (r, c)]
                larger = Operation(">", (sizes[0], sizes[1]))
                for cells, k in iterate((a.cells, x.cells), range(n)):
                    below, above = cells[r, k], cells[c, k]
                    cells[r, k] = self.named(Operation("if", (larger, above, below)))
                    cells[c, k] = self.named(Operation("if", (larger, below, above)))
            pivot = a.cells[c, c]
            for k, view in iterate(range(n), (a, x)):
                self.put(view, (c, k), Operation("/", (view.cells[c, k], pivot)))
            for r in (r for r in range(n) if r != c):
                factor = a.cells[r, c]
                for k, view in iterate(range(n), (a, x)):
                    less = Operation("*", (factor, view.cells[c, k]))
                    self.put(view, (r, k), Operation("-", (view.cells[r, k], less)))
        if n > 1:
            self._refuse(x, matrix, n)

    def _refuse(self, x: View, matrix: View, n: int) -> None:
        """odesim.runtime.matrices.refuse_one."""

        def row(view: View, i: int) -> list[Any]:
            sizes = [self.named(Operation("abs", (cell,))) for cell in view.cells[i]]
            self.shifts.update(sizes)  # what is refused is so as a whole: no derivatives
            return sizes

        def dot(left: list[Any], right: list[Any]) -> Any:
            return reduce(self._add, (self.named(Operation("*", pair)) for pair in zip(left, right, strict=True)))

        def largest(values: list[Any]) -> Any:
            return reduce(lambda a, b: self._chained(self.named(Operation("maximum", (a, b))), a, b), values)

        sizes = [row(x, i) for i in range(n)]
        d = [largest(size) for size in sizes]
        u = [dot(row(matrix, i), d) for i in range(n)]
        worst = largest([self.named(Operation("/", (dot(size, u), at))) for size, at in zip(sizes, d, strict=True)])
        rest = self.named(x.stored(Operation("/", ("1.0", Operation("*", (repr(LOST), worst))))))
        above = self.named(x.stored(Operation("+", ("1.0", rest))))
        divisor = self.named(Operation("if", (Operation(">", (above, "1.0")), "1.0", ZERO)))
        for place in iterate(range(n), range(n)):
            self.put(x, place, Operation("/", (x.cells[place], divisor)))

    def partial_sums(self, a: View, downwards: bool, before: int, n: int, after: int) -> None:
        """odesim.runtime.sums.add_up or add_down."""
        places, step = (range(n - 2, -1, -1), 1) if downwards else (range(1, n), -1)
        lines = a.part(0, (before, n, after))
        for b, i, c in iterate(range(before), places, range(after)):
            self.put(lines, (b, i, c), Operation("+", (lines.cells[b, i, c], lines.cells[b, i + step, c])))

    def _add(self, a: Operand, b: Operand) -> Any:
        return self.named(Operation("+", (a, b)))

    # -- maxima

    def max(self, terms: Sequence[Any]) -> Any:
        """The maximum of the numbers of a block."""
        highest = self.tree_max(terms)
        return self._chained(self._add(highest, ZERO), highest)  # that of one element too

    def tree_max(self, tops: Sequence[Any]) -> Any:
        """The maximum of the maxima of all blocks."""
        top, *others = tops
        for value in others:
            top = self._chained(self.named(Operation("maximum", (top, value))), top, value)
        return top

    def _chained(self, top: str, *parts: str) -> str:
        """The maximum named `top`, with the names of its arguments, nested ones included."""
        self._chains[top] = {top}.union(*(self._chains.get(p, set()) for p in parts))
        self.shifts.add(top)
        return top


class Interpreter:
    """Runs nests on integers and views of symbolic reals, by their names in `at`; writer.code: the straight-line code that remains.

    values: names of maxima over an axis that have a derivative. state: what is formed at the start of each block, as it is.
    """

    def __init__(self, at: Names, values: frozenset[str], state: View) -> None:
        self.at, self.values, self.state = at, values, state
        self.writer = Writer()

    def run(self, nodes: Iterable[nest.Node]) -> None:
        """Runs nodes; views change in place. Raises CodegenError for what has no straight-line form."""
        for node in nodes:
            self._node(node)

    def _node(self, node: nest.Node) -> None:
        writer, value = self.writer, self.value
        match node:
            case nest.Set(target, e, add):
                result = value(e)
                self._set(target, Operation("+", (real_of(value(target)), real_of(result))) if add else result)
            case nest.Loop(index, extent, body):
                for k in range(value(extent)):
                    self.at[index] = k
                    self.run(body)
            case nest.Blocks(extent):
                length = value(extent)
                for low in range(0, length, nest.BLOCK):
                    self._block(node, low, min(low + nest.BLOCK, length))
            case nest.Total(target, op, slot, extent):
                parts = self.at["part_"].row(slot).values()[: (value(extent) + nest.BLOCK - 1) // nest.BLOCK]
                self._set(target, writer.tree_max(parts) if op == "max" else writer.tree_sum(parts))
            case nest.Fill(array, e):
                view, filling = value(array), real_of(value(e))
                for place in np.ndindex(view.cells.shape):
                    writer.put(view, place, filling)
            case nest.Multiply(arrays, steps, shape, add):
                vectors = [(self.at[array], value(start)) for array, start in arrays]
                writer.multiply(vectors, [*map(value, steps)], [*map(value, shape)], value(add))
            case nest.Inverse(matrices, result, copy, count, n):
                a, x, original = (self.at[array].flat() for array in (matrices, result, copy))
                writer.invert(a, x, original, value(count), value(n))
            case nest.PartialSums(array, downwards, before, n, after):
                writer.partial_sums(self.at[array], downwards, *map(value, (before, n, after)))

    def _block(self, node: nest.Blocks, low: int, high: int) -> None:
        self.at[nest.LOW] = low
        if node.forms:
            self.at[nest.HERE] = self.state.part(low, (high - low,))
            if node.elements is not None and node.elements.value:  # a fused loop stores the state before it uses it, and so rounds it
                cells = [self.writer.named(self.state.stored(x)) for x in self.at[nest.HERE].values()]
                self.at[nest.HERE] = make_view(cells, (high - low,))
        for view in node.views:
            self.at[view.name] = self._part(view.part, low, high) if view.length is None else self.at[view.part.array].flat()
        if node.elements is not None:
            self._elements(node.elements, high - low)
        for fold in node.folds:
            values = [self._part(part, low, high).values()[: high - low] for part in fold.of]
            terms = values[0] if len(values) == 1 else [Operation("*", pair) for pair in zip(*values, strict=True)]
            part = self.at["part_"]
            total = self.writer.max(terms) if fold.op == "max" else self.writer.sum(terms)
            self.writer.put(part, part.place((fold.slot, low // nest.BLOCK)), total)

    def _elements(self, loop: nest.Elements, length: int) -> None:
        for i in range(length):
            self.at[loop.index] = i
            if loop.value:
                self.at[loop.value] = self.at[nest.HERE].values()[i]
            self.run(loop.body)

    def _part(self, part: nest.Part, low: int, high: int) -> View:
        """The block of an array, or of a row of it."""
        view = reduce(View.row, map(self.value, part.row), self.at[part.array])
        return view if part.array in (nest.HERE, nest.WORK) else view.part(low, (high - low,))

    def _set(self, target: Tree, value: Any) -> None:
        array = target.value if isinstance(target, ast.Subscript) else target
        if isinstance(array, ast.Name) and array.id in self.values:
            self.writer.keep(value)
        match target:
            case ast.Name(id=name):
                self.at[name] = self.writer.named(value)
            case ast.Subscript(value=array, slice=index):
                view = self.value(array)
                self.writer.put(view, view.place(self._index(index)), real_of(value))

    # -- expressions

    def _index(self, index: Tree) -> tuple[int, ...]:
        return tuple(map(self.value, index.elts)) if isinstance(index, ast.Tuple) else (self.value(index),)

    def value(self, e: Tree) -> Any:
        """A whole number, a View, or an operand."""
        match e:
            case ast.Name(id=name):
                return self.at[name]
            case ast.Constant(value=x):
                return repr(x) if isinstance(x, float) else x
            case ast.BinOp(left=a, op=op, right=b) | ast.Compare(left=a, ops=[op], comparators=[b]):
                return self._operate(type(op), self.value(a), self.value(b))
            case ast.Subscript(value=array, slice=index):
                view = self.value(array)
                return view.cells[view.place(self._index(index))]
            case ast.UnaryOp(operand=a):
                value = self.value(a)
                return Operation("-", (value,)) if is_real(value) else -value
            case ast.BoolOp(op=op, values=parts):
                return self._joined(isinstance(op, ast.Or), [self.value(p) for p in parts])
            case ast.IfExp(test=test, body=yes, orelse=no):
                holds = self.value(test)
                if not is_real(holds):
                    return self.value(yes if holds else no)
                return Operation("if", (holds, *(self.writer.named(real_of(self.value(part))) for part in (yes, no))))
            case ast.Call(func=ast.Name(id=name), args=arguments):
                return self._call(name, [*map(self.value, arguments)])
        raise CodegenError(f"no straight-line form of: {ast.unparse(e)[:60]}")

    @staticmethod
    def _joined(either: bool, parts: list[Any]) -> Any:
        """Whether either of the parts, or all, hold: without those that are decided, or decided by one of them."""
        if any(bool(part) == either for part in parts if not is_real(part)):
            return either
        left = tuple(part for part in parts if is_real(part))
        return Operation("or" if either else "and", left) if len(left) > 1 else left[0] if left else not either

    @staticmethod
    def _operate(kind: type[ast.AST], a: Any, b: Any) -> Any:
        if kind in COMPARED and is_number(a) and is_number(b):
            return WHOLE[kind](float(a), float(b))  # of indices: no condition that a run, or who reads the text, has to decide
        real = is_real(a) or is_real(b)
        if kind not in (SIGNS if real else WHOLE):
            raise CodegenError(f"no straight-line form of {kind.__name__} of {'reals' if real else 'whole numbers'}")
        return Operation(SIGNS[kind], (real_of(a), real_of(b))) if real else WHOLE[kind](a, b)

    @staticmethod
    def _call(name: str, arguments: list[Any]) -> Any:
        match name, arguments:
            case "float", [x]:
                return repr(float(x))
            case "wrap", [i, n]:
                return i % n
            case "clip", [i, n]:
                return max(0, min(i, n - 1))
            case "on_axis", [i, n]:
                return 0 <= i < n
        return Operation(name, tuple(str(a) if isinstance(a, int) else real_of(a) for a in arguments))


def write_out(system: System, program: Program, sizes: Mapping[str, int], whole: Mapping[str, Any], dtype: str = "float64") -> Formulas:
    """The right-hand side as straight-line code, as in strict mode. whole: the values of integer parameters.

    Raises CodegenError where the system is too large.
    """
    form = make_loop_plan(system, program, strict=True)
    formulas = _written(RightSide(system, form, dtype), sizes, whole, dtype, _states(system, sizes))
    return replace(formulas, late=LATE if form.local else 0)


def write_values(system: System, program: Program, sizes: Mapping[str, int], whole: Mapping[str, Any], dtype: str = "float64") -> Formulas:
    """The outputs of a program of expressions as straight-line code, with the operations of its kernel in the same order."""
    return _written(Kernel("values", system, program, dtype), sizes, whole, dtype)


def _states(system: System, sizes: Mapping[str, int]) -> int:
    return sum(prod(extents(shape, sizes)) for shape in system.shapes.values())


def _written(kernel: Kernel, sizes: Mapping[str, int], whole: Mapping[str, Any], dtype: str, longest: int = 1) -> Formulas:
    """The straight-line code of a kernel. longest: the least length of the longest axis, whose blocks are added in the kernel's order."""
    cast, wide = ("", "") if dtype == "float64" else (dtype, "float64")
    blocks = -(-max([longest, *extents(tuple(kernel.program.extents.values()), sizes)]) // nest.BLOCK)
    n, total = _states(kernel.system, sizes), sum(prod(extents(shape, sizes)) for _, shape in kernel.outputs())
    if max(n, total) > MOST:
        raise CodegenError(f"written out the system has more than {MOST} operations")
    at: Names = dict(sizes)
    values, count_, doubles = {}, 0, set[int]()
    for p in kernel.system.params:
        shape = extents(p.shape, sizes)
        size = prod(shape)
        if p.integer:
            cells: list[Any] = [int(x) for x in whole[p.name].ravel()] if shape else [int(whole[p.name])]
        else:
            values[p.name] = count_
            cells = [f"p{count_ + k}" for k in range(size)]
            doubles |= set() if shape else {count_}
            count_ += size
        at[p.name] = make_view(cells, shape) if shape else cells[0]
    state, out = make_view([f"y{k}" for k in range(n)], (n,), cast=cast), make_view([ZERO] * total, (total,), cast=cast)
    slots, temporaries = kernel.nests.scratch_blocks, {name: extents(shape, sizes) for name, shape in kernel.temporaries.items()}
    at |= {name: make_view([ZERO] * prod(shape), shape, cast=cast) for name, shape in temporaries.items()}
    at |= {"t": "t", "y_": state, "out_": out}
    at |= {
        place: make_view([ZERO] * slots * width, (slots, width), cast=wide) for place, width in ((nest.WORK, nest.BLOCK), ("part_", blocks))
    }
    slopes = frozenset(s.name for s in kernel.nests.program.statements() if s.slopes)
    run = Interpreter(at, slopes, state)
    for part in kernel.parts():
        at[part.name] = _sliced(run, part)
    run.run(node for nodes in kernel.nests.passes for node in nodes)
    run.run(kernel.stores())
    writer = run.writer
    outputs = tuple(str(real_of(writer.named(v))) for v in out.values())
    return Formulas(writer.code, outputs, n, values, count_, dtype, frozenset(doubles), shifts=frozenset(writer.shifts))


def _sliced(run: Interpreter, part: Slice) -> Any:
    """A part of the flat state or output: a view, or one number."""
    flat, start = run.at[part.of], run.value(part.start)
    return flat.part(start, tuple(map(run.value, part.shape))) if part.shape else flat.cells[start]

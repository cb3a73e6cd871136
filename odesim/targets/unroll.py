"""A right-hand side written out for given sizes: its kernel is run on symbols, and straight-line code remains.

for k in range(M): d_v[k] = mu[k] - v[k]  ->  x0 = mu_0 - v_0; x1 = mu_1 - v_1

Whole numbers are known here and vanish, with the loops, choices and views that they govern. Arithmetic of reals is left, in the
order of the kernel, so that both give the same bits: that is why the kernel's text is interpreted, and no second printer writes the same.
Small systems are integrated many at a time by such code.
"""

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import product as iterate
from math import prod
from typing import Any

from odesim.base.errors import CodegenError
from odesim.base.parsing import parse
from odesim.ir.program import Program
from odesim.ir.scalars import SIGNS, Code, Formulas, Operand, Operation, is_real, real_of
from odesim.ir.sizes import extents
from odesim.runtime.constants import LANES, LOST, SEQUENCE
from odesim.symbolic.system import System
from odesim.targets.blocks import BLOCK, LATE
from odesim.targets.loop_plan import make_loop_plan
from odesim.targets.numba_text import ROWS, Kernel, RightSide

MOST = 20_000
"""Operations: beyond it a system is too large to be written out."""
ZERO = "0.0"
WHOLE: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    **{ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv, ast.Pow: operator.pow},
    **{ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Eq: operator.eq, ast.NotEq: operator.ne},
}
"""Operations on whole numbers, which are places such as M**2 + M, where a state begins; they have no fractions."""
Names = dict[str, Any]
"""{variable: a whole number, a View, or an operand}."""


@dataclass(frozen=True)
class View:
    """A strided array view of cells: cells[start + i*stride + ...]. cast: the conversion of a value that is stored."""

    cells: list[Any]
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    start: int = 0
    cast: str = ""

    def place(self, index: Sequence[int]) -> int:
        """The position of an element among the cells."""
        if not all(0 <= i < n for i, n in zip(index, self.shape, strict=True)):
            raise CodegenError(f"index {tuple(index)} is out of range for {self.shape}")
        return self.start + sum(i * s for i, s in zip(index, self.strides, strict=True))

    def places(self) -> list[int]:
        """The positions of all elements, in C order."""
        places = [self.start]
        for n, stride in zip(self.shape, self.strides, strict=True):
            places = [p + i * stride for p in places for i in range(n)]
        return places

    def values(self) -> list[Any]:
        return [self.cells[place] for place in self.places()]

    def part(self, start: int, shape: tuple[int, ...]) -> "View":
        """A contiguous part of a vector, reshaped."""
        return make_view(self.cells, shape, self.start + start, self.cast)

    def row(self, r: int) -> "View":
        return replace(self, shape=self.shape[1:], strides=self.strides[1:], start=self.start + r * self.strides[0])

    def turned(self) -> "View":
        return replace(self, shape=self.shape[::-1], strides=self.strides[::-1])

    def stored(self, value: Operand) -> Operand:
        """A value as the cells hold it, after the cast."""
        return Operation(self.cast, (value,)) if self.cast else value


def make_view(cells: list[Any], shape: tuple[int, ...], start: int = 0, cast: str = "") -> View:
    """A view of all cells in C order."""
    strides = tuple(prod(shape[d + 1 :]) for d in range(len(shape)))
    return View(cells, shape, strides, start, cast)


class Calls:
    """The runtime's functions, each of which appends its operations to the code.

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

    # -- parts of arrays

    def block(self, a: View, low: int, high: int) -> View:
        return a.part(low, (high - low,))

    def row_block(self, a: View, row: int, low: int, high: int) -> View:
        return a.row(row).part(low, (high - low,))

    def part_of(self, a: View, start: int, shape: tuple[int, ...]) -> View:
        return a.part(start, shape)

    def load(self, loop: int, a: View, i: int) -> Any:
        return a.cells[a.place((i,))]

    def reload(self, loop: int, q: int, a: View, i: int) -> Any:
        return self.load(loop, a, i)

    def store(self, loop: int, q: int, a: View, i: int, x: Any) -> None:
        a.cells[a.place((i,))] = self.named(a.stored(real_of(x)))

    # -- places on an axis

    def wrap(self, i: int, n: int) -> int:
        return i % n

    def clip(self, i: int, n: int) -> int:
        return max(0, min(i, n - 1))

    def on_axis(self, i: int, n: int) -> bool:
        return 0 <= i < n

    # -- the state of a stage, which is formed outside

    def split_terms(self, coef: Any, ns: int, early: Any, late: Any, amounts: Any) -> tuple[int, bool]:
        assert ns == 0
        return 0, False

    def combine_block(self, y: View, k: Any, rows: Any, coef: Any, ns: int, low: int, high: int, out: View) -> None:
        assert ns == 0
        for i in range(high - low):
            out.cells[out.place((i,))] = y.cells[y.place((low + i,))]

    # -- sums

    def block_sum(self, a: View, n: int) -> Any:
        return self._sum(a.values()[:n])

    def block_dot(self, a: View, b: View, n: int) -> Any:
        return self._sum([Operation("*", pair) for pair in zip(a.values()[:n], b.values()[:n], strict=True)])

    def tree_sum(self, part: View, width: int) -> Any:
        sums = part.values()[:width]
        while len(sums) > 1:
            half = (len(sums) + 1) // 2
            for k in range(len(sums) - half):
                sums[k] = self._add(sums[k], sums[k + half])
            sums = sums[:half]
        return sums[0]

    def vector(self, a: View, start: int) -> View:
        return a.part(start, (prod(a.shape) - start,))

    def product(self, out: View, a: View, b: View, steps: tuple[int, ...], shape: tuple[int, int, int], add: int) -> None:
        down, beside, a_down, along, below, b_beside = steps
        rows, depth, columns = shape
        for i, j in iterate(range(rows), range(columns)):
            place = out.place((i * down + j * beside,))
            total = out.cells[place] if add else self.named(out.stored(ZERO))
            for k in range(depth):
                factors = a.cells[a.place((i * a_down + k * along,))], b.cells[b.place((k * below + j * b_beside,))]
                total = self._add(total, Operation("*", factors))
            out.cells[place] = total

    def invert(self, a: View, x: View, matrix: View, count: int, n: int) -> None:
        """odesim.runtime.matrices.invert, with choices in the place of branches."""
        for start in range(0, count * n * n, n * n):

            def cell(view: View, r: int, k: int, start: int = start) -> int:
                return view.place((start + r * n + k,))

            def put(view: View, place: int, value: Operation) -> None:
                view.cells[place] = self.named(view.stored(value))

            for r, k in iterate(range(n), range(n)):
                x.cells[cell(x, r, k)] = "1.0" if r == k else ZERO
            for c in range(n):
                for r in range(c + 1, n):
                    sizes = [self.named(Operation("abs", (a.cells[cell(a, row, c)],))) for row in (r, c)]
                    larger = Operation(">", (sizes[0], sizes[1]))
                    for view, k in iterate((a, x), range(n)):
                        low, high = cell(view, r, k), cell(view, c, k)
                        below, above = view.cells[low], view.cells[high]
                        view.cells[low] = self.named(Operation("if", (larger, above, below)))
                        view.cells[high] = self.named(Operation("if", (larger, below, above)))
                pivot = a.cells[cell(a, c, c)]
                for k, view in iterate(range(n), (a, x)):
                    put(view, cell(view, c, k), Operation("/", (view.cells[cell(view, c, k)], pivot)))
                for r in (r for r in range(n) if r != c):
                    factor = a.cells[cell(a, r, c)]
                    for k, view in iterate(range(n), (a, x)):
                        less = Operation("*", (factor, view.cells[cell(view, c, k)]))
                        put(view, cell(view, r, k), Operation("-", (view.cells[cell(view, r, k)], less)))
            if n > 1:
                self._refuse(x, matrix, start, n)

    def _refuse(self, x: View, matrix: View, start: int, n: int) -> None:
        """odesim.runtime.matrices.refuse_one."""

        def row(view: View, i: int) -> list[Any]:
            sizes = [self.named(Operation("abs", (view.cells[view.place((start + i * n + k,))],))) for k in range(n)]
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
        for k in range(n * n):
            place = x.place((start + k,))
            x.cells[place] = self.named(x.stored(Operation("/", (x.cells[place], divisor))))

    def add_up(self, a: View, before: int, n: int, after: int) -> None:
        self._partial_sums(a, before, after, range(1, n), n, -1)

    def add_down(self, a: View, before: int, n: int, after: int) -> None:
        self._partial_sums(a, before, after, range(n - 2, -1, -1), n, 1)

    def _partial_sums(self, a: View, before: int, after: int, places: Sequence[int], n: int, step: int) -> None:
        for b, i, c in iterate(range(before), places, range(after)):
            here, beside = (a.place(((b * n + k) * after + c,)) for k in (i, i + step))
            a.cells[here] = self.named(a.stored(Operation("+", (a.cells[here], a.cells[beside]))))

    def _sum(self, terms: Sequence[Operand]) -> Any:
        """The sum of operands in the order of odesim.runtime.sums."""
        lanes = LANES if len(terms) > SEQUENCE else 1
        sums = [ZERO] * lanes
        for i, term in enumerate(terms):
            sums[i % lanes] = self._add(sums[i % lanes], term)
        while len(sums) > 1:
            half = len(sums) // 2
            sums = [self._add(a, b) for a, b in zip(sums[:half], sums[half:], strict=True)]
        return sums[0]

    def _add(self, a: Operand, b: Operand) -> Any:
        return self.named(Operation("+", (a, b)))

    # -- maxima

    def block_max(self, a: View, n: int) -> Any:
        highest = self.tree_max(a, n)
        return self._chained(self._add(highest, ZERO), highest)  # that of one element too

    def tree_max(self, part: View, width: int) -> Any:
        top, *others = part.values()[:width]
        for value in others:
            top = self._chained(self.named(Operation("maximum", (top, value))), top, value)
        return top

    def _chained(self, top: str, *parts: str) -> str:
        """The maximum named `top`, with the names of its arguments, nested ones included."""
        self._chains[top] = {top}.union(*(self._chains.get(p, set()) for p in parts))
        self.shifts.add(top)
        return top


class Interpreter:
    """Runs kernels of a module on integers and views of symbolic reals; calls.code: the straight-line code that remains.

    values: names of maxima over an axis that have a derivative.
    """

    def __init__(self, source: str, values: frozenset[str] = frozenset()) -> None:
        self.functions = {node.name: node for node in parse(source).body if isinstance(node, ast.FunctionDef)}
        self.calls = Calls()
        self.values = values

    def run(self, name: str, arguments: Mapping[str, Any]) -> None:
        """Runs the kernel of this name; views change in place. Raises CodegenError for what has no straight-line form."""
        function = self.functions[name]
        self._block(function.body, {a.arg: arguments[a.arg] for a in function.args.args})

    # -- statements

    def _block(self, body: list[ast.stmt], env: Names) -> None:
        for node in body:
            match node:
                case ast.Assign(targets=[target], value=value):
                    self._assign(target, self._value(value, env), env)
                case ast.AugAssign(target=target, op=op, value=value):
                    self._assign(target, self._operate(op, self._value(target, env), self._value(value, env)), env)
                case ast.For(target=ast.Name(id=i), iter=ast.Call(func=ast.Name(id="range"), args=bounds)):
                    for k in range(*(self._value(b, env) for b in bounds)):
                        env[i] = k
                        self._block(node.body, env)
                case ast.If(test=test, body=yes, orelse=no):
                    self._block(yes if self._value(test, env) else no, env)
                case ast.Expr(value=ast.Call() as call):
                    self._value(call, env)
                case _:
                    raise _refused(node)

    def _assign(self, target: ast.expr, value: Any, env: Names) -> None:
        array = target.value if isinstance(target, ast.Subscript) else target
        if isinstance(array, ast.Name) and array.id in self.values:
            self.calls.keep(value)
        match target:
            case ast.Name(id=name):
                env[name] = self.calls.named(value)
            case ast.Tuple(elts=parts):
                for part, v in zip(parts, value, strict=True):
                    self._assign(part, v, env)
            case ast.Subscript(value=array, slice=index):
                view = self._value(array, env)
                whole = isinstance(index, ast.Constant) and index.value is ...
                for place in view.places() if whole else [view.place(self._index(index, env))]:
                    view.cells[place] = self.calls.named(view.stored(real_of(value)))
            case _:
                raise _refused(target)

    # -- expressions

    def _index(self, node: ast.expr, env: Names) -> tuple[int, ...]:
        value = self._value(node, env)
        return value if isinstance(value, tuple) else (value,)

    def _value(self, node: ast.expr, env: Names) -> Any:
        match node:
            case ast.Constant(value=x):
                return repr(x) if isinstance(x, float) else x
            case ast.Name(id=name):
                return env[name]
            case ast.Tuple(elts=parts):
                return tuple(self._value(p, env) for p in parts)
            case ast.BinOp(left=a, op=op, right=b) | ast.Compare(left=a, ops=[op], comparators=[b]):
                return self._operate(op, self._value(a, env), self._value(b, env))
            case ast.UnaryOp(op=ast.USub(), operand=a):
                value = self._value(a, env)
                return Operation("-", (value,)) if is_real(value) else -value
            case ast.BoolOp(op=op, values=parts):
                return Operation(SIGNS[type(op)], tuple(real_of(self._value(p, env)) for p in parts))
            case ast.IfExp(test=test, body=yes, orelse=no):
                return self._choose(self._value(test, env), yes, no, env)
            case ast.Subscript(value=array, slice=index):
                view, at = self._value(array, env), self._index(index, env)
                return reduce(View.row, at, view) if len(at) < len(view.shape) else view.cells[view.place(at)]
            case ast.Attribute(value=array, attr="T"):
                return self._value(array, env).turned()
            case ast.Call(func=ast.Attribute(attr="int64"), args=[a]):
                return self._value(a, env)
            case ast.Call(func=ast.Name(id=name), args=args):
                return self._call(name, [self._value(a, env) for a in args])
        raise _refused(node)

    def _operate(self, op: ast.AST, a: Any, b: Any) -> Any:
        kind, real = type(op), is_real(a) or is_real(b)
        if kind not in (SIGNS if real else WHOLE):
            raise CodegenError(f"no straight-line form of {kind.__name__} of {'reals' if real else 'whole numbers'}")
        return Operation(SIGNS[kind], (real_of(a), real_of(b))) if real else WHOLE[kind](a, b)

    def _choose(self, test: Any, yes: ast.expr, no: ast.expr, env: Names) -> Any:
        if not is_real(test):
            return self._value(yes if test else no, env)
        return Operation("if", (test, *(self.calls.named(real_of(self._value(part, env))) for part in (yes, no))))

    def _call(self, name: str, args: list[Any]) -> Any:
        if name in self.functions:
            self.run(name, dict(zip((a.arg for a in self.functions[name].args.args), args, strict=True)))
            return None
        if name == "float":
            return repr(float(*args))
        if name == "min":
            return min(args)
        if hasattr(self.calls, name):
            return getattr(self.calls, name)(*args)
        return Operation(name, tuple(str(a) if isinstance(a, int) else real_of(a) for a in args))


def _refused(node: ast.AST) -> CodegenError:
    return CodegenError(f"no straight-line form of: {ast.unparse(node)[:60]}")


def write_out(system: System, program: Program, sizes: Mapping[str, int], whole: Mapping[str, Any], dtype: str = "float64") -> Formulas:
    """The right-hand side as straight-line code, as in strict mode. whole: the values of integer parameters.

    Raises CodegenError where the system is too large.
    """
    form = make_loop_plan(system, program, strict=True)
    kernel = RightSide(system, form, dtype)
    # as many blocks as the kernel would have, so that sums are added in the kernel's order
    blocks = -(-max([_states(system, sizes), *extents(tuple(program.extents.values()), sizes)]) // BLOCK)
    formulas = _written(
        kernel,
        sizes,
        whole,
        blocks,
        lambda n, state: {
            **{"x_": make_view([*state], (n,))},
            **{"k_": make_view([ZERO] * ROWS * n, (ROWS, n)), "rows_": make_view([0] * ROWS, (ROWS,)), "coef_": None, "ns_": 0},
            **{"keep_": 1, "early_": None, "late_": make_view([0] * LATE, (LATE,)), "amounts_": make_view([ZERO] * LATE, (LATE,))},
            **{"base_": make_view([ZERO] * BLOCK, (BLOCK,))},
        },
        dtype,
    )
    return replace(formulas, late=LATE if form.local else 0)


def write_values(system: System, program: Program, sizes: Mapping[str, int], whole: Mapping[str, Any], dtype: str = "float64") -> Formulas:
    """The outputs of a program of expressions as straight-line code, with the operations of its kernel in the same order."""
    blocks = -(-max([1, *extents(tuple(program.extents.values()), sizes)]) // BLOCK)
    return _written(Kernel("values", system, program, dtype), sizes, whole, blocks, lambda n, state: {}, dtype)


def _states(system: System, sizes: Mapping[str, int]) -> int:
    return sum(prod(extents(shape, sizes)) for shape in system.shapes.values())


def _written(
    kernel: Kernel,
    sizes: Mapping[str, int],
    whole: Mapping[str, Any],
    blocks: int,
    more: Callable[[int, list[str]], dict[str, Any]],
    dtype: str = "float64",
) -> Formulas:
    """The straight-line code of a kernel. more: arguments beyond those of every kernel, for n states."""
    cast, wide = ("", "") if dtype == "float64" else (dtype, "float64")
    run = Interpreter(f"{kernel.definition()}\n", frozenset(s.name for s in kernel.nests.program.statements() if s.slopes))
    n, total = _states(kernel.system, sizes), sum(prod(extents(shape, sizes)) for _, shape in kernel.outputs())
    if max(n, total) > MOST:
        raise CodegenError(f"written out the system has more than {MOST} operations")
    values, arguments, count_, doubles = {}, dict[str, Any](), 0, set[int]()
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
        arguments[p.name] = make_view(cells, shape) if shape else cells[0]
    state = [f"y{k}" for k in range(n)]
    out = make_view([ZERO] * total, (total,), cast=cast)
    slots = kernel.nests.scratch_blocks
    temporaries = {name: extents(shape, sizes) for name, shape in kernel.temporaries.items()}
    env = {
        **sizes,
        **arguments,
        **{name: make_view([ZERO] * prod(shape), shape, cast=cast) for name, shape in temporaries.items()},
        **{"t": "t", "y_": make_view([*state], (n,), cast=cast), "out_": out},
        **{"work_": make_view([ZERO] * slots * BLOCK, (slots, BLOCK), cast=wide)},
        **{"part_": make_view([ZERO] * slots * blocks, (slots, blocks), cast=wide)},
        **more(n, state),
    }
    run.run(kernel.name, env)
    outputs = tuple(str(real_of(run.calls.named(v))) for v in out.values())
    return Formulas(run.calls.code, outputs, n, values, count_, dtype, frozenset(doubles), shifts=frozenset(run.calls.shifts))

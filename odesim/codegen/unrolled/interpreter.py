"""A generated kernel without its loops: straight-line text for given sizes, operation by operation what the kernel does.

for k in range(M): d_v[k] = mu[k] - v[k]  ->  x0 = mu_0 - v_0; x1 = mu_1 - v_1

Whole numbers are known here and vanish, with the loops, choices and views that they govern; what is left is arithmetic of
reals in the order of the kernel, so that both give the same bits. Small systems are integrated many at a time by such text.
"""

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import count
from math import prod
from typing import Any

from odesim.codegen.runtime.reduce import LANES, SEQUENCE
from odesim.errors import CodegenError

MOST = 20_000
"""Lines: beyond it a system is too large to be written out."""


@dataclass(frozen=True)
class RealText:
    """A real number as text; atom: a name or a number."""

    text: str
    atom: bool = True


ZERO = RealText("0.0")


@dataclass(frozen=True)
class View:
    """A part of memory: cells[start + i*stride + ...] for each place of its shape. cast: what a value becomes when it is stored."""

    cells: list[Any]
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    start: int = 0
    cast: str = ""

    def place(self, index: Sequence[int]) -> int:
        """Where an element lies among the cells."""
        if not all(0 <= i < n for i, n in zip(index, self.shape, strict=True)):
            raise CodegenError(f"index {tuple(index)} is out of range for {self.shape}")
        return self.start + sum(i * s for i, s in zip(index, self.strides, strict=True))

    def part(self, start: int, shape: tuple[int, ...]) -> "View":
        """A contiguous part of a vector, as an array of this shape."""
        return make_view(self.cells, shape, self.start + start, self.cast)

    def row(self, r: int) -> "View":
        return replace(self, shape=self.shape[1:], strides=self.strides[1:], start=self.start + r * self.strides[0])

    def stored(self, value: RealText) -> RealText:
        """The value as the cells hold it."""
        return RealText(f"{self.cast}({value.text})", False) if self.cast else value

    def values(self) -> list[Any]:
        """The cells of a vector."""
        return [self.cells[self.place((i,))] for i in range(self.shape[0])]


def make_view(cells: list[Any], shape: tuple[int, ...], start: int = 0, cast: str = "") -> View:
    """cells in C order."""
    strides = tuple(prod(shape[d + 1 :]) for d in range(len(shape)))
    return View(cells, shape, strides, start, cast)


class Straight:
    """Runs kernels of a module on whole numbers and views of named reals; lines: what is left to compute.

    values: names of maxima over an axis that have a derivative. shifts: lines that hold the others, which cancel.
    """

    def __init__(self, source: str, values: frozenset[str] = frozenset()) -> None:
        tree = ast.parse(source)
        self.functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
        self.lines: list[str] = []
        self.values = values
        self.shifts: set[str] = set()
        self._chains: dict[str, set[str]] = {}
        self._names = count()

    def run(self, name: str, arguments: Mapping[str, Any]) -> None:
        """The kernel of that name on these arguments, views changed in place. Raises CodegenError for what cannot be written out."""
        function = self.functions[name]
        self._block(function.body, {a.arg: arguments[a.arg] for a in function.args.args})

    def named(self, value: Any) -> Any:
        """value as a name or a number."""
        if not isinstance(value, RealText) or value.atom:
            return value
        if len(self.lines) >= MOST:
            raise CodegenError(f"written out the system has more than {MOST} operations")
        name = f"x{next(self._names)}"
        self.lines.append(f"{name} = {value.text}")
        return RealText(name)

    # -- statements

    def _block(self, body: list[ast.stmt], env: dict[str, Any]) -> None:
        for node in body:
            match node:
                case ast.Assign(targets=[target], value=value):
                    self._assign(target, self._value(value, env), env)
                case ast.AugAssign(target=target, op=op, value=value):
                    old = self._value(ast.parse(ast.unparse(target), mode="eval").body, env)
                    self._assign(target, self._operate(op, old, self._value(value, env)), env)
                case ast.For(target=ast.Name(id=i), iter=ast.Call(func=ast.Name(id="range"), args=bounds)):
                    for k in range(*(self._value(b, env) for b in bounds)):
                        env[i] = k
                        self._block(node.body, env)
                case ast.If(test=test, body=yes, orelse=no):
                    self._block(yes if self._value(test, env) else no, env)
                case ast.Expr(value=ast.Call() as call):
                    self._value(call, env)
                case _:
                    raise CodegenError(f"no straight-line form of: {ast.unparse(node)[:60]}")

    def _assign(self, target: ast.expr, value: Any, env: dict[str, Any]) -> None:
        array = target.value if isinstance(target, ast.Subscript) else target
        if isinstance(array, ast.Name) and array.id in self.values:
            self.shifts -= self._chains.get(value.text, set())
        match target:
            case ast.Name(id=name):
                env[name] = self.named(value)
            case ast.Tuple(elts=parts):
                for part, v in zip(parts, value, strict=True):
                    self._assign(part, v, env)
            case ast.Subscript(value=array, slice=ast.Constant(value=x)) if x is ...:
                view = self._value(array, env)
                for place in _places(view):
                    view.cells[place] = self.named(view.stored(real_of(value)))
            case ast.Subscript(value=array, slice=index):
                view = self._value(array, env)
                view.cells[view.place(self._index(index, env))] = self.named(view.stored(real_of(value)))
            case _:
                raise CodegenError(f"no straight-line form of an assignment to {ast.unparse(target)}")

    # -- expressions

    def _index(self, node: ast.expr, env: dict[str, Any]) -> tuple[int, ...]:
        value = self._value(node, env)
        return value if isinstance(value, tuple) else (value,)

    def _value(self, node: ast.expr, env: dict[str, Any]) -> Any:
        match node:
            case ast.Constant(value=x):
                return RealText(repr(x)) if isinstance(x, float) else x
            case ast.Name(id=name):
                return env[name]
            case ast.Tuple(elts=parts):
                return tuple(self._value(p, env) for p in parts)
            case ast.BinOp(left=a, op=op, right=b):
                return self._operate(op, self._value(a, env), self._value(b, env))
            case ast.UnaryOp(op=ast.USub(), operand=a):
                value = self._value(a, env)
                return RealText(f"-{_text(value)}", False) if isinstance(value, RealText) else -value
            case ast.Compare(left=a, ops=[op], comparators=[b]):
                return self._compare(op, self._value(a, env), self._value(b, env))
            case ast.BoolOp(op=op, values=parts):
                word = " and " if isinstance(op, ast.And) else " or "
                return RealText(f"({word.join(_text(real_of(self._value(p, env))) for p in parts)})", False)
            case ast.IfExp(test=test, body=yes, orelse=no):
                return self._choose(self._value(test, env), yes, no, env)
            case ast.Subscript(value=array, slice=index):
                view, at = self._value(array, env), self._index(index, env)
                return reduce(View.row, at, view) if len(at) < len(view.shape) else view.cells[view.place(at)]
            case ast.Attribute(value=array, attr="T"):
                view = self._value(array, env)
                return replace(view, shape=view.shape[::-1], strides=view.strides[::-1])
            case ast.Call(func=ast.Name(id=name), args=args):
                return self._call(name, [self._value(a, env) for a in args])
        raise CodegenError(f"no straight-line form of: {ast.unparse(node)[:60]}")

    def _operate(self, op: ast.operator, a: Any, b: Any) -> Any:
        sign = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Pow: "**"}[type(op)]
        if isinstance(a, RealText) or isinstance(b, RealText):
            return RealText(f"{_text(real_of(a))} {sign} {_text(real_of(b))}", False)
        exact: dict[str, Callable[[int, int], int]] = {
            "+": int.__add__,
            "-": int.__sub__,
            "*": int.__mul__,
            "//": int.__floordiv__,
            "**": int.__pow__,  # M**2 + M: where a state begins
        }
        if sign not in exact:
            raise CodegenError("whole numbers are never divided in a kernel")
        return exact[sign](a, b)

    def _compare(self, op: ast.cmpop, a: Any, b: Any) -> Any:
        sign = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}[type(op)]
        if isinstance(a, RealText) or isinstance(b, RealText):
            return RealText(f"{_text(real_of(a))} {sign} {_text(real_of(b))}", False)
        return {"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b, "==": a == b, "!=": a != b}[sign]

    def _choose(self, test: Any, yes: ast.expr, no: ast.expr, env: dict[str, Any]) -> Any:
        if not isinstance(test, RealText):
            return self._value(yes if test else no, env)
        a, b = (self.named(real_of(self._value(part, env))) for part in (yes, no))
        return RealText(f"({a.text} if {test.text} else {b.text})", False)

    # -- calls

    def _call(self, name: str, args: list[Any]) -> Any:
        if name in self.functions:
            function = self.functions[name]
            self._block(function.body, dict(zip((a.arg for a in function.args.args), args, strict=True)))
            return None
        builtin = getattr(self, f"_do_{name}", None)
        if builtin is not None:
            return builtin(*args)
        return RealText(f"{name}({', '.join(str(a) if isinstance(a, int) else _text(real_of(a), True) for a in args)})", False)

    def _do_float(self, x: Any) -> RealText:
        return RealText(repr(float(x)))

    def _do_min(self, a: int, b: int) -> int:
        return min(a, b)

    def _do_block(self, a: View, low: int, high: int) -> View:
        return a.part(low, (high - low,))

    def _do_row_block(self, a: View, row: int, low: int, high: int) -> View:
        return a.row(row).part(low, (high - low,))

    def _do_part_of(self, a: View, start: int, shape: tuple[int, ...]) -> View:
        return a.part(start, shape)

    def _do_load(self, loop: int, a: View, i: int) -> Any:
        return a.cells[a.place((i,))]

    def _do_reload(self, loop: int, q: int, a: View, i: int) -> Any:
        return a.cells[a.place((i,))]

    def _do_store(self, loop: int, q: int, a: View, i: int, x: Any) -> None:
        a.cells[a.place((i,))] = self.named(a.stored(real_of(x)))

    def _do_split_terms(self, coef: Any, ns: int, early: Any, late: Any, amounts: Any) -> tuple[int, bool]:
        assert ns == 0  # a stage is formed outside
        return 0, False

    def _do_combine_block(self, y: View, k: Any, rows: Any, coef: Any, ns: int, low: int, high: int, out: View) -> None:
        assert ns == 0
        for i in range(high - low):
            out.cells[out.place((i,))] = y.cells[y.place((low + i,))]

    def _do_block_sum(self, a: View, n: int) -> RealText:
        return self._added([_text(v) for v in a.values()[:n]])

    def _do_block_dot(self, a: View, b: View, n: int) -> RealText:
        return self._added([f"{_text(x)}*{_text(y)}" for x, y in zip(a.values()[:n], b.values()[:n], strict=True)])

    def _added(self, terms: list[str]) -> Any:
        """Their sum in the order of odesim.codegen.runtime.reduce."""
        lanes = LANES if len(terms) > SEQUENCE else 1
        sums = [ZERO] * lanes
        for i, term in enumerate(terms):
            sums[i % lanes] = self.named(RealText(f"{sums[i % lanes].text} + {term}", False))
        while len(sums) > 1:
            half = len(sums) // 2
            sums = [self.named(RealText(f"{a.text} + {b.text}", False)) for a, b in zip(sums[:half], sums[half:], strict=True)]
        return sums[0]

    def _do_block_max(self, a: View, n: int) -> Any:
        highest = self._highest(a.values()[:n])
        top = self.named(RealText(f"{highest.text} + 0.0", False))
        return self._chained(top, highest)  # that of one element too

    def _highest(self, values: list[Any]) -> Any:
        top, *rest = values
        for v in rest:
            top = self._chained(self.named(RealText(f"maximum({top.text}, {v.text})", False)), top, v)
        return top

    def _chained(self, top: Any, *parts: Any) -> Any:
        """top, a line of a maximum, with those of the lines it is made of."""
        self._chains[top.text] = {top.text}.union(*(self._chains.get(p.text, set()) for p in parts))
        self.shifts.add(top.text)
        return top

    def _do_tree_sum(self, part: View, width: int) -> Any:
        sums = part.values()[:width]
        while len(sums) > 1:
            half = (len(sums) + 1) // 2
            for k in range(len(sums) - half):
                sums[k] = self.named(RealText(f"{sums[k].text} + {sums[k + half].text}", False))
            sums = sums[:half]
        return sums[0]

    def _do_tree_max(self, part: View, width: int) -> Any:
        return self._highest(part.values()[:width])

    def _do_matmul(self, a: View, b: View, out: View) -> None:
        for i in range(a.shape[0]):
            for j in range(b.shape[1]):
                total = self.named(out.stored(ZERO))
                for k in range(a.shape[1]):
                    x, y = a.cells[a.place((i, k))], b.cells[b.place((k, j))]
                    total = self.named(RealText(f"{total.text} + {_text(x)}*{_text(y)}", False))
                out.cells[out.place((i, j))] = total


def real_of(value: Any) -> RealText:
    """value as a real number."""
    return value if isinstance(value, RealText) else RealText(repr(float(value)))


def _text(value: RealText, alone: bool = False) -> str:
    """Its text, in brackets unless it is an atom or stands alone."""
    return value.text if (value.atom and not value.text.startswith("-")) or alone else f"({value.text})"


def _places(view: View) -> list[int]:
    places = [view.start]
    for n, stride in zip(view.shape, view.strides, strict=True):
        places = [p + i * stride for p in places for i in range(n)]
    return places

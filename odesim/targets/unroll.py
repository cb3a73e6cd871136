"""A right-hand side written out for given sizes: its kernel is run on symbols, and straight-line code remains.

for k in range(M): d_v[k] = mu[k] - v[k]  ->  x0 = mu_0 - v_0; x1 = mu_1 - v_1

Whole numbers are known here and vanish, with the loops, choices and views that they govern. Arithmetic of reals is left, in the
order of the kernel, so that both give the same bits: that is why the kernel's text is interpreted, and no second printer writes the same.
Small systems are integrated many at a time by such code.
"""

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import reduce
from math import prod
from typing import Any

from odesim.base.errors import CodegenError
from odesim.base.parsing import parse
from odesim.ir.program import Program
from odesim.ir.scalars import SIGNS, Formulas, Operation, is_real, real_of
from odesim.ir.sizes import extents
from odesim.symbolic.system import System
from odesim.targets.blocks import BLOCK, LATE
from odesim.targets.loop_plan import make_loop_plan
from odesim.targets.numba_text import ROWS, Kernel, RightSide
from odesim.targets.unrolled_calls import MOST, ZERO, Calls, View, make_view

WHOLE: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    **{ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv, ast.Pow: operator.pow},
    **{ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Eq: operator.eq, ast.NotEq: operator.ne},
}
"""Operations on whole numbers, which are places such as M**2 + M, where a state begins; they have no fractions."""
Names = dict[str, Any]
"""{variable: a whole number, a View, or an operand}."""


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

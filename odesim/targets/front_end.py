"""Text in restricted Python to LLVM's language, without numba."""

import ast
import inspect
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from types import ModuleType
from typing import Any

from llvmlite import ir

from odesim.base.parsing import parse
from odesim.runtime.constants import LOOPS, SEPARATE
from odesim.runtime.functions import Function
from odesim.runtime.kinds import F64, I64, VOID, Kind
from odesim.targets.arithmetic import NONE, Value, cast, flat, gathered, types_of
from odesim.targets.lowering import Lowering

LETTERS = {"int64": I64, "float64": F64}


LONG = 30
"""Instructions of a function from which a copy of it for each of several calls costs more than the calls."""


def write_module(module: ModuleType, text: str, names: Sequence[str], once: bool = False) -> str:
    """The LLVM text of these functions of a module with this text, named odesim_<name>, and of all that they call.

    once: long functions that are called from several places are not copied there, all others are.
    """
    unit = Unit(module, text)
    for name in names:
        unit.export(getattr(module, name))
    for llvm, count in unit.calls.items() if once else ():
        if not {"alwaysinline", "noinline"} & llvm.attributes:
            short = sum(len(block.instructions) for block in llvm.blocks) < LONG
            llvm.attributes.add("alwaysinline" if count == 1 or short else "noinline")
    return str(unit.llvm)


class Unit:
    """A module of LLVM in the making."""

    def __init__(self, module: ModuleType, text: str) -> None:
        self.llvm = ir.Module("odesim")
        self.trees = {module.__name__: functions_in(parse(text))}
        self.done: dict[tuple[Function, tuple[Kind, ...]], tuple[Any, Kind]] = {}
        self.calls = Counter[Any]()
        self.flags: list[Any] = [False]

    def export(self, function: Function) -> None:
        """Writes a function that C calls."""
        head, _, rest = function.signature.rstrip(")").partition("(")
        kinds = tuple(LETTERS[word.strip()] for word in rest.split(",") if word.strip())
        result = LETTERS.get(head.strip(), VOID)
        inner, kind = self.written(function, kinds)
        outer = ir.Function(self.llvm, ir.FunctionType(result, kinds), f"odesim_{function.__name__}")
        builder = ir.IRBuilder(outer.append_basic_block("entry"))
        value = self._call(builder, inner, kind, list(outer.args))
        if result == VOID:
            builder.ret_void()
        else:
            builder.ret(cast(builder, value, result).parts)

    def call(self, builder: Any, function: Function, values: Sequence[Value]) -> Value:
        """Writes a call of a function."""
        inner, kind = self.written(function, tuple(v.kind for v in values))
        self.calls[inner] += 1
        return self._call(builder, inner, kind, [leaf for v in values for leaf in flat(v.kind, v.parts)])

    def _call(self, builder: Any, inner: Any, kind: Kind, leaves: Sequence[Any]) -> Value:
        result = builder.call(inner, leaves)
        count = len(types_of(kind))
        if count == 0:
            return Value(kind, gathered(kind, iter(()))) if kind != VOID else NONE
        return Value(kind, gathered(kind, iter([result] if count == 1 else [builder.extract_value(result, i) for i in range(count)])))

    def written(self, function: Function, kinds: tuple[Kind, ...]) -> tuple[Any, Kind]:
        """A function for these kinds of arguments, and the kind of its result."""
        key = function, kinds
        if key not in self.done:
            name = f"{LOOPS * bool(function.options.get('loops'))}{function.__name__}.{len(self.done)}"
            types = [t for kind in kinds for t in types_of(kind)]
            llvm = ir.Function(self.llvm, ir.FunctionType(ir.VoidType(), types), name)
            llvm.linkage = "internal"
            if function.options.get("forceinline"):
                llvm.attributes.add("alwaysinline")
            elif SEPARATE in name or LOOPS in name:
                llvm.attributes.add("noinline")
            self.flags.append(function.options.get("fastmath", self.flags[-1]))
            self.done[key] = llvm, None
            result = Lowering(function, self.tree(function), llvm, kinds, self.call).result
            allow(llvm, self.flags.pop())
            self.done[key] = llvm, result
        return self.done[key]

    def tree(self, function: Function) -> ast.FunctionDef:
        """The syntax tree of a function."""
        name, code = function.py_func.__module__, function.py_func.__code__
        if name not in self.trees:
            self.trees[name] = functions_of_module(name)
        return self.trees[name][code.co_name, code.co_firstlineno]


@cache
def functions_of_module(name: str) -> dict[tuple[str, int], ast.FunctionDef]:
    """functions_in the source of an imported module."""
    return functions_in(parse(inspect.getsource(sys.modules[name])))


def functions_in(tree: Any) -> dict[tuple[str, int], ast.FunctionDef]:
    """The functions in a tree, and in functions there, by name and first line."""
    return {(f.name, min([f.lineno, *(d.lineno for d in f.decorator_list)])): f for f in _functions(tree)}


def _functions(tree: Any) -> Iterator[ast.FunctionDef]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node
            yield from _functions(node)


FLOAT_OPERATIONS = frozenset(("fadd", "fsub", "fmul", "fdiv", "frem", "fcmp"))


def allow(function: Any, flags: Any) -> None:
    """Allows LLVM in the operations on floats of a function what these flags say, "contract": fused multiply-adds."""
    if not flags:
        return
    real = (ir.FloatType(), ir.DoubleType())
    for block in function.blocks:
        for one in block.instructions:
            if one.opname in FLOAT_OPERATIONS and not one.flags:
                one.flags.extend(flags)
            elif one.opname == "call" and one.type in real:
                for flag in flags:
                    one.fastmath.add(flag)

"""Translates Python expressions into C++ expressions with types.

(p0 - y0)*exp(0.5*y0)  ->  ((p0 - y0) * elementary_exp((0.5 * y0)))
"""

import ast
from collections.abc import Mapping
from enum import EnumType
from types import ModuleType
from typing import Any

from odesim.base.errors import CodegenError
from odesim.targets.cuda_text import CppFunction, Functions, ModuleScope
from odesim.targets.cuda_words import (
    BUILTINS,
    FUNCTION,
    INT,
    REAL,
    SINGLE,
    TRUTH,
    Typed,
    call_builtin,
    in_double,
    is_function,
    joined,
    literal,
    named,
    pointee,
)

OPERATORS = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "/", ast.Mod: "%", ast.RShift: ">>", ast.LShift: "<<",
    ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
}  # fmt: skip


class ExpressionText:
    """A translator of expressions, given the types of the variables."""

    def __init__(self, translation: Functions, scope: ModuleScope, types: Mapping[str, str]) -> None:
        self.translation, self.scope = translation, scope
        self.types = dict(types)

    def _value(self, node: Any) -> Typed:
        match node:
            case ast.Constant(value=x):
                return literal(x)
            case ast.Name(id=name):
                return self._name(name)
            case ast.BinOp(left=ast.Constant(), op=ast.Pow(), right=ast.Constant()):
                base, power = node.left, node.right
                return literal(ast.literal_eval(base) ** ast.literal_eval(power))
            case ast.BinOp(left=a, op=op, right=b):
                return self._operate(op, self._value(a), self._value(b))
            case ast.UnaryOp(op=ast.USub(), operand=a):
                value = self._value(a)
                return Typed(value.type, f"(-{value.text})")
            case ast.UnaryOp(op=ast.Not(), operand=a):
                return Typed(TRUTH, f"(!{self._value(a).text})")
            case ast.Compare(left=a, ops=ops, comparators=others):
                sides = [self._value(x).text for x in (a, *others)]
                parts = [f"({x} {OPERATORS[type(op)]} {y})" for x, op, y in zip(sides, ops, sides[1:], strict=False)]
                return Typed(TRUTH, parts[0] if len(parts) == 1 else f"({' && '.join(parts)})")
            case ast.BoolOp(op=op, values=parts):
                sign = " && " if isinstance(op, ast.And) else " || "
                return Typed(TRUTH, f"({sign.join(self._value(p).text for p in parts)})")
            case ast.IfExp(test=test, body=yes, orelse=no):
                first, second = self._value(yes), self._value(no)
                return Typed(joined(first.type, second.type), f"({self._value(test).text} ? {first.text} : {second.text})")
            case ast.Subscript(value=array, slice=index):
                where = self._value(array)
                return Typed(pointee(where.type), f"{where.text}[{self._value(index).text}]")
            case ast.Attribute(value=ast.Name(id=owner), attr=name) if isinstance(self.scope.known.get(owner), ModuleType | EnumType):
                return literal(getattr(self.scope.known[owner], name))  # math.inf, Code.OK
            case ast.Call(func=ast.Name(id="float"), args=[ast.Constant(value=str(x))]):
                return literal(float(x))
            case ast.Call():
                return self._call(node)
        raise CodegenError(f"no C++ form of: {ast.unparse(node)[:60]}")

    def _name(self, name: str) -> Typed:
        if name in self.types:
            return Typed(self.types[name], named(name))
        if name in self.scope.functions:
            self.translation.passed[name] = self.scope
            return Typed(f"{FUNCTION}{name}", name)
        if name in self.scope.known:
            return literal(self.scope.known[name])
        raise CodegenError(f"no C++ form of the name {name}")

    def _operate(self, op: ast.operator, a: Typed, b: Typed) -> Typed:
        kind = joined(INT if a.type == TRUTH else a.type, INT if b.type == TRUTH else b.type)
        if isinstance(op, ast.Pow) and kind == INT:
            return Typed(INT, f"odesim_power({a.text}, {b.text})")
        if isinstance(op, ast.Div) and kind == INT:
            return Typed(REAL, f"((double){a.text} / (double){b.text})")
        cast = "(double)" if {a.type, b.type} == {INT, SINGLE} else ""  # C++ would compute in float
        return Typed(kind, f"({cast}{a.text} {OPERATORS[type(op)]} {b.text})")

    def _call(self, node: ast.Call) -> Typed:
        if isinstance(node.func, ast.Attribute):  # np.int64
            return call_builtin(node.func.attr, [self._value(a) for a in node.args])
        assert isinstance(node.func, ast.Name)
        name, known = node.func.id, self.scope.known
        if name == "polynomial":
            assert isinstance(node.args[1], ast.Name)
            return _polynomial(self._value(node.args[0]), known[node.args[1].id])
        if name == "call" and isinstance(node.args[0], ast.Subscript) and isinstance(node.args[1], ast.Tuple):
            kind, word = self.translation.own[f"call {ast.unparse(node.args[0].slice)}"]
            return Typed(kind, f"{word}({', '.join(self._value(a).text for a in node.args[1].elts)})")
        args = [self._value(a) for a in node.args]
        if is_function(self.types.get(name, "")):
            name = self.types[name].removeprefix(FUNCTION)
            return _called(self.translation.function(self.translation.passed[name], name, tuple(a.type for a in args)), args)
        if name in self.translation.own:
            kind, word = self.translation.own[name]
            return Typed(kind, f"{word}({', '.join(a.text for a in args)})")
        if name in self.scope.functions:
            return _called(self.translation.function(self.scope, name, tuple(a.type for a in args)), args)
        value = known.get(name)
        if hasattr(value, "py_func") and not isinstance(value, ModuleType):
            return _called(self.translation.imported(value, tuple(REAL if a.type == TRUTH else a.type for a in args)), args)
        if name in BUILTINS:
            return call_builtin(name, args)
        raise CodegenError(f"no C++ form of the function {name}")


def _called(made: CppFunction, args: list[Typed]) -> Typed:
    return Typed(made.result, f"{made.name}({', '.join(a.text for a in args if not is_function(a.type))})")


def _polynomial(x: Typed, coefficients: tuple[float, ...]) -> Typed:
    """A polynomial as in odesim.runtime.intrinsics.polynomial: even and odd powers apart, each by Horner's scheme in x^2."""
    x, halves = in_double(x), []
    for part in (coefficients[0::2], coefficients[1::2]):
        total = literal(part[-1]).text
        for c in reversed(part[:-1]):
            total = f"fma({total}, ({x.text} * {x.text}), {literal(c).text})"
        halves.append(total)
    return Typed(REAL, f"fma({halves[1]}, {x.text}, {halves[0]})")

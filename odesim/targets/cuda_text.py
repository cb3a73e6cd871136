"""Python functions as C++: generated kernels and what they call, with the same operations in the same order.

x0 = (p0 - y0)*exp(0.5*y0)  ->  x0 = ((p0 - y0) * elementary_exp((0.5 * y0)));

What compiles here is what kernels are written in: whole numbers, reals, truths, addresses of them, and tuples as results. A function
is made once for each list of types that it is called with; a variable has one type. A function as an argument is part of these types.
The same text is compiled for a GPU by NVRTC and for a CPU by any C++ compiler. A header gives CUDA's words a meaning there.
"""

import ast
import importlib
import inspect
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import EnumType
from types import ModuleType
from typing import Any

from odesim.base.errors import CodegenError
from odesim.base.parsing import margin, parse
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
    is_pointer,
    joined,
    literal,
    named,
    pointee,
)

PRELUDE = """
#ifdef ODESIM_HOST
#include "odesim_host.h"
#endif
#ifndef ODESIM_PAUSE
#define ODESIM_PAUSE() __nanosleep(40)
#endif
#define ODESIM_NAN __longlong_as_double(0x7ff8000000000000LL)
#define ODESIM_INF __longlong_as_double(0x7ff0000000000000LL)
__device__ __forceinline__ long long odesim_power(long long x, long long n) { long long y = 1; for (; n > 0; --n) y *= x; return y; }
""".strip("\n")
OPERATORS = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "/", ast.Mod: "%", ast.RShift: ">>", ast.LShift: "<<",
    ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
}  # fmt: skip


@dataclass(frozen=True)
class ModuleScope:
    """The scope of a function: functions defined beside it, and the names that its module imports."""

    functions: Mapping[str, ast.FunctionDef]
    known: Mapping[str, Any]
    prefix: str = ""


@dataclass
class CppFunction:
    """A function in C++. result: its type, a tuple of types, or None."""

    name: str
    result: Any
    text: str


def module_scope(source: str) -> ModuleScope:
    """The scope of a generated module: its text is parsed and its imports are looked up; it is not run."""
    tree, known = parse(source), dict[str, Any]()
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            module = importlib.import_module(str(node.module))
            known |= {a.asname or a.name: getattr(module, a.name) for a in node.names}
    return ModuleScope({n.name: n for n in tree.body if isinstance(n, ast.FunctionDef)}, known)


@dataclass(frozen=True)
class Driver:
    """The integrator: the scope of its function run(address of a table), and the places in that table.

    sums: {name: (rows, numbers)} of its sums over components, as their names. A term is the function NAME_of of a component of a
    combination of stages and of each row, and of the numbers.
    """

    scope: ModuleScope
    places: Mapping[str, int]
    sums: Mapping[str, tuple[Sequence[str], Sequence[str]]]


def cuda_source(about: str, functions: str, *kernels: str) -> str:
    """The source file: a comment that says what it is, the prelude, the functions, the kernels."""
    return "\n\n".join([f"// {about}", PRELUDE, functions, *kernels]) + "\n"


class ExpressionText:
    """A translator of expressions, given the types of the variables."""

    def __init__(self, translation: "Translation", scope: ModuleScope, types: Mapping[str, str]) -> None:
        self.translation, self.scope = translation, scope
        self.types, self.arguments = dict(types), dict(types)

    def learn(self, name: str, kind: str) -> None:
        """A variable has a value of this type."""
        self.types[name] = joined(self.types[name], kind) if name in self.types else kind

    def declared(self) -> list[str]:
        """The variables that are not arguments, with their types."""
        local = {v: t for v, t in self.types.items() if v not in self.arguments}
        plain = [t for t in dict.fromkeys(local.values()) if not is_pointer(t)]
        lines = [f"{t} {', '.join(named(v) for v, u in local.items() if u == t)};" for t in plain]
        return lines + [f"{t} {named(v)};" for v, t in local.items() if is_pointer(t)]

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
        # numba's rule is float64 for an integer and a float32
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
            kind, word = self.translation.by_hand[f"call {ast.unparse(node.args[0].slice)}"]
            return Typed(kind, f"{word}({', '.join(self._value(a).text for a in node.args[1].elts)})")
        args = [self._value(a) for a in node.args]
        if is_function(self.types.get(name, "")):
            name = self.types[name].removeprefix(FUNCTION)
            return _called(self.translation.function(self.translation.passed[name], name, tuple(a.type for a in args)), args)
        if name in self.translation.by_hand:
            kind, word = self.translation.by_hand[name]
            return Typed(kind, f"{word}({', '.join(a.text for a in args)})")
        if name in self.scope.functions:
            return _called(self.translation.function(self.scope, name, tuple(a.type for a in args)), args)
        value = known.get(name)
        if hasattr(value, "py_func") and not isinstance(value, ModuleType):
            return _called(self.translation.imported(value, tuple(REAL if a.type == TRUTH else a.type for a in args)), args)
        if name in BUILTINS:
            return call_builtin(name, args)
        raise CodegenError(f"no C++ form of the function {name}")


def _called(function: CppFunction, args: list[Typed]) -> Typed:
    return Typed(function.result, f"{function.name}({', '.join(a.text for a in args if not is_function(a.type))})")


def _polynomial(x: Typed, coefficients: tuple[float, ...]) -> Typed:
    """A polynomial as in odesim.runtime.intrinsics.polynomial: even and odd powers apart, each by Horner's scheme in x^2."""
    x, halves = in_double(x), []
    for part in (coefficients[0::2], coefficients[1::2]):
        total = literal(part[-1]).text
        for c in reversed(part[:-1]):
            total = f"fma({total}, ({x.text} * {x.text}), {literal(c).text})"
        halves.append(total)
    return Typed(REAL, f"fma({halves[1]}, {x.text}, {halves[0]})")


class FunctionText(ExpressionText):
    """Translates one function for one list of argument types, in two passes: first the types of its variables, then the text."""

    def __init__(self, translation: "Translation", scope: ModuleScope, node: ast.FunctionDef, types: Mapping[str, str]) -> None:
        super().__init__(translation, scope, types)
        self.node = node
        self.result: Any = None
        self.temporaries = 0

    def make(self, name: str) -> CppFunction:
        body = self._body()
        # the type of a variable is known when all its values are: a loop may feed an integer back as a real
        for _ in range(4):
            known = dict(self.types)
            body = self._body()
            if known == self.types:
                break
        self.name = name
        head, struct = "void", ""
        if isinstance(self.result, tuple):
            members = " ".join(f"{t} v{k};" for k, t in enumerate(self.result))
            head, struct = f"{name}_result", f"struct {name}_result {{ {members} }};\n"
        elif self.result is not None:
            head = self.result
        how = "__noinline__" if self.node.name in self.translation.apart else "__forceinline__"
        parameters = ", ".join(f"{t} {named(v)}" for v, t in self.arguments.items() if not is_function(t))
        text = "\n".join([f"{struct}__device__ {how} {head} {name}({parameters}) {{", *margin([*self.declared(), *body]), "}"])
        return CppFunction(name, self.result, text.replace("@RESULT@", head))

    def _body(self) -> list[str]:
        self.temporaries = 0
        body = self.node.body
        first = body[0]
        documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
        return self._block(body[1:] if documented else body)

    # -- statements

    def _block(self, body: list[ast.stmt]) -> list[str]:
        return [line for node in body for line in self._statement(node)]

    def _statement(self, node: Any) -> list[str]:
        match node:
            case ast.Assign(targets=[target], value=value):
                return self._assign(target, value)
            case ast.AugAssign(target=target, op=op, value=value):
                return self._assign(target, ast.BinOp(target, op, value))
            case ast.For(target=ast.Name(id=i), iter=ast.Call(func=ast.Name(id="range"), args=bounds)):
                self.learn(i, INT)
                parts = [self._value(b).text for b in bounds]
                low, high, by = ("0", parts[0], "1") if len(parts) == 1 else (*parts, "1")[:3]
                beyond = ">" if len(bounds) == 3 and isinstance(bounds[2], ast.UnaryOp) else "<"  # a negative step is written so
                k, self.temporaries = f"q{self.temporaries}_", self.temporaries + 1  # after the loop i is the last k, as in Python
                head = f"for ({INT} {k} = {low}; {k} {beyond} {high}; {k} += {by}) {{"
                return [head, f"    {named(i)} = {k};", *self._inner(node.body), "}"]
            case ast.While(test=test, body=body):
                return [f"while ({self._value(test).text}) {{", *self._inner(body), "}"]
            case ast.If(test=test, body=yes, orelse=no):
                out = [f"if ({self._value(test).text}) {{", *self._inner(yes)]
                return [*out, "} else {", *self._inner(no), "}"] if no else [*out, "}"]
            case ast.Return(value=None):
                return ["return;"]
            case ast.Return(value=ast.Tuple(elts=parts)):
                values = [self._value(p) for p in parts]
                self.result = tuple(v.type for v in values)
                return [f"return @RESULT@{{{', '.join(v.text for v in values)}}};"]
            case ast.Return(value=value) if value is not None:
                returned = self._value(value)
                self.result = returned.type if self.result is None else joined(self.result, returned.type)
                return [f"return {returned.text};"]
            case ast.Expr(value=ast.Call() as call):
                return [f"{self._value(call).text};"]
            case ast.Pass():
                return []
            case ast.Break():
                return ["break;"]
            case ast.Continue():
                return ["continue;"]
        raise CodegenError(f"no C++ form of: {ast.unparse(node)[:60]}")

    def _inner(self, body: list[ast.stmt]) -> list[str]:
        return margin(self._block(body))

    def _assign(self, target: Any, value: Any) -> list[str]:
        if not isinstance(target, ast.Tuple):
            assigned = self._value(value)
            return [f"{self._target(target, assigned.type)} = {assigned.text};"]
        name, self.temporaries = f"q{self.temporaries}_", self.temporaries + 1
        if isinstance(value, ast.Tuple):
            values = [self._value(v) for v in value.elts]
            parts = [Typed(v.type, f"{name}{k}") for k, v in enumerate(values)]
            lines = [f"const {v.type} {p.text} = {v.text};" for p, v in zip(parts, values, strict=True)]
            lines = [line.replace("const long long* ", "long long* ").replace("const double* ", "double* ") for line in lines]
        else:
            called = self._value(value)
            lines = [f"const auto {name} = {called.text};"]
            parts = [Typed(t, f"{name}.v{k}") for k, t in enumerate(called.type)]
        return ["{", *lines, *(f"{self._target(t, p.type)} = {p.text};" for t, p in zip(target.elts, parts, strict=True)), "}"]

    def _target(self, target: Any, kind: str) -> str:
        if isinstance(target, ast.Name):
            self.learn(target.id, kind)
            return named(target.id)
        return self._value(target).text


@dataclass
class Translation:
    """The C++ functions in the order of their definition.

    by_hand: {name: (type of the result, name in C++)} of functions that are written by hand there.
    """

    functions: dict[Any, CppFunction] = field(default_factory=dict)
    by_hand: Mapping[str, tuple[Any, str]] = field(default_factory=dict)
    apart: frozenset[str] = frozenset()  # names of functions that are called, not inlined
    passed: dict[str, ModuleScope] = field(default_factory=dict)  # where the functions that are arguments come from

    def text(self) -> str:
        return "\n\n".join(m.text for m in self.functions.values())

    def function(self, scope: ModuleScope, name: str, types: tuple[str, ...]) -> CppFunction:
        """The C++ function for arguments of these types. Raises CodegenError if it has no form in C++."""
        key = (scope.prefix, name, types)
        if key not in self.functions:
            taken = sum(m.name.split("__")[0] == f"{scope.prefix}{name}" for m in self.functions.values())
            node = scope.functions[name]
            variables = dict(zip((a.arg for a in node.args.args), types, strict=True))
            function = FunctionText(self, scope, node, variables).make(f"{scope.prefix}{name}" + (f"__{taken}" if taken else ""))
            self.functions[key] = function
        return self.functions[key]

    def imported(self, value: Any, types: tuple[str, ...]) -> CppFunction:
        """The C++ function of a function compiled by numba elsewhere."""
        python = value.py_func
        module = inspect.getmodule(python)
        assert module is not None
        tree = parse(textwrap.dedent(inspect.getsource(python))).body[0]
        assert isinstance(tree, ast.FunctionDef)
        prefix = f"{module.__name__.rsplit('.', 1)[-1]}_"
        return self.function(ModuleScope({tree.name: tree}, vars(module), prefix), tree.name, types)

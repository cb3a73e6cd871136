"""Translates Python statements into C++: one C++ function for each list of argument types.

x0 = (p0 - y0)*exp(0.5*y0)  ->  x0 = ((p0 - y0) * elementary_exp((0.5 * y0)));
"""

import ast
from collections.abc import Mapping
from typing import Any

from odesim.base.errors import CodegenError
from odesim.targets.cuda_text import CppFunction, ExpressionText, Functions, ModuleScope
from odesim.targets.cuda_words import INT, Typed, is_function, is_pointer, joined, named


class FunctionText(ExpressionText):
    """Translates one function for one list of argument types, in two passes: first the types of its variables, then the text."""

    def __init__(self, translation: Functions, scope: ModuleScope, node: ast.FunctionDef, types: Mapping[str, str]) -> None:
        super().__init__(translation, scope, types)
        self.node = node
        self.arguments = dict(self.types)
        self.result: Any = None
        self.temporaries = 0

    def make(self, name: str) -> CppFunction:
        body = self._body()
        for _ in range(4):
            known = dict(self.types)
            body = self._body()
            if known == self.types:
                break
        self.name = name
        lines = ["    " + line for line in body]
        declared = [f"    {line}" for line in self.declared()]
        head, struct = "void", ""
        if isinstance(self.result, tuple):
            members = " ".join(f"{t} v{k};" for k, t in enumerate(self.result))
            head, struct = f"{name}_result", f"struct {name}_result {{ {members} }};\n"
        elif self.result is not None:
            head = self.result
        how = "__noinline__" if self.node.name in self.translation.apart else "__forceinline__"
        given = ", ".join(f"{t} {named(v)}" for v, t in self.arguments.items() if not is_function(t))
        text = "\n".join([f"{struct}__device__ {how} {head} {name}({given}) {{", *declared, *lines, "}"])
        return CppFunction(name, self.result, text.replace("@RESULT@", head))

    def declared(self) -> list[str]:
        """The variables that are not arguments, with their types."""
        local = {v: t for v, t in self.types.items() if v not in self.arguments}
        plain = [t for t in dict.fromkeys(local.values()) if not is_pointer(t)]
        lines = [f"{t} {', '.join(named(v) for v, u in local.items() if u == t)};" for t in plain]
        return lines + [f"{t} {named(v)};" for v, t in local.items() if is_pointer(t)]

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
                self._learn(i, INT)
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
                found = self._value(value)
                self.result = found.type if self.result is None else joined(self.result, found.type)
                return [f"return {found.text};"]
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
        return ["    " + line for line in self._block(body)]

    def _assign(self, target: Any, value: Any) -> list[str]:
        if not isinstance(target, ast.Tuple):
            found = self._value(value)
            return [f"{self._target(target, found.type)} = {found.text};"]
        name, self.temporaries = f"q{self.temporaries}_", self.temporaries + 1
        if isinstance(value, ast.Tuple):
            values = [self._value(v) for v in value.elts]
            parts = [Typed(v.type, f"{name}{k}") for k, v in enumerate(values)]
            made = [f"const {v.type} {p.text} = {v.text};" for p, v in zip(parts, values, strict=True)]
            made = [line.replace("const long long* ", "long long* ").replace("const double* ", "double* ") for line in made]
        else:
            called = self._value(value)
            made = [f"const auto {name} = {called.text};"]
            parts = [Typed(t, f"{name}.v{k}") for k, t in enumerate(called.type)]
        return ["{", *made, *(f"{self._target(t, p.type)} = {p.text};" for t, p in zip(target.elts, parts, strict=True)), "}"]

    def _target(self, target: Any, kind: str) -> str:
        if isinstance(target, ast.Name):
            self._learn(target.id, kind)
            return named(target.id)
        return self._value(target).text

    def _learn(self, name: str, kind: str) -> None:
        self.types[name] = joined(self.types[name], kind) if name in self.types else kind

"""The scope in which the names of a translated Python function are looked up, and its translation."""

import ast
import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from odesim.base.parsing import parse


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


class Functions(Protocol):
    """Translates the functions that an expression calls."""

    own: Mapping[str, tuple[Any, str]]
    apart: frozenset[str]
    passed: dict[str, ModuleScope]

    def function(self, scope: ModuleScope, name: str, types: tuple[str, ...]) -> CppFunction: ...

    def imported(self, value: Any, types: tuple[str, ...]) -> CppFunction: ...


def module_scope(source: str) -> ModuleScope:
    """The scope of a generated module: its text is parsed and its imports are looked up; it is not run."""
    tree, known = parse(source), dict[str, Any]()
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            module = importlib.import_module(str(node.module))
            known |= {a.asname or a.name: getattr(module, a.name) for a in node.names}
    return ModuleScope({n.name: n for n in tree.body if isinstance(n, ast.FunctionDef)}, known)

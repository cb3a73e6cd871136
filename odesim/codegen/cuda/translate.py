"""Translates generated Python kernels and the functions they call into C++ with the same operations in the same order.

x0 = (p0 - y0)*exp(0.5*y0)  ->  x0 = ((p0 - y0) * elementary_exp((0.5 * y0)));

What compiles here is what kernels are written in: whole numbers, reals, truths, addresses of them, and tuples as results. A function
is made once for each list of types that it is called with; a variable has one type. A function as an argument is part of these types.
"""

import ast
import inspect
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from odesim.base.parsing import parse
from odesim.targets.cuda_text import CppFunction, FunctionText, ModuleScope


@dataclass
class Translation:
    """The C++ functions in the order of their definition.

    own: {name: (type of the result, name in C++)} of functions that are written by hand there.
    """

    made: dict[Any, CppFunction] = field(default_factory=dict)
    own: Mapping[str, tuple[Any, str]] = field(default_factory=dict)
    apart: frozenset[str] = frozenset()  # names of functions that are called, not inlined
    passed: dict[str, ModuleScope] = field(default_factory=dict)  # where the functions that are arguments come from

    def text(self) -> str:
        return "\n\n".join(m.text for m in self.made.values())

    def function(self, scope: ModuleScope, name: str, types: tuple[str, ...]) -> CppFunction:
        """The C++ function for arguments of these types. Raises CodegenError if it has no form in C++."""
        key = (scope.prefix, name, types)
        if key not in self.made:
            taken = sum(m.name.split("__")[0] == f"{scope.prefix}{name}" for m in self.made.values())
            node = scope.functions[name]
            given = dict(zip((a.arg for a in node.args.args), types, strict=True))
            made = FunctionText(self, scope, node, given).make(f"{scope.prefix}{name}" + (f"__{taken}" if taken else ""))
            self.made[key] = made
        return self.made[key]

    def imported(self, value: Any, types: tuple[str, ...]) -> CppFunction:
        """The C++ function of a function compiled by numba elsewhere."""
        python = value.py_func
        module = inspect.getmodule(python)
        assert module is not None
        tree = parse(textwrap.dedent(inspect.getsource(python))).body[0]
        assert isinstance(tree, ast.FunctionDef)
        prefix = f"{module.__name__.rsplit('.', 1)[-1]}_"
        return self.function(ModuleScope({tree.name: tree}, vars(module), prefix), tree.name, types)

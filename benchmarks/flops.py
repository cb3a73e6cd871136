"""Floating-point operations of a kernel, counted in its text: + - * / and roots one each, a fused multiply-add two.

All ways through a condition count, and what other modules give (exp, log2, ...) is counted in their text. Of a whole run that is an
estimate: of the steps alone, not of what begins a run or saves.
"""

import ast
import inspect
import textwrap
from collections.abc import Iterator
from typing import Any

from odesim.run.threads import thread_scope
from odesim.targets.cuda_text import ModuleScope

ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div)
CALL_OPERATIONS = {"sqrt": 1, "rint": 1, "floor": 1, "fma": 2}


def step_operations(plan: Any) -> int:
    """Operations of one step of one member, accepted or not."""
    return function_operations(thread_scope(plan), "march" if plan.marches else "step")


def function_operations(scope: ModuleScope, name: str) -> int:
    """Operations of a function of the scope."""
    return sum(_node_operations(scope, s) for s in scope.functions[name].body)


def _node_operations(scope: ModuleScope, node: ast.AST) -> int:
    match node:
        case ast.Subscript():  # a place, not a number
            return 0
        case ast.For(iter=ast.Call(func=ast.Name(id="range"), args=[ast.Constant(value=int(n))])):
            return n * sum(_node_operations(scope, s) for s in node.body)
        case ast.Call(func=ast.Name(id=name)):
            return sum(_node_operations(scope, a) for a in node.args) + (
                CALL_OPERATIONS[name] if name in CALL_OPERATIONS else _callee_operations(scope, name)
            )
        case ast.BinOp(op=op) | ast.AugAssign(op=op):
            return isinstance(op, ARITHMETIC) + sum(_node_operations(scope, child) for child in _operands(node))
    return sum(_node_operations(scope, child) for child in ast.iter_child_nodes(node))


def _operands(node: Any) -> Iterator[ast.AST]:
    return iter([node.left, node.right] if isinstance(node, ast.BinOp) else [node.value])


def _callee_operations(scope: ModuleScope, name: str) -> int:
    """Operations of a function beside this one, or of another module."""
    if name in scope.functions:
        return function_operations(scope, name)
    python = getattr(scope.known.get(name), "py_func", None)
    if python is None:  # a word of the language: float, abs, ...
        return 0
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(python))).body
    assert isinstance(tree, ast.FunctionDef)
    return function_operations(ModuleScope({tree.name: tree}, vars(inspect.getmodule(python))), tree.name)

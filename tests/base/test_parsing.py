"""Text becomes a tree in one place, one thread at a time."""

import ast
from pathlib import Path

import odesim
from odesim.base import parsing


def test_a_tree_is_python_s() -> None:
    """Of a module and of an expression."""
    assert ast.dump(parsing.parse("x = 1")) == ast.dump(ast.parse("x = 1"))
    assert ast.dump(parsing.parse("x + 1", "eval")) == ast.dump(ast.parse("x + 1", mode="eval"))


def test_nothing_else_makes_trees() -> None:
    """ast.parse is called under the lock alone: on Python 3.11 two threads in it may end in a SystemError."""
    sources = {path: path.read_text() for path in Path(odesim.__file__).parent.rglob("*.py")}
    assert [path for path, text in sources.items() if "ast.parse(" in text] == [Path(parsing.__file__)]

"""The texts that are made of several modules: the loop of explicit runs, and the search for zeros."""

import ast
from collections import Counter

import pytest

from odesim.solve.explicit import INLINE, LOOP
from odesim.solve.explicit.run import SOURCES
from odesim.solve.step import compiled
from odesim.targets.cache import source_of

TEXTS = {"loop": SOURCES, "loop on a GPU": (*LOOP, INLINE), "search": compiled.SOURCES}

AGAIN = {"_compile", "helper"}  # how functions are compiled, which a module that is imported by itself says too


def names_of(module: str) -> set[str]:
    """What a module defines, its imports apart."""
    found = set()
    for node in ast.parse(source_of(module)).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign):
            found |= {name.id for target in node.targets for name in ast.walk(target) if isinstance(name, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.add(node.target.id)
    return found


@pytest.mark.parametrize("text", TEXTS)
def test_no_name_is_defined_twice(text: str) -> None:
    """In one text the second would take the place of the first."""
    counts = Counter(name for module in TEXTS[text] for name in names_of(module))
    assert not {name for name, count in counts.items() if count > 1} - AGAIN

"""The texts that are made of several modules: the loop of explicit runs, and the search for zeros."""

import ast
from collections import Counter

import pytest

from odesim.stepper.drive import SEARCHED
from odesim.stepper.one_system import SHARED, driver_of
from odesim.targets.cache import source_of

TEXTS = {"driver": SHARED, "search": SEARCHED}

AGAIN = {"_compile", "helper", "loops"}  # how functions are compiled, which a module that is imported by itself says too


def names_of(text: str) -> set[str]:
    """What a text defines, its imports apart."""
    found = set()
    for node in ast.parse(text).body:
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
    sources = [source_of(module) for module in TEXTS[text]] + ([driver_of("explicit", False).text] if text != "search" else [])
    counts = Counter(name for source in sources for name in names_of(source))
    assert not {name for name, count in counts.items() if count > 1} - AGAIN

"""The reference: every public name has its docstring in the sections of numpydoc, with all its arguments and an example that runs."""

import doctest
import inspect
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import sympy

import odesim
import odesim.plot
import odesim.symbolic

PAGE = (Path(__file__).parents[2] / "docs" / "reference.md").read_text()
KINDS = ("Parameters", "Attributes", "Returns", "Other Parameters", "Raises", "Notes", "References", "Examples")
SECTION = re.compile(r"^(\w[\w ]*)\n-+\n", re.MULTILINE)


def names() -> dict[str, Any]:
    """{name on the page: function or class}, what is cheap to run first."""
    found: dict[str, Any] = {}
    for module, part in re.findall(r"currentmodule:: ([\w.]+)\n(.*?)```", PAGE, re.DOTALL):
        home = import_module(module)
        found |= {f"{module}.{name}": getattr(home, name) for name in re.findall(r":: (\w+)", part)}
    return dict(sorted(found.items(), key=lambda item: "symbolic" not in item[0]))


NAMES = names()


def sections(thing: Any) -> dict[str, str]:
    """{title: text} of a docstring; the beginning is ""."""
    first, *rest = SECTION.split(inspect.cleandoc(thing.__doc__))
    return {"": first, **dict(zip(rest[::2], rest[1::2], strict=True))}


def entries(text: str) -> list[str]:
    """The names that a section explains."""
    heads = [line for line in text.splitlines() if line and not line.startswith(" ")]
    return [name.strip("*") for head in heads for name in head.partition(" : ")[0].split(", ")]


def test_page_has_every_public_name() -> None:
    """What odesim exports is on the page."""
    exported = {f"odesim.{name}" for name in odesim.__all__ if not name.startswith("_")} - {"odesim.System"}
    exported |= {f"odesim.plot.{name}" for name in odesim.plot.__all__ if name != "STYLE"}
    assert exported <= set(NAMES) and len(NAMES) == len(re.findall(r"auto(?:function|class)::", PAGE))


@pytest.mark.parametrize("name", NAMES)
def test_sections(name: str) -> None:
    """Known sections in numpydoc's order; each argument, or each field, is explained once; a function says what it returns."""
    thing = NAMES[name]
    found = sections(thing)
    titles = [title for title in found if title]
    assert titles == [title for title in KINDS if title in titles] and "Examples" in titles
    signature = [p for p in inspect.signature(thing).parameters if not p.startswith("_")]
    if "Attributes" in titles:
        assert sorted(entries(found["Attributes"])) == sorted(signature)
    elif not isinstance(thing, type) or not issubclass(thing, sympy.Basic):  # sympy's classes have signatures of their own
        explained = entries(found.get("Parameters", "")) + entries(found.get("Other Parameters", ""))
        assert sorted(explained) == sorted(signature)
    assert isinstance(thing, type) or "Returns" in titles


@pytest.mark.first(39)
@pytest.mark.parametrize("name", NAMES)
def test_example_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With what the head of the page says is imported, in an empty folder: the results are those that are printed."""
    monkeypatch.chdir(tmp_path)
    scope: dict[str, Any] = {"odesim": odesim}
    if "symbolic" in name:
        exec("from sympy import *\nfrom odesim.symbolic import *", scope)
    test = doctest.DocTestParser().get_doctest(sections(NAMES[name])["Examples"], scope, name, None, None)
    assert test.examples
    printed: list[str] = []
    done = doctest.DocTestRunner(verbose=False).run(test, out=printed.append)
    assert not done.failed, "".join(printed)

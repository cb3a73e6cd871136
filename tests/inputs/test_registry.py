"""Models by name, file and entry point: the System, or one sentence that says what is there instead."""

import os
import sys
from importlib.metadata import EntryPoint

import pytest

from odesim.base.errors import ModelError
from odesim.inputs import registry
from odesim.inputs.registry import list_models, load_model
from odesim.symbolic import System

GOOD = """
from __future__ import annotations
from dataclasses import dataclass
from sympy import Interval, Symbol, oo
from odesim.symbolic import Param, Source, System

@dataclass
class Note:  # needs the module that it is in
    text: str

x, a = Symbol("x"), Symbol("a")
SYSTEM = System(name="NAME", source=Source("none", ""), axes={}, equations={x: -a * x},
                params=(Param(a, 1.0, Interval(0, oo), "rate"),), initial={x: 1})
OTHER = SYSTEM
NUMBER = 3
"""


@pytest.fixture
def file(tmp_path, monkeypatch):
    """my.py in an empty folder that is the current one; its name comes back as text."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my.py").write_text(GOOD)
    return tmp_path / "my.py"


def message(ref):
    with pytest.raises(ModelError) as caught:
        load_model(ref)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("name", ["joma.linear", "scan_snap.theorem4", "reversal.row"])  # tests/models asks all for their names
def test_shipped_models_load_under_their_own_name(name):
    system = load_model(name)
    assert isinstance(system, System) and system.name == name
    assert load_model(name) is system and load_model(system) is system


def test_the_list_is_sorted_names_and_imports_no_model():
    names = list_models()
    assert "scan_snap.full" in names and names == sorted(set(names))
    assert not any(part in ("claims", "__init__") or part.startswith("_") for name in names for part in name.split("."))


def test_claims_and_helpers_are_no_models(tmp_path, monkeypatch):
    """A model is a file of a family; claims.py, _helper.py and what lies beside the families are none."""
    for name in ("__init__", "top", "fam/__init__", "fam/claims", "fam/_helper", "fam/one", "fam/deep/__init__", "fam/deep/two"):
        path = tmp_path / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("1 / 0\n")
    monkeypatch.setattr("odesim.models.__path__", [str(tmp_path)])
    monkeypatch.setattr(registry, "entry_points", lambda group: [])
    assert list_models() == ["fam.deep.two", "fam.one"]


@pytest.mark.parametrize("form", ["my.py", "./my.py", "my.py:OTHER", "{full}", "{full}:OTHER", "path"])
def test_files_load_by_every_spelling_of_their_path(file, form):
    ref = file if form == "path" else form.format(full=file)
    assert load_model(ref).name == "NAME"
    assert load_model(ref) is load_model(ref), "kept while the file is the same"
    assert os.listdir(file.parent) == ["my.py"], "no bytecode beside it"


def test_an_edited_file_is_read_again(file):
    """The same length, a moment later: only the time tells them apart."""
    first = load_model("my.py")
    file.write_text(GOOD.replace("NAME", "EMAN"))
    os.utime(file, ns=(1, 1))
    assert (first.name, load_model("my.py").name) == ("NAME", "EMAN")


def test_the_summary_of_a_file_is_its_first_line_while_it_is_the_same_file(file):
    """The docstring, by the path and sha256 that a run has: another file says nothing of the run, and a stored path is not trusted."""
    file.write_text(f'"""Decay of a number.\n\nMore."""\n{GOOD.replace("from __future__ import annotations", "")}')
    system, origin = registry.load_with_origin("my.py:OTHER")
    assert registry.summary(system.name, origin) == "Decay of a number"
    assert [registry.summary("NAME", origin | {"model_sha256": other}) for other in ("0" * 64, "", None)] == ["", "", ""]
    file.write_text(GOOD)
    assert registry.summary(system.name, origin) == ""
    assert registry.summary("joma.linear", {"ref": "joma.linear"}) == registry.summary("joma.linear") != ""


@pytest.mark.parametrize(
    ("ref", "words"),
    [
        ("scan_snap.ful", ["no model 'scan_snap.ful'", "`odesim list` names", "did you mean 'scan_snap.full'?"]),
        ("scan_snap", ["no model 'scan_snap'"]),
        ("scan_snap.claims", ["no model"]),
        ("scan_snap.full:OTHER", ["has no OTHER", "SYSTEM"]),
        ("", ["no model ''"]),
        ("__import__('os')", ["no model"]),
        ("x" * 10_000, ["no model"]),
        ("..errors", ["no model"]),
        ("qq", ["no model 'qq'", "a file is written with its .py"]),
        ("my", ["no model 'my'; did you mean 'my.py'?"]),
        ("joma", ["no model 'joma', which is a family; choose from joma.cluster, ", "joma.self_consistent"]),
        ("topics", ["which is a family (a task too: odesim train topics)"]),
        ("corpus", ["no model 'corpus', which is a task: odesim train corpus"]),
        ("my_.py", ["there is no model file 'my_.py'", "did you mean 'my.py'?"]),
        ("none/my.py", ["there is no model file 'none/my.py'"]),
        ("my.py:NONE", ["my.py has no NONE", "OTHER, SYSTEM"]),
        ("my.py:OTTER", ["did you mean 'OTHER'?"]),
        ("my.py:NUMBER", ["NUMBER must be a System, not int"]),
        ("my.py:", ["not a plain name"]),
        ("my.py:a b", ["'a b'", "not a plain name"]),
        ("a\0b.py", ["cannot read"]),
        ("\ud800/x.py", ["cannot read"]),
        (3, ["not int 3"]),
        (None, ["not NoneType"]),
    ],
    ids=lambda x: ascii(x)[:30],
)
def test_a_bad_name_is_one_sentence(file, ref, words):
    text = message(ref)
    assert all(w in text for w in words) and len(text) < 600, text
    assert "?;" not in text, "the question ends the sentence"


def test_the_last_part_of_a_name_and_its_beginning_suggest_a_model(file):
    """adam is optimisers.adam and not edge.sam. Of several such models one is named; families and tasks have their own sentences."""
    for part in {name.rpartition(".")[2] for name in list_models()}:
        text, begin = message(part), message(part[:-1])
        assert f".{part}'?" in text or "is a family" in text or "is a task" in text, text
        assert f".{part[:-1]}" in begin or "is a family" in begin or "is a task" in begin or len(part) < 4, begin


def test_the_beginning_of_a_family_suggests_it(file):
    """particle is no name; a model whose last part begins so comes before the family."""
    for family in {name.partition(".")[0] for name in list_models()}:
        text = message(family[:-1])
        assert f"did you mean '{family}'?" in text or f".{family[:-1]}" in text, text


def test_only_near_files_are_meant(file):
    """A Python file with a name spelled much the same, else none: neither any other .py nor a near name of another kind."""
    (file.parent / "api.py").write_text("")
    (file.parent / "nofiles.txt").write_text("")
    assert "did you mean" not in message("nofile.py") and "did you mean 'api.py'?" in message("apis.py")


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("x = 1\n", ["has no SYSTEM", "no System at all", "odesim new"]),
        (GOOD.replace("SYSTEM", "MAIN"), ["has no SYSTEM; its Systems are MAIN, OTHER: write my.py:MAIN"]),
        ("SYSTEM = 3\n", ["SYSTEM must be a System, not int"]),
        (GOOD.replace("SYSTEM =", "MAIN ="), ["line 14", "name 'SYSTEM' is not defined"]),
        ("\n\nx = 1 / 0\n", ["line 3", "ZeroDivisionError: division by zero"]),
        ("def f():\n    raise ValueError('two\\nlines')\n\nf()\n", ["line 2", "ValueError: two lines"]),
        ("x = (\n", ["line 1", "SyntaxError"]),
        ("import no_such_module_here\n", ["line 1", "ModuleNotFoundError"]),
        ("open('none.txt')\n", ["line 1", "FileNotFoundError", "none.txt"]),
        ("raise SystemExit(3)\n", ["line 1", "SystemExit: 3"]),
        ("raise GeneratorExit('no')\n", ["line 1", "GeneratorExit: no"]),
        ("\nclass Stop(BaseException): pass\nraise Stop('here')\n", ["line 3", "Stop: here"]),
        ("def f(): f()\nf()\n", ["RecursionError"]),
        (GOOD.replace("initial={x: 1}", "initial={}"), ["line 12", "no initial value for x"]),
        ("x = '\0'\n", ["null"]),
    ],
)
def test_a_bad_file_is_one_sentence_with_its_line(file, code, words):
    """Whatever a model file raises names the file, the line and the exception; nothing of it stays loaded."""
    file.write_text(code)
    before = set(sys.modules)
    text = message("my.py")
    assert "my.py" in text and all(w in text for w in words), text
    if "must be" not in text and "has no" not in text:
        assert not {m for m in set(sys.modules) - before if m.startswith("odesim_file")}


def test_an_interrupt_is_no_fault_of_the_file(file):
    """Ctrl-C while a model file runs reaches the caller, and nothing of the file stays loaded."""
    file.write_text("raise KeyboardInterrupt\n")
    before = set(sys.modules)
    with pytest.raises(KeyboardInterrupt):
        load_model("my.py")
    assert not {m for m in set(sys.modules) - before if m.startswith("odesim_file")}


def test_files_that_cannot_be_read(file):
    file.write_bytes(b"\xff\xfe\x00")
    assert "my.py" in message("my.py")
    (file.parent / "folder.py").mkdir()
    assert "cannot read" in message("folder.py")


def test_entry_points_give_models_and_never_hide_shipped_ones(monkeypatch, tmp_path):
    """A module with SYSTEM, or the System itself; a broken one is a sentence, and the list does not import any."""
    (tmp_path / "their_models.py").write_text(GOOD)
    (tmp_path / "their_broken.py").write_text("1 / 0\n")
    (tmp_path / "their_exit.py").write_text("raise SystemExit(0)\n")
    (tmp_path / "their_package").mkdir()
    (tmp_path / "their_package" / "__init__.py").write_text("1 / 0\n")
    (tmp_path / "their_package" / "inside.py").write_text('"""A pendulum.\n\nOf one mass."""\n1 / 0\n')
    monkeypatch.syspath_prepend(str(tmp_path))
    wanted = {
        "theirs.inside": "their_package.inside:SYSTEM",
        "theirs.nowhere": "their_package.nowhere",
        "theirs.module": "their_models",
        "theirs.object": "their_models:OTHER",
        "theirs.number": "their_models:NUMBER",
        "theirs.broken": "their_broken",
        "theirs.exit": "their_exit",
        "scan_snap.full": "their_broken",
    }
    monkeypatch.setattr(registry, "entry_points", lambda group: [EntryPoint(k, v, group) for k, v in wanted.items()])
    registry._load_named.cache_clear()
    assert set(wanted) <= set(list_models())
    assert [registry.summary(name) for name in ("theirs.inside", "theirs.broken", "theirs.nowhere", "theirs")] == ["A pendulum", "", "", ""]
    assert registry.summary("scan_snap.full") and not {"their_models", "their_package"} & sys.modules.keys()
    assert load_model("theirs.module").name == load_model("theirs.object").name == "NAME"
    assert load_model("scan_snap.full").name == "scan_snap.full"
    assert "must be a System, not int" in message("theirs.number")
    assert "ZeroDivisionError" in message("theirs.broken")
    assert "SystemExit: 0" in message("theirs.exit")
    assert "did you mean 'theirs.object'?" in message("theirs.objet")
    registry._load_named.cache_clear()

"""A file imports only from lower floors: read from the source, imports inside functions and by name included."""

import ast
import sys
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import odesim

ROOT = Path(__file__).parents[2]
# lowest first; on one floor a name may import the names to its left, which keeps cycles out
FLOORS = (
    ("models", "figures", "notebooks"),  # stand-ins that import nothing
    ("base", "runtime", "symbolic"),
    ("ir", "display", "transforms", "targets"),
    ("stepper", "exchange", "inputs"),
    ("ensembles",),
    ("run", "store", "plot"),
    ("api", "dynamics"),
    ("cli",),
    ("lab", "explorer"),
    ("__main__",),
)
ORDER = [name for row in FLOORS for name in row]
RANK = {name: (floor, column) for floor, row in enumerate(FLOORS) for column, name in enumerate(row)}
SOURCES = sorted((ROOT / "odesim").rglob("*.py"))
MODELS = [path for path in sorted((ROOT / "models").rglob("*.py")) if path.name != "__init__.py" and not path.name.endswith("claims.py")]


def label(path: Path) -> str:
    return str(path.relative_to(ROOT))


def dotted(path: Path) -> str:
    """odesim/stepper/tableau.py -> odesim.stepper.tableau; a package's __init__.py -> the package."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


BY_NAME = {dotted(path): path for path in SOURCES}
UPWARD = {
    "odesim.base.datasets": {"odesim.plot.methods"},
    "odesim.cli.lab": {"odesim.lab.commands"},
    "odesim.inputs.registry": {"odesim.lab.tasks"},
    "odesim.symbolic": {"odesim.transforms.gradients", "odesim.transforms.sensitivity"},
    "odesim.symbolic.system": {"odesim.display.document", "odesim.display.formulas"},
}
"""The files that import from higher floors, when something is drawn or asked for: a run has a method `plot`, a notebook shows a System, a
command meets a stored training, a task is named where a model should be; and the public name of a gradient is `odesim.symbolic.grad`."""


@cache
def imported(path: Path, everywhere: bool = True) -> frozenset[str]:
    """Modules that path imports, a name from a package resolved to its module.

    everywhere: also inside functions and for type checkers only, not just what importing path itself runs.
    """
    tree = ast.parse(path.read_text())
    found: set[str] = set()
    inside = {
        child
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        or (isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING")
        for child in ast.walk(node)
        if child is not node
    }
    for node in ast.walk(tree):
        if node in inside and not everywhere:
            continue
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{label(path)}:{node.lineno} imports relatively; write the absolute name"
            module = node.module or ""
            names = {a.name for a in node.names}
            found.update(f"{module}.{name}" if f"{module}.{name}" in BY_NAME else module for name in names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module") and isinstance(node.args[0], ast.Constant):
            found.add(str(node.args[0].value))
    return frozenset(found - UPWARD.get(dotted(path), set()))


def test_the_files_that_import_upward_are_as_said():
    """Each import in UPWARD is still there."""
    for own, modules in UPWARD.items():
        text = BY_NAME[own].read_text(encoding="utf-8").replace("'", '"')
        assert all(f'import_module("{module}")' in text for module in modules)


def rank(module: str) -> tuple[int, int]:
    """Where an odesim module stands: (floor, place on it); the facade, `odesim` itself, on top."""
    parts = module.split(".")
    if len(parts) == 1:
        return (len(FLOORS), 0)
    assert parts[1] in RANK, f"odesim.{parts[1]} has no floor; give it one in {label(Path(__file__))} and in the design it keeps"
    return RANK[parts[1]]


def room(module: str) -> str:
    """odesim.stepper.search -> stepper; the facade, `odesim` itself, is a room of its own."""
    return (*module.split("."), "")[1]


ROOMS = sorted({room(name) for name in BY_NAME})


@pytest.mark.parametrize("name", ROOMS)
def test_a_room_imports_only_from_lower_floors(name):
    """Every odesim name that a file of the room imports stands lower, or is in the room."""
    wrong = [
        f"{label(path)} imports {module}"
        for own, path in BY_NAME.items()
        for module in imported(path)
        if room(own) == name and module.split(".")[0] == "odesim" and room(module) != name and not rank(module) < rank(own)
    ]
    assert not wrong, f"not lower than {name}: {wrong}"


@pytest.mark.parametrize("name", ROOMS)
def test_a_room_has_no_circle_of_imports(name):
    """Its files can be put in an order in which each imports earlier ones only, imports inside functions and for types included."""
    inside = {own: imported(path) & BY_NAME.keys() - {own} for own, path in BY_NAME.items() if room(own) == name}
    try:
        TopologicalSorter(inside).prepare()
    except CycleError as error:
        pytest.fail(" <- ".join(error.args[1]))


def test_the_root_holds_rooms_only():
    """Beside the rooms, the package holds six files, and the version that an installation has written."""
    loose = {p.name for p in (ROOT / "odesim").iterdir() if p.is_file()}
    assert loose - {"version.txt"} == {"__init__.py", "__main__.py", "figures.py", "models.py", "notebooks.py", "py.typed"}
    assert len(FLOORS) <= 10


def reach(start: str) -> dict[str, str]:
    """Every module that start imports, directly or through odesim, inside functions too, with who imports it."""
    found = {start: start}
    todo = [start]
    while todo:
        name = todo.pop()
        if name not in BY_NAME:
            continue
        # importing a.b.c runs a/__init__.py and a/b/__init__.py; the facade's functions are not run by that
        parents = {name.rsplit(".", i)[0] for i in range(1, name.count(".") + 1)} & BY_NAME.keys()
        for module in imported(BY_NAME[name], everywhere=name != "odesim") | parents:
            if module not in found:
                found[module] = name
                todo.append(module)
    return found


def test_solve_never_reaches_sympy():
    """Symbols never reach the stepper: no chain of imports from it ends in sympy."""
    for name in BY_NAME:
        for module, by in reach(name).items() if name.split(".")[1:2] == ["stepper"] else ():
            assert module.split(".")[0] != "sympy", f"{name} reaches sympy through {by}"


def test_reference_shares_no_code_with_what_it_checks():
    """Networks, tasks and their training import base and each other only."""
    own = [["lab", part] for part in ("networks", "tasks", "training")]
    assert all(any(name.split(".")[1:3] == part for name in BY_NAME) for part in own)
    for name, path in BY_NAME.items():
        for module in imported(path) if name.split(".")[1:3] in own else ():
            parts = module.split(".")
            if parts[0] == "odesim":
                assert parts[1] == "base" or parts[1:3] in own, f"{label(path)} imports {module}"


def test_a_model_file_imports_symbols_only():
    """A model file needs odesim.symbolic, what else its family has, and, for closed forms, numpy and scipy; nothing of how it is
    computed."""
    allowed = {"numpy", "scipy", "sympy", *sys.stdlib_module_names}
    for path in MODELS:
        for module in imported(path):
            inner = module == "odesim.symbolic" or module.startswith(("odesim.symbolic.", f"odesim.models.{path.parent.name}."))
            assert inner or module.split(".")[0] in allowed, f"{label(path)} imports {module}"


def test_no_facade_name_is_a_submodule():
    """`odesim.integrate` is one thing: no public name of the facade is also a module or package."""
    modules = {p.stem for p in (ROOT / "odesim").glob("*.py")} | {p.parent.name for p in (ROOT / "odesim").glob("*/__init__.py")}
    assert odesim.__all__
    assert not set(odesim.__all__) & modules


def test_every_floor_is_listed_once():
    """The table of floors holds no name twice."""
    assert len(ORDER) == len(set(ORDER))


def test_folders_of_tests_are_rooms():
    """The laws of a room are in the folder of its name; others are of what stands beside odesim/."""
    beside = {"models", "figures", "docs", "project", "frozen", "cuda", "support"}
    folders = {path.parent.relative_to(ROOT / "tests").parts[0] for path in (ROOT / "tests").glob("*/**/*.py")}
    assert folders <= {*ORDER, *beside}
    assert {path.name for path in (ROOT / "tests/lab").iterdir() if path.is_dir() and path.name[0] != "_"} <= {
        path.name for path in (ROOT / "odesim/lab").iterdir() if path.is_dir()
    }

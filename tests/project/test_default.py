"""What runs by default: few cases, in which each value of each factor of a law occurs."""

import ast
import subprocess
import sys
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from tests.support.cover import cover

ROOT = Path(__file__).parents[2]
TABLES: dict[str, tuple[Any, int | None, set[int]]] = {
    "no factor": ([()], None, {0}),
    "every row": (["a", "b", "c"], None, {0, 1, 2}),
    "the first rows": (["a", "b", "c"], 2, {0, 1}),
    "a diagonal, then the cheapest": ([*product("abc", "xy")], None, {0, 3, 4}),  # ax, by, cx
    "dear values beside cheap ones": ([*product("abcd", "xyz")], None, {0, 4, 8, 9}),  # ax, by, cz, dx
    "the first values of each": ([*product("abcd", "xyz")], 2, {0, 4}),
    "three factors": ([*product("ab", "xy", "12")], None, {0, 7}),
    "a pair that is missing": ([("a", "x"), ("a", "y"), ("b", "x")], None, {0, 1, 2}),  # greedy: ax first
}


@pytest.mark.parametrize("case", TABLES)
def test_a_cover(case: str) -> None:
    """Worked out by hand."""
    cases, first, chosen = TABLES[case]
    assert cover(cases, first) == chosen


@pytest.mark.parametrize("sizes", [(7,), (3, 5), (5, 3), (2, 4, 3)], ids=str)
def test_products_are_covered_by_the_longest_factor(sizes: tuple[int, ...]) -> None:
    """As many cases as the longest factor has values, which is the least possible, and no value is left out."""
    cases = [*product(*map(range, sizes))]
    chosen = [cases[k] for k in cover(cases)]
    assert len(chosen) == max(sizes) and [set(factor) for factor in zip(*chosen, strict=True)] == [set(range(n)) for n in sizes]


LAWS = """
import pytest
ROWS = [({}, []), ({}, [1]), ({}, [2])]  # neither hashable nor different

@pytest.mark.parametrize(("given", "want"), ROWS, ids=["p", "q", "r"])
@pytest.mark.parametrize("mode", ["u", "v"])
def test_rows(given, want, mode): ...

@pytest.mark.first(1)
@pytest.mark.parametrize("dear", "pq")
def test_first(dear): ...

@pytest.mark.parametrize("value", ["p", pytest.param("q", marks=pytest.mark.slow), pytest.param("r", marks=pytest.mark.gpu)])
def test_by_hand(value): ...

@pytest.fixture(params="pq")
def fixture(request): ...
def test_fixture(fixture): ...
"""


def collected(folder: Path, *options: str) -> list[str]:
    """FILE::TEST of each that pytest chooses."""
    words = "-m pytest -p no:cacheprovider -n 0 --collect-only -q -c pyproject.toml"
    done = subprocess.run([sys.executable, *words.split(), *options, str(folder)], cwd=ROOT, capture_output=True, text=True, check=True)
    return [line for line in done.stdout.splitlines() if "::" in line]


def test_cases_of_a_file(tmp_path: Path) -> None:
    """Rows are one factor, a fixture is one too; what is slow by hand stays slow, and a case on a GPU takes no other's place."""
    (tmp_path / "conftest.py").write_text("from tests.conftest import pytest_collection_modifyitems")
    (tmp_path / "test_laws.py").write_text(LAWS)
    default = ["test_rows[u-p]", "test_rows[v-q]", "test_rows[u-r]", "test_first[p]", "test_by_hand[p]", "test_by_hand[r]"]
    slow = ["test_rows[v-p]", "test_rows[u-q]", "test_rows[v-r]", "test_first[q]", "test_by_hand[q]"]
    for options, names in ((), [*default, "test_fixture[p]", "test_fixture[q]"]), (("-m", "slow"), slow):
        assert sorted(line.rpartition("::")[2] for line in collected(tmp_path, *options)) == sorted(names)


def slow_as_a_whole(law: str) -> bool:
    """Whether FILE::FUNCTION has the marker itself."""
    file, _, name = law.partition("::")
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    (function,) = (node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == name)
    return any(ast.unparse(decorator) == "pytest.mark.slow" for decorator in function.decorator_list)


@pytest.mark.slow
def test_no_law_is_slow_by_its_cases() -> None:
    """Of a law with a table some cases run by default, or it is marked as a whole."""
    slow, default = ({name.partition("[")[0] for name in collected(ROOT / "tests", *options)} for options in (("-m", "slow"), ()))
    assert [law for law in sorted(slow - default) if not slow_as_a_whole(law)] == []

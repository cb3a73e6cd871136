"""Numbers in sentences: one helper counts nouns, and no message is written around it."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from odesim.api.differences import Rerun
from odesim.base.errors import counted

ROOT = Path(__file__).parents[2]
# nouns that a number stands before, in messages, titles and tables
NOUNS = {
    *("members", "steps", "seeds", "rows", "points", "files", "components", "parts", "states", "entries", "events", "values", "modules"),
    *("numbers", "operations", "models", "threads", "chunks", "axes", "arrays", "columns", "quantities", "parameters", "tokens", "times"),
    *("positions", "devices", "attempts", "curves", "lines", "pictures", "iterations", "sides", "indices", "requests", "choices", "tasks"),
}
BETWEEN = {"saved", "right", "recorded", "learned", "failed", "explicit", "stiff"}  # words between a number and its noun


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (counted(1, "member"), "1 member"),
        (counted(0, "member"), "0 members"),
        (counted(2, "member"), "2 members"),
        (counted(1.0, "step"), "1 step"),
        (counted(1_000_000, "step"), "1000000 steps"),
        (counted(3, "index", "indices"), "3 indices"),
    ],
)
def test_words(made: str, text: str) -> None:
    """One of a thing has no s."""
    assert made == text


def constant(value: ast.expr) -> bool:
    """Whether it is a constant of the module, which is known to be more than one."""
    return isinstance(value, ast.Name) and value.id.isupper()


def written_by_hand(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """(line, text) of each f-string where a value is followed by the plural of a counted noun, or by the ending of an ordinal."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.JoinedStr):
            continue
        for value, after in zip(node.values, node.values[1:], strict=False):
            if isinstance(value, ast.FormattedValue) and isinstance(after, ast.Constant):
                text = str(after.value)
                words = [word for word in text.replace(",", " ,").split() if word not in BETWEEN]
                plural = text[:1] == " " and words and words[0].strip(".;:)") in NOUNS
                if (plural and not constant(value.value)) or text[:2] in ("th", "st", "nd", "rd"):
                    yield node.lineno, ast.unparse(value) + text


# what is always more than one, or no count: {file: the values}
PLURAL: dict[str, set[str]] = {
    "output.py": {"{thousands(stats['steps_per_second'])} iterations a second"},  # a rate
    "linearization.py": {"{n} states is neither sparse nor small blocks plus few sums, and "},  # above MOST_DENSE
    "panels.py": {"{thousands(n)} components"},  # of a picture that has no room for them
    "bind.py": {"{entries:.3g} entries ("},  # too many for any memory
    "auto.py": {"{rounded(whole)} steps"},  # more than a pilot has
    "conditions.py": {"{high - low:.3g} times between "},  # above the most
}


@pytest.mark.parametrize("room", ["odesim", "figures"])
def test_nouns_are_counted_by_the_helper(room: str) -> None:
    """`{n} members` in an f-string says "1 members" for one: `counted(n, "member")` does not. Names and words may stand before a noun."""
    found = []
    for path in sorted((ROOT / room).rglob("*.py")):
        allowed = PLURAL.get(path.name, set())
        found += [
            f"{path.relative_to(ROOT)}:{line}: {text}" for line, text in written_by_hand(ast.parse(path.read_text())) if text not in allowed
        ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(("stopped", "said"), [(True, "stopped after 1 member"), (False, "1 member computed again")])
def test_rows_of_a_rerun(stopped: bool, said: str) -> None:
    """The sentence of a comparison counts its rows too, and what differs."""
    one = Rerun(Path("run.zarr"), "member", 1, 1, "v of member 0", stopped=stopped)
    assert one.message == f"{said}: 1 differs, the first is v of member 0"

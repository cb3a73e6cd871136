"""The list of slow cases names cases that there are."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_slow_case_is_a_test():
    """A line of slow.txt is a test function of that file, sorted, each once; a case that was renamed would run by default again."""
    lines = (ROOT / "tests/slow.txt").read_text(encoding="utf-8").splitlines()
    assert lines == sorted(set(lines))
    for line in lines:
        file, name = re.fullmatch(r"(tests/[\w/]+\.py)::(\w+)(?:\[.*\])?", line).groups()  # type: ignore[union-attr]
        assert f"def {name}(" in (ROOT / file).read_text(encoding="utf-8"), line

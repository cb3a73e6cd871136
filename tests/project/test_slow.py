"""The lists of what is slow name tests that there are, and leave every law cases that run by default."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def lines_of(name: str) -> list[str]:
    return (ROOT / "tests" / name).read_text(encoding="utf-8").splitlines()


def is_a_test(line: str) -> bool:
    """Whether the file of this case has a function of its name."""
    file, name = re.fullmatch(r"(tests/[\w/]+\.py)::(\w+)(?:\[.*\])?", line).groups()  # type: ignore[union-attr]
    return f"def {name}(" in (ROOT / file).read_text(encoding="utf-8")


def test_every_slow_case_is_a_test():
    """A line of slow.txt is a test function of that file, sorted, each once; a case that was renamed would run by default again."""
    lines = lines_of("slow.txt")
    assert lines == sorted(set(lines)) and [line for line in lines if not is_a_test(line)] == []


def test_every_sampled_law_is_a_test():
    """A line of samples.txt is a number, 2 to 8, or two of them, and a test function, sorted by that, each once."""
    numbers, laws = zip(*(line.split(" ", 1) for line in lines_of("samples.txt")), strict=True)
    assert list(laws) == sorted(set(laws)) and [n for n in numbers if not re.fullmatch("[2-8]|[1-8]/[2-8]", n)] == []
    assert [law for law in laws if "[" in law or not is_a_test(law)] == []


def collected(*options: str) -> set[str]:
    """The test functions of which pytest, with these options, runs cases."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-n", "0", "--collect-only", "-q", *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return {line.partition("[")[0] for line in done.stdout.splitlines()}


@pytest.mark.slow
def test_every_sampled_law_has_cases_by_default():
    """And others that do not run: pytest says which."""
    assert {law for n, law in (line.split(" ", 1) for line in lines_of("samples.txt")) if n[0] != "1"} <= collected()


@pytest.mark.slow
def test_every_law_of_rare_cases_has_slow_ones():
    """Of a law whose slow cases are most often rare some are slow."""
    assert {law for n, law in (line.split(" ", 1) for line in lines_of("samples.txt")) if "/" in n} <= collected("-m", "slow")

"""Entries of a run's metadata changed, every file cut: each command ends with 0, 2 or 3 and a sentence, in bounded work and memory."""

import json
import random
import resource
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.strangers import READS, check_reading, copy, make_runs

MISSING = object()
VALUES: dict[str, Any] = {
    "missing": MISSING,
    "null": None,
    "true": True,
    "text": "x",
    "no text": "",
    "path": "../good.zarr/x",
    "escapes": "\x1b[31m\x1b]0;title\x07\r\u202e\u2028\n",
    "NUL": "a\0b",
    "half a letter": "\ud800",
    "formula": "=cmd()|$x$",
    "long": "n" * 5000,
    "0": 0,
    "-1": -1,
    "one and a half": 1.5,
    "large": 10**10,
    "larger": 2**63 - 1,
    "largest": 2**64,
    "beyond": 10**400,
    "real": 1e308,
    "small": -5e-324,
    "list": [],
    "lists": [[]],
    "numbers": [1, 2, 3, 4],
    "texts": ["x", "x"],
    "object": {},
    "objects": {"a": {"b": [None]}},
}
TEXTS = ("NaN", "Infinity", "-Infinity", "1e999", "{", "", "[" * 100_000, "\ufeff{}")  # what no writer of JSON makes
MOST_MEMORY = 1 << 30  # bytes more than a good run takes


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every entry; of a list to its first two and its last."""
    if path:
        yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        if not isinstance(value, list) or key in (0, 1, len(value) - 1):
            yield from places(one, (*path, key))


def changed(said: Any, path: tuple[Any, ...], value: Any) -> Any:
    """A copy of said with another entry there, or without it."""
    found = json.loads(json.dumps(said))
    at = found
    for key in path[:-1]:
        at = at[key]
    if value is MISSING:
        del at[path[-1]]
    else:
        at[path[-1]] = value
    return found


def writes(name: Path, content: bytes) -> Callable[[Path], None]:
    """A function that puts a file into a run."""

    def change(run: Path) -> None:
        (run / name).write_bytes(content)

    return change


def removes(name: Path) -> Callable[[Path], None]:
    """A function that takes a file or folder out of a run."""

    def change(run: Path) -> None:
        shutil.rmtree(run / name) if (run / name).is_dir() else (run / name).unlink()

    return change


def documents(run: Path) -> list[Path]:
    """The metadata of a run, its own first."""
    return sorted(run.rglob("zarr.json"), key=lambda file: (len(file.parts), file))


def changes(run: Path) -> Iterator[tuple[str, Callable[[Path], None]]]:
    """(what it is, what does it to a copy of the run)"""
    for document in documents(run):
        name, said = document.relative_to(run), json.loads(document.read_text())
        for path in places(said):
            for what, value in VALUES.items():
                text = json.dumps(changed(said, path, value))
                yield f"{name}: {'.'.join(map(str, path))} {what}", writes(name, text.encode())
        for path in [p for p in places(said) if not isinstance(said, list)][:40]:
            for raw in TEXTS[:4]:
                text = json.dumps(changed(said, path, "@here@")).replace('"@here@"', raw)
                yield f"{name}: {'.'.join(map(str, path))} {raw}", writes(name, text.encode())
        for raw in TEXTS:
            yield f"{name} is {raw[:9]!r}", writes(name, raw.encode())
    for file in sorted(p.relative_to(run) for p in run.rglob("*") if p.is_file()):
        content = (run / file).read_bytes()
        noise = np.random.default_rng(len(content)).bytes(len(content))
        for what, cut in {
            "cut": content[: len(content) // 2],
            "one byte": content[:1],
            "empty": b"",
            "noise": noise,
            "longer": content + noise,
            "header": content[:4] + b"\xff\xff\xff\x7f" + content[8:],
            "last": content[:-1] + b"\xff",
        }.items():
            yield f"{file} {what}", writes(file, cut)
        yield f"{file} removed", removes(file)
    for folder in sorted(p.relative_to(run) for p in run.rglob("*") if p.is_dir()):
        yield f"{folder}/ removed", removes(folder)


@contextmanager
def stopping() -> Iterator[Callable[[], bool]]:
    """A training or ensemble is asked to stop after a while, as Ctrl-C would: how long it takes is what the run says."""
    asked = count()
    yield lambda: next(asked) > 50


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """{kind: a good run}, in the current folder."""
    patch = pytest.MonkeyPatch()
    patch.setenv("COLUMNS", "80")
    try:
        found = make_runs(tmp_path_factory.mktemp("runs"), patch)
        for module in ("lab.train", "lab.resume", "api.rerun", "api.stored"):
            patch.setattr(f"odesim.{module}.stop_signals", stopping)
        yield found
    finally:
        patch.undo()


def memory() -> int:
    """The most bytes that this process ever had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def attack(runs: dict[str, Path], kind: str, chosen: Callable[[int], bool], commands: Callable[[int], tuple[str, ...]]) -> None:
    """Each chosen change of a run of this kind, read by these commands, which have read the good one before: what they load, they have."""
    copy(runs[kind], Path("good.zarr"))
    for command in READS:
        check_reading(command, str(copy(runs[kind], Path("bad.zarr"))))
    before = memory()
    for k, (what, change) in enumerate(changes(runs[kind])):
        if not chosen(k):
            continue
        for command in commands(k):
            run = copy(runs[kind], Path("bad.zarr"))
            change(run)
            try:
                check_reading(command, str(run))
            except BaseException as error:
                raise AssertionError(f"{kind}: {what}: {command}: {type(error).__name__}: {error}") from error
            assert memory() < before + MOST_MEMORY, f"{kind}: {what}: {command} took {(memory() - before) / 1e9:.3g} GB"


KINDS = ("integration", "ensemble", "training")


@pytest.mark.first(1)
@pytest.mark.parametrize("kind", KINDS)
def test_some_changes_of_a_run(kind, runs):
    """A few changes out of all, by a command each."""
    commands, total = list(READS), sum(1 for _ in changes(runs[kind]))
    chosen = set(random.Random(kind).sample(range(total), 12))
    attack(runs, kind, chosen.__contains__, lambda k: (commands[k % len(commands)],))


STRIDE = 23
"""Of the changes of a run (7,000 to 23,000) the slow law takes every 23rd: each place and each value comes, not all pairs of them."""


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("kind", KINDS)
def test_many_changes_of_a_run(kind, part, runs):
    """Every 23rd change, by one command each, in turn."""
    commands = list(READS)
    attack(runs, kind, lambda k: k % (4 * STRIDE) == STRIDE * part, lambda k: (commands[k // STRIDE % len(commands)],))

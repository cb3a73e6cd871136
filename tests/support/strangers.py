"""Stored runs of every kind, and what reads them: for tests of runs that come from somebody else."""

import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from odesim.base.errors import OdesimError
from odesim.cli import cli
from odesim.store.read import load_run
from tests.cli.test_rerun import MODEL
from tests.support import toy
from tests.support.metadata import edit as edit

MARK = "mark"
MARKED = f"__import__('pathlib').Path({MARK!r}).write_text('run')\n"
WITHOUT_EVENTS = MODEL[: MODEL.index(", events=")] + ",\n)\n"
MADE = {
    "integration": "integrate my.py --backend numpy --method tsit5 --rtol 1e-3 --max-steps 200 --save 3 --set a=3,1,2 --out {run}",
    "ensemble": "ensemble my.py --vary a=uniform(0.5,2) --zip x=1,2,3 --save 3 --observe twice --method rk4 --step 0.05 --out {run}",
    "training": "train toy --seeds 0:2 --steps 9 --save 4 --out {run}",
}
READS = {
    "status": ("status", "{run}"),
    "status --json": ("status", "{run}", "--json"),
    "export csv": ("export", "{run}", "--to", "csv", "--out", "out.csv", "--overwrite"),
    "export nc": ("export", "{run}", "--to", "nc", "--out", "out.nc", "--overwrite"),
    "plot": ("plot", "{run}", "--out", "out.png"),
    "compare": ("compare", "{run}", "good.zarr"),
    "rerun": ("rerun", "{run}"),
    "rerun --model": ("rerun", "{run}", "--model", "my.py"),
    "resume": ("resume", "{run}"),
    "resume --model": ("resume", "{run}", "--model", "my.py"),
    "open_run": (),
}
CONTROL = re.compile(r"[^\S \n]|[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069]")


def make_runs(folder: Path, monkeypatch: Any) -> dict[str, Path]:
    """{kind: a good run of it} in the folder, which is the current one; my.py is the model of two of them."""
    from odesim.lab import tasks

    monkeypatch.setattr(tasks, "TASKS", (*tasks.TASKS, "toy"))
    monkeypatch.setitem(sys.modules, "odesim.lab.tasks.toy", toy)
    monkeypatch.chdir(folder)
    (folder / "my.py").write_text(WITHOUT_EVENTS)
    found = {}
    for kind, words in MADE.items():
        found[kind] = folder / f"{kind}.zarr"
        done = CliRunner().invoke(cli, words.format(run=found[kind].name).split())
        assert done.exit_code in (0, 3), done.output
    return found


@contextmanager
def bounded(calls: int) -> Iterator[Callable[[], int]]:
    """Within it no more than so many functions of Python may be called: a bound on work that no clock and no load moves."""
    count = 0

    def watch(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event == "call"
        if count > calls:
            sys.setprofile(None)
            raise RuntimeError(f"more than {calls} calls")

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        yield lambda: count
    finally:
        sys.setprofile(before)


def read(command: str, run: str) -> tuple[int, str, str]:
    """(exit code, stdout, stderr) of a command, or of open_run from Python with all that it holds. Raises what is no way to end."""
    if command == "open_run":
        try:
            load_run(run)
        except OdesimError as error:
            return 2, "", f"odesim: {error}\n"
        return 0, "", ""
    done = CliRunner().invoke(cli, [word.format(run=run) for word in READS[command]])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, done.stdout, done.stderr


def check_reading(command: str, run: str, calls: int | None = 3_000_000) -> int:
    """The exit code of a command on a run that may hold anything: 0, 2 or 3, with a sentence unless 0; nothing of the run is run."""
    with bounded(calls) if calls else nullcontext():
        code, out, err = read(command, run)
    what = f"{command}: exit code {code}\n{out}{err}"
    assert code in (0, 2, 3) and "Traceback" not in err, what
    assert code == 0 or err.startswith("odesim: "), what
    assert all(line.startswith("odesim: ") for line in err.splitlines()) and len(err) < 2000, what
    assert code != 2 or (err.count("\n") == 1 and not out), what
    assert not CONTROL.search(out + err), f"{what!r}"
    if "--json" in command and code != 2:
        json.loads(out, parse_constant=lambda text: 1 / 0)
    assert not os.path.exists(MARK), f"{command} ran a file"
    return code


def copy(run: Path, to: Path) -> Path:
    """A copy of a run, in place of the last one."""
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(run, to)
    return to

"""Places that the system refuses: nobody may look, names over 255 bytes, a root, a file for a folder. One sentence, exit code 2."""

import importlib.readers  # noqa: F401, as these modules: somebody else may not read where they lie
import os
from contextlib import nullcontext
from pathlib import Path

import pytest

import odesim.api.ensemble
import odesim.api.stored
import odesim.lab.compare.runs  # noqa: F401
from tests.cli.test_wrong import closed, snapshot, somebody, workshop  # noqa: F401, they are fixtures

PLACES = {
    "closed": "{closed}/no/run.zarr",
    "long": "n" * 300,
    "long inside": f"folder/{'n' * 300}",
    "root": "/",
    "in a file": "good.py/run.zarr",
}
COMMANDS = (
    *("status {0}", "status {0} --json", "resume {0}", "rerun {0}", "plot {0}", "export {0} --to csv", "compare {0} {0}"),
    *("new {0}", "new {0}.py", "show {0}.py", "integrate {0}.py", "integrate joma.nonlinear --out {0}"),
    *("integrate joma.nonlinear --plot {0}.png", "integrate joma.nonlinear --params {0}", "integrate joma.nonlinear --set mu=@{0}.npy"),
    *("ensemble joma.nonlinear --grid mu=1,2 --out {0}", "train scan_snap --out {0}", "train scan_snap --out {0} --resume"),
    *("train scan_snap --out {0} --overwrite", "ensemble joma.nonlinear --grid mu=1,2 --shard 1/2 --out {0}"),
)


@pytest.mark.parametrize("place", PLACES)
def test_no_place(place, workshop, odesim, closed, monkeypatch):  # noqa: F811
    """Every command that takes a path: no traceback, nothing computed, nothing written."""

    def fail(*_: object, **__: object) -> None:
        pytest.fail("it was computed")

    monkeypatch.setattr("odesim.stepper.drive.RunState", fail)
    monkeypatch.setattr("odesim.targets.cache.write_file", fail)
    (workshop / "folder").mkdir()
    inner = Path(closed, "no")
    Path(closed).chmod(0o755)
    inner.mkdir()
    inner.chmod(0)
    path = PLACES[place].format(closed=closed)
    before = snapshot(workshop)
    for command in COMMANDS:
        if os.path.isdir(path) and command.startswith("integrate joma.nonlinear --plot"):
            continue  # /.png is a file that could be written
        with somebody() if place == "closed" else nullcontext():
            done = odesim(*command.format(path).split())
        assert (done.exit_code, done.stdout) == (2, ""), (command, done.output)
        assert done.stderr.startswith("odesim: ") and done.stderr.count("\n") == 1, (command, done.stderr)
    assert snapshot(workshop) == before
    inner.chmod(0o700)
    inner.rmdir()

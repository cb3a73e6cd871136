"""A stored run is data: a model file that it names runs only where the user gives the file, and it is the one of then."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import odesim as library
from odesim.api.rerun import rerun_ensemble, rerun_integration
from odesim.api.stored import resume
from odesim.base.errors import OdesimError
from tests.cli.test_rerun import MODEL, change

MARKED = MODEL + "__import__('pathlib').Path('mark').write_text('x')\n"
MADE = {
    "integration": "integrate {model} --max-steps 5 --save 3 --out run.zarr --quiet",
    "ensemble": "ensemble {model} --grid a=1,2 --save 3 --out run.zarr --quiet",
}
COMMANDS = {"integration": ("rerun",), "ensemble": ("rerun", "resume")}
CASES = [(kind, command) for kind, commands in COMMANDS.items() for command in commands]


def undone(path: Path) -> None:
    """Members of a stored ensemble are not done, so that resume has something to do."""
    import zarr

    array: Any = zarr.open_array(path / "status")
    array[...] = -1


@pytest.fixture
def run(odesim, folder):
    """run(words) -> Result of the command line; my.py is a model in its folder that leaves a mark when it runs."""
    (folder / "my.py").write_text(MARKED)
    return lambda words: odesim(*words.split())


@pytest.mark.first(1)
@pytest.mark.parametrize(("kind", "command"), CASES)
def test_a_file_that_a_run_names_is_not_run(kind, command, run, folder):
    """Without --model, with another file, without a sha256: exit code 2, one sentence, no file is run. With the file: it goes on."""
    assert run(MADE[kind].format(model="my.py")).exit_code in (0, 3)
    if command == "resume":
        undone(folder / "run.zarr")
    said = json.loads((folder / "run.zarr" / "zarr.json").read_text())["attributes"]
    (folder / "mark").unlink()
    (folder / "run.zarr" / "inside.py").write_text(MARKED)
    (folder / "other.py").write_text(MARKED + "# longer\n")
    attempts: list[tuple[dict[str, Any], str, str]] = [
        ({}, "", "a file that a run names is not run: give it with --model FILE.py"),
        ({"ref": str(folder / "run.zarr" / "inside.py")}, "", "a file that a run names is not run"),
        ({"ref": "run.zarr/inside.py"}, "", "a file that a run names is not run"),
        ({"ref": "run.zarr/inside.py:SYSTEM"}, "", "a file that a run names is not run"),
        ({}, "--model other.py", "is not the file that the run was made from"),
        ({}, "--model run.zarr/other.py", "there is no model file"),
        ({}, "--model joma.linear", "--model takes that file, not 'joma.linear'"),
        ({"model_sha256": ""}, "--model my.py", "does not store its sha256"),
        ({"model_sha256": None}, "--model my.py", "does not store its sha256"),
        ({"model_sha256": ["0"] * 64}, "--model my.py", "does not store its sha256"),
        ({"ref": ["my.py"]}, "--model my.py", "its attribute 'ref' is"),
        ({"ref": "joma.nonlinear"}, "--model my.py", "was made from the installed model joma.nonlinear"),
        ({"ref": "os"}, "", "no model 'os'"),
        ({"ref": "odesim.cli"}, "", "no model 'odesim.cli'"),
    ]
    for changed, option, sentence in attempts:
        change("run.zarr", **{**said, **changed})
        done = run(f"{command} run.zarr {option}")
        assert (done.exit_code, done.stdout) == (2, "") and done.stderr.count("\n") == 1, done.output
        assert sentence in done.stderr and not (folder / "mark").exists()
    change("run.zarr", **said)
    done = run(f"{command} run.zarr --model my.py")
    assert done.exit_code == 0 and (folder / "mark").exists(), done.stderr


@pytest.mark.slow
def test_the_same_from_python(run, folder):
    """The functions behind the commands, and open_run: without the file nothing is run."""
    for kind, command in MADE.items():
        run(f"{command.format(model='my.py')} --overwrite")
        (folder / "mark").unlink()
        library.open_run("run.zarr").load()
        again: list[Any] = [rerun_integration] if kind == "integration" else [rerun_ensemble, resume]
        if kind == "ensemble":
            undone(folder / "run.zarr")
        for function in again:
            with pytest.raises(OdesimError, match="a file that a run names is not run"):
                function(folder / "run.zarr")
        assert not (folder / "mark").exists()
        for function in again:
            function(folder / "run.zarr", model=folder / "my.py")


def test_the_digest_is_that_of_what_was_run(run, folder):
    """A file that changes while it is integrated: the run stores the sha256 of the content that was run."""
    from hashlib import sha256

    (folder / "my.py").write_text(MODEL + "__import__('pathlib').Path('my.py').write_text('# another')\n")
    then = sha256((folder / "my.py").read_bytes()).hexdigest()
    assert run("integrate my.py --save 3 --out run.zarr --quiet").exit_code == 0
    assert json.loads((folder / "run.zarr" / "zarr.json").read_text())["attributes"]["model_sha256"] == then


def test_another_constant_of_the_file(run, folder):
    """my.py:OTHER is taken by --model my.py too."""
    (folder / "my.py").write_text(MODEL.replace("SYSTEM =", "OTHER ="))
    assert run("integrate my.py:OTHER --save 3 --out run.zarr --quiet").exit_code == 0
    for file in ("my.py", "my.py:OTHER", folder / "my.py"):
        done = run(f"rerun run.zarr --model {file}")
        assert done.exit_code == 0, done.stderr


def test_model_is_for_runs_of_a_file(run):
    """A training and a shipped model have no file."""
    assert run("train scan_snap --steps 2 --out train.zarr --quiet").exit_code == 0
    assert run("integrate joma.nonlinear --size M=2 --save 3 --out run.zarr --quiet").exit_code == 0
    for command in ("rerun train.zarr", "resume train.zarr", "rerun run.zarr"):
        done = run(f"{command} --model my.py")
        assert done.exit_code == 2 and "--model is for" in done.stderr, done.output


IDENTICAL = {
    "ensemble": {
        "rtol": 1e-3,
        "atol": 1e-3,
        "max_steps": 7,
        "seed": 5,
        "strict": 1,
        "dtype": "float32",
        "method": "vern7",
        "span": [0.0, 1.5],
        "status_names": ["event", "ok"],
        "method_names": ["rodas5p", "tsit5"],
        "lanes": 0,
    },
    "training": {"seeds": [3, 4], "dtype": "float32", "save": 3, "observe": ["cubes"], "task": "scan_snap"},
}


@pytest.mark.first(3)
@pytest.mark.parametrize("state", ["finished", "begun"])
@pytest.mark.parametrize("name", ["status_names", "method_names"])
@pytest.mark.parametrize(
    "change_of", [list.pop, list.reverse, lambda names: names.append("fine"), lambda names: names.__setitem__(0, "fine")]
)
def test_resume_believes_no_names(change_of, name, state, run, folder):
    """Names of statuses and methods that are not those of this version, of a finished run too: exit code 2 and one sentence."""
    run("ensemble my.py --grid a=1,2 --save 3 --out run.zarr --quiet")
    if state == "begun":
        undone(folder / "run.zarr")
    said = json.loads((folder / "run.zarr" / "zarr.json").read_text())["attributes"]
    names = list(said[name])
    change_of(names)
    change("run.zarr", **{**said, name: names})
    done = run("resume run.zarr --model my.py")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == f"odesim: run.zarr was changed: its attribute {name!r} is not what this version of odesim writes\n"
    change("run.zarr", **said)
    assert run("resume run.zarr --model my.py").exit_code == 0


@pytest.mark.parametrize("kind", IDENTICAL)
def test_resume_goes_on_with_what_was_begun(kind, run, folder, monkeypatch):
    """Whatever identifies a run and was changed between a stop and resume: exit code 2, one sentence, and nothing is written."""
    from tests.cli.test_rerun import stopped
    from tests.support import toy

    monkeypatch.setattr("odesim.lab.tasks.TASKS", ("toy", "scan_snap"))
    monkeypatch.setitem(sys.modules, "odesim.lab.tasks.toy", toy)
    if kind == "ensemble":
        run("ensemble my.py --grid a=1,2 --zip x=1,2 --save 3 --out run.zarr --quiet")
        undone(folder / "run.zarr")
    else:
        with monkeypatch.context() as patched:
            stopped(patched, 4)
            assert run("train toy --seeds 0:2 --out run.zarr --quiet").exit_code == 3
    said = json.loads((folder / "run.zarr" / "zarr.json").read_text())["attributes"]
    other: dict[str, Any] = {"ensemble": {}, "training": {"config": {**said.get("config", {}), "rate": 0.3}}}[kind]
    if kind == "training":
        other["optimizer"] = {**said["optimizer"], "momentum": 0.25}
    elif said["design"][0]["kind"] == "points":
        other["design"] = [{**said["design"][0], "repeat": 3}, *said["design"][1:]]
    before = {p: p.stat().st_mtime_ns for p in (folder / "run.zarr").rglob("*") if p.name != "zarr.json"}
    for name, value in {**IDENTICAL[kind], **other}.items():
        change("run.zarr", **{**said, name: value})
        done = run("resume run.zarr" + " --model my.py" * (kind == "ensemble"))
        assert (done.exit_code, done.stdout) == (2, "") and done.stderr.count("\n") == 1, (name, done.output)
        assert "was changed: its" in done.stderr or name == "task", (name, done.stderr)
    assert {p: p.stat().st_mtime_ns for p in before} == before
    change("run.zarr", **said)
    assert run("resume run.zarr" + " --model my.py" * (kind == "ensemble")).exit_code == 0

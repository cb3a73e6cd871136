"""Trainings with cupy's arrays that are stored, gone on with and computed again, and those that are refused."""

import sys
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from odesim.base.errors import ParamError
from odesim.cli import cli
from odesim.lab.resume import rerun_training, resume_training
from odesim.lab.store import training_attributes
from odesim.lab.training.loop import Trajectory
from tests.cuda.test_training import BACKEND, same, trained
from tests.support.metadata import change_attributes


@pytest.mark.first(1)
@pytest.mark.parametrize("case", ["scan_snap", "adam", "hierarchy_dag"])
def test_cuda_run_goes_on_with_its_bits(case: str, arrays: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Stopped, gone on with, made longer and computed again: the rows and the end of a training that never stopped."""
    path, asked = tmp_path / "run.zarr", iter([False] * 4 + [True])
    with monkeypatch.context() as patch:
        patch.setattr("odesim.lab.resume.stop_signals", lambda: nullcontext(lambda: next(asked)))
        assert trained(case, steps=9, out=path, **BACKEND).iteration == 4
    uses: dict[int, Callable[[], Trajectory]] = {
        9: lambda: resume_training(path),
        12: lambda: trained(case, steps=12, out=path, resume=True, **BACKEND),
    }
    for steps, use in uses.items():
        whole = trained(case, steps=steps, **BACKEND)
        arrays.copied.clear()
        same(whole, on_disk(use()))
        assert arrays.copied
    arrays.copied.clear()
    found = rerun_training(path)
    assert found.same and found.other == "" and arrays.copied, found.message
    said = training_attributes(path)
    assert (said["backend"], said["versions"]["cupy"], said["versions"]["gpu"]) == ("cuda", "13.4.0", "Pretended")


def on_disk(run: Trajectory) -> Trajectory:
    """The same with its rows read."""
    return replace(run, observables={name: run.observables[name] for name in run.observables})


@pytest.mark.parametrize("first", ["numpy", "cuda"])
def test_cuda_and_numpy_do_not_go_on_with_each_other(first: str, arrays: Any, tmp_path: Path) -> None:
    """Its bits would be neither's; what is stored stays as it is."""
    path, other = tmp_path / "run.zarr", {"numpy": "cuda", "cuda": "numpy"}[first]
    trained("scan_snap", out=path, backend=first)
    with pytest.raises(ParamError, match=f"was trained with backend = {first}, not {other}; --resume takes the same command"):
        trained("scan_snap", steps=9, out=path, resume=True, backend=other)
    assert training_attributes(path)["iteration"] == 4


def test_cuda_is_not_what_older_runs_were_trained_with(tmp_path: Path) -> None:
    """A run that names no backend is numpy's."""
    path = tmp_path / "run.zarr"
    trained("scan_snap", out=path)
    change_attributes(path, backend=None)
    assert rerun_training(path).same
    assert trained("scan_snap", steps=6, out=path, resume=True).iteration == 6


COMMANDS = {
    "train": "train scan_snap --backend cuda --out run.zarr",
    "compare": "compare scan_snap.full --task scan_snap --backend cuda",
    "resume": "resume there.zarr",
    "rerun": "rerun there.zarr",
}


@pytest.mark.parametrize("missing", ["cupy", "device"])
@pytest.mark.parametrize("command", COMMANDS)
def test_cuda_is_refused_where_it_is_not(command: str, missing: str, arrays: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Exit code 2 and one sentence; nothing is written, and nothing falls back to numpy."""
    monkeypatch.chdir(tmp_path)
    trained("scan_snap", out="there.zarr", **BACKEND)
    if missing == "cupy":
        monkeypatch.setitem(sys.modules, "cupy", None)
    else:
        arrays.cuda.runtime.getDeviceCount = lambda: 0
    done = CliRunner().invoke(cli, COMMANDS[command].split())
    assert done.exit_code == 2 and done.stdout == ""
    sentence = (
        "needs cupy, which is not installed: pip install 'odesim[cuda" if missing == "cupy" else "needs an NVIDIA GPU, and there is none"
    )
    assert f"odesim: the backend cuda {sentence}" in done.stderr and len(done.stderr.splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["there.zarr"]

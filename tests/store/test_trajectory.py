"""Stored trainings: what is on disk is what was computed, whenever and however the training stopped."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import odesim
from odesim.base.errors import ParamError, StoreError
from odesim.lab.store import checkpoint_file, read_trajectory
from odesim.store.read import read_solution
from tests.support.metadata import change_attributes
from tests.support.toy import TASK

ROOT = Path(__file__).parents[2]


def same(a, b):
    """Two stored trainings hold the same variables, axes and bits."""
    a, b = odesim.open_run(a).load(), odesim.open_run(b).load()
    assert list(a.variables) == list(b.variables)
    for name in a.variables:
        assert a[name].dims == b[name].dims and a[name].dtype == b[name].dtype
        np.testing.assert_array_equal(a[name].values, b[name].values)


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """A training that was never stopped."""
    path = tmp_path_factory.mktemp("whole") / "run.zarr"
    odesim.train(TASK, seeds=(0, 3), steps=40, out=path)
    return path


@pytest.mark.first(2)
@pytest.mark.parametrize("block", [None, 1, 7])
def test_what_is_stored_is_what_was_computed(block, tmp_path, monkeypatch):
    """Rows on disk, whatever the block, and what is read back are those of a training in memory."""
    if block:
        monkeypatch.setattr("odesim.lab.store.BLOCK_ROWS", block)
    path = tmp_path / "run.zarr"
    stored, plain = odesim.train(TASK, seeds=(0, 3), out=path), odesim.train(TASK, seeds=(0, 3))
    dataset, back = odesim.open_run(path), read_trajectory(path)
    assert dataset.attrs["task"] == "toy" and dataset.attrs["seeds"] == [0, 3] and dataset.attrs["optimizer"]["name"] == "sgd"
    assert [*dataset.data_vars] == [*plain.final] and dataset.seed.values.tolist() == [0, 3]
    for got in (stored, back):
        assert (got.status, got.iteration, got.steps, got.seeds) == ("ok", 20, 20, (0, 3)) and set(got.observables) == set(
            plain.observables
        )
        np.testing.assert_array_equal(got.t, plain.t)
        for name, rows in plain.observables.items():
            np.testing.assert_array_equal(got.observables[name], rows)
            np.testing.assert_array_equal(dataset[name].values, rows)
        for name, value in plain.final.items():
            np.testing.assert_array_equal(got.final[name], value)
    assert dataset.outer.dims == ("seed", "wide") and dataset.w.dims == ("seed", "time", "d")
    assert os.listdir(tmp_path) == ["run.zarr"]


@pytest.mark.first(2)
@pytest.mark.parametrize("at", [0, 1, 14, 40])
@pytest.mark.parametrize("block", [None, 5])
def test_resume_gives_the_same_dataset(at, block, whole, tmp_path, monkeypatch):
    """Stopped before iteration `at`, read, and gone on with: the dataset of a training that was never stopped."""
    if block:
        monkeypatch.setattr("odesim.lab.store.BLOCK_ROWS", block)
    path, count = tmp_path / "run.zarr", iter(range(10**6))
    monkeypatch.setattr("odesim.lab.resume.stop_signals", lambda: _Stop(lambda: next(count) == at))
    half = odesim.train(TASK, seeds=(0, 3), steps=40, out=path)
    monkeypatch.undo()
    run, back = odesim.open_run(path), read_trajectory(path)
    assert (half.status, half.iteration) == ("interrupted", at) == (run.attrs["status"], run.attrs["iteration"])
    assert run.sizes["time"] == at == len(back.t)
    np.testing.assert_array_equal(back.final["w"], half.final["w"])
    assert not np.isnan(run.loss.values).any()
    done = odesim.train(TASK, seeds=(0, 3), out=path, resume=True)
    assert (done.status, done.iteration) == ("ok", 40)
    same(path, whole)
    for name, value in read_trajectory(whole).final.items():
        np.testing.assert_array_equal(read_trajectory(path).final[name], value)


class _Stop:
    """What odesim.base.signals.stop_signals gives, without signals."""

    def __init__(self, stop):
        self.stop = stop

    def __enter__(self):
        return self.stop

    def __exit__(self, *_):
        return None


def test_a_longer_training_is_the_long_one(whole, tmp_path):
    """A finished training with more steps: the dataset of one that had them from the start."""
    path = tmp_path / "run.zarr"
    odesim.train(TASK, seeds=(0, 3), steps=15, out=path)
    odesim.train(TASK, seeds=(0, 3), steps=40, out=path, resume=True)
    same(path, whole)


def test_resume_of_a_finished_training_does_nothing(whole):
    """No file changes, and what is given back is what is stored."""
    before = {p: p.stat().st_mtime_ns for p in whole.rglob("*")}
    again = odesim.train(TASK, seeds=(0, 3), out=whole, resume=True)
    assert (again.status, again.iteration) == ("ok", 40) and before == {p: p.stat().st_mtime_ns for p in whole.rglob("*")}


KILLED = """
import sys
import time
sys.path.insert(0, {root!r})
import odesim
from tests.support.toy import TASK


def hang(done, *_):  # however late the signal is, the training is not done
    while done >= {at}:
        time.sleep(1)


odesim.train(TASK, seeds=(0, 3), steps=40, settings={{"slow": 0.01}}, out={path!r}, resume=True, checkpoint_every=0.02, progress=hang)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_killed_at_any_moment(tmp_path, monkeypatch):
    """SIGKILL twice, the second time a little later: the training goes on from its checkpoint and ends with the same bits."""
    path = tmp_path / "run.zarr"
    for wait, at in ((0.0, 20), (0.1, 36)):
        process = subprocess.Popen([sys.executable, "-c", KILLED.format(root=str(ROOT), path=str(path), at=at)], stdin=subprocess.DEVNULL)
        begin = checkpoint_file(path).stat().st_mtime_ns if checkpoint_file(path).exists() else 0
        while process.poll() is None and not (checkpoint_file(path).exists() and checkpoint_file(path).stat().st_mtime_ns > begin):
            time.sleep(0.002)
        time.sleep(wait)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        attributes = json.loads((path / "zarr.json").read_text())["attributes"]
        assert attributes["status"] == "running" and odesim.open_run(path).sizes["time"] == attributes["rows"]
    odesim.train(TASK, seeds=(0, 3), steps=40, settings={"slow": 0.01}, out=path, resume=True)
    straight = tmp_path / "straight.zarr"
    odesim.train(TASK, seeds=(0, 3), steps=40, settings={"slow": 0.01}, out=straight)
    same(path, straight)


OTHERS: dict[str, Any] = {
    "setting": ({"settings": {"rate": 0.2}}, "setting rate = 0.1, not 0.2"),
    "seeds": ({"seeds": (0, 4)}, "seeds = [0, 3], not [0, 4]"),
    "dtype": ({"dtype": "float32"}, "dtype = float64, not float32"),
    "optimizer": ({"optimizer": "adam"}, "optimizer = "),
    "rates": ({"rates": {"w": 0.3}}, "optimizer = "),
    "save": ({"save": 7}, "save = None, not 7"),
    "observe": ({"observe": ["cubes"]}, "observe = [], not ['cubes']"),
    "fewer steps": ({"steps": 39}, "40 iterations already, more than the 39"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_another_training_is_not_gone_on_with(name, whole):
    """Another configuration: one sentence with what differs, and nothing is touched."""
    options, piece = OTHERS[name]
    before = {p: p.stat().st_mtime_ns for p in whole.rglob("*")}
    with pytest.raises(ParamError) as raised:
        odesim.train(TASK, **{"seeds": (0, 3), **options}, out=whole, resume=True)
    assert piece in str(raised.value), raised.value
    assert before == {p: p.stat().st_mtime_ns for p in whole.rglob("*")}


def test_places(whole, tmp_path):
    """What is there is replaced with overwrite only; an integration is no training, nor a training an integration."""
    with pytest.raises(StoreError, match="give another name or --overwrite"):
        odesim.train(TASK, seeds=(0, 3), out=whole)
    with pytest.raises(StoreError, match=r"is a training of toy, not an integration"):
        read_solution(whole)
    path = tmp_path / "run.zarr"
    odesim.train(TASK, out=path)
    odesim.train(TASK, out=path, overwrite=True, steps=3)
    assert odesim.open_run(path).sizes["time"] == 4 and os.listdir(tmp_path) == ["run.zarr"]
    change_attributes(path, task=None)
    with pytest.raises(StoreError, match="its attribute 'method' is missing"):
        odesim.train(TASK, out=path, resume=True)


def test_resume_where_nothing_is_begins(whole, tmp_path):
    """A training that was killed before its first checkpoint begins anew; so does one that is not there."""
    path = tmp_path / "run.zarr"
    odesim.train(TASK, seeds=(0, 3), steps=40, out=path, resume=True)
    same(path, whole)
    checkpoint_file(path).unlink()
    change_attributes(path, status="running", iteration=0, rows=0)
    odesim.train(TASK, seeds=(0, 3), out=path, resume=True)
    same(path, whole)


def test_a_full_disk_says_so(tmp_path, monkeypatch):
    """Where a checkpoint finds no room: one sentence; the run so far can be gone on with."""

    def full(*_):
        raise OSError(28, "No space left on device")

    path = tmp_path / "run.zarr"
    monkeypatch.setattr("odesim.lab.training.loop.write_checkpoint", full)
    with pytest.raises(StoreError, match="No space left on device; --resume continues"):
        odesim.train(TASK, out=path)
    monkeypatch.undo()
    assert odesim.train(TASK, out=path, resume=True).status == "ok"


def edited(**said: Any):
    """Writes these attributes over those of a run; None takes one away."""
    return lambda path: change_attributes(path, **said)


def test_theory_follows_the_rates_of_a_stored_training(tmp_path):
    """An early run with --lr has the rate that was used beside the setting that it replaced: the rate is read as the setting."""
    path = tmp_path / "run.zarr"
    odesim.train("valley", steps=2, rates={"all": 0.03}, out=path)
    config = json.loads((path / "zarr.json").read_text())["attributes"]["config"]
    edited(config={**config, "eta": 0.1})(path)
    assert read_trajectory(path).config == config


def garbled(path: Path) -> None:
    """Overwrites the chunks of loss."""
    for chunk in (path / "loss" / "c").rglob("*"):
        if chunk.is_file():
            chunk.write_bytes(b"junk")


DAMAGED: dict[str, Any] = {
    "no config": (edited(config=None), "its attribute 'config' is missing"),
    "no steps": (edited(steps=None), "its attribute 'steps'"),
    "no status": (edited(status=None), "its attribute 'status'"),
    "rows in words": (edited(rows="many"), "its attribute 'rows' is 'many'"),
    "rows below 0": (edited(rows=-1), "its attribute 'rows' is '-1'"),
    "config is a list": (edited(config=[1]), "its attribute 'config'"),
    "an observable too many": (edited(observables=["loss", "nope"]), "nope"),
    "a seed in words": (edited(bad={"x": 1}), "its attribute 'bad'"),
    "no loss": (lambda path: shutil.rmtree(path / "loss"), "loss"),
    "no time": (lambda path: shutil.rmtree(path / "time"), "time"),
    "loss without its json": (lambda path: (path / "loss" / "zarr.json").unlink(), "loss"),
    "junk in loss": (garbled, "loss/c/0/0 is not what was written"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_run_is_one_sentence(name, whole, tmp_path):
    """What is half deleted or overwritten is refused, by what reads it and by --resume, and nothing is written."""
    damage, said = DAMAGED[name]
    path = tmp_path / "run.zarr"
    shutil.copytree(whole, path)
    damage(path)
    before = {p: p.stat().st_mtime_ns for p in path.rglob("*")}

    def read() -> None:
        read_trajectory(path).observables["loss"]

    steps = (40,) if name == "junk in loss" else (40, 41)  # a longer training writes that anew

    uses: list[Callable[[], Any]] = [read]
    uses += [partial(odesim.train, TASK, seeds=(0, 3), steps=n, out=path, resume=True) for n in steps]
    for use in uses:
        with pytest.raises(StoreError, match=r"run\.zarr is damaged") as raised:
            use()
        assert said in str(raised.value)
    assert {p: p.stat().st_mtime_ns for p in path.rglob("*")} == before


def test_rows_that_the_checkpoint_counts_on(whole, tmp_path, monkeypatch):
    """A run with fewer rows than its checkpoint says were written is refused, not filled with what was never computed."""
    monkeypatch.setattr("odesim.lab.store.BLOCK_ROWS", 5)
    path = tmp_path / "run.zarr"
    odesim.train(TASK, seeds=(0, 3), steps=15, out=path)
    edited(rows=4)(path)
    with pytest.raises(StoreError, match="has 4 recorded iterations, and its checkpoint goes on after 15"):
        odesim.train(TASK, seeds=(0, 3), steps=40, out=path, resume=True)


@pytest.mark.skipif(sys.platform == "win32", reason="has no flock")
@pytest.mark.parametrize("how", [{"resume": True}, {"overwrite": True}])
def test_one_writer_at_a_time(how, tmp_path):
    """While one training writes, another into the same folder is refused, and the first has the bits of one left alone."""
    path, refused = tmp_path / "run.zarr", []

    def meanwhile(done: int, *_: Any) -> None:
        if done == 3:
            with pytest.raises(StoreError, match=r"another training is writing into .*run\.zarr") as raised:
                odesim.train(TASK, steps=9, out=path, **how)
            refused.append(raised)

    first = odesim.train(TASK, steps=6, out=path, progress=meanwhile)
    assert len(refused) == 1 and first.ok
    np.testing.assert_array_equal(read_trajectory(path).observables["w"], odesim.train(TASK, steps=6).observables["w"])
    assert odesim.train(TASK, steps=9, out=path, **how).ok  # the lock ended with the training


def test_a_folder_that_came_meanwhile(tmp_path, monkeypatch):
    """Of two trainings that find the place free, the one that comes second is refused and leaves the first as it is."""
    path = tmp_path / "run.zarr"
    monkeypatch.setattr("odesim.store.paths.check_new_run", lambda path, **_: path)
    odesim.train(TASK, steps=6, out=path)
    with pytest.raises(StoreError, match="is there"):
        odesim.train(TASK, steps=9, out=path)
    assert read_trajectory(path).iteration == 6 and os.listdir(tmp_path) == ["run.zarr"]


def test_a_checkpoint_that_would_swell(whole, tmp_path):
    """A compressed npz, which may be a thousand times as large in memory, is none of odesim's: one sentence."""
    path = tmp_path / "run.zarr"
    shutil.copytree(whole, path)
    file = checkpoint_file(path)
    with np.load(file) as found:
        arrays = dict(found)
    np.savez_compressed(file, **(arrays | {"params/large": np.zeros(10**7)}))
    with pytest.raises(ParamError, match="it is compressed"):
        odesim.train(TASK, seeds=(0, 3), steps=50, out=path, resume=True)

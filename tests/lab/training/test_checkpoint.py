"""Checkpoints: whole or not at all, and a training that goes on from one has the bits of one that never stopped."""

import os
from dataclasses import replace

import numpy as np
import pytest

from odesim.base.errors import ParamError
from odesim.lab.training.loop import TrainingOptions, TrainingStorage, train
from odesim.lab.training.optimizers import OPTIMIZERS
from odesim.lab.training.record import Checkpoint, read_checkpoint, write_checkpoint
from odesim.lab.training.task import check_settings
from tests.support.toy import TASK


def experiment(optimizer="sgd"):
    e = TASK.make(check_settings("toy", TASK.settings, {}), seeds=(0, 3))
    return replace(e, optimizer=replace(e.optimizer, name=optimizer))


def interrupted(path, at, **options):
    """A checkpoint of a training that was stopped before iteration `at`."""
    count = iter(range(10**6))
    train(
        experiment(options.pop("optimizer", "sgd")),
        TrainingOptions(**options),
        TrainingStorage(checkpoint=path),
        stop=lambda: next(count) == at,
    )
    return read_checkpoint(path)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize(("at", "steps", "save"), [(0, 20, None), (7, 20, None), (20, 20, None), (7, 20, 6), (8, 20, 6), (11, 11, None)])
def test_the_same_bits(optimizer, at, steps, save, tmp_path):
    """Stopped anywhere and gone on with, with any optimizer and any grid: rows and final values have the bits of one run."""
    whole = train(experiment(optimizer), TrainingOptions(steps=steps, save=save))
    held = interrupted(tmp_path / "c.npz", at, steps=steps, save=save, optimizer=optimizer)
    assert held.iteration == at
    got = train(experiment(optimizer), TrainingOptions(steps=steps, save=save), TrainingStorage(resume_from=held))
    assert (got.status, got.iteration) == ("ok", steps)
    np.testing.assert_array_equal(got.t, whole.t)
    assert set(got.observables) == set(whole.observables)
    for name, rows in whole.observables.items():
        np.testing.assert_array_equal(got.observables[name], rows)
    for name, value in whole.final.items():
        np.testing.assert_array_equal(got.final[name], value)


def test_more_steps(tmp_path):
    """A finished training made longer: the bits of a long one where both recorded, and no row is lost."""
    path = tmp_path / "c.npz"
    short = train(experiment(), TrainingOptions(steps=12, save=5), TrainingStorage(checkpoint=path))
    longer = train(experiment(), TrainingOptions(steps=31, save=7), TrainingStorage(resume_from=read_checkpoint(path)))
    whole = train(experiment(), TrainingOptions(steps=31))
    assert longer.t.tolist() == [*short.t, 16, 21, 26, 31]
    for name, rows in longer.observables.items():
        np.testing.assert_array_equal(rows, whole.observables[name][:, longer.t])
    with pytest.raises(ParamError, match="12 iterations already, more than the 11"):
        train(experiment(), TrainingOptions(steps=11), TrainingStorage(resume_from=read_checkpoint(path)))


def test_checkpoints_on_the_way(tmp_path, monkeypatch):
    """With no time between them, one is written before every iteration but the first; each gives the bits of the whole run."""
    seen = []

    def keep(path, checkpoint):
        write_checkpoint(path, checkpoint)
        seen.append(read_checkpoint(path))

    monkeypatch.setattr("odesim.lab.training.loop.write_checkpoint", keep)
    whole = train(experiment("adam"), TrainingOptions(steps=6), TrainingStorage(checkpoint=tmp_path / "c.npz", checkpoint_every=0.0))
    monkeypatch.undo()
    assert [c.iteration for c in seen] == [1, 2, 3, 4, 5, 6, 6]
    for held in seen:
        got = train(experiment("adam"), TrainingOptions(steps=6), TrainingStorage(resume_from=held))
        np.testing.assert_array_equal(got.observables["w"], whole.observables["w"])


EMPTY = Checkpoint(0, np.arange(3), 0, {}, {"layer/w": np.ones((1, 2))}, {"step": np.array(4)}, np.array([-1]), 0.5)


@pytest.mark.parametrize("last", ["fsync", "replace"])
def test_a_failed_write_leaves_the_old_one(last, tmp_path, monkeypatch):
    """Where the new one cannot be written or put in place, the one before is there, whole, and nothing else."""
    path = tmp_path / "c.npz"
    write_checkpoint(path, EMPTY)

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, last, fail)
    with pytest.raises(OSError, match="No space"):
        write_checkpoint(path, EMPTY)
    assert os.listdir(tmp_path) == ["c.npz"]
    got = read_checkpoint(path)
    np.testing.assert_array_equal(got.params["layer/w"], EMPTY.params["layer/w"])
    assert (got.optimizer["step"], got.iteration, got.seconds) == (4, 0, 0.5)


@pytest.mark.parametrize("content", [b"", b"text", b"PK\x03\x04", "pickle"])
def test_what_is_none(content, tmp_path):
    """A damaged file, or one with a pickle in it, is refused in one sentence."""
    path = tmp_path / "c.npz"
    if content == "pickle":
        with path.open("wb") as file:
            np.savez(file, iteration=np.array([{}], dtype=object))
    else:
        path.write_bytes(content)
    with pytest.raises(ParamError, match="is not a checkpoint"):
        read_checkpoint(path)


def test_a_checkpoint_of_another_model(tmp_path):
    """Parameters of other shapes are refused."""
    held = interrupted(tmp_path / "c.npz", 3)
    other = TASK.make(check_settings("toy", TASK.settings, {"size": 5}), seeds=(0, 3))
    with pytest.raises(ParamError, match="another model"):
        train(other, storage=TrainingStorage(resume_from=held))


WRONG = {
    "an iteration in words": {"iteration": np.array("x")},
    "an iteration that is none": {"iteration": np.array(np.nan)},
    "two iterations": {"iteration": np.array([[1, 2]])},
    "below 0": {"iteration": np.array(-5)},
    "another iteration": {"iteration": np.array(2)},
    "rows that are not there": {"written": np.array(9)},
    "rows below 0": {"written": np.array(-1)},
    "no recorded iterations": {"times": np.empty(0, np.int64)},
    "recorded iterations back and forth": {"times": np.array([0, 5, 1, 6])},
    "seeds": {"bad": np.array([-1, -1, -1])},
    "seconds": {"seconds": np.array(np.nan)},
    "a part of nothing": {"else/w": np.zeros(3)},
    "no parts": {"junk": np.zeros(3)},
}


@pytest.mark.parametrize("name", WRONG)
def test_what_does_not_hang_together(name, tmp_path):
    """A file whose numbers contradict each other is refused when it is read, in one sentence."""
    path = tmp_path / "c.npz"
    interrupted(path, 3)
    with np.load(path) as file:
        arrays = {key: file[key] for key in file.files} | WRONG[name]
    np.savez(path, **arrays)
    with pytest.raises(ParamError, match="is not a checkpoint"):
        read_checkpoint(path)


@pytest.mark.parametrize(("take", "put"), [("norm", {}), (None, {"other": (2, 3)}), (None, {"w": (2, 3, 9)}), ("loss", {})])
def test_rows_of_another_training(take, put, tmp_path):
    """Rows at hand of other names or shapes are refused before anything is written."""
    held = interrupted(tmp_path / "c.npz", 3)
    pending = {k: v for k, v in held.pending.items() if k != take} | {k: np.zeros(shape) for k, shape in put.items()}
    with pytest.raises(ParamError, match="the checkpoint is of another training: of"):
        train(experiment(), storage=TrainingStorage(resume_from=replace(held, pending=pending)))

"""Checkpoints: whole or not at all, and a training that goes on from one has the bits of one that never stopped."""

import os

import numpy as np
import pytest

from odesim.errors import ParamError
from odesim.reference.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from odesim.reference.optim import OPTIMIZERS
from odesim.reference.settings import check_settings
from odesim.reference.train import train
from tests.reference.toy import TASK


def experiment(optimizer="sgd"):
    from dataclasses import replace

    e = TASK.make(check_settings("toy", TASK.settings, {}), seeds=(0, 3))
    return replace(e, optimizer=replace(e.optimizer, name=optimizer))


def interrupted(path, at, **options):
    """A checkpoint of a training that was stopped before iteration `at`."""
    count = iter(range(10**6))
    train(experiment(options.pop("optimizer", "sgd")), checkpoint=path, stop=lambda: next(count) == at, **options)
    return read_checkpoint(path)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize(("at", "steps", "save"), [(0, 20, None), (7, 20, None), (20, 20, None), (7, 20, 6), (8, 20, 6), (11, 11, None)])
def test_the_same_bits(optimizer, at, steps, save, tmp_path):
    """Stopped anywhere and gone on with, with any optimizer and any grid: rows and final values have the bits of one run."""
    whole = train(experiment(optimizer), steps=steps, save=save)
    held = interrupted(tmp_path / "c.npz", at, steps=steps, save=save, optimizer=optimizer)
    assert held.iteration == at
    got = train(experiment(optimizer), steps=steps, save=save, resume_from=held)
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
    short = train(experiment(), steps=12, save=5, checkpoint=path)
    longer = train(experiment(), steps=31, save=7, resume_from=read_checkpoint(path))
    whole = train(experiment(), steps=31)
    assert longer.t.tolist() == [*short.t, 16, 21, 26, 31]
    for name, rows in longer.observables.items():
        np.testing.assert_array_equal(rows, whole.observables[name][:, longer.t])
    with pytest.raises(ParamError, match="12 iterations already, more than the 11"):
        train(experiment(), steps=11, resume_from=read_checkpoint(path))


def test_checkpoints_on_the_way(tmp_path, monkeypatch):
    """With no time between them, one is written before every iteration but the first; each gives the bits of the whole run."""
    seen = []

    def keep(path, checkpoint):
        write_checkpoint(path, checkpoint)
        seen.append(read_checkpoint(path))

    monkeypatch.setattr("odesim.reference.train.write_checkpoint", keep)
    whole = train(experiment("adam"), steps=6, checkpoint=tmp_path / "c.npz", checkpoint_every=0.0)
    monkeypatch.undo()
    assert [c.iteration for c in seen] == [1, 2, 3, 4, 5, 6, 6]
    for held in seen:
        got = train(experiment("adam"), steps=6, resume_from=held)
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
        train(other, resume_from=held)

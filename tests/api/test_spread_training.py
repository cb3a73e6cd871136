"""Trainings whose seeds are trained apart on a dask cluster: the run that one process stores, whatever stopped it."""

import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from shutil import rmtree
from typing import Any

import numpy as np
import pytest

import odesim
from odesim.base.cluster import connected
from odesim.base.errors import ClusterError, ParamError, StoreError
from odesim.base.options import versions
from odesim.cli.outcome import disk_full
from odesim.lab.experiment import TrainingRequest
from odesim.lab.spread import PartJob, has_parts, parts_folder, read_plan, train_part
from odesim.lab.store import checkpoint_file
from odesim.lab.training.loop import TrainingOptions
from odesim.lab.training.record import read_checkpoint
from tests.store.test_trajectory import same
from tests.support.clusters import two_workers
from tests.support.toy import TASK

pytest.importorskip("distributed", reason="the extra cluster is not installed")
SEEDS = (0, 3, 4)
ASKED: dict[str, Any] = {"task": TASK, "seeds": SEEDS, "steps": 40}
CASES: dict[str, dict[str, Any]] = {
    "sgd": {},
    "adam": {"optimizer": "adam", "save": 7},
    "float32": {"dtype": "float32", "observe": ("outer", "cubes")},
    "diverges": {"settings": {"rate": 1e3}, "steps": 400},
}


@pytest.fixture(scope="module")
def client():
    with two_workers() as client:
        yield client


@pytest.fixture(params=[1024, 7], ids=["one block", "blocks of 7"])
def blocks(request, monkeypatch):
    """Rows of a block on disk, on the way and at the end."""
    monkeypatch.setattr("odesim.lab.store.BLOCK_ROWS", request.param)


def all_the_same(a, b):
    """Two stored trainings are the same to the checkpoint, from which they can be made longer."""
    same(a, b)
    one, two = (read_checkpoint(checkpoint_file(path)) for path in (a, b))
    for part in ("params", "optimizer", "pending"):
        arrays, others = getattr(one, part), getattr(two, part)
        assert arrays.keys() == others.keys()
        for name, array in arrays.items():
            if part == "pending":  # a training that became longer keeps its blocks: rows may be complete blocks in one of them only
                few = min(array.shape[1], others[name].shape[1])
                assert one.written + array.shape[1] == two.written + others[name].shape[1]
                np.testing.assert_array_equal(array[:, array.shape[1] - few :], others[name][:, others[name].shape[1] - few :])
            else:
                np.testing.assert_array_equal(array, others[name])
    np.testing.assert_array_equal(one.bad, two.bad)
    assert one.iteration == two.iteration


@pytest.mark.first(2)
@pytest.mark.parametrize("case", CASES)
def test_the_run_of_one_machine(case, blocks, client, tmp_path):
    """What workers trained seed by seed is what one process stores of all, bit for bit; nothing else is left."""
    asked, told = {**ASKED, **CASES[case]}, list[tuple[Any, ...]]()
    here, there = tmp_path / "here.zarr", tmp_path / "there.zarr"
    plain = odesim.train(**asked, out=here)
    spread = odesim.train(**asked, out=there, client=client, progress=lambda *now: told.append(now))
    assert (spread.status, spread.message, spread.bad, spread.seeds) == (plain.status, plain.message, plain.bad, plain.seeds)
    all_the_same(here, there)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["here.zarr", "there.zarr"]
    assert told[-1][:2] == (asked["steps"], asked["steps"]) and len(told[-1][2]) == len(SEEDS)


@pytest.mark.first(1)
@pytest.mark.parametrize("cluster_first", [True, False])
@pytest.mark.parametrize("steps", [40, 55])
def test_a_stopped_training_goes_on(cluster_first, steps, blocks, client, tmp_path):
    """Begun on a cluster or here and stopped, it goes on on the other, to its end or further: the run that was never stopped."""
    here, there = tmp_path / "here.zarr", tmp_path / "there.zarr"
    odesim.train(**{**ASKED, "steps": 40}, out=here)
    if cluster_first:
        stop_on_a_cluster(there, client)
        assert has_parts(there) and not there.exists()
    else:
        stop_here(there)
    for path in (here, there):
        more = {"client": client} if path == there and not cluster_first else {}
        odesim.train(**{**ASKED, "steps": steps}, out=path, resume=True, **more)
    all_the_same(here, there)
    assert not has_parts(there)


def stop_here(out):
    """Trains to iteration 23, and stops there as by Ctrl-C."""
    found = odesim.train(**ASKED, out=out, progress=lambda done, steps, loss: signal.raise_signal(signal.SIGINT) if done == 23 else None)
    assert (found.status, found.iteration) == ("interrupted", 23)


def stop_on_a_cluster(out, client):
    """Trains on a cluster until one seed came to its end, and stops there as by Ctrl-C."""

    def stop(done, steps, losses):
        if len(losses) == 1:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(ClusterError, match=r"interrupted with [12] of 3 seeds trained; .*--resume continues it"):
        odesim.train(**ASKED, out=out, client=client, progress=stop)


@pytest.mark.first(1)
def test_a_seed_goes_on_from_its_checkpoint(blocks, tmp_path):
    """A seed that was stopped in the middle does not begin anew, and ends with the same bits."""
    request = TrainingRequest(TASK, {}, None, SEEDS, None, {}, TrainingOptions(steps=40))
    seen = iter(range(100))
    stops = iter([*[False] * 17, *[True] * 3])
    job = PartJob(request, str(tmp_path), "token", 0.0)
    assert train_part(job, 3, lambda: next(stops)) is None
    assert read_checkpoint(checkpoint_file(job.part(3))).iteration == 17
    train_part(job, 3, lambda: next(seen) < 0)
    assert next(seen) == 40 - 17 + 1
    odesim.train(**{**ASKED, "seeds": 3}, out=tmp_path / "alone.zarr")
    all_the_same(job.part(3), tmp_path / "alone.zarr")


def test_a_worker_of_a_training_that_was_replaced(blocks, tmp_path):
    """A worker that the cluster gave up goes on, and changes nothing of the training that came in the place of its own."""
    options, folder = TrainingOptions(steps=40), tmp_path / "parts"
    old = TrainingRequest(TASK, {"rate": 0.05}, None, SEEDS, None, {}, options)
    new = PartJob(replace(old, settings={}), str(folder), "new", 0.0)
    calls = iter(range(100))

    def meanwhile():
        if next(calls) == 9:
            rmtree(folder)
            folder.mkdir()
            train_part(new, 3, lambda: False)
        return False

    folder.mkdir()
    with suppress(StoreError):
        train_part(PartJob(old, str(folder), "old", 0.0), 3, meanwhile)
    assert next(calls) > 9
    odesim.train(**{**ASKED, "seeds": 3}, out=tmp_path / "alone.zarr")
    all_the_same(new.part(3), tmp_path / "alone.zarr")


def test_what_cannot_go_on(client, tmp_path, monkeypatch):
    """One sentence where parts are there that are not asked for, are of other seeds or settings, or are not seen by a worker."""
    out = tmp_path / "run.zarr"
    stop_on_a_cluster(out, client)
    wrong: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({}, StoreError, "--resume continues it, --overwrite replaces it"),
        ({"client": client}, StoreError, "--resume continues it, --overwrite replaces it"),
        ({"client": client, "resume": True, "seeds": (0, 1)}, ParamError, "training of other seeds"),
        ({"client": client, "resume": True, "settings": {"size": 4}}, ParamError, "setting size"),
        ({"client": client, "out": None}, ParamError, "a cluster needs the folder"),
    ]
    for more, error, what in wrong:
        with pytest.raises(error, match=what):
            odesim.train(**{**ASKED, "out": out, **more})
    plan = read_plan(parts_folder(out))
    monkeypatch.setattr("odesim.lab.spread.PartJob", lambda request, folder, token, every: PartJob(request, folder, "x", every))
    with pytest.raises(StoreError, match=r"a worker of the cluster does not see .* all machines share"):
        odesim.train(**ASKED, out=out, client=client, resume=True)
    assert read_plan(parts_folder(out)) == plan
    odesim.train(**ASKED, out=out, overwrite=True)
    assert not has_parts(out)


@contextmanager
def no_file_above(size: int) -> Iterator[None]:
    """Lets no file of this process, and so of the workers, grow beyond size bytes: the error is that of a disk that is full."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def test_a_full_disk(client, tmp_path):
    """Where workers cannot write, the sentence says what is kept and how to go on; on a roomy disk the run is whole."""
    here, there = tmp_path / "here.zarr", tmp_path / "there.zarr"
    odesim.train(**ASKED, out=here)
    said = r"cannot write \S*there.zarr: File too large; .* with --resume continues it"
    with pytest.raises(StoreError, match=said) as error, no_file_above(400):  # the list of seeds fits, no training does
        odesim.train(**ASKED, out=there, client=client)
    assert disk_full(error.value.__cause__)  # the command's exit code is 3
    odesim.train(**ASKED, out=there, client=client, resume=True)
    all_the_same(here, there)
    assert not has_parts(there)


def test_a_worker_with_other_versions(client, tmp_path, monkeypatch):
    """Its bits could be others: it is refused, with both versions, and nothing is lost."""
    monkeypatch.setattr("odesim.lab.spread.PartJob", partial(PartJob, versions={**versions(), "numpy": "1.0"}))
    with pytest.raises(ClusterError, match=r"has numpy \S+, not 1\.0: its bits could be others; .*--resume continues it"):
        odesim.train(**ASKED, out=tmp_path / "there.zarr", client=client)


@pytest.mark.slow
def test_a_worker_is_killed(tmp_path):
    """kill -9 of a worker of local:2 in the middle: its seed goes on elsewhere, and the run is that of one machine."""
    killed = list[int]()
    asked: dict[str, Any] = {"task": "committee", "seeds": range(4), "steps": 300, "settings": {"N": 50}}
    with connected("local:2") as cluster:
        assert cluster is not None

        def kill(done, steps, losses):
            if len(losses) and not killed:
                process = next(iter(cluster.client.cluster.workers.values())).process.process
                killed.append(process.pid)
                process.kill()

        odesim.train(**asked, out=tmp_path / "there.zarr", client=cluster.client, progress=kill)
    assert killed
    odesim.train(**asked, out=tmp_path / "here.zarr")
    all_the_same(tmp_path / "here.zarr", tmp_path / "there.zarr")

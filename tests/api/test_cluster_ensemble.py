"""Ensembles on a dask cluster: the bits of one machine, whatever dies on the way."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import odesim
from odesim.api import cluster as cluster_ensemble
from odesim.api.stored import resume, stored_run
from odesim.base.cluster import Cluster
from odesim.base.errors import ParamError, StoreError
from odesim.run.chunks import Execution
from odesim.stepper.codes import UNDONE
from tests.support.begun import COUNT, MODEL, RUN, SIZE, memory, same
from tests.support.clusters import two_workers

pytest.importorskip("distributed", reason="the extra cluster is not installed")

FILE = """
from sympy import IndexedBase, Interval, oo, symbols
from odesim.symbolic import Param, Source, System, index, sizes
(m,) = index("m")
(M,) = sizes("M")
x, a = IndexedBase("x", shape=(M,)), symbols("a", positive=True)
OTHER = System(
    name="decay",
    source=Source("none", "a test"),
    axes={m: M},
    equations={x[m]: -a * x[m]},
    params=(Param(a, 1.0, Interval.open(0, oo), "rate"),),
    initial={x[m]: 1.0},
    span=(0, 1),
    sizes={M: 2},
)
"""


@pytest.fixture(scope="module")
def client():
    """A client of two workers that are threads of this process."""
    with two_workers() as client:
        yield client


def on(client):
    return Execution(cluster=Cluster(client))


CASES: dict[str, dict[str, Any]] = {
    "random": {},
    "grid": {"vary": {}, "members": None, "grid": {"mu": "linspace(0.5,2,5)"}, "zipped": {"v": "0.01,0.02"}},
    "arrays": {"vary": {}, "members": None, "params": {"mu": np.linspace(0.5, 2.5, 40).reshape(20, 2)}},
    "strict": {"strict": True, "save": None},
    "failures": {"max_steps": 6},
    "observed": {"observe": "gap", "max_events": 2},
}


@pytest.mark.first(1)
@pytest.mark.parametrize("case", CASES)
def test_the_bits_of_one_machine(case, client, small_chunks, tmp_path):
    """What the workers of a cluster write is what one process has in memory, bit for bit."""
    stored = odesim.ensemble(MODEL, out=tmp_path / "run.zarr", client=client, **{**RUN, **CASES[case]})
    same(stored, memory(**CASES[case]))


def test_noise_has_the_bits_of_one_machine(client, small_chunks, tmp_path):
    """The path of a member is a function of its number, whichever worker has it."""
    given: dict[str, Any] = {"members": 40, "span": (0, 0.5), "save": 3, "seed": 5, "observe": "risk"}
    stored = odesim.ensemble("noise.sgd_least_squares", out=tmp_path / "run.zarr", client=client, **given)
    same(stored, odesim.ensemble("noise.sgd_least_squares", **given))
    assert len(np.unique(stored.risk[:, -1])) == 40


@pytest.mark.parametrize("here_first", [True, False])
def test_resume_with_and_without_a_cluster(here_first, client, small_chunks, tmp_path):
    """A shard and the rest, one of them on a cluster: each does what the other left, and the bits are those of one run."""
    out, told = tmp_path / "run.zarr", list[tuple[int, int, int]]()
    first = {} if here_first else {"client": client}
    odesim.ensemble(MODEL, out=out, shard=(1, 2), **first, **RUN)
    left = int((odesim.open_run(out)["status"] == UNDONE).sum())
    assert 0 < left < COUNT
    cluster = Cluster(client) if here_first else None
    found = resume(out, execution=Execution(progress=lambda *now: told.append(now), cluster=cluster))
    assert (found.status, found.tally.new) == ("ok", left)
    assert [told[0][0], told[-1][0]] == [COUNT - left, COUNT] and sorted(told) == told
    again = resume(out, execution=on(client))
    assert (again.status, again.tally.new) == ("ok", 0)
    same(odesim.open_run(out), memory())


@pytest.mark.slow
def test_failed_members_are_tried_again_there(client, small_chunks, tmp_path):
    """resume with another method on a cluster: the bits of that on one machine."""
    here, there = tmp_path / "here.zarr", tmp_path / "there.zarr"
    odesim.ensemble(MODEL, out=here, **{**RUN, "method": "tsit5", "max_steps": 6})
    shutil.copytree(here, there)
    ways = ((here, None), (there, on(client)))
    found = [resume(path, retry_failed=True, method="vern7", execution=way) for path, way in ways]
    assert found[0].retried == found[1].retried > 0
    assert found[0].tally.counts == found[1].tally.counts
    same(odesim.open_run(there), odesim.open_run(here))


@pytest.mark.slow
def test_a_model_travels(client, tmp_path, monkeypatch):
    """A System goes as it is, a file with its content; where the file is not seen by workers, the sha256 tells the copy is the same."""
    file = tmp_path / "decay.py"
    file.write_text(FILE)
    asked: dict[str, Any] = {"vary": {"a": "uniform(1,2)"}, "members": 5}
    held = odesim.ensemble(f"{file}:OTHER", **asked)
    system = odesim.load_model(f"{file}:OTHER")
    same(odesim.ensemble(system, out=tmp_path / "system.zarr", client=client, **asked), held)

    from odesim.inputs import registry as carried_model

    given = carried_model.load_unchanged_file
    tried: list[str] = []

    def unseen(path, digest):
        tried.append(path)
        return given(path if len(tried) > 1 else f"{path}.absent", digest)

    monkeypatch.setattr(carried_model, "load_unchanged_file", unseen)
    stored = odesim.ensemble(f"{file}:OTHER", out=tmp_path / "file.zarr", client=client, **asked)
    same(stored, held)
    assert tried[0] == f"{file}:OTHER" and Path(tried[1]).name == "decay.py:OTHER" and tried[1] != tried[0]


def test_what_cannot_be_on_a_cluster(client, small_chunks, tmp_path):
    """One sentence each, and nothing is written."""
    out = tmp_path / "run.zarr"
    for more, what in (
        ({"client": client}, "client needs the folder of a run"),
        ({"client": client, "out": out, "threads": 2}, "threads of their own"),
        ({"client": "tcp://127.0.0.1:8786", "out": out}, "client must be a distributed.Client"),
    ):
        with pytest.raises(ParamError, match=what):
            odesim.ensemble(MODEL, **more, **RUN)
    assert not out.exists()


def test_a_worker_that_sees_another_folder(client, small_chunks, tmp_path, monkeypatch):
    """A run that a worker does not see, or of which it sees a copy: a sentence says so, and the ledger says that nothing is done."""
    out = tmp_path / "run.zarr"
    odesim.ensemble(MODEL, out=out, shard=(1, 8), **RUN)
    before = stored_run(out).tally.done
    monkeypatch.setattr("odesim.api.cluster.SAME", -1.0)
    with pytest.raises(StoreError, match="all machines share"):
        resume(out, execution=on(client))
    assert stored_run(out).tally.done == before


def test_a_worker_whose_run_was_replaced(small_chunks, tmp_path, monkeypatch):
    """A worker that the cluster gave up writes nothing into the run that --overwrite put in its place."""
    out = tmp_path / "run.zarr"
    monkeypatch.setattr(cluster_ensemble, "unwanted", lambda: False)
    monkeypatch.setattr(cluster_ensemble, "worker_threads", lambda: 1)
    odesim.ensemble(MODEL, out=out, shard=(1, 8), **RUN)
    old = cluster_ensemble.opened(cluster_ensemble.Job(str(out), cluster_ensemble.written(out), None, "old"))
    odesim.ensemble(MODEL, out=out, overwrite=True, **{**RUN, "seed": 6})
    shutil.rmtree(out / "status" / "c")  # as if it had not begun to compute
    with pytest.raises(StoreError, match=r"was replaced while a worker .* nothing was written"):
        cluster_ensemble.do(old, 0, SIZE)
    assert resume(out).tally.new == COUNT
    same(odesim.open_run(out), memory(seed=6))


def test_a_worker_leaves_and_another_joins(small_chunks, tmp_path):
    """In the middle of a run: the chunks of the one are done by the other, and the bits are those of one machine."""
    from distributed import get_task_stream

    gone: list[str] = []
    with two_workers() as client:
        cluster = client.cluster

        def change(done, total, failed):
            if done and not gone:
                gone.append(cluster.workers[0].address)
                cluster.scale(3)
                client.wait_for_workers(3)
                cluster.sync(cluster.workers[0].close)

        with get_task_stream(client) as seen:
            stored = odesim.ensemble(MODEL, out=tmp_path / "run.zarr", client=client, progress=change, **{**RUN, "members": 40 * SIZE})
        assert gone[0] not in client.nthreads()
    assert len({record["worker"] for record in seen.data}) == 3
    same(stored, memory(members=40 * SIZE))

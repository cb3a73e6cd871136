"""Ensembles on disk: the bits of those in memory, whatever stopped them and in whatever order they were done."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import xarray as xr

import odesim
from odesim.api.rerun import rerun_ensemble as rerun
from odesim.api.stored import resume, stored_run
from odesim.base.errors import ParamError, StoreError
from odesim.ensembles.ledger import chunk_size, shard_chunks
from odesim.run import chunks as chunks_module
from odesim.run.chunks import joined
from odesim.run.lanes import LaneEngine
from odesim.stepper.codes import STATUSES, UNDONE
from tests.support.begun import COUNT, MODEL, RUN, SIZE, begun, memory, same
from tests.support.matrix import slow_but

CASES: dict[str, dict[str, Any]] = {
    "random": {},
    "grid": {"vary": {}, "members": None, "grid": {"mu": "linspace(0.5,2,5)"}, "zipped": {"v": "0.01,0.02"}},
    "float32": {"dtype": "float32"},
    "fixed": {"method": "rk4", "step": 0.1},
    "strict": {"strict": True, "save": None},
    "arrays": {"vary": {}, "members": None, "params": {"mu": np.linspace(0.5, 2.5, 40).reshape(20, 2)}},
    "stiff": {"method": "rodas5p", "members": 9},
    "failures": {"max_steps": 6},
    "observed": {"observe": "gap", "max_events": 2},
}


@pytest.mark.first(1)
@pytest.mark.parametrize("case", slow_but(CASES, set(CASES) - {"float32", "fixed"}))
def test_on_disk_as_in_memory(case, small_chunks, tmp_path):
    """An ensemble on disk equals the one in memory, bit for bit; xarray opens it by itself; computed again it is the same."""
    out = tmp_path / "run.zarr"
    stored = odesim.ensemble(MODEL, out=out, threads=2, **{**RUN, **CASES[case]})
    held = memory(**CASES[case])
    same(stored, held)
    with xr.open_zarr(out, consolidated=False) as plain:
        np.testing.assert_array_equal(plain.v, held.v)
        assert plain.status.dtype == np.int8 and set(held.coords) - {"member"} == set(plain.coords)
    again = rerun(out)
    assert again.same and again.counted == len(held.status)
    counts = stored_run(out).tally.counts
    assert counts == {str(s): int((held.status == k).sum()) for k, s in enumerate(STATUSES)}


@pytest.mark.first(2)
@pytest.mark.parametrize("order", [(1, 2, 3), (3, 1, 2), (2,)])
def test_shards_go_into_one_store(order, small_chunks, tmp_path):
    """Shards in any order give the bits of one run; what no shard did is not done, and resume does it."""
    out = tmp_path / "run.zarr"
    for i in order:
        found = odesim.ensemble(MODEL, out=out, shard=(i, 3), **RUN)
    done = np.concatenate(
        [np.arange(c.start * SIZE, min(c.stop * SIZE, COUNT)) for c in (shard_chunks(COUNT, SIZE, (i, 3)) for i in order)]
    )
    assert set(np.flatnonzero(found.status.values != UNDONE)) == set(done)
    assert np.isnan(found.v.values[found.status.values == UNDONE]).all()
    assert resume(out).status == "ok"
    same(odesim.open_run(out), memory())


@pytest.mark.parametrize(("count", "chunk", "n"), [(37, 8, 3), (37, 8, 9), (1, 1, 4), (4096 * 7 + 1, 4096, 8)])
def test_shards_share_all_chunks(count, chunk, n):
    """The shards 1/n to n/n have every chunk once."""
    found = [k for i in range(1, n + 1) for k in shard_chunks(count, chunk, (i, n))]
    assert found == list(range(-(-count // chunk)))


@pytest.mark.parametrize(
    ("places", "together", "found"),
    [
        ([(0, 4), (4, 8), (8, 12), (12, 14)], 8, [(0, 8), (8, 14)]),
        ([(0, 4), (8, 12), (12, 16)], 100, [(0, 4), (8, 16)]),
        ([(0, 4), (4, 8)], 1, [(0, 4), (4, 8)]),
        ([], 8, []),
    ],
)
def test_neighbouring_chunks_are_joined(places, together, found):
    """As many as are wanted at once, and none that do not follow each other."""
    assert list(joined(places, together)) == found


@pytest.mark.parametrize(("count", "row", "size"), [(10**7, 8, 4096), (10, 8, 10), (10**7, 1 << 16, 2048), (10**7, 1 << 40, 1)])
def test_a_chunk_fits_in_memory(count, row, size):
    """4096 members, or as many as 128 MiB hold, a power of two."""
    assert chunk_size(count, row) == size


def test_a_finished_run_is_left_alone(small_chunks, tmp_path):
    """resume of a finished run changes no file."""
    out = tmp_path / "run.zarr"
    odesim.ensemble(MODEL, out=out, **RUN)
    before = {p: p.stat().st_mtime_ns for p in out.rglob("*")}
    found = resume(out)
    assert (found.status, found.tally.new) == ("ok", 0)
    assert {p: p.stat().st_mtime_ns for p in out.rglob("*")} == before


def test_a_run_that_may_not_be_written(small_chunks, tmp_path, monkeypatch):
    """Without permission: one sentence for whoever would go on; a finished run is left alone, and anybody may compare it."""
    out = tmp_path / "run.zarr"
    odesim.ensemble(MODEL, out=out, shard=(1, 2), **RUN)
    given = os.access
    monkeypatch.setattr(os, "access", lambda path, mode, **how: mode != os.W_OK and given(path, mode, **how))
    for call in (lambda: resume(out), lambda: resume(out, retry_failed=True), lambda: odesim.ensemble(MODEL, out=out, resume=True, **RUN)):
        with pytest.raises(StoreError, match="no permission to write into"):
            call()
    assert rerun(out).same


def test_the_clock_starts_after_compiling(small_chunks, tmp_path, monkeypatch):
    """Seconds, from which the rate of members follows, are those of integrating: by a clock that only compiling moves far."""
    prepare, clock = LaneEngine.prepare, [0.0]

    def slow(self):
        prepare(self)
        clock[0] += 1000

    def now() -> float:
        clock[0] += 1
        return clock[0]

    monkeypatch.setattr(LaneEngine, "prepare", slow)
    monkeypatch.setattr("odesim.api.stored.time", SimpleNamespace(perf_counter=now))
    assert 0 < begun(tmp_path / "run.zarr").seconds < 1000 < clock[0]


def test_threads_share_compiled_code(monkeypatch, tmp_path):
    """Two threads that ask for the same code at once get the same address: a second copy would be freed while it is called."""
    from odesim.targets import native

    monkeypatch.setenv("ODESIM_CACHE_DIR", str(tmp_path))
    text = 'from odesim.runtime.functions import njit\n\n\n@njit("int64(int64)")\ndef run(x):\n    return x + 1\n'
    both = threading.Barrier(2, timeout=600)

    def load(_):
        both.wait()
        return native.load_native(text, "shared", ["run"])["run"]

    made, engine = list[int](), native._engine
    monkeypatch.setattr(native, "_engine", lambda code: made.append(1) or engine(code))  # type: ignore[func-returns-value]
    with ThreadPoolExecutor(2) as pool:
        assert len(set(pool.map(load, range(2)))) == 1
    assert len(made) == 1


WRONG: dict[str, Any] = {
    "there": ({}, StoreError, "is there; give another name or --overwrite"),
    "seed": ({"resume": True, "seed": 6}, ParamError, "holds another ensemble: its seed"),
    "rtol": ({"resume": True, "rtol": 1e-5}, ParamError, "holds another ensemble: its rtol"),
    "count": ({"shard": (1, 2), "members": 36}, ParamError, "holds another ensemble: its members"),
    "design": ({"resume": True, "vary": {"mu": "uniform(0.5,2.4)"}}, ParamError, "holds another ensemble: its mu"),
    "shared": ({"resume": True, "initial": {"v": 0.3}}, ParamError, "holds another ensemble: its v"),
    "model": ({"resume": True, "span": (0.0, 3.0)}, ParamError, "holds another ensemble: its span"),
    "both": ({"resume": True, "overwrite": True}, ParamError, "choose one"),
    "shard": ({"shard": (3, 2)}, ParamError, "1 <= i <= N"),
}


@pytest.mark.first(2)
@pytest.mark.parametrize("case", WRONG)
def test_another_request_leaves_the_run_alone(case, small_chunks, tmp_path):
    """A folder of another request, or two wishes at once: one sentence, and nothing is changed."""
    out = tmp_path / "run.zarr"
    odesim.ensemble(MODEL, out=out, **RUN)
    before = {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*")}
    asked, error, words = WRONG[case]
    with pytest.raises(error, match=words):
        odesim.ensemble(MODEL, out=out, **{**RUN, **asked})
    assert {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*")} == before


def test_one_writer(small_chunks, tmp_path):
    """While a process writes, another one is refused, but for shards beside shards."""
    from odesim.store.paths import RunLock

    out, lock = tmp_path / "run.zarr", RunLock()
    odesim.ensemble(MODEL, out=out, shard=(1, 2), **RUN)
    lock.acquire(out, shared=True)
    with pytest.raises(StoreError, match="another ensemble is writing into"):
        resume(out)
    odesim.ensemble(MODEL, out=out, shard=(2, 2), **RUN)
    lock.release()
    assert stored_run(out).status == "ok"


def test_a_system_of_python_needs_python(small_chunks, tmp_path):
    """A run of a System goes on by the same call with resume=True; another process cannot have it."""
    from tests.run.test_ensemble import forced

    asked = {"vary": {"a": "uniform(0.1,3)"}, "members": 20, "out": tmp_path / "run.zarr"}
    system = forced()
    odesim.ensemble(system, shard=(1, 2), **asked)
    with pytest.raises(ParamError, match="resume=True"):
        resume(tmp_path / "run.zarr")
    found = odesim.ensemble(system, resume=True, **asked)
    np.testing.assert_array_equal(found.x, odesim.ensemble(system, vary=asked["vary"], members=20).x)


def test_memory_is_that_of_chunks(small_chunks, tmp_path, monkeypatch):
    """No more members than a chunk are ever asked of the design at once."""
    asked: list[int] = []
    rows = chunks_module.Members.chunk

    def counted(self, a, b):
        asked.append(b - a)
        return rows(self, a, b)

    monkeypatch.setattr(chunks_module.Members, "chunk", counted)
    odesim.ensemble(MODEL, out=tmp_path / "run.zarr", **RUN)
    assert max(asked) == SIZE and sum(asked) == 2 * COUNT  # checked, then integrated

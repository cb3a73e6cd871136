"""Ensembles on disk: the bits of those in memory, whatever stopped them and in whatever order they were done."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from sympy import symbols

import odesim
from odesim.ensembles import run as chunks_module
from odesim.ensembles.kept import FIXED
from odesim.ensembles.lane_engine import LaneEngine
from odesim.ensembles.result import STATUSES, UNDONE
from odesim.ensembles.run import chunk_size, joined, shard_chunks
from odesim.errors import ParamError, StoreError
from odesim.facade_ensemble import run_ensemble
from odesim.facade_rerun import rerun_ensemble as rerun
from odesim.facade_stored import look, resume
from odesim.store.ensemble import EnsembleStore
from odesim.symbolic import System
from tests.systems import SOURCE, param

MODEL = "joma.nonlinear"
SIZE = 8  # members in a chunk here
COUNT = 37
RUN: dict[str, Any] = {"vary": {"mu": "uniform(0.5,2.5)"}, "members": COUNT, "sizes": {"M": 3}, "span": (0.0, 2.0), "save": 3, "seed": 5}


@pytest.fixture
def small_chunks(monkeypatch):
    """Chunks of 8 members, so that a few dozen are several."""
    monkeypatch.setattr("odesim.facade_manifest.chunk_size", lambda count, row: min(SIZE, count))


def memory(**asked):
    return odesim.ensemble(MODEL, **{**RUN, **asked})


def begun(out, **asked):
    """What run_ensemble says of the run."""
    ways: dict[str, Any] = {"overwrite": False, "resume": False, "shard": None, "threads": 1, "progress": None, "fail_fast": False}
    how: dict[str, Any] = {"method": "auto", "step": None, "rtol": 1e-6, "atol": 1e-9, "backend": "numba", "dtype": "float64"}
    how |= {
        "strict": False,
        "max_steps": 1000,
        "params": {},
        "initial": {},
        "grid": {},
        "zipped": {},
        "observe": (),
        "max_events": 8,
        "clock": "ordinary",
    }
    return run_ensemble(MODEL, out, **{**ways, **how, **RUN, **asked})


def same(stored, held):
    """Every variable of the stored ensemble has the bits, the type and the axes that it has in memory."""
    assert set(held.variables) - {"member"} == set(stored.variables)
    for name, v in stored.variables.items():
        np.testing.assert_array_equal(v, held[name])
        assert (v.dtype, v.dims) == (held[name].dtype, held[name].dims)


CASES: dict[str, dict[str, Any]] = {
    "random": {},
    "grid": {"vary": {}, "members": None, "grid": {"mu": "linspace(0.5,2,5)"}, "zipped": {"v": "0.01,0.02"}},
    "float32": {"dtype": "float32"},
    "fixed": {"method": "rk4", "step": 0.1},
    "strict": {"strict": True, "save": None},
    "arrays": {"vary": {}, "members": None, "params": {"mu": np.linspace(0.5, 2.5, 60).reshape(20, 3)}},
    "stiff": {"method": "rodas5p", "members": 9},
    "failures": {"max_steps": 6},
    "observed": {"observe": "gap", "max_events": 2},
}


@pytest.mark.parametrize("case", CASES)
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
    counts = look(out).tally.counts
    assert counts == {str(s): int((held.status == k).sum()) for k, s in enumerate(STATUSES)}


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


@pytest.mark.parametrize("lost", ["status", "both"])
def test_what_the_ledger_lacks_is_done_again(lost, small_chunks, tmp_path):
    """Without a chunk of the status, with its data or without: resume does that chunk and no other, with the same bits."""
    out = tmp_path / "run.zarr"
    odesim.ensemble(MODEL, out=out, **RUN)
    (out / "status" / "c" / "2").unlink(missing_ok=True)
    store = EnsembleStore(out)
    store.arrays["status"][16:24] = UNDONE
    if lost == "both":
        store.arrays["v"][16:24] = np.nan
    found = resume(out)
    assert found.tally.new == SIZE
    same(odesim.open_run(out), memory())


@pytest.mark.parametrize("file", ["v/c/1/0/0", "mu/c/1/0", "t_end/c/1", "rejected/c/1", "attempt/c/1", "v/c/4/0/0"])
@pytest.mark.parametrize("change", ["gone", "empty"])
def test_a_lost_file_is_noticed(file, change, small_chunks, tmp_path):
    """A chunk that is said to be done and lacks a file would read as NaN or 0: every reader says so, resume computes it again."""
    out = tmp_path / "run.zarr"
    odesim.ensemble(MODEL, out=out, **RUN)
    (out / file).unlink()
    if change == "empty":
        (out / file).touch()
    size = 5 if "/4" in file else SIZE
    said = f"lacks files of {size} members that are done: odesim resume computes them again"
    found = look(out)
    assert (found.lost, found.tally.done) == (size, COUNT - size) and said in found.message
    again = rerun(out)
    assert (again.counted, again.first, again.same) == (COUNT - size, "", False) and said in again.message
    with pytest.raises(StoreError, match=said):
        odesim.open_run(out)
    assert resume(out).tally.new == size
    same(odesim.open_run(out), memory())


def test_members_without_a_value_are_not_lost(small_chunks, tmp_path):
    """Chunks of nothing but NaN and 0 are files too: of members that all fail, none is lost."""
    out = tmp_path / "run.zarr"
    odesim.ensemble(MODEL, out=out, **{**RUN, "max_steps": 1, "save": None})
    assert np.isnan(odesim.open_run(out).v).all() and look(out).lost == 0 and rerun(out).same


GIVEN: dict[str, tuple[Any, dict[str, Any]]] = {
    "time/c/0": (odesim.open_run, {"initial": {"v": 0.0}}),
    "mu/c/1/0": (look, {"initial": {"v": 0.0}}),
    "initial/v/c/0": (rerun, {"initial": {"v": 0.0}}),
    "points/v/c/0": (look, {"zipped": {"v": np.linspace(0.01, 0.02, 20)}}),
}


@pytest.mark.parametrize("file", GIVEN)
def test_what_was_given_cannot_be_had_again(file, small_chunks, tmp_path):
    """Without a file of a table, of points, of what all share or of the times there is one sentence, and no zeros in their place."""
    out, (call, start) = tmp_path / "run.zarr", GIVEN[file]
    odesim.ensemble(MODEL, out=out, **{**RUN, "vary": {}, "members": None, "params": {"mu": np.ones((20, 3))}, **start})
    (out / file).unlink()
    with pytest.raises(StoreError, match=r"is damaged: of \w+, which was given, a file is missing"):
        call(out)


def test_a_file_that_cannot_be_read_is_named(small_chunks, tmp_path):
    """A chunk that was cut: the file is named; without it resume computes its members again, with the same bits."""
    out = tmp_path / "run.zarr"
    odesim.ensemble(MODEL, out=out, **RUN)
    file = out / "v" / "c" / "1" / "0" / "0"
    file.write_bytes(file.read_bytes()[:-40])
    with pytest.raises(StoreError, match=r"v/c/1/0/0 cannot be read; without it odesim resume"):
        rerun(out)
    file.unlink()
    assert resume(out).tally.new == SIZE
    same(odesim.open_run(out), memory())


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
    """Seconds, from which the rate of members follows, are those of integrating."""
    prepare = LaneEngine.prepare

    def slow(self):
        prepare(self)
        time.sleep(0.5)

    monkeypatch.setattr(LaneEngine, "prepare", slow)
    assert 0 < begun(tmp_path / "run.zarr").seconds < 0.5


@pytest.mark.parametrize("stop_after", [0, 1, 4])
def test_an_interrupted_run_goes_on(stop_after, small_chunks, tmp_path):
    """SIGINT keeps the chunks that are done; resume ends with the same bits."""
    out = tmp_path / "run.zarr"

    def stop(done, total, failed):
        if done == stop_after * SIZE:
            signal.raise_signal(signal.SIGINT)

    found = odesim.ensemble(MODEL, out=out, progress=stop, **RUN)
    assert (found.status.values != UNDONE).sum() == stop_after * SIZE
    assert resume(out, threads=2).status == "ok"
    same(odesim.open_run(out), memory())


@pytest.mark.parametrize("stop_after", [0, 2])
def test_an_interrupted_ensemble_in_memory(stop_after, monkeypatch):
    """SIGINT in memory: members of the chunks that are done have their bits, the others are interrupted and NaN."""
    monkeypatch.setattr("odesim.facade_ensemble.chunk_size", lambda count, row: min(SIZE, count))

    def stop(done, total, failed):
        if done == stop_after * SIZE:
            signal.raise_signal(signal.SIGINT)

    found, whole, done = memory(progress=stop), memory(), stop_after * SIZE
    np.testing.assert_array_equal(found.v[:done], whole.v[:done])
    assert not found.status[:done].any() and np.isnan(found.v[done:]).all()
    assert {found.attrs["status_names"][int(s)] for s in found.status[done:]} == {"interrupted"}


def test_a_chunk_in_flight_is_lost_alone(small_chunks, tmp_path, monkeypatch):
    """A chunk of which a stop left members undone is not kept; the ones before are, and the end is the same."""
    out, given = tmp_path / "run.zarr", chunks_module.integrated

    def stopped(*args):
        chunk = given(*args)
        if next(calls) == 2:
            chunk.status[3:] = UNDONE
        return chunk

    calls = count()
    with monkeypatch.context() as patched:
        patched.setattr(chunks_module, "integrated", stopped)
        odesim.ensemble(MODEL, out=out, **RUN)
    assert look(out).tally.done == 2 * SIZE
    resume(out)
    same(odesim.open_run(out), memory())


MODEL_FILE = """
from sympy import IndexedBase, Interval, oo
from odesim.symbolic import Param, Source, System, index, sizes
(m,), (M,) = index("m"), sizes("M")
x, a = IndexedBase("x", shape=(M,)), IndexedBase("a", shape=(M,))
SYSTEM = System(
    name="my.decay", source=Source("none", "test"), axes={m: M}, equations={x[m]: -a[m] * x[m]},
    params=(Param(a, 1.0, Interval(0, oo), "rate"),), initial={x[m]: 2 * a[m]}, sizes={M: 2}, span=(0.0, 1.0),
)
"""


def test_a_start_that_follows_is_resumed(small_chunks, tmp_path):
    """x' = -a x from 2a is 2a exp(-a): a start that follows from a member's own rate does so in another process too."""
    file, out = tmp_path / "decay.py", tmp_path / "run.zarr"
    file.write_text(MODEL_FILE)
    asked: dict[str, Any] = {"vary": {"a": "uniform(0.1,3)"}, "members": 20, "rtol": 1e-9, "atol": 1e-12, "out": out}
    odesim.ensemble(file, shard=(1, 2), **asked)
    assert resume(out).status == "ok"
    found = odesim.open_run(out)
    a = found.a.values
    np.testing.assert_allclose(found.x.values[:, 0], 2 * a * np.exp(-a), rtol=1e-8)  # ten times the tolerance


def test_a_changed_model_is_not_mixed_in(small_chunks, tmp_path):
    """A model file that was changed since: resume refuses."""
    file, out = tmp_path / "decay.py", tmp_path / "run.zarr"
    file.write_text(MODEL_FILE)
    odesim.ensemble(file, vary={"a": "uniform(0.1,3)"}, members=20, shard=(1, 2), out=out)
    file.write_text(MODEL_FILE.replace("-a[m] * x[m]", "-a[m] * x[m] / 2"))
    with pytest.raises(ParamError, match="was computed by other code"):
        resume(out)


def test_threads_share_compiled_code(monkeypatch, tmp_path):
    """Two threads that ask for the same code at once get the same address: a second copy would be freed while it is called."""
    from odesim.codegen import native

    monkeypatch.setenv("ODESIM_CACHE_DIR", str(tmp_path))
    text = 'import numba as nb\n\n\n@nb.njit("int64(int64)")\ndef run(x):\n    return x + 1\n'
    both = threading.Barrier(2)

    def load(_):
        both.wait()
        return native.load_native(text, "shared", ["run"])["run"]

    made, engine = list[int](), native._engine
    monkeypatch.setattr(native, "_engine", lambda code: made.append(1) or engine(code))  # type: ignore[func-returns-value]
    with ThreadPoolExecutor(2) as pool:
        assert len(set(pool.map(load, range(2)))) == 1
    assert len(made) == 1


def test_failed_members_are_tried_again(small_chunks, tmp_path):
    """Only members that failed get the other method; each then is what that method makes of it, and a rerun knows it."""
    out = tmp_path / "run.zarr"
    limited: dict[str, Any] = {"max_steps": 22, "method": "tsit5", "rtol": 1e-8, "atol": 1e-8}
    first = odesim.ensemble(MODEL, out=out, **RUN, **limited).load()
    bad = first.status.values == STATUSES.index("max_steps")
    assert 0 < bad.sum() < COUNT
    found = resume(out, retry_failed=True, method="rodas5p")
    assert found.retried == bad.sum() and found.tally.new == bad.sum()
    second, other = odesim.open_run(out), memory(**{**limited, "method": "rodas5p"})
    for name in ("v", "status", "steps", "t_end"):
        np.testing.assert_array_equal(second[name][~bad], first[name][~bad])
        np.testing.assert_array_equal(second[name][bad], other[name][bad])
    assert rerun(out).same


def test_fail_fast_stops_after_the_chunk(small_chunks, tmp_path):
    """The first chunk with a failure is the last."""
    found = odesim.ensemble(MODEL, out=tmp_path / "run.zarr", fail_fast=True, **RUN, max_steps=3)
    assert (found.status.values != UNDONE).sum() == SIZE


def test_a_changed_number_is_found(small_chunks, tmp_path):
    """rerun names the member, the variable and the size of a difference."""
    out = tmp_path / "run.zarr"
    odesim.ensemble(MODEL, out=out, **RUN)
    v = EnsembleStore(out).arrays["v"]
    v[20, 1, 2] = v[20, 1, 2] + 0.25
    found = rerun(out)
    assert (found.same, found.different, found.first) == (False, 1, "v of member 20")
    assert found.largest == pytest.approx(0.25, rel=1e-12)  # one rounding of a sum


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
    from odesim.store.lock import RunLock

    out, lock = tmp_path / "run.zarr", RunLock()
    odesim.ensemble(MODEL, out=out, shard=(1, 2), **RUN)
    lock.take(out, shared=True)
    with pytest.raises(StoreError, match="another ensemble is writing into"):
        resume(out)
    odesim.ensemble(MODEL, out=out, shard=(2, 2), **RUN)
    lock.release()
    assert look(out).status == "ok"


def test_a_full_disk_keeps_what_is_done(small_chunks, tmp_path, monkeypatch):
    """A disk that refuses a chunk: one sentence; the chunks before are kept, and resume goes on."""
    out, write = tmp_path / "run.zarr", EnsembleStore.write

    def full(self, first, chunk):
        if first == 16:
            raise OSError(28, "No space left on device")
        write(self, first, chunk)

    with monkeypatch.context() as patched:
        patched.setattr(EnsembleStore, "write", full)
        with pytest.raises(StoreError, match="No space left on device; odesim resume goes on"):
            odesim.ensemble(MODEL, out=out, **RUN)
    assert look(out).tally.done == 16
    resume(out)
    same(odesim.open_run(out), memory())


def test_a_system_of_python_needs_python(small_chunks, tmp_path):
    """A run of a System goes on by the same call with resume=True; another process cannot have it."""
    from tests.ensembles.test_ensemble import forced

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
    assert max(asked) == SIZE and sum(asked) == 8 + 2 * COUNT  # the pilot's, then checked, then integrated


COMMAND = ["ensemble", MODEL, "--vary", "mu=uniform(0.5,2.5)", "--members", "40000", "--size", "M=3", "--span", "0:4", "--rtol", "1e-9"]


def kill_until_done(out: Path, kills: int, seed: int) -> list[int]:
    """Members done after each kill of the command and of resumes; the last one ends by itself."""
    draw = random.Random(seed)
    seen: list[int] = []
    command = [sys.executable, "-m", "odesim", *COMMAND, "--out", str(out), "--quiet"]
    for _ in range(kills):
        process = subprocess.Popen(command, env=os.environ | {"OMP_NUM_THREADS": "1"}, stdin=subprocess.DEVNULL)
        # killed a moment after the first chunk that it adds: the start of the interpreter says nothing
        known, limit = seen[-1] if seen else 0, time.monotonic() + 60
        while process.poll() is None and time.monotonic() < limit and done_members(out) <= known:
            time.sleep(0.01)
        time.sleep(draw.uniform(0, 0.03))
        process.send_signal(draw.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT]))
        process.wait()
        seen.append(done_members(out))
        command = [sys.executable, "-m", "odesim", "resume", str(out), "--quiet"]
    end = subprocess.run([sys.executable, "-m", "odesim", "resume", str(out), "--json"], capture_output=True, text=True, check=False)
    assert end.returncode == 0, end.stderr
    assert json.loads(end.stdout)["done"] == 40000
    return seen


def done_members(out: Path) -> int:
    """How many members the ledger has; chunks that are there, for the folder may not be."""
    return 4096 * len([p for p in (out / "status" / "c").glob("*") if p.name.isdigit()])


@pytest.mark.parametrize("kills", [2, pytest.param(12, marks=pytest.mark.slow)])
def test_killed_again_and_again(kills, tmp_path):
    """SIGKILL, SIGTERM or SIGINT at any moment: chunks that were done stay, and the run ends with the same bits."""
    seen = kill_until_done(tmp_path / "run.zarr", kills, seed=kills)
    assert seen == sorted(seen) and 0 < seen[0] < 40000
    found = odesim.open_run(tmp_path / "run.zarr")
    held = odesim.ensemble(MODEL, vary={"mu": "uniform(0.5,2.5)"}, members=40000, sizes={"M": 3}, span=(0.0, 4.0), rtol=1e-9)
    same(found, held)


def test_a_parameter_may_be_called_like_a_start(tmp_path):
    """v_start is the parameter of that name, and the start of v stands there too."""
    v, p = symbols("v v_start")
    system = System(name="rate", source=SOURCE, axes={}, equations={v: -p * v}, params=(param(p),), initial={v: 1})
    own: dict[str, Any] = {
        "params": {"v_start": np.linspace(1, 2, 5)},
        "initial": {"v": np.linspace(3, 4, 5)},
        "method": "rk4",
        "step": 0.5,
    }
    odesim.ensemble(system, out=tmp_path / "run.zarr", **own)
    with odesim.open_run(tmp_path / "run.zarr") as run:
        for found in (odesim.ensemble(system, **own), run):
            np.testing.assert_array_equal(found["v_start"], own["params"]["v_start"])
            np.testing.assert_array_equal(found["v_start_"], own["initial"]["v"])


@pytest.mark.parametrize("name", FIXED)
def test_a_parameter_may_be_called_like_a_part_of_a_run(name, tmp_path):
    """Each member's own value stands beside that part, under a name of its own."""
    x, p = symbols("x"), symbols(name)
    system = System(name="rate", source=SOURCE, axes={}, equations={x: -p * x}, params=(param(p),), initial={x: 1})
    odesim.ensemble(system, params={name: np.linspace(1, 2, 5)}, out=tmp_path / "run.zarr", method="rk4", step=0.5)
    with odesim.open_run(tmp_path / "run.zarr") as run:
        np.testing.assert_array_equal(run[f"{name}_start"], np.linspace(1, 2, 5))

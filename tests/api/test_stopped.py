"""Ensembles on disk that were killed, interrupted, damaged or refused by the disk: what was done stays, and the rest is found."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import odesim
from odesim.api.rerun import rerun_ensemble as rerun
from odesim.api.stored import EnsembleRun, resume, stored_run
from odesim.base.errors import ModelError, ParamError, StoreError
from odesim.ensembles.ledger import Tally
from odesim.run import chunks as chunks_module
from odesim.run.chunks import Execution
from odesim.stepper.codes import STATUSES, UNDONE
from odesim.store.ensemble import EnsembleStore
from tests.support.begun import COUNT, MODEL, RUN, SIZE, memory, same


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


FILES = ["v/c/1/0/0", "mu/c/1/0", "t_end/c/1", "rejected/c/1", "attempt/c/1", "v/c/4/0/0"]


@pytest.mark.first(1)
@pytest.mark.parametrize("change", ["gone", "empty"])
@pytest.mark.parametrize("file", FILES)
def test_a_lost_file_is_noticed(file, change, small_chunks, tmp_path):
    """A chunk that is said to be done and lacks a file would read as NaN or 0: every reader says so, resume computes it again."""
    out = tmp_path / "run.zarr"
    odesim.ensemble(MODEL, out=out, **RUN)
    (out / file).unlink()
    if change == "empty":
        (out / file).touch()
    size = 5 if "/4" in file else SIZE
    said = f"lacks files of {size} finished members: odesim resume computes them again"
    found = stored_run(out)
    assert (found.lost, found.tally.done) == (size, COUNT - size) and said in found.message
    again = rerun(out)
    assert (again.counted, again.first, again.same) == (COUNT - size, "", False) and said in again.message
    with pytest.raises(StoreError, match=said):
        odesim.open_run(out)
    assert resume(out).tally.new == size
    same(odesim.open_run(out), memory())


@pytest.mark.slow
def test_members_without_a_value_are_not_lost(small_chunks, tmp_path):
    """Chunks of nothing but NaN and 0 are files too: of members that all fail, none is lost."""
    out = tmp_path / "run.zarr"
    odesim.ensemble(MODEL, out=out, **{**RUN, "max_steps": 1, "save": None})
    assert np.isnan(odesim.open_run(out).v).all() and stored_run(out).lost == 0 and rerun(out).same


GIVEN: dict[str, tuple[Any, dict[str, Any]]] = {
    "time/c/0": (odesim.open_run, {"initial": {"v": 0.0}}),
    "mu/c/1/0": (stored_run, {"initial": {"v": 0.0}}),
    "initial/v/c/0": (rerun, {"initial": {"v": 0.0}}),
    "points/v/c/0": (stored_run, {"zipped": {"v": np.linspace(0.01, 0.02, 20)}}),
}


@pytest.mark.first(1)
@pytest.mark.parametrize("file", GIVEN)
def test_what_was_given_cannot_be_had_again(file, small_chunks, tmp_path):
    """Without a file of a table, of points, of what all share or of the times there is one sentence, and no zeros in their place."""
    out, (call, start) = tmp_path / "run.zarr", GIVEN[file]
    odesim.ensemble(MODEL, out=out, **{**RUN, "vary": {}, "members": None, "params": {"mu": np.ones((20, 2))}, **start})
    (out / file).unlink()
    with pytest.raises(StoreError, match=r"is damaged: of \w+, which was given, a file is missing"):
        call(out)


def test_a_file_that_cannot_be_read_is_named(small_chunks, tmp_path):
    """A chunk that was cut: the file is named; without it resume computes its members again, with the same bits."""
    out = tmp_path / "run.zarr"
    odesim.ensemble(MODEL, out=out, **RUN)
    file = out / "v" / "c" / "1" / "0" / "0"
    file.write_bytes(file.read_bytes()[:-40])
    with pytest.raises(StoreError, match=r"v/c/1/0/0 cannot be read; without it odesim resume computes members 8 to 15 again"):
        rerun(out)
    file.unlink()
    assert resume(out).tally.new == SIZE
    same(odesim.open_run(out), memory())


@pytest.mark.first(1)
@pytest.mark.parametrize("stop_after", [0, 1, 4])
def test_an_interrupted_run_goes_on(stop_after, small_chunks, tmp_path):
    """SIGINT keeps the chunks that are done; resume ends with the same bits."""
    out = tmp_path / "run.zarr"

    def stop(done, total, failed):
        if done == stop_after * SIZE:
            signal.raise_signal(signal.SIGINT)

    found = odesim.ensemble(MODEL, out=out, progress=stop, **RUN)
    assert (found.status.values != UNDONE).sum() == stop_after * SIZE
    assert resume(out, execution=Execution(2)).status == "ok"
    same(odesim.open_run(out), memory())


@pytest.mark.parametrize("stop_after", [0, 2])
def test_an_interrupted_ensemble_in_memory(stop_after, monkeypatch):
    """SIGINT in memory: members of the chunks that are done have their bits, the others are interrupted and NaN."""
    monkeypatch.setattr("odesim.api.ensemble.chunk_size", lambda count, row: min(SIZE, count))

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
    assert stored_run(out).tally.done == 2 * SIZE
    resume(out)
    same(odesim.open_run(out), memory())


MODEL_FILE = """
from sympy import Interval, oo
from odesim.symbolic import IndexedBase, Param, Source, System, index, sizes
(m,), (M,) = index("m"), sizes("M")
x, a = IndexedBase("x", shape=(M,)), IndexedBase("a", shape=(M,))
SYSTEM = System(
    name="my.decay", source=Source("none", "test"), axes={m: M}, equations={x[m]: -a[m] * x[m]},
    params=(Param(a, 1.0, Interval(0, oo), "rate"),), initial={x[m]: 2 * a[m]}, sizes={M: 2}, span=(0.0, 1.0),
)
"""


@pytest.mark.slow
def test_a_start_that_follows_is_resumed(small_chunks, tmp_path):
    """x' = -a x from 2a is 2a exp(-a): a start that follows from a member's own rate does so in another process too."""
    file, out = tmp_path / "decay.py", tmp_path / "run.zarr"
    file.write_text(MODEL_FILE)
    asked: dict[str, Any] = {"vary": {"a": "uniform(0.1,3)"}, "members": 20, "rtol": 1e-9, "atol": 1e-12, "out": out}
    odesim.ensemble(file, shard=(1, 2), **asked)
    assert resume(out, model=file).status == "ok"
    found = odesim.open_run(out)
    a = found.a.values
    np.testing.assert_allclose(found.x.values[:, 0], 2 * a * np.exp(-a), rtol=1e-8)  # ten times the tolerance


@pytest.mark.slow
def test_a_changed_model_is_not_mixed_in(small_chunks, tmp_path):
    """A model file that was changed since: resume refuses."""
    file, out = tmp_path / "decay.py", tmp_path / "run.zarr"
    file.write_text(MODEL_FILE)
    odesim.ensemble(file, vary={"a": "uniform(0.1,3)"}, members=20, shard=(1, 2), out=out)
    file.write_text(MODEL_FILE.replace("-a[m] * x[m]", "-a[m] * x[m] / 2"))
    with pytest.raises(ModelError, match="is not the file that the run was made from"):
        resume(out, model=file)
    with pytest.raises(ParamError, match="holds another ensemble: its kernel differs"):
        odesim.ensemble(file, vary={"a": "uniform(0.1,3)"}, members=20, resume=True, out=out)


@pytest.mark.slow
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


def test_failed_members_may_take_more_steps(small_chunks, tmp_path):
    """max_steps of a later attempt is for the members that failed, which then are those of a run that had so many; a rerun knows it."""
    out = tmp_path / "run.zarr"
    limited: dict[str, Any] = {"method": "tsit5", "rtol": 1e-8, "atol": 1e-8}
    odesim.ensemble(MODEL, out=out, **RUN, **limited, max_steps=22)
    with pytest.raises(ParamError, match="--max-steps 1000 is for members that failed: --retry-failed --max-steps 1000"):
        resume(out, max_steps=1000)
    found = resume(out, retry_failed=True, max_steps=1000)
    assert 0 < found.retried < COUNT and found.status == "ok"
    same(odesim.open_run(out), memory(**limited))
    assert rerun(out).same


def test_who_may_be_stiff():
    """rodas5p is advised where an explicit method was tried alone, and neither for those that a stabilised or a stiff one gave up."""
    tried = {"tsit5": True, "rkc": False, "rodas4": False, "em": False}
    runs = {name: EnsembleRun(None, MODEL, name, False, Tally(3), methods={"max_steps": {name: 3}}) for name in tried}
    assert {name: run.may_be_stiff("max_steps") for name, run in runs.items()} == tried


@pytest.mark.slow
def test_fail_fast_stops_after_the_chunk(small_chunks, tmp_path):
    """The first chunk with a failure is the last."""
    found = odesim.ensemble(MODEL, out=tmp_path / "run.zarr", fail_fast=True, **RUN, max_steps=3)
    assert (found.status.values != UNDONE).sum() == SIZE


def test_a_changed_number_is_found(small_chunks, tmp_path):
    """rerun names the member, the variable and the size of a difference."""
    out = tmp_path / "run.zarr"
    odesim.ensemble(MODEL, out=out, **RUN)
    v = EnsembleStore(out).arrays["v"]
    v[20, 1, 1] = v[20, 1, 1] + 0.25
    found = rerun(out)
    assert (found.same, found.different, found.first) == (False, 1, "v of member 20")
    assert found.largest == pytest.approx(0.25, rel=1e-12)  # one rounding of a sum


def test_a_full_disk_keeps_what_is_done(small_chunks, tmp_path, monkeypatch):
    """A disk that refuses a chunk: one sentence; the chunks before are kept, and resume goes on."""
    out, write = tmp_path / "run.zarr", EnsembleStore.write

    def full(self, first, chunk):
        if first == 16:
            raise OSError(28, "No space left on device")
        write(self, first, chunk)

    with monkeypatch.context() as patched:
        patched.setattr(EnsembleStore, "write", full)
        with pytest.raises(StoreError, match="No space left on device; odesim resume continues it"):
            odesim.ensemble(MODEL, out=out, **RUN)
    assert stored_run(out).tally.done == 16
    resume(out)
    same(odesim.open_run(out), memory())


COMMAND = ["ensemble", MODEL, "--vary", "mu=uniform(0.5,2.5)", "--members", "40000", "--size", "M=2", "--span", "0:4", "--rtol", "1e-9"]


def kill_until_done(out: Path, kills: int, seed: int) -> list[int]:
    """Members done after each kill of the command and of resumes; the last one ends by itself."""
    draw = random.Random(seed)
    seen: list[int] = []
    command = [sys.executable, "-m", "odesim", *COMMAND, "--out", str(out), "--quiet"]
    for _ in range(kills):
        process = subprocess.Popen(command, env=os.environ | {"OMP_NUM_THREADS": "1"}, stdin=subprocess.DEVNULL)
        # killed a moment after the first chunk that it adds: the start of the interpreter says nothing
        known = seen[-1] if seen else 0
        while process.poll() is None and done_members(out) <= known:
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


@pytest.mark.slow
@pytest.mark.parametrize("kills", [1, pytest.param(12, marks=pytest.mark.slow)])
def test_killed_again_and_again(kills, tmp_path):
    """SIGKILL, SIGTERM or SIGINT at any moment: chunks that were done stay, and the run ends with the same bits."""
    seen = kill_until_done(tmp_path / "run.zarr", kills, seed=kills)
    assert seen == sorted(seen) and seen[0] > 0  # on a busy machine the last chunk may come before the first signal
    found = odesim.open_run(tmp_path / "run.zarr")
    held = odesim.ensemble(MODEL, vary={"mu": "uniform(0.5,2.5)"}, members=40000, sizes={"M": 2}, span=(0.0, 4.0), rtol=1e-9)
    same(found, held)

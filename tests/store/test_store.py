"""A stored run is the run, or is not there: round trips, exports, refusals, and a disk that fills."""

import csv
import errno
import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import pytest
import xarray as xr

from odesim.base.arrays import Array
from odesim.base.errors import StoreError
from odesim.run.solution import Solution
from odesim.store import write as store_write
from odesim.store.chunks import chunk_shape
from odesim.store.export import export_run
from odesim.store.paths import check_new_file, check_new_run, publish
from odesim.store.read import open_run, read_solution
from odesim.store.write import WriteResult, write_solution

T, M, K = 7, 5, 3


def solution(**changed: Any) -> Solution:
    """A run with a number, a vector, a matrix in single precision, and values that are not finite."""
    rng = np.random.default_rng(1)
    observed: dict[str, Array] = {"entropy": rng.uniform(size=T), "gap": np.where(rng.uniform(size=(T, M)) < 0.5, np.nan, np.inf)}
    y: dict[str, Array] = {"v": rng.normal(size=(T, M)), "B": rng.normal(size=T), "A": rng.normal(size=(T, M, K)).astype(np.float32)}
    made = Solution(
        t=np.geomspace(0.1, 3.0, T),
        y=y,
        t_end=3.0,
        y_end={name: values[-1] for name, values in y.items()},
        events={"half way": [{"t": 0.25, "index": (1,)}, {"t": 0.5, "index": None}], "snap": []},
        stats={"steps": 12, "rejected": 1, "rhs_calls": 80, "seconds": 0.01, "compile_seconds": 0.0},
        status="blow_up",
        message="stopped at t = 3",
        model="test.one",
        method="tsit5",
        backend="numba",
        dims={"v": ("l",), "B": (), "A": ("l", "k"), "entropy": (), "gap": ("l",)},
        attrs={
            "params": {"mu": rng.normal(size=M), "tau": 2.5, "psi": np.arange(4)},
            "sizes": {"M": M, "K": K},
            "source": {"key": "key", "where": "eq. 1", "note": ""},
            "rtol": 1e-6,
            "atol": 1e-9,
            "dtype": "float64",
            "span": [0.1, 3.0],
            "time_unit": "SGD steps since the start",  # no date
        },
        _observe=lambda *_: observed,
        _violations=lambda: {"norm": 1e-9, "loss": float("nan"), "apart": None},
        _again=lambda _: {},
    )
    return replace(made, **changed)


def wide(rows: int, entries: int) -> Solution:
    """A run with noise: nothing that a disk could make smaller."""
    rng = np.random.default_rng(2)
    t, v = np.arange(rows) / 7, rng.normal(size=(rows, entries))
    gap = rng.normal(size=(rows, entries))
    return solution(t=t, y={"v": v}, t_end=float(t[-1]), y_end={"v": v[-1]}, _observe=lambda *_: {"gap": gap}, _violations=dict)


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def test_a_stored_run_is_the_run(tmp_path):
    """Every array comes back bit for bit in the System's order, with all that is said of it."""
    run = solution()
    path = tmp_path / "run.zarr"
    assert write_solution(run, path) == WriteResult(path, T, T)
    assert files(tmp_path) == {"run.zarr", *(f"run.zarr/{name}" for name in files(path))}
    back = read_solution(path)
    assert list(back.y) == list(run.y) and list(back.observables) == list(run.observables)
    for name, values in {"t": run.t, **run.y, **run.observables}.items():
        found = {"t": back.t, **back.y, **back.observables}[name]
        assert found.dtype == values.dtype
        np.testing.assert_array_equal(found, values)
    for name, value in run.attrs["params"].items():
        np.testing.assert_array_equal(back.attrs["params"][name], value)
    assert (back.events, back.dims, back.stats, back.status, back.message) == (run.events, run.dims, run.stats, run.status, run.message)
    assert back.invariants["norm"] == 1e-9 and back.invariants["apart"] is None
    assert np.isnan(np.float64(back.invariants["loss"] or 0.0))
    assert (back.t_end, list(back.final)) == (3.0, list(run.final))
    for name, value in {**run.final, **run.final_observables}.items():
        np.testing.assert_array_equal({**back.final, **back.final_observables}[name], value)


def test_the_end_comes_back_where_it_is_no_saved_time(tmp_path):
    """t_end, states and observables there, beside saved times that end before; the arrays over time are the saved ones."""
    seen = {"entropy": np.array([0.5]), "gap": np.full((1, M), np.inf)}
    rows = solution().observables
    end = {"v": np.arange(M) / 3, "B": np.array(7.5), "A": np.ones((M, K), np.float32)}
    run = solution(t_end=9.5, y_end=end, _observe=lambda t, _: seen if len(t) == 1 else rows)
    write_solution(run, tmp_path / "run.zarr")
    back = read_solution(tmp_path / "run.zarr")
    assert (back.t_end, back.t[-1], list(back.final_observables)) == (9.5, 3.0, ["entropy", "gap"])
    for name, value in end.items():
        np.testing.assert_array_equal(back.final[name], value)
        assert back.final[name].dtype == value.dtype
    np.testing.assert_array_equal(back.final_observables["gap"], seen["gap"][0])
    np.testing.assert_array_equal(back.observables["gap"], rows["gap"])


def test_many_events_come_back(tmp_path):
    """More than 1000 events of a name are a digest in the attributes, and all there for who reads the run."""
    rng = np.random.default_rng(3)
    times = np.sort(rng.uniform(size=1500)).tolist()
    events = {
        "half/way": [{"t": t, "index": (k, k % 7)} for k, t in enumerate(times)],
        "few": [{"t": 0.5, "index": None}],
        "snap": [{"t": t, "index": None} for t in times],
    }
    write_solution(solution(events=events), tmp_path / "run.zarr")
    assert read_solution(tmp_path / "run.zarr").events == events
    assert open_run(tmp_path / "run.zarr").attrs["events"]["snap"]["shape"] == [1500]


def test_xarray_reads_it(tmp_path):
    """xarray.open_zarr finds names, dimensions and attributes, and checksums of these; the folder's metadata is strict JSON."""
    write_solution(solution(), tmp_path / "run.zarr")
    found = xr.open_zarr(tmp_path / "run.zarr", consolidated=False, decode_times=False)
    assert {str(k): v.dims for k, v in found.data_vars.items()} == {
        "v": ("time", "l"), "B": ("time",), "A": ("time", "l", "k"), "entropy": ("time",), "gap": ("time", "l"),
    }  # fmt: skip
    for each in (found, *found.variables.values()):
        assert len(each.attrs.pop("crc32")) == 8
    assert found.attrs["model"] == "test.one" and found.attrs["sizes"] == {"M": M, "K": K}
    np.testing.assert_array_equal(found.time, solution().t)
    assert xr.testing.assert_identical(open_run(tmp_path / "run.zarr"), found[list(open_run(tmp_path / "run.zarr").data_vars)]) is None
    json.loads((tmp_path / "run.zarr" / "zarr.json").read_text(), parse_constant=pytest.fail)


def test_csv_gives_every_bit_back(tmp_path):
    """Columns t, v[0], ..., A[0, 0], ... in shortest digits that read as the same numbers."""
    run = solution()
    write_solution(run, tmp_path / "run.zarr")
    path = export_run(tmp_path / "run.zarr", "csv", tmp_path / "run.csv")
    header, *lines = csv.reader(path.read_text().splitlines())
    columns = dict(zip(header, np.array(lines, float).T, strict=True))
    assert list(columns)[:7] == ["t", "v[0]", "v[1]", "v[2]", "v[3]", "v[4]", "B"]
    np.testing.assert_array_equal(columns["t"], run.t)
    np.testing.assert_array_equal(columns["v[3]"], run.y["v"][:, 3])
    np.testing.assert_array_equal(columns["A[4, 2]"].astype(np.float32), run.y["A"][:, 4, 2])
    np.testing.assert_array_equal(columns["gap[0]"], run.observables["gap"][:, 0])


def test_netcdf_holds_the_same(tmp_path):
    """The netCDF file has the arrays of the run; attributes without a netCDF type are JSON text."""
    run = solution()
    write_solution(run, tmp_path / "run.zarr")
    with xr.open_dataset(export_run(tmp_path / "run.zarr", "nc", tmp_path / "run.nc"), decode_times=False) as found:
        for name, values in {**run.y, **run.observables}.items():
            np.testing.assert_array_equal(found[name], values)
        assert json.loads(found.attrs["sizes"]) == {"M": M, "K": K} and found.attrs["status"] == "blow_up"


def test_overwrite_replaces_a_run_and_nothing_else(tmp_path):
    """A present path is refused; --overwrite replaces a run, never a folder or file of another kind."""
    path = tmp_path / "run.zarr"
    write_solution(solution(), path)
    with pytest.raises(StoreError, match="is there; give another name or --overwrite"):
        write_solution(solution(), path)
    write_solution(solution(message="second"), path, overwrite=True)
    assert read_solution(path).message == "second"
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("years")
    (tmp_path / "file").write_text("years")
    for name in ("mine", "file"):
        with pytest.raises(StoreError, match="is not a run of odesim"):
            write_solution(solution(), tmp_path / name, overwrite=True)
    assert {entry.name for entry in tmp_path.iterdir()} == {"run.zarr", "mine", "file"}


@pytest.mark.parametrize(
    ("act", "sentence"),
    [
        (lambda d: open_run(d / "absent.zarr"), "no run .*absent.zarr"),
        (lambda d: open_run(d), "is a folder, not a run of odesim"),
        (lambda d: open_run(d / "file"), "is a file, not a run of odesim"),
        (lambda d: export_run(d / "absent.zarr", "csv", d / "x.csv"), "no run"),
        (lambda d: check_new_run(d / "no" / "run.zarr"), "no folder .*no"),
        (lambda d: check_new_run(d / "file" / "run.zarr"), "file is not a folder"),
        (lambda d: check_new_run(d / "run.csv"), "a run is a zarr folder: name it .*run.zarr"),
        (lambda d: check_new_run(d / ("x" * 250)), "cannot write .*too long"),
        (lambda d: check_new_file(d), "is a folder, not a file"),
        (lambda d: check_new_file(d / "file"), "is there"),
        (lambda d: check_new_file("/"), "names no file"),
    ],
)
def test_refusals_are_sentences(act, sentence, tmp_path):
    """Each is a StoreError that names the path; nothing is written."""
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=sentence):
        act(tmp_path)
    assert files(tmp_path) == {"file"}


@pytest.mark.first(1)
@pytest.mark.parametrize("room", [0, 3, 40])
def test_a_full_disk_keeps_whole_rows(room, tmp_path, monkeypatch):
    """After `room` chunks of one row the disk is full: the rows that are whole are a run, which says what it lacks."""
    import zarr.storage._local as local

    rows = 60
    run = replace(wide(rows, 4000), _observe=lambda *_: {}, _violations=dict)
    monkeypatch.setattr("odesim.store.write.CHUNK_BYTES", 4000 * 8)
    put, left = local._put, [room]

    def full(path, *rest, **named):
        if path.name != "zarr.json" and "v" in path.parts:
            left[0] -= 1
            if left[0] < 0:
                raise OSError(errno.ENOSPC, "No space left on device")
        return put(path, *rest, **named)

    monkeypatch.setattr(local, "_put", full)
    stored = write_solution(run, tmp_path / "run.zarr")
    assert not stored.complete and stored.rows == room and "No space left" in stored.sentence
    if room == 0:
        assert stored.path is None and files(tmp_path) == set()
        return
    found = open_run(tmp_path / "run.zarr")
    assert (found.attrs["incomplete"], found.attrs["status"]) == ("No space left on device", "incomplete")
    assert found.attrs["message"].startswith(f"{room} of 60 saved times are stored: No space left on device;")
    assert "stopped at t = 3" in found.attrs["message"] and found.attrs["t_end"] == run.t[room - 1]
    np.testing.assert_array_equal(found.v, run.y["v"][:room])
    np.testing.assert_array_equal(found.time, run.t[:room])


@pytest.mark.first(1)
@pytest.mark.parametrize(("free", "at_least", "at_most"), [(300_000, 14, 19), (1_000_000, 55, 66), (0, 0, 0)])
def test_a_nearly_full_disk_keeps_what_fits(free, at_least, at_most, tmp_path, monkeypatch):
    """A disk with that many bytes free, for chunks of one row of 16 kB: at most as many as fit, and few less.

    Noise of 8 bytes shrinks by about 1 part in 20; some room is kept for the metadata.
    """
    import zarr.storage._local as local

    run = wide(100, 1000)
    monkeypatch.setattr("odesim.store.write.CHUNK_BYTES", 1 << 13)
    put, one = local._put, Lock()

    def full(path, value, *rest, **named):
        with one:  # zarr writes from several threads, under names for a moment
            if sum(file.stat().st_size for file in tmp_path.rglob("*") if file.is_file()) + len(value) > free:
                raise OSError(errno.ENOSPC, "No space left on device")
            return put(path, value, *rest, **named)

    monkeypatch.setattr(local, "_put", full)
    stored = write_solution(run, tmp_path / "run.zarr")
    assert at_least <= stored.rows <= at_most and not stored.complete
    if at_most:
        back = read_solution(tmp_path / "run.zarr")
        np.testing.assert_array_equal(back.y["v"], run.y["v"][: stored.rows])
        np.testing.assert_array_equal(back.observables["gap"], run.observables["gap"][: stored.rows])
        assert back.status == "incomplete" and len(back.t) == stored.rows and back.t_end == back.t[-1]
        np.testing.assert_array_equal(back.final["v"], back.y["v"][-1])


def test_a_full_disk_leaves_the_old_run(tmp_path, monkeypatch):
    """With --overwrite what there is room for lies beside the old run, which stays whole."""
    import odesim.store.write as write

    path = tmp_path / "run.zarr"
    write_solution(solution(message="old"), path)
    monkeypatch.setattr(write, "_write_arrays", lambda work, run: (work.mkdir(), (2, "No space left on device"))[1])
    stored = write_solution(solution(message="new"), path, overwrite=True)
    assert stored.path == tmp_path / "run.1.zarr" and read_solution(path).message == "old"


@pytest.mark.parametrize("moment", ["arrays", "publish"])
def test_an_interrupted_write_leaves_nothing(moment, tmp_path, monkeypatch):
    """Ctrl-C while a run is written: the old one is whole, and no half of the new one remains."""
    import odesim.store.write as write

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    path = tmp_path / "run.zarr"
    write_solution(solution(message="old"), path)
    monkeypatch.setattr(write, "write_rows" if moment == "arrays" else "publish", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_solution(solution(), path, overwrite=True)
    assert {entry.name for entry in tmp_path.iterdir()} == {"run.zarr"} and read_solution(path).message == "old"


@pytest.mark.parametrize("shape", [(200,), (200, 10), (7, 300, 50), (3, 2_000_000), (5, 3, 1_000_000)])
def test_chunks_are_small_and_cut_time_first(shape):
    """A chunk holds at most 4 MiB and at least half of that where the array is larger; later axes are cut last."""
    chunk = chunk_shape(shape, 8, 4 << 20)
    size = 8 * int(np.prod(chunk))
    assert size <= 4 << 20 and (size > 2 << 20 or chunk == shape or np.prod(shape) * 8 > size)
    cut = [a < n for a, n in zip(chunk, shape, strict=True)]
    assert all(a == 1 for a, later in zip(chunk, cut[1:], strict=False) if later)


@pytest.mark.first(3)
@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("other", ["nothing", "an empty folder", "a run", "a file"])
def test_what_another_process_writes_meanwhile(other, overwrite, tmp_path, monkeypatch):
    """Between the check and the end of writing something appears at the path: it stays, in one sentence, or overwrite replaces it."""
    path, write = tmp_path / "run.zarr", store_write._write_arrays

    def meanwhile(work: Path, run: Solution) -> tuple[int, str]:
        if run.message == "mine":
            if other == "a run":
                write_solution(solution(message="theirs"), path)
            elif other == "a file":
                path.write_text("theirs")
            elif other == "an empty folder":
                path.mkdir()
        return write(work, run)

    monkeypatch.setattr(store_write, "_write_arrays", meanwhile)
    if overwrite or other in ("nothing", "an empty folder"):
        assert write_solution(solution(message="mine"), path, overwrite=overwrite).complete
        assert read_solution(path).message == "mine"
    else:
        with pytest.raises(StoreError, match="was written by another process meanwhile; give another name or --overwrite"):
            write_solution(solution(message="mine"), path)
        assert path.read_text() == "theirs" if other == "a file" else read_solution(path).message == "theirs"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("overwrite", [False, True])
def test_many_writers_of_one_path(overwrite, tmp_path):
    """8 threads publish 25 folders each at one path: one is there in the end, whole, and nothing else; without overwrite the first."""
    path, published = tmp_path / "run.zarr", []

    def publish_all(writer: int) -> None:
        for k in range(25):
            work = tmp_path / f"work{writer}.{k}"
            work.mkdir()
            for file in "ab":
                (work / file).write_text(work.name)
            try:
                publish(work, path, overwrite=overwrite)
                published.append(work.name)
            except StoreError:
                shutil.rmtree(work)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(publish_all, range(8)))
    assert list(tmp_path.iterdir()) == [path] and sorted(file.name for file in path.iterdir()) == ["a", "b"]
    assert (path / "a").read_text() == (path / "b").read_text() and (path / "a").read_text() in published
    assert len(published) == (200 if overwrite else 1)

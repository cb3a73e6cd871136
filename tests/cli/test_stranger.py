"""A run from a stranger is read as data: nothing in it is run, followed as a link, or decoded by what odesim does not write."""

import json
import os
import pickle
import shutil
from collections.abc import Callable, Iterable
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from odesim.stepper.codes import UNDONE
from odesim.store.chunks import open_group
from tests.support.strangers import MARKED, READS, check_reading, copy, edit, make_runs, read


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """{kind: a good run}, in the current folder."""
    patch = pytest.MonkeyPatch()
    patch.setenv("COLUMNS", "80")
    try:
        yield make_runs(tmp_path_factory.mktemp("runs"), patch)
    finally:
        patch.undo()


@pytest.mark.first(1)
@pytest.mark.parametrize("kind", ["integration", "ensemble", "training"])
def test_a_good_run_is_read(kind, runs):
    """Every command ends with 0 on a good run, unless it is not for that kind; without --model no file is run."""
    for command in READS:
        shutil.rmtree("good.zarr", ignore_errors=True)
        shutil.copytree(runs[kind], "good.zarr")
        model = command.endswith("--model")
        expected = 2 if (model == (kind == "training")) and command.split()[0] in ("rerun", "resume") else 0
        if (kind, command) == ("integration", "resume --model"):
            expected = 2
        if (kind, command) in (("integration", "resume"), ("training", "rerun"), ("training", "resume"), ("ensemble", "resume")):
            expected = 0
        assert check_reading(command, f"{kind}.zarr", calls=None) == expected, (kind, command)


class Bad:
    """Leaves a mark where it is unpickled."""

    def __reduce__(self) -> Any:
        return exec, (MARKED,)


def main_array(run: Path) -> Path:
    return next(run / name for name in ("x", "w") if (run / name).is_dir())


def meta(**changed: Any) -> Callable[[Path], None]:
    """Other metadata of a state of a run."""
    return lambda run: edit(main_array(run) / "zarr.json", lambda said: {**said, **changed})


def v2_group(run: Path) -> None:
    """All of it as zarr v2, with a pickle as a filter."""
    said = json.loads((run / "zarr.json").read_text())["attributes"]
    (run / "zarr.json").unlink()
    (run / ".zgroup").write_text('{"zarr_format": 2}')
    (run / ".zattrs").write_text(json.dumps(said))
    v2_array(run)


def v2_array(run: Path) -> None:
    """A state as zarr v2 beside what is v3."""
    name = main_array(run)
    shutil.rmtree(name)
    name.mkdir()
    layout = {"zarr_format": 2, "shape": [1], "chunks": [1], "dtype": "|O", "order": "C", "fill_value": None, "compressor": None}
    (name / ".zarray").write_text(json.dumps({**layout, "filters": [{"id": "pickle"}]}))
    (name / "0").write_bytes(pickle.dumps(np.array([Bad()], object)))


def v2_params(run: Path) -> None:
    """A group inside as zarr v2."""
    shutil.rmtree(run / "params", ignore_errors=True)
    (run / "params").mkdir()
    (run / "params" / ".zgroup").write_text('{"zarr_format": 2}')


def linked(name: str, to: str) -> Callable[[Path], None]:
    def make(run: Path) -> None:
        place = run / name
        place.parent.mkdir(parents=True, exist_ok=True)
        if place.is_dir():
            shutil.rmtree(place)
        place.unlink(missing_ok=True)
        place.symlink_to(to)

    return make


def moved(run: Path) -> None:
    """A state is a link to its own files, which lie elsewhere."""
    name, other = main_array(run), run.with_name("elsewhere")
    shutil.rmtree(other, ignore_errors=True)
    shutil.move(name, other)
    name.symlink_to(other.absolute())


def consolidated(run: Path) -> None:
    """Metadata of all arrays in one place, where an array has another codec."""
    edit(run / "zarr.json", lambda said: {**said, "consolidated_metadata": {"kind": "inline", "must_understand": False, "metadata": {}}})


def deep(run: Path) -> None:
    """Groups in one another, deeper than any path may be."""
    place = run
    for _ in range(45):
        place = place / "g"
        place.mkdir()


def pipe(run: Path) -> None:
    """A chunk that would never end."""
    (run / "time/c/0").unlink()
    os.mkfifo(run / "time/c/0")


def state_name(name: str) -> Callable[[Path], None]:
    """A state or observable is called like a path."""

    def make(run: Path) -> None:
        def change(said: Any) -> Any:
            key = "observables" if said["attributes"].get("task") else "states"
            said["attributes"][key].append(name)
            return said

        edit(run / "zarr.json", change)

    return make


def attribute(name: str, change: Callable[[Any], Any]) -> Callable[[Path], None]:
    """Another value of an attribute of a run."""
    return lambda run: edit(run / "zarr.json", lambda said: {**said, "attributes": {**(a := said["attributes"]), name: change(a[name])}})


BYTES = {"name": "bytes", "configuration": {"endian": "little"}}


def blosc(**changed: Any) -> Callable[[Path], None]:
    """Settings of the compression of a state that odesim does not write, or another number of them."""
    settings = {"typesize": 8, "cname": "zstd", "clevel": 5, "shuffle": "shuffle", "blocksize": 0, **changed}
    return meta(codecs=[BYTES, {"name": "blosc", "configuration": settings}])


def larger(**changed: int) -> Callable[[Path], None]:
    """A state that would be of so many entries along its first axis, in chunks of so many, with the files that are there."""

    def change(said: Any) -> Any:
        grid, rest = said["chunk_grid"]["configuration"]["chunk_shape"], said["shape"][1:]
        chunks = [changed.get("chunk", grid[0]), *grid[1:]]
        grid = {"name": "regular", "configuration": {"chunk_shape": chunks}}
        return {**said, "shape": [changed["rows"], *rest], "chunk_grid": grid}

    return lambda run: edit(main_array(run) / "zarr.json", change)


SHARDS = {"name": "sharding_indexed", "configuration": {"chunk_shape": [1, 1], "codecs": [BYTES], "index_codecs": [BYTES]}}
REFUSED: dict[str, tuple[Callable[[Path], None], str]] = {
    "zarr v2": (v2_group, "not a run of odesim"),
    "an array of zarr v2": (v2_array, "it holds .zarray"),
    "a group of zarr v2": (v2_params, "it holds .zgroup"),
    "attributes of zarr v2": (lambda run: (run / ".zattrs").touch(), "it holds .zattrs"),
    "pickle as a codec": (meta(codecs=[{"name": "numcodecs.pickle", "configuration": {}}]), "codecs"),
    "a codec of another package": (meta(codecs=[BYTES, {"name": "evil.codec", "configuration": {}}]), "codecs"),
    "gzip": (meta(codecs=[BYTES, {"name": "gzip", "configuration": {"level": 5}}]), "codecs"),
    "zstd": (meta(codecs=[BYTES, {"name": "zstd", "configuration": {"level": 5, "checksum": False}}]), "codecs"),
    "an unknown shuffle": (blosc(shuffle="other"), "codecs"),
    "an unknown compressor": (blosc(cname="snappy"), "codecs"),
    "a block of negative size": (blosc(blocksize=-1), "codecs"),
    "a type size that is no number": (blosc(typesize="8"), "codecs"),
    "a setting of another package": (blosc(evil=1), "codecs"),
    "an array larger than its files": (larger(rows=1 << 24, chunk=1 << 24), "its files hold less"),
    "an array smaller than its files": (larger(rows=0), "its files hold less"),
    "shards": (meta(codecs=[SHARDS]), "codecs"),
    "no codec": (meta(codecs=[]), "codecs"),
    "vlen text": (meta(data_type="string", codecs=[{"name": "vlen-utf8"}], fill_value=""), "data_type"),
    "objects": (meta(data_type="object"), "data_type"),
    "bytes without end": (meta(data_type="variable_length_bytes"), "data_type"),
    "a structure": (meta(data_type={"name": "structured", "configuration": {"fields": [["a", "float64"]]}}), "data_type"),
    "dates": (meta(data_type={"name": "numpy.datetime64", "configuration": {"unit": "s", "scale_factor": 1}}), "data_type"),
    "complex numbers": (meta(data_type="complex128"), "data_type"),
    "a storage transformer": (meta(storage_transformers=[{"name": "evil"}]), "storage_transformers"),
    "something to understand": (meta(evil={"must_understand": True}), "a part of the metadata"),
    "another grid": (meta(chunk_grid={"name": "rectangular", "configuration": {"chunk_shape": [1]}}), "chunk_grid"),
    "other chunk names": (meta(chunk_key_encoding={"name": "v2", "configuration": {"separator": "."}}), "chunk_key_encoding"),
    "consolidated metadata": (consolidated, "its zarr.json is none of a run"),
    "a linked array": (moved, "symbolic link"),
    "a linked file": (linked("note", "/etc/hostname"), "symbolic link"),
    "a linked chunk": (linked("time/c/0", "/dev/zero"), "symbolic link"),
    "a link to nothing": (linked("note", "nowhere"), "symbolic link"),
    "a link to itself": (linked("loop", "."), "symbolic link"),
    "linked metadata": (linked("time/zarr.json", "/dev/zero"), "symbolic link"),
    "linked attributes": (linked("zarr.json", "/dev/zero"), "symbolic link"),
    "a pipe": (lambda run: os.mkfifo(run / "pipe"), "neither a file nor a folder"),
    "a pipe as a chunk": (pipe, "neither a file nor a folder"),
    "deep folders": (deep, "its folders are too deep"),
    "another run format": (attribute("run_format", lambda _: 3), "has the run format '3', and this odesim reads 1"),
    "a state above": (state_name("../good.zarr/x"), "its attribute"),
    "a state at a root": (state_name("/etc"), "its attribute"),
    "a state called ..": (state_name(".."), "its attribute"),
    "a state without a name": (state_name(""), "its attribute"),
    "a state that is not there": (state_name("nope"), "it has no array 'nope'"),
    "a state called params": (state_name("params"), "it has no array 'params'"),
}


COMMANDS = [command for command in READS if command != "status"]


def test_a_run_that_odesim_does_not_write_is_not_opened(runs):
    """Every attack, on each kind of run in turn, is refused in its sentence where Python opens it."""
    for run, (attack, (change, sentence)) in zip(cycle(runs.values()), REFUSED.items(), strict=False):
        change(copy(run, Path("bad.zarr")))
        code, _, said = read("open_run", "bad.zarr")
        assert (attack, code) == (attack, 2) and sentence in said, said


@pytest.mark.parametrize("kind", ["integration", "training"])
def test_files_that_are_not_there_are_no_memory(kind, runs):
    """An array of 0.5 GB or more, all but some bytes of it in files that are not there, is refused before it is filled with one number."""
    larger(rows=1 << 26)(copy(runs[kind], Path("bad.zarr")))
    assert read("open_run", "bad.zarr")[0] == 2
    assert "it lacks files of" in read("status", "bad.zarr")[2]


@pytest.mark.parametrize("attack", [*REFUSED][:6])
def test_what_odesim_does_not_write_is_not_read(attack, runs):
    """Every kind of run: exit code 2 and one sentence before anything is decoded, by status and, in turn, by one more command.

    The next law has all attacks and all commands.
    """
    k = list(REFUSED).index(attack)
    check_refused(attack, runs, ("status", COMMANDS[k % len(COMMANDS)]))


@pytest.mark.slow
@pytest.mark.parametrize("attack", REFUSED)
def test_what_odesim_does_not_write_is_read_by_no_command(attack, runs):
    """The same by every command."""
    check_refused(attack, runs, READS)


def check_refused(attack: str, runs: dict[str, Path], commands: Iterable[str]) -> None:
    """Each command ends with 2 and one sentence on each kind of run, which stays as it is."""
    change, sentence = REFUSED[attack]
    for run in runs.values():
        change(copy(run, Path("bad.zarr")))
        before = {p: p.lstat().st_mtime_ns for p in Path("bad.zarr").rglob("*")}
        for command in commands:
            assert check_reading(command, "bad.zarr") == 2, command
        assert sentence in read("status", "bad.zarr")[2]
        assert {p: p.lstat().st_mtime_ns for p in Path("bad.zarr").rglob("*")} == before


@pytest.mark.first(2)
@pytest.mark.parametrize("command", ["resume --model", "rerun --model"])
@pytest.mark.parametrize("name", ["states", "observables", "ledger"])
def test_a_run_that_leaves_arrays_out_is_not_gone_on_with(name, command, runs):
    """Members that are left to do would be there without a value of theirs."""
    bad = copy(runs["ensemble"], Path("bad.zarr"))
    open_group(bad, "r+")["status"][:1] = UNDONE
    attribute(name, lambda names: names[:-1])(bad)
    assert check_reading(command, "bad.zarr") == 2
    assert name == "states" or f"its attribute '{name}' does not name the arrays of my" in read(command, "bad.zarr")[2]


ESCAPES = "\x1b[2J\x1b]0;t\x07\r\u202e\u2028\nodesim: fake"
SHOWN = r"\x1b[2J\x1b]0;t\x07\r\u202e\u2028\nodesim: fake"


@pytest.mark.first(1)
@pytest.mark.parametrize("kind", ["integration", "ensemble", "training"])
def test_escapes_of_a_run_are_shown_as_text(kind, runs):
    """Texts of a run in tables, titles, errors, JSON and csv: a terminal sees no control character, a reader sees what is there."""
    texts = {"integration": ("model", "message", "status", "time_unit"), "ensemble": ("model", "auto"), "training": ("model", "message")}
    run = copy(runs[kind], Path("bad.zarr"))
    edit(run / "zarr.json", lambda said: {**said, "attributes": said["attributes"] | dict.fromkeys(texts[kind], ESCAPES)})
    copy(runs[kind], Path("good.zarr"))
    for command in READS:
        check_reading(command, "bad.zarr", calls=None)
    _, out, err = read("status", "bad.zarr")
    assert SHOWN.split(r"\n")[0] in "".join((out + err).split("\n  ")), out
    said = json.loads(read("status --json", "bad.zarr")[1])
    assert ESCAPES in said.values()


def test_cells_of_a_csv_are_no_formulas(tmp_path):
    """A text that begins with = + - @, of any width, is text to a spreadsheet; numbers are numbers."""
    from odesim.store.export import csv_cell
    from odesim.store.write import write_solution
    from tests.store.test_store import solution

    for text in ("=cmd()", "+1+cmd()", "-cmd()", "@cmd()", "=1", "-", "＝cmd()", "＋1", "－1", "＠cmd()"):
        assert csv_cell(text) == f"'{text}"
    for text in ("-1", "+1e5", "-inf", "nan", "v[0]", "1-2"):
        assert csv_cell(text) == text
    assert csv_cell("\t=1\x1b[0m") == r"\t=1\x1b[0m"
    run = solution(
        y={"=v": np.full((7, 1), -1.5)}, y_end={"=v": np.full(1, -1.5)}, dims={"=v": ("l",)}, _observe=lambda *_: {}, _violations=dict
    )
    write_solution(run, tmp_path / "run.zarr")
    from odesim.store.export import export_run

    header, first, *_ = export_run(tmp_path / "run.zarr", "csv", tmp_path / "run.csv").read_text().splitlines()
    assert header == "t,'=v[0]" and first.endswith(",-1.5")


def test_every_array_of_a_run_is_in_its_netcdf(runs, tmp_path):
    """Of an integration, an ensemble and a training every number that the folder holds, also in groups and above 1000 entries.

    And every attribute, as it is or as JSON; `coordinates` stands at the variables, and gives the same coordinates.
    """
    import xarray as xr
    import zarr

    from odesim.store.export import export_run
    from odesim.store.write import write_solution
    from tests.store.test_store import solution

    large = {"mu": np.arange(1500.0), "tau": 2.5, "psi": np.arange(1200)}
    write_solution(solution(attrs={**solution().attrs, "params": large, "initial": {"v": np.arange(1001.0)}}), tmp_path / "run.zarr")
    for run in (*runs.values(), tmp_path / "run.zarr"):
        found = xr.open_dataset(export_run(run, "nc", tmp_path / f"{run.stem}.nc"), engine="scipy", decode_times=False)
        names = [str(p.parent.relative_to(run)) for p in run.rglob("zarr.json") if "shape" in json.loads(p.read_text())]
        for name in names:
            np.testing.assert_array_equal(found[name.replace("/", "_").replace(" ", "_")].values, zarr.open_array(run / name)[...])
        attributes = json.loads((run / "zarr.json").read_text())["attributes"]
        for name in attributes.keys() - {"coordinates", "crc32"}:
            same = found.attrs[name]
            assert attributes[name] in (same, json.loads(same) if isinstance(same, str) and same != attributes[name] else same), name
        assert set(attributes.get("coordinates", "").split()) <= set(found.coords)


def test_what_is_not_there_takes_no_time(runs):
    """1e10 members of which three are there: status, csv and the count of work are those of three; nc and plot refuse."""
    run = copy(runs["ensemble"], Path("bad.zarr"))
    for file in run.rglob("zarr.json"):
        shape = json.loads(file.read_text()).get("shape", [0])
        if shape[:1] == [3] and file.parent.name != "time" and file.parent.parent == run:
            edit(file, lambda said: {**said, "shape": [10**10, *said["shape"][1:]]})
    edit(run / "zarr.json", lambda said: {**said, "attributes": {**said["attributes"], "members": 10**10}})
    assert check_reading("status", "bad.zarr", calls=100_000) == 0
    assert "3 of 10000000000 members" in read("status", "bad.zarr")[1]
    assert check_reading("export csv", "bad.zarr", calls=300_000) == 0
    for command in ("export nc", "plot"):
        assert check_reading(command, "bad.zarr", calls=1_000_000) == 2
        assert "has 3 of its 10000000000 members" in read(command, "bad.zarr")[2]


def test_all_that_is_printed_goes_through_one_function():
    """No command prints by itself: `echo` and `say` escape what a terminal would act on, whoever the text is from."""
    import re

    from odesim import cli, lab

    # echo and a line of progress; say; texts of click and of Python alone; a script that is a constant; a sentence before click is there
    calls = {"tables.py": 3, "outcome.py": 1, "app.py": 3, "about.py": 1, "__init__.py": 1}
    printing = re.compile(r"click\.echo\(|\bprint\((?!\))|click\.secho\(|sys\.std\w+\.write")
    files = [file for room in (cli, lab) for file in Path(room.__path__[0]).rglob("*.py")]
    found = {str(file): len(printing.findall(file.read_text())) for file in files}
    expected = {str(file): calls.get(file.name, 0) if file.parent == Path(cli.__path__[0]) else 0 for file in files}
    assert found == expected

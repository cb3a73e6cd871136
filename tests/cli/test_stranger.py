"""A run from a stranger is read as data: nothing in it is run, followed as a link, or decoded by what odesim does not write."""

import json
import os
import pickle
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cli.strangers import MARKED, READS, check_reading, copy, edit, make_runs, read


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """{kind: a good run}, in the current folder."""
    patch = pytest.MonkeyPatch()
    patch.setenv("COLUMNS", "80")
    try:
        yield make_runs(tmp_path_factory.mktemp("runs"), patch)
    finally:
        patch.undo()


@pytest.mark.parametrize("kind", ["integration", "ensemble", "training"])
def test_a_good_run_is_read(kind, runs):
    """Every verb ends with 0 on a good run, unless it is not for that kind; without --model no file is run."""
    for verb in READS:
        shutil.rmtree("good.zarr", ignore_errors=True)
        shutil.copytree(runs[kind], "good.zarr")
        model = verb.endswith("--model")
        expected = 2 if (model == (kind == "training")) and verb.split()[0] in ("rerun", "resume") else 0
        if (kind, verb) == ("integration", "resume --model") or (kind, verb) == ("ensemble", "compare"):
            expected = 2
        if (kind, verb) in (("integration", "resume"), ("training", "rerun"), ("training", "resume"), ("ensemble", "resume")):
            expected = 0
        assert check_reading(verb, f"{kind}.zarr") == expected, (kind, verb)


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


def pickled_checkpoint(run: Path) -> None:
    """A checkpoint with an object in it; of other kinds of runs a file that nobody asks for."""
    (run / "checkpoint").mkdir(exist_ok=True)
    with (run / "checkpoint" / "state.npz").open("wb") as file:
        np.savez(file, iteration=np.array([Bad()], object), allow_pickle=True)


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


BYTES = {"name": "bytes", "configuration": {"endian": "little"}}
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
    "a state above": (state_name("../good.zarr/x"), "its attribute"),
    "a state at a root": (state_name("/etc"), "its attribute"),
    "a state called ..": (state_name(".."), "its attribute"),
    "a state without a name": (state_name(""), "its attribute"),
    "a state that is not there": (state_name("nope"), "it has no array 'nope'"),
    "a state called params": (state_name("params"), "it has no array 'params'"),
}


VERBS = [verb for verb in READS if verb != "status"]


@pytest.mark.parametrize("attack", REFUSED)
def test_what_odesim_does_not_write_is_not_read(attack, runs):
    """Every kind of run: exit code 2 and one sentence before anything is decoded, by status and, in turn, by one more verb."""
    k = list(REFUSED).index(attack)
    check_refused(attack, runs, ("status", VERBS[k % len(VERBS)]))


@pytest.mark.slow
@pytest.mark.parametrize("attack", REFUSED)
def test_what_odesim_does_not_write_is_read_by_no_verb(attack, runs):
    """The same by every verb."""
    check_refused(attack, runs, READS)


def check_refused(attack: str, runs: dict[str, Path], verbs: Iterable[str]) -> None:
    """Each verb ends with 2 and one sentence on each kind of run, which stays as it is."""
    change, sentence = REFUSED[attack]
    for run in runs.values():
        change(copy(run, Path("bad.zarr")))
        before = {p: p.lstat().st_mtime_ns for p in Path("bad.zarr").rglob("*")}
        for verb in verbs:
            assert check_reading(verb, "bad.zarr") == 2, verb
        assert sentence in read("status", "bad.zarr")[2]
        assert {p: p.lstat().st_mtime_ns for p in Path("bad.zarr").rglob("*")} == before

"""Runs of which a file is lost: zarr reads the fill value there, so each reader refuses them."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import odesim
from odesim.base.errors import StoreError
from odesim.store.chunks import has_files
from odesim.store.export import export_run
from odesim.store.read import read_solution
from odesim.store.schema import inspect_run
from odesim.store.write import write_solution
from tests.support.metadata import change_attributes


def integrated(path: Path) -> None:
    """Saved times of three states, an event, final values at an event's time."""
    run = odesim.integrate("joma.nonlinear", sizes={"M": 3}, save=9, events="far: v[2] - 2; terminal", backend="numpy")
    write_solution(run, path)


def trained(path: Path) -> None:
    """Three classes that share a query, so that psi is 0 throughout, in a training whose entropy_distinct is 0 too."""
    P = [[0.5, 0.3, 0.2], [0.2, 0.5, 0.3], [0.3, 0.2, 0.5]]
    odesim.train("scan_snap", settings={"P": P, "psi": [0, 0, 0]}, steps=7, out=path)


MAKERS: dict[str, Callable[[Path], None]] = {"integration": integrated, "training": trained}
USES: dict[str, Callable[[Path], Any]] = {
    "open": lambda path: odesim.open_run(path),
    "export": lambda path: export_run(path, "csv", path.with_suffix(".csv")),
    "status": lambda path: inspect_run(path),
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("whole")
    for kind, make in MAKERS.items():
        make(folder / f"{kind}.zarr")
    return {kind: folder / f"{kind}.zarr" for kind in MAKERS}


def chunk_files(path: Path) -> list[Path]:
    """Files of chunks inside the run."""
    return sorted(file for file in path.rglob("*") if file.is_file() and file.suffix not in (".json", ".npz"))


def array_of(file: Path, path: Path) -> str:
    """Name of the array of a chunk file inside the run, such as params/mu."""
    return str(file.relative_to(path)).partition("/c/")[0].removesuffix("/c")


@pytest.mark.first(1)
@pytest.mark.parametrize("kind", MAKERS)
def test_each_lost_file_is_found(kind, whole, tmp_path):
    """Without any one of its files, results or inputs, a run is refused in a sentence with the array's name; with all it is read."""
    path = tmp_path / "run.zarr"
    shutil.copytree(whole[kind], path)
    files = chunk_files(path)
    arrays = {array_of(file, path) for file in files}
    assert arrays == set(inspect_run(path).arrays) and len(arrays) > 5
    for file in files:
        content = file.read_bytes()
        file.unlink()
        for use in USES.values():
            with pytest.raises(StoreError, match="damaged") as raised:
                use(path)
            assert repr(array_of(file, path)) in str(raised.value)
        file.write_bytes(content)
        odesim.open_run(path)


def test_an_integration_tells_how_many_files_it_has(whole, tmp_path):
    """One that does not is refused: without that number a lost file would be read as the fill value."""
    path = tmp_path / "run.zarr"
    shutil.copytree(whole["integration"], path)
    change_attributes(path, chunk_files=None)
    with pytest.raises(StoreError, match=r"damaged: its attribute 'chunk_files' is missing"):
        odesim.open_run(path)


def test_what_is_nan_throughout_is_read(tmp_path):
    """An observable that is no number at any time has no file of its own, and the run lacks none."""
    run = odesim.integrate("joma.nonlinear", sizes={"M": 3}, save=5)
    nothing = {name: np.full_like(values, np.nan) for name, values in run.observables.items()}
    write_solution(replace(run, _observe=lambda t, _: {name: values[: len(t)] for name, values in nothing.items()}), tmp_path / "run.zarr")
    assert not (tmp_path / "run.zarr" / "gap" / "c").exists()
    assert np.isnan(read_solution(tmp_path / "run.zarr").observables["gap"]).all()


def test_a_training_of_one_row(tmp_path):
    """Its only time is 0, the fill value."""
    odesim.train("scan_snap", steps=0, out=tmp_path / "run.zarr")
    assert odesim.open_run(tmp_path / "run.zarr").time.values.tolist() == [0]


@pytest.mark.parametrize("state", list(product(("whole", "empty", "absent"), repeat=3)), ids=" ".join)
def test_files_are_there_where_each_is(state, tmp_path):
    """Three files, each whole, empty or absent: a chunk is stored where all of them are whole."""
    files = [tmp_path / str(k) for k in range(3)]
    for file, how in zip(files, state, strict=True):
        if how != "absent":
            file.write_bytes(b"0" * (how == "whole"))
    assert has_files(files) is (set(state) == {"whole"})

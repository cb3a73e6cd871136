"""Runs on disk, looked through before anything of them is decoded: the one way to what a folder says that it is."""

import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from odesim.errors import StoreError
from odesim.inputs import arguments
from odesim.reference.training.trajectory import SEED
from odesim.store.document import read_document
from odesim.store.guard import GROUP_KEYS, ArrayFacts, inspect_arrays
from odesim.store.paths import RUN_MARK
from odesim.store.schema import ENSEMBLE, TRAINING, check_attributes, kind_of_attributes, raise_damaged
from odesim.store.write import TIME

NO_OUTPUTS: dict[str, Any] = {"events": [], "most": 8, "ends": [], "observed": [], "observe": [], "blow_up": []}
MAX_ABSENT = 1 << 28  # bytes of arrays without a file, which are all one number: more are no run's


@dataclass(frozen=True)
class StoredRun:
    """A run that may be read: its attributes are what they must be, and its arrays {name: Facts} are what odesim writes."""

    path: Path
    attributes: dict[str, Any]
    arrays: Mapping[str, ArrayFacts]

    @property
    def kind(self) -> str:
        return kind_of_attributes(self.attributes)

    @property
    def names(self) -> list[str]:
        """Arrays that are the run's results."""
        return list(dict.fromkeys([*self.attributes["states"], *self.attributes["observables"], *self.attributes.get("ledger", ())]))

    @property
    def coordinates(self) -> list[str]:
        """Arrays that name its rows: times, seeds, and what is a member's own."""
        return [TIME, *((SEED,) if self.kind == TRAINING else ()), *(self.attributes["labels"].values() if self.kind == ENSEMBLE else ())]


def inspect_run(path: str | Path) -> StoredRun:
    """The run at path, looked through before anything of it is decoded. Raises StoreError where there is none, or one that is not read."""
    path = Path(arguments.to_path("the folder of a run", path))
    folder, file = _is_folder(path), path / "zarr.json"
    said: Any = None
    try:
        if folder:
            said = read_document(file)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror or error}") from None
    attributes = said.get("attributes", {}) if said else {}
    if said is None or not isinstance(attributes, dict) or (said.get("node_type") == "group" and RUN_MARK not in attributes):
        kind = "a zarr group of something else" if said is not None else "a folder" if folder else "a file"
        raise StoreError(f"{path} is {kind}, not a run of odesim")
    if said.keys() - GROUP_KEYS or said.get("node_type") != "group" or type(said.get("zarr_format")) is not int or said["zarr_format"] != 3:
        raise StoreError(f"{path} is damaged: its zarr.json is none of a run")
    if kind_of_attributes(attributes) == ENSEMBLE:
        attributes.setdefault("kept", dict(NO_OUTPUTS))  # of a run from before there was such a thing
    check_attributes(path, attributes)
    run = StoredRun(path, attributes, inspect_arrays(path))
    check_run_arrays(run)
    return run


def check_run_arrays(run: StoredRun) -> None:
    """Raises StoreError where an array that the attributes name is not there, or needs more memory than its files account for."""
    said, absent = run.attributes, 0
    for name in [*run.names, *run.coordinates]:
        if name not in run.arrays:
            raise StoreError(f"{run.path} is damaged: it has no array {name[:60]!r}")
        rows = {ENSEMBLE: 0, TRAINING: said.get("rows")}.get(run.kind)
        facts = run.arrays[name]
        if TIME in facts.dims and run.kind == TRAINING and said["rows"] > facts.shape[facts.dims.index(TIME)]:
            raise_damaged(run.path, "rows", said["rows"])
        axis = facts.dims.index(TIME) if run.kind == TRAINING and TIME in facts.dims else 0
        if run.kind != ENSEMBLE or name == TIME:
            absent += max(facts.count(rows if TIME in facts.dims else None, axis) - facts.files, 0) * facts.chunk
    for name, facts in run.arrays.items():
        if "/" in name:
            absent += (facts.count() - facts.files) * facts.chunk
    if absent > MAX_ABSENT:
        raise StoreError(f"{run.path} is damaged: it lacks files of {absent / 1e9:.3g} GB of its arrays")


def _is_folder(path: Path) -> bool:
    """Whether path is a folder; a file where not. Raises StoreError where nothing is there or the system takes no such name."""
    try:
        return stat.S_ISDIR(path.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        raise StoreError(f"no run {path}") from None
    except (OSError, ValueError) as error:
        raise StoreError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None


def check_readable_run(path: str | Path) -> Path:
    """path where it holds a run that may be read. Raises StoreError."""
    return inspect_run(path).path


def run_kind(path: str | Path) -> str:
    """`ensemble`, `training` or `integration`. Raises StoreError where path holds no run."""
    return inspect_run(path).kind

"""Opens a run on disk: attributes and metadata are checked before any array is decoded. All readers go through inspect_run()."""

import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from odesim.base.errors import StoreError
from odesim.inputs import arguments
from odesim.reference.training.trajectory import SEED
from odesim.store.document import read_document
from odesim.store.guard import GROUP_KEYS, ArrayFacts, inspect_arrays
from odesim.store.paths import RUN_FORMAT, RUN_MARK
from odesim.store.remote import RemotePath, as_place
from odesim.store.schema import ENSEMBLE, INTEGRATION, TRAINING, check_attributes, kind_of_attributes, raise_damaged
from odesim.store.write import ALL_CHUNKS, CHUNK_FILES, TIME

NO_OUTPUTS: dict[str, Any] = {"events": [], "most": 8, "ends": [], "observed": [], "observe": [], "blow_up": []}
MAX_ABSENT = 1 << 28  # bytes of arrays without files, which zarr would fill with one number: no run of odesim lacks more


@dataclass(frozen=True)
class StoredRun:
    """A run on disk whose attributes and array metadata {name: ArrayFacts} have passed all checks."""

    path: Path
    attributes: dict[str, Any]
    arrays: Mapping[str, ArrayFacts]

    @property
    def kind(self) -> str:
        return kind_of_attributes(self.attributes)

    @property
    def names(self) -> list[str]:
        """Names of the arrays that hold results."""
        return list(dict.fromkeys([*self.attributes["states"], *self.attributes["observables"], *self.attributes.get("ledger", ())]))

    @property
    def coordinates(self) -> list[str]:
        """Names of the coordinate arrays: times, seeds, and what differs between members."""
        return [TIME, *((SEED,) if self.kind == TRAINING else ()), *(self.attributes["labels"].values() if self.kind == ENSEMBLE else ())]


def inspect_run(path: str | Path) -> StoredRun:
    """The run at path, checked before any array is decoded. Raises StoreError if there is none or a check fails."""
    place = as_place(path if isinstance(path, RemotePath) else arguments.to_path("the folder of a run", path))
    run = StoredRun(place, checked_attributes(place), inspect_arrays(place))
    check_run_arrays(run)
    return run


def checked_attributes(path: Path) -> dict[str, Any]:
    """The attributes of the run at path. Raises StoreError if there is none, or one of them is not as odesim writes it."""
    folder, file = _is_folder(path), path / "zarr.json"
    document: Any = None
    try:
        if folder:
            document = read_document(file)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror or error}") from None
    attributes = document.get("attributes", {}) if document else {}
    if document is None or not isinstance(attributes, dict) or (document.get("node_type") == "group" and RUN_MARK not in attributes):
        kind = "a zarr group of something else" if document is not None else "a folder" if folder else "a file"
        raise StoreError(f"{path} is {kind}, not a run of odesim")
    if (
        document.keys() - GROUP_KEYS
        or document.get("node_type") != "group"
        or type(document.get("zarr_format")) is not int
        or document["zarr_format"] != 3
    ):
        raise StoreError(f"{path} is damaged: its zarr.json is none of a run")
    if attributes[RUN_MARK] != RUN_FORMAT:
        raise StoreError(f"{path} has the run format {str(attributes[RUN_MARK])[:20]!r}, and this odesim reads {RUN_FORMAT}")
    if kind_of_attributes(attributes) == ENSEMBLE:
        attributes.setdefault("kept", dict(NO_OUTPUTS))  # of a run from before there was such a thing
    check_attributes(path, attributes)
    return attributes


def check_run_arrays(run: StoredRun) -> None:
    """Raises StoreError if an array that the attributes name is missing, or arrays take more memory than files account for."""
    attributes, absent = run.attributes, 0
    for name in [*run.names, *run.coordinates]:
        if name not in run.arrays:
            raise StoreError(f"{run.path} is damaged: it has no array {name[:60]!r}")
        rows = {ENSEMBLE: 0, TRAINING: attributes.get("rows")}.get(run.kind)
        facts = run.arrays[name]
        if TIME in facts.dims and run.kind == TRAINING and attributes["rows"] > facts.shape[facts.dims.index(TIME)]:
            raise_damaged(run.path, "rows", attributes["rows"])
        axis = facts.dims.index(TIME) if run.kind == TRAINING and TIME in facts.dims else 0
        if run.kind != ENSEMBLE or name == TIME:
            absent += max(facts.count(rows if TIME in facts.dims else None, axis) - facts.files, 0) * facts.chunk
    for name, facts in run.arrays.items():
        if "/" in name:
            absent += (facts.count() - facts.files) * facts.chunk
    if absent > MAX_ABSENT:
        raise StoreError(f"{run.path} is damaged: it lacks files of {absent / 1e9:.3g} GB of its arrays")
    for name, facts in run.arrays.items():
        if facts.files < least_files(run, name, facts):
            raise StoreError(f"{run.path} is damaged: a file of its array {name[:60]!r} is missing")


def least_files(run: StoredRun, name: str, facts: ArrayFacts) -> int:
    """Number of chunk files that an array has at least. zarr reads a chunk whose file is missing as the fill value, without an error.

    0 where nothing tells: runs of older versions have no file for a chunk of nothing but the fill value. An ensemble has a ledger.
    """
    attributes = run.attributes
    if run.kind == INTEGRATION:
        return int(attributes[CHUNK_FILES].get(name, 0)) if CHUNK_FILES in attributes else facts.count() * (name == TIME)
    if run.kind == TRAINING and name == TIME:
        return facts.count() if facts.count(attributes["rows"]) and facts.shape != (1,) else 0  # the only time of one row is the fill value
    if run.kind == TRAINING and attributes.get(ALL_CHUNKS):
        if TIME in facts.dims:
            return facts.count(attributes["rows"], facts.dims.index(TIME))
        return facts.count() if attributes["status"] != "running" else 0  # what is written at the end
    return 0


def _is_folder(path: Path) -> bool:
    """Whether path is a folder; False for a file. Raises StoreError if nothing is there or the name is invalid."""
    if isinstance(path, RemotePath):
        if not (path / "zarr.json").exists():
            raise StoreError(f"no run {path}")
        return True
    try:
        return stat.S_ISDIR(path.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        raise StoreError(f"no run {path}: give the folder that a command wrote with --out, such as RUN.zarr") from None
    except (OSError, ValueError) as error:
        raise StoreError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None


def check_readable_run(path: str | Path) -> Path:
    """path, if it holds a run that can be read. Raises StoreError."""
    return inspect_run(path).path


def run_kind(path: str | Path) -> str:
    """`ensemble`, `training` or `integration`: the kind of the run at path. Raises StoreError if there is none."""
    return inspect_run(path).kind

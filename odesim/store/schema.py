"""What a run on disk must be: its attributes by name and type, its arrays by name and number of files.

All readers go through inspect_run(), which checks this before any array is decoded. Attributes that are not listed here are not checked.
"""

import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from odesim.base.errors import StoreError
from odesim.inputs import arguments
from odesim.store.guard import GROUP_KEYS, ArrayFacts, inspect_arrays, read_document
from odesim.store.paths import RUN_FORMAT, RUN_MARK
from odesim.store.remote import RemotePath, as_place

Check = Callable[[Any], bool]
MAX_NAMES = 10_000
INTEGRATION, ENSEMBLE, TRAINING = "integration", "ensemble", "training"
TIME, SEED, MEMBER = "time", "seed", "member"
PARAMS, INITIAL, EVENTS, FINAL = "params", "initial", "events", "final values"  # groups inside a run
INCOMPLETE = "incomplete"
CHUNK_FILES = "chunk_files"  # attribute: {array: number of its chunk files}, without those of nothing but the fill value
ALL_CHUNKS = "all_chunks"  # attribute: every chunk of the rows that are written has a file
NO_OUTPUTS: dict[str, Any] = {"events": [], "most": 8, "ends": [], "observed": [], "observe": [], "blow_up": []}
MAX_ABSENT = 1 << 28  # bytes of arrays without files, which zarr would fill with one number: no run of odesim lacks more


def text(value: Any) -> bool:
    """Whether value is text."""
    return isinstance(value, str)


def flag(value: Any) -> bool:
    """Whether value is true, false, 0 or 1."""
    return value is True or value is False or (type(value) is int and value in (0, 1))


def number(value: Any) -> bool:
    """Whether value is a number."""
    return type(value) in (int, float)


def count(value: Any) -> bool:
    """Whether value is a whole number, at least 0."""
    return type(value) is int and value >= 0


def positive(value: Any) -> bool:
    """Whether value is a whole number, at least 1."""
    return type(value) is int and value >= 1


def anything(value: Any) -> bool:
    """True for every value."""
    return True


def nullable(check: Check) -> Check:
    """A check that null passes too."""
    return lambda value: value is None or check(value)


def any_of(*checks: Check) -> Check:
    """A check that passes where one of these does."""
    return lambda value: any(check(value) for check in checks)


def list_of(check: Check, length: int | None = None) -> Check:
    """A check of lists whose items pass. length: of the list, if it is fixed."""
    return lambda value: isinstance(value, list) and length in (None, len(value)) and all(map(check, value))


def dict_of(check: Check) -> Check:
    """A check of objects with any keys whose values pass."""
    return lambda value: isinstance(value, dict) and all(map(check, value.values()))


def with_keys(**parts: Check) -> Check:
    """A check of objects that have these keys, with values that pass; other keys are ignored."""
    return lambda value: isinstance(value, dict) and all(name in value and check(value[name]) for name, check in parts.items())


def only_keys(parts: Mapping[str, Check]) -> Check:
    """A check of objects that have no other keys than these, with values that pass."""
    return lambda value: isinstance(value, dict) and all(key in parts and parts[key](item) for key, item in value.items())


def dtype(value: Any) -> bool:
    """Whether value names a data type of states."""
    return value in ("float64", "float32")


def array_names(value: Any) -> bool:
    """Whether value is a list of distinct array names."""
    return list_of(array_name)(value) and len(value) <= MAX_NAMES and len(set(value)) == len(value)


def array_name(value: Any) -> bool:
    """Whether value is a relative path that stays inside the folder of the run."""
    return isinstance(value, str) and all(step not in ("", ".", "..") for step in value.split("/")) and "\\" not in value


DIGEST = with_keys(shape=list_of(count))
OCCURRENCE = with_keys(t=number, index=nullable(list_of(count)))
RANDOM = with_keys(kind=lambda v: v == "random", name=text, function=lambda v: v in ("uniform", "normal"), a=number, b=number, seed=count)
POINTS = with_keys(kind=lambda v: v == "points", name=text, repeat=positive)
TABLE = with_keys(kind=lambda v: v == "table", name=text)
ZERO_OR_TWO_TEXTS = any_of(list_of(text, 0), list_of(text, 2))
OUTPUTS = with_keys(
    events=list_of(list_of(text, 3)), most=count, ends=array_names, observed=array_names, observe=list_of(text), blow_up=ZERO_OR_TWO_TEXTS
)
OPTIMIZER = with_keys(name=text, rates=dict_of(number), momentum=number, betas=list_of(number, 2), eps=number, weight_decay=number)
SENSITIVITIES = any_of(dict_of(dict_of(text)), list_of(text))
ATTEMPT: dict[str, Check] = {
    "method": text,
    "auto": nullable(text),
    "rtol": number,
    "atol": number,
    "max_steps": positive,
    "step": nullable(number),
}
OPTIONS: dict[str, Check] = {
    "ref": nullable(text),
    "time_unit": text,
    "sizes": dict_of(count),
    "span": list_of(number, 2),
    "step": nullable(number),
    "rtol": number,
    "atol": number,
    "max_steps": positive,
    "seed": count,
    "dtype": dtype,
    "strict": flag,
    "kernel": text,
    "versions": dict_of(text),
    "auto": nullable(text),
    "clock": text,
    "backend": text,
    "stop_at": list_of(number),
    "max_step": nullable(number),
    "first_step": nullable(number),
}
# attributes that must be there, and those that may be
REQUIRED: dict[str, dict[str, Check]] = {
    INTEGRATION: {
        "model": text,
        "method": text,
        "backend": text,
        "status": text,
        "message": text,
        "t_end": number,
        "stats": dict_of(nullable(number)),
        "states": array_names,
        "observables": array_names,
        "params": dict_of(anything),
        "events": dict_of(any_of(DIGEST, list_of(OCCURRENCE))),
        "invariants": dict_of(nullable(number)),
    },
    ENSEMBLE: {
        "model": text,
        "members": positive,
        "chunk": positive,
        "design": list_of(any_of(RANDOM, POINTS, TABLE)),
        "labels": dict_of(array_name),
        "sizes": dict_of(count),
        "span": list_of(number, 2),
        "method": text,
        "attempts": lambda value: list_of(only_keys(ATTEMPT))(value) and len(value) > 0,
        "identity": dict_of(text),
        "states": array_names,
        "observables": array_names,
        "kernel": text,
        "lanes": flag,
        "seed": count,
        "kept": OUTPUTS,
        "status_names": list_of(text),
    },
    TRAINING: {
        "task": text,
        "model": text,
        "config": dict_of(anything),
        "optimizer": OPTIMIZER,
        "seeds": lambda value: list_of(count)(value) and len(set(value)) == len(value) > 0,
        "observables": array_names,
        "states": list_of(text, 0),
        "steps": count,
        "iteration": count,
        "rows": count,
        "status": text,
        "message": text,
    },
}
OPTIONAL: dict[str, dict[str, Check]] = {
    INTEGRATION: {
        **OPTIONS,
        "not_applicable": list_of(text),
        "initial": dict_of(anything),
        "sensitivities": SENSITIVITIES,
        "added_events": list_of(text),
        "event_docs": dict_of(text),
        "jumps": dict_of(dict_of(text)),
        "even": positive,
        "blow_up_error": number,
        "incomplete": text,
        "chunk_files": dict_of(count),
    },
    ENSEMBLE: {
        **OPTIONS,
        "sensitivities": list_of(text),
        "added_events": list_of(text),
        "event_docs": dict_of(text),
        "ledger": array_names,
        "coordinates": text,
        "status_meanings": list_of(text),
        "method_names": list_of(text),
    },
    TRAINING: {
        "dtype": dtype,
        "backend": text,
        "save": nullable(positive),
        "observe": list_of(text),
        "versions": dict_of(text),
        "vocabulary": anything,
        "labels": dict_of(list_of(text)),
        "threads": positive,
        "identity": dict_of(text),
        "stats": dict_of(nullable(number)),
        "bad": dict_of(count),
        "all_chunks": flag,
    },
}


def kind_of_attributes(attributes: Mapping[str, Any]) -> str:
    """`ensemble`, `training` or `integration`, from the attributes of a run."""
    return ENSEMBLE if "members" in attributes else TRAINING if "task" in attributes else INTEGRATION


def check_attributes(path: Path, attributes: Mapping[str, Any]) -> None:
    """Raises StoreError for the first attribute of the run at path that is missing or has a wrong type."""
    kind = kind_of_attributes(attributes)
    for key, check in REQUIRED[kind].items():
        if key not in attributes:
            raise StoreError(f"{path} is damaged: its attribute {key!r} is missing")
        if not check(attributes[key]):
            raise_damaged(path, key, attributes[key])
    for key, check in OPTIONAL[kind].items():
        if key in attributes and not check(attributes[key]):
            raise_damaged(path, key, attributes[key])
    if kind == TRAINING and not all(seed.isascii() and seed.isdecimal() and len(seed) < 20 for seed in attributes.get("bad", {})):
        raise_damaged(path, "bad", attributes["bad"])


def raise_damaged(path: Path, key: str, value: Any) -> None:
    """Raises a StoreError which says that the attribute `key` has this value."""
    raise StoreError(f"{path} is damaged: its attribute {key!r} is {str(value)[:60]!r}")


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

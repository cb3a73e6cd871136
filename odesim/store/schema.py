"""What a run on disk must be: its attributes by name and type, its arrays by name and number of files.

All readers go through inspect_run(), which checks this before any array is decoded. Attributes that are not listed here are not checked.
"""

import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from odesim.base.errors import StoreError
from odesim.base.options import DESIGNS
from odesim.inputs import arguments
from odesim.run.solution import FLOORS
from odesim.store.guard import GROUP_KEYS, ArrayFacts, inspect_arrays, read_document
from odesim.store.paths import RUN_FORMAT, RUN_MARK

Check = Callable[[Any], bool]
MAX_NAMES = 10_000
INTEGRATION, ENSEMBLE, TRAINING = "integration", "ensemble", "training"
TIME, SEED, MEMBER = "time", "seed", "member"
PARAMS, INITIAL, EVENTS, FINAL = "params", "initial", "events", "final values"  # groups inside a run
INCOMPLETE = "incomplete"
CHUNK_FILES = "chunk_files"  # attribute: {array: number of its chunk files}, without those of nothing but the fill value
MAX_ABSENT = 1 << 28  # bytes of arrays without files, which zarr would fill with one number: no run of odesim lacks more


def fits(value: Any, form: Any) -> bool:
    """Whether a value of JSON has this form.

    str, float: a text, a number; int: a whole number from 0; bool: true, false, 0 or 1; object: anything. None and texts: themselves.
    [f]: a list of f; {str: f}: an object with any keys; {name: f, ...}: one that has these keys, and perhaps others. (f, g): one of them.
    A function: what it says.
    """
    if isinstance(form, tuple):
        return any(fits(value, one) for one in form)
    if isinstance(form, list):
        return isinstance(value, list) and all(fits(item, form[0]) for item in value)
    if isinstance(form, dict) and str in form:
        return isinstance(value, dict) and all(fits(item, form[str]) for item in value.values())
    if isinstance(form, dict):
        return isinstance(value, dict) and all(name in value and fits(value[name], inner) for name, inner in form.items())
    if form is bool:
        return value is True or value is False or (type(value) is int and value in (0, 1))
    if form in (int, float):
        return type(value) is int and value >= 0 if form is int else type(value) in (int, float)
    if isinstance(form, type):
        return isinstance(value, form)
    return bool(form(value)) if callable(form) else value == form


def positive(value: Any) -> bool:
    """Whether value is a whole number, at least 1."""
    return type(value) is int and value >= 1


def of_length(form: Any, length: int) -> Check:
    """A check of lists of so many items of this form."""
    return lambda value: fits(value, [form]) and len(value) == length


def array_names(value: Any) -> bool:
    """Whether value is a list of distinct array names."""
    return fits(value, [array_name]) and len(value) <= MAX_NAMES and len(set(value)) == len(value)


def array_name(value: Any) -> bool:
    """Whether value is a relative path that stays inside the folder of the run."""
    return isinstance(value, str) and all(step not in ("", ".", "..") for step in value.split("/")) and "\\" not in value


def rows(value: Any) -> bool:
    """Whether value is a number, or a nested list of numbers."""
    return fits(value, (float, [rows]))


TOLERANCE = (float, {str: rows})  # of all states, or by state
DTYPE = ("float64", "float32")
DIGEST = {"shape": [int]}
OCCURRENCE = {"t": float, "index": (None, [int])}
DRAWN = {"name": str, "function": ("uniform", "loguniform", "normal"), "a": float, "b": float, "seed": int}
RANDOM = {"kind": "random", **DRAWN}
SPREAD = {"kind": DESIGNS[1:], **DRAWN, "members": positive, "check": float}
POINTS = {"kind": "points", "name": str, "repeat": positive}
TABLE = {"kind": "table", "name": str}
OUTPUTS = {
    "events": [of_length(str, 3)],
    "most": int,
    "ends": array_names,
    "observed": array_names,
    "observe": [str],
    "blow_up": (of_length(str, 0), of_length(str, 2)),
}
ATTEMPT = {
    "method": str,
    "auto": (None, str),
    "rtol": float,
    "atol": TOLERANCE,
    "max_steps": positive,
    "step": (None, float),
}
OPTIONS: dict[str, Any] = {
    "time_unit": str,
    "sizes": {str: int},
    "span": of_length(float, 2),
    "step": (None, float),
    "rtol": float,
    "atol": TOLERANCE,
    "max_steps": positive,
    "seed": int,
    "dtype": DTYPE,
    "strict": bool,
    "kernel": str,
    "versions": {str: str},
    "clock": str,
    "stop_at": [float],
    "max_step": (None, float),
    "first_step": (None, float),
    "halvings": int,
}
# attributes that must be there, and those that may be
ALWAYS: dict[str, Any] = {"model": str, "method": str, "backend": str, "states": array_names, "observables": array_names}
REQUIRED: dict[str, dict[str, Any]] = {
    INTEGRATION: {
        **ALWAYS,
        "status": str,
        "message": str,
        "t_end": float,
        "stats": {str: (None, float)},
        "params": {str: object},
        "events": {str: (DIGEST, [OCCURRENCE])},
        "invariants": {str: (None, float)},
        "not_applicable": [str],
        CHUNK_FILES: {str: int},
    },
    ENSEMBLE: {
        **ALWAYS,
        **OPTIONS,
        "members": positive,
        "chunk": positive,
        "design": [(RANDOM, SPREAD, POINTS, TABLE)],
        "labels": {str: array_name},
        "attempts": lambda value: (
            fits(value, [dict]) and bool(value) and all(key in ATTEMPT and fits(v, ATTEMPT[key]) for one in value for key, v in one.items())
        ),
        "identity": {str: str},
        "lanes": bool,
        "kept": OUTPUTS,
        "ledger": array_names,
        "coordinates": str,
        "sensitivities": [str],
        "status_names": [str],
        "status_meanings": [str],
        "method_names": [str],
    },
    TRAINING: {
        "task": str,
        "model": str,
        "config": {str: object},
        "optimizer": {
            "name": str,
            "rates": {str: float},
            "momentum": float,
            "betas": of_length(float, 2),
            "eps": float,
            "weight_decay": float,
        },
        "seeds": lambda value: fits(value, [int]) and len(set(value)) == len(value) > 0,
        "observables": array_names,
        "states": of_length(str, 0),
        "steps": int,
        "iteration": int,
        "rows": int,
        "status": str,
        "message": str,
    },
}
OPTIONAL: dict[str, dict[str, Any]] = {
    INTEGRATION: {
        **OPTIONS,
        "ref": (None, str),
        "auto": str,
        "initial": {str: object},
        "sensitivities": {str: {str: str}},
        "added_events": [str],
        "event_docs": {str: str},
        "jumps": {str: {str: str}},
        "watched": {str: {str: str}},
        "views": {str: str},
        "levels": {str: [float]},
        FLOORS: {str: float},
        "even": positive,
        "blow_up_error": float,
        "incomplete": str,
    },
    ENSEMBLE: {
        "ref": (None, str),
        "auto": str,
        "added_events": [str],
        "event_docs": {str: str},
    },
    TRAINING: {
        "dtype": DTYPE,
        "backend": str,
        "save": (None, positive),
        "observe": [str],
        "versions": {str: str},
        "vocabulary": object,
        "labels": {str: [str]},
        "threads": positive,
        "identity": {str: str},
        "stats": {str: (None, float)},
        "bad": {str: int},
    },
}


def kind_of_attributes(attributes: Mapping[str, Any]) -> str:
    """`ensemble`, `training` or `integration`, from the attributes of a run."""
    return ENSEMBLE if "members" in attributes else TRAINING if "task" in attributes else INTEGRATION


def check_attributes(path: Path, attributes: Mapping[str, Any]) -> None:
    """Raises StoreError for the first attribute of the run at path that is missing or has a wrong type."""
    kind = kind_of_attributes(attributes)
    for key, form in {**REQUIRED[kind], **OPTIONAL[kind]}.items():
        if key not in attributes and key in REQUIRED[kind]:
            raise StoreError(f"{path} is damaged: its attribute {key!r} is missing")
        if key in attributes and not fits(attributes[key], form):
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
    place = Path(arguments.to_path("the folder of a run", path))
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

    An ensemble has a ledger.
    """
    attributes = run.attributes
    if run.kind == INTEGRATION:
        return int(attributes[CHUNK_FILES].get(name, 0))
    if run.kind == ENSEMBLE:
        return 0
    if name == TIME:
        return facts.count() if facts.count(attributes["rows"]) and facts.shape != (1,) else 0  # the only time of one row is the fill value
    if TIME in facts.dims:
        return facts.count(attributes["rows"], facts.dims.index(TIME))
    return facts.count() if attributes["status"] != "running" else 0  # what is written at the end


def _is_folder(path: Path) -> bool:
    """Whether path is a folder; False for a file. Raises StoreError if nothing is there or the name is invalid."""
    try:
        return stat.S_ISDIR(path.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        raise StoreError(f"no run {str(path)!r}: give the folder that a command wrote with --out, such as RUN.zarr") from None
    except (OSError, ValueError) as error:
        raise StoreError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None


def run_of_kind(path: str | Path, kind: str, more: str = "") -> StoredRun:
    """The run at path. Raises StoreError if there is none, or it is of another kind. more: the end of that sentence."""
    run = inspect_run(path)
    if run.kind != kind:
        what = f"a training of {run.attributes['task']}" if run.kind == TRAINING else f"an {run.kind} of {run.attributes['model']}"
        raise StoreError(f"{path} is {what}, not {'a' if kind == TRAINING else 'an'} {kind}{more}")
    return run


def run_kind(path: str | Path) -> str:
    """`ensemble`, `training` or `integration`: the kind of the run at path. Raises StoreError if there is none."""
    return inspect_run(path).kind

"""Checks of the attributes of a stored run, done once when it is opened.

Attributes that are not listed here are not checked.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from odesim.base.errors import StoreError

Check = Callable[[Any], bool]
MAX_NAMES = 10_000
INTEGRATION, ENSEMBLE, TRAINING = "integration", "ensemble", "training"


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

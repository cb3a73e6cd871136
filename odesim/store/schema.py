"""What the attributes of a stored run must be: checked once, so that who reads a run need not ask again.

An attribute that is not listed may be anything.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from odesim.errors import StoreError

Check = Callable[[Any], bool]
MAX_NAMES = 10_000
INTEGRATION, ENSEMBLE, TRAINING = "integration", "ensemble", "training"


def text(value: Any) -> bool:
    return isinstance(value, str)


def flag(value: Any) -> bool:
    return value is True or value is False or (type(value) is int and value in (0, 1))


def number(value: Any) -> bool:
    return type(value) in (int, float)


def count(value: Any) -> bool:
    """A whole number from 0 up."""
    return type(value) is int and value >= 0


def some(value: Any) -> bool:
    """A whole number from 1 up."""
    return type(value) is int and value >= 1


def anything(value: Any) -> bool:
    return True


def maybe(check: Check) -> Check:
    """Or null."""
    return lambda value: value is None or check(value)


def either(*checks: Check) -> Check:
    return lambda value: any(check(value) for check in checks)


def items(check: Check, length: int | None = None) -> Check:
    """A list of what passes, of this length where it is given."""
    return lambda value: isinstance(value, list) and length in (None, len(value)) and all(map(check, value))


def table(check: Check) -> Check:
    """An object with any keys."""
    return lambda value: isinstance(value, dict) and all(map(check, value.values()))


def record(**parts: Check) -> Check:
    """An object with these keys at least."""
    return lambda value: isinstance(value, dict) and all(name in value and check(value[name]) for name, check in parts.items())


def part(parts: Mapping[str, Check]) -> Check:
    """An object with some of these keys and no other."""
    return lambda value: isinstance(value, dict) and all(name in parts and parts[name](one) for name, one in value.items())


def dtype(value: Any) -> bool:
    return value in ("float64", "float32")


def names(value: Any) -> bool:
    """Different texts, each of which is a name of an array and no path out of the folder."""
    return items(name)(value) and len(value) <= MAX_NAMES and len(set(value)) == len(value)


def name(value: Any) -> bool:
    return isinstance(value, str) and all(part not in ("", ".", "..") for part in value.split("/")) and "\\" not in value


DIGEST = record(shape=items(count))
OCCURRENCE = record(t=number, index=maybe(items(count)))
RANDOM = record(kind=lambda v: v == "random", name=text, function=lambda v: v in ("uniform", "normal"), a=number, b=number, seed=count)
POINTS = record(kind=lambda v: v == "points", name=text, repeat=some)
TABLE = record(kind=lambda v: v == "table", name=text)
ZERO_OR_TWO_TEXTS = either(items(text, 0), items(text, 2))
OUTPUTS = record(events=items(items(text, 3)), most=count, ends=names, observed=names, observe=items(text), blow_up=ZERO_OR_TWO_TEXTS)
OPTIMIZER = record(name=text, rates=table(number), momentum=number, betas=items(number, 2), eps=number, weight_decay=number)
SENSITIVITIES = either(table(table(text)), items(text))
ATTEMPT: dict[str, Check] = {"method": text, "auto": maybe(text), "rtol": number, "atol": number, "max_steps": some, "step": maybe(number)}
OPTIONS: dict[str, Check] = {
    "ref": maybe(text),
    "time_unit": text,
    "sizes": table(count),
    "span": items(number, 2),
    "step": maybe(number),
    "rtol": number,
    "atol": number,
    "max_steps": some,
    "seed": count,
    "dtype": dtype,
    "strict": flag,
    "kernel": text,
    "versions": table(text),
    "auto": maybe(text),
    "clock": text,
    "backend": text,
    "stop_at": items(number),
    "max_step": maybe(number),
}
# what must be there, and what may be
REQUIRED: dict[str, dict[str, Check]] = {
    INTEGRATION: {
        "model": text,
        "method": text,
        "backend": text,
        "status": text,
        "message": text,
        "t_end": number,
        "stats": table(maybe(number)),
        "states": names,
        "observables": names,
        "params": table(anything),
        "events": table(either(DIGEST, items(OCCURRENCE))),
        "invariants": table(maybe(number)),
    },
    ENSEMBLE: {
        "model": text,
        "members": some,
        "chunk": some,
        "design": items(either(RANDOM, POINTS, TABLE)),
        "labels": table(name),
        "sizes": table(count),
        "span": items(number, 2),
        "method": text,
        "attempts": lambda value: items(part(ATTEMPT))(value) and len(value) > 0,
        "identity": table(text),
        "states": names,
        "observables": names,
        "kernel": text,
        "lanes": flag,
        "seed": count,
        "kept": OUTPUTS,
        "status_names": items(text),
    },
    TRAINING: {
        "task": text,
        "model": text,
        "config": table(anything),
        "optimizer": OPTIMIZER,
        "seeds": lambda value: items(count)(value) and len(set(value)) == len(value) > 0,
        "observables": names,
        "states": items(text, 0),
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
        "not_applicable": items(text),
        "initial": table(anything),
        "sensitivities": SENSITIVITIES,
        "even": some,
        "blow_up_error": number,
        "incomplete": text,
    },
    ENSEMBLE: {
        **OPTIONS,
        "sensitivities": items(text),
        "ledger": names,
        "coordinates": text,
        "status_meanings": items(text),
        "method_names": items(text),
    },
    TRAINING: {
        "dtype": dtype,
        "backend": text,
        "save": maybe(some),
        "observe": items(text),
        "versions": table(text),
        "vocabulary": anything,
        "threads": some,
        "identity": table(text),
        "stats": table(maybe(number)),
        "bad": table(count),
    },
}


def kind_of_attributes(said: Mapping[str, Any]) -> str:
    """`ensemble`, `training` or `integration`."""
    return ENSEMBLE if "members" in said else TRAINING if "task" in said else INTEGRATION


def check_attributes(path: Path, said: Mapping[str, Any]) -> None:
    """Raises StoreError for the first attribute of the run at path that is missing or of another kind than it must be."""
    kind = kind_of_attributes(said)
    for key, check in REQUIRED[kind].items():
        if key not in said:
            raise StoreError(f"{path} is damaged: its attribute {key!r} is missing")
        if not check(said[key]):
            raise_damaged(path, key, said[key])
    for key, check in OPTIONAL[kind].items():
        if key in said and not check(said[key]):
            raise_damaged(path, key, said[key])
    if kind == TRAINING and not all(seed.isascii() and seed.isdecimal() and len(seed) < 20 for seed in said.get("bad", {})):
        raise_damaged(path, "bad", said["bad"])


def raise_damaged(path: Path, key: str, value: Any) -> None:
    """Raises StoreError for an attribute with this value."""
    raise StoreError(f"{path} is damaged: its attribute {key!r} is {str(value)[:60]!r}")

"""Type checks of the public functions' arguments, from the types in their signatures, applied before anything else is done.

Each to_... function takes the argument's name and its value, and returns the value in one type or raises an OdesimError.
"""

import inspect
import math
import os
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from numbers import Integral, Real
from typing import Any, ParamSpec, TypeVar

import numpy as np

from odesim.base.errors import OdesimError, ParamError, SolveError, StoreError, value_text
from odesim.base.options import OPTIONS
from odesim.base.parsing import argument_names, readable, unknown_argument

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def must(be: str, fits: Callable[[Any], bool], convert: Callable[[Any], Any]) -> Callable[[str, Any], Any]:
    """A check that converts a value which fits, and refuses another one: it must be so."""

    def check(name: str, value: Any) -> Any:
        if not fits(value):
            raise _error_class(name)(f"{name} {be}, not {value_text(value)}")
        return convert(value)

    return check


def to_mapping(name: str, value: Any) -> Any:
    """The value as a mapping whose keys are texts."""
    ParamError.unless(isinstance(value, Mapping), f"{name} must be a dict by name, such as {{'mu': 1.0}}", value)
    for key in value:
        if not isinstance(key, str):
            raise ParamError(f"{name} is a dict by name, and {value_text(key)} is no text: write {str(key)[:60]!r}")
    return value


def to_names(name: str, value: Any) -> tuple[str, ...] | str:
    """The value as one text or a tuple of texts."""
    what = "texts, such as 'far: v[0] - 2'" if name == "events" else "names, such as ('v', 'loss')"
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Mapping | bytes) or not isinstance(value, Iterable) or (isinstance(value, np.ndarray) and value.ndim != 1):
        raise ParamError(f"{name} takes {what}, not {value_text(value)}")
    items = tuple(value)
    for item in items:
        ParamError.unless(isinstance(item, str), f"{name} takes {what}", item)
    return tuple(map(str, items))


def to_number(name: str, value: Any) -> float:
    """The value as a float, which may be nan or infinite."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        raise _error_class(name)(f"{name} must be a number, not {value_text(value)}")
    try:
        return float(value)
    except (OverflowError, TypeError, ValueError):
        raise _error_class(name)(f"{name} must be a number of float64, not {value_text(value)}") from None


def to_whole_number(name: str, value: Any) -> int:
    """The value as an int below 2^63."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Integral):
        raise _error_class(name)(f"{name} must be a whole number, not {value_text(value)}")
    if abs(int(value)) >= 2**63:
        raise _error_class(name)(f"{name} must be a whole number below 2^63, not {value_text(value)}")
    return int(value)


def check_count(name: str, value: Any) -> int:
    """The value of an option of the table that is a count, as an int. Raises ParamError for another type, or one beyond its bounds."""
    row = OPTIONS[name]
    low, high = row.low or 0, math.inf if row.high is None else row.high
    if isinstance(value, bool | np.bool_) or not isinstance(value, Integral) or not low <= int(value) <= high:
        raise ParamError(f"{name} must be a whole number, {low:g} to {high}, not {value_text(value)}")
    return int(value)


def to_path(name: str, value: Any) -> Any:
    """The value, which must be a text or a Path without a null character."""
    if not isinstance(value, str | os.PathLike) or not os.fspath(value) or isinstance(os.fspath(value), bytes):
        raise StoreError(f"{name} must be a path, such as 'run.zarr', not {value_text(value)}")
    if "\0" in os.fspath(value):
        raise StoreError(f"{name} must be a path, and {value_text(value)} has a character that no path has")
    return value


def to_shard(name: str, value: Any) -> tuple[int, int]:
    """The value as a shard (i, n): the i-th of n parts."""
    ParamError.unless(isinstance(value, tuple | list) and len(value) == 2, f"{name} is (i, n), the i-th of n parts", value)
    return to_whole_number(name, value[0]), to_whole_number(name, value[1])


def to_client(name: str, value: Any) -> Any:
    """The value, which must be a dask client that waits for its answers."""
    if type(value).__module__.partition(".")[0] != "distributed" or not hasattr(value, "submit"):
        raise ParamError(f"{name} must be a distributed.Client, not {value_text(value)}")
    if value.asynchronous:
        raise ParamError(f"{name} must not be asynchronous: make it by Client(address)")
    return value


CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "Mapping": to_mapping,
    "str": must("must be a text", lambda value: isinstance(value, str), str),
    "str | Iterable[str]": to_names,
    "Sequence[str]": to_names,
    "bool": must("is True or False", lambda value: isinstance(value, bool | np.bool_), bool),
    "float": to_number,
    "float | Mapping[str, ArrayLike]": lambda name, value: (
        to_mapping(name, value) if isinstance(value, Mapping) else to_number(name, value)
    ),
    "int": to_whole_number,
    "Callable": must("must be a function", lambda value: callable(value) and not isinstance(value, type), lambda value: value),
    "str | PathLike[str]": to_path,
    "tuple[int, int]": to_shard,
    "Client": to_client,
}
"""{type, as it is written in a signature: its check}. Arguments of other types are checked where they are read."""
LATER = ("save", "recipe")
"""Arguments that are checked where they are read too, and have a sentence of their own there."""


def _error_class(name: str) -> type[OdesimError]:
    return SolveError if name in ("method", "step", "rtol", "atol", "max_steps", "max_step", "first_step", "clock") else ParamError


def check_arguments(call: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """A decorator that checks the keyword arguments of a public function; None is accepted where it is the default.

    The function raises an OdesimError for an argument of a wrong type, or one that it does not have. Its module needs
    `from __future__ import annotations`, which keeps types as they are written.
    """
    checks, names = {}, argument_names(call)
    for name, p in inspect.signature(call).parameters.items():
        if p.kind is p.KEYWORD_ONLY and name not in LATER:
            plain = p.annotation.removesuffix(" | None")
            if check := CHECKS.get(plain) or CHECKS.get(plain.partition("[")[0]):  # of Mapping and Callable whatever they are of
                checks[name] = check, p.default is None

    @wraps(call)
    def with_checks(*args: Arguments.args, **keywords: Arguments.kwargs) -> Result:
        for name, value in keywords.items():
            if name not in names:
                raise unknown_argument(call, name)
            if name in checks:
                check, optional = checks[name]
                if value is not None or not optional:
                    keywords[name] = check(name, value)
        return call(*args, **keywords)

    return readable(with_checks)

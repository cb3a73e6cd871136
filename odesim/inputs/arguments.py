"""What the arguments of the public functions must be: one table by name, read before anything else is done."""

import inspect
import os
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from numbers import Integral, Real
from typing import Any, ParamSpec, TypeVar

import numpy as np

from odesim.errors import OdesimError, ParamError, SolveError, StoreError, value_text

Asked = ParamSpec("Asked")
Result = TypeVar("Result")


def mapping(name: str, value: Any) -> Any:
    """{text: anything}"""
    if not isinstance(value, Mapping):
        raise ParamError(f"{name} must be a dict by name, such as {{'mu': 1.0}}, not {value_text(value)}")
    for key in value:
        if not isinstance(key, str):
            raise ParamError(f"{name} is a dict by name, and {value_text(key)} is no text: write {str(key)[:60]!r}")
    return value


def word(name: str, value: Any) -> str:
    """One of some words."""
    if not isinstance(value, str):
        raise _error(name)(f"{name} must be a text, not {value_text(value)}")
    return str(value)


def words(name: str, value: Any) -> tuple[str, ...] | str:
    """A text, or several of them in their order."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Mapping | bytes) or not isinstance(value, Iterable) or (isinstance(value, np.ndarray) and value.ndim != 1):
        raise ParamError(f"{name} takes names, such as ('v', 'loss'), not {value_text(value)}")
    found = tuple(value)
    for item in found:
        if not isinstance(item, str):
            raise ParamError(f"{name} takes names, not {value_text(item)}")
    return tuple(map(str, found))


def flag(name: str, value: Any) -> bool:
    """True or False."""
    if not isinstance(value, bool | np.bool_):
        raise ParamError(f"{name} is True or False, not {value_text(value)}")
    return bool(value)


def number(name: str, value: Any) -> float:
    """A real number, which may be nan or infinite."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        raise _error(name)(f"{name} must be a number, not {value_text(value)}")
    try:
        return float(value)
    except (OverflowError, TypeError, ValueError):
        raise _error(name)(f"{name} must be a number of float64, not {value_text(value)}") from None


def whole(name: str, value: Any) -> int:
    """A whole number."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Integral):
        raise _error(name)(f"{name} must be a whole number, not {value_text(value)}")
    if abs(int(value)) >= 2**63:
        raise _error(name)(f"{name} must be a whole number below 2^63, not {value_text(value)}")
    return int(value)


def function(name: str, value: Any) -> Any:
    """Something that can be called."""
    if not callable(value) or isinstance(value, type):
        raise ParamError(f"{name} must be a function, not {value_text(value)}")
    return value


def path(name: str, value: Any) -> Any:
    """A text or a Path."""
    if not isinstance(value, str | os.PathLike) or not os.fspath(value) or isinstance(os.fspath(value), bytes):
        raise StoreError(f"{name} must be a path, such as 'run.zarr', not {value_text(value)}")
    if "\0" in os.fspath(value):
        raise StoreError(f"{name} must be a path, and {value_text(value)} has a character that no path has")
    return value


def part(name: str, value: Any) -> tuple[int, int]:
    """(i, n): the i-th of n parts."""
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise ParamError(f"{name} is (i, n), the i-th of n parts, not {value_text(value)}")
    return whole(name, value[0]), whole(name, value[1])


KINDS: dict[str, Callable[[str, Any], Any]] = {
    **dict.fromkeys(("params", "initial", "sizes", "vary", "grid", "zipped", "settings", "rates", "tolerances"), mapping),
    **dict.fromkeys(("method", "backend", "dtype", "clock", "arrays", "map", "optimizer", "model"), word),
    **dict.fromkeys(("sensitivities", "observe", "observables", "align"), words),
    **dict.fromkeys(("strict", "overwrite", "resume", "fail_fast"), flag),
    **dict.fromkeys(("step", "rtol", "atol", "max_step", "checkpoint_every"), number),
    **dict.fromkeys(("seed", "max_steps", "max_events", "threads", "members", "steps"), whole),
    "progress": function,
    "out": path,
    "shard": part,
}
"""Argument -> what it must be. save, span, stop_at, seeds and the models have forms of their own, told where they are read."""


def _error(name: str) -> type[OdesimError]:
    return SolveError if name in ("method", "step", "rtol", "atol", "max_steps", "max_step", "clock") else ParamError


def checked(call: Callable[Asked, Result]) -> Callable[Asked, Result]:
    """call with its keyword arguments checked and made plain; None stands where it is the default. Raises an OdesimError."""
    named = inspect.signature(call).parameters
    kinds = {name: (KINDS[name], p.default is None) for name, p in named.items() if name in KINDS and p.kind is p.KEYWORD_ONLY}

    @wraps(call)
    def with_checks(*args: Asked.args, **given: Asked.kwargs) -> Result:
        for name, value in given.items():
            if name in kinds:
                kind, may_lack = kinds[name]
                if value is not None or not may_lack:
                    given[name] = kind(name, value)
        return call(*args, **given)

    return with_checks

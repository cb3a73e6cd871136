"""Checks the settings of a task: names, types and ranges."""

from collections.abc import Mapping, Sequence
from math import isfinite
from numbers import Integral, Real
from typing import Any

import numpy as np

from odesim.base.errors import ParamError, nearest, no_such
from odesim.reference.protocols import Setting


def check_settings(task: str, settings: Sequence[Setting], given: Mapping[str, Any]) -> dict[str, Any]:
    """{name: value} of all settings: the given value, converted to the type of the default, or the default.

    Raises ParamError with the nearest spelling of a name or word, the expected type, or the range.
    """
    by_name = {setting.name: setting for setting in settings}
    for name in given:
        if name not in by_name:
            raise ParamError(no_such("setting", str(name), by_name, task))
    return {name: check_setting(task, s, given[name]) if name in given else s.default for name, s in by_name.items()}


def check_setting(task: str, setting: Setting, value: Any) -> Any:
    """value as a bool, int, float, word or array, by the type of the default. Raises ParamError."""
    where = f"{setting.name} of {task}"
    default = setting.default
    if isinstance(value, np.ndarray) and value.ndim == 0 and default is not None:
        value = value.item()
    if isinstance(default, bool):
        if not isinstance(value, bool | np.bool_):
            raise ParamError(f"{where} is true or false, not {_shown(value)}")
        return bool(value)
    if isinstance(default, str):
        return _word(task, setting, where, value)
    if isinstance(default, int | float):
        return _number(setting, where, value)
    return None if value is None else _array(setting, where, value)


def _word(task: str, setting: Setting, where: str, value: Any) -> str:
    if not isinstance(value, str):
        kind = f"one of {', '.join(setting.choices)}" if setting.choices else "text"
        raise ParamError(f"{where} is {kind}, not {_shown(value)}")
    if setting.choices and value not in setting.choices:
        listed = ", ".join(setting.choices)
        raise ParamError(f"no {setting.name} {_shown(value)} in {task}; choose from {listed}{nearest(value, setting.choices)}")
    return value


def _number(setting: Setting, where: str, value: Any) -> int | float:
    is_integer = isinstance(setting.default, int)
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        raise ParamError(f"{where} is a {'whole number' if is_integer else 'number'}, not {_shown(value)}")
    if not isfinite(value):
        raise ParamError(f"{where} is a finite number, not {value}")
    if is_integer and not isinstance(value, Integral) and not float(value).is_integer():
        raise ParamError(f"{where} is a whole number, not {float(value):g}")
    number = int(value) if is_integer else float(value)  # type: ignore[call-overload]
    if is_integer and abs(number) >= 2**63:
        raise ParamError(f"{where}: {float(value):g} is too large")
    _check_range(setting, where, number, number)
    return number


def _array(setting: Setting, where: str, value: Any) -> Any:
    """value as an array, or a number if it is one. Raises ParamError for other types and entries out of range."""
    try:
        array = np.asarray(value)
    except ValueError:
        raise ParamError(f"{where} is an array whose rows have one length, not {_shown(value)}") from None
    if array.dtype.kind not in "iuf" or not array.size:
        raise ParamError(f"{where} is an array of numbers, not {_shown(value)}")
    if not np.all(np.isfinite(array)):
        raise ParamError(f"{where}: an entry is not finite")
    _check_range(setting, where, array.min(), array.max())
    return array if array.ndim else array.item()


def _check_range(setting: Setting, where: str, least: Any, most: Any) -> None:
    low, high = setting.low, setting.high
    if low is not None and (least < low or (setting.open_low and least == low)):
        raise ParamError(f"{where} must be {'above' if setting.open_low else 'at least'} {low:g}, not {least:g}")
    if high is not None and most > high:
        raise ParamError(f"{where} must be at most {high:g}, not {most:g}")


def _shown(value: Any) -> str:
    text = repr(value.tolist() if isinstance(value, np.ndarray) else value)
    return text if len(text) <= 60 else f"{text[:57]}..."

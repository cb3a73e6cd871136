"""Results as data for JSON: arrays as lists, long ones as their digest."""

import hashlib
import math
from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np

from odesim.base.arrays import Array
from odesim.stepper.occurrences import Events

MAX_ENTRIES = 1000  # of an array, or a list of events, that is written out in JSON


def to_plain(value: Any) -> Any:
    """value as JSON data: arrays as nested lists, a () array as a number, numbers that are not finite as None.

    An array of more than MAX_ENTRIES entries becomes its shape, min, max and the sha256 of its bytes (C order, little-endian).
    Raises TypeError for other types.
    """
    if isinstance(value, np.ndarray):
        return _digest(value) if value.size > MAX_ENTRIES else to_plain(value.tolist())
    if isinstance(value, np.generic):
        return to_plain(value.item())
    if isinstance(value, Enum):
        return to_plain(value.value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, Mapping):
        return {str(k): to_plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(v) for v in value]
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"no plain form of {type(value).__name__}")


def events_to_plain(events: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, Any]:
    """Events as JSON data {name: [{t, index}]}; more than MAX_ENTRIES of one name become the digest of their times (n,)."""

    def convert(occurrences: Sequence[Mapping[str, Any]]) -> Any:
        return _digest(Events.of(occurrences).t) if len(occurrences) > MAX_ENTRIES else to_plain(list(occurrences))

    return {name: convert(occurrences) for name, occurrences in events.items()}


def _digest(array: Array) -> dict[str, Any]:
    little_endian = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    return {
        "shape": list(array.shape),
        "min": to_plain(array.min()),  # NaN where one entry is: null says so
        "max": to_plain(array.max()),
        "sha256": hashlib.sha256(little_endian.tobytes()).hexdigest(),
    }

"""Events of one name as arrays: a run of a large vector may have millions."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np

from odesim.base.arrays import Array
from odesim.base.errors import counted

BELOW = "below_tolerance"
"""The key of an event, in a list, that states below ten times atol decide."""
TOGETHER = 1e-12, 4
"""Two events within this moment are at one time, and so is a saved time."""
ROUNDINGS = 16
"""Times by states of lower precision are off by so many roundings of the time passed."""
MOMENT = 1e-11, 1024
"""What happens again and again within this moment happens ever faster."""


@dataclass(frozen=True, eq=False, repr=False)
class Events(Sequence[dict[str, Any]]):
    """A list of {"t": float, "index": tuple of ints or None} in the order of time, stored as arrays.

    t (n,) and indices (n, rank), or None for an event without axes: all of them at once. below (n,): which are decided by states below
    ten times atol, and have "below_tolerance": True in the list; None for none.
    """

    t: Array
    indices: Array | None = None
    below: Array | None = None

    @staticmethod
    def of(events: Iterable[Mapping[str, Any]]) -> "Events":
        """Events from dictionaries; if one has no index, none of them has."""
        if isinstance(events, Events):
            return events
        every = list(events)
        places = [e["index"] for e in every]
        whole = not every or any(place is None for place in places)
        below = np.array([BELOW in e for e in every], bool)
        times = np.array([e["t"] for e in every], np.float64)
        return Events(times, None if whole else np.array(places, np.int64), below if below.any() else None)

    def __len__(self) -> int:
        return len(self.t)

    @overload
    def __getitem__(self, k: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, k: "slice | Array") -> "Events": ...
    def __getitem__(self, k: "int | slice | Array") -> "dict[str, Any] | Events":
        if isinstance(k, slice | np.ndarray):
            return Events(*(None if part is None else part[k] for part in (self.t, self.indices, self.below)))  # type: ignore[arg-type]
        event = {"t": float(self.t[k]), "index": None if self.indices is None else tuple(self.indices[k].tolist())}
        return event | ({BELOW: True} if self.below is not None and self.below[k] else {})

    def __iter__(self) -> Iterator[dict[str, Any]]:
        places = [None] * len(self) if self.indices is None else map(tuple, self.indices.tolist())
        marks = [False] * len(self) if self.below is None else self.below.tolist()
        each = zip(self.t.tolist(), places, marks, strict=True)
        return ({"t": t, "index": place, BELOW: True} if mark else {"t": t, "index": place} for t, place, mark in each)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(list(self)) if len(self) <= 8 else f"<{counted(len(self), 'event')}, t = {self.t[0]:g} to {self.t[-1]:g}>"


def components_since(events: Events, shape: tuple[int, ...], t: float) -> list[int]:
    """The flat numbers of the components of an event with this shape that happened at t or later."""
    late = events.t >= t
    if events.indices is None:
        return [0] * bool(late.any())
    return [int(np.ravel_multi_index(tuple(at), shape)) for at in events.indices[late]]


def joined(parts: Sequence[Events]) -> Events:
    """The events of all parts of a run, in the order of time."""
    places = [part.indices for part in parts]
    whole = not places or any(place is None for place in places)
    times = np.concatenate([part.t for part in parts]) if parts else np.empty(0)
    below = [np.zeros(len(part), bool) if part.below is None else part.below for part in parts]
    marked = np.concatenate(below) if any(part.below is not None for part in parts) else None
    return Events(times, None if whole else np.concatenate([p for p in places if p is not None]), marked)


def length_of(short: tuple[float, int], t: Any, t0: float, spacing: Any = None) -> Any:
    """The length of a moment at t: a part of the time passed since t0, and so many spacings of the numbers at t, where these are known."""
    return short[0] * (t - t0) + short[1] * (np.spacing(np.abs(t)) if spacing is None else spacing)


def together(t: Any, t0: float, dtype: str, spacing: Any = None) -> Any:
    """How far from t another event is at one time with it, where states have this precision; of times (k,), for each."""
    return np.maximum(length_of(TOGETHER, t, t0, spacing), ROUNDINGS * float(np.finfo(dtype).eps) * (t - t0))

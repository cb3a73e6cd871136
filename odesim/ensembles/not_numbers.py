"""Finds observables of an ensemble that are NaN: in how many members, and where first."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from odesim.base.arrays import Array, on_host
from odesim.base.errors import counted
from odesim.ensembles.request import Chunk, EnsembleRequest


def first_nan_times(request: EnsembleRequest, chunk: Chunk) -> dict[str, Array]:
    """{observable: times (N,)}: the first saved time, among those a member reached, at which an entry is NaN; inf if none is."""
    if not request.outputs.observe:
        return {}
    reached = request.times <= on_host(chunk.t_end)[:, None]
    times = {}
    for name, values in zip(request.outputs.observe, request.outputs.observed.split(on_host(chunk.observed)).values(), strict=True):
        missing = reached & np.isnan(values).reshape(*reached.shape, -1).any(axis=2)
        times[name] = np.where(missing.any(axis=1), request.times[np.argmax(missing, axis=1)], np.inf)
    return times


@dataclass(frozen=True)
class NotNumber:
    """An observable that is NaN in `members` members; the first of them is number `member`, first at the saved time `time`."""

    observable: str
    members: int
    member: int
    time: float

    def __str__(self) -> str:
        return (
            f"the observable {self.observable!r} is not a number in {counted(self.members, 'member')}, "
            f"first in member {self.member} at t = {self.time:.9g}"
        )


def merge_not_numbers(known: Mapping[str, NotNumber], numbers: Array, times: Mapping[str, Array]) -> Iterator[NotNumber]:
    """NotNumbers of earlier members {observable: NotNumber}, extended by members `numbers` (N,) with their first_nan_times()."""
    for name in {**known, **times}:
        rows = np.flatnonzero(np.isfinite(times[name])) if name in times else np.empty(0, np.int64)
        old = known.get(name)
        if len(rows):
            first = rows[0]
            new = NotNumber(name, len(rows), int(numbers[first]), float(times[name][first]))
            before = old if old is not None and old.member < new.member else new
            old = NotNumber(name, new.members + (old.members if old else 0), before.member, before.time)
        if old is not None:
            yield old


def join_not_numbers(one: Mapping[str, NotNumber], other: Mapping[str, NotNumber]) -> dict[str, NotNumber]:
    """The NotNumbers {observable: NotNumber} of two sets of members together."""
    joined = {**one, **other}
    for name in one.keys() & other.keys():
        first = min(one[name], other[name], key=lambda missing: missing.member)
        joined[name] = NotNumber(name, one[name].members + other[name].members, first.member, first.time)
    return joined

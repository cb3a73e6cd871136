"""Observables that are not a number, of an ensemble: which, in how many members, and where first."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from odesim.base.arrays import Array, on_host
from odesim.ensembles.request import Chunk, EnsembleRequest
from odesim.errors import counted


def first_times(request: EnsembleRequest, chunk: Chunk) -> dict[str, Array]:
    """{observable: (N,) the first saved time at which an entry of it is NaN, of those that the member reached; inf where none is}."""
    if not request.outputs.observe:
        return {}
    reached = request.times <= on_host(chunk.t_end)[:, None]
    found = {}
    for name, values in zip(request.outputs.observe, request.outputs.observed.split(on_host(chunk.observed)).values(), strict=True):
        missing = reached & np.isnan(values).reshape(*reached.shape, -1).any(axis=2)
        found[name] = np.where(missing.any(axis=1), request.times[np.argmax(missing, axis=1)], np.inf)
    return found


@dataclass(frozen=True)
class NotNumber:
    """An observable that is NaN in `members` members; the first of them is `member`, from `time` on its saved times."""

    observable: str
    members: int
    member: int
    time: float

    def __str__(self) -> str:
        return (
            f"the observable {self.observable!r} is not a number in {counted(self.members, 'member')}, "
            f"first in member {self.member} at t = {self.time:.9g}"
        )


def joined_numbers(known: Mapping[str, NotNumber], numbers: Array, times: Mapping[str, Array]) -> Iterator[NotNumber]:
    """What is known with what first_times gives for members of these numbers (N,), for each observable that is NaN somewhere."""
    for name in {**known, **times}:
        found = np.flatnonzero(np.isfinite(times[name])) if name in times else np.empty(0, np.int64)
        old = known.get(name)
        if len(found):
            first = found[0]
            new = NotNumber(name, len(found), int(numbers[first]), float(times[name][first]))
            before = old if old is not None and old.member < new.member else new
            old = NotNumber(name, new.members + (old.members if old else 0), before.member, before.time)
        if old is not None:
            yield old

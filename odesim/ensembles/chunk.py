"""A chunk of an ensemble: what became of some members."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from odesim.base.arrays import Array
from odesim.solve.occurrences import Events

UNDONE = -1
HANDED_OVER = -2  # left where stability limits the steps, to be gone on with by another method: never a member's end


@dataclass(frozen=True)
class Chunk:
    """Members: y (N, T, n), which may lie on a GPU, NaN where a member did not come; status (N,) numbers of STATUSES, -1 not done; t_end
    (N,): the last time reached; steps, rejected (N,); method (N,): numbers of METHOD_NAMES, -1 not done.

    event_count (N, E): how often each event happened; event_t, event_index (N, E, K): time and component of the first ones, NaN and -1
    beyond. y_end (N, n), or (N, 0) where no event ends a run: the state at t_end. observed (N, T, q). blow_up (N, 2): the time of a blow-up
    and its error estimate in the rescaled clock, (N, 0) in the ordinary one.
    """

    y: Array
    status: Array
    t_end: Array
    steps: Array
    rejected: Array
    method: Array
    event_t: Array
    event_index: Array
    event_count: Array
    y_end: Array
    observed: Array
    blow_up: Array

    @classmethod
    def empty(
        cls, count: int, times: int, n: int, events: int = 0, most: int = 0, ends: int = 0, observed: int = 0, blow_up: int = 0
    ) -> "Chunk":
        """Nothing done yet."""
        chunk = cls.allocate(count, times, n, events, most, ends, observed, blow_up)
        chunk.y[...] = np.nan
        return chunk

    @classmethod
    def allocate(
        cls,
        count: int,
        times: int,
        n: int,
        events: int = 0,
        most: int = 0,
        ends: int = 0,
        observed: int = 0,
        blow_up: int = 0,
        *,
        empty: Callable[[tuple[int, ...]], Array] = np.empty,
    ) -> "Chunk":
        """Nothing done yet, and nothing written to y, which empty makes: what fills it is the first to touch its pages."""

        def nothing(*shape: int) -> Array:
            return np.full((count, *shape), np.nan)

        return cls(
            y=empty((count, times, n)),
            status=np.full(count, UNDONE, np.int8),
            t_end=nothing(),
            steps=np.zeros(count, np.int64),
            rejected=np.zeros(count, np.int64),
            method=np.full(count, UNDONE, np.int8),
            event_t=nothing(events, most),
            event_index=np.full((count, events, most), -1, np.int64),
            event_count=np.zeros((count, events), np.int64),
            y_end=nothing(ends),
            observed=nothing(times, observed),
            blow_up=nothing(blow_up),
        )

    @property
    def arrays(self) -> dict[str, Array]:
        """{field: (N, ...)}: all that is known of the members."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def select(self, rows: Any) -> "Chunk":
        """The members of these rows: a slice, whose arrays are views, or numbers (k,)."""
        return Chunk(**{name: values[rows] for name, values in self.arrays.items()})

    def assign(self, rows: Any, part: "Chunk") -> None:
        """Writes the members of part into these rows, a slice or numbers (k,)."""
        for name, values in part.arrays.items():
            self.arrays[name][rows] = values

    def blank_unreached(self, times: Array) -> None:
        """y becomes NaN at the times (T,) that a member did not come to."""
        for i in np.flatnonzero(~(self.t_end >= times[-1])):
            reached = int(np.searchsorted(times, self.t_end[i], side="right")) if self.status[i] != UNDONE else 0
            self.y[i, reached:] = np.nan

    def set_events(self, i: int, found: Mapping[str, Events], shapes: Mapping[str, tuple[int, ...]]) -> None:
        """Keeps what the integrator of one system found in member i. shapes: of all events, in their order."""
        for e, (name, shape) in enumerate(shapes.items() if self.event_count.shape[1] else ()):
            events = found[name]
            first = events[: self.event_t.shape[2]]
            self.event_count[i, e] = len(events)
            self.event_t[i, e, : len(first)] = first.t
            places = 0 if first.indices is None else np.ravel_multi_index(tuple(first.indices.T), shape)
            self.event_index[i, e, : len(first)] = places

"""A chunk: the results of some members of an ensemble, as arrays."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from odesim.base.arrays import Array
from odesim.solve.codes import UNDONE
from odesim.solve.occurrences import Events


@dataclass(frozen=True)
class MemberShape:
    """Sizes of the results of one member in a chunk: T saved times, n states, E events with K times each, q observables.

    ends, blow_up: the number of values for the states at t_end and for a blow-up.
    """

    times: int
    states: int
    events: int = 0
    max_events: int = 0
    ends: int = 0
    observed: int = 0
    blow_up: int = 0


@dataclass(frozen=True)
class Chunk:
    """Results of N members.

    y (N, T, n): states, on the host or a GPU, NaN at times that a member did not reach. status (N,): numbers of STATUSES, -1 not done.
    t_end (N,): the last time reached. steps, rejected (N,). method (N,): numbers of METHOD_NAMES, -1 not done.
    event_count (N, E): occurrences of each event. event_t, event_index (N, E, K): time and component of the first K, then NaN and -1.
    y_end (N, n): the state at t_end, or (N, 0) if no event ends a run. observed (N, T, q): observables.
    blow_up (N, 2): time of a blow-up and its error estimate, (N, 0) without the rescaled clock.
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
    def empty(cls, count: int, shape: MemberShape) -> "Chunk":
        """A chunk of members that are not done, with y NaN."""
        chunk = cls.allocate(count, shape)
        chunk.y[...] = np.nan
        return chunk

    @classmethod
    def allocate(cls, count: int, shape: MemberShape, empty: Callable[[tuple[int, ...]], Array] = np.empty) -> "Chunk":
        """A chunk of members that are not done, with y uninitialised: whoever fills it is the first to touch its pages.

        empty(shape): makes the array y.
        """

        def unset(*axes: int) -> Array:
            return np.full((count, *axes), np.nan)

        return cls(
            y=empty((count, shape.times, shape.states)),
            status=np.full(count, UNDONE, np.int8),
            t_end=unset(),
            steps=np.zeros(count, np.int64),
            rejected=np.zeros(count, np.int64),
            method=np.full(count, UNDONE, np.int8),
            event_t=unset(shape.events, shape.max_events),
            event_index=np.full((count, shape.events, shape.max_events), -1, np.int64),
            event_count=np.zeros((count, shape.events), np.int64),
            y_end=unset(shape.ends),
            observed=unset(shape.times, shape.observed),
            blow_up=unset(shape.blow_up),
        )

    @property
    def arrays(self) -> dict[str, Array]:
        """{field: array (N, ...)} of all fields, not copied."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def select(self, rows: Any) -> "Chunk":
        """The members of these rows: a slice, whose arrays are views, or numbers (k,)."""
        return Chunk(**{name: values[rows] for name, values in self.arrays.items()})

    def assign(self, rows: Any, part: "Chunk") -> None:
        """Writes the members of part into these rows, a slice or numbers (k,)."""
        for name, values in part.arrays.items():
            self.arrays[name][rows] = values

    def blank_unreached(self, times: Array) -> None:
        """Sets y to NaN at those times (T,) that a member did not reach."""
        for i in np.flatnonzero(~(self.t_end >= times[-1])):
            reached = int(np.searchsorted(times, self.t_end[i], side="right")) if self.status[i] != UNDONE else 0
            self.y[i, reached:] = np.nan

    def set_events(self, i: int, events: Mapping[str, Events], shapes: Mapping[str, tuple[int, ...]]) -> None:
        """Writes the events of member i {name: Events}. shapes {event: shape of its expression}: of all events, in order."""
        for e, (name, shape) in enumerate(shapes.items() if self.event_count.shape[1] else ()):
            occurrences = events[name]
            first = occurrences[: self.event_t.shape[2]]
            self.event_count[i, e] = len(occurrences)
            self.event_t[i, e, : len(first)] = first.t
            components = 0 if first.indices is None else np.ravel_multi_index(tuple(first.indices.T), shape)
            self.event_index[i, e, : len(first)] = components

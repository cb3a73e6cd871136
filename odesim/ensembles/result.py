"""What an ensemble is asked for, and what a chunk of it gives."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from odesim.arrays import Array, Layout
from odesim.codegen.compiled import CompiledRHS
from odesim.ensembles.kept import Kept
from odesim.solve.found import Events
from odesim.solve.problem import Status
from odesim.symbolic.system import System

STATUSES = (Status.OK, Status.EVENT, Status.MAX_STEPS, Status.STEP_TOO_SMALL, Status.NON_FINITE, Status.BLOW_UP, Status.INTERRUPTED)
UNDONE = -1
# what each status says of a member, and what can be done
MEANINGS = {
    Status.OK: "reached the end of the span",
    Status.EVENT: "ended by a terminal event, at the time t_end",
    Status.MAX_STEPS: "took max_steps steps without reaching the end; allow more, loosen rtol or try a stiff method such as rodas5p",
    Status.STEP_TOO_SMALL: "the step fell to rounding: the solution leaves the domain of the right side or has a kink at t_end; "
    "end the span before it",
    Status.NON_FINITE: "the start, its derivative or a fixed step is not finite; change the initial values, the parameters or the step",
    Status.BLOW_UP: "the solution runs to infinity near t_end; end the span before it or integrate in a rescaled time",
    Status.INTERRUPTED: "stopped on the way and not done",
}


@dataclass(frozen=True)
class Request:
    """A System, compiled, and how its members are integrated; times (T,) are kept, and beside the states there what kept says."""

    compiled: CompiledRHS
    sizes: dict[str, int]
    t0: float
    t1: float
    times: Array
    method: str = "tsit5"
    rtol: float = 1e-6
    atol: float = 1e-9
    max_steps: int = 1_000_000
    step: float | None = None
    kept: Kept = field(default_factory=Kept)

    @property
    def system(self) -> System:
        return self.compiled.system

    @property
    def dtype(self) -> str:
        return self.compiled.dtype

    @property
    def strict(self) -> bool:
        return self.compiled.strict

    @cached_property
    def layout(self) -> Layout:
        return self.compiled.layout(self.sizes)

    @property
    def saves(self) -> bool:
        """Whether more than the end is kept."""
        return len(self.times) != 1 or self.times[0] != self.t1

    def chunk(self, count: int) -> "Chunk":
        """This many members, not done yet."""
        kept = self.kept
        return Chunk.empty(count, len(self.times), self.layout.size, len(kept.events), kept.most, kept.ends.size, kept.observed.size)

    @staticmethod
    def number(status: Status) -> int:
        """The status as it stands in arrays."""
        return STATUSES.index(status)


@dataclass(frozen=True)
class Chunk:
    """Members: y (N, T, n), NaN where a member did not come; status (N,) numbers of STATUSES, -1 not done; t_end (N,): the last time
    reached; steps, rejected (N,).

    event_count (N, E): how often each event happened; event_t, event_index (N, E, K): time and component of the first ones, NaN and -1
    beyond. y_end (N, n), or (N, 0) where no event ends a run: the state at t_end. observed (N, T, q).
    """

    y: Array
    status: Array
    t_end: Array
    steps: Array
    rejected: Array
    event_t: Array
    event_index: Array
    event_count: Array
    y_end: Array
    observed: Array

    @classmethod
    def empty(cls, count: int, times: int, n: int, events: int = 0, most: int = 0, ends: int = 0, observed: int = 0) -> "Chunk":
        """Nothing done yet."""

        def nothing(*shape: int) -> Array:
            return np.full((count, *shape), np.nan)

        return cls(
            y=nothing(times, n),
            status=np.full(count, UNDONE, np.int8),
            t_end=nothing(),
            steps=np.zeros(count, np.int64),
            rejected=np.zeros(count, np.int64),
            event_t=nothing(events, most),
            event_index=np.full((count, events, most), -1, np.int64),
            event_count=np.zeros((count, events), np.int64),
            y_end=nothing(ends),
            observed=nothing(times, observed),
        )

    def put_events(self, i: int, found: Mapping[str, Events], shapes: Mapping[str, tuple[int, ...]]) -> None:
        """Keeps what the integrator of one system found in member i. shapes: of all events, in their order."""
        for e, (name, shape) in enumerate(shapes.items() if self.event_count.shape[1] else ()):
            events = found[name]
            first = events[: self.event_t.shape[2]]
            self.event_count[i, e] = len(events)
            self.event_t[i, e, : len(first)] = first.t
            places = 0 if first.indices is None else np.ravel_multi_index(tuple(first.indices.T), shape)
            self.event_index[i, e, : len(first)] = places

"""What is computed of each member: the request of an ensemble, the arrays of its results by chunk, and the meaning of a status."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from odesim.base.arrays import Array, Layout
from odesim.base.backends import SERIES
from odesim.base.errors import ParamError, no_such
from odesim.base.options import MAX_EVENTS, RunOptions
from odesim.stepper.codes import STATUSES, UNDONE, Status
from odesim.stepper.methods import MAP, METHODS
from odesim.stepper.noise_methods import SCHEMES
from odesim.stepper.occurrences import Events
from odesim.stepper.rosenbrock_methods import ROSENBROCK
from odesim.stepper.stabilised_methods import STABILISED
from odesim.symbolic.system import System
from odesim.targets.compiled import CompiledRHS
from odesim.transforms.events import Guard
from odesim.transforms.modes import HeldSystem


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


# Arrays over members and not a list of results: they are what kernels fill, what zarr stores and what xarray shows, without a copy between.
# y is not touched when a chunk is made: the thread that fills a page owns it, which counts on machines with several memories.
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


NO_ARRAYS = Layout((), ())
OCCURRENCE = "occurrence"
# names of arrays and groups that every stored ensemble has
# a model may call a state `status`: then it is the model's name that stays, and ours gets an underscore
RESERVED_NAMES = ("status", "t_end", "steps", "rejected", "method", "attempt", "time", "member", OCCURRENCE, "params", "initial", "points")


@dataclass(frozen=True)
class Outputs:
    """Names and shapes of the output arrays of members.

    events: names of the arrays of each event's times, counts and component numbers ("" if its expression is a number); all "" for guards.
    max_events: occurrences of an event that are stored. ends: end states, none unless events end runs. observed: observables;
    observe: their names in the System. blow_up: the time of a blow-up and its error, in the rescaled clock.
    """

    events: tuple[tuple[str, str, str], ...] = ()
    max_events: int = MAX_EVENTS
    ends: Layout = NO_ARRAYS
    observed: Layout = NO_ARRAYS
    observe: tuple[str, ...] = ()
    blow_up: tuple[str, ...] = ()

    @property
    def named_events(self) -> tuple[tuple[str, str, str], ...]:
        """The events with names: guards have none."""
        return tuple(names for names in self.events if names[0])

    def chunk(self, count: int, times: int, n: int) -> Chunk:
        """A Chunk of `count` members that are not done, with n states at each time and y NaN."""
        return Chunk.empty(count, self.shape(times, n))

    def allocate(self, count: int, times: int, n: int, empty: Callable[[tuple[int, ...]], Array] = np.empty) -> Chunk:
        """A Chunk of `count` members that are not done, with y = empty(shape), uninitialised."""
        return Chunk.allocate(count, self.shape(times, n), empty)

    def shape(self, times: int, n: int) -> MemberShape:
        """How many numbers a member with n states has at these times."""
        return MemberShape(times, n, len(self.events), self.max_events, self.ends.size, self.observed.size, len(self.blow_up))

    def arrays(self, chunk: Chunk) -> dict[str, Array]:
        """{name of an output array: (N, ...)}, views of the chunk."""
        arrays = {}
        for e, (times, count, index) in enumerate(self.events):
            if not times:
                continue
            arrays[times], arrays[count] = chunk.event_t[:, e], chunk.event_count[:, e]
            if index:
                arrays[index] = chunk.event_index[:, e]
        arrays |= {name: chunk.blow_up[:, k] for k, name in enumerate(self.blow_up)}
        return {**arrays, **self.ends.split(chunk.y_end), **self.observed.split(chunk.observed)}

    def axes(self, dims: Mapping[str, tuple[str, ...]], states: Collection[str]) -> dict[str, tuple[str, ...]]:
        """{name of an output array: axis names after that of members}. dims: of states and observables, after time."""
        axes: dict[str, tuple[str, ...]] = {}
        for times, count, index in self.named_events:
            axes |= {times: (OCCURRENCE,), count: ()} | ({index: (OCCURRENCE,)} if index else {})
        axes |= dict.fromkeys(self.blow_up, ())
        axes |= {name: dims[state] for name, state in zip(self.ends.names, states if self.ends.names else (), strict=True)}
        for name, shape, observable in zip(self.observed.names, self.observed.shapes, self.observe, strict=True):
            dims_after = dims[observable] if len(dims[observable]) == len(shape) else tuple(f"{name}_{k}" for k in range(len(shape)))
            axes[name] = ("time", *dims_after)
        return axes

    def types(self, dtype: str) -> dict[str, tuple[str, Any]]:
        """{name of an output array: (dtype, fill value)}. dtype: of the states."""
        types: dict[str, tuple[str, Any]] = {}
        for times, count, index in self.named_events:
            types |= {times: ("float64", np.nan), count: ("int64", 0)} | ({index: ("int64", -1)} if index else {})
        types |= dict.fromkeys(self.blow_up, ("float64", np.nan))
        return types | dict.fromkeys(self.ends.names, (dtype, np.nan)) | dict.fromkeys(self.observed.names, ("float64", np.nan))

    def numbers(self, times: int) -> int:
        """Number of output numbers of a member with this many saved times."""
        return len(self.blow_up) + len(self.events) * (2 * self.max_events + 1) + self.ends.size + times * self.observed.size

    def to_plain(self) -> dict[str, Any]:
        """The names as plain data."""
        return {
            "events": [list(names) for names in self.events],
            "most": self.max_events,
            "ends": list(self.ends.names),
            "observed": list(self.observed.names),
            "observe": list(self.observe),
            "blow_up": list(self.blow_up),
        }


def outputs_from_plain(plain: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]]) -> Outputs:
    """The Outputs from to_plain(). shapes {name: shape without members and times}. Raises KeyError, TypeError."""

    def layout(names: Iterable[str]) -> Layout:
        return Layout(tuple(names), tuple(shapes[name] for name in names))

    events = tuple((times, count, index) for times, count, index in plain["events"])
    return Outputs(
        events, plain["most"], layout(plain["ends"]), layout(plain["observed"]), tuple(plain["observe"]), tuple(plain["blow_up"])
    )


def make_outputs(
    system: System, layout: Layout, events: Collection[tuple[int, ...]], observed: Mapping[str, tuple[int, ...]], most: int, clock: bool
) -> Outputs:
    """The Outputs of an ensemble, with unique names: those of events and states with a suffix, and underscores if they are taken.

    layout: of the states. events: shape of each event. observed {name: shape}: observables. most: stored occurrences of an event, 0 to
    store no events. clock: whether members run in the rescaled clock.
    """
    blow_up_names = ("blow_up_t", "blow_up_error")  # of the rescaled clock, and of nothing else in any run
    taken = {
        *RESERVED_NAMES,
        *layout.names,
        *(p.name for p in system.params),
        *(f"{name}_start" for name in (*layout.names, *RESERVED_NAMES)),
    }

    def free(*names: str) -> tuple[str, ...]:
        suffix = ""
        while any(name + suffix in taken for name in names):
            suffix += "_"
        taken.update(name + suffix for name in names)
        return tuple(name + suffix for name in names)

    blow_up = free(*blow_up_names) if clock else ()
    taken.update(blow_up_names)
    observable_names = tuple(free(name)[0] for name in observed)
    event_names = []
    named_events = [(e, shape) for e, shape in zip(system.events, events, strict=True) if not isinstance(e, Guard)]
    for event, shape in named_events if most else ():
        word = re.sub(r"\W+", "_", event.name).strip("_") or "event"
        times, count, index = free(f"{word}_t", f"{word}_count", f"{word}_index")
        event_names.append((times, count, index if shape else ""))
    guards = sum(isinstance(e, Guard) for e in system.events)
    event_names += [("", "", "")] * guards if event_names else []  # a kernel that stores events stores those of guards too
    ends = NO_ARRAYS
    if any(event.terminal for event in system.events):
        ends = Layout(free(*(f"{name}_end" for name in layout.names)), layout.shapes)
    return Outputs(tuple(event_names), most, ends, Layout(observable_names, tuple(observed.values())), tuple(observed), blow_up)


def check_observe(system: System, observe: Any) -> tuple[str, ...]:
    """Names of observables without repetition, from a text such as "loss,c" or "all" or a list of names. Raises ParamError."""
    if observe is None:
        return ()
    requested = observe.split(",") if isinstance(observe, str) else observe
    if not isinstance(requested, Iterable):
        raise ParamError(f"observe takes names of observables, or 'all', not {observe!r}")
    names = [name.strip() if isinstance(name, str) else name for name in requested]
    if names == ["all"]:
        names = list(system.observables)
        if not names:
            raise ParamError(f"{system.name} has no observables")
    for name in names:
        if not isinstance(name, str) or name not in system.observables:
            raise ParamError(no_such("observable", str(name)[:60], ["all", *system.observables], system.name))
    return tuple(dict.fromkeys(names))


METHOD_NAMES = (*METHODS, *ROSENBROCK, *STABILISED, MAP.name, *SCHEMES, *SERIES)

# the meaning of each status, and what to do about it
_MEANINGS = {
    Status.OK: "reached the end of the span",
    Status.EVENT: "ended by a terminal event, at the time t_end",
    Status.MAX_STEPS: "took max_steps steps before the end; allow more steps, loosen rtol or, if the method is explicit, use a stiff one",
    Status.STEP_TOO_SMALL: "the step became too small: the solution leaves the domain of the right-hand side or has a kink at t_end; "
    "end the span before it",
    Status.NON_FINITE: "the start, its derivative or a fixed step is not finite, or a part of the right-hand side overflows after t_end; "
    "change the initial values, the parameters or the step",
    Status.BLOW_UP: "the solution runs to infinity near t_end; end the span before it",
    Status.INTERRUPTED: "was stopped before its end",
    Status.SLIDING: "reached a jump of the right-hand side to which both sides push it back, at t_end; make the jump steep "
    "but smooth, such as tanh(x/width) for sign(x); or an event that sets states happens there ever faster: end the span before it",
    Status.LEFT_DOMAIN: "a state left the set that its symbol assumes, at t_end; write the symbol without the assumption, and "
    "Max(q, 0) where the right-hand side needs q >= 0, or end the span before it",
}
_OF_FIXED_STEPS = {Status.MAX_STEPS: "took max_steps steps before the end; allow more steps, take longer ones or shorten the span"}
_OF_MAPS = {
    Status.OK: "did all updates",
    Status.MAX_STEPS: "did max_steps updates before the end; allow more, or do fewer",
    Status.NON_FINITE: "the start or the next update is not finite; change the initial values or the parameters, or do fewer updates",
    Status.LEFT_DOMAIN: "a state left the set that its symbol assumes, at t_end; write the symbol without it, or do fewer updates",
}


def meanings(system: System, options: RunOptions) -> list[str]:
    """The meaning of each of STATUSES for a member of an ensemble of this System with these options, with a remedy."""
    has_clock = system.growth is not None and not options.rescaled
    more = {Status.BLOW_UP: ", or find its time in the rescaled clock (--clock rescaled)"} if has_clock else {}
    table = {**_MEANINGS, **(_OF_FIXED_STEPS if options.step is not None else {}), **(_OF_MAPS if system.discrete else {})}
    return [table[status] + more.get(status, "") for status in STATUSES]


@dataclass(frozen=True)
class EnsembleRequest:
    """A compiled System and how its members are integrated from t0 to t1, with states saved at times (T,) and other outputs.

    auto: the rule by which each member gets its method, if they differ. rescaled: the compiled form of the System in the rescaled clock,
    if members run in it. held: the System, or its rescaled form, with switches held; running: its compiled form. look: steps after which
    lanes check whether stability limits the steps of a member; 0: never. channels {name: size}: of noise, whose rates running reads.
    """

    compiled: CompiledRHS
    sizes: dict[str, int]
    t0: float
    t1: float
    times: Array
    options: RunOptions
    outputs: Outputs = field(default_factory=Outputs)
    auto: str = ""
    rescaled: CompiledRHS | None = None
    held: HeldSystem | None = None
    running: CompiledRHS | None = None
    look: int = 0
    channels: Mapping[str, int] = field(default_factory=dict)

    def changed(self, **options: Any) -> "EnsembleRequest":
        """The request with other run options."""
        return replace(self, options=replace(self.options, **options))

    @property
    def system(self) -> System:
        return self.compiled.system

    @property
    def right(self) -> CompiledRHS:
        """The right-hand side that steps see: its jumping conditions are held."""
        return self.running or self.compiled

    @property
    def switches(self) -> bool:
        """Whether runs stop on the way: at switches or at times of stop_at."""
        return bool(self.options.stop_at) or (self.held is not None and self.held.stops)

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
    def member_bytes(self) -> int:
        """Bytes of the outputs of one member."""
        states = len(self.times) * self.layout.size * np.dtype(self.dtype).itemsize
        return states + 8 * self.outputs.numbers(len(self.times))

    @property
    def saves(self) -> bool:
        """Whether other times than t1 are saved."""
        return len(self.times) != 1 or bool(self.times[0] != self.t1)

    def allocate(self, count: int, empty: Callable[[tuple[int, ...]], Array] = np.empty) -> Chunk:
        """A Chunk of `count` members that are not done, with y = empty(shape), uninitialised."""
        return self.outputs.allocate(count, len(self.times), self.layout.size, empty)

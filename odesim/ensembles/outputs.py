"""Outputs of members other than states at saved times: events, end states, observables; and the names of their arrays."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from odesim.base.arrays import Array, Layout
from odesim.ensembles.chunk import Chunk, MemberShape
from odesim.errors import ParamError, no_such
from odesim.symbolic.system import System
from odesim.transforms.events import Guard

NO_ARRAYS = Layout((), ())
MAX_EVENTS = 8
OCCURRENCE = "occurrence"
# names of arrays and groups that every stored ensemble has
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


def check_max_events(most: Any) -> int:
    """max_events as an int: stored occurrences of an event. Raises ParamError."""
    if isinstance(most, bool) or not isinstance(most, int | np.integer) or not 0 <= most <= 10**6:
        raise ParamError(f"max_events must be a whole number, 0 to 1000000, not {most!r}")
    return int(most)

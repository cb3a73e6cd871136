"""What is kept of members beside their states at the saved times: events, where they ended, observables; and under which names."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from odesim.base.arrays import Array, Layout
from odesim.ensembles.chunk import Chunk
from odesim.errors import ParamError, no_such
from odesim.symbolic.guards import Guard
from odesim.symbolic.system import System

NO_ARRAYS = Layout((), ())
MAX_EVENTS = 8
OCCURRENCE = "occurrence"
# arrays and groups that every ensemble has
RESERVED_NAMES = ("status", "t_end", "steps", "rejected", "method", "attempt", "time", "member", OCCURRENCE, "params", "initial", "points")


@dataclass(frozen=True)
class Outputs:
    """Names of arrays: of each event's times, counts and component numbers ("" where it has none); of the states where a member ended
    (nothing unless events end runs); of observables; blow_up: of the time of a blow-up and its error, in the rescaled clock.

    most: occurrences of an event that are kept. observe: the observables' names in the System.
    """

    events: tuple[tuple[str, str, str], ...] = ()
    max_events: int = MAX_EVENTS
    ends: Layout = NO_ARRAYS
    observed: Layout = NO_ARRAYS
    observe: tuple[str, ...] = ()
    blow_up: tuple[str, ...] = ()

    @property
    def named_events(self) -> tuple[tuple[str, str, str], ...]:
        """Those with names: guards have none."""
        return tuple(names for names in self.events if names[0])

    def chunk(self, count: int, times: int, n: int) -> Chunk:
        """This many members with n states at these times, not done yet."""
        return Chunk.empty(count, times, n, *self._counts)

    def allocate(self, count: int, times: int, n: int, empty: Callable[[tuple[int, ...]], Array] = np.empty) -> Chunk:
        """The same with nothing written to the states, whose array empty makes."""
        return Chunk.allocate(count, times, n, *self._counts, empty=empty)

    @property
    def _counts(self) -> tuple[int, ...]:
        return len(self.events), self.max_events, self.ends.size, self.observed.size, len(self.blow_up)

    def arrays(self, chunk: Chunk) -> dict[str, Array]:
        """{name of an array: (N, ...)}, views of the chunk."""
        found = {}
        for e, (times, count, index) in enumerate(self.events):
            if not times:
                continue
            found[times], found[count] = chunk.event_t[:, e], chunk.event_count[:, e]
            if index:
                found[index] = chunk.event_index[:, e]
        found |= {name: chunk.blow_up[:, k] for k, name in enumerate(self.blow_up)}
        return {**found, **self.ends.split(chunk.y_end), **self.observed.split(chunk.observed)}

    def axes(self, dims: Mapping[str, tuple[str, ...]], states: Collection[str]) -> dict[str, tuple[str, ...]]:
        """{name of an array: its axes after that of the members}. dims: of states and observables after time."""
        found: dict[str, tuple[str, ...]] = {}
        for times, count, index in self.named_events:
            found |= {times: (OCCURRENCE,), count: ()} | ({index: (OCCURRENCE,)} if index else {})
        found |= dict.fromkeys(self.blow_up, ())
        found |= {name: dims[state] for name, state in zip(self.ends.names, states if self.ends.names else (), strict=True)}
        for name, shape, observable in zip(self.observed.names, self.observed.shapes, self.observe, strict=True):
            own = dims[observable] if len(dims[observable]) == len(shape) else tuple(f"{name}_{k}" for k in range(len(shape)))
            found[name] = ("time", *own)
        return found

    def types(self, dtype: str) -> dict[str, tuple[str, Any]]:
        """{name of an array: (its type, what stands where nothing is)}. dtype: of the states."""
        found: dict[str, tuple[str, Any]] = {}
        for times, count, index in self.named_events:
            found |= {times: ("float64", np.nan), count: ("int64", 0)} | ({index: ("int64", -1)} if index else {})
        found |= dict.fromkeys(self.blow_up, ("float64", np.nan))
        return found | dict.fromkeys(self.ends.names, (dtype, np.nan)) | dict.fromkeys(self.observed.names, ("float64", np.nan))

    def numbers(self, times: int) -> int:
        """How many numbers a member has, with this many saved times."""
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


def outputs_from_plain(said: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]]) -> Outputs:
    """What said() described. shapes: of the arrays without the axes of members and times. Raises KeyError, TypeError."""

    def layout(names: Iterable[str]) -> Layout:
        return Layout(tuple(names), tuple(shapes[name] for name in names))

    events = tuple((times, count, index) for times, count, index in said["events"])
    return Outputs(events, said["most"], layout(said["ends"]), layout(said["observed"]), tuple(said["observe"]), tuple(said["blow_up"]))


def make_outputs(
    system: System, layout: Layout, events: Collection[tuple[int, ...]], observed: Mapping[str, tuple[int, ...]], most: int, clock: bool
) -> Outputs:
    """Outputs with names that nothing else in the ensemble has: an event's or state's with an end to it, and underscores where it is taken.

    layout: of the states; events: the shape of each; observed: {name: shape}; most: of an event's occurrences, 0 for no events at all;
    clock: whether members run in the rescaled clock.
    """
    own = ("blow_up_t", "blow_up_error")  # of the rescaled clock, and of nothing else in any run
    taken = {
        *RESERVED_NAMES,
        *layout.names,
        *(p.name for p in system.params),
        *(f"{name}_start" for name in (*layout.names, *RESERVED_NAMES)),
    }

    def free(*names: str) -> tuple[str, ...]:
        end = ""
        while any(name + end in taken for name in names):
            end += "_"
        taken.update(name + end for name in names)
        return tuple(name + end for name in names)

    blow_up = free(*own) if clock else ()
    taken.update(own)
    seen = tuple(free(name)[0] for name in observed)
    found = []
    seen_events = [(e, shape) for e, shape in zip(system.events, events, strict=True) if not isinstance(e, Guard)]
    for event, shape in seen_events if most else ():
        word = re.sub(r"\W+", "_", event.name).strip("_") or "event"
        times, count, index = free(f"{word}_t", f"{word}_count", f"{word}_index")
        found.append((times, count, index if shape else ""))
    guards = sum(isinstance(e, Guard) for e in system.events)
    found += [("", "", "")] * guards if found else []  # a kernel writes down when they happened, which nobody reads
    ends = NO_ARRAYS
    if any(event.terminal for event in system.events):
        ends = Layout(free(*(f"{name}_end" for name in layout.names)), layout.shapes)
    return Outputs(tuple(found), most, ends, Layout(seen, tuple(observed.values())), tuple(observed), blow_up)


def check_observe(system: System, observe: Any) -> tuple[str, ...]:
    """Names of observables, each once: a text such as "loss,c" or "all", or several names. Raises ParamError."""
    if observe is None:
        return ()
    given = observe.split(",") if isinstance(observe, str) else observe
    if not isinstance(given, Iterable):
        raise ParamError(f"observe takes names of observables, or 'all', not {observe!r}")
    names = [name.strip() if isinstance(name, str) else name for name in given]
    if names == ["all"]:
        names = list(system.observables)
        if not names:
            raise ParamError(f"{system.name} has no observables")
    for name in names:
        if not isinstance(name, str) or name not in system.observables:
            raise ParamError(no_such("observable", str(name)[:60], ["all", *system.observables], system.name))
    return tuple(dict.fromkeys(names))


def check_max_events(most: Any) -> int:
    """How many occurrences of an event are kept. Raises ParamError."""
    if isinstance(most, bool) or not isinstance(most, int | np.integer) or not 0 <= most <= 10**6:
        raise ParamError(f"max_events must be a whole number, 0 to 1000000, not {most!r}")
    return int(most)

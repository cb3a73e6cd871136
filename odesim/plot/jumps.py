"""Lines of what events set: a jump is a vertical line at its time, not a slope between two saved times."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from odesim.base.arrays import Array
from odesim.stepper.occurrences import Events


def jump_times(name: str, shape: tuple[int, ...], solution: Any) -> tuple[Array, ...]:
    """The times at which each component of a state or observable of a Solution jumps; () where none does."""
    jumps: Mapping[str, Mapping[str, str]] = solution.attrs.get("jumps", {})
    count = int(np.prod(shape, dtype=int))
    found: list[list[Array]] = [[] for _ in range(count)]
    for event, names in jumps.items():
        occurrences = Events.of(solution.events.get(event, ()))
        if name not in names or not len(occurrences):
            continue
        own = occurrences.indices if names[name] == "component" else None
        numbers = None if own is None else np.ravel_multi_index(tuple(own.T), shape)
        for i in range(count):
            found[i].append(occurrences.t if numbers is None else occurrences.t[numbers == i])
    return tuple(np.unique(np.concatenate(parts)) for parts in found) if any(found) else ()


def with_jumps(x: Array, values: Any, at: Array) -> tuple[Array, Any, Array]:
    """(x, values, numbers of the given points) of a line with a vertical part at each of the positions `at`.

    Up to a jump the line keeps the last value before it, and from the jump on it has the next one. Of several jumps between two points the
    last one counts.
    """
    after = np.searchsorted(x, at, side="left")
    inside = (after > 0) & (after < len(x))
    places = dict(zip(after[inside].tolist(), at[inside].tolist(), strict=True))
    k = np.array(list(places), int)
    where, place = np.repeat(k, 2), np.repeat(np.array(list(places.values())), 2)
    given = np.arange(len(x)) + 2 * np.searchsorted(k, np.arange(len(x)), side="right")
    both = np.ma.stack([values[k - 1], values[k]], axis=1).ravel() if len(k) else values[:0]
    line = np.ma.masked_all(len(x) + len(where))
    added = np.setdiff1d(np.arange(len(line)), given)
    line[given], line[added] = values, both
    return np.insert(np.asarray(x, float), where, place), line, given

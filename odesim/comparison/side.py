"""One side of a comparison: named series on one clock, with a leading axis of seeds whoever computed them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from odesim.base.arrays import Array
from odesim.errors import ParamError, counted
from odesim.reference.training.trajectory import Trajectory
from odesim.solve.solution import Solution

Loader = Callable[[], Array]


@dataclass(frozen=True)
class Side:
    """Series at times t (T,); makers: {name: a function that gives (R, T, *shape)}, so that a large one is read when it is used.

    dims: {name: names of the axes of shape}. label: what it is, in a phrase. notes: sentences about it.
    """

    label: str
    t: Array
    unit: str
    makers: Mapping[str, Loader]
    dims: Mapping[str, tuple[str, ...]]
    seeds: tuple[int, ...] = (0,)
    notes: tuple[str, ...] = field(default=())

    def values(self, name: str) -> Array:
        """(R, T, *shape)."""
        return self.makers[name]()

    def at(self, name: str, times: Array) -> Array:
        """(R, k, *shape) at times (k,) within t, linear in between; at a time of t the very value."""
        return interpolate(self.t, self.values(name), times)


def side_of_solution(solution: Solution) -> Side:
    """States and observables of an integration, R = 1."""
    solution = solution.to_numpy()
    names = [*solution.y, *(name for name in solution.dims if name not in solution.y)]

    def maker(name: str) -> Loader:
        return lambda: np.asarray(solution.y[name] if name in solution.y else solution.observables[name], float)[None]

    known = [name for name in names if name in solution.y or name in solution.observables]
    notes = () if solution.ok else (solution.message,)
    unit = str(solution.attrs.get("time_unit") or "")
    return Side(solution.model, solution.t, unit, {name: maker(name) for name in known}, solution.dims, notes=notes)


def side_of_training(training: Trajectory) -> Side:
    """Recorded observables of a training, in iterations.

    Seeds whose loss was not finite at some time are left out; where all were lost, all are kept up to the first such iteration.
    Raises ParamError where less than two recorded iterations are left.
    """
    kept = [r for r, seed in enumerate(training.seeds) if seed not in training.bad] or list(range(len(training.seeds)))
    lost = len(training.bad) == len(training.seeds)
    rows = int(np.searchsorted(training.t, min(training.bad.values()))) if lost else len(training.t)
    if rows < 2:
        raise ParamError(f"nothing to compare: a curve needs two recorded iterations, and there is no more than one: {training.message}")

    def maker(name: str) -> Loader:
        return lambda: np.asarray(training.observables[name][:, :rows], float)[kept]

    seeds = tuple(training.seeds[r] for r in kept)
    makers = {name: maker(name) for name in training.observables}
    notes = () if training.ok else (training.message,)
    return Side(training_label(training, len(seeds)), training.t[:rows], "iterations", makers, training.dims, seeds, notes)


def training_label(training: Trajectory, seeds: int) -> str:
    """Task, model, seeds and optimizer in a phrase."""
    spec = training.attrs.get("optimizer", {})
    momentum = f" with momentum {spec['momentum']:g}" if spec.get("momentum") and "adam" not in str(spec.get("name")) else ""
    return f"{training.task} ({training.model}), {counted(seeds, 'seed')}, {spec.get('name', '')}{momentum}".rstrip(", ")


def interpolate(t: Array, values: Array, times: Array) -> Array:
    """values (R, T, ...) at t (T,), at times (k,) within t: (R, k, ...)."""
    right = np.clip(np.searchsorted(t, times, side="left"), 1, len(t) - 1)
    weight = (times - t[right - 1]) / (t[right] - t[right - 1])
    shaped = weight.reshape(1, -1, *[1] * (values.ndim - 2))
    low, high = values[:, right - 1], values[:, right]
    # a node takes its own value, whatever the neighbour is: 0 * inf is not 0
    return np.where(shaped == 0, low, np.where(shaped == 1, high, (1 - shaped) * low + shaped * high))


def common_times(a: Array, b: Array) -> Array:
    """The times (k,) of a (T,) or b (U,), whichever has fewer, where both are; rounding at the ends is forgiven.

    Raises ParamError where they have no two times in common.
    """
    low, high = max(a[0], b[0]), min(a[-1], b[-1])
    slack = 1e-9 * max(abs(a[-1] - a[0]), abs(b[-1] - b[0]))
    inside = [np.clip(t[(t >= low - slack) & (t <= high + slack)], low, high) for t in (a, b)]
    found = min(inside, key=len) if min(map(len, inside)) > 1 else max(inside, key=len)
    if low >= high or len(found) < 2:
        raise ParamError(f"no overlap in time: one run goes from {a[0]:g} to {a[-1]:g}, the other from {b[0]:g} to {b[-1]:g}")
    return np.unique(found)


def merge_sides(sides: Sequence[Side]) -> Side:
    """The same System under each seed's own parameters, one side a seed, as one: (R, T, *shape) up to where all of them go."""
    if len(sides) == 1:
        return sides[0]
    shortest = min(sides, key=lambda side: float(side.t[-1]))
    t = shortest.t

    def maker(name: str) -> Loader:
        return lambda: np.concatenate([side.at(name, t) for side in sides])

    notes = tuple(dict.fromkeys(note for side in sides for note in side.notes))
    return replace(sides[0], t=t, makers={name: maker(name) for name in sides[0].makers}, notes=notes)

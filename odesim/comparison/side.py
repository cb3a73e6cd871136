"""One side of a comparison: named time series with a leading axis of seeds, from an integration or a training."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from odesim.base.arrays import Array
from odesim.base.errors import ParamError, apart, counted
from odesim.reference.training.trajectory import Trajectory
from odesim.solve.solution import Solution

Loader = Callable[[], Array]
ITERATIONS = "iterations"  # the unit of time of a training


@dataclass(frozen=True)
class Side:
    """Time series at times t (T,). loaders {name: function returning (R, T, *shape)}: large ones are read when used.

    dims {name: names of the axes of shape}. label: a phrase that describes the run. notes: sentences about it.
    """

    label: str
    t: Array
    unit: str
    loaders: Mapping[str, Loader]
    dims: Mapping[str, tuple[str, ...]]
    seeds: tuple[int, ...] = (0,)
    notes: tuple[str, ...] = field(default=())

    def values(self, name: str) -> Array:
        """The series `name` (R, T, *shape) at all times."""
        return self.loaders[name]()

    def at_times(self, name: str, times: Array) -> Array:
        """The series `name` (R, k, *shape) at times (k,) within t, interpolated linearly; exact at times of t."""
        return interpolate(self.t, self.values(name), times)


def side_of_solution(solution: Solution) -> Side:
    """The Side of an integration: its states and observables, R = 1."""
    solution = solution.to_numpy()
    names = [*solution.y, *(name for name in solution.dims if name not in solution.y)]

    def loader(name: str) -> Loader:
        return lambda: np.asarray(solution.y[name] if name in solution.y else solution.observables[name], float)[None]

    available = [name for name in names if name in solution.y or name in solution.observables]
    notes = () if solution.ok else (solution.message,)
    unit = str(solution.attrs.get("time_unit") or "")
    return Side(solution.model, solution.t, unit, {name: loader(name) for name in available}, solution.dims, notes=notes)


def side_of_training(training: Trajectory) -> Side:
    """The Side of a training: its recorded observables, with iterations as times.

    Seeds with a loss that is not finite are left out; if all have one, all are cut before the first such iteration.
    Raises ParamError if less than two recorded iterations are left.
    """
    rows_kept = [r for r, seed in enumerate(training.seeds) if seed not in training.bad] or list(range(len(training.seeds)))
    all_lost = len(training.bad) == len(training.seeds)
    rows = int(np.searchsorted(training.t, min(training.bad.values()))) if all_lost else len(training.t)
    if rows < 2:
        raise ParamError(f"nothing to compare: a curve needs two recorded iterations, and there is no more than one: {training.message}")

    def loader(name: str) -> Loader:
        return lambda: np.asarray(training.observables[name][:, :rows], float)[rows_kept]

    seeds = tuple(training.seeds[r] for r in rows_kept)
    loaders = {name: loader(name) for name in training.observables}
    notes = () if training.ok else (training.message,)
    return Side(training_label(training, len(seeds)), training.t[:rows], ITERATIONS, loaders, training.dims, seeds, notes)


def training_label(training: Trajectory, seeds: int) -> str:
    """A phrase with task, model, number of seeds and optimizer."""
    spec = training.attrs.get("optimizer", {})
    name, momentum = str(spec.get("name", "")), spec.get("momentum")
    optimizer = (
        name if not momentum or "adam" in name else f"momentum {momentum:g}" if name == "momentum" else f"{name} with momentum {momentum:g}"
    )
    return f"{training.task} ({training.model}), {counted(seeds, 'seed')}, {optimizer}".rstrip(", ")


def interpolate(t: Array, values: Array, times: Array) -> Array:
    """values (R, T, ...) at t (T,), interpolated linearly to times (k,) within t: (R, k, ...)."""
    right = np.clip(np.searchsorted(t, times, side="left"), 1, len(t) - 1)
    weight = (times - t[right - 1]) / (t[right] - t[right - 1])
    shaped = weight.reshape(1, -1, *[1] * (values.ndim - 2))
    low, high = values[:, right - 1], values[:, right]
    # at a node its own value, whatever the neighbour is: 0 * inf is nan
    return np.where(shaped == 0, low, np.where(shaped == 1, high, (1 - shaped) * low + shaped * high))


def common_times(a: Array, b: Array) -> Array:
    """The times (k,) within the span of both a (T,) and b (U,), of whichever has fewer there; rounding at the ends is tolerated.

    Raises ParamError if fewer than two times are left.
    """
    low, high = max(a[0], b[0]), min(a[-1], b[-1])
    slack = 1e-9 * max(abs(a[-1] - a[0]), abs(b[-1] - b[0]))
    inside = [np.clip(t[(t >= low - slack) & (t <= high + slack)], low, high) for t in (a, b)]
    times = min(inside, key=len) if min(map(len, inside)) > 1 else max(inside, key=len)
    if low >= high or len(times) < 2:
        ends = apart(a[0], a[-1], b[0], b[-1])
        raise ParamError("no overlap in time: one run goes from {} to {}, the other from {} to {}".format(*ends))
    return np.unique(times)


def merge_sides(sides: Sequence[Side]) -> Side:
    """One Side of R seeds (R, T, *shape) from a Side for each seed, up to the last time that all of them reach."""
    if len(sides) == 1:
        return sides[0]
    shortest = min(sides, key=lambda side: float(side.t[-1]))
    t = shortest.t

    def loader(name: str) -> Loader:
        return lambda: np.concatenate([side.at_times(name, t) for side in sides])

    notes = tuple(dict.fromkeys(note for side in sides for note in side.notes))
    return replace(sides[0], t=t, loaders={name: loader(name) for name in sides[0].loaders}, notes=notes)

"""The sides of a comparison: time series of a run, their clocks, and the order of axes whose order has no meaning."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.optimize import linear_sum_assignment

from odesim.base.arrays import Array
from odesim.base.errors import ParamError, apart, counted, no_such
from odesim.lab.training.loop import Trajectory
from odesim.run.solution import Solution

# Converts iterations of a training to times of the gradient flow that it follows.
#
# Plain descent makes one Euler step of length h an iteration. Momentum beta has updates v <- beta v + g and y <- y + h v. Then a gradient
# that does not change moves y by h (1 - beta^j) / (1 - beta) at update j. After i updates that is the flow at the effective time
#
#     t(i) = h [i - beta (1 - beta^i) / (1 - beta)] / (1 - beta),
#
# which lags the limit h i / (1 - beta) by at most h beta / (1 - beta)^2. Without momentum both are h i. A System whose time is ln(1 + t)
# has ln(1 + t(i)).

KINDS = ("effective", "limit")
LOGARITHM = "log of 1 + steps"  # how the unit of such a System begins


@dataclass(frozen=True)
class TrainingClock:
    """The time of a System at an iteration. step: the System's time of one iteration of plain descent, 1 if it counts SGD steps.

    kind: "effective" or "limit", see above. logarithmic: whether the System's time is ln(1 + t).
    Raises ParamError for another kind or a momentum outside [0, 1).
    """

    step: float = 1.0
    momentum: float = 0.0
    kind: str = "effective"
    logarithmic: bool = False

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ParamError(no_such("clock", self.kind, KINDS))
        if not 0 <= self.momentum < 1:
            raise ParamError(f"momentum must lie in [0, 1) for a clock, not {self.momentum:g}: with 1 the steps grow without bound")

    def times(self, iterations: Array) -> Array:
        """Times (T,) of iterations (T,)."""
        return np.log1p(self.elapsed(iterations)) if self.logarithmic else self.elapsed(iterations)

    def elapsed(self, iterations: Array) -> Array:
        """The time t (T,) of the flow itself at iterations (T,)."""
        i, beta = np.asarray(iterations, float), self.momentum
        if beta == 0:
            return self.step * i
        lag = beta * (1 - beta**i) / (1 - beta) if self.kind == "effective" else 0.0
        return self.step * (i - lag) / (1 - beta)

    def __str__(self) -> str:
        return f"ln(1 + t), {self.formula()}" if self.logarithmic else self.formula()

    def formula(self) -> str:
        """t by the iteration i."""
        if self.momentum == 0:
            return "t = i" if self.step == 1 else f"t = {self.step:g} i"
        factor = "" if self.step == 1 else f"{self.step:g} "
        beta = f"{self.momentum:g}"
        if self.kind == "limit":
            return f"t = {factor}i / (1 - {beta})"
        return f"t = {factor}[i - {beta} (1 - {beta}^i) / (1 - {beta})] / (1 - {beta})"


# Reorders an axis whose order has no meaning, such as hidden nodes, so that two arrays match best.


def best_order(a: list[Array], b: list[Array]) -> Array:
    """The order (n,) for which a[..][order] is most correlated with b, over all arrays (n, ...) of the two lists together.

    It has the least sum of squared differences of all orders; each array is divided by its own norm.
    """
    # an assignment over all nodes at once: if each took the node nearest to it, two could take the same one, and pairs that are found one
    # after the other depend on which comes first
    total = np.zeros((len(b[0]), len(b[0])))
    for x, y in zip(a, b, strict=True):
        x, y = x.reshape(len(x), -1), y.reshape(len(y), -1)
        size = np.sqrt((x * x).sum() * (y * y).sum())
        total += (y @ x.T) / (size if size > 0 else 1)
    return linear_sum_assignment(total, maximize=True)[1]


def align_axis(a: Mapping[str, Array], b: Mapping[str, Array], dims: Mapping[str, tuple[str, ...]], axis: str) -> dict[str, Array]:
    """a {name: (R, T, *shape)} with one axis reordered, for each seed, to match b {name: (1 or R, T, *shape)} best.

    All arrays that have the axis get the same order. Raises ParamError if no array has it.
    """
    positions = {name: 2 + dims[name].index(axis) for name in a if axis in dims[name]}
    if not positions:
        raise ParamError(no_such("axis", axis, {dim for name in a for dim in dims[name]}, "what is compared"))
    result = dict(a)
    first = next(iter(positions))
    for name in positions:
        result[name] = a[name].copy()
    for r in range(len(a[first])):
        fronts = [
            [np.moveaxis(side[name][r % len(side[name])], position - 1, 0) for name, position in positions.items()] for side in (a, b)
        ]  # (n, T, ...)
        order = best_order(*fronts)
        for name, position in positions.items():
            result[name][r] = np.take(a[name][r], order, axis=position - 1)
    return result


# One side of a comparison: named time series with a leading axis of seeds, from an integration or a training.

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

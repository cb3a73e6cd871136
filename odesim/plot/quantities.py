"""One quantity of a run, to draw: its values, kind, label, jumps, marks of events, and what a matrix has beside its components."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from odesim.base.arrays import Array, entry
from odesim.plot.labels import array_symbol, component_name
from odesim.plot.scales import ALIKE
from odesim.stepper.occurrences import Events

if TYPE_CHECKING:
    from odesim.run.solution import Solution

ROUNDING = 1e-12  # of the value: sums of some thousand terms, in an order that changes
EPS = 1e-16  # of the largest value: one rounding
LINES, ROWS, MAP = 20, 500, 2000  # largest numbers of components: as lines, as rows of a map, in a map
NEAR = 10.0  # times the tolerance: so large errors are seldom
MATRIX = 10  # components of a matrix, more of which are seen as a map too
WORK, LEADING, TINY = 1e9, 4, 1e-3  # of singular values: multiplications for all times; how many; of the norm, smaller ones are not seen
MAX_MARKS = 12  # largest number of marks of one event
# views of an event of which each component has a row of ticks, and of the norm and singular values below the bundle of their matrix
RASTER, SPECTRUM = "Raster", "Spectrum"


def is_still(values: Array) -> bool:
    """Whether the columns of values (T, n) are finite and change by no more than the rounding of a sum."""
    return bool(np.isfinite(values).all()) and bool(np.all(np.ptp(values, axis=0) <= ROUNDING * np.abs(values[0])))


@dataclass(frozen=True, eq=False)
class Quantity:
    """A state or observable to draw: values (T, *shape), the names of the axes of shape, the times at which each component jumps.

    floor: below which size values may be errors, 0 where that is not known. view: its kind, as its System wants it to be seen.
    names: of the components, default their indices. marks {event: (numbers of occurrences (m,), their components (m,))}.
    between: times (k,) between the saved ones and the values there (k, *shape); the time of a jump twice, with both sides.
    ordered: whether its lines are dark to light by index, for components in some order. halves: whether a line is two, as HALVES.
    """

    name: str
    values: Array
    dims: tuple[str, ...]
    jumps: tuple[Array, ...] = ()
    floor: float = 0.0
    view: str = ""
    names: tuple[str, ...] = ()
    marks: Mapping[str, tuple[Array, Array]] = field(default_factory=dict)
    between: tuple[Array, Array] | None = None
    ordered: bool = True
    halves: bool = False

    @property
    def flat(self) -> Array:
        """The values (T, n) with components in C order."""
        return np.asarray(self.values, float).reshape(len(self.values), -1)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape[1:]

    @property
    def count(self) -> int:
        return int(np.prod(self.shape, dtype=int))

    @property
    def kind(self) -> str:
        """How it is drawn over time: `lines`, `map` (a vector) or `bundle`; or `raster`, the occurrences of an event alone."""
        if self.view in (RASTER, "Map"):
            return self.view.lower()
        return "lines" if self.count <= LINES else "map" if self.count <= MAP and len(self.shape) == 1 and not self.view else "bundle"

    @property
    def leading(self) -> int:
        """How many axes go down in a map of the array: the first one that is longer than 1, and those before it."""
        return next((k + 1 for k, extent in enumerate(self.shape) if extent > 1), 1)

    @property
    def rows(self) -> int:
        """Rows of a map of the array."""
        return int(np.prod(self.shape[: self.leading], dtype=int))

    @property
    def strip(self) -> str:
        """How a strip beside it shows it at a few times: `Matrix`, `Attention`, `Points`; empty without one.

        Without a view a matrix of many values that come to differ has one: points are rows of length 1, attention has rows of sum 1.
        """
        values, rows = np.asarray(self.values, float), self.rows
        if self.view == "Points":
            return self.view if len(self.shape) == 1 or (len(self.shape) == 2 and self.shape[1] in (2, 3)) else ""
        if len(self.shape) < 2 or max(rows, self.count // rows) > ROWS or self.view not in ("", "Matrix", "Attention"):
            return ""
        whole = self.flat[np.isfinite(self.flat).all(axis=1)]
        ends = whole[[0, -1]] if len(whole) else ()
        if self.view or self.count <= MATRIX or all(np.ptp(row) <= ALIKE * np.abs(row).max() for row in ends):
            return self.view
        if len(self.shape) == 2 and has_unit_rows(values):
            return "Points"
        shares = whole[-1].reshape(rows, -1)
        shares = shares.min() >= 0 and np.allclose(shares.sum(axis=1), 1, rtol=0, atol=1e-6)
        return "Attention" if shares else "Matrix"

    @property
    def label(self) -> str:
        """The name with its axes, as a symbol."""
        return array_symbol(self.name, self.dims, self.shape)

    def part(self, index: tuple[int, ...] | None) -> "Quantity":
        """One component as a number, whose label has the index; all of it for None."""
        if not index:
            return self
        chosen: Any = (slice(None), *index)
        number = int(np.ravel_multi_index(index, self.shape))
        jumps = self.jumps and (self.jumps[number],)
        marks = {event: (k[i == number], i[i == number] * 0) for event, (k, i) in self.marks.items()}
        view = "Log" if self.view == "Log" else ""
        return Quantity(self.name, self.values[chosen], tuple(map(str, index)), jumps, self.floor, view, marks=marks)

    def curve(self, i: int, t: Array, rows: Any = slice(None)) -> tuple[Array, Any, Array]:
        """(times, masked values, numbers of the saved points) of the line of component i, with its jumps. t (T,): saved times."""
        line, t = np.ma.masked_invalid(self.flat[rows, i]), t[rows]
        if self.between is None:
            return with_jumps(t, line, self.jumps[i]) if self.jumps else (t, line, np.arange(len(t)))
        more, values = self.between
        # of equal times the side before a jump is first, then the saved point, which has the side after it
        twice = np.append(more[1:] == more[:-1], False)
        rank = np.concatenate([np.ones(len(t), int), np.where(twice, 0, 2)])
        times = np.concatenate([t, more])
        order = np.lexsort((rank, times))
        order = order[times[order] >= t[0]]
        every = np.ma.concatenate([line, np.ma.masked_invalid(values.reshape(len(more), -1)[:, i].astype(float))])
        return times[order], every[order], np.flatnonzero(order < len(t))

    @property
    def is_constant(self) -> bool:
        """Whether it has few components and none changes by more than rounding."""
        return self.count <= LINES and len(self.values) > 1 and is_still(self.flat)

    @property
    def in_order(self) -> bool:
        """Whether components rise, or fall, with their index at most times."""
        steps = np.diff(self.flat, axis=1)
        return bool(np.mean((steps >= 0).all(axis=1) | (steps <= 0).all(axis=1)) > 0.5)

    @property
    def neighbours(self) -> int:
        """Number of neighbouring components of which a map shows the largest."""
        return -(-self.count // ROWS) if self.kind == "map" else 1

    def component(self, i: int) -> str:
        """The index of component i as text."""
        return self.names[i] if self.names else component_name(np.unravel_index(i, self.shape), self.shape)

    def part_name(self, i: int) -> str:
        """Component i of the array as text, such as `v[3]`; a number has its name."""
        at = self.names[i : i + 1] if self.names else np.unravel_index(i, self.shape)
        return entry(self.name, at if self.count > 1 or self.shape else ())

    @property
    def spectrum(self) -> "Quantity | None":
        """The Frobenius norm and the leading singular values of a matrix; None where they would take long, or where it is no matrix.

        A few components of many say little of a matrix: its size and how many directions it has say more.
        """
        if self.strip != "Matrix" or sum(extent > 1 for extent in self.shape) != 2 or self.kind != "bundle":
            return None
        rows, columns = self.rows, self.count // self.rows
        if min(rows, columns) < 2 or len(self.values) * rows * columns * min(rows, columns) > WORK:
            return None
        values = self.flat.reshape(-1, rows, columns)
        whole = np.isfinite(values).all(axis=(1, 2))
        singular = np.full((len(values), min(rows, columns)), np.nan)
        singular[whole] = np.linalg.svd(values[whole], compute_uv=False)
        norm = np.sqrt((singular**2).sum(axis=1))
        count = int((singular[whole, :LEADING].max(axis=0) > TINY * norm[whole].max()).sum())
        names = ("norm", *(rf"$\sigma_{{{k + 1}}}$" for k in range(count)))
        return Quantity("σ", np.column_stack([norm, singular[:, :count]]), (), view=SPECTRUM, names=names)


def has_unit_rows(values: Array) -> bool:
    """Whether values (T, n, d) are vectors of 2 or 3 components and length 1."""
    return values.shape[-1] in (2, 3) and np.allclose(np.linalg.norm(values, axis=-1), 1.0, rtol=0, atol=1e-3)


def components_at(events: Events, components: str, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """(numbers of occurrences (m,), components of an array (m,) to which they belong). components: of the array, as runs have them."""
    every = np.arange(len(events))
    if components == "component" and events.indices is not None:
        return every, np.ravel_multi_index(tuple(events.indices.T), shape)
    chosen: Any = np.arange(int(np.prod(shape, dtype=int)))
    if components not in ("component", "all"):
        chosen = [np.ravel_multi_index(tuple(map(int, index.split(","))), shape) for index in components.split()]
    return np.repeat(every, len(chosen)), np.tile(chosen, len(every))


def marks_of(name: str, shape: tuple[int, ...], solution: "Solution") -> dict[str, tuple[Array, Array]]:
    """The marks of the events of a Solution on a state or observable: on what their functions read of it, and on what they set.

    Where these are more than MAX_MARKS, on what they read, if anything. An event of all components of many has none.
    """
    marks, few = {}, int(np.prod(shape, dtype=int)) <= LINES
    for event, occurrences in solution.events.items():
        places = [solution.attrs.get(key, {}).get(event, {}).get(name, "") for key in ("watched", "jumps")]
        events = Events.of(occurrences)
        each = [components_at(events, place, shape) for place in places if place and len(events) and (few or place != "all")]
        if each:
            numbers, components = np.unique(np.concatenate(each, axis=1), axis=1)
            marks[event] = (numbers, components) if len(numbers) <= MAX_MARKS else each[0]
    return marks


def jump_times(name: str, shape: tuple[int, ...], solution: "Solution") -> tuple[Array, ...]:
    """The times at which each component of a state or observable of a Solution jumps; () where none does."""
    jumps: Mapping[str, Mapping[str, str]] = solution.attrs.get("jumps", {})
    count = int(np.prod(shape, dtype=int))
    jumps_of: list[list[Array]] = [[] for _ in range(count)]
    for event, names in jumps.items():
        occurrences = Events.of(solution.events.get(event, ()))
        if name not in names or not len(occurrences):
            continue
        numbers = None if names[name] == "all" else components_at(occurrences, names[name], shape)
        for i in range(count):
            jumps_of[i].append(occurrences.t if numbers is None else occurrences.t[numbers[0][numbers[1] == i]])
    return tuple(np.unique(np.concatenate(parts)) for parts in jumps_of) if any(jumps_of) else ()


def is_apart(after: Array, count: int) -> Array:
    """Whether two of `count` points on either side of a jump have no other jump between them, (n, 2).

    after (n,): increasing numbers of the first point after each jump.
    """
    gaps = np.diff(np.concatenate([[0], after, [count]])) > 1
    return np.column_stack([gaps[:-1], gaps[1:]])


def with_jumps(x: Array, values: Any, at: Array) -> tuple[Array, Any, Array]:
    """(x, values, numbers of the given points) of a line with a vertical part at each of the positions `at`.

    On either side it goes on as straight as the two points there, where no other jump is between them; else it has a gap there.
    """
    after = np.searchsorted(x, at, side="left")
    inside = (after > 0) & (after < len(x))
    after, at = after[inside], at[inside]
    line = np.ma.concatenate([values, np.ma.masked_all(2 * len(at))])
    for side, apart in enumerate(is_apart(after, len(x)).T):
        near, step = after[apart] - 1 + side, 2 * side - 1
        reach = (at[apart] - x[near]) / (x[near] - x[near + step])
        line[len(x) + 2 * np.flatnonzero(apart) + side] = values[near] + reach * (values[near] - values[near + step])
    order = np.insert(np.arange(len(x)), np.repeat(after, 2), len(x) + np.arange(2 * len(at)))
    return np.concatenate([x, np.repeat(at, 2)])[order], line[order], np.flatnonzero(order < len(x))

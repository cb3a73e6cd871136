"""What a run does between saved times, about its events and where lines have corners: computed by the run itself, so that both are true."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from odesim.base.arrays import Array, every_phase, on_host
from odesim.base.errors import OdesimError
from odesim.inputs.times import Save, save_times
from odesim.plot.choice import Choice
from odesim.plot.quantities import NEAR, Quantity, is_apart
from odesim.plot.scales import TimeAxis
from odesim.stepper.methods import MAP
from odesim.stepper.occurrences import Events

if TYPE_CHECKING:
    from odesim.run.solution import Solution

FAR = 0.05  # of the time axis: between saved times farther apart the height of a curve is uncertain
POINTS = 400  # of a curve along the time axis, where it is computed between saved times
INNER = 8  # parts of a curve between two events
WORK = 1e9  # states at right-hand sides: some seconds
LARGEST = 20_000_000  # number of values between saved times, more of which would fill the memory
SIDE = 1e-9  # of the run: how far from a jump its sides are computed; no picture shows so little, and two events are at one time below
TURN, LONG, WIDE, FEW = 0.35, 0.02, 2.0, 0.1
"""A corner: radians between two parts of a line; the least length of the longer one and the width of a panel, in its heights; more than
this share of all points are no corners but a rough path, as noise has."""
GAPS = "gaps: events too close together for the saved times"


def with_times(solution: "Solution", *, log: bool = False) -> "Solution":
    """The Solution with POINTS times where only start and end were saved, of which a line would be no curve: what it does is not known.

    log: with geometric times instead, whatever was saved; a Map stays as it is.
    The run is integrated once more. One that would take long, or that was stored, stays as it is.
    """
    is_map = solution.method == MAP.name
    enough = is_map if log else len(solution.t) != 2
    if enough or POINTS * state_count(solution) > LARGEST or not is_short(solution):
        return solution
    first, last = solution.t[[0, -1]]
    times = first + every_phase(int(last - first) + 1, POINTS) if is_map else save_times(Save(POINTS, log=log), first, last)
    try:
        return replace(solution, t=times, y=solution.dense(times))
    except (OdesimError, AttributeError):  # a stored run, or a file of netCDF
        return solution


def state_count(solution: "Solution") -> int:
    """The number of states of a Solution."""
    return sum(int(np.prod(rows.shape[1:], dtype=int)) for rows in solution.y.values())


def is_short(solution: "Solution") -> bool:
    """Whether to integrate the run once more takes some seconds at most."""
    stats: Any = getattr(solution, "stats", {})
    return bool(stats.get("rhs_calls", 0) * state_count(solution) <= WORK)


def with_between(drawn: Sequence[Quantity], solution: "Solution", choice: Choice, time_axis: TimeAxis) -> tuple[list[Quantity], list[str]]:
    """The quantities, with values on both sides of events and between them where saved times are too few to draw these; notes on gaps.

    So they have about corners of lines. The run is integrated once more, for all of these times. A stored run, or values that would fill
    the memory: lines have gaps, and corners.
    """
    chosen = [occurrences(q, solution) if q.kind in ("lines", "bundle") else np.empty(0) for q in drawn]
    gaps = [jumps_are_close(q, time_axis.t) for q in drawn]
    short = is_short(solution)
    rows = [corners(q, time_axis) if short and q.kind == "lines" else np.empty(0, int) for q in drawn]
    if not any(gaps) and not any(map(len, rows)) and all(is_near(t, time_axis) for t in chosen):
        return list(drawn), []
    if not hasattr(solution, "dense"):  # a file of netCDF
        return list(drawn), [GAPS] * any(gaps)
    times, asked = times_between(np.unique(np.concatenate(chosen)), np.unique(np.concatenate(rows)), solution, time_axis)
    try:
        states = on_host(solution.dense(asked)) if len(asked) * state_count(solution) <= LARGEST else {}
    except OdesimError:  # a run that was stored, or a map, which has no states between its steps
        states = {}
    if not states or any(len(rows) < len(asked) for rows in states.values()):
        return list(drawn), [GAPS] * any(gaps)
    more = replace(solution, t=asked, y=states)
    result = []
    for q, t, turns in zip(drawn, chosen, rows, strict=True):
        if len(t) or len(turns):
            values = np.asarray(states[q.name] if q.name in states else more.observables[q.name])
            index: Any = (slice(None), *(choice.component(q.name, values.shape[1:]) or ()))
            q = replace(q, between=(times, values[index]))
        result.append(q)
    return result, []


def occurrences(quantity: Quantity, solution: "Solution") -> Array:
    """The times (n,) of the jumps of the lines of a quantity, and of marks that stand on them."""
    every = list(quantity.jumps) if quantity.kind == "lines" else []
    for event, (numbers, _) in quantity.marks.items():
        every.append(Events.of(solution.events[event]).t[numbers])
    return np.unique(np.concatenate(every)) if every else np.empty(0)


def corners(quantity: Quantity, time_axis: TimeAxis) -> Array:
    """The numbers (n,) of the saved times at which a line of the quantity has a corner, on axes of values as they are or of its view."""
    scaled = np.log if time_axis.log else np.asarray
    x: Array = scaled(time_axis.x)
    values = quantity.flat[time_axis.rows]
    if quantity.view == "Log":
        values = np.log(np.where(values > NEAR * quantity.floor, values, np.nan))  # nearer corners are those of errors
    finite = values[np.isfinite(values)]
    if len(x) < 3 or not len(finite) or not np.ptp(finite):
        return np.empty(0, int)
    steps, rises = (
        WIDE / (x[-1] - x[0]) * np.diff(x)[:, None],
        np.diff(np.where(np.isfinite(values), values, np.nan) / np.ptp(finite), axis=0),
    )
    turns = np.abs(np.diff(np.arctan2(rises, steps), axis=0)) > TURN
    long = np.hypot(steps, rises) > LONG
    rows = 1 + np.flatnonzero((turns & (long[1:] | long[:-1])).any(axis=1))
    return time_axis.rows[rows[: len(rows) * (len(rows) <= FEW * len(x))]]


def jumps_are_close(quantity: Quantity, t: Array) -> bool:
    """Whether a line of the quantity has jumps on one side of which no two of the saved times t (T,) follow each other."""
    afters = [np.searchsorted(t, at) for at in quantity.jumps] if quantity.kind == "lines" else []
    return any(not is_apart(after[(after > 0) & (after < len(t))], len(t)).all() for after in afters)


def times_between(at: Array, rows: Array, solution: "Solution", time_axis: TimeAxis) -> tuple[Array, Array]:
    """(times as drawn, times to compute) (k,) about events at times `at` (n,): both sides of each, and points in their saved intervals.

    rows (m,): of saved times that have such points on either side.
    """
    saved, end = time_axis.t, float(solution.t_end)
    side = SIDE * (end - float(saved[0]))
    # events at one time have one place: the first has the side before it, the last the side after it
    before, after = at[np.diff(at, prepend=-np.inf) > 2 * side], at[np.diff(at, append=np.inf) > 2 * side]
    near = nearest(saved, before)
    place = np.where(np.abs(near - before) <= side, near, before)
    spread = np.geomspace if time_axis.log else np.linspace
    grid = time_axis.start + time_axis.unit * spread(time_axis.x[0], time_axis.x[-1], POINTS)
    knots = np.union1d(at, saved)
    inner = knots[:-1, None] + np.diff(knots)[:, None] * np.arange(1, INNER) / INNER  # an arc between two events has its height
    grid = np.union1d(grid, inner)
    grid = grid[np.diff(grid, prepend=-np.inf) > side]
    grid = grid[np.isin(np.searchsorted(saved, grid), [*np.searchsorted(saved, at), *rows, *(rows + 1)])]
    grid = grid[np.abs(grid - nearest(knots, grid)) > 4 * side]
    asked = np.concatenate([before - side, after + side, grid]).clip(saved[0], end)
    asked, numbers = np.unique(asked, return_index=True)
    return np.concatenate([place, place, grid])[numbers], asked


def nearest(points: Array, x: Array) -> Array:
    """The nearest of increasing points (m,) to each of x (n,)."""
    after = np.searchsorted(points, x).clip(1, max(len(points) - 1, 1)) if len(points) > 1 else np.zeros(len(x), int)
    low, high = points[np.maximum(after - 1, 0)], points[after]
    return np.where(x - low <= high - x, low, high)


def is_near(t: Array, time_axis: TimeAxis) -> bool:
    """Whether all times t (n,) are saved times or lie between two close ones."""
    scaled = np.log if time_axis.log else np.asarray
    x: Array = scaled(time_axis.x)
    after = np.searchsorted(time_axis.t[time_axis.rows], t)
    high, low = x[np.minimum(after, len(x) - 1)], x[np.maximum(after - 1, 0)]
    return bool(np.all((high - low <= FAR * (x[-1] - x[0])) | np.isin(t, time_axis.t)))


def is_between(t: Array, quantity: Quantity, time_axis: TimeAxis) -> bool:
    """Whether the quantity has values on both sides of all times t (n,), computed between saved ones."""
    if quantity.between is None or not len(quantity.between[0]):
        return False
    side = SIDE * (time_axis.t[-1] - time_axis.t[0])
    return bool(np.all(np.abs(nearest(np.unique(quantity.between[0]), t) - t) <= 4 * side))

"""Times of pulses: where a function of time that rests elsewhere rises and falls, so briefly that a step may pass over it.

The span is cut into cells. A cell is active if the function leaves the chord between its ends: halves of a cell are looked at, halved
again, as long as interval arithmetic says that the function may leave it. Neighbouring active cells are a pulse if the function comes back
to where it was, and most of the span rests.
"""

from collections.abc import Sequence

import numpy as np
from sympy import Symbol

from odesim.base.arrays import Array
from odesim.engines.zeros import Form, Ranges, rows_of

CELLS = (64, 1024, 1 << 14, 1 << 18)
"""Cells of a span; more where the function does not rest in half of them, and is not nearly straight in all."""
STRAIGHT = 0.02
"""In parts of the range of its values: what a function that is nearly straight leaves the chord by at most."""
SEEN = 1e-6
"""What a function leaves a chord by, in parts of the range of its values, that is looked for."""
ENOUGH = 4
"""Parts of a cell where the function leaves the chord by less than so many times what was seen there are left."""
RESTS = 1e-3
"""A cell rests where the function leaves the chord by less than this part of the most."""
HALVINGS, MOST = 30, 1 << 12
"""How often a cell is halved at most, and how many parts are looked at together."""


Rows = dict[Symbol, Array]
"""{coefficient: its values (rows,)}, as odesim.engines.zeros.Ranges has them."""


def pulse_rows(form: Form, found: Sequence[Array], indices: int, span: tuple[float, float]) -> list[Array]:
    """The times of pulses of each member, or one row for all; arguments as of odesim.engines.zeros.isolated_rows."""
    values, lead = rows_of(form, found, indices)
    each = int(np.prod(lead[1:]))
    with np.errstate(all="ignore"):
        return [_times(form, {c: v[k : k + each] for c, v in values.items()}, each, span) for k in range(0, lead[0] * each, each)]


def _times(form: Form, values: Rows, rows: int, span: tuple[float, float]) -> Array:
    for cells in CELLS:
        edges = np.linspace(*span, cells + 1)
        at, height = _look(form, values, rows, edges)
        active = (height > RESTS * height.max(axis=1, keepdims=True)).any(axis=0)
        active = active | np.r_[active[1:], False] | np.r_[False, active[:-1]]  # a cell may lie on a turning point
        if 2 * active.sum() < cells:
            return _highest(form, values, rows, edges, at, active)
        if height.max() < STRAIGHT or rows * cells > CELLS[-2]:
            break
    return np.empty(0)


def _samples(form: Form, values: Rows, row: Array, at: Array) -> Array:
    low, high = Ranges(form, values, row, at, at).order(0)
    return 0.5 * low + 0.5 * high


def _look(form: Form, values: Rows, rows: int, edges: Array) -> tuple[Array, Array]:
    """For each row and cell (rows, cells): when the function was seen farthest from the chord, and how far, in parts of its range."""
    cells = len(edges) - 1
    row, cell = np.divmod(np.arange(rows * cells), cells)
    low, high = edges[cell], edges[cell + 1]
    start, end = _samples(form, values, row, low), _samples(form, values, row, high)
    at, height, live, left, right = 0.5 * low + 0.5 * high, np.zeros(len(row)), np.arange(len(row)), low, high
    least, most = np.full(rows, np.inf), np.full(rows, -np.inf)
    for g in (start, end):
        np.fmin.at(least, row, g)
        np.fmax.at(most, row, g)
    for _ in range(HALVINGS):
        middle = 0.5 * left + 0.5 * right
        g = _samples(form, values, row[live], middle)
        far = np.abs(g - start[live] - (end - start)[live] * (middle - low[live]) / (high - low)[live])
        np.fmin.at(least, row[live], g)
        np.fmax.at(most, row[live], g)
        np.fmax.at(height, live, far)
        best = far == height[live]
        at[live[best]] = middle[best]
        live, left, right = np.tile(live, 2), np.r_[left, middle], np.r_[middle, right]
        inside = Ranges(form, values, row[live], left, right).order(0)
        fine = np.isfinite(inside.low) & np.isfinite(inside.high)
        lowest, highest = least.copy(), most.copy()
        np.fmin.at(lowest, row[live[fine]], inside.low[fine])
        np.fmax.at(highest, row[live[fine]], inside.high[fine])
        seen = SEEN * (highest - lowest)[row]  # the range of all values, the narrower the shorter the parts are
        more = np.maximum(seen, ENOUGH * height)[live]
        beyond = (inside.low < np.minimum(start, end)[live] - more) | (inside.high > np.maximum(start, end)[live] + more)
        live, left, right = (part[fine & beyond] for part in (live, left, right))
        if not 0 < len(live) <= max(MOST, len(row)):
            break
    return at.reshape(rows, cells), np.where(height > seen, SEEN * height / seen, 0.0).reshape(rows, cells)


def _highest(form: Form, values: Rows, rows: int, edges: Array, at: Array, active: Array) -> Array:
    """The time in each stretch of active cells at which a function is farthest from the chord of the stretch, if that is a pulse."""
    found = []
    starts = np.flatnonzero(active & ~np.r_[False, active[:-1]])
    ends = np.flatnonzero(active & ~np.r_[active[1:], False]) + 1
    for first, last in zip(starts, ends, strict=True):
        times = np.unique(np.r_[edges[first : last + 1], at[:, first:last].ravel()])
        g = _samples(form, values, np.repeat(np.arange(rows), len(times)), np.tile(times, rows)).reshape(rows, len(times))
        chord = g[:, :1] + (g[:, -1:] - g[:, :1]) * (times - times[0]) / (times[-1] - times[0])
        far = np.abs(g - chord) / (np.abs(g[:, -1:] - g[:, :1]) + np.abs(g - chord).max(axis=1, keepdims=True) * 1e-9)
        if np.nanmax(far) > 1.0:
            found.append(times[np.unravel_index(np.nanargmax(far), far.shape)[1]])
    return np.array(found)

"""Times at which a function of time alone passes 0, or rises and falls in a pulse: none missed: interval arithmetic over halves of a span.

Zeros. A part where the range of the function does not hold 0 has no zero. Where the range of a derivative of order k does not hold 0, each
derivative below it is monotone between zeros of the next one. Brackets find these, and at last all zeros of the function. A part that is
left is so short that it is one time: a jump, a pole, or a zero of high order.

Pulses. The span is cut into cells. A cell is active if the function leaves the chord between its ends: halves of a cell are looked at,
halved again, as long as interval arithmetic says that the function may leave it. Neighbouring active cells are a pulse if the function
comes back to where it was, and most of the span rests.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, reduce
from typing import Any, NamedTuple

import numpy as np
import sympy as sp
from sympy import Expr, Symbol

from odesim.base import intervals
from odesim.base.arrays import Array
from odesim.base.errors import SolveError
from odesim.base.intervals import Range
from odesim.ir.derive import directional_derivative
from odesim.symbolic.indices import time
from odesim.symbolic.reductions import SumOver
from odesim.symbolic.times import with_levels

# Without derivatives a double zero, as of sin(t) - 1, leaves some sqrt(1/width) parts whose range holds 0, 1e8 at the rounding of t. The
# ladder of derivatives ends it once a part is shorter than the distance to the next zero of some derivative up to the fourth.
ORDER = 4
"""The highest derivative that is asked for its sign."""
CURVED = 2.0**-8
"""Parts of the span that are longer are asked for the sign of their first derivative only: ranges of higher ones hold 0 there anyway."""
CHUNK, MOST = 4096, 1 << 19
"""Parts of a span that are taken at once, and all parts of one search."""
ONE_TIME = 4
"""Two times no further apart than so many roundings of the span's ends are one."""
EPS = float(np.finfo(float).eps)
CLOSE = 256
"""So many of these in a row cannot be told apart."""


@dataclass(frozen=True)
class Coefficient:
    """A part of a function that does not change with time: its symbol, its expression, and {index of a sum: extent} around it."""

    symbol: Symbol
    expr: Expr
    axes: Mapping[Symbol, Any]


@dataclass(frozen=True)
class Form:
    """A function of time and coefficients with its derivatives; levels {symbol: argument} are its whole parts."""

    function: Expr
    orders: tuple[Expr, ...]
    levels: Mapping[Symbol, Expr]
    coefficients: tuple[Coefficient, ...]


@lru_cache(maxsize=256)
def form_of(function: Expr) -> Form:
    """The Form of a function whose ranges are known."""
    flat, floors = with_levels(function)
    orders = [_plain_powers(flat)]
    for _ in range(ORDER):
        orders.append(directional_derivative(orders[-1], {str(time): lambda _: sp.S.One}))
    coefficients: dict[tuple[Expr, Any], Coefficient] = {}
    levels = {symbol: _split(floor.args[0], coefficients, set(floors.values()), {}) for floor, symbol in floors.items()}
    return Form(function, tuple(_split(e, coefficients, set(levels), {}) for e in orders), levels, tuple(coefficients.values()))


def _plain_powers(e: Expr) -> Expr:
    """e with exp(b log a) for powers a^b whose exponents change with time."""
    if not e.args or not e.has(time):
        return e
    args = [_plain_powers(a) for a in e.args]
    if e.is_Pow and e.exp.has(time):
        return sp.exp(args[1] * sp.log(args[0]))
    return e if tuple(args) == e.args else e.func(*args)


def _split(e: Expr, coefficients: dict[tuple[Expr, Any], Coefficient], levels: set[Symbol], axes: Mapping[Symbol, Any]) -> Expr:
    """e with a symbol for each part that is free of time."""
    if e.is_Number or e.is_NumberSymbol or e == time or e in levels:
        return e
    if not e.has(time, *levels):
        key = e, tuple(axes)
        if key not in coefficients:
            coefficients[key] = Coefficient(sp.Dummy("c", real=True), e, axes)
        return coefficients[key].symbol
    if isinstance(e, SumOver):
        ((k, low, last),) = e.limits
        return e.func(_split(e.function, coefficients, levels, {k: last + 1}), (k, low, last))
    return e.func(*(_split(a, coefficients, levels, axes) for a in e.args), **({"evaluate": False} if e.is_Add or e.is_Mul else {}))


class Ranges:
    """The ranges of a Form's functions over parts of time low to high (B,).

    values {coefficient: numbers (R,), or (R, J) along a sum's index}; row (B,): which of these rows belongs to each part.
    """

    def __init__(self, form: Form, values: Mapping[Symbol, Array], row: Array, low: Array, high: Array) -> None:
        self._form, self._values, self._row = form, values, row
        self._known: dict[Expr, Range] = {time: Range(low[:, None], high[:, None])}

    def order(self, k: int) -> Range:
        """The range of derivative k (B,)."""
        low, high = (np.broadcast_to(end, (len(self._row), 1))[:, 0] for end in self._of(self._form.orders[k]))
        return Range(low, high)

    @cached_property
    def smooth(self) -> Array:
        """Whether no part of the function may jump or grow without bound, for each part of time (B,)."""
        fine = np.ones((len(self._row), 1), bool)
        self._of(self._form.orders[0])
        for e, r in list(self._known.items()):
            bounded = np.isfinite(r.low) & np.isfinite(r.high)
            fine &= (bounded & (r.low == r.high) if e in self._form.levels else bounded).all(axis=-1, keepdims=True)
        return fine[:, 0]

    def _of(self, e: Expr) -> Range:
        result = self._known.get(e)
        if result is None:
            result = self._known[e] = self._computed(e)
        return result

    def _computed(self, e: Expr) -> Range:
        if e in self._values:
            rows = self._values[e]
            rows = rows[self._row] if len(rows) > 1 else rows
            return intervals.point(rows if rows.ndim > 1 else rows[:, None])
        if e in self._form.levels:
            return intervals.whole_part(self._of(self._form.levels[e]))
        if e.is_Number or e.is_NumberSymbol:
            return intervals.number(e)
        if isinstance(e, SumOver):
            return intervals.total(self._of(e.function))
        parts = [self._of(a) for a in e.args]
        if e.is_Add or e.is_Mul:
            return reduce(intervals.add if e.is_Add else intervals.multiply, parts)
        return intervals.power(*parts) if e.is_Pow else intervals.FUNCTIONS[type(e).__name__](*parts)


class Parts(NamedTuple):
    """Parts of time from low to high (B,), each of one row of coefficients."""

    row: Array
    low: Array
    high: Array

    def where(self, mask: Any) -> "Parts":
        """The parts for which the mask holds, or which a slice names."""
        return Parts(self.row[mask], self.low[mask], self.high[mask])

    @staticmethod
    def joined(several: Sequence["Parts"]) -> "Parts":
        """All of several, one after another."""
        return Parts(*(np.concatenate(column) for column in zip(*several, strict=True)))


class Search:
    """The search for the zeros of one function between t0 and t1, for R rows of coefficients {symbol: (R,) or (R, J)}."""

    def __init__(self, form: Form, values: Mapping[Symbol, Array], t0: float, t1: float) -> None:
        self._form, self._values, self._span = form, values, (t0, t1)
        self._least = ONE_TIME * float(np.spacing(max(abs(t0), abs(t1))))

    def times(self, rows: int) -> list[Array]:
        """For each row all times at which the function may pass 0, and perhaps others, in order. Raises SolveError."""
        (t0, t1), least = self._span, self._least
        waiting = [Parts(np.arange(rows), np.full(rows, t0), np.full(rows, t1))]
        zeros: list[Parts] = []
        left, tried = Parts(np.empty(0, int), np.empty(0), np.empty(0)), np.zeros(rows, int)
        while waiting:
            parts = waiting.pop()
            if len(parts.row) > CHUNK:
                waiting.append(parts.where(slice(CHUNK, None)))
                parts = parts.where(slice(CHUNK))
            tried += np.bincount(parts.row, minlength=rows)
            parts = self._narrowed(parts, zeros)
            middle = 0.5 * parts.low + 0.5 * parts.high
            short = parts.high - parts.low <= least
            if short.any():
                left = Parts.joined([left, Parts(parts.row, middle, middle).where(short)])
                left = left.where(np.lexsort((left.low, left.row)))
                self._tell_apart(left)
            if tried.max() > MOST:
                self._refuse(float(parts.low[0]) if len(parts.row) else t0)
            row, low, high, middle = *parts.where(~short), middle[~short]
            if len(row):
                halves = np.stack([low, middle], 1).ravel(), np.stack([middle, high], 1).ravel()
                waiting.append(Parts(np.repeat(row, 2), *halves))
        every = Parts.joined([*zeros, left])
        every = every.where(np.lexsort((every.low, every.row)))
        return np.split(every.low, np.searchsorted(every.row, np.arange(1, rows)))

    def _tell_apart(self, left: Parts) -> None:
        """Raises SolveError where many short parts of one row are next to each other."""
        if len(left.row) > CLOSE:
            near = (left.low[CLOSE:] - left.low[:-CLOSE] <= 2 * CLOSE * self._least) & (left.row[CLOSE:] == left.row[:-CLOSE])
            if near.any():
                self._refuse(float(left.low[:-CLOSE][near][0]))

    def _refuse(self, t: float) -> None:
        raise SolveError(
            f"the times at which {self._form.function} passes 0 cannot be told apart near t = {t:.6g}: end the span before it, or write "
            "the condition with fewer zeros"
        )

    def _narrowed(self, parts: Parts, zeros: list[Parts]) -> Parts:
        """The parts still to be halved; adds zeros to `zeros`."""
        ranges = Ranges(self._form, self._values, *parts)
        g = ranges.order(0)
        some, smooth = (g.low <= 0) & (g.high >= 0), ranges.smooth
        rough, parts = parts.where(some & ~smooth), parts.where(some & smooth)
        for k in range(1, ORDER + 1):
            short = parts.high - parts.low <= (self._span[1] - self._span[0]) * (CURVED if k > 1 else 1.0)
            if not short.any():
                break
            d = Ranges(self._form, self._values, *parts).order(k)
            known = short & ((d.low > 0) | (d.high < 0))
            zeros.append(self._ladder(parts.where(known), k))
            parts = parts.where(~known)
        return Parts.joined([rough, parts])

    def _ladder(self, parts: Parts, k: int) -> Parts:
        """The zeros in parts where derivative k has one sign: those of each derivative split the parts for the next."""
        pieces = parts
        for order in reversed(range(k)):
            roots = self._roots(pieces, order)
            pieces = _split_at(parts, roots)
        return roots

    def _roots(self, parts: Parts, order: int) -> Parts:
        """Zeros of a derivative that is monotone in each part: changes of its sign, and ends at which it is 0 but for rounding."""
        a, b = (self._sign(parts.row, end, order) for end in (parts.low, parts.high))
        crossing = parts.where(a * b < 0)
        inside = self._between(crossing, order)
        at = [(crossing.row, inside), (parts.row[a == 0], parts.low[a == 0]), (parts.row[b == 0], parts.high[b == 0])]
        return Parts.joined([Parts(row, t, t) for row, t in at])

    def _sign(self, row: Array, at: Array, order: int) -> Array:
        """The sign at these times: 0 where rounding decides it."""
        r = Ranges(self._form, self._values, row, at, at).order(order)
        return np.where(r.low > 0, 1, np.where(r.high < 0, -1, 0))

    def _between(self, parts: Parts, order: int) -> Array:
        """The zeros of parts at whose ends the signs differ."""
        if not len(parts.row):
            return parts.low

        def middle(at: Array, row: Array) -> Array:
            r = Ranges(self._form, self._values, row.astype(int), at, at).order(order)
            return 0.5 * r.low + 0.5 * r.high

        from scipy.optimize import elementwise  # some tenth of a second, for few runs

        find: Any = elementwise.find_root
        near = {"xatol": 0.25 * self._least / ONE_TIME, "xrtol": EPS, "fatol": 0.0, "frtol": 0.0}
        return np.asarray(find(middle, (parts.low, parts.high), args=(parts.row,), tolerances=near).x)


def _split_at(parts: Parts, roots: Parts) -> Parts:
    """The pieces of disjoint parts between roots, which lie in these."""
    row, low, high = parts.where(np.lexsort((parts.low, parts.row)))
    edges = Parts.joined([Parts(row, low, low), Parts(row, high, high), roots])
    edges = edges.where(np.lexsort((edges.low, edges.row)))
    after = np.append(np.diff(edges.row) == 0, False)
    after[:-1] &= np.diff(edges.low) > 0
    starts = np.flatnonzero(after)
    place = np.lexsort((np.r_[np.zeros(len(row)), np.ones(len(starts))], np.r_[low, edges.low[starts]], np.r_[row, edges.row[starts]]))
    begun = np.empty(len(place), int)
    begun[place] = np.cumsum(place < len(row)) - 1  # the last part that begins before or at each edge
    inserted = begun[len(row) :]
    inside = (inserted >= 0) & (row[inserted] == edges.row[starts]) & (edges.low[starts] < high[inserted])
    starts = starts[inside]
    return Parts(edges.row[starts], edges.low[starts], edges.low[starts + 1])


def rows_of(form: Form, coefficients: Sequence[Array], indices: int) -> tuple[dict[Symbol, Array], tuple[int, ...]]:
    """{coefficient: its rows, as Ranges has them}, and the shape (members or 1, *indices) of these rows."""
    lead = np.broadcast_shapes((1,), *(v.shape[: 1 + indices] for v in coefficients)) if coefficients else (1,)
    rows = int(np.prod(lead))
    values = {}
    for c, v in zip(form.coefficients, coefficients, strict=True):
        more = v.shape[1 + indices :]
        values[c.symbol] = np.broadcast_to(v, (*lead, *more)).reshape(rows, *more)
    return values, lead


def isolated_rows(form: Form, coefficients: Sequence[Array], indices: int, span: tuple[float, float]) -> list[Array]:
    """The times of each member, or one row for all; coefficients: each coefficient's values (members or 1, *indices, *its sum's extent)."""
    values, lead = rows_of(form, coefficients, indices)
    rows = int(np.prod(lead))
    with np.errstate(all="ignore"):
        times = Search(form, values, *span).times(rows)
    each = rows // lead[0]
    return [np.unique(np.concatenate(times[n : n + each])) for n in range(0, rows, each)]


# Cells are tried from few to many: a lone pulse is seen with 64 whatever its width, since ranges lead to it; a train of p pulses needs some
# 4 p cells, or no half of them rests. STRAIGHT ends that early: of a function that leaves no chord by more, a step sees all.
CELLS = (64, 1024, 1 << 14, 1 << 18)
"""Cells of a span; more where the function does not rest in half of them, and is not nearly straight in all."""
STRAIGHT = 0.02
"""In parts of the range of its values: what a function that is nearly straight leaves the chord by at most."""
# SEEN is the default rtol: less of a pulse changes nothing. ENOUGH spares halves in which a pulse that was seen may only be higher:
# it is known. RESTS is far below the height of a pulse and far above the bow of an oscillation's neighbour within one cell.
SEEN = 1e-6
"""What a function leaves a chord by, in parts of the range of its values, that is looked for."""
ENOUGH = 4
"""Parts of a cell where the function leaves the chord by less than so many times what was seen there are left."""
RESTS = 1e-3
"""A cell rests where the function leaves the chord by less than this part of the most."""
# a pulse of 2^-30 of a cell, 1e-11 of a span, is narrower than any that a parameter with a few digits places within it
HALVINGS, MOST_PARTS = 30, 1 << 12
"""How often a cell is halved at most, and how many parts are looked at together."""


Rows = dict[Symbol, Array]
"""{coefficient: its values (rows,)}, as odesim.run.zeros.Ranges has them."""


def pulse_rows(form: Form, coefficients: Sequence[Array], indices: int, span: tuple[float, float]) -> list[Array]:
    """The times of pulses of each member, or one row for all; arguments as of odesim.run.zeros.isolated_rows."""
    values, lead = rows_of(form, coefficients, indices)
    each = int(np.prod(lead[1:]))
    with np.errstate(all="ignore"):
        return [_times(form, {c: v[k : k + each] for c, v in values.items()}, each, span) for k in range(0, lead[0] * each, each)]


def _times(form: Form, values: Rows, rows: int, span: tuple[float, float]) -> Array:
    for cells in CELLS:
        edges = np.linspace(*span, cells + 1)
        at, height = _look(form, values, rows, edges)
        active = (height > RESTS * height.max(axis=1, keepdims=True)).any(axis=0)
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
        if not 0 < len(live) <= max(MOST_PARTS, len(row)):
            break
    still = np.flatnonzero(~(height > seen))  # a wall in the middle of a cell is on the chord there
    quarter = 0.75 * low[still] + 0.25 * high[still]
    far = np.abs(_samples(form, values, row[still], quarter) - 0.75 * start[still] - 0.25 * end[still])
    walls = far > seen[still]
    at[still[walls]], height[still[walls]] = quarter[walls], far[walls]
    return at.reshape(rows, cells), np.where(height > seen, SEEN * height / seen, 0.0).reshape(rows, cells)


def _highest(form: Form, values: Rows, rows: int, edges: Array, at: Array, active: Array) -> Array:
    """The time in each stretch of active cells at which a function is farthest from the chord of the stretch, if that is a pulse.

    Or in two stretches, if neither is one.
    """
    starts = np.flatnonzero(active & ~np.r_[False, active[:-1]])
    ends = np.flatnonzero(active & ~np.r_[active[1:], False]) + 1

    def pulse(first: int, last: int) -> list[float]:
        times = np.unique(np.r_[edges[first : last + 1], at[:, first:last].ravel()])
        g = _samples(form, values, np.repeat(np.arange(rows), len(times)), np.tile(times, rows)).reshape(rows, len(times))
        chord = g[:, :1] + (g[:, -1:] - g[:, :1]) * (times - times[0]) / (times[-1] - times[0])
        far = np.abs(g - chord) / (np.abs(g[:, -1:] - g[:, :1]) + np.abs(g - chord).max(axis=1, keepdims=True) * 1e-9)
        return [times[np.unravel_index(np.nanargmax(far), far.shape)[1]]] if np.nanmax(far) > 1.0 else []

    each = [pulse(first, last) for first, last in zip(starts.tolist(), ends.tolist(), strict=True)]
    # a wall that comes back at the next one has a top between them, over which a step may pass
    tops = [[] if each[k] or each[k + 1] else pulse(int(starts[k]), int(ends[k + 1])) for k in range(len(each) - 1)]
    return np.unique([t for times in (*each, *tops) for t in times])

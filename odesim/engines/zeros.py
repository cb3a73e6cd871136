"""Times at which a function of time alone passes 0, none missed: interval arithmetic over halves of a span, halved again.

A part where the range of the function does not hold 0 has no zero. Where the range of a derivative of order k does not hold 0, the
derivatives below it are monotone between zeros of the one above them: brackets find these, and at last all zeros. What is left is
so short that it is one time: a jump, a pole, or a zero of high order.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, reduce
from typing import Any

import numpy as np
import sympy as sp
from scipy.optimize import elementwise
from sympy import Expr, Symbol

from odesim.base import intervals
from odesim.base.arrays import Array
from odesim.base.intervals import Range
from odesim.errors import SolveError
from odesim.symbolic.derive import directional_derivative
from odesim.symbolic.expr import time
from odesim.symbolic.reductions import SumOver
from odesim.symbolic.times import with_levels

ORDER = 4
"""The highest derivative that is asked for its sign."""
CURVED = 2.0**-8
"""Parts of the span that are longer are asked for the sign of their first derivative only."""
CHUNK, MOST = 4096, 1 << 21
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
    orders = [flat]
    for _ in range(ORDER):
        orders.append(directional_derivative(orders[-1], {str(time): lambda _: sp.S.One}))
    found: dict[tuple[Expr, Any], Coefficient] = {}
    levels = {symbol: _split(floor.args[0], found, set(floors.values()), {}) for floor, symbol in floors.items()}
    return Form(function, tuple(_split(e, found, set(levels), {}) for e in orders), levels, tuple(found.values()))


def _split(e: Expr, found: dict[tuple[Expr, Any], Coefficient], levels: set[Symbol], axes: Mapping[Symbol, Any]) -> Expr:
    """e with a symbol for each part that is free of time."""
    if e.is_Number or e.is_NumberSymbol or e == time or e in levels:
        return e
    if not e.has(time, *levels):
        key = e, tuple(axes)
        if key not in found:
            found[key] = Coefficient(sp.Dummy("c", real=True), e, axes)
        return found[key].symbol
    if isinstance(e, SumOver):
        ((k, low, last),) = e.limits
        return e.func(_split(e.function, found, levels, {k: last + 1}), (k, low, last))
    return e.func(*(_split(a, found, levels, axes) for a in e.args), **({"evaluate": False} if e.is_Add or e.is_Mul else {}))


class Ranges:
    """The ranges of a Form's functions over parts of time low to high (B,). values {coefficient: numbers, () or along a sum's index}."""

    def __init__(self, form: Form, values: Mapping[Symbol, Array], low: Array, high: Array) -> None:
        self._form, self._values = form, values
        self._known: dict[Expr, Range] = {time: Range(low[:, None], high[:, None])}
        self._size = len(low)

    def order(self, k: int) -> Range:
        """The range of derivative k (B,)."""
        low, high = (np.broadcast_to(end, (self._size, 1))[:, 0] for end in self._of(self._form.orders[k]))
        return Range(low, high)

    @cached_property
    def smooth(self) -> Array:
        """Where no part of the function may jump or grow without bound (B,)."""
        fine = np.ones((self._size, 1), bool)
        self._of(self._form.orders[0])
        for e, r in list(self._known.items()):
            bounded = np.isfinite(r.low) & np.isfinite(r.high)
            fine &= (bounded & (r.low == r.high) if e in self._form.levels else bounded).all(axis=-1, keepdims=True)
        return fine[:, 0]

    def _of(self, e: Expr) -> Range:
        found = self._known.get(e)
        if found is None:
            found = self._known[e] = self._computed(e)
        return found

    def _computed(self, e: Expr) -> Range:
        if e in self._values:
            return intervals.point(self._values[e])
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


class Search:
    """The search for the zeros of one function with these coefficients between t0 and t1."""

    def __init__(self, form: Form, values: Mapping[Symbol, Array], t0: float, t1: float) -> None:
        self._form, self._values, self._span = form, values, (t0, t1)
        self._least = ONE_TIME * float(np.spacing(max(abs(t0), abs(t1))))

    def times(self) -> Array:
        """All times at which the function may pass 0, and perhaps others, in order. Raises SolveError."""
        (t0, t1), least = self._span, self._least
        waiting = [(np.array([t0]), np.array([t1]))]
        found, left, tried = [np.empty(0)], np.empty(0), 0
        while waiting:
            low, high = waiting.pop()
            if len(low) > CHUNK:
                waiting.append((low[CHUNK:], high[CHUNK:]))
                low, high = low[:CHUNK], high[:CHUNK]
            tried += len(low)
            low, high = self._narrowed(low, high, found)
            middle = 0.5 * low + 0.5 * high
            short = high - low <= least
            left = np.sort(np.concatenate([left, middle[short]]))
            row = left[CLOSE:] - left[:-CLOSE] <= 2 * CLOSE * least if len(left) > CLOSE else np.zeros(1, bool)
            if tried > MOST or row.any():
                self._refuse(float(left[:-CLOSE][row][0]) if row.any() else float(low[0] if len(low) else t0))
            if not short.all():
                low, high, middle = low[~short], high[~short], middle[~short]
                waiting.append((np.stack([low, middle], 1).ravel(), np.stack([middle, high], 1).ravel()))
        return np.unique(np.concatenate([*found, left]))

    def _refuse(self, t: float) -> None:
        raise SolveError(
            f"the times at which {self._form.function} passes 0 cannot be told apart near t = {t:.6g}: end the span before it, or write "
            "the condition with fewer zeros"
        )

    def _narrowed(self, low: Array, high: Array, found: list[Array]) -> tuple[Array, Array]:
        """The parts still to be halved; adds zeros to `found`."""
        ranges = Ranges(self._form, self._values, low, high)
        g = ranges.order(0)
        some, smooth = (g.low <= 0) & (g.high >= 0), ranges.smooth
        rough, (low, high) = np.stack([low, high])[:, some & ~smooth], np.stack([low, high])[:, some & smooth]
        for k in range(1, ORDER + 1):
            asked = high - low <= (self._span[1] - self._span[0]) * (CURVED if k > 1 else 1.0)
            if not asked.any():
                break
            d = Ranges(self._form, self._values, low, high).order(k)
            known = asked & ((d.low > 0) | (d.high < 0))
            found.append(self._ladder(low[known], high[known], k))
            low, high = low[~known], high[~known]
        return np.concatenate([rough[0], low]), np.concatenate([rough[1], high])

    def _ladder(self, low: Array, high: Array, k: int) -> Array:
        """The zeros in parts from low to high, where derivative k has one sign: those of each derivative split the parts for the next."""
        low, high, roots = np.sort(low), np.sort(high), np.empty(0)
        for order in reversed(range(k)):
            edges = np.unique(np.concatenate([low, high, roots]))
            part = np.searchsorted(low, edges[:-1], "right") - 1
            inside = edges[:-1] < high[np.maximum(part, 0)] if len(low) else np.empty(0, bool)
            roots = self._roots(edges[:-1][inside], edges[1:][inside], order)
        return roots

    def _roots(self, low: Array, high: Array, order: int) -> Array:
        """Where a derivative that is monotone from low to high changes its sign; ends at which it is 0 but for rounding."""
        if not len(low):
            return np.empty(0)
        a, b = self._sign(low, order), self._sign(high, order)
        crossing = a * b < 0
        inside = self._between(low[crossing], high[crossing], order)
        return np.concatenate([inside, low[a == 0], high[b == 0]])

    def _sign(self, at: Array, order: int) -> Array:
        """The sign at these times: 0 where rounding decides it."""
        r = Ranges(self._form, self._values, at, at).order(order)
        return np.where(r.low > 0, 1, np.where(r.high < 0, -1, 0))

    def _between(self, low: Array, high: Array, order: int) -> Array:
        """The zeros between low and high, where the signs differ."""
        if not len(low):
            return low

        def middle(at: Array) -> Array:
            r = Ranges(self._form, self._values, at, at).order(order)
            return 0.5 * r.low + 0.5 * r.high

        near = 0.25 * self._least / ONE_TIME
        found = elementwise.find_root(middle, (low, high), tolerances={"xatol": near, "xrtol": EPS, "fatol": 0.0, "frtol": 0.0})
        return np.asarray(found.x)


def isolated_rows(form: Form, found: Sequence[Array], indices: int, span: tuple[float, float]) -> list[Array]:
    """The times of each member, or one row for all; found: each coefficient's values (members or 1, *indices, *its sum's extent)."""
    lead = np.broadcast_shapes((1,), *(v.shape[: 1 + indices] for v in found)) if found else (1,)
    rows = []
    for member in range(lead[0]):
        times = [np.empty(0)]
        for place in np.ndindex(*lead[1:]):
            at = {c.symbol: v[(member if len(v) > 1 else 0, *place)] for c, v in zip(form.coefficients, found, strict=True)}
            with np.errstate(all="ignore"):
                times.append(Search(form, at, *span).times())
        rows.append(np.unique(np.concatenate(times)))
    return rows

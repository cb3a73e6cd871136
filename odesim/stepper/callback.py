"""Wraps a Python right-hand side in the C functions that integrators call."""

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from odesim.base.arrays import Array, Layout, check_dtype
from odesim.base.callbacks import COMBINE, STAGE, VALUES, Callbacks

Function = Callable[[float, Array, Array], None]

_VIEWS_KEPT = 256


class _Memory:
    """Arrays on given addresses; the last few hundred are kept, since making one costs more than a small right-hand side."""

    def __init__(self) -> None:
        self._views: dict[tuple[int, int, str], Array] = {}

    def view(self, address: int, count: int, dtype: str) -> Array:
        """The array (count,) at address."""
        key = (address, count, dtype)
        array = self._views.get(key)
        if array is None:
            if len(self._views) >= _VIEWS_KEPT:
                self._views.clear()
            memory: Any = (ctypes.c_char * (count * np.dtype(dtype).itemsize)).from_address(address) if count else b""
            array = self._views[key] = np.frombuffer(memory, dtype)
        return array


class CallbackSystem(Callbacks):
    """The BoundSystem of f(t, y (n,), out (n,)) and events(t, y (n,), g (n_events,)), both writing their last argument.

    After an exception every further call answers NaN, so that the run ends soon; check() raises the exception.
    """

    table = events_table = 0
    scales = False

    def __init__(self, f: Function, layout: Layout, dtype: str = "float64", events: Function | None = None, n_events: int = 0) -> None:
        super().__init__()
        self.f, self.layout, self.dtype, self.n_events = f, layout, check_dtype(dtype), n_events
        self._find, self._memory, self._width = events, _Memory(), np.dtype(self.dtype).itemsize
        self._term, self._state = np.empty((2, layout.size), self.dtype)
        self.stage = self.address(self._stage, STAGE, self._no_stage)
        self.combine = self.address(self._combine, COMBINE, self._combine)
        self.events = self.address(self._events, VALUES, self._no_events) if n_events else 0

    def __call__(self, t: float, y: Array, out: Array) -> None:
        """out (n,) = f(t, y (n,))."""
        self.f(t, y, out)

    def _row(self, address: int, place: int = 0) -> Array:
        """A state (n,), the one at this place of those from the address on."""
        return self._memory.view(address + self._width * self.layout.size * place, self.layout.size, self.dtype)

    def _target(self, K: int, rows: int, s: int) -> Array:
        return self._row(K, int(self._memory.view(rows, s + 1, "int64")[s]))

    def _add_stages(self, out: Array, K: int, rows: int, coef: int, ns: int, lo: int) -> None:
        row, weight = self._memory.view(rows, ns, "int64").tolist(), self._memory.view(coef, ns, "float64").tolist()
        part = self._term[: len(out)]
        for r, w in zip(row, weight, strict=True):
            if w != 0:
                out += np.multiply(self._row(K, r)[lo : lo + len(out)], w, out=part)

    def _stage(self, _: int, t: float, y: int, K: int, rows: int, coef: int, ns: int, s: int, z: int) -> None:
        out = self._row(z) if z else self._state
        out[:] = self._row(y)
        self._add_stages(out, K, rows, coef, ns, 0)
        self.f(t, out, self._target(K, rows, s))

    def _no_stage(self, *arguments: Any) -> None:
        self._target(*(arguments[k] for k in (3, 4, 7)))[:] = np.nan

    def _combine(self, _: int, y: int, K: int, rows: int, coef: int, ns: int, lo: int, hi: int, dst: int) -> None:
        out = self._memory.view(dst, hi - lo, self.dtype)
        out[:] = self._row(y)[lo:hi] if y else 0
        self._add_stages(out, K, rows, coef, ns, lo)

    def _events(self, _: int, t: float, y: int, g: int) -> None:
        assert self._find is not None
        self._find(t, self._row(y), self._memory.view(g, self.n_events, self.dtype))

    def _no_events(self, _: int, t: float, y: int, g: int) -> None:
        self._memory.view(g, self.n_events, self.dtype)[:] = np.nan

"""Wraps a Python right-hand side in the C functions that integrators call."""

import ctypes
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from odesim.base.arrays import Array, Layout, check_dtype

Function = Callable[[float, Array, Array], None]

_I, _F = ctypes.c_int64, ctypes.c_double
_STAGE = ctypes.CFUNCTYPE(None, _I, _F, _I, _I, _I, _I, _I, _I, _I)
_COMBINE = ctypes.CFUNCTYPE(None, _I, _I, _I, _I, _I, _I, _I, _I, _I)
_EVENTS = ctypes.CFUNCTYPE(None, _I, _F, _I, _I)
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


@dataclass
class _Failure:
    """The first exception of a callback, kept until the C function has returned."""

    error: BaseException | None = None


@dataclass(frozen=True)
class CallbackSystem:
    """A BoundSystem around a Python function; made by callback_system."""

    f: Function
    layout: Layout
    dtype: str
    n_events: int
    stage: int
    combine: int
    events: int
    table: int = 0
    events_table: int = 0
    _failure: _Failure = field(default_factory=_Failure)
    _alive: tuple[Any, ...] = ()

    scales = False

    def __call__(self, t: float, y: Array, out: Array) -> None:
        """out (n,) = f(t, y (n,))."""
        self.f(t, y, out)

    def check(self) -> None:
        """Raises the exception of a callback, once."""
        error, self._failure.error = self._failure.error, None
        if error is not None:
            raise error


def callback_system(
    f: Function, layout: Layout, dtype: str = "float64", events: Function | None = None, n_events: int = 0
) -> CallbackSystem:
    """The BoundSystem of f(t, y (n,), out (n,)) and events(t, y (n,), g (n_events,)), both writing their last argument.

    After an exception every further call answers NaN, so that the run ends soon; check() raises the exception. numpy's floating-point
    warnings are off within: a trial step may overflow, and is rejected.
    """
    n, real = layout.size, check_dtype(dtype)
    width = np.dtype(real).itemsize
    memory, failure = _Memory(), _Failure()
    term, state = np.empty(n, real), np.empty(n, real)

    def add_stages(out: Array, K: int, rows: int, coef: int, ns: int, lo: int) -> None:
        row, weight = memory.view(rows, ns, "int64").tolist(), memory.view(coef, ns, "float64").tolist()
        part = term[: len(out)]
        for r, w in zip(row, weight, strict=True):
            if w != 0:
                out += np.multiply(memory.view(K + width * n * r, n, real)[lo : lo + len(out)], w, out=part)

    def stage(table: int, t: float, y: int, K: int, rows: int, coef: int, ns: int, s: int, z: int) -> None:
        k = memory.view(K + width * n * int(memory.view(rows, s + 1, "int64")[s]), n, real)
        if failure.error is None:
            try:
                with np.errstate(all="ignore"):
                    out = memory.view(z, n, real) if z else state
                    out[:] = memory.view(y, n, real)
                    add_stages(out, K, rows, coef, ns, 0)
                    f(t, out, k)
                return
            except BaseException as error:
                failure.error = error
        k[:] = np.nan

    def combine(table: int, y: int, K: int, rows: int, coef: int, ns: int, lo: int, hi: int, dst: int) -> None:
        out = memory.view(dst, hi - lo, real)
        out[:] = memory.view(y, n, real)[lo:hi] if y else 0
        with np.errstate(all="ignore"):
            add_stages(out, K, rows, coef, ns, lo)

    def find_events(table: int, t: float, y: int, g: int) -> None:
        out = memory.view(g, n_events, real)
        if failure.error is None and events is not None:
            try:
                with np.errstate(all="ignore"):
                    events(t, memory.view(y, n, real), out)
                return
            except BaseException as error:
                failure.error = error
        out[:] = np.nan

    functions = (_STAGE(stage), _COMBINE(combine), _EVENTS(find_events))
    at = [ctypes.cast(function, ctypes.c_void_p).value or 0 for function in functions]
    return CallbackSystem(f, layout, real, n_events, at[0], at[1], at[2] if n_events else 0, 0, 0, failure, functions)

"""Small systems for the tests: Python callbacks, and one written by hand for numba."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import carray, types
from numba.extending import intrinsic

from odesim.base.arrays import Array, Layout
from odesim.stepper.callback import CallbackSystem
from odesim.stepper.problem import EventSpec, Problem

Right = Callable[[float, Array], Any]


def problem(
    f: Right,
    y0: Any,
    t1: float,
    *,
    t0: float = 0.0,
    events: Right | None = None,
    specs: tuple[EventSpec, ...] = (),
    dtype: str = "float64",
) -> Problem:
    """The Problem of y' = f(t, y) with y0 (n,) and event values events(t, y), both plain functions of arrays."""
    start = np.atleast_1d(np.array(y0, dtype))

    def right(t: float, y: Array, out: Array) -> None:
        with np.errstate(all="ignore"):
            out[:] = f(t, y)

    def values(t: float, y: Array, g: Array) -> None:
        assert events is not None
        g[:] = events(t, y)

    system = CallbackSystem(right, Layout(("y",), (start.shape,)), dtype, values, sum(s.size for s in specs))
    return Problem(system, start, t0, t1, specs)


def _address(typing_context: Any, address: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.inttoptr(values[0], ir.IntType(8).as_pointer())

    return types.voidptr(types.int64), generate


_pointer: Any = intrinsic(_address)


@cache
def _decay() -> tuple[Any, Any]:
    """stage and combine of y' = -y in float64; the table holds n."""
    i8 = types.int64

    @numba.cfunc(types.void(*[i8] * 9), error_model="numpy")
    def combine(table: int, y: int, K: int, rows: int, coef: int, ns: int, lo: int, hi: int, dst: int) -> None:
        n = carray(_pointer(table), (1,), np.int64)[0]
        row, weight = carray(_pointer(rows), (ns,), np.int64), carray(_pointer(coef), (ns,), np.float64)
        out, k = carray(_pointer(dst), (hi - lo,), np.float64), carray(_pointer(K), (32, n), np.float64)
        old = carray(_pointer(y), (n,), np.float64)
        for i in range(hi - lo):
            s = old[lo + i] if y != 0 else 0.0
            for j in range(ns):
                if weight[j] != 0.0:
                    s += weight[j] * k[row[j], lo + i]
            out[i] = s

    @numba.cfunc(types.void(i8, types.float64, *[i8] * 7), error_model="numpy")
    def stage(table: int, t: float, y: int, K: int, rows: int, coef: int, ns: int, s: int, z: int) -> None:
        n = carray(_pointer(table), (1,), np.int64)[0]
        row, weight = carray(_pointer(rows), (s + 1,), np.int64), carray(_pointer(coef), (ns,), np.float64)
        old, out, k = carray(_pointer(y), (n,), np.float64), carray(_pointer(z), (n,), np.float64), carray(_pointer(K), (32, n), np.float64)
        for i in range(n):
            state = old[i]
            for j in range(ns):
                if weight[j] != 0.0:
                    state += weight[j] * k[row[j], i]
            if z != 0:
                out[i] = state
            k[row[s], i] = -state

    return stage, combine


@dataclass
class Decay:
    """y' = -y with n components, compiled; nothing of it runs in Python."""

    n: int
    dtype: str = "float64"
    events: int = 0
    events_table: int = 0
    n_events: int = 0
    scales: bool = False
    numbers: Array = field(default_factory=lambda: np.zeros(1, np.int64))

    def __post_init__(self) -> None:
        self.numbers[0] = self.n
        self.layout = Layout(("y",), ((self.n,),))
        self.stage, self.combine = (int(f.address) for f in _decay())
        self.table = int(self.numbers.ctypes.data)

    def __call__(self, t: float, y: Array, out: Array) -> None:
        np.negative(y, out=out)

    def check(self) -> None:
        """Nothing can have been raised."""

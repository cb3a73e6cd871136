"""The arrays of one run: everything the driver knows between two calls."""

import math
from typing import Any

import numpy as np

from odesim.arrays import Array
from odesim.solve.explicit import slots as at
from odesim.solve.problem import Problem
from odesim.solve.tableau import Method

_MOST = 2**62


class RunState:
    """The state of a run of this method; `arguments` is what the driver takes."""

    def __init__(self, problem: Problem, method: Method, save: Array, step: float | None, rtol: float, atol: float, max_steps: int) -> None:
        rhs = problem.rhs
        dtype = np.dtype(rhs.dtype)
        n, size = rhs.layout.size, rhs.n_events
        self.problem, self.method, self.save = problem, method, save
        self.count = np.zeros(at.COUNT_SIZE, np.int64)
        self.real = np.zeros(at.REAL_SIZE)
        self.work = np.empty((3, n), dtype)
        self.work[0] = problem.y0
        self.out = np.empty((len(save) + 1, n), dtype)  # one row more, for the last state of a run that stops early
        self._stages = np.empty((method.stages, n), dtype)
        self._coef, self._rows = np.zeros(method.stages), np.arange(method.stages)
        self._block, self._sums = np.empty(min(n, 1024), dtype), np.empty(32 + 2 * ((n + 1023) // 1024))
        self._events = np.empty((3, size), dtype)
        directions = [(event.direction, event.terminal) for event in problem.events for _ in range(event.size)]
        self._direction, self._terminal = np.array(directions, np.int64).reshape(size, 2).T.copy() if size else np.zeros((2, 0), np.int64)
        self._pieces = 4 if method.order <= 5 else 8
        self._found: list[tuple[Array, Array]] = []
        self._new_buffers()
        self._fill_count(max_steps)
        self._fill_real(step, rtol, atol)
        self._at = self._addresses()

    def arguments(self) -> tuple[Any, ...]:
        """What `run` takes."""
        m = self.method
        return (
            self._at, self.count, self.real, m.A, m.c, m.E, m.P, self._coef, self._rows, self.work, self._block, self._sums,
            self.save, self._events, self._direction, self._terminal, self._found_t, self._found_i,
        )  # fmt: skip

    @property
    def t(self) -> float:
        """The last time reached."""
        return float(self.real[at.T])

    @property
    def y(self) -> Array:
        """The state there (n,)."""
        return self.work[self.count[at.Y]]

    def stop(self) -> None:
        """Makes the driver return after the step it is in."""
        self.count[at.STOP] = 1

    def drain_events(self) -> None:
        """Puts the events found so far aside, so that the driver has room for more."""
        found = int(self.count[at.FOUND])
        self._found.append((self._found_t[:found], self._found_i[:found]))
        self.count[at.FOUND] = 0
        self._new_buffers()

    def found(self) -> tuple[Array, Array]:
        """Times and component numbers of all events, in the order of time."""
        self.drain_events()
        times, numbers = (np.concatenate(parts) for parts in zip(*self._found, strict=True))
        order = np.argsort(times, kind="stable")
        return times[order], numbers[order]

    def stats(self) -> dict[str, float]:
        """steps, rejected, rhs_calls."""
        return {"steps": int(self.count[at.STEPS]), "rejected": int(self.count[at.REJECTED]), "rhs_calls": int(self.count[at.RHS_CALLS])}

    def _new_buffers(self) -> None:
        room = max(64, 2 * self._pieces * self._events.shape[1]) if self._events.shape[1] else 0
        self._found_t, self._found_i = np.empty(room), np.empty(room, np.int64)

    def _fill_count(self, max_steps: int) -> None:
        values = {at.MAX: min(max_steps, _MOST), at.LAST: self.method.last, at.ROWS_ALL: self.method.stages, at.PIECES: self._pieces}
        for slot, value in values.items():
            self.count[slot] = value

    def _fill_real(self, step: float | None, rtol: float, atol: float) -> None:
        p, m = self.problem, self.method
        values = {
            at.T: p.t0,
            at.T0: p.t0,
            at.T1: p.t1,
            at.RTOL: max(rtol, 4 * float(np.finfo(p.rhs.dtype).eps)),
            at.ATOL: max(atol, 1e-300),  # 0/0 in the error of a component that stays 0
            at.ERROR_OLD: 1e-4,
            at.SAFETY: 0.9,
            at.ALPHA: m.gains[0],
            at.BETA: m.gains[1],
            at.SHRINK: m.factors[0],
            at.GROW: m.factors[1],
            at.START_POWER: 1 / max(m.error_order, 1),
        }
        for slot, value in values.items():
            self.real[slot] = value
        if step is not None:
            self._fill_fixed(step)

    def _fill_fixed(self, step: float) -> None:
        """t_k = t0 + k step, the last one t1; a last step that differs from step by rounding only is step."""
        span = self.problem.t1 - self.problem.t0
        total = min(max(1, math.ceil(span / step * (1 - 1e-12) - 1e-9)), _MOST)
        rest = self.problem.t1 - (self.problem.t0 + (total - 1) * step)
        self.real[at.FIXED] = step
        self.real[at.FIXED_LAST] = step if abs(rest - step) <= 1e-9 * step else rest
        self.count[at.TOTAL] = total

    def _addresses(self) -> Array:
        rhs = self.problem.rhs
        values = {
            at.STAGE: rhs.stage,
            at.COMBINE: rhs.combine,
            at.EVENTS: rhs.events,
            at.TABLE: rhs.table,
            at.K_: self._stages.ctypes.data,
            at.ROWS: self._rows.ctypes.data,
            at.COEF: self._coef.ctypes.data,
            at.WORK: self.work.ctypes.data,
            at.BLOCK: self._block.ctypes.data,
            at.G: self._events.ctypes.data,
            at.OUT: self.out.ctypes.data,
            at.WIDTH: self.work.itemsize,
        }
        places = np.zeros(at.AT_SIZE, np.int64)
        for slot, value in values.items():
            places[slot] = value
        return places

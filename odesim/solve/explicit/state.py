"""The arrays of one run: everything the driver knows between two calls."""

import math

import numpy as np

from odesim.arrays import Array, aligned_empty
from odesim.solve.explicit import slots
from odesim.solve.problem import Problem
from odesim.solve.tableau import Method

_MOST = 2**62
_EVENT_ROOM = 64


class RunState:
    """The state of a run; `address` is where its table lies, which is all that the driver is told."""

    def __init__(
        self, problem: Problem, method: Method, save: Array, *, step: float | None, rtol: float, atol: float, max_steps: int
    ) -> None:
        self.problem, self.method, self.save, self.step = problem, method, save, step
        self.max_steps = max_steps
        # one value more than the interpolant has powers
        self._pieces = max(4, method.P.shape[1])
        n, dtype = problem.rhs.layout.size, np.dtype(problem.rhs.dtype)
        self.count = np.zeros(slots.COUNT_SIZE, np.int64)
        self.real = np.zeros(slots.REAL_SIZE)
        self.work = aligned_empty((3, n), dtype, turn=9)
        self.work[0] = problem.y0
        self.out = np.empty((len(save) + 1, n), dtype)  # one row more, for the last state of a run that stops early
        self._at = np.zeros(slots.AT_SIZE, np.int64)
        self._found: list[tuple[Array, Array]] = []
        self._kept = self._arrays(n, dtype)
        self._fill_at(n, dtype.itemsize)
        self._fill_real(rtol, atol)
        self._make_room()
        if step is not None:
            self._fill_fixed(step)

    @property
    def address(self) -> int:
        """Where the table of this run lies."""
        return int(self._at.ctypes.data)

    @property
    def t(self) -> float:
        """The last time reached."""
        return float(self.real[slots.T])

    @property
    def y(self) -> Array:
        """The state there (n,), a view."""
        return self.work[self.count[slots.Y]]

    def stop(self) -> None:
        """Makes the driver return after the step it is in."""
        self.count[slots.STOP] = 1

    def drain_events(self) -> None:
        """Puts the events found so far aside, so that the driver has room for more."""
        found = int(self.count[slots.FOUND])
        self._found.append((self._kept[slots.FOUND_T][:found], self._kept[slots.FOUND_I][:found]))
        self.count[slots.FOUND] = 0
        self._make_room()

    def found(self) -> tuple[Array, Array]:
        """Times and component numbers of all events, in the order of time."""
        self.drain_events()
        times, numbers = (np.concatenate(parts) for parts in zip(*self._found, strict=True))
        order = np.argsort(times, kind="stable")
        return times[order], numbers[order]

    def stats(self) -> dict[str, float]:
        """steps, rejected, rhs_calls."""
        names = {"steps": slots.STEPS, "rejected": slots.REJECTED, "rhs_calls": slots.RHS_CALLS}
        return {name: int(self.count[slot]) for name, slot in names.items()}

    def _arrays(self, n: int, dtype: np.dtype) -> dict[int, Array]:
        """All arrays whose addresses stand in the table, by slot."""
        size, stages, m = self.problem.rhs.n_events, self.method.stages, self.method
        events = self.problem.events
        return {
            slots.COUNT: self.count,
            slots.REAL: self.real,
            slots.A: m.A,
            slots.C: m.c,
            slots.E: m.E,
            slots.P: m.P,
            slots.K: aligned_empty((stages, n), dtype, turn=11),
            slots.ROWS: np.arange(stages),
            slots.COEF: np.zeros(stages),
            slots.WORK: self.work,
            slots.BLOCK: aligned_empty(min(n, 1024), dtype, turn=10),
            slots.SUMS: np.empty(32 + (n + 1023) // 1024),
            slots.SAVE: self.save,
            slots.OUT: self.out,
            slots.G: np.empty((self._pieces + 2, size), dtype),
            slots.DIRECTION: np.array([e.direction for e in events for _ in range(e.size)], np.int64),
            slots.TERMINAL: np.array([e.terminal for e in events for _ in range(e.size)], np.int64),
        }

    def _fill_at(self, n: int, width: int) -> None:
        rhs, m = self.problem.rhs, self.method
        numbers = {
            slots.STAGE: rhs.stage,
            slots.COMBINE: rhs.combine,
            slots.EVENTS: rhs.events,
            slots.TABLE: rhs.table,
            slots.N: n,
            slots.WIDTH: width,
            slots.LAST: m.last,
            slots.ROWS_ALL: m.stages,
            slots.DEGREE: m.P.shape[1],
            slots.SAVES: len(self.save),
            slots.SIZE: rhs.n_events,
            slots.PIECES: self._pieces,
            slots.MAX: min(self.max_steps, _MOST),
        }
        for slot, number in (numbers | {slot: array.ctypes.data for slot, array in self._kept.items()}).items():
            self._at[slot] = number

    def _make_room(self) -> None:
        """New arrays for the events to come; a step finds at most one a component and piece."""
        size = self.problem.rhs.n_events
        room = max(_EVENT_ROOM, 2 * size * self._pieces) if size else 0
        self._kept |= {slots.FOUND_T: np.empty(room), slots.FOUND_I: np.empty(room, np.int64)}
        for slot in (slots.FOUND_T, slots.FOUND_I):
            self._at[slot] = self._kept[slot].ctypes.data
        self._at[slots.ROOM] = room

    def _fill_real(self, rtol: float, atol: float) -> None:
        p, m = self.problem, self.method
        numbers = {
            slots.T: p.t0,
            slots.T0: p.t0,
            slots.T1: p.t1,
            slots.RTOL: max(rtol, 4 * float(np.finfo(p.rhs.dtype).eps)),
            slots.ATOL: max(atol, 1e-300),  # a component that stays 0 has the error 0/0 otherwise
            slots.ERROR_OLD: 1e-4,
            slots.SAFETY: 0.9,
            slots.ALPHA: m.gains[0],
            slots.BETA: m.gains[1],
            slots.SHRINK: m.factors[0],
            slots.GROW: m.factors[1],
            slots.START_POWER: 1 / max(m.error_order, 1),
        }
        for slot, number in numbers.items():
            self.real[slot] = number

    def _fill_fixed(self, step: float) -> None:
        """t_k = t0 + k step and at last t1; a last step that differs from the others by rounding only is as long as they."""
        p = self.problem
        total = min(max(1, math.ceil((p.t1 - p.t0) / step - 1e-9)), _MOST)
        rest = p.t1 - (p.t0 + (total - 1) * step)
        self.real[slots.FIXED] = step
        self.real[slots.FIXED_LAST] = step if abs(rest - step) <= 1e-9 * step else rest
        self._at[slots.TOTAL] = total

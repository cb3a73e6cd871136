"""The arrays of one explicit run: its whole state between two calls of the driver."""

from dataclasses import replace
from typing import Any

import numpy as np

from odesim.base.arrays import Array, arena
from odesim.base.options import RunOptions
from odesim.solve.explicit import places
from odesim.solve.laws import Worst
from odesim.solve.methods import Method
from odesim.solve.options import _MOST, fixed_steps, usable
from odesim.solve.problem import Problem, search_facts
from odesim.solve.standing import Standing
from odesim.solve.step import table
from odesim.solve.step.compiled import search_table
from odesim.solve.step.control import LOG2_LEAST_OLD, longest_step
from odesim.solve.step.sizes import found_size, most_zeros

_EVENT_ROOM = 64


def slack_of(rtol: float, atol: float, dtype: str) -> float:
    """The distance outside its assumed set at which a state still counts as inside."""
    return max(usable(rtol, atol, dtype)[1], float(np.finfo(dtype).tiny))


class RunState:
    """The state of a run; `address` is that of its table, the driver's only argument."""

    def __init__(self, problem: Problem, method: Method, save: Array, options: RunOptions) -> None:
        self.problem, self.method, self.save, self.options = problem, method, save, options
        # one value more than the interpolant has powers; a map has no times between two updates
        self.pieces = max(4, method.P.shape[1]) if method.last else 1
        n, dtype = problem.rhs.layout.size, np.dtype(problem.rhs.dtype)
        self.stays: bool = getattr(problem.rhs, "stays", False)  # the saved rows are to stay on the device where they are computed
        # one row more, for the last state of a run that stops early
        self.out: Any = np.empty((0 if self.stays else len(save) + 1, n), dtype)
        self.at = np.zeros(places.AT_SIZE, np.int64)
        self._found: list[tuple[Array, Array]] = []
        self._search, self._answer = search_table(), np.empty(table.ANSWERS)
        self._fill_numbers(n, dtype.itemsize)
        self._fill_arrays(n, dtype)
        self._fill_real(options)
        self._make_room()
        if options.step is not None:
            self._fill_fixed(options.step)

    def anew(self, problem: Problem, save: Array, max_steps: int) -> None:
        """Starts another segment of the same run: only its span, start, saved times and allowed steps are new."""
        self.problem, self.save, self.options = problem, save, replace(self.options, max_steps=max_steps)
        self.out = np.empty((len(save) + 1, len(problem.y0)), self.work.dtype)
        at, real = self.at, self.real
        at[places.SAVE], at[places.OUT], at[places.SAVES] = save.ctypes.data, self.out.ctypes.data, len(save)
        at[places.MAX] = min(max_steps, _MOST)
        self._found = []
        self.count.fill(0)
        self._rows[:] = range(self.method.stages)
        self.work[0] = problem.y0
        real[places.T], real[places.T0], real[places.T1], real[places.H] = problem.t0, problem.t0, problem.t1, 0.0
        real[places.LOG_OLD] = LOG2_LEAST_OLD
        if problem.laws is not None and problem.laws.before is not None:
            self.best[:], self.violations[:], self.law_times[:] = problem.laws.before
            self.count[places.LATER] = 1
        if self.options.step is not None:
            self._fill_fixed(self.options.step)

    @property
    def searches(self) -> bool:
        """Whether steps are searched for events; those of a map have no inside."""
        return self.problem.rhs.n_events > 0 and self.method.last > 0

    def call_search(self, function: int, probe: int) -> None:
        """Makes the driver call the search at this address, which asks the probe at that one."""
        at, size = self.at, self.problem.rhs.n_events
        at[places.SEARCH], at[places.SEARCHED], at[places.ANSWER] = function, self._search.ctypes.data, self._answer.ctypes.data
        given = {name: int(at[getattr(places, name)]) for name in ("SIZE", "PIECES", "FACTS", "ZEROS", "ROOM", "ANSWER")}
        self._search[:] = search_table(ROWS=int(at[places.G]), BETWEEN=size, GAP=1, ASK=probe, ASKED=self.address, **given)

    @property
    def address(self) -> int:
        """The address of this run's table."""
        return int(self.at.ctypes.data)

    @property
    def t(self) -> float:
        """The last time reached."""
        return float(self.real[places.T])

    @property
    def y(self) -> Array:
        """The state there (n,), a view."""
        return self.work[self.count[places.Y]]

    def stop(self) -> None:
        """Makes the driver return after its current step."""
        self.count[places.STOP] = 1

    def drain_events(self) -> None:
        """Moves the events found so far out of the driver's buffer."""
        found = int(self.count[places.FOUND])
        pairs = self.room[: 2 * found].reshape(found, 2)
        self._found.append((pairs[:, 0], pairs[:, 1].copy()))
        self.count[places.FOUND] = 0
        self._make_room()

    def event_records(self) -> tuple[Array, Array]:
        """Times and component numbers of all events, in the order of time."""
        self.drain_events()
        times, numbers = (np.concatenate(parts) for parts in zip(*self._found, strict=True))
        order = np.argsort(times, kind="stable")
        return times[order], numbers[order]

    def watched(self) -> Array | None:
        """The state of the watched laws, for a run that continues this one."""
        return np.stack([self.best, self.violations, self.law_times]) if self.problem.laws else None

    def worst(self) -> Worst:
        """The worst violation of each law so far."""
        laws = self.problem.laws
        return laws.worst(self.violations, self.law_times) if laws else {}

    @property
    def standing(self) -> Standing:
        """The Standing of the run."""
        count, real = self.count, self.real
        steps, rejected, saved = (int(count[place]) for place in (places.STEPS, places.REJECTED, places.SAVED))
        h, rtol, atol = (float(real[place]) for place in (places.H, places.RTOL, places.ATOL))
        return Standing(steps, rejected, saved, h, rtol, atol)

    def stats(self) -> dict[str, float]:
        """steps, rejected, rhs_calls."""
        names = {"steps": places.STEPS, "rejected": places.REJECTED, "rhs_calls": places.RHS_CALLS}
        return {name: int(self.count[slot]) for name, slot in names.items()}

    def _fill_arrays(self, n: int, dtype: np.dtype) -> None:
        """Allocates one memory for all arrays in the table, and fills in their addresses."""
        m, width = self.method, dtype.itemsize
        size, stages = self.problem.rhs.n_events, m.stages
        watched = self.problem.laws.size if self.problem.laws else 0
        self._memory, starts = arena(
            {
                places.COUNT: 8 * places.COUNT_SIZE,
                places.REAL: 8 * places.REAL_SIZE,
                places.ROWS: 8 * stages,
                places.COEF: 8 * stages,
                places.BLOCK: width * min(n, 1024),
                places.SUMS: 8 * (32 + (n + 1023) // 1024),
                places.G: 8 * (self.pieces + 3) * size,
                places.FACTS: 8 * 2 * size,
                **dict.fromkeys((places.LAW_SENSE, places.LAW_NOW, places.LAW_BEST, places.LAW_WORST, places.LAW_TIME), 8 * watched),
                places.WORK: width * 3 * n,
                places.K: width * stages * n,
            }
        )
        base = self._memory.ctypes.data
        for slot, start in starts.items():
            self.at[slot] = base + start
        at = self.at
        at[places.SAVE], at[places.OUT] = self.save.ctypes.data, self.out.ctypes.data
        at[places.A], at[places.C], at[places.E], at[places.P] = m.addresses

        def view(slot: int, count: int, kind: Any = np.int64) -> Array:
            start = starts[slot]
            return self._memory[start : start + count * np.dtype(kind).itemsize].view(kind)

        self.count, self.real = view(places.COUNT, places.COUNT_SIZE), view(places.REAL, places.REAL_SIZE, np.float64)
        self.count.fill(0)
        self.real.fill(0.0)
        self.work = view(places.WORK, 3 * n, dtype).reshape(3, n)
        self.work[0] = self.problem.y0
        self._rows = view(places.ROWS, stages)
        self._rows[:] = range(stages)
        view(places.COEF, stages, np.float64).fill(0.0)
        view(places.FACTS, 2 * size)[:] = search_facts(self.problem).ravel()
        self.best = view(places.LAW_BEST, watched, np.float64)
        self.violations, self.law_times = view(places.LAW_WORST, watched, np.float64), view(places.LAW_TIME, watched, np.float64)
        self.violations.fill(0.0)
        self.law_times.fill(self.problem.t0)
        if self.problem.laws:
            laws = self.problem.laws
            view(places.LAW_SENSE, watched)[:] = laws.senses
            if laws.before is not None:
                self.best[:], self.violations[:], self.law_times[:] = laws.before
                self.count[places.LATER] = 1
            at[places.LAWS], at[places.LAW_TABLE], at[places.LAW_SIZE] = laws.values.events, laws.values.table, watched

    def _fill_numbers(self, n: int, width: int) -> None:
        rhs, m, at = self.problem.rhs, self.method, self.at
        at[places.STAGE], at[places.COMBINE], at[places.EVENTS], at[places.TABLE] = rhs.stage, rhs.combine, rhs.events, rhs.table
        at[places.N], at[places.WIDTH] = n, width
        at[places.LAST], at[places.ROWS_ALL], at[places.DEGREE] = m.last, m.stages, m.P.shape[1]
        at[places.SAVES], at[places.SIZE], at[places.PIECES] = len(self.save), rhs.n_events, self.pieces
        at[places.MAX] = min(self.options.max_steps, _MOST)

    def _make_room(self) -> None:
        """A new array for further events, of two steps at least."""
        at, size = self.at, self.problem.rhs.n_events
        at[places.NEEDED] = most_zeros(size, self.pieces) if size else 0
        room = max(_EVENT_ROOM, 2 * int(at[places.NEEDED])) if size else 0
        self.room = np.empty(found_size(room) if size else 0)
        at[places.ZEROS], at[places.ROOM] = self.room.ctypes.data, room
        self._search[table.ZEROS], self._search[table.ROOM] = self.room.ctypes.data, room

    def _fill_real(self, options: RunOptions) -> None:
        p, m = self.problem, self.method
        real = self.real
        real[places.T], real[places.T0], real[places.T1] = p.t0, p.t0, p.t1
        real[places.RTOL], real[places.ATOL] = usable(options.rtol, options.atol, p.rhs.dtype)
        real[places.LONGEST] = longest_step(options.max_step)
        real[places.LOG_OLD] = LOG2_LEAST_OLD
        (real[places.ALPHA], real[places.BETA]), (real[places.SHRINK], real[places.GROW]) = m.gains, m.factors
        real[places.START_POWER] = 1 / max(m.error_order, 1)

    def _fill_fixed(self, step: float) -> None:
        self.real[places.FIXED] = step
        self.at[places.TOTAL], self.real[places.FIXED_LAST] = fixed_steps(self.problem.t0, self.problem.t1, step)

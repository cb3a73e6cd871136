"""A run on a GPU: the arrays of its state there, and the driver that goes on with it by one launch."""

import ast
import math
from functools import cache
from typing import Any

import numpy as np

from odesim.codegen.cache import source_of
from odesim.codegen.cuda import Driver
from odesim.codegen.transpile import Scope
from odesim.errors import DeviceError
from odesim.gpu import cupy_here, free_bytes, multiprocessors
from odesim.solve.explicit import LOOP, control, slots
from odesim.solve.explicit.state import RunState
from odesim.wording import many

THREADS = 256
MAIL = 16  # numbers that the leader of a launch writes for the others
BLOCKS_EACH = 2  # that a multiprocessor holds at once: all of a launch must run at the same time, for they wait for each other


@cache
def driver_text() -> Driver:
    """The integrator's functions, read and not imported: numba would compile them."""
    numbers = {name: value for name, value in vars(control).items() if isinstance(value, float)}
    functions, known = dict[str, ast.FunctionDef](), {**vars(slots), **numbers, "math": math, "np": np}
    for name in LOOP:
        for node in ast.parse(source_of(name)).body:
            match node:
                case ast.FunctionDef():
                    functions[node.name] = node
                case ast.Assign(targets=[ast.Name(id=constant)], value=ast.Constant(value=value)):
                    known[constant] = value
    words = ("K", "ROWS", "COEF", "N", "SUMS", "LAW_SIZE", "LAW_SENSE", "LAW_NOW", "LAW_BEST", "LAW_WORST", "LAW_TIME")
    places = {word: getattr(slots, word) for word in words}
    return Driver(Scope(functions, known, "solve_"), places)


class DeviceRun:
    """The driver of a run whose right side is on a device: called with an address as the compiled loop is, which it does not need."""

    def __init__(self, state: RunState) -> None:
        cp, rhs = cupy_here(), state.problem.rhs
        self.state, self.kernel = state, rhs.kernel  # type: ignore[attr-defined]
        n, dtype, m = rhs.layout.size, rhs.dtype, state.method
        given = {
            slots.COUNT: state.count, slots.REAL: state.real, slots.SAVE: state.save,
            slots.A: m.A, slots.C: m.c, slots.E: m.E, slots.P: m.P,
            slots.ROWS: np.arange(m.stages), slots.COEF: np.zeros(m.stages),
            slots.DIRECTION: np.array([e.direction for e in state.problem.events for _ in range(e.size)], np.int64),
            slots.TERMINAL: np.array([e.terminal for e in state.problem.events for _ in range(e.size)], np.int64),
        }  # fmt: skip
        self.room = int(state.at[slots.ROOM])
        shapes = {
            slots.WORK: ((3, n), dtype), slots.K: ((m.stages, n), dtype), slots.SUMS: (32 + (n + 1023) // 1024, "float64"),
            slots.G: ((state.pieces + 2) * max(rhs.n_events, 1), dtype), slots.OUT: ((len(state.save) + 1, n), dtype),
            slots.FOUND_T: (max(self.room, 1), "float64"), slots.FOUND_I: (max(self.room, 1), "int64"),
        }  # fmt: skip
        watched = len(state.violations)
        given |= {slots.LAW_SENSE: state.problem.laws.senses} if state.problem.laws else {}
        shapes |= dict.fromkeys((slots.LAW_BEST, slots.LAW_WORST, slots.LAW_TIME), (max(watched, 1), "float64"))
        shapes |= {slots.LAW_NOW: (max(watched, 1), dtype)}
        self.check_room(shapes)
        self.arrays: dict[int, Any] = {slot: cp.asarray(np.ascontiguousarray(array)) for slot, array in given.items()}
        self.arrays |= {slot: cp.zeros(*shape) for slot, shape in shapes.items()}
        if watched:
            for slot, array in ((slots.LAW_BEST, state.best), (slots.LAW_WORST, state.violations), (slots.LAW_TIME, state.law_times)):
                self.arrays[slot][...] = cp.asarray(array)
        self.arrays[slots.WORK][0] = cp.asarray(state.problem.y0)
        at = state.at.copy()
        for slot, array in self.arrays.items():
            at[slot] = array.data.ptr
        at[slots.ROOM] = self.room
        at[slots.TABLE] = rhs.table
        self.table = cp.asarray(at)
        self.mail, self.answer = cp.zeros(MAIL, np.int64), cp.zeros(1, np.int64)
        largest = max(n // 8, 1)  # a right side may have arrays larger than the state
        self.blocks = 1 + min(BLOCKS_EACH * multiprocessors() - 1, -(-largest // 32))
        self.behind = False  # whether the device may be further than count and real say

    def check_room(self, shapes: dict[int, tuple[Any, str]]) -> None:
        """Raises DeviceError where arrays of these shapes and types, most of what a run takes, do not fit into the device's memory."""
        bytes_of = {slot: math.prod(np.atleast_1d(shape).tolist()) * np.dtype(dtype).itemsize for slot, (shape, dtype) in shapes.items()}
        need, free = sum(bytes_of.values()), free_bytes()
        if need > free:
            rows, n = shapes[slots.OUT][0]
            what = f"{self.state.problem.ref}: {many(rows - 1, 'saved time')} of {many(n, 'number')}"
            what += f", and {shapes[slots.K][0][0] + 3} more states of a run"
            raise DeviceError(f"{what}, take {need / 1e9:.3g} GB on the GPU, and {free / 1e9:.3g} GB are free there")

    def __call__(self, address: int) -> int:
        """At most SLICE steps more; how the run stands."""
        cp, state = cupy_here(), self.state
        self.arrays[slots.COUNT][...] = cp.asarray(state.count)
        self.mail[...] = 0
        arguments = (np.int64(self.table.data.ptr), self.mail, self.answer)
        self.behind = True
        self.kernel((self.blocks,), (THREADS,), arguments, enable_cooperative_groups=True)
        code = int(self.answer.get()[0])
        self.catch_up()
        return code

    def catch_up(self) -> None:
        """Where the run stands, and the events that it found."""
        state, count, real = self.state, self.arrays[slots.COUNT].get(), self.arrays[slots.REAL].get()
        found = int(count[slots.FOUND])
        times, numbers = state.room
        times[:found], numbers[:found] = self.arrays[slots.FOUND_T][:found].get(), self.arrays[slots.FOUND_I][:found].get()
        state.real[:] = real
        before, after = slice(slots.STOP), slice(slots.STOP + 1, None)  # STOP is this machine's to set, at any moment
        state.count[before], state.count[after] = count[before], count[after]
        self.behind = False

    def fetch(self) -> None:
        """The state and the saved rows, those that are to stay there as they are; also after an interrupt in the middle of a call."""
        if self.behind:
            self.catch_up()
        state = self.state
        saved, row = int(state.count[slots.SAVED]), int(state.count[slots.Y])
        state.work[row] = self.arrays[slots.WORK][row].get()
        if len(state.violations):
            state.best[:] = self.arrays[slots.LAW_BEST].get()
            state.violations[:], state.law_times[:] = self.arrays[slots.LAW_WORST].get(), self.arrays[slots.LAW_TIME].get()
        if state.stays:
            state.out = self.arrays[slots.OUT]
        else:
            state.out[:saved] = self.arrays[slots.OUT][:saved].get()

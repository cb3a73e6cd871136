"""A run on a GPU: its arrays there, and the driver, one launch a call."""

import ast
import math
from functools import cache
from typing import Any

import numpy as np

from odesim.base.device import cupy_here, multiprocessors
from odesim.base.device import free_device_bytes as free_bytes
from odesim.base.errors import DeviceError, counted
from odesim.base.parsing import parse
from odesim.codegen.cuda.scope import ModuleScope
from odesim.codegen.cuda.source import Driver
from odesim.solve.codes import Code
from odesim.solve.explicit import INLINE, LOOP, places
from odesim.solve.explicit.state import RunState
from odesim.solve.problem import search_facts
from odesim.solve.step import control
from odesim.targets.cache import source_of

THREADS = 256
MAIL = 16  # numbers that the leader of a launch writes for the others
BLOCKS_EACH = 2  # that a multiprocessor holds at once: all of a launch must run at the same time, for they wait for each other


@cache
def driver_text() -> Driver:
    """The source of the integrator's functions, which is read and not imported, since numba would compile them."""
    functions, known = dict[str, ast.FunctionDef](), {**vars(places), **vars(control), "Code": Code, "math": math, "np": np}
    for name in (*LOOP, INLINE):
        for node in parse(source_of(name)).body:
            match node:
                case ast.FunctionDef():
                    functions[node.name] = node
                case ast.Assign(targets=[ast.Name(id=constant)], value=ast.Constant(value=value)):
                    known[constant] = value
    words = ("K", "ROWS", "COEF", "N", "SUMS", "LAW_SIZE", "LAW_SENSE", "LAW_NOW", "LAW_BEST", "LAW_WORST", "LAW_TIME")
    named = {word: getattr(places, word) for word in words}
    return Driver(ModuleScope(functions, known, "solve_"), named)


class DeviceRun:
    """The driver of a run whose right-hand side is on a device. It is called with an address, as the compiled loop is, and ignores it."""

    def __init__(self, state: RunState) -> None:
        cp, rhs = cupy_here(), state.problem.rhs
        self.state, self.kernel = state, rhs.kernel  # type: ignore[attr-defined]
        n, dtype, m = rhs.layout.size, rhs.dtype, state.method
        given = {
            places.COUNT: state.count, places.REAL: state.real, places.SAVE: state.save,
            places.A: m.A, places.C: m.c, places.E: m.E, places.P: m.P,
            places.ROWS: np.arange(m.stages), places.COEF: np.zeros(m.stages),
            places.FACTS: search_facts(state.problem),
        }  # fmt: skip
        self.room = int(state.at[places.ROOM])
        shapes = {
            places.WORK: ((3, n), dtype), places.K: ((m.stages, n), dtype), places.SUMS: (32 + (n + 1023) // 1024, "float64"),
            places.G: ((state.pieces + 3) * max(rhs.n_events, 1), "float64"), places.OUT: ((len(state.save) + 1, n), dtype),
            places.ZEROS: (max(len(state.room), 1), "float64"),
        }  # fmt: skip
        watched = len(state.violations)
        given |= {places.LAW_SENSE: state.problem.laws.senses} if state.problem.laws else {}
        shapes |= dict.fromkeys((places.LAW_BEST, places.LAW_WORST, places.LAW_TIME), (max(watched, 1), "float64"))
        shapes |= {places.LAW_NOW: (max(watched, 1), dtype)}
        self.check_room(shapes)
        self.arrays: dict[int, Any] = {slot: cp.asarray(np.ascontiguousarray(array)) for slot, array in given.items()}
        self.arrays |= {slot: cp.zeros(*shape) for slot, shape in shapes.items()}
        if watched:
            for slot, array in ((places.LAW_BEST, state.best), (places.LAW_WORST, state.violations), (places.LAW_TIME, state.law_times)):
                self.arrays[slot][...] = cp.asarray(array)
        self.arrays[places.WORK][0] = cp.asarray(state.problem.y0)
        at = state.at.copy()
        for slot, array in self.arrays.items():
            at[slot] = array.data.ptr
        at[places.ROOM] = self.room
        at[places.TABLE] = rhs.table
        self.table = cp.asarray(at)
        self.mail, self.answer = cp.zeros(MAIL, np.int64), cp.zeros(1, np.int64)
        largest = max(n // 8, 1)  # a right-hand side may have arrays larger than the state
        self.blocks = 1 + min(BLOCKS_EACH * multiprocessors() - 1, -(-largest // 32))
        self.behind = False  # whether the device may be further than count and real say

    def check_room(self, shapes: dict[int, tuple[Any, str]]) -> None:
        """Raises DeviceError if arrays of these shapes and types, the largest of a run, do not fit into the device's memory."""
        bytes_of = {slot: math.prod(np.atleast_1d(shape).tolist()) * np.dtype(dtype).itemsize for slot, (shape, dtype) in shapes.items()}
        need, free = sum(bytes_of.values()), free_bytes()
        if need > free:
            rows, n = shapes[places.OUT][0]
            what = f"{self.state.problem.ref}: {counted(rows - 1, 'saved time')} of {counted(n, 'number')}"
            what += f", and {shapes[places.K][0][0] + 3} more states of a run"
            raise DeviceError(f"{what}, take {need / 1e9:.3g} GB on the GPU, and {free / 1e9:.3g} GB are free there")

    def __call__(self, address: int) -> int:
        """Runs at most SLICE more steps; returns the Code of the run."""
        cp, state = cupy_here(), self.state
        self.arrays[places.COUNT][...] = cp.asarray(state.count)
        self.mail[...] = 0
        arguments = (np.int64(self.table.data.ptr), self.mail, self.answer)
        self.behind = True
        self.kernel((self.blocks,), (THREADS,), arguments, enable_cooperative_groups=True)
        code = int(self.answer.get()[0])
        self.catch_up()
        return code

    def catch_up(self) -> None:
        """Copies the state of the run and the events it found to the host."""
        state, count, real = self.state, self.arrays[places.COUNT].get(), self.arrays[places.REAL].get()
        found = int(count[places.FOUND])
        state.room[: 2 * found] = self.arrays[places.ZEROS][: 2 * found].get()
        state.real[:] = real
        before, after = slice(places.STOP), slice(places.STOP + 1, None)  # STOP is this machine's to set, at any moment
        state.count[before], state.count[after] = count[before], count[after]
        self.behind = False

    def fetch(self) -> None:
        """Copies the state and the saved rows, except those that stay on the device; also after an interrupt in the middle of a call."""
        if self.behind:
            self.catch_up()
        state = self.state
        saved, row = int(state.count[places.SAVED]), int(state.count[places.Y])
        state.work[row] = self.arrays[places.WORK][row].get()
        if len(state.violations):
            state.best[:] = self.arrays[places.LAW_BEST].get()
            state.violations[:], state.law_times[:] = self.arrays[places.LAW_WORST].get(), self.arrays[places.LAW_TIME].get()
        if state.stays:
            state.out = self.arrays[places.OUT]
        else:
            state.out[:saved] = self.arrays[places.OUT][:saved].get()

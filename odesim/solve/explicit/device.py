"""A run on a GPU: the arrays of its state there, and the driver that goes on with it by one launch."""

import ast
import math
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from odesim.codegen.cuda import Driver
from odesim.codegen.transpile import Scope
from odesim.gpu import cupy_here, multiprocessors
from odesim.solve.explicit import control, slots
from odesim.solve.explicit.state import RunState

THREADS = 256
MAIL = 16  # numbers that the leader of a launch writes for the others
BLOCKS_EACH = 2  # that a multiprocessor holds at once: all of a launch must run at the same time, for they wait for each other


@cache
def driver_text() -> Driver:
    """The integrator's functions, read and not imported: numba would compile them."""
    numbers = {name: value for name, value in vars(control).items() if isinstance(value, float)}
    functions, known = dict[str, ast.FunctionDef](), {**vars(slots), **numbers, "math": math, "np": np}
    for name in ("norms", "control", "dense", "events", "loop"):
        for node in ast.parse(Path(str(slots.__file__)).with_name(f"{name}.py").read_text(encoding="utf-8")).body:
            match node:
                case ast.FunctionDef():
                    functions[node.name] = node
                case ast.Assign(targets=[ast.Name(id=constant)], value=ast.Constant(value=value)):
                    known[constant] = value
    places = {"K": slots.K, "ROWS": slots.ROWS, "COEF": slots.COEF, "N": slots.N, "SUMS": slots.SUMS}
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
        self.arrays: dict[int, Any] = {slot: cp.asarray(np.ascontiguousarray(array)) for slot, array in given.items()}
        self.room = int(state.at[slots.ROOM])
        shapes = {
            slots.WORK: ((3, n), dtype), slots.K: ((m.stages, n), dtype), slots.SUMS: (32 + (n + 1023) // 1024, "float64"),
            slots.G: ((state.pieces + 2) * max(rhs.n_events, 1), dtype), slots.OUT: ((len(state.save) + 1, n), dtype),
            slots.FOUND_T: (max(self.room, 1), "float64"), slots.FOUND_I: (max(self.room, 1), "int64"),
        }  # fmt: skip
        self.arrays |= {slot: cp.zeros(*shape) for slot, shape in shapes.items()}
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

    def __call__(self, address: int) -> int:
        """At most SLICE steps more; how the run stands."""
        cp, state = cupy_here(), self.state
        self.arrays[slots.COUNT][...] = cp.asarray(state.count)
        self.mail[...] = 0
        arguments = (np.int64(self.table.data.ptr), self.mail, self.answer)
        self.kernel((self.blocks,), (THREADS,), arguments, enable_cooperative_groups=True)
        code = int(self.answer.get()[0])
        stop = state.count[slots.STOP]
        state.count[:], state.real[:] = self.arrays[slots.COUNT].get(), self.arrays[slots.REAL].get()
        state.count[slots.STOP] = max(stop, state.count[slots.STOP])
        found = int(state.count[slots.FOUND])
        times, numbers = state.room
        times[:found], numbers[:found] = self.arrays[slots.FOUND_T][:found].get(), self.arrays[slots.FOUND_I][:found].get()
        if code not in (slots.RUNNING, slots.BUFFER_FULL) or state.count[slots.STOP]:
            saved = int(state.count[slots.SAVED])
            state.out[:saved] = self.arrays[slots.OUT][:saved].get()
            row = int(state.count[slots.Y])
            state.work[row] = self.arrays[slots.WORK][row].get()
        return code

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
from odesim.stepper import control
from odesim.stepper.memory import RunState
from odesim.stepper.one_system import SHARED, driver_of
from odesim.stepper.problem import search_facts
from odesim.stepper.table import COUNTS, RUN, places
from odesim.targets.cache import source_of
from odesim.targets.cuda_text import Driver, ModuleScope

THREADS = 256
MAIL = 16  # numbers that the leader of a launch writes for the others
BLOCKS_EACH = 2  # that a multiprocessor holds at once: all of a launch must run at the same time, for they wait for each other


FIND_EVENTS = """
def find_events(at: Any, t: float, used: float, new: float) -> tuple[float, float]:
    facts, zeros, counts, none, every = ints(at[FACTS]), doubles(at[ZEROS]), ints(at[COUNTS]), np.int64(0), np.int64(-1)
    if at[LAST] == 0:
        count, end, place = passed(sample, at, none, facts, at[SIZE], new, zeros, counts[FOUND], at[ROOM])
    else:
        first, room, size = counts[FOUND], at[ROOM], at[SIZE]
        count, end, place = search(sample, probe, at, none, facts, size, at[PIECES], t, used, new, zeros, first, room, every)
    counts[FOUND] = count
    return end, place
"""
"""The search for zeros as a part of the driver: on a GPU nothing is called by its address. It takes the place of that in crossings.py."""


@cache
def driver_text(by_state: bool) -> Driver:
    """The driver's functions as they are printed, and those it calls: read and not imported, since numba would compile them.

    by_state: each state has its own absolute tolerance.
    """
    functions, driver = dict[str, ast.FunctionDef](), driver_of("explicit", by_state)
    known: dict[str, Any] = {**places(RUN), **places(COUNTS), **vars(control), "math": math, "np": np, "inf": math.inf, "nan": math.nan}
    for text in (*map(source_of, SHARED), FIND_EVENTS, driver.text, driver.terms):
        for node in parse(text).body:
            match node:
                case ast.FunctionDef():
                    functions[node.name] = node
                case ast.Assign(targets=[ast.Name(id=constant)], value=ast.Constant(value=value)):
                    known[constant] = value
    return Driver(ModuleScope(functions, known, "solve_"), places(RUN), driver.sums)


class DeviceRun:
    """The driver of a run whose right-hand side is on a device. It is called with an address, as the compiled loop is, and ignores it."""

    def __init__(self, state: RunState) -> None:
        cp, rhs = cupy_here(), state.problem.rhs
        self.state, self.kernel = state, rhs.kernel(state.options.by_state)  # type: ignore[attr-defined]
        n, dtype, m = rhs.layout.size, rhs.dtype, state.method
        copied = {
            "COUNTS": state.counts.view(np.int64), "NUMBERS": state.numbers, "STOP": state.stopping, "TIMES": state.save,
            "A": m.A, "C": m.c, "E": m.E, "P": m.P,
            "ORDER": np.arange(m.stages), "COEF": np.zeros(m.stages),
            "FACTS": search_facts(state.problem.events), "ATOL": state.atol,
        }  # fmt: skip
        shapes = {
            "WORK": ((3, n), dtype), "K": ((m.stages, n), dtype), "SUMS": (32 + (n + 1023) // 1024, "float64"),
            "G": ((state.pieces + 3) * max(rhs.n_events, 1), "float64"), "OUT": ((len(state.save) + 1, n), dtype),
            "ZEROS": (max(len(state.room), 1), "float64"), "LOOKED": (2, "float64"),
        }  # fmt: skip
        watched = len(state.violations)
        copied |= {"LAW_SENSE": state.problem.laws.senses} if state.problem.laws else {}
        shapes |= dict.fromkeys(("LAW_BEST", "LAW_WORST", "LAW_TIME"), (max(watched, 1), "float64"))
        shapes |= {"LAW_NOW": (max(watched, 1), dtype)}
        self.check_room(shapes)
        self.arrays: dict[str, Any] = {slot: cp.asarray(np.ascontiguousarray(array)) for slot, array in copied.items()}
        self.arrays |= {slot: cp.zeros(*shape) for slot, shape in shapes.items()}
        if watched:
            for slot, array in (("LAW_BEST", state.best), ("LAW_WORST", state.violations), ("LAW_TIME", state.law_times)):
                self.arrays[slot][...] = cp.asarray(array)
        self.arrays["WORK"][0] = cp.asarray(state.problem.y0)
        table = state.table.copy()
        for slot, array in self.arrays.items():
            table[slot] = array.data.ptr
        table["TABLE"] = table["EVENTS_TABLE"] = rhs.table
        self.table = cp.asarray(table.view(np.int64))
        self.mail, self.answer = cp.zeros(MAIL, np.int64), cp.zeros(1, np.int64)
        largest = max(n // 8, 1)  # a right-hand side may have arrays larger than the state
        self.blocks = 1 + min(BLOCKS_EACH * multiprocessors() - 1, -(-largest // 32))
        self.behind = False  # whether the device may be further than counts and numbers say

    def check_room(self, shapes: dict[str, tuple[Any, str]]) -> None:
        """Raises DeviceError if arrays of these shapes and types, the largest of a run, do not fit into the device's memory."""
        bytes_of = {slot: math.prod(np.atleast_1d(shape).tolist()) * np.dtype(dtype).itemsize for slot, (shape, dtype) in shapes.items()}
        need, free = sum(bytes_of.values()), free_bytes()
        if need > free:
            rows, n = shapes["OUT"][0]
            what = f"{self.state.problem.ref}: {counted(rows - 1, 'saved time')} of {counted(n, 'number')}"
            what += f", and {shapes['K'][0][0] + 3} more states of a run"
            raise DeviceError(f"{what}, take {need / 1e9:.3g} GB on the GPU, and {free / 1e9:.3g} GB are free there")

    def __call__(self, address: int) -> int:
        """Runs at most `left` more steps; returns the Code of the run."""
        cp, state = cupy_here(), self.state
        for slot, array in (("COUNTS", state.counts.view(np.int64)), ("NUMBERS", state.numbers), ("STOP", state.stopping)):
            self.arrays[slot][...] = cp.asarray(array)
        self.mail[...] = 0
        arguments = (np.int64(self.table.data.ptr), self.mail, self.answer)
        self.behind = True
        self.kernel((self.blocks,), (THREADS,), arguments, enable_cooperative_groups=True)
        code = int(self.answer.get()[0])
        self.catch_up()
        return code

    def catch_up(self) -> None:
        """Copies the numbers of the run and the events it found to the host."""
        state = self.state
        state.counts.view(np.int64)[:], state.numbers[:] = self.arrays["COUNTS"].get(), self.arrays["NUMBERS"].get()
        count = int(state.counts["FOUND"][0])
        state.room[: 2 * count] = self.arrays["ZEROS"][: 2 * count].get()
        self.behind = False

    def fetch(self) -> None:
        """Copies the state and the saved rows, except those that stay on the device; also after an interrupt in the middle of a call."""
        if self.behind:
            self.catch_up()
        state = self.state
        saved, row = int(state["saved"]), int(state["turn"])
        state.work[row] = self.arrays["WORK"][row].get()
        if len(state.violations):
            state.best[:] = self.arrays["LAW_BEST"].get()
            state.violations[:], state.law_times[:] = self.arrays["LAW_WORST"].get(), self.arrays["LAW_TIME"].get()
        if state.stays:
            state.out = self.arrays["OUT"]
        else:
            state.out[:saved] = self.arrays["OUT"][:saved].get()

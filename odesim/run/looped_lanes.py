"""The engine that integrates members in lanes whose right-hand side is a loop over arrays: its kernel, blocks of members, results."""

import ctypes
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from odesim.base.arrays import Array
from odesim.base.device import few_blas_threads
from odesim.base.errors import SpecError
from odesim.base.memo import IdentityKey, Memo
from odesim.ensembles.request import Chunk, EnsembleRequest
from odesim.inputs.bind import Numbers
from odesim.run.lane_call import Columns, call_table, put_statuses, read_by_all, starts, written_by_all
from odesim.run.lane_feed import frames
from odesim.run.lane_kernel import look_numbers, module_text
from odesim.run.lane_plan import AT
from odesim.stepper.looped import Looped
from odesim.stepper.methods import METHODS
from odesim.stepper.readers import Switches, explicit_reader
from odesim.targets.cache import module_name
from odesim.targets.compiled import CompiledRHS
from odesim.targets.native import load_native
from odesim.transforms.lanes import LANES, TIME, lane_system

WIDTH = 16
"""Members side by side: two vectors of 64 bytes hide each other's latency, and the loops of a right-hand side are longer."""
MOST_ROWS = 512
"""The most rows of states and own parameters that lanes with loops may have.

With more rows the members side by side leave the cache, and a single run has matrix products of its own. 32 tokens on a sphere take 0.8 of
the time of single runs with 257 rows, and 1.5 of it with 1025.
"""
CAPACITY = MOST_ROWS + 5
"""Rows of W between two rows of the state: not a power of two, or all of them would fall on the same lines of the cache."""
ARGUMENTS = ("t0", "t1", "rtol", "atol", "longest", "h0", "allowed", "pilot")
MASK = 2 * MOST_ROWS - 1
"""The compiler sees that there are no more components."""
HEAD = (f"n, clock = at[{AT['STATES']}] & {MASK}, at[{AT['CLOCK']}]",)


@lru_cache(maxsize=32)
def looped(method: str, saves: bool, strict: bool, chooses: bool, by_state: bool) -> Looped:
    """The printed step of a method. chooses: the first step follows from the state; else it is one number of the call.

    by_state: each state has its own absolute tolerance.
    """
    reader = explicit_reader(METHODS[method], Switches(saves=saves, chooses=chooses), by_state=by_state)
    reader.known |= look_numbers(METHODS[method], "float64")
    return Looped(reader, WIDTH, CAPACITY, ARGUMENTS, HEAD, strict)


@lru_cache(maxsize=32)
def kernel_text(method: str, saves: bool, strict: bool, chooses: bool, by_state: bool) -> str:
    """The text of the module, one for all systems: `run(table)` integrates members FIRST to END - 1 of a chunk."""
    step, w = looped(method, saves, strict, chooses, by_state), WIDTH
    rows = {row: place * w for row, place in step.places.items() if isinstance(row, str)} | {"f": step.places["k", 0] * w}
    arguments, read = ("at", *ARGUMENTS), [step.places[row] * w for row in step.read_by_right()]
    feed = frames(
        w, rows | {"count": step.count * w}, LOOPS=True, SAVES=saves, LOOKS=True, BY_STATE=by_state, MASK=MASK, READ=read,
        BEGUN=step.begun(), KNOWN=[(0, rows["h"]), (1, rows["code"])], STARTED="n + 2", GIVEN=arguments, STEPPED=arguments,
    )  # fmt: skip
    body = "\n\n\n".join([*step.functions(), *feed.printed("right", "judged", "fill", "run")])
    return module_text(f"{w} lanes with loops of {method}{', strict' if strict else ''}", body, strict)


STEM = "loop_lanes"
BLOCK = 256
"""Members of a block, whatever the threads: which lane a member gets depends on those before it, and its last bits on its lane."""
_WIDE: Memo[CompiledRHS | None] = Memo()


@dataclass(frozen=True)
class LoopLaneEngine:
    """The engine of one System and request.

    right: the right-hand side of the System of several members. varying: the parameters among its states, in their order.
    """

    request: EnsembleRequest
    numbers: Numbers
    right: CompiledRHS
    varying: tuple[str, ...]

    @property
    def text(self) -> str:
        """The text of the kernel."""
        return kernel_text(*printed_for(self.request))

    @property
    def kernel(self) -> Callable[[int], None]:
        """The compiled kernel."""
        return ctypes.CFUNCTYPE(None, ctypes.c_int64)(load_native(self.text, STEM, ["run"])["run"])

    def prepare(self) -> None:
        """Compiles the right-hand side and the kernel, or loads them from the cache."""
        _ = self.right.functions, self.kernel

    @property
    def key(self) -> str:
        """The name of the compiled code: the same name, the same bits."""
        return f"{self.right.key}_{module_name(self.text, STEM)}"

    @cached_property
    def sizes(self) -> dict[str, int]:
        """The sizes of the System of several members."""
        return {**self.numbers.sizes, LANES: WIDTH}

    def integrate(
        self, params: Mapping[str, Array], initial: Mapping[str, Array], count: int, stop: Array, pool: Any, into: Chunk | None = None
    ) -> Chunk:
        """Integrates count members: params and initial {name: (count, *shape)} are their own values. into: for the results.

        stop (1,): 1 begins no other member, 2 leaves those that have begun where they are.
        """
        chunk = into or self.request.allocate(count)
        values = [np.asarray(params[name], np.float64).reshape(count, -1) for name in self.varying]
        own = np.ascontiguousarray(np.concatenate(values, axis=1)) if values else np.empty((count, 0))
        call = Call(self, chunk, stop, read_by_all(self.request, starts(self.request, self.numbers, initial, count), bool(initial)), own)
        blocks = [(first, min(first + BLOCK, count)) for first in range(0, count, BLOCK)]
        with few_blas_threads(self.request.layout.size) if self.right.text.products else nullcontext():
            for _ in (pool.map if pool is not None and len(blocks) > 1 else map)(call.block, blocks):
                pass
        put_statuses(chunk, call.codes)
        chunk.blank_unreached(self.request.times)
        return chunk


def printed_for(request: EnsembleRequest) -> tuple[str, bool, bool, bool, bool]:
    """What the text of a kernel depends on: the method, whether members are saved, strict, first steps are chosen, tolerances by state."""
    options = request.options
    return options.method, request.saves, request.strict, options.first_step is None, options.by_state


class Call:
    """One call of the engine: the arrays that all of its blocks share."""

    def __init__(self, engine: LoopLaneEngine, chunk: Chunk, stop: Array, read: Columns, own: Array) -> None:
        """own (count, k): parameters of members, which are states beside the member's; the time is the last, if any."""
        self.engine, self.kernel, self.step = engine, engine.kernel, looped(*printed_for(engine.request))
        self.codes = np.zeros(len(own), np.int64)
        self.n, layout, gap = engine.request.layout.size, engine.right.layout(engine.sizes), own.shape[1]
        clock = TIME in layout.names
        assert layout.size == (self.n + gap + clock) * WIDTH, "states come first, then own parameters, then the time"
        nothing = np.zeros(max(METHODS[engine.request.options.method].stages, 2), np.int64)
        self.columns = {**read, **written_by_all(chunk, self.codes, np.empty((len(own), self.n))), "STOP": stop, "NOTHING": nothing}
        self.columns |= {"RIGHT": engine.right.functions["stage"], "STATES": self.n, "PARAMS": own, "PARAMS_GAP": gap}
        self.table = call_table({**self.columns, "CLOCK": self.n + gap if clock else -1})

    def block(self, ends: tuple[int, int]) -> None:
        """Integrates members ends[0] to ends[1] - 1."""
        engine = self.engine
        bound = engine.right.bind(engine.sizes, {n: v for n, v in engine.numbers.params.items() if n not in engine.varying})
        memory = np.zeros((self.step.count + 2) * WIDTH + 8)  # most of it is never touched, so it takes no time
        start = np.empty((ends[1] - ends[0], self.n + 2))
        columns = {"STATE": -(-memory.ctypes.data // 64) * 64, "START": start, "TABLE": bound.table, "FIRST": ends[0], "END": ends[1]}
        table = call_table(columns, self.table)  # alive while the kernel reads it
        self.kernel(table.ctypes.data)


def loop_lane_engine(request: EnsembleRequest, numbers: Numbers, varying: frozenset[str]) -> LoopLaneEngine | None:
    """The engine, or None if lanes with loops do not support the request: events, fixed steps, stiff methods, float32."""
    options, method = request.options, METHODS.get(request.options.method)
    watched = request.outputs.events or any(e.terminal for e in request.system.events)
    if method is None or not method.adaptive or options.step is not None or request.strict or request.dtype != "float64":
        return None
    if (watched and request.system.events) or request.switches or request.options.on.gpu or not request.right.on.compiles:
        return None
    right = wide_right(request.right, numbers.sizes, varying)
    mine = tuple(p.name for p in request.right.system.params if p.name in varying)
    return LoopLaneEngine(request, numbers, right, mine) if right is not None else None


def wide_right(one: CompiledRHS, sizes: Mapping[str, int], varying: frozenset[str]) -> CompiledRHS | None:
    """The right-hand side of several members, the same object for the same arguments; None where there is none, or it is too long."""
    sizes = {**sizes, LANES: WIDTH}

    def make() -> CompiledRHS | None:
        try:
            right = CompiledRHS(lane_system(one.system, varying), one.backend, one.dtype, one.strict, sizes)
        except SpecError:
            return None
        return None if right.text.scales or right.layout(sizes).size > MOST_ROWS * WIDTH else right

    return _WIDE((IdentityKey(one), tuple(sorted(varying)), tuple(sorted(sizes.items()))), make)

"""The engine that integrates members in lanes whose right-hand side is a loop over arrays: its memory, blocks of members, and results."""

import ctypes
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np

from odesim.base.arrays import Array, aligned_empty
from odesim.base.device import few_blas_threads
from odesim.base.errors import SpecError
from odesim.base.memo import IdentityKey, Memo
from odesim.codegen.build.cache import module_name, sources_text
from odesim.codegen.build.native import load_native
from odesim.codegen.compiled import CompiledRHS
from odesim.engines.lanes.engine import put_statuses, starts
from odesim.engines.loop_lanes import LOOP, PLAIN, places
from odesim.ensembles.request import Chunk, EnsembleRequest
from odesim.inputs.bind import Numbers
from odesim.solve.auto import stable_up_to
from odesim.stepper.control import HELD, longest_step
from odesim.stepper.methods import METHODS
from odesim.stepper.options import usable
from odesim.transforms.lanes import LANES, TIME, lane_system

SOURCES = ("odesim.stepper.codes", "odesim.engines.loop_lanes.places", "odesim.runtime.memory", *LOOP)
BLOCK = 256
"""Members of a block, whatever the threads: which lane a member gets depends on those before it, and its last bits on its lane."""
MOST_ROWS = 512
"""The most rows of states and own parameters that lanes with loops may have.

With more rows the members side by side leave the cache, and a single run has matrix products of its own. 32 tokens on a sphere take 0.8 of
the time of single runs with 257 rows, and 1.5 of it with 1025.
"""


_WIDE: Memo[CompiledRHS | None] = Memo()


@cache
def kernel_text() -> str:
    """The text of the loop over lanes, one for all systems and methods."""
    return f"{sources_text(SOURCES, PLAIN, '@helper')}\n\nrun = exported(run)\n"


@cache
def kernel() -> Callable[[int], None]:
    """The compiled loop, made once a process."""
    address = load_native(kernel_text(), "loop_lanes", ["run"])["run"]
    found: Callable[[int], None] = ctypes.CFUNCTYPE(None, ctypes.c_int64)(address)
    return found


@dataclass(frozen=True)
class LoopLaneEngine:
    """The engine of one System and request.

    right: the right-hand side of the System of several members. own: the parameters among its states, in their order.
    """

    request: EnsembleRequest
    numbers: Numbers
    right: CompiledRHS
    own: tuple[str, ...]

    def prepare(self) -> None:
        """Compiles the right-hand side and the loop, or loads them from the cache."""
        _ = self.right.functions, kernel()

    @property
    def key(self) -> str:
        """The name of the compiled code: the same name, the same bits."""
        return f"{self.right.key}_{module_name(kernel_text(), 'loop_lanes')}"

    @cached_property
    def sizes(self) -> dict[str, int]:
        """The sizes of the System of several members."""
        return {**self.numbers.sizes, LANES: places.LANES}

    def integrate(
        self, params: Mapping[str, Array], initial: Mapping[str, Array], count: int, stop: Array, pool: Any, into: Chunk | None = None
    ) -> Chunk:
        """Integrates count members: params and initial {name: (count, *shape)} are their own values. into: for the results.

        stop (1,): 1 begins no other member, 2 leaves those that have begun where they are.
        """
        chunk = into or self.request.allocate(count)
        call = Call(self, chunk, count, stop, starts(self.request, self.numbers, initial, count), bool(initial))
        own = [np.asarray(params[name], np.float64).reshape(count, -1) for name in self.own]
        call.put_own(np.ascontiguousarray(np.concatenate(own, axis=1)) if own else np.empty((count, 0)))
        blocks = [(first, min(first + BLOCK, count)) for first in range(0, count, BLOCK)]
        with few_blas_threads(self.request.layout.size) if self.right.text.products else nullcontext():
            for _ in (pool.map if pool is not None and len(blocks) > 1 else map)(call.block, blocks):
                pass
        put_statuses(chunk, call.codes)
        chunk.blank_unreached(self.request.times)
        return chunk


class Call:
    """One call of the engine: the arrays that all of its blocks share."""

    def __init__(self, engine: LoopLaneEngine, chunk: Chunk, count: int, stop: Array, states: Array, each: bool) -> None:
        self.engine, self.count, self.codes = engine, count, np.zeros(count, np.int64)
        request, method = engine.request, METHODS[engine.request.options.method]
        self.n = request.layout.size
        self.table = table = np.zeros(places.AT_SIZE, np.int64)
        self.real = call_numbers(request, method)
        self.k0, self.h0, self.code0 = np.empty((count, self.n)), np.empty(count), np.empty(count)
        self.kept = [states, request.times, stop, chunk]
        table[places.STAGE] = engine.right.functions["stage"]
        table[places.A], table[places.C], table[places.E], table[places.P] = method.addresses
        arrays = {
            places.REAL: self.real, places.Y0: states, places.K0: self.k0, places.H0: self.h0, places.CODE0: self.code0,
            places.SAVE: request.times, places.OUT: chunk.y, places.STATUS: self.codes, places.STEPS: chunk.steps,
            places.REJECTED: chunk.rejected, places.T_END: chunk.t_end, places.STOP: stop,
        }  # fmt: skip
        if chunk.y_end.size:
            arrays[places.END_Y] = chunk.y_end
        for slot, array in arrays.items():
            table[slot] = array.ctypes.data
        table[places.Y0_STEP] = self.n * each
        table[places.LAST], table[places.ROWS_ALL], table[places.DEGREE] = method.last, method.stages, method.P.shape[1]
        table[places.SAVES], table[places.IS_SAVING] = len(request.times), request.saves
        table[places.MOST] = request.options.max_steps
        table[places.PILOT] = request.look or request.options.max_steps

    def put_own(self, own: Array) -> None:
        """Writes each member's own parameters (count, k), and its time where the System has one, into the kernel's memory."""
        layout = self.engine.right.layout(self.engine.sizes)
        clock = TIME in layout.names
        rows = self.n + own.shape[1] + clock
        assert layout.size == rows * places.LANES, "states come first, then own parameters, then the time"
        if clock:
            own = np.concatenate([own, np.zeros((self.count, 1))], axis=1)
        self.own = np.ascontiguousarray(own)
        self.table[places.OWN] = self.own.ctypes.data
        self.table[places.M], self.table[places.N], self.table[places.CLOCK] = rows, self.n, rows - 1 if clock else -1

    def block(self, ends: tuple[int, int]) -> None:
        """Integrates members ends[0] to ends[1] - 1."""
        engine, own = self.engine, self.table.copy()
        bound = engine.right.bind(engine.sizes, {n: v for n, v in engine.numbers.params.items() if n not in engine.own})
        m, method = int(own[places.M]), METHODS[engine.request.options.method]
        rows = places.FIXED_ROWS + 2 * m + 2 * self.n + (method.stages + 1) * m
        memory, nothing = aligned_empty(max(rows * places.LANES, 1024)), np.zeros(max(method.stages, 2), np.int64)
        memory[:] = 0.0
        own[places.WORK], own[places.NOTHING], own[places.TABLE] = memory.ctypes.data, nothing.ctypes.data, bound.table
        own[places.FIRST], own[places.END] = ends
        kernel()(own.ctypes.data)


def call_numbers(request: EnsembleRequest, method: Any) -> Array:
    """Tolerances, span and step-control constants of one kernel call, in the order of odesim.engines.loop_lanes.places."""
    found = np.zeros(places.REAL_SIZE)
    rtol, atol = usable(request.options.rtol, request.options.atol, request.dtype)
    (alpha, beta), (shrink, grow) = method.gains, method.factors
    longest, bound, small = longest_step(request.options.max_step), HELD * stable_up_to(method), float(np.sqrt(np.finfo(request.dtype).eps))
    found[:] = request.t0, request.t1, rtol, atol, longest, alpha, beta, shrink, grow, 1 / max(method.error_order, 1), bound, small
    return found


def loop_lane_engine(request: EnsembleRequest, numbers: Numbers, own: frozenset[str]) -> LoopLaneEngine | None:
    """The engine, or None if lanes with loops do not support the request: strict mode, events, fixed steps, stiff methods, float32."""
    options, method = request.options, METHODS.get(request.options.method)
    watched = request.outputs.events or any(e.terminal for e in request.system.events)
    if method is None or not method.adaptive or options.step is not None or request.strict or request.dtype != "float64":
        return None
    if (watched and request.system.events) or request.switches or request.options.on.gpu or not request.right.on.compiles:
        return None
    right = wide_right(request.right, numbers.sizes, own)
    mine = tuple(p.name for p in request.right.system.params if p.name in own)
    return LoopLaneEngine(request, numbers, right, mine) if right is not None else None


def wide_right(one: CompiledRHS, sizes: Mapping[str, int], own: frozenset[str]) -> CompiledRHS | None:
    """The right-hand side of several members, the same object for the same arguments; None where there is none, or it is too long."""
    sizes = {**sizes, LANES: places.LANES}

    def make() -> CompiledRHS | None:
        try:
            right = CompiledRHS(lane_system(one.system, own), one.backend, one.dtype, False, sizes)
        except SpecError:
            return None
        return None if right.text.scales or right.layout(sizes).size > MOST_ROWS * places.LANES else right

    return _WIDE((IdentityKey(one), tuple(sorted(own)), tuple(sorted(sizes.items()))), make)

"""The engine that integrates members in lanes: its memory, blocks of members for threads, the search for events, and results."""

import ctypes
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from math import prod
from typing import Any

import numpy as np

from odesim.base.arrays import PAGE, Array, aligned_empty
from odesim.base.backends import SERIES
from odesim.base.errors import CodegenError, counted
from odesim.base.memo import IdentityKey, Memo
from odesim.ensembles.request import Chunk, EnsembleRequest
from odesim.inputs.bind import Numbers
from odesim.ir.noise import STEP
from odesim.ir.scalars import Formulas
from odesim.ir.series import taylor_coefficients
from odesim.run.conditions import Turns, part_obstacle
from odesim.run.lane_call import Inputs, call_table, put_statuses, written_by_all
from odesim.run.lane_feed import start_rows
from odesim.run.lane_kernel import kernel_text
from odesim.run.lane_noise import LaneNoise
from odesim.run.lane_plan import AT, KernelPlan, WatchedEvents, facts_of, rows_of
from odesim.run.lane_resets import reset_rules
from odesim.run.rounds import Rounds
from odesim.stepper.drive import search_functions
from odesim.stepper.methods import MAP, METHODS
from odesim.stepper.noise_methods import SCHEMES
from odesim.stepper.rosenbrock_methods import ROSENBROCK
from odesim.stepper.search_samples import memory_size
from odesim.stepper.stabilised_methods import STABILISED
from odesim.stepper.table import ANSWERS, SEARCH, new_table
from odesim.stepper.taylor import Taylor, taylor_method, taylor_order
from odesim.targets.cache import module_name
from odesim.targets.linearization import declared_invariants, verified_invariants
from odesim.targets.native import load_native
from odesim.targets.unroll import write_out, write_values
from odesim.transforms.events import is_affine


class LaneSearch:
    """The search of one block. slots: the addresses that its kernel needs, by their names in odesim.run.lane_plan."""

    def __init__(self, plan: KernelPlan, memory: Array, facts: int, probe: int) -> None:
        """facts: the address of the facts of the events; probe: that of the function that computes them inside a step, or 0."""
        watch, rows, w = plan.watch, rows_of(plan), plan.width
        room = watch.room if watch is not None else 0
        self._zeros, self._answer = np.empty(memory_size(room, watch.size, watch.pieces) if watch is not None else 0), np.empty(ANSWERS)
        self.slots = {"FOUND": self._zeros.ctypes.data}
        if watch is None or not plan.called:
            return
        samples = {"ROWS": rows.samples[0].start, "BETWEEN": watch.size * w, "GAP": w}
        if plan.queued:  # one component in each lane
            samples = {"ROWS": rows.queue.start, "BETWEEN": w, "GAP": 0}
        samples["ROWS"] = memory.ctypes.data + memory.itemsize * samples["ROWS"] * w
        self._table = new_table(
            SEARCH, **samples, SIZE=watch.size, PIECES=watch.pieces, FACTS=facts, ZEROS=self.slots["FOUND"], ROOM=room,
            ANSWER=self._answer.ctypes.data, ASK=probe, ASKED=memory.ctypes.data,
        )  # fmt: skip
        self.slots |= {"SEARCH": search_functions()[plan.called], "SEARCHED": self._table.ctypes.data, "ANSWER": self._answer.ctypes.data}


# one vector of 64 bytes: of two the stack holds what registers hold of one. A fixed step and a step of up to two states hold less, and two
# vectors hide each other's latency (W2f: 13 %, one state: 8 %, two: 7 % faster than one vector; 32 lanes are 2 % slower). Where a step is
# cut into pieces, four states are 8 to 10 % faster by two vectors, ten are 6 % and 24 3 % slower
WIDTH, TWO_WIDTH, FEW, SOME = 8, 16, 2, 8
BLOCKS, LEAST, MOST = 8, 128, 2048  # that a thread takes of a chunk, one at a time, and how many members one has
MOST_STATES = 64
MOST_LINES = 1500  # of the right-hand side written out: beyond it a kernel takes longer to compile than it saves
MOST_SLOPES = 1300  # lines of the right-hand side and its Jacobian, for a stiff method; a quarter may be guards against overflow
METHOD: dict[str, Any] = {**METHODS, **ROSENBROCK, **STABILISED, MAP.name: MAP, **SCHEMES}


def method_of(request: EnsembleRequest) -> Any:
    """The method of a request."""
    name = request.options.method
    return taylor_method(taylor_order(request.options.rtol)) if name in SERIES else METHOD[name]


_PLANS: Memo[KernelPlan | str] = Memo()


@lru_cache(maxsize=64)
def compiled_kernel(plan: KernelPlan) -> dict[str, int]:
    """The addresses of a kernel's functions; made once a process."""
    return load_native(kernel_text(plan), _stem(plan), plan.functions, wide=True)


@lru_cache(maxsize=64)
def kernel_name(plan: KernelPlan) -> str:
    """The name of a kernel: the same name, the same bits."""
    return module_name(kernel_text(plan), _stem(plan))


def _stem(plan: KernelPlan) -> str:
    return f"{plan.name.replace('.', '_')}_lanes"


@dataclass(frozen=True)
class LaneEngine:
    """The engine of one System and request: a kernel, with the numbers that all members share.

    origin (1, n): the state from which all of them began, if it is not the one they start from here. Two fields serve one member that is
    looked at while it runs. lanes: the memory of the one block; times that were not saved are not blanked there. seen: the address of a
    function of (0, time, state, 0) that is called after every step of a stiff method.
    """

    request: EnsembleRequest
    numbers: Numbers
    plan: KernelPlan
    origin: Array | None = None
    lanes: Array | None = None
    seen: int = 0

    def _call(self, name: str, table: Array) -> None:
        """Calls a function of the kernel."""
        ctypes.CFUNCTYPE(None, ctypes.c_int64)(compiled_kernel(self.plan)[name])(table.ctypes.data)

    def prepare(self) -> None:
        """Compiles the kernel and the search for zeros, or loads them from the cache."""
        compiled_kernel(self.plan)
        if self.plan.called:
            search_functions()

    def memory(self) -> Array:
        """The working memory of the lanes of one block: the rows of odesim.run.lane_plan, members and places."""
        block = aligned_empty(max((rows_of(self.plan).count + 2) * self.plan.width, PAGE // 8))  # smaller ones do not start on a cache line
        block[:] = 0.0
        return block

    def integrate(
        self, params: Mapping[str, Array], initial: Mapping[str, Array], count: int, stop: Array, pool: Any, into: Chunk | None = None
    ) -> Chunk:
        """Integrates count members: params and initial {name: (count, *shape)} are their own values. into: for the results.

        stop (1,): 1 begins no other member, 2 leaves those of a stiff method where they are.
        """
        request, plan, chunk = self.request, self.plan, into or self.request.allocate(count)
        call = Inputs(request, self.numbers, plan, params, initial, count, self.origin)
        last = chunk.y_end if chunk.y_end.size else np.empty((count, plan.formulas.states))
        codes, flow, turns = np.zeros(count, np.int64), call.flow, None
        columns = {**call.columns, **written_by_all(chunk, codes, last), "STOP": stop, "SEEN": self.seen}
        if plan.watch is not None:
            columns |= {"FOUND_T": chunk.event_t, "FOUND_I": chunk.event_index, "FOUND_N": chunk.event_count}
        if call.parts is not None:
            turns = Turns(call.parts, codes, chunk.steps, chunk.rejected, request.options.max_steps)
            columns |= {"PART_START": turns.start, "PART_END": turns.end, "PLACES": turns.places}
        table = call_table(columns)
        size = count if pool is None else min(max(count // (BLOCKS * pool._max_workers), LEAST), MOST)
        if flow is not None and pool is not None:  # a round of few members takes as long as one of many
            size = max(LEAST, -(-count // pool._max_workers))
        blocks = [(a, min(a + size, count)) for a in range(0, count, size)]
        run = pool.map if pool is not None and len(blocks) > 1 else map
        one: Callable[..., None] = partial(self._block, table)
        if turns is not None:
            one = partial(self._turns, table, turns, columns)
            if flow is not None:
                flow.slopes = partial(self._rates, table, request.dtype)
                rules = self._resets if plan.resets is not None else None
                one = partial(Rounds(plan, request, flow, turns, columns, chunk, self._march, rules).run, table)
        for _ in run(lambda block: one(*block), blocks):
            pass
        put_statuses(chunk, codes)
        if self.lanes is None:
            chunk.blank_unreached(request.times)
        return chunk

    def _turns(self, table: Array, turns: Turns, columns: Mapping[Any, Any], first: int, end: int) -> None:
        """Integrates members first to end - 1, part by part."""
        members, k = np.arange(first, end), 0
        while len(members):
            turns.begin(members, k)
            self._march(table, members)
            k += 1
            members = turns.left(members, k)
            columns["Y0"][members] = columns["LAST"][members]
            if columns["STOP"][0]:
                return

    def _march(self, table: Array, members: Array) -> None:
        """Integrates these members, each over its part."""
        self._block(call_table({"ORDER": members}, table), 0, len(members))

    def _resets(self, table: Array, members: Array) -> None:
        """Lets compiled rules of events act on members (k,)."""
        assert self.plan.resets is not None
        memory = np.empty(self.plan.resets.rows(self.plan.formulas.count)["end"])
        self._call("resets", call_table({"STATE": memory, "ORDER": members, "END": len(members)}, table))

    def _rates(self, table: Array, dtype: str, members: Array, t: Array, y: Array) -> Array:
        """The derivatives (k, n) of members (k,) at t (k,) and y (k, n)."""
        out, memory, y = np.empty(y.shape), self.memory(), np.ascontiguousarray(y, np.float64)
        columns = {"STATE": memory, "ORDER": members, "LAST": y, "T_END": t, "OUT": out, "END": len(members)}
        self._call("rates", call_table(columns, table))
        return out.astype(dtype, copy=False)

    def _block(self, table: Array, first: int, end: int) -> None:
        """Integrates members first to end - 1."""
        memory = self.memory() if self.lanes is None else self.lanes
        start = np.empty((end - first, len(start_rows(rows_of(self.plan)))))
        search = LaneSearch(self.plan, memory, int(table[AT["FACTS"]]), compiled_kernel(self.plan).get("probe", 0))
        self._call("run", call_table({**search.slots, "STATE": memory, "START": start, "FIRST": first, "END": end}, table))


def member(arrays: Mapping[str, Array], i: int) -> dict[str, Any]:
    """The value of member i: a number, or an array."""
    return {name: values[i] if values.ndim > 1 else values[i].item() for name, values in arrays.items()}


def lane_engine(request: EnsembleRequest, numbers: Numbers, varying: frozenset[str]) -> LaneEngine | None:
    """The engine, or None if lanes do not support the request."""
    if part_obstacle(request, rounds=True):
        return None
    plan = lane_plan(request, numbers, varying)
    return LaneEngine(request, numbers, plan) if isinstance(plan, KernelPlan) else None


def lane_plan(request: EnsembleRequest, numbers: Numbers, varying: frozenset[str]) -> KernelPlan | str:
    """The kernel's plan, or the reason why lanes cannot do it: many states, integers of a member's own, events with a fixed step."""
    whole = {p.name: numbers.params[p.name] for p in request.system.params if p.integer}
    if request.layout.size > MOST_STATES:
        return f"{counted(request.layout.size, 'state')}: at most {MOST_STATES}"
    if what := method_obstacle(request):
        return what
    if varying & set(whole):
        return f"whole numbers that differ between members: {', '.join(sorted(varying & set(whole)))}"
    return _plan(request, numbers, whole)


def method_obstacle(request: EnsembleRequest) -> str:
    """Why a method cannot run in lanes; empty if it can, as every explicit one with a table."""
    if request.options.method in STABILISED:
        return "numbers of stages that differ between members"
    if request.options.method in (*ROSENBROCK, *SERIES) and request.dtype != "float64":
        return request.dtype
    return "a fixed step" if request.options.method in ROSENBROCK and request.options.step is not None else ""


def no_strict(method: str, what: str) -> str:
    """The sentence that a stiff method has no strict mode for this reason."""
    return f"{method} has no strict mode for {what}; {', '.join(m.name for m in METHODS.values() if m.adaptive)} have one"


def _plan(request: EnsembleRequest, numbers: Numbers, whole: Mapping[str, Any]) -> KernelPlan | str:
    """The kernel's plan, the same object for the same request; or what is too long to write out."""
    options, sizes = request.options, tuple(sorted(numbers.sizes.items()))
    known = flags(request)
    asked = IdentityKey(request.right), options.backend, sizes, *known.values(), bool(request.outputs.events), options.halvings > 0
    key = *asked, *(np.asarray(v).tobytes() for v in whole.values())

    def make() -> KernelPlan | str:
        try:
            return _make_plan(request, numbers, whole, known)
        except CodegenError as error:
            return f"a right-hand side that cannot be written out ({error})"

    return _PLANS(key, make)


def flags(request: EnsembleRequest) -> dict[str, Any]:
    """What a plan has of a request as it is."""
    options, fixed = request.options, request.options.step is not None
    asked = {"method": method_of(request), "strict": request.strict, "saves": request.saves, "parts": request.switches}
    limited, by_state = options.max_step is not None and not fixed, options.by_state and not fixed
    steps = {"fixed": fixed, "limited": limited, "chooses": options.first_step is None, "by_state": by_state}
    return {**asked, **steps, "rounds": stops_at_events(request)}


def _make_plan(request: EnsembleRequest, numbers: Numbers, whole: Mapping[str, Any], known: Mapping[str, Any]) -> KernelPlan | str:
    """The plan, or the reason why it is too long. known: its flags. Raises CodegenError."""
    compiled, method = request.right, known["method"]
    formulas = write_out(compiled.system, compiled.program, numbers.sizes, whole, compiled.dtype)
    watch = make_watch(request, numbers.sizes, whole)
    for what, lines in (("a right-hand side", len(formulas.code)), ("events", watch.lines if watch else 0)):
        if lines > MOST_LINES:
            return f"{what} of {counted(lines, 'operation')}: at most {MOST_LINES}"
    rules = reset_rules(request, numbers.sizes, whole)
    plan = KernelPlan(compiled.system.name, formulas, width=WIDTH, watch=watch, resets=rules, **known)
    if isinstance(method, Taylor):
        plan = replace(plan, series=taylor_coefficients(formulas, method.order))
    if request.channels:
        plan = replace(plan, noise=lane_noise(request, formulas))
    small = formulas.states <= (SOME if plan.cut else FEW) and not plan.stiff
    plan = replace(plan, width=1 if request.options.on.gpu else TWO_WIDTH if plan.fixed or small else WIDTH)
    if plan.stiff:
        declared = declared_invariants(compiled.system, numbers.sizes, whole)
        plan = replace(plan, declared=verified_invariants(declared, formulas))
    if plan.stiff and len(plan.linear.code) > MOST_SLOPES:
        return f"a Jacobian of {counted(len(plan.linear.code), 'operation')}: at most {MOST_SLOPES}"
    return plan


def lane_noise(request: EnsembleRequest, formulas: Formulas) -> LaneNoise:
    """The noise of a kernel whose right-hand side are these formulas."""
    places = [formulas.values[name] + i for name, size in request.channels.items() for i in range(size)]
    return LaneNoise(tuple(enumerate(places)), formulas.values.get(STEP, -1), request.options.halvings == 0)


def make_watch(request: EnsembleRequest, sizes: Mapping[str, int], whole: Mapping[str, Any]) -> WatchedEvents | None:
    """The System's events for a kernel; None if none are requested. Raises CodegenError if they are too large."""
    compiled, method = request.right, method_of(request)
    program, events = compiled.events_program, compiled.system.events
    if program is None or not (request.outputs.events or any(e.terminal for e in events)):
        return None
    counts = [prod(shape) for shape in compiled.lengths(*sizes.items()).events]
    affine = [is_affine(compiled.system, e.expr) for e in events]
    facts = facts_of([e.direction for e in events], [e.terminal for e in events], affine, counts)
    return WatchedEvents(
        write_values(compiled.system, program, sizes, whole, compiled.dtype),
        facts,
        1 if method is MAP else max(4, method.P.shape[1] + (request.options.method in ROSENBROCK)),
        bool(request.outputs.events) or stops_at_events(request),
    )


def stops_at_events(request: EnsembleRequest) -> bool:
    """Whether members stop at events and go on."""
    return request.held is not None and bool(request.held.watched)

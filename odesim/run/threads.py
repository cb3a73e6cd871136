"""Integrates an ensemble on a GPU, one thread for each member: inputs, launches, results.

A launch that the device has no memory for is made in halves. Several GPUs share the members of a launch; a member's bits are its own.
"""

import ast
import time
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from odesim.base.arrays import Array, array_namespace
from odesim.base.device import architecture, cupy_here, device_count, device_errors, first_device, load_module
from odesim.base.errors import DeviceError, SolveError, counted
from odesim.ensembles.request import Chunk, EnsembleRequest
from odesim.inputs.bind import Numbers
from odesim.run.conditions import Turns, part_obstacle
from odesim.run.lane_call import Columns, Inputs, call_table, param_columns, put_statuses
from odesim.run.lane_feed import feed_texts
from odesim.run.lane_kernel import function_text, head_text, step_loops
from odesim.run.lane_plan import AT, KernelPlan, Rows
from odesim.run.lanes import lane_plan, method_obstacle
from odesim.stepper.search_samples import memory_size
from odesim.targets.cuda_text import ModuleScope, Translation, cuda_source, module_scope
from odesim.targets.cuda_words import INT, REAL
from odesim.targets.nvrtc import compile_cubin, options_for

# The CUDA text of an ensemble: one thread integrates one member from start to end.
#
# The functions are those of a lane kernel of width one (odesim.run.lane_kernel), translated; only what leads them is written here. A row
# of S is one number of the thread: all places in S are constants, so that the compiler keeps them in registers.

THREADS = 64  # of a block: a thread's registers allow no more than a few hundred on a multiprocessor
MOST_NEAR = 4  # states all of whose rows are registers, where no events are watched
KERNEL = """
template <class A, class B> __device__ __forceinline__ void odesim_copy(A* to, const B* from) {{
    {copies}
}}
__device__ __forceinline__ long long odesim_asked(long long place) {{ return *(volatile long long*)place; }}

{functions}

extern "C" __global__ void __launch_bounds__({threads}, 1) ensemble(long long table) {{
    long long* at = (long long*)table;
    const long long {turn} = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if ({turn} >= at[{END}]) return;{chosen}
    double S[{rows}], zeros[{zeros}];
    volatile double T[{searched}];  // not for registers
    {zeroed}
    {member}(at, S, T, zeros, i);
}}
""".strip("\n")


def thread_source(plan: KernelPlan) -> str:
    """The source with the kernel `ensemble(table)`, which integrates members 0 to END - 1. plan: of width one."""
    rows = Rows(plan)
    far, scope = distant_rows(plan, rows), thread_scope(plan)
    translation = Translation(by_hand={"copy_all": (None, "odesim_copy"), "asked": (INT, "odesim_asked")}, apart=frozenset({"search"}))
    member = translation.function(scope, "member", (f"{INT}*", f"{REAL}*", f"volatile {REAL}*", f"{REAL}*", INT))
    watch = plan.watch
    words = {"threads": THREADS, "END": AT["END"], "rows": rows.count, "member": member.name, "turn": "i", "chosen": ""}
    if plan.parts:
        words |= {"turn": "turn", "chosen": f"\n    const long long i = ((const long long*)at[{AT['ORDER']}])[turn];"}
    words |= {"searched": rows.count if watch or far else 1, "zeros": memory_size(watch.room) if watch else 1}
    each = [k for k in range(rows.count) if k not in far] if watch else []  # line by line: a loop over S would keep it in memory
    words |= {"copies": " ".join(f"to[{k}] = from[{k}];" for k in each), "zeroed": " ".join(f"S[{k}] = 0.0;" for k in range(rows.count))}
    about = (
        f"{plan.name}, {plan.method.name}, {plan.formulas.dtype}{', fixed step' if plan.fixed else ''}{', strict' if plan.strict else ''}"
    )
    return cuda_source(f"{about}: one member a thread, generated", KERNEL.format(functions=translation.text(), **words))


def thread_scope(plan: KernelPlan) -> ModuleScope:
    """The Python functions of one member, before translation."""
    rows = Rows(plan)
    body = "\n\n\n".join([function_text("right", plan.formulas), *step_loops(plan, rows), *feed_texts(plan, rows, thread=True)])
    scope, far = module_scope(f"{head_text(plan, body)}\n\n\n{body}\n"), distant_rows(plan, rows)
    return replace(scope, functions={name: InThread(far).visit(function) for name, function in scope.functions.items()})


def distant_rows(plan: KernelPlan, rows: Rows) -> set[int]:
    """The rows that lie in T and not in S.

    With states between steps there are more rows than a thread has registers for. Then only the state and its derivative stay in S.
    """
    few = plan.watch is None and plan.formulas.states <= MOST_NEAR
    if plan.loops or few or not plan.dense:  # loops: all rows lie in memory anyway
        return set()
    return set(range(rows.count)) - {*rows.y, *rows.f, *rows.slopes}


class InThread(ast.NodeTransformer):
    """A lane's function for a thread, whose lane is 0, with distant rows in T. What a search calls is given a T that holds all of S."""

    def __init__(self, far: Collection[int], apart: bool = True) -> None:
        self.far, self.apart = far, apart

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        apart = node.name not in ("probe", "sample")
        if apart and node.args.args and node.args.args[0].arg == "S":
            node.args.args.insert(1, ast.arg("T"))
        inside = InThread(self.far if apart else (), apart)
        node.body = [inside.visit(s) for s in node.body]
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.Subscript:
        self.generic_visit(node)
        if isinstance(node.value, ast.Name) and node.value.id == "S":
            match node.slice:
                case ast.Name(id="l"):
                    node.slice = ast.Constant(0)
                case ast.BinOp(left=place, op=ast.Add(), right=ast.Name(id="l")):
                    node.slice = place
            if isinstance(node.slice, ast.Constant) and node.slice.value in self.far:
                node.value = ast.Name("T")
        return node

    def visit_Call(self, node: ast.Call) -> ast.Call:
        self.generic_visit(node)
        match node:
            case ast.Call(func=ast.Name(id=name), args=[ast.Name(id="S"), *_]) if self.apart and name != "copy_all":
                node.args.insert(1, ast.Name("T"))
        return node


TOGETHER = 1 << 20  # members of a launch
MOST_BYTES = 1 << 28  # of what comes back from one
PAUSE = 2e-4  # s between two looks at a launch that is under way
NOT_READY = 600  # cudaErrorNotReady


def device_engine(request: EnsembleRequest, numbers: Numbers, varying: frozenset[str]) -> "DeviceEngine":
    """The engine. varying: names of members' own values. Raises SolveError for what a thread cannot do, CodegenError without a GPU."""
    plan = "the rescaled clock" if request.rescaled is not None else lane_plan(request, numbers, varying)
    plan = part_obstacle(request) or plan
    if isinstance(plan, str):
        what = f"{request.options.method} with {plan}" if plan == method_obstacle(request) else plan
        raise SolveError(f"an ensemble of {request.system.name} has no backend cuda for {what}; the backend numba can do it")
    return DeviceEngine(request, numbers, plan)


@lru_cache(maxsize=64)
def source_of(plan: KernelPlan) -> str:
    """The CUDA text of a plan, generated once a process."""
    return thread_source(plan)


@lru_cache(maxsize=64)
def kernel_of(plan: KernelPlan, device: int) -> Any:
    """The kernel `ensemble` compiled for the current device of this thread."""
    options = options_for(architecture(device), plan.strict)
    return load_module(compile_cubin(source_of(plan), f"{plan.name.replace('.', '_')}_threads", options).code).get_function("ensemble")


@dataclass(frozen=True)
class DeviceEngine:
    """A kernel for members of one System and request, with the numbers that all members share. plan: of width one."""

    request: EnsembleRequest
    numbers: Numbers
    plan: KernelPlan

    @property
    def members_at_once(self) -> int:
        """The number of members for one launch, as many as fit into the memory allowed."""
        return max(1, min(TOGETHER, MOST_BYTES // max(self.request.member_bytes, 1)))

    def prepare(self) -> None:
        """Compiles the kernel, or loads it from the cache."""
        for device in range(device_count()):
            with device_errors(f"the kernel of {self.request.system.name}", "smaller sizes"), cupy_here().cuda.Device(device):
                kernel_of(self.plan, device)

    def integrate(
        self, params: Mapping[str, Array], initial: Mapping[str, Array], count: int, stop: Array, pool: Any, into: Chunk | None = None
    ) -> Chunk:
        """Integrates count members: params and initial {name: (count, *shape)} are their own values.

        into: the chunk for the results. If states are to stay on a GPU, the first GPU alone integrates.
        """
        chunk = into or self.request.allocate(count)
        on_host = array_namespace(chunk.y) is np
        devices = min(device_count(), -(-count // THREADS)) if on_host else 1
        edges = [count * k // devices for k in range(devices + 1)]

        def share(device: int) -> None:
            with cupy_here().cuda.Device(device):
                self._members(device, params, initial, edges[device], edges[device + 1], stop, chunk)

        with device_errors(f"{counted(count, 'member')} of {self.request.system.name}", "fewer members or saved times"):
            if devices == 1:
                share(0)
            else:
                with ThreadPoolExecutor(devices) as each:
                    try:
                        for _ in each.map(share, range(devices)):
                            pass
                    except BaseException:
                        stop[0] = 1  # the other devices need not go on
                        raise
        chunk.blank_unreached(self.request.times)
        return chunk

    def _members(self, device: int, params: Any, initial: Any, first: int, end: int, stop: Array, chunk: Chunk) -> None:
        """Integrates members first to end - 1; in halves if they are too many for the device. Raises SolveError if one is."""
        cp = cupy_here()
        part = slice(first, end)
        try:
            rows = [{name: values[part] for name, values in arrays.items()} for arrays in (params, initial)]
            Launch(self, rows[0], rows[1], end - first).run(kernel_of(self.plan, device), stop, chunk.select(part))
            return
        except cp.cuda.memory.OutOfMemoryError as error:
            if end - first == 1:
                raise DeviceError(f"the GPU has no memory for one member of {self.request.member_bytes} bytes: {error}") from None
        cp.get_default_memory_pool().free_all_blocks()
        middle = (first + end) // 2
        for a, b in ((first, middle), (middle, end)):
            self._members(device, params, initial, a, b, stop, chunk)


def empty_there(shape: tuple[int, ...], dtype: str = "float64") -> Any:
    """An uninitialized array on the first GPU. Raises DeviceError if it does not fit."""
    what = f"{counted(shape[0], 'member')}, {counted(shape[1], 'saved time')} of {counted(shape[2], 'number')} each"
    with device_errors(what, "fewer"), first_device():
        return cupy_here().empty(shape, dtype)


class Launch:
    """One launch: its arrays on the device, results as [save][state][member]."""

    def __init__(self, engine: DeviceEngine, params: Mapping[str, Array], initial: Mapping[str, Array], count: int) -> None:
        cp, request, plan = cupy_here(), engine.request, engine.plan
        self.engine, self.count, n, events = engine, count, plan.formulas.states, (count, len(request.outputs.events))
        call = Inputs(request, engine.numbers, plan, params, initial, count)
        self.columns = {name: cp.asarray(value) if isinstance(value, np.ndarray) else value for name, value in call.columns.items()}
        self.columns |= {name: cp.zeros(count, np.int64) for name in ("STATUS", "STEPS", "REJECTED")}
        self.columns |= {"OUT": cp.empty((len(request.times), n, count)), "LAST": cp.empty((n, count)), "T_END": cp.zeros(count)}
        if plan.watch is not None:
            places = *events, request.outputs.max_events
            self.columns |= {"FOUND_T": cp.full(places, np.nan), "FOUND_I": cp.full(places, -1, np.int64)}
            self.columns["FOUND_N"] = cp.zeros(events, np.int64)
        self.turns: Turns | None = None
        if call.parts is not None:
            codes, steps, rejected = np.zeros((3, count), np.int64)
            self.turns = Turns(call.parts, codes, steps, rejected, request.options.max_steps)
            self.columns |= {"PART_START": cp.zeros(count), "PART_END": cp.zeros(count)}
            self.columns |= {"PLACES": cp.zeros(count, np.int64), "ORDER": cp.arange(count)}
        self.stop = pinned_flag()
        self.table = cp.asarray(call_table({**self.columns, "STOP": self.stop, "END": count, "COUNT": count}))

    def run(self, kernel: Any, stop: Array, chunk: Chunk) -> None:
        """Launches the kernel, waits, and copies the results into the chunk."""
        if self.turns is None:
            self.launch(kernel, stop, self.count)
        else:
            self.take_turns(kernel, stop, self.turns)
        self.put_all(chunk)

    def take_turns(self, kernel: Any, stop: Array, turns: Turns) -> None:
        """Launches the kernel once for each part of the run."""
        cp, arrays, place = cupy_here(), self.columns, param_columns(self.engine.plan)
        members, k = np.arange(self.count), 0
        while len(members):
            turns.begin(members, k)
            columns: Columns = {"PART_START": turns.start, "PART_END": turns.end, "STATUS": turns.codes}
            for column, values in (columns | {place[name]: values for name, values in turns.parts.modes.items()}).items():
                arrays[column][...] = cp.asarray(values)
            arrays["ORDER"][: len(members)] = cp.asarray(members)
            self.table[AT["END"]] = len(members)
            self.launch(kernel, stop, len(members))
            k += 1
            for name, kept in (("STATUS", turns.codes), ("STEPS", turns.steps), ("REJECTED", turns.rejected)):
                kept[...] = arrays[name].get()
            members = turns.left(members, k)
            if len(members):
                at = cp.asarray(members)
                arrays["Y0"][at] = arrays["LAST"].T[at]
            if stop[0]:
                break
        arrays["STATUS"][...] = cp.asarray(turns.codes)

    def launch(self, kernel: Any, stop: Array, count: int) -> None:
        """Integrates the first `count` members of the order, or of all, one thread each; waits for them."""
        cp = cupy_here()
        self.stop[0] = stop[0]
        kernel((-(-count // THREADS),), (THREADS,), (np.int64(self.table.data.ptr),))
        done = cp.cuda.Event(disable_timing=True)
        done.record()
        try:
            while cp.cuda.runtime.eventQuery(done.ptr) == NOT_READY:  # after a fault `done.done` stays false for ever
                self.stop[0] = stop[0]
                time.sleep(PAUSE)
        except KeyboardInterrupt:  # the threads end before what they use is freed
            self.stop[0] = 1
            done.synchronize()
            raise
        done.synchronize()  # raises what went wrong there

    def put_all(self, chunk: Chunk) -> None:
        """Copies the results into the chunk."""
        cp = cupy_here()
        arrays, request = self.columns, self.engine.request
        put(arrays["OUT"].transpose(2, 0, 1), chunk.y)
        for name, kept in (("T_END", chunk.t_end), ("STEPS", chunk.steps), ("REJECTED", chunk.rejected)):
            put(arrays[name], kept)
        if self.engine.plan.watch is not None and request.outputs.events:
            for name, kept in (("FOUND_T", chunk.event_t), ("FOUND_I", chunk.event_index), ("FOUND_N", chunk.event_count)):
                put(arrays[name], kept)
        if chunk.y_end.size:
            put(cp.ascontiguousarray(arrays["LAST"].T), chunk.y_end)
        put_statuses(chunk, arrays["STATUS"].get())


def put(source: Any, target: Array) -> None:
    """Copies an array from the device to its target, in one copy if that is contiguous; the target may be on the device."""
    if array_namespace(target) is not np:
        target[...] = source
    elif target.flags.c_contiguous:
        cupy_here().ascontiguousarray(source).get(out=target)
    else:
        target[...] = source.get()


def pinned_flag() -> Array:
    """An integer in page-locked memory of the host, which the device reads directly."""
    memory = cupy_here().cuda.alloc_pinned_memory(8)
    flag = np.frombuffer(memory, np.int64, 1)
    flag[0] = 0
    return flag

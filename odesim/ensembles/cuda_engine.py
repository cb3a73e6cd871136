"""Members integrated on a GPU: numbers to the device, one launch a chunk, halved where memory does not suffice, and what came out."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any

import numpy as np

from odesim.arrays import Array
from odesim.bind import Numbers
from odesim.codegen.nvrtc import compile_cubin, options_for
from odesim.ensembles.cuda_text import AT, BLOCK, SLOTS, cuda_text
from odesim.ensembles.judge import judge
from odesim.ensembles.lane_rows import Plan
from odesim.ensembles.result import UNDONE, Chunk, Request
from odesim.errors import CodegenError
from odesim.gpu import architecture, compute_module, cupy_here
from odesim.solve.explicit.state import usable

WAVE = 1 << 18  # members a launch: between two of them a run can stop


@lru_cache(maxsize=64)
def compiled_kernel(plan: Plan, device: int) -> Any:
    """The kernel on a device, made once a process."""
    stem = f"{plan.name.replace('.', '_')}_members"
    cubin = compile_cubin(cuda_text(plan), stem, options_for(architecture(device), plan.strict))
    return compute_module(cubin.code).get_function("members")


@dataclass(frozen=True)
class CudaEngine:
    """A kernel for members of one System and request, with the numbers that all of them share, on a device."""

    request: Request
    numbers: Numbers
    plan: Plan
    device: int = 0

    def prepare(self) -> None:
        """Compiles, or loads what was compiled before. Raises CodegenError without a GPU."""
        with cupy_here().cuda.Device(self.device):
            compiled_kernel(self.plan, self.device)

    def integrate(self, params: Mapping[str, Any], initial: Mapping[str, Any], count: int, stop: Array, pool: Any) -> Chunk:
        """count members: params and initial {name: (count, *shape)} hold what is a member's own, in numpy's or cupy's memory."""
        chunk = Chunk.empty(count, len(self.request.times), self.plan.formulas.states)
        with cupy_here().cuda.Device(self.device):
            first, size = 0, min(count, WAVE)
            while first < count and not stop[0]:
                end = min(first + size, count)
                own = [{name: values[first:end] for name, values in given.items()} for given in (params, initial)]
                try:
                    part = self._launch(own[0], own[1], end - first)
                except cupy_here().cuda.memory.OutOfMemoryError as error:
                    if size == 1:
                        raise CodegenError(f"the GPU has no memory for one member: {error}") from None
                    size = (size + 1) // 2
                    cupy_here().get_default_memory_pool().free_all_blocks()
                    continue
                for f in fields(Chunk):
                    getattr(chunk, f.name)[first:end] = getattr(part, f.name)
                first = end
        return chunk

    def _launch(self, params: Mapping[str, Any], initial: Mapping[str, Any], count: int) -> Chunk:
        cp, request, n = cupy_here(), self.request, self.plan.formulas.states
        times = len(request.times)
        out, last = cp.full((times, n, count), np.nan), cp.empty((n, count))
        whole = cp.zeros((3, count), np.int64)
        t_end = cp.full(count, np.nan)
        tolerances = usable(request.rtol, request.atol, request.dtype)
        save, reals = cp.asarray(request.times), cp.asarray(np.array([request.t0, request.t1, *tolerances]))
        given = [self._starts(initial, count), *(self._values(name, params) for name in self.plan.formulas.values)]
        table = np.zeros(len(SLOTS) + 3 * len(given), np.int64)
        arrays = {"OUT": out, "LAST": last, "STATUS": whole[0], "STEPS": whole[1], "REJECTED": whole[2], "T_END": t_end, "SAVE": save}
        for name, array in {**arrays, "REALS": reals}.items():
            table[AT[name]] = array.data.ptr
        table[AT["SAVES"]], table[AT["COUNT"]], table[AT["MOST"]] = times, count, request.max_steps
        for k, (array, own) in enumerate(given):
            table[AT["GIVEN"] + 3 * k :][:3] = array.data.ptr, int(own), count if own else 1
        where = cp.asarray(table)
        kernel = compiled_kernel(self.plan, self.device)
        kernel((-(-count // BLOCK),), (BLOCK,), (where, np.int64(0), np.int64(count)))
        codes, steps, rejected = whole.get()
        chunk = Chunk(np.ascontiguousarray(out.get().transpose(2, 0, 1)), np.full(count, UNDONE, np.int8), t_end.get(), steps, rejected)
        judge(request, self.numbers, chunk, codes, lambda i: last[:, i].get(), params)
        return chunk

    def _starts(self, initial: Mapping[str, Any], count: int) -> tuple[Any, bool]:
        """The starts as [entry][member], or [entry] where all members have the same."""
        cp, layout = cupy_here(), self.request.layout
        states = cp.empty((layout.size, count if initial else 1))
        for name, view in layout.split(states.T).items():
            view[...] = cp.asarray(initial.get(name, self.numbers.initial[name]))
        return states, bool(initial)

    def _values(self, name: str, params: Mapping[str, Any]) -> tuple[Any, bool]:
        """A parameter as [entry][member], or [entry]."""
        cp, own = cupy_here(), name in params
        values = cp.asarray(params[name] if own else self.numbers.params[name], np.float64)
        return (cp.ascontiguousarray(values.reshape(len(values), -1).T) if own else values), own

"""A System with its numbers on a GPU: its integration kernel, and the table from which that reads sizes and arrays."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from odesim.base.arrays import Array, Layout
from odesim.base.device import architecture, cupy_here, current_device, load_module
from odesim.ir.sizes import extents
from odesim.targets.compiled import CompiledRHS
from odesim.targets.cuda_system import part_size, wide_text
from odesim.targets.cuda_text import Driver
from odesim.targets.numba_module import ModuleText
from odesim.targets.nvrtc import compile_cubin, options_for


@dataclass(frozen=True)
class CudaRHS:
    """The right-hand side of a System for GPUs, compiled once for all sizes. kernels: {number of a device: kernel}."""

    compiled: CompiledRHS
    driver: Driver
    kernels: dict[int, Any] = field(default_factory=dict, compare=False)

    @cached_property
    def text(self) -> ModuleText:
        c = self.compiled
        return wide_text(c.system, c.program, c.events_program, c.laws_program, self.driver, dtype=c.dtype, strict=c.strict)

    @property
    def kernel(self) -> Any:
        """`integrate` on the current device. Raises CodegenError without a GPU."""
        device, c = current_device(), self.compiled
        if device not in self.kernels:
            code = compile_cubin(
                self.text.source, f"{c.system.name.replace('.', '_')}_wide", options_for(architecture(device), c.strict)
            ).code
            self.kernels[device] = load_module(code).get_function("integrate")
        return self.kernels[device]

    def bind(self, sizes: Mapping[str, int], params: Mapping[str, Any], *, stays: bool = False) -> "BoundCuda":
        """The right-hand side with these numbers. stays: whether saved states remain on the device."""
        return BoundCuda(self, dict(sizes), dict(params), stays)


@dataclass(frozen=True)
class BoundCuda:
    """A right-hand side with sizes and parameters, its arrays on the device (odesim.stepper.problem.BoundSystem)."""

    right: CudaRHS
    sizes: dict[str, int]
    params: dict[str, Any]
    stays: bool = False
    parameters: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    def refresh(self, names: Iterable[str]) -> None:
        """Copies parameters whose values have changed to the device again."""
        _ = self._arrays
        for name in names:
            if name in self.parameters:
                self.parameters[name][...] = cupy_here().asarray(self.params[name])

    @property
    def dtype(self) -> str:
        return self.right.compiled.dtype

    @cached_property
    def layout(self) -> Layout:
        return self.right.compiled.layout(self.sizes)

    @cached_property
    def n_events(self) -> int:
        return self.right.compiled.n_events(self.sizes)

    @property
    def kernel(self) -> Any:
        """The compiled kernel."""
        return self.right.kernel

    @property
    def stage(self) -> int:
        """There is no such function on the host; asking for it compiles the kernel."""
        return 0 if self.kernel is None else 1

    combine = stage

    @property
    def events(self) -> int:
        return int(self.n_events > 0)

    @property
    def table(self) -> int:
        """The address, on the device, of the length, sizes, and the addresses of parameters and work arrays."""
        return int(self._arrays[0].data.ptr)

    @cached_property
    def _arrays(self) -> list[Any]:
        """The address table and the arrays it points to."""
        cp, text, compiled = cupy_here(), self.right.text, self.right.compiled
        programs = [p for p in (compiled.program, compiled.events_program, compiled.laws_program) if p is not None]
        scratch = {"part_": (part_size(programs, self.sizes, text.scratch), "float64"), "state_": (self.layout.size, self.dtype)}
        entries, kept = np.zeros(len(text.entries), np.int64), []
        for place, slot in enumerate(text.entries):
            if slot.kind == "length":
                entries[place] = self.layout.size
            elif slot.kind == "size":
                entries[place] = self.sizes[slot.name]
            else:
                if slot.kind == "scratch":
                    array = cp.zeros(*scratch[slot.name])
                elif slot.kind == "temporary":
                    array = cp.zeros(prod(extents(slot.shape, self.sizes)), self.dtype)
                elif slot.kind == "numbers":
                    array = cp.asarray(np.array([self.params[name] for name in text.numbers] or [0.0], np.float64))
                else:
                    array = cp.ascontiguousarray(cp.asarray(self.params[slot.name], np.int64 if slot.integer else self.dtype))
                    self.parameters[slot.name] = array
                kept.append(array)
                entries[place] = array.data.ptr
        return [cp.asarray(entries), *kept]

    def __call__(self, t: float, y: Array, out: Array) -> None:
        """Sets out (n,) to f(t, y (n,)), computed with numpy on the host: a single evaluation is not worth a launch."""
        made = self.right.compiled.arrays(self.sizes, {**self.params, **self.layout.split(y), "t": t})
        for name, view in self.layout.split(out).items():
            view[...] = made[f"d_{name}"]

    def check(self) -> None:
        """Does nothing: a kernel raises no exceptions."""

    @cached_property
    def laws(self) -> "DeviceLaws":
        """The invariants, whose function is part of the integration kernel."""
        return DeviceLaws(self)


@dataclass(frozen=True)
class DeviceLaws:
    """The invariants of a System on a GPU (odesim.stepper.laws.Values)."""

    bound: BoundCuda

    @property
    def events(self) -> int:
        return self.bound.stage

    @property
    def table(self) -> int:
        return self.bound.table

    @cached_property
    def n_events(self) -> int:
        return sum(prod(shape) for shape in self.bound.right.compiled.laws.shapes(self.bound.sizes))

    def check(self) -> None:
        """Does nothing: a kernel raises no exceptions."""

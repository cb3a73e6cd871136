"""A System compiled once, and bound to numbers as often as wanted."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import sympy as sp

from odesim.arrays import Array, Layout, check_dtype
from odesim.codegen import numba_
from odesim.codegen.arrays_ import ArrayFunction
from odesim.errors import CodegenError, no_such
from odesim.symbolic.lower import derivative, lower, lower_expressions
from odesim.symbolic.program import Program
from odesim.symbolic.system import System, free_in_order

BACKENDS = ("numba", "numpy")


@dataclass(frozen=True)
class CompiledRHS:
    """The right side of a System for one backend; sizes, parameters and spans are given when it is bound.

    source: the generated text. key: what names it, in the cache and in results.
    """

    system: System
    backend: str
    dtype: str
    strict: bool
    _times: list[float] = field(default_factory=list, repr=False)

    @cached_property
    def program(self) -> Program:
        return lower(self.system)

    @cached_property
    def events_program(self) -> Program | None:
        """The events' expressions, one output each; None where there are none."""
        outputs = {}
        for n, e in enumerate(self.system.events):
            free = free_in_order(e.expr, self.system.axes)
            base = sp.IndexedBase(f"event{n}", shape=tuple(self.system.axes[i] for i in free))
            outputs[base[free] if free else sp.Symbol(f"event{n}", real=True)] = e.expr
        return lower_expressions(outputs, self.system.axes) if outputs else None

    @cached_property
    def text(self) -> numba_.Text:
        return numba_.module_text(self.system, self.program, self.events_program, dtype=self.dtype, strict=self.strict)

    @property
    def source(self) -> str:
        return self.arrays.source if self.backend == "numpy" else self.text.source

    @cached_property
    def arrays(self) -> ArrayFunction:
        """The right side on whole arrays."""
        return ArrayFunction(self.program)

    @cached_property
    def events_arrays(self) -> ArrayFunction | None:
        return ArrayFunction(self.events_program) if self.events_program is not None else None

    @cached_property
    def module(self) -> Any:
        """The compiled numba module."""
        begun = time.perf_counter()
        made = numba_.load(self.text, self.system.name.replace(".", "_"))
        self._times.append(time.perf_counter() - begun)
        return made

    @property
    def seconds(self) -> float:
        """What compiling has taken so far."""
        return sum(self._times)

    @property
    def key(self) -> str:
        if self.backend == "numpy":
            import hashlib

            return "numpy_" + hashlib.sha256(self.source.encode()).hexdigest()[:16]
        return str(self.module.__name__)

    def layout(self, sizes: Mapping[str, int]) -> Layout:
        """Where each state lies in the flat vector."""
        return Layout(self.system.states, tuple(extents(shape, sizes) for shape in self.system.shapes.values()))

    def event_shapes(self, sizes: Mapping[str, int]) -> tuple[tuple[int, ...], ...]:
        """The shape of each event."""
        axes = self.system.axes
        return tuple(extents(tuple(axes[i] for i in free_in_order(e.expr, axes)), sizes) for e in self.system.events)

    def bind(self, sizes: Mapping[str, int], params: Mapping[str, Any]) -> Any:
        """The system with its numbers: what solve integrates (odesim.solve.problem.BoundSystem)."""
        return BoundNumba(self, dict(sizes), dict(params))


@dataclass(frozen=True)
class BoundNumba:
    """A compiled System with sizes and parameters: addresses of its C functions, and the arrays they read."""

    compiled: CompiledRHS
    sizes: dict[str, int]
    params: dict[str, Any]
    _kept: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def layout(self) -> Layout:
        return self.compiled.layout(self.sizes)

    @property
    def dtype(self) -> str:
        return self.compiled.dtype

    @property
    def stage(self) -> int:
        return int(self.compiled.module.stage.address)

    @property
    def events(self) -> int:
        return int(self.compiled.module.events.address) if self.compiled.system.events else 0

    @cached_property
    def combine(self) -> int:
        return int(numba_.load_combine(self.dtype, self.compiled.strict).combine.address)

    @cached_property
    def n_events(self) -> int:
        return sum(int(np.prod(shape, dtype=int)) for shape in self.compiled.event_shapes(self.sizes))

    @cached_property
    def table(self) -> int:
        """The address of the table: length, sizes, and the addresses of parameters and work arrays."""
        entries = [self._entry(slot) for slot in self.compiled.text.slots]
        self._kept["table"] = np.array(entries, np.int64)
        return int(self._kept["table"].ctypes.data)

    def _entry(self, slot: numba_.Slot) -> int:
        text, blocks = self.compiled.text, self._blocks
        if slot.kind in ("length", "blocks"):
            return self.layout.size if slot.kind == "length" else blocks
        if slot.kind == "size":
            return self.sizes[slot.name]
        if slot.kind == "numbers":
            a = np.array([self.params[name] for name in text.numbers], np.float64)
        elif slot.kind == "array":
            a = np.ascontiguousarray(self.params[slot.name], np.int64 if slot.integer else self.dtype)
        elif slot.kind == "temporary":
            a = np.zeros(extents(slot.shape, self.sizes), self.dtype)
        else:
            a = np.zeros(text.scratch * (numba_.BLOCK if slot.name == "work_" else blocks))
        self._kept[f"{slot.kind} {slot.name}"] = a
        return int(a.ctypes.data)

    @property
    def _blocks(self) -> int:
        """Blocks of the longest axis."""
        programs = [self.compiled.program, self.compiled.events_program]
        longest = max((e for p in programs if p for e in extents(tuple(p.extents.values()), self.sizes)), default=1)
        return -(-longest // numba_.BLOCK)

    @cached_property
    def _call(self) -> Callable[[float, int, int], None]:
        stage, table, z = self.compiled.module.stage.ctypes, self.table, np.empty(self.layout.size, self.dtype)
        row = np.zeros(1, np.int64)
        self._kept["z"], self._kept["row"] = z, row
        at_row, at_z = row.ctypes.data, z.ctypes.data
        return lambda t, y, out: stage(table, t, y, out, at_row, 0, 0, 0, at_z)

    def __call__(self, t: float, y: Array, out: Array) -> None:
        """out (n,) = f(t, y (n,)); both C-contiguous of the system's dtype."""
        self._call(t, y.ctypes.data, out.ctypes.data)

    def check(self) -> None:
        """Nothing can have been raised."""


def extents(shape: tuple[Any, ...], sizes: Mapping[str, int]) -> tuple[int, ...]:
    """A symbolic shape as numbers."""
    return tuple(int(sp.sympify(e).xreplace({s: sp.Integer(sizes[s.name]) for s in sp.sympify(e).free_symbols})) for e in shape)


def compile_system(system: System, *, backend: str = "numba", dtype: str = "float64", strict: bool = False) -> CompiledRHS:
    """The right side of a System, ready to be bound. Raises CodegenError for an unknown or absent backend."""
    if backend == "cuda":
        raise CodegenError(f"backend 'cuda' is not there yet; choose from {', '.join(BACKENDS)}")
    if backend not in BACKENDS:
        raise CodegenError(no_such("backend", backend, BACKENDS))
    return CompiledRHS(system, backend, check_dtype(dtype), strict)


__all__ = ["BACKENDS", "BoundNumba", "CompiledRHS", "compile_system", "derivative", "extents"]

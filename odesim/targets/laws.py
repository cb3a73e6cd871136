"""The invariants of a System as one C function, in a module apart from the right-hand side.

events(table, t, y, g) writes their values one after another into g, in the form of a run's event function.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any

import sympy as sp

from odesim.ir.passes import lower_expressions
from odesim.ir.program import Program
from odesim.ir.sizes import extents
from odesim.symbolic.parts import free_in_order
from odesim.symbolic.system import System
from odesim.targets.native import load_native
from odesim.targets.numba_module import AddressTable, ModuleText, head_text, make_table, scalar_parameters, table_entries
from odesim.targets.numba_text import CFunctions, Kernel
from odesim.targets.numpy_text import ArrayFunction

if TYPE_CHECKING:
    from odesim.base.arrays import Layout


@dataclass(frozen=True)
class CompiledLaws:
    """The invariants of a System, compiled on first use, for all sizes and parameters."""

    system: System
    dtype: str
    strict: bool
    _times: list[float] = field(default_factory=list, repr=False)

    @cached_property
    def program(self) -> Program:
        """The Program of the invariants, one output each."""
        outputs, axes = {}, self.system.axes
        for n, law in enumerate(self.system.invariants):
            free = free_in_order(law.expr, axes)
            base = sp.IndexedBase(f"law{n}", shape=tuple(axes[i] for i in free))
            outputs[base[free] if free else sp.Symbol(f"law{n}", real=True)] = law.expr
        return lower_expressions(outputs, axes)

    @cached_property
    def arrays(self) -> ArrayFunction:
        """The invariants as a function of whole arrays."""
        return ArrayFunction(self.program)

    def shapes(self, sizes: Mapping[str, int]) -> tuple[tuple[int, ...], ...]:
        """The shape of each invariant."""
        return tuple(extents(shape, sizes) for shape in self._extents)

    @cached_property
    def _extents(self) -> tuple[tuple[Any, ...], ...]:
        axes = self.system.axes
        return tuple(tuple(axes[i] for i in free_in_order(law.expr, axes)) for law in self.system.invariants)

    @cached_property
    def text(self) -> ModuleText:
        """The generated module and the entries of its address table."""
        system, kernel = self.system, Kernel("find_laws", self.system, self.program, self.dtype)
        numbers, entries = scalar_parameters(system), table_entries(system, [kernel], ("work_", "part_"))
        functions = CFunctions(entries, numbers, kernel.nests.scratch_blocks, self.dtype)
        body = f"{kernel.definitions()}\n\n\n{functions.events(kernel)}"
        head = head_text(system, body, self.dtype, self.strict)
        return ModuleText(f"{head}\n\n\n{body}\n", entries, numbers, kernel.nests.scratch_blocks, 0, True)

    @cached_property
    def address(self) -> int:
        """The address of the compiled function."""
        start = time.perf_counter()
        address = load_native(self.text.source, f"{self.system.name.replace('.', '_')}_laws", ["events"])["events"]
        self._times.append(time.perf_counter() - start)
        return address

    @property
    def seconds(self) -> float:
        """Seconds spent on compilation so far."""
        return sum(self._times)

    def bind(self, sizes: Mapping[str, int], params: Mapping[str, Any], layout: "Layout") -> "BoundLaws":
        """The function with sizes and parameters. layout: of the states."""
        return BoundLaws(self, dict(sizes), dict(params), layout)


@dataclass(frozen=True)
class BoundLaws:
    """Invariants with sizes and parameters: the address of their function and of its address table."""

    compiled: CompiledLaws
    sizes: dict[str, int]
    params: dict[str, Any]
    layout: "Layout"

    @property
    def events(self) -> int:
        return self.compiled.address

    @cached_property
    def n_events(self) -> int:
        return sum(map(prod, self.compiled.shapes(self.sizes)))

    @cached_property
    def _table(self) -> AddressTable:
        c = self.compiled
        longest = max(extents(tuple(c.program.extents.values()), self.sizes), default=1)
        return make_table(c.text, self.sizes, self.params, c.dtype, self.layout.size, longest)

    @property
    def table(self) -> int:
        return self._table.address

    def check(self) -> None:
        """Does nothing: compiled code raises no exception."""

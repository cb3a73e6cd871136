"""The right-hand side of a System, compiled for a backend once and then bound to sizes and parameters any number of times.

Its events are one C function in a module apart, and its invariants another: events(table, t, y, g) writes their values one after another
into g. Apart, because a first call should not compile what it does not call, and another event does not change the right-hand side.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from sympy import Expr

from odesim.base.arrays import Array, Layout, check_dtype
from odesim.base.backends import RUN, Backend, find_backend
from odesim.base.callbacks import COMBINE, STAGE
from odesim.base.device import cupy_here
from odesim.base.errors import CodegenError, counted
from odesim.base.memo import IdentityKey, Memo
from odesim.base.options import RunOptions
from odesim.ir.adjoint import lower_vjp
from odesim.ir.derive import jvp
from odesim.ir.lowering import derivative, index_ranges
from odesim.ir.passes import lower, lower_expressions
from odesim.ir.program import Program
from odesim.ir.sizes import extents
from odesim.symbolic.definition import all_names
from odesim.symbolic.indices import array_at
from odesim.symbolic.parts import free_in_order
from odesim.symbolic.system import System
from odesim.targets.cache import module_name
from odesim.targets.native import load_native
from odesim.targets.nest import BLOCK
from odesim.targets.numba_module import AddressTable, ModuleText, make_table, module_of, module_text, written_module
from odesim.targets.numba_text import Kernel
from odesim.targets.numpy_text import ArrayFunction

if TYPE_CHECKING:
    from odesim.ir.scalars import WrittenRight
    from odesim.targets.linearization import Linearization

_FIRST, _ONE = np.zeros(1, np.int64), np.ones(1)  # a right-hand side alone: in row 0, once
_AT_FIRST, _AT_ONE = _FIRST.ctypes.data, _ONE.ctypes.data


def _values_program(stem: str, expressions: Sequence[Expr], system: System) -> Program:
    """The Program of expressions of a System, with an output for each: stem0, stem1, ..."""
    axes = system.axes
    return lower_expressions({array_at(f"{stem}{n}", free_in_order(e, axes), axes): e for n, e in enumerate(expressions)}, axes)


def _shapes_of(expressions: Sequence[Expr], system: System) -> tuple[tuple[Expr, ...], ...]:
    """The shape of the value of each expression, in the System's sizes."""
    return tuple(tuple(system.axes[i] for i in free_in_order(e, system.axes)) for e in expressions)


@dataclass(frozen=True)
class CompiledValues:
    """All outputs of a Program of a System, one after another in one array, compiled on first use for all sizes and parameters.

    stem: what they are, a part of the name of the compiled module.
    """

    system: System
    dtype: str
    strict: bool
    stem: str
    make: Callable[[], Program]
    blas: bool = False

    @cached_property
    def program(self) -> Program:
        return self.make()

    @cached_property
    def arrays(self) -> ArrayFunction:
        """The values as a function of whole arrays."""
        return ArrayFunction(self.program)

    @cached_property
    def text(self) -> ModuleText:
        """The generated module and the entries of its address table."""
        kernel = Kernel(f"find_{self.stem}", self.system, self.program, self.dtype, blas=self.blas)
        return module_of(kernel, ("work_", "part_"), lambda functions: [functions.events(kernel)], self.dtype, self.strict)

    @cached_property
    def address(self) -> int:
        """The address of the compiled function."""
        # what is evaluated once a step; products are many times
        unrolled = self.stem not in ("events", "laws")
        return load_native(self.text.source, f"{self.system.name.replace('.', '_')}_{self.stem}", ["events"], unrolled=unrolled)["events"]

    def bind(
        self, sizes: Mapping[str, int], params: Mapping[str, Any], layout: Layout, arrays: Mapping[str, Array] | None = None
    ) -> "BoundValues":
        """The function with sizes and parameters. layout: of the states; arrays: of parameters, where another table has them already."""
        return BoundValues(self, dict(sizes), dict(params), layout, arrays or {})


@dataclass(frozen=True)
class BoundValues:
    """Compiled values with sizes and parameters: the address of their function and of its address table."""

    compiled: CompiledValues
    sizes: dict[str, int]
    params: dict[str, Any]
    layout: Layout
    shared: Mapping[str, Array] = field(default_factory=dict)

    @property
    def events(self) -> int:
        return self.compiled.address

    @cached_property
    def n_events(self) -> int:
        """How many values there are."""
        program = self.compiled.program
        return sum(prod(extents(tuple(program.extents[i] for i in axes), self.sizes)) for axes in program.outputs.values())

    @cached_property
    def memory(self) -> AddressTable:
        """The address table, with the arrays behind it."""
        return make_table(self.compiled.text, self.sizes, self.params, self.compiled.dtype, self.layout.size, self.shared)

    @property
    def table(self) -> int:
        return self.memory.address

    def check(self) -> None:
        """Does nothing: compiled code raises no exception."""


@dataclass(frozen=True)
class Lengths:
    """What sizes decide: the layout of the states, the shape of each event, their components together, the shape of each invariant."""

    states: Layout
    events: tuple[tuple[int, ...], ...]
    n_events: int
    laws: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class CompiledRHS:
    """The right-hand side of a System, compiled for one backend, for all sizes and parameters.

    source: the generated text. key: its name in the cache and in results. cheapest_for: the sizes for which the order of sums is
    cheapest; default those of the System.
    """

    system: System
    backend: str
    dtype: str
    strict: bool
    cheapest_for: Mapping[str, int] | None = None

    @cached_property
    def on(self) -> Backend:
        """The backend, with what it supports."""
        return find_backend(self.backend)

    @cached_property
    def program(self) -> Program:
        return lower(self.system, self.cheapest_for)

    @cached_property
    def events_program(self) -> Program | None:
        """The Program of the events, one output each; None without events."""
        return _values_program("event", [e.expr for e in self.system.events], self.system) if self.system.events else None

    @cached_property
    def text(self) -> ModuleText:
        return module_text(self.system, self.program, dtype=self.dtype, strict=self.strict)

    @property
    def source(self) -> str:
        return self.text.source if self.on.compiles else self.arrays.source

    @cached_property
    def arrays(self) -> ArrayFunction:
        """The right-hand side as a function of whole numpy or cupy arrays."""
        return ArrayFunction(self.program)

    @cached_property
    def events_arrays(self) -> ArrayFunction | None:
        return ArrayFunction(self.events_program) if self.events_program is not None else None

    @cached_property
    def functions(self) -> dict[str, int]:
        """{name: address} of the compiled C functions: stage and combine."""
        return load_native(self.text.source, self._stem, ["stage", "combine"])

    @cached_property
    def watched(self) -> CompiledValues | None:
        """The System's events, compiled on first use; None without events."""
        program = self.events_program
        return None if program is None else CompiledValues(self.system, self.dtype, self.strict, "events", lambda: program, not self.strict)

    @cached_property
    def linear(self) -> "Linearization":
        """The derivatives df/dy and df/dt of the right-hand side."""
        from odesim.targets.linearization import Linearization  # only stiff methods need it

        return Linearization(self.system, self.program)

    @cached_property
    def laws(self) -> CompiledValues:
        """The System's invariants, compiled on first use."""
        expressions = [law.expr for law in self.system.invariants]
        return CompiledValues(self.system, self.dtype, self.strict, "laws", lambda: _values_program("law", expressions, self.system))

    @cached_property
    def slopes(self) -> tuple[CompiledValues, ...]:
        """The numbers of which the Jacobian is made and, where f depends on t, df/dt, in float64; compiled on first use."""
        programs = {"slopes": self.linear.derivatives.program, "time_slopes": self.linear.time_program}
        return tuple(
            CompiledValues(self.system, "float64", self.strict, stem, lambda program=program: program)  # type: ignore[misc]
            for stem, program in programs.items()
            if program is not None and program.outputs
        )

    @cached_property
    def products(self) -> CompiledValues:
        """The products J w for a state and a direction w after it, in float64; compiled on first use."""
        tangent = jvp(self.system)

        def make() -> Program:
            ways = list(tangent.equations.items())[len(self.system.equations) :]
            return lower_expressions({derivative(key): e for key, e in ways}, tangent.axes, all_names(tangent), index_ranges(tangent))

        return CompiledValues(tangent, "float64", self.strict, "products", make)

    @property
    def laws_program(self) -> Program | None:
        """The Program of the invariants; None without invariants."""
        return self.laws.program if self.system.invariants else None

    @cached_property
    def transposed(self) -> ArrayFunction:
        """The product J^T u as a function of whole arrays."""
        return ArrayFunction(lower_vjp(self.system))

    @cached_property
    def key(self) -> str:
        if not self.on.compiles:
            import hashlib

            return "numpy_" + hashlib.sha256(self.source.encode()).hexdigest()[:16]
        return module_name(self.text.source, self._stem)

    @property
    def _stem(self) -> str:
        return self.system.name.replace(".", "_")

    def layout(self, sizes: Mapping[str, int]) -> Layout:
        """The positions of the states in the flat vector."""
        return self.lengths(*sizes.items()).states

    @cached_property
    def lengths(self) -> Callable[..., "Lengths"]:
        """A function (*items of sizes) -> Lengths, which remembers the last ones."""
        s = self.system
        of_states, of_events, of_laws = s.shapes, *(_shapes_of([x.expr for x in part], s) for part in (s.events, s.invariants))

        @lru_cache(maxsize=16)
        def find(*items: tuple[str, int]) -> Lengths:
            states, events, laws = ([extents(shape, dict(items)) for shape in of] for of in (of_states.values(), of_events, of_laws))
            return Lengths(Layout(s.states, tuple(states)), tuple(events), sum(map(prod, events)), tuple(laws))

        return find

    def bind(self, sizes: Mapping[str, int], params: Mapping[str, Any]) -> Any:
        """The right-hand side with sizes and parameters, as an integrator needs it (odesim.stepper.problem.BoundSystem)."""
        lengths = self.lengths(*sizes.items())
        return BoundNumba(self, dict(sizes), dict(params), lengths.states, lengths.n_events, self.dtype)


FEW_STATES, FEW_OPERATIONS = 32, 200
"""Of a system whose right-hand side is written out for a run. Loops over more, of exponentials above all, are faster: they are vectors."""
_WRITTEN: Memo["WrittenRight | str"] = Memo()


@dataclass(frozen=True)
class BoundNumba:
    """A compiled System with sizes and parameters: addresses of its C functions, and the arrays they read."""

    compiled: CompiledRHS
    sizes: dict[str, int]
    params: dict[str, Any]
    layout: Layout
    n_events: int
    dtype: str

    @property
    def stage(self) -> int:
        return self.compiled.functions["stage"]

    @cached_property
    def _watched(self) -> BoundValues | None:
        """The events, which read the same arrays of parameters."""
        watched = self.compiled.watched
        return None if watched is None else watched.bind(self.sizes, self.params, self.layout, self._table.arrays)

    @property
    def events(self) -> int:
        return 0 if self._watched is None else self._watched.events

    @property
    def events_table(self) -> int:
        return 0 if self._watched is None else self._watched.table

    @property
    def combine(self) -> int:
        return self.compiled.functions["combine"]

    @cached_property
    def _table(self) -> AddressTable:
        return make_table(self.compiled.text, self.sizes, self.params, self.dtype, self.layout.size)

    @property
    def table(self) -> int:
        """The address of the address table: length, sizes, and the addresses of parameters and work arrays."""
        return self._table.address

    @cached_property
    def written(self) -> "WrittenRight | str":
        """The right-hand side written out for these sizes; or why not: it is long, or stages lie otherwise in memory, scaled or rounded."""
        c = self.compiled
        if self.layout.size > FEW_STATES:
            return f"{counted(self.layout.size, 'state')}: at most {FEW_STATES}"
        if self.dtype != "float64":
            return self.dtype
        if c.text.scales:
            return "a right-hand side that scales its stages"
        whole = {p.name: self.params[p.name] for p in c.system.params if p.integer}
        key = (IdentityKey(c), *self.sizes.items(), *(np.asarray(v).tobytes() for v in whole.values()))
        return _WRITTEN(key, lambda: self._write(whole))

    def _write(self, whole: Mapping[str, Any]) -> "WrittenRight | str":
        from odesim.ir.scalars import WrittenRight
        from odesim.ir.series import taylor_coefficients
        from odesim.targets.unroll import write_out

        c = self.compiled
        try:
            formulas = write_out(c.system, c.program, self.sizes, whole)
        except CodegenError as error:
            return f"a right-hand side that cannot be written out ({error})"
        if formulas.weight > FEW_OPERATIONS:
            return f"a right-hand side worth {counted(formulas.weight, 'operation')}: at most {FEW_OPERATIONS}"
        params = ["0.0"] * formulas.count  # what no statement reads lies nowhere
        for k, entry in enumerate(c.text.entries):
            names = {"numbers": c.text.numbers, "array": (entry.name,)}.get(entry.kind, ())
            for j, name in enumerate(names):
                for i in range(np.size(self.params[name]) if name in formulas.values else 0):
                    params[formulas.values[name] + i] = f"doubles(ints(at[TABLE])[{k}])[{i + j}]"
        text = written_module(formulas, c.strict)
        series = lambda order: written_module(taylor_coefficients(formulas, order), c.strict, "series")  # noqa: E731
        return WrittenRight(formulas, tuple(params), text, series)

    @property
    def scales(self) -> bool:
        """Whether stages lie scaled: only `combine` knows how."""
        return bool(self.compiled.text.scales)

    @property
    def uses_blas(self) -> bool:
        """Whether some matrix product is large enough for BLAS."""
        return self._table.blas or (self._watched is not None and self._watched.memory.blas)

    @cached_property
    def _arrays(self) -> dict[str, Array]:
        """{parameter: the array that compiled functions read}."""
        return self._table.arrays | (self._watched.memory.arrays if self._watched is not None else {})

    def refresh(self, names: Iterable[str]) -> None:
        """Copies these array parameters into the address tables again, after their numbers have changed."""
        for name in names:
            if name in self._arrays:
                self._arrays[name][...] = self.params[name]

    def numbers_of(self, name: str) -> Array:
        """The numbers (k,) of a real parameter where compiled functions read them; a copy where none reads any."""
        arrays, numbers = self._arrays, self.compiled.text.numbers
        if name in numbers:
            return arrays["numbers_"][numbers.index(name) :][:1]
        return (arrays[name] if name in arrays else np.array(self.params[name], np.float64)).reshape(-1)

    @cached_property
    def _call(self) -> Callable[[float, int, int], None]:
        table, n = self.table, self.layout.size
        stage = STAGE(self.stage)
        if not self.scales:
            return lambda t, y, out: stage(table, t, y, out, _AT_FIRST, _AT_ONE, 0, 0, 0)
        combine, width = COMBINE(self.combine), np.dtype(self.dtype).itemsize
        unscaled = np.empty(n, self.dtype)

        def call(t: float, y: int, out: int) -> None:
            stage(table, t, y, unscaled.ctypes.data, _AT_FIRST, _AT_ONE, 0, 0, 0)
            for lo in range(0, n, BLOCK):
                combine(table, 0, unscaled.ctypes.data, _AT_FIRST, _AT_ONE, 1, lo, min(lo + BLOCK, n), out + lo * width)

        return call

    def __call__(self, t: float, y: Array, out: Array) -> None:
        """Writes f(t, y) into out (n,); y (n,) and out are C-contiguous arrays of the system's dtype."""
        self._call(t, y.ctypes.data, out.ctypes.data)

    def check(self) -> None:
        """Does nothing: compiled code raises no exception."""


def compile_system(system: System, *, backend: str = RunOptions.backend, dtype: str = "float64", strict: bool = False) -> CompiledRHS:
    """The right-hand side of a System, compiled on first use. Raises ParamError for an unknown backend, CodegenError for a missing one."""
    if find_backend(backend, RUN).gpu:
        cupy_here()
    return CompiledRHS(system, backend, check_dtype(dtype), strict)

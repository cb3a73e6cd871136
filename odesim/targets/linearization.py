"""The derivatives of a System's right-hand side for stiff methods: df/dy, df/dt and linear invariants."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import prod
from typing import Any

import numpy as np
import sympy as sp
from sympy import Expr, Symbol

from odesim.base.arrays import Array, Layout
from odesim.base.errors import CodegenError
from odesim.ir.adjoint import LocalDerivatives, linearize, needed_statements, time_slope
from odesim.ir.exact import PRIMES, random_values
from odesim.ir.invariants import ARITHMETIC, MOST_STATES, LinearInvariant, linear_invariants, parameter_values, text_of
from odesim.ir.jacobian import Chain, ChainPlan, NotLocalError, make_chain_plan
from odesim.ir.linear_systems import Jacobian
from odesim.ir.passes import lower_expressions, passes
from odesim.ir.program import Program
from odesim.ir.scalars import Formulas, Operand, Operation
from odesim.ir.sizes import extents
from odesim.ir.sparse_jacobian import SparseChain, sparse_entries
from odesim.symbolic.indices import array_at, time
from odesim.symbolic.parts import Invariant, free_in_order
from odesim.symbolic.system import System
from odesim.targets.numpy_text import ArrayFunction
from odesim.targets.unroll import write_out, write_values

# Declared invariants that are linear in the states: a sum of w_k y_k is constant, where the weights may contain parameters.
#
# Each is verified: w.f has to be 0 at random points modulo a prime (odesim.ir.exact).

MOST_COMPONENTS = 64
"""The most components of a law; verifying more takes longer than a step."""

POINTS = 6

LEAST_POINTS = 3
"""The least number of points at which w.f has to be 0."""


def declared_invariants(system: System, sizes: Mapping[str, int], whole: Mapping[str, Any]) -> list[LinearInvariant]:
    """The linear invariants that a System declares, not yet verified. whole: {integer parameter: value}."""
    return [invariant for law in system.invariants if _may_be_linear(law) for invariant in _linear(system, law, sizes, whole)]


def verified_invariants(declared: Sequence[LinearInvariant], formulas: Formulas) -> tuple[LinearInvariant, ...]:
    """The declared invariants that hold for a right-hand side written out as formulas."""
    if not declared:
        return ()
    values = random_values(formulas, POINTS, PRIMES[0], [text_of(w) for invariant in declared for w in invariant.weights])
    f, weights = values[: formulas.states], values[formulas.states :]
    if f.shape[1] < LEAST_POINTS:
        return ()
    verified, first = [], 0
    for invariant in declared:
        total = np.zeros(f.shape[1], np.int64)
        for place in invariant.places:
            total = (total + weights[first] * f[place]) % PRIMES[0]
            first += 1
        verified += [invariant] if not total.any() else []
    return tuple(verified)


def _may_be_linear(law: Invariant) -> bool:
    return law.sense == "constant" and law.when == sp.true and isinstance(law.expr, sp.Expr) and not law.expr.has(time)


def _linear(system: System, law: Invariant, sizes: Mapping[str, int], whole: Mapping[str, Any]) -> list[LinearInvariant]:
    """The linear invariants among the components of a law."""
    free = free_in_order(law.expr, system.axes)
    if prod(extents(tuple(system.axes[i] for i in free), sizes)) > MOST_COMPONENTS:
        return []
    program = lower_expressions({array_at("law0", free, system.axes): law.expr}, system.axes)
    try:
        formulas = write_values(system, program, sizes, whole)
    except CodegenError:  # too large to be written out
        return []
    known: dict[str, Affine | None] = {}
    for name, operation in formulas.code.items():
        known[name] = affine(operation, known)
    parts = [affine(output, known) for output in formulas.outputs]
    return [LinearInvariant.of(sorted(part[0].items())) for part in parts if part is not None and len(part[0]) > 1]


Affine = tuple[dict[int, Operand], Operand]
"""{number of a state: its weight}, and what has no states, of a function that is linear in the states."""


def affine(operand: Operand, known: Mapping[str, Affine | None]) -> Affine | None:
    """The weights of the states in an operand, and the rest; None where it is not linear in them. known: the same of names."""
    if isinstance(operand, str):
        return known[operand] if operand in known else ({int(operand[1:]): "1.0"}, "0.0") if operand[0] == "y" else ({}, operand)
    function, parts = operand.function, [part for o in operand.operands if (part := affine(o, known)) is not None]
    if function in ("float32", "float64"):
        return parts[0] if parts else None  # what is rounded alike is still the same term
    if len(parts) < len(operand.operands) or (function, len(parts)) not in ARITHMETIC:
        return None
    rest, (a, *others) = Operation(function, tuple(r for _, r in parts)), [weights for weights, _ in parts]
    b = others[0] if others else {}
    if not (a or b):
        return {}, rest
    if function == "-" and not others:
        return {k: Operation("-", (w,)) for k, w in a.items()}, rest
    if function in "+-":
        second = b if function == "+" else {k: Operation("-", (w,)) for k, w in b.items()}
        both = {k: Operation("+", (a[k], second[k])) for k in a if k in second}
        return {**a, **second, **both}, rest
    if function == "*" and not (a and b):
        factor = parts[1 if a else 0][1]
        return {k: factor if w == "1.0" else Operation("*", (w, factor)) for k, w in (a or b).items()}, rest
    return ({k: Operation("/", (w, parts[1][1])) for k, w in a.items()}, rest) if function == "/" and not b else None


MOST_DENSE = 5000
"""The most states for a dense Jacobian: 200 MB, and some 7 s to factorise; 2600 take 1.2 s a step and 1.1 GB in all."""
SPARSE = 1e6
"""The cost of a sparse decomposition beside its arithmetic, as a number of multiplications of a dense one."""
MOST_ENTRIES, MOST_SHARE, FEW_OPERATIONS = 20_000_000, 0.05, 1e9
"""The most entries of a sparse Jacobian, before those at one place are added up, and the most of all places that may have one
where a decomposition is more than so few operations."""
REMEMBERED = 16
"""Patterns of sparse Jacobians that are remembered."""
COMPILED, DENSE, LARGE = 1_000_000, 50_000, 2000
"""The most entries of a Jacobian that compiled code eliminates; the most where more than MOST_SHARE of all places have one; the states from
which blocks plus sums are left to whole arrays."""
MOST_NUMBERS = 50_000_000
"""The most numbers in the parts of a structured Jacobian."""


@dataclass(frozen=True)
class Linearization:
    """The derivatives of a System's right-hand side (program), for all sizes and parameters."""

    system: System
    program: Program

    @cached_property
    def derivatives(self) -> LocalDerivatives:
        return linearize(self.system)

    @cached_property
    def slopes(self) -> ArrayFunction:
        """The function that computes the slopes of all statements, on whole arrays."""
        return ArrayFunction(self.derivatives.program)

    @cached_property
    def time_program(self) -> Program | None:
        """The Program of df/dt, d_v for each state v; None where f does not depend on t."""
        return time_slope(self.system)

    @cached_property
    def time(self) -> ArrayFunction | None:
        """The function that computes df/dt on whole arrays."""
        return ArrayFunction(self.time_program) if self.time_program is not None else None

    @cached_property
    def diagonal(self) -> tuple[ArrayFunction, dict[str, str]]:
        """The slopes of rates by their own elements, outside of sums, on whole arrays, and their names by state."""
        d = self.derivatives
        own = {x.read: x.slope for x in d.dependences if d.targets.get(x.read) == x.statement.name and x.indices == d.states[x.read]}
        wanted = {name: axes for name, axes in d.program.outputs.items() if name in own.values()}
        statements = needed_statements(list(d.program.statements()), set(wanted))
        return ArrayFunction(Program(wanted, d.extents, passes(statements, d.extents))), own

    @cached_property
    def entries(self) -> Callable[..., int]:
        """A function (*lengths) -> entries of a sparse Jacobian, before those at one place are added up; it remembers the last ones."""

        @lru_cache(maxsize=REMEMBERED)
        def count(*lengths: int) -> int:
            return sparse_entries(self.derivatives, dict(zip(self.derivatives.extents, lengths, strict=True)))

        return count

    @cached_property
    def sparse(self) -> Callable[..., SparseChain]:
        """A function (lengths, params, layout) -> SparseChain, which remembers the last ones: places depend on whole numbers alone."""
        chains: dict[Any, SparseChain] = {}

        def make(lengths: Mapping[Symbol, int], params: Mapping[str, Any], layout: Layout) -> SparseChain:
            whole = {p.name: np.asarray(params[p.name]) for p in self.system.params if p.integer}
            key = (tuple(lengths.values()), layout, *((name, value.shape, value.tobytes()) for name, value in whole.items()))
            if key not in chains:
                if len(chains) >= REMEMBERED:
                    chains.pop(next(iter(chains)))
                chains[key] = SparseChain(self.derivatives, lengths, layout, whole)
            return chains[key]

        return make

    @cached_property
    def dense_plan(self) -> ChainPlan:
        return make_chain_plan(self.derivatives, None)

    @cached_property
    def block_plans(self) -> tuple[ChainPlan, ...]:
        """The chain rule for a Jacobian of blocks plus low rank, one plan for each axis that can index the blocks."""
        plans = []
        for along in {self.derivatives.extents[i]: None for axes in self.derivatives.states.values() for i in axes}:
            try:
                plans.append(make_chain_plan(self.derivatives, along))
            except NotLocalError:
                continue
        return tuple(plans)

    @cached_property
    def invariants(self) -> Callable[..., tuple[tuple[LinearInvariant, ...], dict[str, int]]]:
        """A function (sizes, integer parameters, few) -> (linear invariants, {parameter: number of its first entry}).

        The sizes and parameters are tuples of items. few: whether the states are few enough to search for invariants.
        """

        @lru_cache(maxsize=16)
        def find(
            sizes: tuple[tuple[str, int], ...], whole: tuple[tuple[str, Any], ...], few: bool
        ) -> tuple[tuple[LinearInvariant, ...], dict[str, int]]:
            values = {name: np.array(value, np.int64) for name, value in whole}
            declared = declared_invariants(self.system, dict(sizes), values)
            if few or declared:
                with suppress(CodegenError):  # too large to be written out
                    formulas = write_out(self.system, self.program, dict(sizes), values)
                    return linear_invariants(formulas, verified_invariants(declared, formulas)), formulas.values
            return (), {}

        return find

    def bind(self, sizes: Mapping[str, int], params: Mapping[str, Any], layout: Layout) -> "BoundLinear":
        """The derivatives for these sizes and parameters."""
        return BoundLinear(self, dict(sizes), dict(params), layout)


@dataclass(frozen=True)
class BoundLinear:
    """The derivatives of a right-hand side with numbers (odesim.stepper.problem.Derivatives), derived on first use."""

    linear: Linearization
    sizes: dict[str, int]
    params: dict[str, Any]
    layout: Layout

    def prepare(self) -> None:
        """Derives all symbolic derivatives now. Raises CodegenError where the Jacobian would have to be dense and is too large."""
        _ = self.chain, self.linear.slopes, self.linear.time, self.invariants()

    def jacobian(self, t: float, y: Array) -> Jacobian:
        """The Jacobian df/dy at y (n,). Raises CodegenError where it would have to be dense and is too large."""
        return self.chain(self.linear.slopes(self.sizes, self._values(t, y)), self.params)

    def time_slope(self, t: float, y: Array) -> Array | None:
        """The derivative df/dt (n,) at y (n,); None where f does not depend on t."""
        if self.linear.time is None:
            return None
        slopes = self.linear.time(self.sizes, self._values(t, y))
        return self.layout.join({name: slopes[f"d_{name}"] for name in self.layout.names})

    def diagonal(self, t: float, y: Array) -> Array:
        """The part (n,) of the Jacobian's diagonal that stands outside of sums."""
        function, own = self.linear.diagonal
        slopes, axes = function(self.sizes, self._values(t, y)), function.program.outputs
        out = np.zeros(self.layout.size)
        for state, view in self.layout.split(out).items():
            if state in own:
                indices, free = self.linear.derivatives.states[state], axes[own[state]]
                order = [free.index(i) for i in indices if i in free]
                slope = np.transpose(slopes[own[state]], order)
                view[...] = np.expand_dims(slope, [k for k, i in enumerate(indices) if i not in free])
        return out

    def invariants(self) -> tuple[LinearInvariant, ...]:
        """The linear invariants of the right-hand side: those found, where the states are few, and those that the System declares."""
        n = self.layout.size
        if n > MOST_DENSE:
            return ()
        whole = {p.name: np.asarray(self.params[p.name]).tolist() for p in self.linear.system.params if p.integer}
        items = tuple((name, _hashable(value)) for name, value in whole.items())
        invariants, firsts = self.linear.invariants(tuple(self.sizes.items()), items, n <= MOST_STATES)
        return tuple(i.with_numbers(parameter_values(firsts, i.reads, self.params, {})) if i.reads else i for i in invariants)

    @cached_property
    def chain(self) -> Chain | SparseChain:
        """The chain rule for the cheapest form of the Jacobian. Raises CodegenError where that is too large."""
        n = self.layout.size
        if self._structured is None and n > MOST_DENSE:
            raise CodegenError(
                f"{self.linear.system.name}: the Jacobian of {n} states is neither sparse nor small blocks plus few sums, and {MOST_DENSE} "
                "is the most for a dense one; choose an explicit method or smaller sizes"
            )
        return self._structured or self._chain(self.linear.dense_plan)

    @property
    def is_large(self) -> bool:
        """Whether the Jacobian is a dense matrix of more than LARGE states."""
        return self.layout.size > LARGE and self._structured is None

    @cached_property
    def _structured(self) -> Chain | SparseChain | None:
        """The chain rule for the cheapest form of the Jacobian that is not dense; None where a dense one is cheaper."""
        n = self.layout.size
        best: Chain | SparseChain | None = None
        least = float(n) ** 3 / 3 if n <= MOST_DENSE else np.inf
        for plan in self.linear.block_plans:
            chain = self._chain(plan)
            p, R = chain.width, chain.rank
            refined = 40.0 * (p + R) if p > 1 or R else 0.0  # many solves, each with a residual
            cost = n * (3.0 * p**2 + 2.0 * R**2 + refined) + R**3
            if cost < least and n * p <= MOST_NUMBERS and 2 * n * R <= MOST_NUMBERS:
                best, least = chain, cost
        entries = self._entries
        # where half of all places may have an entry, n > LARGE, the pattern takes as long to find as dense steps do, and 200 bytes an entry
        full = n > LARGE and 2 * entries > n * n
        if least > SPARSE and entries <= MOST_ENTRIES and not full:
            sparse = self.linear.sparse(self._extents, self.params, self.layout)
            if SPARSE + sparse.cost < least and (sparse.share <= MOST_SHARE or sparse.cost < FEW_OPERATIONS):
                return sparse
        return best

    @cached_property
    def eliminated(self) -> SparseChain | None:
        """The places of the entries for compiled elimination; None where the Jacobian is dense and large, or blocks of very many states."""
        n, entries = self.layout.size, self._entries
        if entries > COMPILED or (n > LARGE and not isinstance(self._structured, SparseChain)):
            return None
        sparse = self.linear.sparse(self._extents, self.params, self.layout)
        return sparse if entries <= DENSE or sparse.share <= MOST_SHARE else None

    def _chain(self, plan: ChainPlan) -> Chain:
        return Chain(plan, self._extents, self.layout)

    @property
    def _entries(self) -> int:
        return self.linear.entries(*self._extents.values())

    @cached_property
    def _extents(self) -> dict[Symbol, int]:
        symbolic: dict[Symbol, Expr] = self.linear.derivatives.extents
        return dict(zip(symbolic, extents(tuple(symbolic.values()), self.sizes), strict=True))

    def _values(self, t: float, y: Array) -> dict[str, Any]:
        return {**self.params, **self.layout.split(y), "t": t}


def _hashable(value: Any) -> Any:
    """A nested list as tuples."""
    return tuple(map(_hashable, value)) if isinstance(value, list) else value

"""A System with numbers as a vector field: right-hand side, exact Jacobian, and what no run changes."""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import sympy as sp

from odesim.base.arrays import Array, Layout
from odesim.base.errors import ParamError, counted
from odesim.inputs.bind import Numbers
from odesim.ir.derive import directional_derivative, unit_direction
from odesim.ir.linear_systems import Jacobian, Products
from odesim.run.problem import compiled_for, parts_of
from odesim.symbolic.assumptions import assumed_intervals
from odesim.symbolic.definition import GradientFlow
from odesim.symbolic.parts import Invariant, free_in_order
from odesim.symbolic.system import System
from odesim.targets.compiled import BoundNumba, CompiledRHS
from odesim.targets.linearization import MOST_DENSE, BoundLinear
from odesim.targets.numpy_text import evaluate
from odesim.targets.observe import Observer
from odesim.targets.products import BoundProducts
from odesim.transforms.sensitivity import fresh_indices, used_names

MOST_STATES = 2000
"""The most states: a decomposition of a dense matrix of 2000 takes some 10 s, and a rest state needs about ten."""
LOSS = "loss"
CHECKED = (1.0, 0.1, 3.0, 0.3, 10.0) * 2
"""How far about the start states are at which a linear invariant is checked."""
CANCELS = 1e-11
"""The size of a sum, relative to its terms, up to which they cancel: an SVD leaves some 1e-13, more of nearly singular ones."""


@dataclass(frozen=True)
class Field:
    """The right-hand side f(y) of a System that does not depend on t, with numbers; of a Map the change y' - y of an update."""

    system: System
    numbers: Numbers

    @cached_property
    def compiled(self) -> CompiledRHS:
        # numpy: a few thousand values are computed, and nothing waits for a compiler
        return compiled_for(self.system, self.numbers.sizes, "numpy", "float64", False)

    @cached_property
    def layout(self) -> Layout:
        return self.compiled.layout(self.numbers.sizes)

    @property
    def n(self) -> int:
        """The number of states, components counted."""
        return self.layout.size

    def values(self, y: Array) -> dict[str, Any]:
        """Parameters, states y (n,) and time by name."""
        return {**self.numbers.params, **self.layout.split(y), "t": self.numbers.t0}

    def __call__(self, y: Array) -> Array:
        """f(y) (n,)."""
        if self.matrix_free:
            f = np.empty(self.n)
            self.bound(self.numbers.t0, np.ascontiguousarray(y), f)
            return f - y if self.system.discrete else f
        slopes = self.compiled.arrays(self.numbers.sizes, self.values(y))
        f = self.layout.join({name: slopes[f"d_{name}"] for name in self.layout.names})
        return f - y if self.system.discrete else f

    @cached_property
    def matrix_free(self) -> bool:
        """Whether the Jacobian is too large to be written down."""
        return self.n > MOST_DENSE and self.linear.is_large

    @cached_property
    def bound(self) -> BoundNumba:
        """The compiled right-hand side: whole arrays of all pairs of states would not fit into memory."""
        compiled = compiled_for(self.system, self.numbers.sizes, "numba", "float64", False)
        return compiled.bind(self.numbers.sizes, self.numbers.params)

    def large_jacobian(self, y: Array) -> Jacobian | Products:
        """The Jacobian of the equations at y in its cheapest form, not of the change of a Map."""
        if not self.matrix_free:
            return self.linear.jacobian(self.numbers.t0, y)
        return self.products.jacobian(self.numbers.t0, y)

    @cached_property
    def products(self) -> BoundProducts:
        """The Jacobian by its products."""
        return BoundProducts(self.linear, self.bound.compiled.products.bind(self.numbers.sizes, self.numbers.params, Layout((), ())))

    def jacobian(self, y: Array) -> Array:
        """df/dy (n, n) at y (n,)."""
        J = np.array(self.linear.jacobian(self.numbers.t0, y).dense(), np.float64)
        return J - np.eye(self.n) if self.system.discrete else J

    @cached_property
    def linear(self) -> BoundLinear:
        return self.compiled.linear.bind(self.numbers.sizes, self.numbers.params, self.layout)

    @cached_property
    def weights(self) -> Array:
        """Rows w (k, n) with w . f = 0 at random states: the linear invariants that these numbers have. Of a Map none are known.

        Where it is so for all states near one, w J = 0 there. A right-hand side of pieces is looked at far and near.
        """
        W, rng = np.eye(0 if self.system.discrete else self.n, self.n), np.random.default_rng(0)
        with np.errstate(all="ignore"):
            for width in (1.0, 0.3, 3.0):
                if len(W):
                    y = self.random_state(rng, width)
                    W = null_rows(W, np.column_stack([self.jacobian(y), self(y)]))
            if len(W):
                W = null_rows(W, np.column_stack([self(self.random_state(rng, width)) for width in CHECKED]))
        return independent(W)

    def random_state(self, rng: np.random.Generator, width: float) -> Array:
        """A random state (n,) about the start, inside the sets that states assume. width: its distance, beside 1 and the start's size."""
        y = self.layout.join(self.numbers.initial)
        y = y + width * (1 + np.abs(y)) * rng.standard_normal(self.n)
        for name, values in self.layout.split(y).items():
            low, high = self._bounds.get(name, (-np.inf, np.inf))
            if np.isfinite([low, high]).all():
                values[...] = rng.uniform(low, high, values.shape)
            elif np.isfinite(low):
                values[...] = low + np.abs(values - low)
            elif np.isfinite(high):
                values[...] = high - np.abs(high - values)
        return y

    def constants(self, y: Array) -> tuple[Invariant, ...]:
        """The declared laws that hold a value on the run from y."""
        observer = parts_of(self.system, "numpy", "float64", False).derived[Observer]
        laws = (law for law in self.system.invariants if law.sense == "constant" and isinstance(law.expr, sp.Basic))
        states = self.layout.split(y)
        return tuple(
            law
            for law in laws
            if not law.expr.has(sp.Symbol("t", real=True)) and observer.applies(law, self.numbers.sizes, self.numbers.params, states)
        )

    def kept(self, laws: tuple[Invariant, ...], y: Array) -> Array:
        """The values (k,) of these laws at y."""
        values, axes = self.values(y), self.system.axes
        parts = [evaluate(law.expr, free_in_order(law.expr, axes), axes, self.numbers.sizes, values) for law in laws]
        return np.concatenate([np.zeros(0), *map(np.ravel, parts)])

    def slopes(self, law: Invariant, y: Array) -> Array:
        """The exact derivatives (k, n) of the values of a law by the states at y."""
        values, free, columns = self.values(y), free_in_order(law.expr, self.system.axes), list[Array]()
        for expr, along in self._slopes[self.system.invariants.index(law)]:
            axes = {**self.system.axes, **along}
            block = evaluate(expr, (*free, *along), axes, self.numbers.sizes, values)
            columns.append(block.reshape(math.prod(block.shape[: len(free)]), -1))
        return np.hstack(columns)

    def normals(self, laws: tuple[Invariant, ...], y: Array) -> Array:
        """Rows (k, n) that span what is normal to the leaf of all invariants at y."""
        rows = [self.weights]
        for law in laws:
            slopes = self.slopes(law, y)
            rows.append(slopes[np.isfinite(slopes).all(axis=1)])
        return np.vstack(rows)

    @cached_property
    def _slopes(self) -> dict[int, list[tuple[sp.Expr, dict[sp.Symbol, Any]]]]:
        laws = enumerate(self.system.invariants)
        return {k: slopes_of(self.system, law.expr) for k, law in laws if law.sense == "constant" and isinstance(law.expr, sp.Basic)}

    def outside(self, y: Array) -> bool:
        """Whether a state lies outside the set that its symbol assumes, by more than rounding; the ends count as inside."""
        for name, (low, high) in self._bounds.items():
            values = self.layout.split(y)[name]
            slack = 1e-9 * max(1.0, float(np.max(np.abs(values), initial=0.0)))
            if np.any(values < low - slack) or np.any(values > high + slack):
                return True
        return False

    @cached_property
    def _bounds(self) -> Mapping[str, tuple[float, float]]:
        return {name: (float(i.start), float(i.end)) for name, i in assumed_intervals(self.system).items() if i is not None}


def slopes_of(system: System, e: sp.Expr) -> list[tuple[sp.Expr, dict[sp.Symbol, Any]]]:
    """For each state the derivative of an expression by its entries, and their indices with extents."""
    taken, slopes = used_names(system) | {i.name for i in system.axes}, []
    for state, shape in system.shapes.items():
        new = fresh_indices(f"{state}_start", len(shape), taken)
        along = dict(zip(new, shape, strict=True))
        slopes.append((directional_derivative(e, {state: unit_direction(new)}, along), along))
    return slopes


def null_rows(W: Array, A: Array) -> Array:
    """The combinations (r, n) of rows W (k, n) whose products with A (n, m) are 0 to rounding. Columns that are not finite say nothing."""
    A = A[:, np.isfinite(A).all(axis=0)]
    if not A.shape[1]:
        return W[:0]
    # rows and columns are of size 1, so that slow states and weak couplings count like the others
    sizes = np.abs(W) @ np.abs(A)
    columns = np.max(sizes, axis=0)
    sizes = np.max(sizes / np.where(columns > 0, columns, 1.0), axis=1)
    W = W / np.where(sizes > 0, sizes, 1.0)[:, None]
    U, s, _ = np.linalg.svd(W @ (A / np.where(columns > 0, columns, 1.0)), full_matrices=A.shape[1] < len(W))
    W = U[:, np.concatenate([s, np.zeros(U.shape[1] - len(s))]) <= CANCELS].T @ W
    return np.asarray(W / np.linalg.norm(W, axis=1, keepdims=True))


def independent(rows: Array) -> Array:
    """An orthonormal basis (r, n) of the span of rows (k, n)."""
    if not len(rows):
        return rows
    _, s, V = np.linalg.svd(rows, full_matrices=False)
    return V[s > 1e-9 * max(s[0], 1e-300)]


# Its derivatives hold what a default computes, and so does a branch: both would be those of another model than the runs with new numbers.
def check_defaults(system: System, numbers: Numbers, moved: Numbers, names: Collection[str]) -> None:
    """Raises ParamError where another parameter than `names` moves with these by its default."""
    for name, value in numbers.params.items():
        if name not in names and not np.array_equal(value, moved.params[name]):
            raise ParamError(
                f"{system.name}: the default of {name} is computed from {' or '.join(names)}, which is varied, and derivatives hold it: "
                f"give {name} a value, or write it into the equations"
            )


def check_noiseless(system: System, what: str) -> None:
    """Raises ParamError for a System with noise. what: what is asked of it."""
    if system.noise:
        raise ParamError(f"{system.name} has noise, and {what} are for equations without; replace(system, noise={{}}) has none")


def make_field(system: System, numbers: Numbers, what: str, most: int = MOST_STATES) -> Field:
    """The field of a System that has rest states. what: what is asked of it. Raises ParamError where it has none.

    most: the most states, of which it raises ParamError for more.
    """
    check_noiseless(system, what)
    field = Field(system, numbers)
    if field.compiled.linear.time_program is not None:
        raise ParamError(f"{what} are for equations that do not depend on t, and those of {system.name} do")
    if field.n > most:
        how = "with dense matrices, of" if most == MOST_STATES else "of"
        raise ParamError(f"{what} are computed {how} at most {counted(most, 'state')}: {system.name} has {field.n}")
    return field


def with_loss(system: System) -> System:
    """The System whose loss, where it is a gradient flow, is an observable of that name."""
    flow, taken = system.equations, {*system.observables, *system.states, *(p.name for p in system.params)}
    if LOSS in taken or not isinstance(flow, GradientFlow) or not flow.rates:
        return system
    return replace(system, observables={LOSS: flow.loss, **system.observables})

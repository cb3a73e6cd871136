"""The Jacobian of a System, statement by statement: local derivatives as expressions. The chain rule is applied to their numbers."""

from dataclasses import dataclass
from itertools import count
from typing import Any

import sympy as sp
from sympy import Expr, Indexed, Symbol

from odesim.ir.adjoint import needed_statements, reads_of
from odesim.ir.derive import directional_derivative
from odesim.ir.lowering import Lowering, default_sizes, derivative, index_ranges
from odesim.ir.passes import dependency_order, lower_expressions, passes, share
from odesim.ir.program import Program, Statement
from odesim.symbolic.indices import IndexedBase, base_name, index, time
from odesim.symbolic.parts import Key, all_names, key_indices
from odesim.symbolic.system import System


@dataclass(frozen=True)
class Dependence:
    """The derivative of a statement's target by one element that the statement reads.

    Over the loops of the statement: d target[free] += slope[axes] * d read[indices], summed over the statement's bound index.
    """

    statement: Statement
    read: str
    indices: tuple[Any, ...]
    slope: str
    axes: tuple[Symbol, ...]


@dataclass(frozen=True)
class LocalDerivatives:
    """All Dependences of a right-hand side, each after those of the arrays it reads.

    program: computes the slopes from states and parameters. states: {state: its indices}. targets: {state: name of its derivative}.
    extents: {index: number of its values}.
    """

    program: Program
    dependences: tuple[Dependence, ...]
    states: dict[str, tuple[Symbol, ...]]
    targets: dict[str, str]
    extents: dict[Symbol, Expr]


def linearize(system: System) -> LocalDerivatives:
    """The local derivatives of the right-hand side of a System.

    d_v[m] = (a[m] - v[m])*r0, r0 = sum_k exp(v[k])  ->  d d_v[m] = -r0 d v[m] + (a[m] - v[m]) d r0,  d r0 = sum_k exp(v[k]) d v[k]
    """
    work = Lowering(system.axes, system.equations.values(), all_names(system), index_ranges(system), default_sizes(system))
    for key, rhs in system.equations.items():
        work.assign(derivative(key), rhs)
    forward = dependency_order(work.statements)
    work.statements = list(forward)
    states = {base_name(k): key_indices(k) for k in system.equations}
    depends = set(states)
    dependences: list[Dependence] = []
    outputs: dict[str, tuple[Symbol, ...]] = {}
    names = (name for name in (f"s{n}" for n in count()) if name not in work.taken)
    for s in forward:
        for of, read, slope in _inverse_slopes(s, work) if s.op == "inverse" else ((s, *pair) for pair in _slopes(s, depends, work)):
            if base_name(read) not in depends:
                break
            axes = work.free(slope)
            name = next(names)
            work.taken.add(name)
            target = IndexedBase(name, shape=tuple(work.extents[i] for i in axes))[axes] if axes else Symbol(name, real=True)
            work.assign(target, slope)
            outputs[name] = axes
            dependences.append(Dependence(of, base_name(read), tuple(read.indices) if isinstance(read, Indexed) else (), name, axes))
            depends.add(of.name)
    statements = needed_statements(share(work.statements, work), set(outputs))
    program = Program(outputs, dict(work.extents), passes(statements, work.extents))
    return LocalDerivatives(
        program, tuple(dependences), states, {base_name(k): base_name(derivative(k)) for k in system.equations}, dict(work.extents)
    )


def time_slope(system: System) -> Program | None:
    """The Program of df/dt, with an output d_v for each state v; None where no right-hand side depends on t."""
    if not any(time in rhs.free_symbols for rhs in system.equations.values()):
        return None
    slopes = {derivative(key): directional_derivative(rhs, {str(time): lambda _: sp.S.One}) for key, rhs in system.equations.items()}
    return lower_expressions(slopes, system.axes, all_names(system))


def _inverse_slopes(s: Statement, work: Lowering) -> list[tuple[Statement, Key, Expr]]:
    """[(statement, element read, derivative of its target by it)] of an inverse X of A: d Y = dA X, then d X = -X dY."""
    assert isinstance(s.body, Indexed) and isinstance(s.target, Indexed)
    *batch, i, j = s.free
    k, l = (work.loop_index(index(f"{i}_{word}")[0], work.extents[i], sp.Tuple(*s.free)) for word in ("left", "right"))
    name = next(name for name in (f"y{n}" for n in count()) if name not in work.taken)
    work.taken.add(name)
    A, X, Y = s.body.base, s.target.base, IndexedBase(name, shape=s.target.base.shape)
    right = Statement(Y[(*batch, k, j)], (*batch, k, j), "sum", s.body, l)
    left = Statement(s.target, s.free, "sum", s.body, k)
    return [(right, A[(*batch, k, l)], X[(*batch, l, j)]), (left, Y[(*batch, k, j)], -X[(*batch, i, k)])]


def _slopes(s: Statement, depends: set[str], work: Lowering) -> list[tuple[Key, Expr]]:
    """[(element read, derivative of the target by it)] for the states, and the arrays that depend on them, that a statement reads.

    A shift depends on nothing; a maximum depends on the first of its largest elements.
    """
    if s.op == "max":
        differentiable = s.slopes and base_name(s.body) in depends
        return [(s.body, sp.Piecewise((1, sp.Eq(s.bound, work.first(s.body, s.target, s.bound))), (0, True)))] if differentiable else []
    reads = sorted((r for r in reads_of(s.body) if base_name(r) in depends), key=str)
    holes = {r: sp.Dummy(f"hole{n}", real=True) for n, r in enumerate(reads)}
    hollow = s.body.xreplace(holes)
    filled = {hole: r for r, hole in holes.items()}
    slopes = ((r, directional_derivative(hollow, {str(hole): lambda _: sp.S.One}).xreplace(filled)) for r, hole in holes.items())
    return [(r, slope) for r, slope in slopes if slope != 0]

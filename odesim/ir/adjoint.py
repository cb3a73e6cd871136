"""Derivatives through statements: backwards, J^T u, and one by one, the local derivatives of which a Jacobian is made."""

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from itertools import count
from typing import Any

import sympy as sp
from sympy import Expr, Indexed, KroneckerDelta, Sum, Symbol

from odesim.ir.derive import directional_derivative, twin_name
from odesim.ir.lowering import Lowering, default_sizes, derivative, index_ranges
from odesim.ir.passes import dependency_order, lower_expressions, passes, share
from odesim.ir.program import Program, Statement
from odesim.symbolic.definition import all_names, twin_state
from odesim.symbolic.indices import Clipped, IndexedBase, Inside, Wrapped, array_at, base_name, index, time
from odesim.symbolic.parts import Key, key_indices
from odesim.symbolic.reductions import SumOver, bind_indices, over
from odesim.symbolic.system import System

Indices = tuple[Symbol, ...]


def covector(key: Key) -> Key:
    """The input u_v[i] of the product J^T u, for the state v[i]."""
    return twin_state(key, f"u_{base_name(key)}")


def lower_vjp(system: System) -> Program:
    """The Program of J(t, v)^T u: inputs v and u_v, outputs d_u_v, at the cost of a few right-hand sides.

    Each array that a statement reads gets a contribution from the adjoint of the statement:
    r[n] = sum_l a[n, l]*z[psi[n], l]  adds to the adjoint of z[q, l]  sum_n delta(q, psi[n])*a[n, l]*(adjoint of r[n])
    """
    covectors = {base_name(derivative(k)): covector(k) for k in system.equations}
    taken = {*all_names(system), *(twin_name(system, "u", n) for n in system.states)}
    work = rates_of(system, taken)
    forward = dependency_order(share(work.statements, work))
    work.statements = list(forward)
    back = ReverseSweep(work, {base_name(k): key_indices(k) for k in system.equations} | {s.name: s.free for s in forward if has_slopes(s)})
    for s in reversed(forward):
        adjoint = covectors.get(s.name) if s.name in covectors else back.collect(s)
        if adjoint is not None and has_slopes(s):
            back.propagate(s, adjoint)
    outputs = {derivative(covector(k)): back.total(base_name(k)) for k in system.equations}
    for target, e in outputs.items():
        work.assign(target, e)
    wanted = {base_name(t): key_indices(t) for t in outputs}
    return Program(wanted, dict(work.extents), passes(needed_statements(share(work.statements, work), set(wanted)), work.extents))


def rates_of(system: System, taken: set[str]) -> Lowering:
    """The statements of a right-hand side. taken: as of a Lowering."""
    work = Lowering(system.axes, system.equations.values(), taken, index_ranges(system), default_sizes(system))
    for key, rhs in system.equations.items():
        work.assign(derivative(key), rhs)
    return work


def has_slopes(s: Statement) -> bool:
    """Whether derivatives go through a statement: a shift that cancels has none."""
    return s.op != "max" or s.slopes


# A sweep over statements and not over expressions: each temporary gets one adjoint, so the cost is that of a few right-hand sides, whatever
# is nested.
class ReverseSweep:
    """A reverse sweep: the contributions to each array's adjoint so far, as expressions at the array's own indices."""

    def __init__(self, work: Lowering, indices: dict[str, Indices]):
        self.work, self.indices = work, indices
        self.contributions: defaultdict[str, list[Expr]] = defaultdict(list)

    def total(self, name: str) -> Expr:
        """The adjoint of an array: the sum of its contributions."""
        return sp.Add(*self.contributions[name])

    def collect(self, s: Statement) -> Key | None:
        """The array that holds the adjoint of a temporary; None where nothing contributes to it."""
        if not self.contributions[s.name]:
            return None
        target = self.adjoint_of(s)
        self.work.assign(target, self.total(s.name))
        return target

    def adjoint_of(self, s: Statement) -> Key:
        """An array for the adjoint of a temporary, under a name that nothing has."""
        return array_at(self.work.free_name(f"b_{s.name}{'_' * n}" for n in count()), s.free, self.work.extents)

    def propagate(self, s: Statement, adjoint: Expr) -> None:
        """Adds the contribution of the adjoint of s to every array that s reads."""
        if s.op == "inverse":
            return self._propagate_inverse(s, adjoint)
        loops = {i: self.fresh_index(i) for i in s.loops}
        if s.op == "scatter" and isinstance(adjoint, Indexed):
            adjoint = adjoint.base[(s.via, *s.free[1:])]
        if s.along is not None:
            adjoint = _summed_back(s, adjoint, self.fresh_index(s.along), self.work.extents[s.along])
        weight = (adjoint * (at_first(s, self.work) if s.op == "max" else sp.S.One)).xreplace(loops)
        for read, slope in partial_derivatives(s.body.xreplace(loops), self.indices):
            self.contributions[base_name(read)].append(self.contribution(read, weight * slope, list(loops.values())))

    def _propagate_inverse(self, s: Statement, adjoint: Key) -> None:
        """The adjoint of A is -X^T (adjoint of X) X^T, X its inverse."""
        assert isinstance(s.target, Indexed) and isinstance(s.body, Indexed)
        *batch, i, j = s.free
        k, l, n = self.fresh_index(i), self.fresh_index(j), self.work.extents[i]
        X = s.target.base
        e = -over(Sum, X[(*batch, k, i)] * adjoint.xreplace({i: k, j: l}) * X[(*batch, j, l)], (k, n), (l, n))
        self.contributions[base_name(s.body)].append(e.xreplace(dict(zip(s.free, self.indices[base_name(s.body)], strict=True))))

    def contribution(self, read: Key, weight: Expr, loops: list[Symbol]) -> Expr:
        """The sum of weight over loops, as an expression at the indices of the array read.

        A loop index that indexes the array becomes the array's own index; any other index gives a Kronecker delta.
        """
        left, swap, deltas, ends = list(loops), {}, sp.S.One, list[tuple[Clipped, Symbol]]()
        for index_read, own_index in zip(key_indices(read), self.indices[base_name(read)], strict=True):
            if isinstance(index_read, Symbol) and index_read in left:
                swap[index_read] = own_index
                left.remove(index_read)
            elif isinstance(index_read, Wrapped) and index_read.args[0] in left:
                i, c, n = index_read.args
                swap[i] = Wrapped(own_index, -c, n)
                left.remove(i)
            elif isinstance(index_read, Clipped) and index_read.args[0] in left and not ends:
                ends.append((index_read, own_index))
                left.remove(index_read.args[0])
            else:
                deltas *= KroneckerDelta(own_index, index_read)
        e = (weight * deltas).xreplace(swap)
        return self._at_clipped(e, *ends[0], left) if ends else self._summed(e, left)

    def _summed(self, e: Expr, loops: list[Symbol]) -> Expr:
        return over(Sum, e, *((k, self.work.extents[k]) for k in loops)) if loops else e

    def _at_clipped(self, e: Expr, place: Clipped, axis_index: Symbol, left: list[Symbol]) -> Expr:
        """The sum of e over i and the loops left, where own is the place i + c on an axis.

        That is one i, and at the end of the axis all i beyond it.
        """
        i, c, n = place.args
        inside = Inside(i, c, n)
        at_place = e.xreplace({inside: sp.true}).xreplace({i: Clipped(axis_index, -c, n)})
        whole = self._summed(sp.Piecewise((at_place, Inside(axis_index, -c, n)), (0, True)), left)
        if any(_is_masked(f, inside) for f in sp.Mul.make_args(e)):
            return whole
        beyond = self._summed(sp.Piecewise((0, inside), (e, True)), [*left, i])
        return whole + sp.Piecewise((0, Inside(axis_index, sp.sign(c), n)), (beyond, True))

    def fresh_index(self, i: Symbol) -> Symbol:
        """A new index with the extent of i, under a name that nothing has."""
        (j,) = index(self.work.free_name(f"{i}_b{n}" for n in count(1)))
        self.work.extents[j] = self.work.extents[i]
        return j


def _is_masked(e: Expr, inside: Any) -> bool:
    """Whether e is 0 where the condition does not hold."""
    return isinstance(e, sp.Piecewise) and e.args[-1] == (0, True) and len(e.args) == 2 and inside in sp.And.make_args(e.args[0][1])


def _summed_back(s: Statement, adjoint: Any, k: Symbol, extent: Any) -> Expr:
    """The adjoint of the summand of partial sums: the sum of their adjoints from each element on, or up to it."""
    limits = (k, s.along, extent - 1) if s.op == "prefix" else (k, sp.S.Zero, s.along)
    return bind_indices(SumOver, adjoint.xreplace({s.along: k}), [limits])


def at_first(s: Statement, work: Lowering) -> Expr:
    """1 at the first of the largest elements of a maximum, 0 at the others."""
    return sp.Piecewise((1, sp.Eq(s.bound, work.first(s.body, s.target, s.bound))), (0, True))


def partial_derivatives(body: Expr, arrays: Collection[str], *, finite: bool = False) -> list[tuple[Key, Expr]]:
    """[(element read, derivative of body by it)] for the elements of these arrays, but for derivatives that are 0.

    finite: as of directional_derivative.
    """
    reads = sorted((r for r in reads_of(body) if base_name(r) in arrays), key=str)
    holes = {r: sp.Dummy(f"hole{n}", real=True) for n, r in enumerate(reads)}
    hollow, filled = body.xreplace(holes), {hole: r for r, hole in holes.items()}
    ways = ((r, {str(hole): lambda _: sp.S.One}) for r, hole in holes.items())
    slopes = ((r, directional_derivative(hollow, way, finite=finite).xreplace(filled)) for r, way in ways)
    return [(r, slope) for r, slope in slopes if slope != 0]


def reads_of(e: Any) -> set[Key]:
    """Array elements and symbols that e reads; the indices inside an element do not count."""
    if isinstance(e, Indexed | Symbol):
        return {e}
    return set().union(*map(reads_of, e.args)) if e.args else set()


def needed_statements(statements: list[Statement], outputs: set[str]) -> list[Statement]:
    """The statements that these outputs depend on, in their order."""
    by_name = {s.name: s for s in statements}
    required: set[str] = set()
    waiting = list(outputs)
    while waiting:
        name = waiting.pop()
        if name in by_name and name not in required:
            required.add(name)
            waiting += by_name[name].reads()
    return [s for s in statements if s.name in required]


# A Jacobian as slopes of statements keeps what a dense one would lose: diagonal, low rank and gathers, which solvers use.
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
    work = rates_of(system, all_names(system))
    forward = dependency_order(work.statements)
    work.statements = list(forward)
    states = {base_name(k): key_indices(k) for k in system.equations}
    depends = set(states)
    dependences: list[Dependence] = []
    outputs: dict[str, tuple[Symbol, ...]] = {}
    names = (f"s{n}" for n in count())
    for s in forward:
        for of, read, slope in _inverse_slopes(s, work) if s.op == "inverse" else ((s, *pair) for pair in _slopes(s, depends, work)):
            if base_name(read) not in depends:
                break
            axes = work.free(slope)
            name = work.free_name(names)
            work.assign(array_at(name, axes, work.extents), slope)
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
    ways = {str(time): lambda _: sp.S.One}
    slopes = {derivative(key): directional_derivative(rhs, ways, finite=True) for key, rhs in system.equations.items()}
    return lower_expressions(slopes, system.axes, all_names(system))


def _inverse_slopes(s: Statement, work: Lowering) -> list[tuple[Statement, Key, Expr]]:
    """[(statement, element read, derivative of its target by it)] of an inverse X of A: d Y = dA X, then d X = -X dY."""
    assert isinstance(s.body, Indexed) and isinstance(s.target, Indexed)
    *batch, i, j = s.free
    k, l = (work.loop_index(index(f"{i}_{word}")[0], work.extents[i], sp.Tuple(*s.free)) for word in ("left", "right"))
    A, X = s.body.base, s.target.base
    Y = IndexedBase(work.free_name(f"y{n}" for n in count()), shape=X.shape)
    right = Statement(Y[(*batch, k, j)], (*batch, k, j), "sum", s.body, l)
    left = Statement(s.target, s.free, "sum", s.body, k)
    return [(right, A[(*batch, k, l)], X[(*batch, l, j)]), (left, Y[(*batch, k, j)], -X[(*batch, i, k)])]


def _slopes(s: Statement, depends: set[str], work: Lowering) -> list[tuple[Key, Expr]]:
    """[(element read, derivative of the target by it)] for the states, and the arrays that depend on them, that a statement reads.

    A shift depends on nothing; a maximum depends on the first of its largest elements.
    """
    if s.op == "max":
        return [(s.body, at_first(s, work))] if s.slopes and base_name(s.body) in depends else []
    return partial_derivatives(s.body, depends, finite=True)

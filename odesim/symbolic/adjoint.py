"""Reverse derivatives: J^T u as a Program, by going back through the statements of the right side."""

from collections import defaultdict
from itertools import count
from typing import Any

import sympy as sp
from sympy import Expr, Indexed, KroneckerDelta, Sum, Symbol

from odesim.symbolic.derive import beside, directional
from odesim.symbolic.elements import IndexedBase
from odesim.symbolic.expr import base_name, index, over
from odesim.symbolic.lowering import Lowering, all_names, derivative
from odesim.symbolic.parts import Key, key_indices
from odesim.symbolic.program import Program, Statement
from odesim.symbolic.schedule import ordered, passes
from odesim.symbolic.share import share
from odesim.symbolic.system import System

Place = tuple[Symbol, ...]


def covector(key: Key) -> Key:
    """v[i] -> u_v[i], the input of the transposed product."""
    return (
        IndexedBase(f"u_{key.base.label}", shape=key.base.shape)[key.indices] if isinstance(key, Indexed) else Symbol(f"u_{key}", real=True)
    )


def lower_vjp(system: System) -> Program:
    """J(t, v)^T u as a Program: inputs v and u_v, outputs d_u_v, at the cost of a few right sides.

    Each read in a statement gives its array a share of what is asked of the statement:
    r[n] = sum_l a[n, l]*z[psi[n], l]  gives z[q, l] the share  sum_n delta(q, psi[n])*a[n, l]*(share of r[n])
    """
    covectors = {base_name(derivative(k)): covector(k) for k in system.equations}
    work = Lowering(system.axes, system.equations.values(), {*all_names(system), *(beside(system, "u", n) for n in system.states)})
    for key, rhs in system.equations.items():
        work.assign(derivative(key), rhs)
    forward = ordered(share(work.statements, work))
    work.statements = list(forward)
    back = _Back(work, {base_name(k): key_indices(k) for k in system.equations} | {s.name: s.free for s in forward if _has_slopes(s)})
    for s in reversed(forward):
        asked = covectors.get(s.name) if s.name in covectors else back.collect(s)
        if asked is not None and _has_slopes(s):
            back.spread(s, asked)
    outputs = {derivative(covector(k)): back.total(base_name(k)) for k in system.equations}
    for target, e in outputs.items():
        work.assign(target, e)
    wanted = {base_name(t): key_indices(t) for t in outputs}
    return Program(wanted, dict(work.extents), passes(needed(share(work.statements, work), set(wanted)), work.extents))


def _has_slopes(s: Statement) -> bool:
    return s.op != "max" or s.slopes


class _Back:
    """Shares that arrays have been given so far, as expressions at the array's own indices."""

    def __init__(self, work: Lowering, places: dict[str, Place]):
        self.work, self.places = work, places
        self.shares: defaultdict[str, list[Expr]] = defaultdict(list)

    def total(self, name: str) -> Expr:
        return sp.Add(*self.shares[name])

    def collect(self, s: Statement) -> Key | None:
        """The array that holds all shares of a temporary; None where it has none."""
        if not self.shares[s.name]:
            return None
        shape = tuple(self.work.extents[i] for i in s.free)
        name = next(name for name in (f"b_{s.name}{'_' * n}" for n in count()) if name not in self.work.taken)
        self.work.taken.add(name)
        target = IndexedBase(name, shape=shape)[s.free] if s.free else Symbol(name, real=True)
        self.work.assign(target, self.total(s.name))
        return target

    def spread(self, s: Statement, asked: Key) -> None:
        """Gives every array that s reads its share of what is asked of s."""
        loops = {i: self._apart(i) for i in s.loops}
        if s.op == "scatter" and isinstance(asked, Indexed):
            asked = asked.base[(s.via, *s.free[1:])]
        chosen = sp.Piecewise((1, sp.Eq(s.bound, self.work.first(s.body, s.target, s.bound))), (0, True)) if s.op == "max" else sp.S.One
        body, weight = s.body.xreplace(loops), (asked * chosen).xreplace(loops)
        reads = sorted((r for r in reads_of(body) if base_name(r) in self.places), key=str)
        holes = {r: sp.Dummy(f"hole{n}", real=True) for n, r in enumerate(reads)}
        hollow = body.xreplace(holes)
        filled = {hole: r for r, hole in holes.items()}
        for r, hole in holes.items():
            slope = directional(hollow, {str(hole): lambda _: sp.S.One}).xreplace(filled)
            if slope != 0:
                self.shares[base_name(r)].append(self._share(r, weight * slope, list(loops.values())))

    def _share(self, read: Key, weight: Expr, loops: list[Symbol]) -> Expr:
        """sum over loops of weight at the index of the array read: a plain index is that index, any other leaves a delta."""
        left, swap, deltas = list(loops), {}, sp.S.One
        for mine, own in zip(key_indices(read), self.places[base_name(read)], strict=True):
            if isinstance(mine, Symbol) and mine in left:
                swap[mine] = own
                left.remove(mine)
            else:
                deltas *= KroneckerDelta(own, mine)
        e = (weight * deltas).xreplace(swap)
        return over(Sum, e, *((k, self.work.extents[k]) for k in left)) if left else e

    def _apart(self, i: Symbol) -> Symbol:
        name = next(name for name in (f"{i}_b{n}" for n in count(1)) if name not in self.work.taken)
        self.work.taken.add(name)
        (j,) = index(name)
        self.work.extents[j] = self.work.extents[i]
        return j


def reads_of(e: Any) -> set[Key]:
    """Array elements and symbols in e, without the insides of elements."""
    if isinstance(e, Indexed | Symbol):
        return {e}
    return set().union(*map(reads_of, e.args)) if e.args else set()


def needed(statements: list[Statement], wanted: set[str]) -> list[Statement]:
    """The statements that the wanted outputs depend on."""
    by_name = {s.name: s for s in statements}
    found: set[str] = set()
    waiting = list(wanted)
    while waiting:
        name = waiting.pop()
        if name in by_name and name not in found:
            found.add(name)
            waiting += by_name[name].reads()
    return [s for s in statements if s.name in found]

"""Savings for a right-hand side along one axis, and integer parameters as real numbers: Programs before they are printed."""

from dataclasses import dataclass, replace
from itertools import count

import sympy as sp
from sympy import Expr, Indexed

from odesim.ir.program import Program, Statement
from odesim.symbolic.indices import IndexedBase, Inside, base_name
from odesim.symbolic.reductions import UpTo, free_indices
from odesim.symbolic.system import System

REAL = sp.Function("real", real=True)
PLACES = (sp.KroneckerDelta, Inside, UpTo)
"""What compares places on an axis, which stay whole numbers."""


@dataclass(frozen=True)
class Basis:
    """A right-hand side of the form d_z[i] = scale * r[i] + sum_q weight_q * constant_q[i].

    A stage then stores r in its row and a few numbers beside it. temporary: the name of r. scale, weights: expressions without
    indices. constants: parameter arrays.
    """

    temporary: str
    scale: Expr
    weights: tuple[Expr, ...]
    constants: tuple[Indexed, ...]


@dataclass(frozen=True)
class LoopPlan:
    """The savings that a right-hand side allows.

    fused: the first pass computes the state block by block from the stages. local: no later pass reads the state.
    basis: the right-hand side as a scaled temporary, or None. program: the statements that remain.
    """

    fused: bool
    local: bool
    basis: Basis | None
    program: Program


def make_loop_plan(system: System, program: Program, *, strict: bool) -> LoopPlan:
    """The savings for this right-hand side; in strict mode stages are never scaled."""
    fused = _is_fusible(system, program)
    # a scaled stage needs no second pass over memory; its sums are rounded in another order, so not in strict mode
    basis = _basis(system, program) if fused and not strict else None
    if basis is not None:
        program = replace(program, passes=program.passes[:-1])
    later = [s for group in program.passes[1:] for s in group]
    local = fused and not any(system.states[0] in s.reads() for s in later)
    return LoopPlan(fused, local, basis, program)


def _is_fusible(system: System, program: Program) -> bool:
    """Whether the first pass runs along the only state and reads it in place."""
    shapes = list(system.shapes.items())
    if len(shapes) != 1 or len(shapes[0][1]) != 1:
        return False
    name, (extent,) = shapes[0]
    for s in program.passes[0]:
        if len(s.loops) != 1 or s.op not in ("map", "sum", "max") or sp.expand(program.extents[s.loops[0]] - extent) != 0:
            return False
        if any(base_name(a) == name and a.indices != s.loops for a in s.body.atoms(Indexed)):
            return False
    return True


def _basis(system: System, program: Program) -> Basis | None:
    """The right-hand side as a Basis; None where it is no sum of one temporary and parameter arrays, each times a number."""
    last = program.passes[-1]
    if len(program.passes) < 2 or len(last) != 1 or last[0].op != "map":
        return None
    earlier = {s.name: s for group in program.passes[:-1] for s in group}
    parts = _parts(last[0], program)
    whole = [a for a in parts if isinstance(a, Indexed) and a.indices == last[0].free]  # not a[psi[i]], X[i, 1]
    temporaries = [a for a in whole if base_name(a) in earlier and earlier[base_name(a)].op == "map"]
    params = {p.name for p in system.params}
    constants = [a for a in whole if base_name(a) in params]
    if len(temporaries) != 1 or len(temporaries) + len(constants) != len(parts):
        return None
    r = temporaries[0]
    return Basis(base_name(r), parts[r], tuple(parts[a] for a in constants), tuple(constants))


def _parts(s: Statement, program: Program) -> dict[Expr, Expr]:
    """{factor that depends on the index: its coefficient} for the terms of a statement."""
    indices = set(program.extents)
    coefficients: dict[Expr, Expr] = {}
    for term in sp.Add.make_args(s.body):
        factors = sp.Mul.make_args(term)
        inside = sp.Mul(*(f for f in factors if free_indices(f, indices)))
        outside = sp.Mul(*(f for f in factors if not free_indices(f, indices)))
        coefficients[inside] = coefficients.get(inside, sp.S.Zero) + outside
    return coefficients


def integers_as_real(program: Program, integers: set[str]) -> Program:
    """The Program in which elements of integer arrays (names `integers`) become float64 where they are read, matrix products apart.

    p[m]**9 + z[psi[n]]  ->  real(p[m])**9 + z[psi[n]]
    """

    def real(e: Expr) -> Expr:
        if isinstance(e, Indexed):
            return REAL(e) if base_name(e) in integers else e
        return e.func(*map(real, e.args)) if e.args and not isinstance(e, PLACES) else e

    def convert(s: Statement) -> Statement:
        reads = any(base_name(a) in integers for a in s.body.atoms(Indexed))
        return replace(s, body=real(s.body)) if reads and s.op != "dot" else s

    return replace(program, passes=tuple(tuple(map(convert, group)) for group in program.passes))


def copy_integer_factors(program: Program, integers: set[str], taken: set[str]) -> Program:
    """The Program in which each integer array of a matrix product is first copied to an array of float64.

    integers: names of the integer arrays. taken: names that the copies cannot have.

    r0[a, b] = sum_k J[a, k] * x[k, b]  ->  [w0[a, k] = J[a, k]], [r0[a, b] = sum_k w0[a, k] * x[k, b]]
    """
    # BLAS and our tiles know floats only; one copy costs n^2, the product n^3
    dots = [s for s in program.statements() if s.op == "dot"]
    factors = {f for s in dots for f in s.body.args if isinstance(f, Indexed) and base_name(f) in integers}
    if not factors:
        return program
    used = taken | {s.name for s in program.statements()} | {i.name for i in program.extents} | program.inputs() | program.sizes
    names = (f"w{n}" for n in count() if f"w{n}" not in used)
    copies: dict[str, tuple[Statement, IndexedBase]] = {}
    for f in sorted(factors, key=str):
        if base_name(f) not in copies:
            base = IndexedBase(next(names), shape=tuple(program.extents[i] for i in f.indices))
            copies[base_name(f)] = Statement(base[f.indices], tuple(f.indices), "map", f), base
    copy_of = {f: copies[base_name(f)][1][f.indices] for f in factors}

    def use_copies(s: Statement) -> Statement:
        return replace(s, body=sp.Mul(*(copy_of.get(f, f) for f in s.body.args), evaluate=False)) if s.op == "dot" else s

    first = tuple((copy,) for copy, _ in copies.values())
    return replace(program, passes=(*first, *(tuple(map(use_copies, group)) for group in program.passes)))

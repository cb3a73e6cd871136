"""Savings for a right-hand side along one axis: fewer passes over memory."""

from dataclasses import dataclass, replace

import sympy as sp
from sympy import Expr, Indexed

from odesim.ir.program import Program, Statement
from odesim.symbolic.indices import base_name
from odesim.symbolic.reductions import free_indices
from odesim.symbolic.system import System


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

"""Sum-free statements from indexed expressions: every reduction becomes a named temporary, once."""

from collections.abc import Iterable, Mapping
from typing import Any

from sympy import Expr, Symbol

from odesim.symbolic.bound import canonical
from odesim.symbolic.lowering import Lowering, _name, all_names, derivative
from odesim.symbolic.parts import Key, key_indices
from odesim.symbolic.program import Program
from odesim.symbolic.schedule import passes
from odesim.symbolic.share import share
from odesim.symbolic.system import System


def lower(system: System) -> Program:
    """The right sides of a System as a Program; the output of state v is called d_v."""
    outputs = {derivative(key): rhs for key, rhs in system.equations.items()}
    return lower_expressions(outputs, system.axes, all_names(system))


def lower_expressions(outputs: Mapping[Key, Expr], axes: Mapping[Symbol, Any], taken: Iterable[str] = ()) -> Program:
    """target -> expression as a Program: outputs in the order given, temporaries r0, r1, ... and indices with names not in taken."""
    written = {target: canonical(e) for target, e in outputs.items()}
    work = Lowering(axes, written.values(), taken)
    for target, e in written.items():
        work.assign(target, e)
    statements = share(work.statements, work)
    made = {_name(t): key_indices(t) for t in outputs}
    return Program(made, dict(work.extents), passes(statements, work.extents))

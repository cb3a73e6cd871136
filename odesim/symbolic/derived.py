"""The Program of a System as text: the statements that are compiled, with their temporaries."""

from collections.abc import Iterator

import sympy as sp

from odesim.symbolic.lower import lower
from odesim.symbolic.program import Program, Statement
from odesim.symbolic.reductions import MaxOver, unevaluated
from odesim.symbolic.show import text_of
from odesim.symbolic.system import System


def derived_text(system: System) -> Iterator[str]:
    """The statements of the right-hand side in the order in which they are computed, one per line; d_v is the derivative of v."""
    program = lower(system)
    for statement in program.statements():
        yield statement_text(statement, program)


def statement_text(s: Statement, program: Program) -> str:
    """One assignment, with its sum or maximum over the bound index."""
    body = sp.KroneckerDelta(s.free[0], s.via) * s.body if s.op == "scatter" else s.body
    if s.bound is not None:
        body = unevaluated(MaxOver if s.op == "max" else sp.Sum, body, [(s.bound, 0, program.extents[s.bound] - 1)])
    return f"{text_of(s.target)} = {text_of(body)}"

"""The Program of a System as text: the statements that are compiled, with their temporaries."""

from collections.abc import Iterator

import sympy as sp

from odesim.display.formulas import text_of
from odesim.ir.passes import lower
from odesim.ir.program import Program, Statement
from odesim.symbolic.indices import base_name
from odesim.symbolic.reductions import MaxOver, unevaluated
from odesim.symbolic.system import System


def derived_text(system: System) -> Iterator[str]:
    """The statements of the right-hand side in the order in which they are computed, one per line.

    d_v is the derivative of v, next_v the next state of a Map.
    """
    program = lower(system)
    for statement in program.statements():
        text = statement_text(statement, program)
        following = system.discrete and base_name(statement.target) in program.outputs
        yield text.replace("d_", "next_", 1) if following else text


def statement_text(s: Statement, program: Program) -> str:
    """One assignment, with its sum or maximum over the bound index."""
    body = sp.KroneckerDelta(s.free[0], s.via) * s.body if s.op == "scatter" else s.body
    if s.bound is not None:
        body = unevaluated(MaxOver if s.op == "max" else sp.Sum, body, [(s.bound, 0, program.extents[s.bound] - 1)])
    return f"{text_of(s.target)} = {text_of(body)}"

"""Which expressions are affine in the states and in time: along an interpolant, a polynomial, such a function is a polynomial too."""

from typing import Any

import sympy as sp
from sympy import Expr

from odesim.symbolic.indices import time
from odesim.symbolic.parts import Definition


def is_affine(system: Definition, e: Expr) -> bool:
    """Whether e is a sum of states and time, each times what does not change along a solution, as far as its form shows."""
    moving = {*system.states, time.name}

    def constant(e: Any) -> bool:
        return not any(getattr(s, "name", "") in moving for s in e.free_symbols)

    def affine(e: Any) -> bool:
        if constant(e):
            return True
        if isinstance(e, sp.Add):
            return all(map(affine, e.args))
        if isinstance(e, sp.Mul):
            rest = [a for a in e.args if not constant(a)]
            return len(rest) == 1 and affine(rest[0])
        if isinstance(e, sp.Sum):
            return affine(e.function)
        if isinstance(e, sp.Indexed):
            return e.base.name in moving and all(map(constant, e.indices))
        return isinstance(e, sp.Symbol)

    return affine(e)

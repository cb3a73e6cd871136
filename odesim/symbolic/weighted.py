"""Weighted terms, which do not count where their weight is 0: the parts of softmax() and logsumexp()."""

from typing import Any

import sympy as sp

LOWEST = -1.7976931348623157e308
"""The least float64, below every maximum."""

HIGHEST = sp.Float(709.782712893384)
"""The largest x at which exp(x) is finite in float64; above it 0 * exp(x) would be nan."""


def never_zero(e: Any) -> bool:
    """Whether e is never 0 in float64 either: exp(x), which sympy calls positive, is 0 at -1000."""
    if e.is_Mul:
        return all(map(never_zero, e.args))
    if e.is_Pow:
        return e.exp.is_integer is True and never_zero(e.base)
    return (e.is_Number or e.is_symbol) and e.is_zero is False


class Weighted(sp.Function):  # type: ignore[misc]
    """The term weight * exp(x), and 0 where the weight is 0, even if x is infinite or nan there."""

    nargs = 2

    @classmethod
    def eval(cls, weight: Any, x: Any) -> Any:
        if weight == 0:
            return sp.S.Zero
        if never_zero(weight):
            return weight * sp.exp(x)
        if isinstance(weight, sp.Piecewise):  # a branch of 0 has slope 0
            return sp.Piecewise(*((cls(value, _in_branch(x, weight, n)), condition) for n, (value, condition) in enumerate(weight.args)))
        return None

    def fdiff(self, argindex: int = 1) -> Any:
        return sp.exp(sp.Min(self.args[1], HIGHEST)) if argindex == 1 else self

    def _eval_is_extended_real(self) -> bool:
        return True

    def readable(self) -> Any:
        """weight * exp(x), as people write it."""
        return self.args[0] * sp.exp(self.args[1])


def _in_branch(x: Any, weight: Any, branch: int) -> Any:
    """x in one branch of the weight, 0 in the others, so that exp() of it is finite wherever it is computed."""
    return sp.Piecewise(*((x if n == branch else sp.S.Zero, condition) for n, (_, condition) in enumerate(weight.args)))


class Counted(sp.Function):  # type: ignore[misc]
    """x where the weight is not 0, else less than every maximum; used in a shift, which has no derivative."""

    nargs = 2

    @classmethod
    def eval(cls, weight: Any, x: Any) -> Any:
        return x if never_zero(weight) else None

    def _eval_is_extended_real(self) -> bool:
        return True

"""Terms that count where their weight is not 0: the parts of softmax() and logsumexp()."""

from typing import Any

import sympy as sp

LOWEST = -1.7976931348623157e308
"""What no maximum is below: the least of all numbers of float64."""

HIGHEST = sp.Float(709.782712893384)
"""The largest x at which exp(x) is a number of float64: beyond it, 0 * exp(x) would be none."""


class Weighted(sp.Function):  # type: ignore[misc]
    """weight * exp(x), and 0 where the weight is 0, whatever x is there: an entry left out may be infinite or not a number."""

    nargs = 2

    @classmethod
    def eval(cls, weight: Any, x: Any) -> Any:
        if weight.is_zero:
            return sp.S.Zero
        if weight.is_zero is False:
            return weight * sp.exp(x)
        if isinstance(weight, sp.Piecewise):  # a branch of 0 has slope 0, and x is looked at in the other branches alone
            seen = sp.Piecewise(*((sp.S.Zero if value == 0 else x, condition) for value, condition in weight.args))
            return sp.Piecewise(*((cls(value, seen), condition) for value, condition in weight.args))
        return None

    def fdiff(self, argindex: int = 1) -> Any:
        return sp.exp(sp.Min(self.args[1], HIGHEST)) if argindex == 1 else self

    def _eval_is_extended_real(self) -> bool:
        return True

    def plain(self) -> Any:
        """weight * exp(x), as people write it."""
        return self.args[0] * sp.exp(self.args[1])


class Counted(sp.Function):  # type: ignore[misc]
    """x where the weight is not 0, and below every maximum where it is: of a shift, which has no derivative."""

    nargs = 2

    @classmethod
    def eval(cls, weight: Any, x: Any) -> Any:
        return x if weight.is_zero is False else None

    def _eval_is_extended_real(self) -> bool:
        return True

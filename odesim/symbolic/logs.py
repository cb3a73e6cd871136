"""The function x log(y) with 0 log(0) = 0, and the entropy."""

from __future__ import annotations

from typing import Any

import sympy as sp
from sympy import Expr, Sum, Symbol

from odesim.base.parsing import readable
from odesim.symbolic.expr import argument_expression, over
from odesim.symbolic.weighted import never_zero


class XLogY(sp.Function):  # type: ignore[misc]
    """The function x*log(y), and 0 where x is 0 and y is not above 0."""

    nargs = 2

    @classmethod
    def eval(cls, x: Any, y: Any) -> Any:
        if x == 0:
            return sp.S.Zero
        return x * sp.log(y) if never_zero(x) else None

    def fdiff(self, argindex: int = 1) -> Any:
        x, y = self.args
        return XLogY(sp.S.One, y) if argindex == 1 else Share(x, y)

    def _eval_is_extended_real(self) -> bool:
        return True

    def along(self, dx: Any, dy: Any) -> Any:
        """The derivative along (dx, dy); 0 where dx and dy are 0, at y = 0 too."""
        x, y = self.args
        return XLogY(dx, y) + Share(x * dy, y)

    def readable(self) -> Any:
        """x*log(y), as people write it."""
        return self.args[0] * sp.log(self.args[1])


class Share(sp.Function):  # type: ignore[misc]
    """The quotient x/y, and 0 where both are 0."""

    nargs = 2

    @classmethod
    def eval(cls, x: Any, y: Any) -> Any:
        if x == 0:
            return sp.S.Zero
        return x / y if never_zero(x) or never_zero(y) else None

    def fdiff(self, argindex: int = 1) -> Any:
        x, y = self.args
        return 1 / y if argindex == 1 else -Share(Share(x, y), y)

    def _eval_is_extended_real(self) -> bool:
        return True

    def readable(self) -> Any:
        """x/y, as people write it."""
        return self.args[0] / self.args[1]


@readable
def xlogy(x: Any, y: Any) -> Expr:
    """x*log(y) with 0*log(0) = 0."""
    return XLogY(argument_expression("xlogy()", x), argument_expression("xlogy()", y))


@readable
def entropy(p: Any, axis: tuple[Symbol, Any]) -> Expr:
    """-sum_l p_l log(p_l) over axis = (l, M) with 0 log(0) = 0: the entropy of shares p that sum to 1."""
    p = argument_expression("entropy()", p)
    return -over(Sum, xlogy(p, p), axis)

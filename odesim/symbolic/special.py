"""Special functions: those that sympy lacks, derivatives without sympy's poles and cases, and what their arguments must be."""

from collections.abc import Callable, Collection
from typing import Any

import sympy as sp
from sympy import Expr

MOST_ORDER = 30
MOST_OF_SLOPES = 36
"""The largest order in the equations of sensitivities, where a derivative has the next one."""


class besseli_ratio(sp.Function):  # type: ignore[misc]  # noqa: N801
    """The quotient I_(n+1)(x)/I_n(x) of modified Bessel functions, n = 0, 1, ...: finite where both overflow.

    besseli_ratio(0, kappa) is the mean resultant length of a von Mises distribution.
    """

    nargs = 2

    def _eval_is_extended_real(self) -> bool:
        return True

    def _eval_evalf(self, prec: int) -> Any:
        n, x = self.args
        return (sp.besseli(n + 1, x) / sp.besseli(n, x)).evalf(prec=prec) if x.is_number else None

    def fdiff(self, argindex: int = 2) -> Any:
        n, x = self.args
        return _ratio_slope(n, x)

    def _latex(self, printer: Any, exp: Any = None) -> str:
        n, x = self.args
        text = rf"\frac{{{printer._print(sp.besseli(n + 1, x))}}}{{{printer._print(sp.besseli(n, x))}}}"
        return text if exp is None else rf"\left({text}\right)^{{{exp}}}"


def _ratio_slope(n: Any, x: Any) -> Expr:
    """The derivative of besseli_ratio(n, x), without the division by x of its textbook form."""
    ratio = besseli_ratio(n, x)
    return 1 - ratio**2 - (2 * n + 1) * (1 - ratio * besseli_ratio(n + 1, x)) / (2 * n + 2)


def _spherical(n: Any, x: Any) -> Expr:
    """The spherical Bessel function j_n(x); j_0 is sinc."""
    return sp.sinc(x) if n == 0 else sp.jn(n, x)


def _lambert_slope(x: Any, *branch: Any) -> Expr:
    w = sp.LambertW(x, *branch)
    return sp.exp(-w) / (1 + w)


SLOPES: dict[Any, Callable[..., Expr]] = {
    sp.sinc: lambda x: -sp.jn(1, x),
    sp.jn: lambda n, x: (n * _spherical(n - 1, x) - (n + 1) * _spherical(n + 1, x)) / (2 * n + 1),
    sp.loggamma: sp.digamma,
    sp.polygamma: lambda n, x: sp.polygamma(n + 1, x),
    sp.besseli: lambda n, x: sp.besseli(1, x) if n == 0 else (sp.besseli(n - 1, x) + sp.besseli(n + 1, x)) / 2,
    besseli_ratio: _ratio_slope,
}
"""{function: its derivative by its last argument}; the others are whole numbers."""


def slope(e: Expr, n: int) -> Expr | None:
    """The derivative of a special function by its n-th argument; None for every other expression."""
    if isinstance(e, sp.LambertW):
        return _lambert_slope(*e.args) if n == 0 else sp.S.Zero
    rule = SLOPES.get(type(e))
    if rule is None:
        return None
    return rule(*e.args) if n == len(e.args) - 1 else sp.S.Zero


def argument_mistake(e: Expr, integers: Callable[[], Collection[str]], most: int = MOST_ORDER) -> str | None:
    """A sentence where an argument of e must be a whole number and is not. integers(): names of indices, sizes and index parameters.

    most: the largest order.
    """
    if isinstance(e, sp.binomial):
        for a in e.args:
            if not is_whole(a, integers()):
                takes = "whole numbers, indices, sizes and parameters whose domain is whole numbers"
                return f"{e}: {a} is no whole number; binomial() takes {takes}"
    if isinstance(e, sp.besseli | besseli_ratio | sp.jn | sp.polygamma):
        n = e.args[0]
        fixed = isinstance(e, sp.jn | sp.polygamma) or n.is_number
        if not (n.is_Integer and 0 <= n <= most if fixed else is_whole(n, integers())):
            orders = f"a whole number from 0 to {most}{'' if isinstance(e, sp.jn | sp.polygamma) else ', or an index'}"
            return f"{e}: the order {n} must be {orders}"
    if isinstance(e, sp.LambertW) and e.args[1:] not in ((), (0,), (-1,)):
        return f"{e}: {e.args[1]} is no branch of LambertW that is real; choose from 0, -1"
    return None


def is_whole(e: Expr, integers: Collection[str]) -> bool:
    """Whether e is made of whole numbers by sums and products."""
    if isinstance(e, sp.Indexed):
        return str(e.base.label) in integers
    if isinstance(e, sp.Symbol):
        return e.name in integers
    return bool(e.is_Integer) or ((e.is_Add or e.is_Mul) and all(is_whole(a, integers) for a in e.args))

"""The functions that an expression may contain, and those that sympy lacks."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import sympy as sp
from sympy import Expr, Sum, Symbol

from odesim.base.parsing import readable
from odesim.symbolic.indices import argument_expression
from odesim.symbolic.reductions import Shift, over

FUNCTIONS = {
    "exp": "exp", "log": "log", "log1p": "log1p", "expm1": "expm1", "tanh": "tanh", "erf": "erf",
    "sin": "sin", "cos": "cos", "tan": "tan", "asin": "asin", "acos": "acos", "atan": "atan", "atan2": "atan2",
    "sinh": "sinh", "cosh": "cosh", "asinh": "asinh", "acosh": "acosh", "atanh": "atanh", "erfc": "erfc", "sinc": "sinc",
    "jn": "spherical_jn", "LambertW": "lambertw", "binomial": "binomial", "Abs": "abs", "floor": "floor", "ceiling": "ceiling",
}  # fmt: skip
"""{sympy class: name of the function in generated code}; each target language has a table of those that it renames."""
OTHERS = frozenset((
    "Add", "Mul", "Pow", "Piecewise", "Max", "Min", "sign", "Heaviside", "KroneckerDelta", "Mod", "frac", "re", "im",
    "Weighted", "Counted", "XLogY", "Share", "Wrapped", "Padded", "Clipped", "Inside", "UpTo",
))  # fmt: skip
"""sympy classes that a printer writes in a form of their own, or by other functions."""
CHOICES = ("sqrt", "Max", "Min", "sign", "Heaviside", "Mod", "xlogy", *FUNCTIONS)
"""Functions that a model file may write, beside +, *, ** and Piecewise."""


def is_known(name: str) -> bool:
    """Whether code can be generated for the sympy class with this name."""
    return name in FUNCTIONS or name in OTHERS


# A term of weight 0 is no term, whatever its exponent is: 0 * exp(inf) would be nan in a masked softmax.
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


class RealFunction(sp.Function):  # type: ignore[misc]
    """A function whose values are real numbers; sympy counts its arguments in the signature of eval()."""

    def _eval_is_extended_real(self) -> bool:
        return True


class Weighted(RealFunction):
    """The term weight * exp(x), and 0 where the weight is 0, even if x is infinite or nan there."""

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

    def readable(self) -> Any:
        """weight * exp(x), as people write it."""
        return self.args[0] * sp.exp(self.args[1])


def _in_branch(x: Any, weight: Any, branch: int) -> Any:
    """x in one branch of the weight, 0 in the others, so that exp() of it is finite wherever it is computed."""
    return sp.Piecewise(*((x if n == branch else sp.S.Zero, condition) for n, (_, condition) in enumerate(weight.args)))


class Counted(RealFunction):
    """x where the weight is not 0, else less than every maximum; used in a shift, which has no derivative."""

    @classmethod
    def eval(cls, weight: Any, x: Any) -> Any:
        return x if never_zero(weight) else None


@readable
def softmax(f: Any, axis: tuple[Symbol, Any], weight: Any = 1) -> Expr:
    """w_l exp(f_l) / sum_l w_l exp(f_l), without overflow.

    Parameters
    ----------
    f : expression
        The logits.
    axis : (index, extent)
        (l, M).
    weight : expression
        Entries of weight 0 do not count, whatever f_l is there.

    Returns
    -------
    expression
        In the index of the axis.

    Examples
    --------
    >>> x, (l,), (M,) = IndexedBase("x", shape=sizes("M")), index("l"), sizes("M")
    >>> softmax(x[l], (l, M)).free_symbols >= {l, M}
    True
    """
    f, weight = argument_expression("softmax()", f), argument_expression("the weight of softmax()", weight)
    e = shifted_exp(f, axis, weight)
    return e / over(Sum, e, axis)


@readable
def logsumexp(f: Any, axis: tuple[Symbol, Any], weight: Any = 1) -> Expr:
    """log sum_l w_l exp(f_l), without overflow.

    Parameters
    ----------
    f, axis, weight
        As of softmax().

    Returns
    -------
    expression
        A number for each value of the other indices.

    Examples
    --------
    >>> x, (l,), (M,) = IndexedBase("x", shape=sizes("M")), index("l"), sizes("M")
    >>> l in logsumexp(x[l], (l, M)).free_symbols
    False
    """
    f, weight = argument_expression("logsumexp()", f), argument_expression("the weight of logsumexp()", weight)
    return shift(f, axis, weight) + sp.log(over(Sum, shifted_exp(f, axis, weight), axis))


@readable
def shifted_exp(f: Any, axis: tuple[Symbol, Any], weight: Any = 1) -> Expr:
    """w_l exp(f_l - top) with top the largest f_l over axis = (l, M) where w_l is not 0: for ratios in which top cancels.

    Parameters
    ----------
    f, axis, weight
        As of softmax().

    Returns
    -------
    expression
        In the index of the axis.

    Examples
    --------
    >>> x, (l,), (M,) = IndexedBase("x", shape=sizes("M")), index("l"), sizes("M")
    >>> share = shifted_exp(x[l], (l, M)) / over(Sum, shifted_exp(x[l], (l, M)), (l, M))
    >>> l in share.free_symbols
    True
    """
    f, weight = argument_expression("shifted_exp()", f), argument_expression("the weight of shifted_exp()", weight)
    return Weighted(weight, f - shift(f, axis, weight))


@readable
def shift(f: Any, axis: tuple[Symbol, Any], weight: Any = 1) -> Expr:
    """The largest f_l over axis = (l, M) where w_l is not 0, for ratios in which it cancels: its derivative is 0.

    Parameters
    ----------
    f, axis, weight
        As of softmax().

    Returns
    -------
    expression
        A Shift, which formulas do not print.

    Examples
    --------
    >>> x, (l,), (M,) = IndexedBase("x", shape=sizes("M")), index("l"), sizes("M")
    >>> shift(x[l], (l, M)).diff(x[0])
    0
    """
    return over(Shift, Counted(argument_expression("the weight of shift()", weight), argument_expression("shift()", f)), axis)


# 0 log 0 = 0 by a function of its own: a Piecewise around log would still compute log(0), and the slope of a branch that is not taken.
class XLogY(RealFunction):
    """The function x*log(y), and 0 where x is 0 and y is not above 0."""

    @classmethod
    def eval(cls, x: Any, y: Any) -> Any:
        if x == 0:
            return sp.S.Zero
        return x * sp.log(y) if never_zero(x) else None

    def fdiff(self, argindex: int = 1) -> Any:
        x, y = self.args
        return XLogY(sp.S.One, y) if argindex == 1 else Share(x, y)

    def along(self, dx: Any, dy: Any) -> Any:
        """The derivative along (dx, dy); 0 where dx and dy are 0, at y = 0 too."""
        x, y = self.args
        return XLogY(dx, y) + Share(x * dy, y)

    def readable(self) -> Any:
        """x*log(y), as people write it."""
        return self.args[0] * sp.log(self.args[1])


class Share(RealFunction):
    """The quotient x/y, and 0 where both are 0."""

    @classmethod
    def eval(cls, x: Any, y: Any) -> Any:
        if x == 0:
            return sp.S.Zero
        return x / y if never_zero(x) or never_zero(y) else None

    def fdiff(self, argindex: int = 1) -> Any:
        x, y = self.args
        return 1 / y if argindex == 1 else -Share(Share(x, y), y)

    def along(self, dx: Any, dy: Any) -> Any:
        """The derivative along (dx, dy); 0 where all are 0."""
        # dx/y, which fdiff() gives, is not a number at y = 0, and no formula at all where y is 0 beyond the end of an axis
        x, y = self.args
        return Share(dx, y) - Share(Share(x, y) * dy, y)

    def readable(self) -> Any:
        """x/y, as people write it."""
        return self.args[0] / self.args[1]


@readable
def xlogy(x: Any, y: Any) -> Expr:
    """x*log(y) with 0*log(0) = 0.

    Parameters
    ----------
    x, y : expression
        Factor and argument.

    Returns
    -------
    expression
        With derivatives log(y) and x/y.

    Examples
    --------
    >>> xlogy(0, 0)
    0
    """
    return XLogY(argument_expression("xlogy()", x), argument_expression("xlogy()", y))


@readable
def entropy(p: Any, axis: tuple[Symbol, Any]) -> Expr:
    """-sum_l p_l log(p_l) with 0 log(0) = 0: the entropy of shares p that sum to 1.

    Parameters
    ----------
    p : expression
        The shares.
    axis : (index, extent)
        (l, M).

    Returns
    -------
    expression
        A number for each value of the other indices.

    Examples
    --------
    >>> p, (l,), (M,) = IndexedBase("p", shape=sizes("M")), index("l"), sizes("M")
    >>> entropy(p[l], (l, M))
    -Sum(XLogY(p[l], p[l]), (l, 0, M - 1))
    """
    p = argument_expression("entropy()", p)
    return -over(Sum, xlogy(p, p), axis)


MOST_ORDER = 36
"""The largest order of a spherical Bessel function: sinc and its derivatives are all that need one."""


# Of these the slopes are ours: those of sympy have poles that cancel, or cases that no printer has.
def _spherical(n: Any, x: Any) -> Expr:
    """The spherical Bessel function j_n(x); j_0 is sinc."""
    return sp.sinc(x) if n == 0 else sp.jn(n, x)


def special_slope(e: Expr, n: int) -> Expr | None:
    """The derivative of a special function by its n-th argument; None for every other expression."""
    if isinstance(e, sp.LambertW):
        w = sp.LambertW(*e.args)
        return sp.exp(-w) / (1 + w) if n == 0 else sp.S.Zero
    if isinstance(e, sp.sinc):
        return -sp.jn(1, e.args[0])
    if isinstance(e, sp.jn):
        order, x = e.args
        return (order * _spherical(order - 1, x) - (order + 1) * _spherical(order + 1, x)) / (2 * order + 1) if n == 1 else sp.S.Zero
    return None


def argument_mistake(e: Expr, integers: Callable[[], Collection[str]]) -> str | None:
    """A sentence where an argument of e must be a whole number and is not. integers(): names of indices, sizes and integer parameters."""
    if isinstance(e, sp.binomial):
        for a in e.args:
            if not is_whole(a, integers()):
                takes = "whole numbers, indices, sizes and parameters whose domain is whole numbers"
                return f"{e}: {a} is no whole number; binomial() takes {takes}"
    if isinstance(e, sp.jn) and not (e.args[0].is_Integer and 0 <= e.args[0] <= MOST_ORDER):
        return f"{e}: the order {e.args[0]} must be a whole number from 0 to {MOST_ORDER}"
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

"""Arithmetic of typed expressions: numbers are computed at once and stay finite and small, the rest is left to sympy."""

import math
import operator
from collections.abc import Callable
from typing import Any

import sympy as sp
from sympy import Expr

LARGEST_POWER = 100
MOST_BITS = 1000  # of the integers in an expression: sympy computes with all of their digits
OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "**": operator.pow,
}  # fmt: skip
PLAIN: dict[str, Callable[..., float]] = {
    "abs": abs, "sqrt": math.sqrt,
    **{name: getattr(math, name) for name in (
        "acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "erf", "erfc", "exp", "log", "sin", "sinh", "tan", "tanh",
    )},
}  # fmt: skip


class NumberError(Exception):
    """A number that is not finite, or too large to compute with; the message is a sentence."""


def number(text: str) -> Expr:
    """A literal: a whole number of up to 15 digits is exact, every other one a float."""
    if text.isdigit() and len(text) <= 15:
        return sp.Integer(text)
    return finite(float(text), text)


def operate(sign: str, a: Expr, b: Expr) -> Expr:
    """a sign b. Raises NumberError."""
    if sign == "/" and b == 0:
        raise NumberError("this divides by 0")
    if sign == "**" and b.is_number and abs(b) > LARGEST_POWER:
        raise NumberError(f"a power of more than {LARGEST_POWER} is too large")
    if a.is_Rational and b.is_Rational and (sign != "**" or (b.is_Integer and (a != 0 or b >= 0))):
        return checked(OPERATORS[sign](a, b))
    if a.is_number and b.is_number:
        return computed(lambda: OPERATORS[sign](float(a), float(b)), f"{float(a):g} {sign} {float(b):g}")
    return checked(OPERATORS[sign](a, b))


def call(name: str, function: Callable[..., Any], *arguments: Expr) -> Expr:
    """function(*arguments). Raises NumberError."""
    if all(x.is_number for x in arguments):
        values = [float(x) for x in arguments]
        what = f"{name}({', '.join(f'{x:g}' for x in values)})"
        return computed(lambda: PLAIN[name](*values) if name in PLAIN else value_of(function(*arguments)), what)
    return checked(function(*arguments))


def value_of(e: Any) -> Any:
    """A number of sympy's as a float, or complex where it is that."""
    value = complex(e.evalf())
    return value if value.imag else value.real


def extreme(name: str, parts: tuple[Expr, ...]) -> Expr:
    """max or min of these. sympy is not asked which is larger: of long expressions that takes minutes."""
    if all(e.is_number for e in parts):
        return (max if name == "max" else min)(parts, key=float)
    return (sp.Max if name == "max" else sp.Min)(*parts, evaluate=False)


def computed(value: Callable[[], Any], what: str) -> Expr:
    """The finite number that value() gives, as a Float. Raises NumberError."""
    try:
        return finite(value(), what)
    except (ValueError, ZeroDivisionError, OverflowError):
        raise NumberError(f"{what} is not a finite number") from None


def finite(value: Any, what: str) -> Expr:
    """A float as an expression. Raises NumberError where it is complex, infinite or nan."""
    if isinstance(value, complex) or not math.isfinite(value):
        raise NumberError(f"{what} is not a finite number")
    return sp.Float(value)


def checked(e: Any) -> Expr:
    """e, if its numbers are finite and not too long. Raises NumberError."""
    if e.has(sp.nan, sp.zoo, sp.oo, -sp.oo):
        raise NumberError("this is not a finite number")
    if any(max(abs(n.p), n.q).bit_length() > MOST_BITS for n in e.atoms(sp.Rational)):
        raise NumberError("a number becomes too large")
    return e  # type: ignore[no-any-return]

"""Expressions as text: one walk over a sympy expression, with a subclass for the syntax of each language."""

from collections.abc import Callable
from functools import reduce
from math import isfinite
from typing import Any

import sympy as sp
from sympy import Indexed, KroneckerDelta, Symbol

from odesim.base.errors import CodegenError, shorten
from odesim.symbolic.functions import FUNCTIONS, LOWEST

SUM, PRODUCT, UNARY, ATOM = 1, 2, 3, 4
MOST = 64
"""Operands in a row: of more the text would be nested too deeply for a compiler, and they are grouped."""


def in_groups(parts: list[Any], join: Callable[[list[Any]], str], again: Callable[[str], Any] = str) -> str:
    """join(parts); of more than MOST parts the join of the joins of groups of them, in order, each made a part by `again`."""
    while len(parts) > MOST:
        parts = [again(join(parts[k : k + MOST])) for k in range(0, len(parts), MOST)]
    return join(parts)


class Printer:
    """A printer of expressions. integers: names of the symbols (indices, sizes) that are integers."""

    def __init__(self, integers: set[str]):
        self.integers = integers

    def text(self, e: Any, above: int = 0) -> str:
        """e as text, in brackets where it binds less than `above`. Raises CodegenError where no backend can compute e."""
        text, binds = self._walk(sp.sympify(e))
        return f"({text})" if binds < above else text

    def _walk(self, e: Any) -> tuple[str, int]:
        simple: Callable[[Any], tuple[str, int]] | None = getattr(self, f"_{type(e).__name__}", None)
        if simple is not None:
            return simple(e)
        if e.is_Integer or e.is_Rational or e.is_Float or e.is_NumberSymbol:
            return self.number(float(e))
        if isinstance(e, Symbol):
            return (self.whole(e.name) if e.name in self.integers else e.name), ATOM
        if isinstance(e, sp.core.relational.Relational):
            return self._relation(e)
        name = FUNCTIONS.get(type(e).__name__)
        if name is None:
            raise CodegenError(f"{type(e).__name__} in {e} has no generated code; known are {', '.join(sorted(FUNCTIONS))} and powers")
        return self.call(name, *(self.text(a) for a in e.args)), ATOM

    def number(self, x: float) -> tuple[str, int]:
        if not isfinite(x):
            raise CodegenError(f"a number in an expression overflows float64: {x}")
        return repr(x), (ATOM if x >= 0 else UNARY)

    def _Add(self, e: Any) -> tuple[str, int]:
        parts = []
        for term in e.args:
            minus = term.could_extract_minus_sign() and (term.is_Number or (term.is_Mul and term.args[0].is_Number))
            parts.append((" - " if minus else " + ", self.text(-term if minus else term, PRODUCT if minus else SUM)))
        parts.sort(key=lambda part: part[0] == " - ")  # a leading sum needs no sign
        return in_groups(parts, self._total, lambda total: (" + ", f"({total})")), SUM

    def _total(self, parts: list[tuple[str, str]]) -> str:
        """The sum of (sign, term)."""
        text = "".join(sign + part for sign, part in parts)
        return text[3:] if text.startswith(" + ") else "-" + text[3:]

    def _Mul(self, e: Any) -> tuple[str, int]:
        above, below, sign = [], [], ""
        for f in e.args:
            if f == -1:
                sign = "-"
            elif f.is_Pow and f.args[1].could_extract_minus_sign():
                below.append(sp.Pow(f.args[0], -f.args[1]))
            else:
                above.append(f)
        top = self._product([self.text(f, PRODUCT) for f in above]) or "1.0"
        if not below:
            return sign + top, PRODUCT
        bottom = self._product([self.text(f, PRODUCT) for f in below])
        return f"{sign}{top}/{bottom if len(below) == 1 and self._bound(below[0]) else f'({bottom})'}", PRODUCT

    def _product(self, factors: list[str]) -> str:
        """The product of these factors."""
        return in_groups(factors, "*".join, "({})".format)

    def _bound(self, e: Any) -> bool:
        return self._walk(e)[1] == ATOM

    def _Pow(self, e: Any) -> tuple[str, int]:
        base, n = e.args
        if n.could_extract_minus_sign():
            return f"1.0/{self.text(sp.Pow(base, -n), ATOM)}", PRODUCT
        # products, as design has it: x**2 by pow would cost a logarithm and an exponential, and two ulp
        if n.is_Integer:
            if n >= 1 << 63:
                raise CodegenError(f"the exponent in {shorten(str(e), 60)} is above 2^63, and has no generated code")
            # written out up to 4: a call of powi has a loop that the vectoriser must first unroll
            if n <= 4 and (base.is_Symbol or isinstance(base, Indexed)):
                return "*".join([self.text(base, ATOM)] * int(n)), PRODUCT
            return self.call("powi", self.text(base), str(n)), ATOM
        if n == sp.Rational(1, 2):
            return self.call("sqrt", self.text(base)), ATOM
        if n.is_Rational and n.q == 2:
            return self.text(sp.Mul(sp.Pow(base, n - sp.Rational(1, 2)), sp.sqrt(base), evaluate=False)), PRODUCT
        return self.call("pow", self.text(base), self.text(n)), ATOM

    def _Piecewise(self, e: Any) -> tuple[str, int]:
        *cases, (last, otherwise) = e.args
        if otherwise is not sp.true:
            cases, last = [*cases, (last, otherwise)], sp.nan
        return self._cases([(self.text(value), self.text(condition)) for value, condition in cases], self.text(last)), ATOM

    def _cases(self, cases: list[tuple[str, str]], last: str) -> str:
        """A choice among (value, condition); of more than MOST cases, first between the first half and the others."""
        if len(cases) > MOST:
            first, others = cases[: len(cases) // 2], cases[len(cases) // 2 :]
            some = self.either([condition for _, condition in first])
            return self.choice(some, self._cases(first[:-1], first[-1][0]), self._cases(others, last))
        text = last
        for value, condition in reversed(cases):
            text = self.choice(condition, value, text)
        return text

    def _KroneckerDelta(self, e: KroneckerDelta) -> tuple[str, int]:
        a, b = (self.subscript(x) for x in e.args)
        return self.choice(f"{a} == {b}", "1.0", "0.0"), ATOM

    def _relation(self, e: Any) -> tuple[str, int]:
        sign = {"Equality": "==", "Unequality": "!="}.get(type(e).__name__, e.rel_op)
        return f"{self.text(e.lhs, PRODUCT)} {sign} {self.text(e.rhs, PRODUCT)}", 0

    def _And(self, e: Any) -> tuple[str, int]:
        return self.both(sorted(self.text(a) for a in e.args)), 0

    def _Or(self, e: Any) -> tuple[str, int]:
        return self.either(sorted(self.text(a) for a in e.args)), 0

    def _Max(self, e: Any) -> tuple[str, int]:
        return self._fold("maximum", e)

    def _Min(self, e: Any) -> tuple[str, int]:
        return self._fold("minimum", e)

    def _fold(self, name: str, e: Any) -> tuple[str, int]:
        parts = sorted(self.text(a) for a in e.args)
        return in_groups(parts, lambda texts: reduce(lambda a, b: self.call(name, a, b), texts)), ATOM

    def _sign(self, e: Any) -> tuple[str, int]:
        x = self.text(e.args[0], PRODUCT)
        return self._steps(x, "1.0", "-1.0", "0.0"), ATOM

    def _steps(self, x: str, above: str, below: str, at: str) -> str:
        """The text of a value above 0, below 0 and at 0; NaN gives NaN."""
        return self.choice(f"{x} > 0.0", above, self.choice(f"{x} < 0.0", below, self.choice(f"{x} == 0.0", at, self.constant("nan"))))

    def _Heaviside(self, e: Any) -> tuple[str, int]:
        return self._steps(self.text(e.args[0], PRODUCT), "1.0", "0.0", self.text(e.args[1])), ATOM

    def _Weighted(self, e: Any) -> tuple[str, int]:
        weight, x = (self.text(a, PRODUCT) for a in e.args)
        # a product, not a choice, so that its slope by the weight is exp(x) at 0 too; exp(88) is finite in float32
        # the weight of a masked entry is 0 and its x may overflow; 0*inf would be NaN
        fits = self.either([f"{weight} != 0.0", f"{x} <= 88.0"])
        return f"{weight}*{self.call('exp', self.choice(fits, x, '88.0'))}", PRODUCT

    def _XLogY(self, e: Any) -> tuple[str, int]:
        x, y = (self.text(a, PRODUCT) for a in e.args)
        # 0 log 0 is 0 here, as its limit is; scipy's xlogy says the same
        return f"{x}*{self.call('log', self.choice(self.either([f'{x} != 0.0', f'{y} > 0.0']), y, '1.0'))}", PRODUCT

    def _Share(self, e: Any) -> tuple[str, int]:
        x, y = (self.text(a, PRODUCT) for a in e.args)
        return f"{x}/{self.choice(self.either([f'{x} != 0.0', f'{y} != 0.0']), y, '1.0')}", PRODUCT

    def _Counted(self, e: Any) -> tuple[str, int]:
        weight, x = (self.text(a, PRODUCT) for a in e.args)
        return self.choice(f"{weight} == 0.0", self.number(LOWEST)[0], x), ATOM

    def _ceiling(self, e: Any) -> tuple[str, int]:
        return f"-{self.call('floor', self.text(-e.args[0]))}", UNARY

    def _Mod(self, e: Any) -> tuple[str, int]:
        u, q = e.args
        return self._walk(u - q * sp.floor(u / q, evaluate=False))

    def _polygamma(self, e: Any) -> tuple[str, int]:
        n, x = e.args
        return self.call("digamma", self.text(x)) if n == 0 else self.call("polygamma", self.text(n), self.text(x)), ATOM

    def _LambertW(self, e: Any) -> tuple[str, int]:
        x, *branch = e.args
        return self.call("lambertw_lower" if branch == [-1] else "lambertw", self.text(x)), ATOM

    def _frac(self, e: Any) -> tuple[str, int]:
        return self._walk(e.args[0] - sp.floor(e.args[0], evaluate=False))

    def _real(self, e: Any) -> tuple[str, int]:
        return self.whole(self.element(e.args[0])), ATOM

    # sympy keeps re() around what it cannot prove real; all our symbols are
    def _re(self, e: Any) -> tuple[str, int]:
        """The real part of a real number: sympy writes |exp(x)| as exp(re(x)), as elements of arrays may be complex to it."""
        return self._walk(e.args[0])

    def _im(self, e: Any) -> tuple[str, int]:
        return self.number(0.0)

    def _NaN(self, e: Any) -> tuple[str, int]:
        return self.constant("nan"), ATOM

    def _Indexed(self, e: Indexed) -> tuple[str, int]:
        return self.element(e), ATOM

    def _Wrapped(self, e: Any) -> tuple[str, int]:
        return self.wrap(*self._place(e)), ATOM

    def _Padded(self, e: Any) -> tuple[str, int]:
        return f"({self._place(e)[0]})", ATOM  # inside another neighbour, which sees to the ends

    def _Clipped(self, e: Any) -> tuple[str, int]:
        return self.clip(*self._place(e)), ATOM

    def _Inside(self, e: Any) -> tuple[str, int]:
        return self.on_axis(*self._place(e)), ATOM

    def _UpTo(self, e: Any) -> tuple[str, int]:
        a, b, c = e.args
        return f"{self.place(a)} <= {self.place(b)}{f' {chr(45) if c < 0 else chr(43)} {abs(c)}' if c else ''}", 0

    def _place(self, e: Any) -> tuple[str, str]:
        """The texts of the place i + c and of the length n of the axis."""
        i, c, n = e.args
        return f"{self.place(i)} {'-' if c < 0 else '+'} {abs(c)}", str(n)

    def place(self, i: Any) -> str:
        """A place on an axis as text, a whole number."""
        return self.subscript(i)

    def wrap(self, place: str, length: str) -> str:
        """The text of a place on a ring."""
        return f"wrap({place}, {length})"

    def clip(self, place: str, length: str) -> str:
        """The text of the place on an axis that is nearest to one."""
        return f"clip({place}, {length})"

    def on_axis(self, place: str, length: str) -> str:
        """The text of the condition that a place is on an axis."""
        return f"on_axis({place}, {length})"

    def subscript(self, i: Any) -> str:
        """An index as text: a loop variable, a number, a gathered element, a neighbour, or in a delta any expression."""
        if isinstance(i, Indexed):
            return self.element(i)
        return i.name if isinstance(i, Symbol) else str(i) if i.is_Integer else self.text(i, UNARY)

    def whole(self, name: str) -> str:
        """An integer as text, converted to a real number."""
        return f"float({name})"

    def constant(self, name: str) -> str:
        """The text of a constant, such as nan."""
        raise NotImplementedError

    def call(self, name: str, *args: str) -> str:
        """The text of a function call."""
        raise NotImplementedError

    def choice(self, condition: str, yes: str, no: str) -> str:
        """The text of a conditional expression."""
        raise NotImplementedError

    def both(self, parts: list[str]) -> str:
        """The text of a conjunction: all parts hold."""
        raise NotImplementedError

    def either(self, parts: list[str]) -> str:
        """The text of a disjunction: one of the parts holds."""
        raise NotImplementedError

    def element(self, e: Indexed) -> str:
        """The text of an array element."""
        raise NotImplementedError


ON_ARRAYS = frozenset(("besseli", "besseli_ratio", "digamma", "erfinv", "loggamma", "polygamma", "spherical_jn"))
"""Functions that numpy's text has, and compiled text has not."""


class ScalarPrinter(Printer):
    """A printer of Python expressions on numbers, for numba."""

    def constant(self, name: str) -> str:
        return f"float({name!r})"

    def call(self, name: str, *args: str) -> str:
        if name in ON_ARRAYS:
            raise CodegenError(f"{name}() is computed on whole arrays, not in compiled code: choose the backend numpy")
        return f"{name}({', '.join(args)})"

    def _jn(self, e: Any) -> tuple[str, int]:
        """The slope of sinc is all that compiled code has of the spherical Bessel functions."""
        n, x = e.args
        if n == 0:
            return self.call("sinc", self.text(x)), ATOM
        return (f"-{self.call('sinc_slope', self.text(x))}", UNARY) if n == 1 else (self.call("spherical_jn"), ATOM)

    def choice(self, condition: str, yes: str, no: str) -> str:
        return f"({yes} if {condition} else {no})"

    def both(self, parts: list[str]) -> str:
        return " and ".join(f"({p})" for p in parts)

    def either(self, parts: list[str]) -> str:
        return " or ".join(f"({p})" for p in parts)

    def element(self, e: Indexed) -> str:
        return f"{e.base.label}[{', '.join(map(self.subscript, e.indices))}]"

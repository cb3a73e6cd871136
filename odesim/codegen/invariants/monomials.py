"""Right-hand sides as sums of monomials with exact coefficients, in which equal terms cancel.

x0 = p0*y0; d y0 = -x0, d y1 = 2*x0 - y1  ->  {p0 y0: -1}, {p0 y0: 2, y1: -1}
"""

from collections.abc import Hashable
from fractions import Fraction
from math import isfinite

from odesim.ir.scalars import Formulas, Operand, Operation, is_number

Monomial = tuple[tuple[str, int], ...]
"""The (factor, power) pairs of a product, ordered by name."""
Terms = dict[Monomial, Fraction]

MOST_PRODUCTS = 400
"""The most terms to which a product of two sums is multiplied out; above it each sum is one factor."""


def right_side_terms(formulas: Formulas) -> list[Terms]:
    """The terms of each output; a subexpression that is no sum, product or quotient by one term becomes a factor with a name."""
    reader = _TermReader()
    for name, operation in formulas.code.items():
        reader.variables[name] = reader.read(operation)
    return [reader.read(output) for output in formulas.outputs]


class _TermReader:
    """A reader of expressions as Terms. variables: {name: its terms}."""

    def __init__(self) -> None:
        self.variables: dict[str, Terms] = {}
        self._names: dict[Hashable, str] = {}

    def read(self, operand: Operand) -> Terms:
        match operand:
            case str(x) if is_number(x) and isfinite(float(x)):
                return {(): Fraction(float(x))} if float(x) else {}
            case str(name):
                return self.variables.get(name, {((name, 1),): Fraction(1)})
            case Operation("-", (a,)):
                return scale_terms(self.read(a), Fraction(-1))
            case Operation("+", (a, b)):
                return add_terms(self.read(a), self.read(b))
            case Operation("-", (a, b)):
                return add_terms(self.read(a), scale_terms(self.read(b), Fraction(-1)))
            case Operation("*", (a, b)):
                return self._product(self.read(a), self.read(b))
            case Operation("/", (a, b)):
                return self._product(self.read(a), self._power(self.read(b), -1))
            case Operation("float32" | "float64", (a,)):
                return self.read(a)  # what is rounded alike is still the same term
            case Operation("powi", (a, str(n))):
                return self._power(self.read(a), int(n))
            case Operation("if", (test, a, b)):
                condition = self._parts(test)
                yes, no = (self._factor((which, condition)) for which in ("if", "unless"))
                return add_terms(self._product(yes, self.read(a)), self._product(no, self.read(b)))
        return self._factor(self._parts(operand))

    def _parts(self, operand: Operand) -> Hashable:
        """A key of an expression, equal for two expressions that are the same function of the same terms."""
        if isinstance(operand, str):
            return operand
        read = self._parts if operand.function in ("and", "or") else self._canonical
        return (operand.function, *map(read, operand.operands))

    def _canonical(self, operand: Operand) -> Hashable:
        return frozenset(self.read(operand).items())

    def _factor(self, key: Hashable) -> Terms:
        """The single term whose factor stands for this key."""
        name = self._names.setdefault(key, f"?{len(self._names)}")
        return {((name, 1),): Fraction(1)}

    def _single(self, a: Terms) -> Terms:
        """The sum a as one term: a number times a factor that stands for the rest."""
        if len(a) <= 1:
            return a
        lead = a[min(a)]
        return scale_terms(self._factor(("sum", frozenset(scale_terms(a, 1 / lead).items()))), lead)

    def _product(self, a: Terms, b: Terms) -> Terms:
        if len(a) * len(b) > MOST_PRODUCTS:
            a, b = self._single(a), self._single(b)
        out: Terms = {}
        for x, p in a.items():
            for y, q in b.items():
                out = add_term(out, multiply_monomials(x, y), p * q)
        return out

    def _power(self, a: Terms, n: int) -> Terms:
        if n > 0 and len(a) ** n <= MOST_PRODUCTS:
            out = a
            for _ in range(n - 1):
                out = self._product(out, a)
            return out
        if not a:
            return self._factor(("power of 0", n))
        ((monomial, x),) = self._single(a).items()
        return {tuple((factor, k * n) for factor, k in monomial if n): x**n}


def scale_terms(a: Terms, x: Fraction) -> Terms:
    """The product x*a."""
    return {monomial: x * c for monomial, c in a.items()}


def add_terms(a: Terms, b: Terms) -> Terms:
    """The sum a + b."""
    out = dict(a)
    for monomial, c in b.items():
        out = add_term(out, monomial, c)
    return out


def add_term(a: Terms, monomial: Monomial, c: Fraction) -> Terms:
    """Adds the term c*monomial to a, in place, and returns a."""
    total = a.get(monomial, Fraction(0)) + c
    if total:
        a[monomial] = total
    else:
        a.pop(monomial, None)
    return a


def multiply_monomials(a: Monomial, b: Monomial) -> Monomial:
    """The product a*b."""
    powers = dict(a)
    for factor, n in b:
        powers[factor] = powers.get(factor, 0) + n
    return tuple(sorted((factor, n) for factor, n in powers.items() if n))

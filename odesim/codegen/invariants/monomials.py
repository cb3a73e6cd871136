"""Right-hand sides as sums of monomials with exact coefficients, in which equal terms cancel.

x0 = p0*y0; d y0 = -x0, d y1 = 2*x0 - y1  ->  {p0 y0: -1}, {p0 y0: 2, y1: -1}
"""

import ast
from collections.abc import Hashable
from fractions import Fraction
from math import isfinite

from odesim.codegen.unrolled.formulas import Formulas

Monomial = tuple[tuple[str, int], ...]
"""The (factor, power) pairs of a product, ordered by name."""
Terms = dict[Monomial, Fraction]

MOST_PRODUCTS = 400
"""The most terms to which a product of two sums is multiplied out; above it each sum is one factor."""


def right_side_terms(formulas: Formulas) -> list[Terms]:
    """The terms of each output; a subexpression that is no sum, product or quotient by one term becomes a factor with a name."""
    reader = _TermReader()
    for line in formulas.lines:
        name, _, text = line.partition(" = ")
        reader.variables[name] = reader.read(ast.parse(text, mode="eval").body)
    return [reader.read(ast.parse(text, mode="eval").body) for text in formulas.outputs]


class _TermReader:
    """A reader of expressions as Terms. variables: {name: its terms}."""

    def __init__(self) -> None:
        self.variables: dict[str, Terms] = {}
        self._names: dict[Hashable, str] = {}

    def read(self, node: ast.expr) -> Terms:
        match node:
            case ast.Constant(value=bool()):
                pass
            case ast.Constant(value=int() | float() as x) if isfinite(x):
                return {(): Fraction(x)} if x else {}
            case ast.Name(id=name):
                return self.variables.get(name, {((name, 1),): Fraction(1)})
            case ast.UnaryOp(op=ast.USub(), operand=a):
                return scale_terms(self.read(a), Fraction(-1))
            case ast.BinOp(left=a, op=ast.Add(), right=b):
                return add_terms(self.read(a), self.read(b))
            case ast.BinOp(left=a, op=ast.Sub(), right=b):
                return add_terms(self.read(a), scale_terms(self.read(b), Fraction(-1)))
            case ast.BinOp(left=a, op=ast.Mult(), right=b):
                return self._product(self.read(a), self.read(b))
            case ast.BinOp(left=a, op=ast.Div(), right=b):
                return self._product(self.read(a), self._power(self.read(b), -1))
            case ast.Call(func=ast.Name(id="float32" | "float64"), args=[a]):
                return self.read(a)  # what is rounded alike is still the same term
            case ast.Call(func=ast.Name(id="powi"), args=[a, ast.Constant(value=int(n))]):
                return self._power(self.read(a), n)
            case ast.IfExp(test=test, body=a, orelse=b):
                condition = self._parts(test)
                yes, no = (self._factor((which, condition)) for which in ("if", "unless"))
                return add_terms(self._product(yes, self.read(a)), self._product(no, self.read(b)))
        return self._factor(self._parts(node))

    def _parts(self, node: ast.AST) -> Hashable:
        """A key of an expression, equal for two expressions that are the same function of the same terms."""
        kind = type(node).__name__
        match node:
            case ast.Call(func=ast.Name(id=name), args=args):
                return (name, *(self._canonical(a) for a in args))
            case ast.Compare(left=a, ops=[op], comparators=[b]):
                return (type(op).__name__, self._canonical(a), self._canonical(b))
            case ast.BoolOp(op=op, values=parts):
                return (type(op).__name__, *map(self._parts, parts))
            case ast.UnaryOp(op=op, operand=a):
                return (type(op).__name__, self._parts(a))
        return (kind, ast.unparse(node) if isinstance(node, ast.expr) else "")

    def _canonical(self, node: ast.expr) -> Hashable:
        return frozenset(self.read(node).items())

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

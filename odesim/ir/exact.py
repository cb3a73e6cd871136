"""Right-hand sides read exactly: as sums of monomials, in which equal terms cancel, and as residues modulo a prime.

x0 = p0*y0; d y0 = -x0, d y1 = 2*x0 - y1  ->  {p0 y0: -1}, {p0 y0: 2, y1: -1}
"""

from collections.abc import Hashable, Sequence
from fractions import Fraction
from math import isfinite
from zlib import crc32

import numpy as np

from odesim.base.arrays import Array
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


PRIMES = (2**31 - 1, 2**31 - 61)
"""Both are one less than a multiple of four, so that a number or its negative has a square root."""
TRIALS = 8


def random_values(formulas: Formulas, count: int, prime: int, more: Sequence[Operand] = ()) -> Array:
    """The values of the formulas' outputs, and of further expressions, at random points modulo prime: (outputs, count).

    more: expressions in the formulas' names. There are fewer than count points where many points have no quotient or square root.
    """
    columns = np.empty((len(formulas.outputs) + len(more), 0), np.int64)
    for seed in range(TRIALS):
        reader = _ResidueReader(count, prime, seed)
        for name, operation in formulas.code.items():
            reader.variables[name] = reader.read(operation)
        values = np.array([reader.read(output) for output in (*formulas.outputs, *more)])
        columns = np.hstack([columns, values[:, reader.usable]])
        if columns.shape[1] >= count:
            break
    return columns[:, :count]


def residue(x: Fraction, prime: int) -> int:
    """The residue of x modulo prime; prime must not divide the denominator."""
    return x.numerator * pow(x.denominator, -1, prime) % prime


def power(a: Array, n: int, prime: int) -> Array:
    """The powers a^n (n,) modulo prime, by repeated squaring."""
    out = np.ones_like(a)
    while n:
        if n & 1:
            out = out * a % prime
        a, n = a * a % prime, n >> 1
    return out


# A condition is a number c between its branches, c*yes + (1 - c)*no: what is 0 for every c is 0 for 0 and 1. Points that choose a branch
# each would miss the last of many, as of a schedule, and one whose roots they seldom have: a sum that moves there would count as constant.
class _ResidueReader:
    """A reader of expressions as arrays (count,) of residues, int64; conditions as random ones.

    variables: {name: value}. usable (count,): points at which all quotients and square roots exist.
    """

    def __init__(self, count: int, prime: int, seed: int) -> None:
        self.variables: dict[str, Array] = {}
        self._rng, self._count, self._prime = np.random.default_rng([seed, prime]), count, prime
        self.usable, self._salt = np.ones(count, bool), self._rng.integers(1, prime, count)

    def read(self, operand: Operand) -> Array:
        p = self._prime
        match operand:
            case str(number) if is_number(number) and isfinite(float(number)):
                return np.full(self._count, residue(Fraction(float(number)), p))
            case str(name):
                if name not in self.variables:
                    self.variables[name] = self._rng.integers(1, p, self._count)
                return self.variables[name]
            case Operation("powi", (a, str(n))):
                return self._whole_power(self.read(a), int(n))
        x, *others = map(self.read, operand.operands)
        match operand.function, others:
            case "-", []:
                return -x % p
            case "+", [y]:
                return (x + y) % p
            case "-", [y]:
                return (x - y) % p
            case "*", [y]:
                return x * y % p
            case "/", [y]:
                return x * self._inverse(y) % p
            case "if", [yes, no]:
                return self._between(x, yes, no)
            case "and" | "or" as join, _:
                for y in others:
                    x = self._between(x, y, 0 * x) if join == "and" else self._between(x, 0 * x + 1, y)
                return x
            case "<" | "<=", [y]:
                return self._condition("before", x, y)
            case ">" | ">=", [y]:
                return self._condition("before", y, x)
            case "==" | "!=" as sign, [y]:
                return self._condition(sign, x, y)
            case "maximum", [y]:
                return self._between(self._condition("before", x, y), y, x)
            case "minimum", [y]:
                return self._between(self._condition("before", x, y), x, y)
            case "float32" | "float64", []:
                return x
            case "sqrt", []:
                root = power(x, (p + 1) // 4, p)
                self.usable &= root * root % p == x
                return root
        return self._random(operand.function, x, *others)

    def _whole_power(self, x: Array, n: int) -> Array:
        if abs(n) > 64:
            return self._random(f"powi {n}", x)
        out = np.ones(self._count, np.int64)
        for _ in range(abs(n)):
            out = out * x % self._prime
        return self._inverse(out) if n < 0 else out

    def _inverse(self, x: Array) -> Array:
        self.usable &= x != 0
        return power(x, self._prime - 2, self._prime)

    def _condition(self, name: str, *arguments: Array) -> Array:
        """A condition on the arguments, which differs between points, be they the same at all of them."""
        return self._random(name, self._salt, *arguments)

    def _between(self, condition: Array, yes: Array, no: Array) -> Array:
        return (condition * yes % self._prime + (1 - condition) % self._prime * no % self._prime) % self._prime

    def _random(self, name: str, *arguments: Array) -> Array:
        """The value of an unknown function: a random number for each value of the arguments."""
        mixed = np.full(self._count, crc32(name.encode()), np.uint64)
        for x in arguments:
            mixed = (mixed ^ np.asarray(x, np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
            mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
            mixed ^= mixed >> np.uint64(32)
        return (mixed % np.uint64(self._prime)).astype(np.int64)

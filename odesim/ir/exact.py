"""Right-hand sides at random points modulo a prime, where arithmetic is exact: what is 0 there is 0, quotients and conditions included.

A number counts as the simplest fraction that rounds to it, so that 0.1 + 0.2 is 0.3.
"""

from collections.abc import Sequence
from fractions import Fraction
from math import isfinite
from zlib import crc32

import numpy as np

from odesim.base.arrays import Array
from odesim.ir.scalars import Formulas, Operand, Operation, is_number

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


def simplest(x: float) -> Fraction:
    """A simple fraction that is x but for rounding: a third, or 15 decimals."""
    third = Fraction(x).limit_denominator(1000)
    return third if float(third) == x else Fraction(f"{x:.15g}")


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
                return np.full(self._count, residue(simplest(float(number)), p))
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

"""Formulas evaluated modulo a prime: an expression that is 0 at random points is 0 everywhere, up to a probability of 1e-9.

Sums, products and quotients are exact. A function returns a random number for each argument, the same wherever the argument occurs. So an
identity that holds there holds for every function, such as sum_k w_k exp(y_k) / sum_k w_k exp(y_k) = 1.
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

    more: expressions in the formulas' names. There are fewer than count points where many points have no square root.
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


def inverse(a: Array, prime: int) -> Array:
    """The inverses 1/a (n,) modulo prime, with 0 for 0."""
    return power(a, prime - 2, prime)


def power(a: Array, n: int, prime: int) -> Array:
    """The powers a^n (n,) modulo prime, by repeated squaring."""
    out = np.ones_like(a)
    while n:
        if n & 1:
            out = out * a % prime
        a, n = a * a % prime, n >> 1
    return out


class _ResidueReader:
    """A reader of expressions as arrays (count,) of residues, int64; conditions as bools.

    variables: {name: value}. usable (count,): points at which all square roots exist.
    """

    def __init__(self, count: int, prime: int, seed: int) -> None:
        self.variables: dict[str, Array] = {}
        self._rng, self._count, self._prime = np.random.default_rng([seed, prime]), count, prime
        self.usable = np.ones(count, bool)

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
                return x * inverse(y, p) % p
            case "if", [yes, no]:
                return np.where(x, yes, no)
            case "and" | "or" as join, _:
                return np.asarray((np.logical_and if join == "and" else np.logical_or).reduce([x, *others]))
            case "<" | "<=", [y]:
                return self._half("before", x, y)
            case ">" | ">=", [y]:
                return self._half("before", y, x)
            case "==" | "!=" as sign, [y]:
                return self._half(sign, x, y)
            case "maximum" | "minimum" as which, [y]:
                return np.where(self._half("before", x, y) == (which == "maximum"), y, x)
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
        return inverse(out, self._prime) if n < 0 else out

    def _half(self, name: str, *arguments: Array) -> Array:
        """A condition on the arguments, which holds at half of the points."""
        return self._random(name, *arguments) % 2 == 1

    def _random(self, name: str, *arguments: Array) -> Array:
        """The value of an unknown function: a random number for each value of the arguments."""
        mixed = np.full(self._count, crc32(name.encode()), np.uint64)
        for x in arguments:
            mixed = (mixed ^ np.asarray(x, np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
            mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
            mixed ^= mixed >> np.uint64(32)
        return (mixed % np.uint64(self._prime)).astype(np.int64)

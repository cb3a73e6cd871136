"""Formulas evaluated modulo a prime: an expression that is 0 at random points is 0 everywhere, up to a probability of 1e-9.

Sums, products and quotients are exact. A function returns a random number for each argument, the same wherever the argument occurs:
so an identity that holds there holds for every function, such as sum_k w_k exp(y_k) / sum_k w_k exp(y_k) = 1.
"""

import ast
from collections.abc import Callable, Sequence
from fractions import Fraction
from math import isfinite
from zlib import crc32

import numpy as np

from odesim.base.arrays import Array
from odesim.codegen.unrolled.formulas import Formulas

PRIMES = (2**31 - 1, 2**31 - 61)
"""Both are one less than a multiple of four, so that a number or its negative has a square root."""
TRIALS = 8


def random_values(formulas: Formulas, count: int, prime: int, more: Sequence[str] = ()) -> Array:
    """The values of the formulas' outputs, and of further expressions, at random points modulo prime: (outputs, count).

    more: expressions in the formulas' names. There are fewer than count points where many points have no square root.
    """
    columns = np.empty((len(formulas.outputs) + len(more), 0), np.int64)
    lines = [(name, ast.parse(text, mode="eval").body) for name, _, text in (line.partition(" = ") for line in formulas.lines)]
    outputs = [ast.parse(text, mode="eval").body for text in (*formulas.outputs, *more)]
    for seed in range(TRIALS):
        reader = _ResidueReader(count, prime, seed)
        for name, node in lines:
            reader.variables[name] = reader.read(node)
        values = np.array([reader.read(node) for node in outputs])
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

    def read(self, node: ast.expr) -> Array:
        p = self._prime
        match node:
            case ast.Constant(value=int() | float() as number) if isfinite(number):
                return np.full(self._count, residue(Fraction(number), p))
            case ast.Name(id=name):
                if name not in self.variables:
                    self.variables[name] = self._rng.integers(1, p, self._count)
                return self.variables[name]
            case ast.UnaryOp(op=ast.USub(), operand=a):
                return -self.read(a) % p
            case ast.UnaryOp(op=ast.Not(), operand=a):
                return ~self.read(a)
            case ast.BinOp(left=a, op=ast.Add() | ast.Sub() | ast.Mult() | ast.Div() as op, right=b):
                x, y = self.read(a), self.read(b)
                operations: dict[type, Callable[[], Array]] = {ast.Add: lambda: x + y, ast.Sub: lambda: x - y, ast.Mult: lambda: x * y}
                return operations.get(type(op), lambda: x * inverse(y, p))() % p
            case ast.IfExp(test=test, body=a, orelse=b):
                return np.where(self.read(test), self.read(a), self.read(b))
            case ast.BoolOp(op=op, values=parts):
                join = np.logical_and if isinstance(op, ast.And) else np.logical_or
                return np.asarray(join.reduce([self.read(part) for part in parts]))
            case ast.Compare(left=a, ops=[op], comparators=[b]):
                x, y = self.read(a), self.read(b)
                if isinstance(op, ast.Gt | ast.GtE):
                    x, y = y, x
                return self._random("before" if isinstance(op, ast.Lt | ast.LtE | ast.Gt | ast.GtE) else type(op).__name__, x, y) % 2 == 1
            case ast.Call(func=ast.Name(id="float32" | "float64"), args=[a]):
                return self.read(a)
            case ast.Call(func=ast.Name(id="maximum" | "minimum" as which), args=[a, b]):
                x, y = self.read(a), self.read(b)
                first = self._random("before", x, y) % 2 == 1
                return np.where(first, y, x) if which == "maximum" else np.where(first, x, y)
            case ast.Call(func=ast.Name(id="powi"), args=[a, ast.Constant(value=int(n))]):
                x, out = self.read(a), np.ones(self._count, np.int64)
                for _ in range(min(abs(n), 64)):
                    out = out * x % p
                return self._random(f"powi {n}", x) if abs(n) > 64 else inverse(out, p) if n < 0 else out
            case ast.Call(func=ast.Name(id="sqrt"), args=[a]):
                x = self.read(a)
                root = power(x, (p + 1) // 4, p)
                self.usable &= root * root % p == x
                return root
            case ast.Call(func=ast.Name(id=name), args=args):
                return self._random(name, *map(self.read, args))
        return self._random(ast.unparse(node))

    def _random(self, name: str, *arguments: Array) -> Array:
        """The value of an unknown function: a random number for each value of the arguments."""
        mixed = np.full(self._count, crc32(name.encode()), np.uint64)
        for x in arguments:
            mixed = (mixed ^ np.asarray(x, np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
            mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
            mixed ^= mixed >> np.uint64(32)
        return (mixed % np.uint64(self._prime)).astype(np.int64)

"""Formulas with whole numbers modulo a prime in the place of reals: what is 0 at random points there is 0, but for one chance in 1e9.

Sums, products and quotients are exact. A function is a random number for each argument, the same wherever the argument is: so what
holds there holds whatever the function is, as sum_k w_k exp(y_k) / sum_k w_k exp(y_k) = 1 does.
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
"""Both one less than a multiple of four: a number or its opposite has a square root."""
TRIALS = 8


def random_values(formulas: Formulas, count: int, prime: int, more: Sequence[str] = ()) -> Array:
    """(outputs, count): the outputs of formulas, and expressions of their names, at random points modulo prime.

    Fewer points where many of those tried ask for the square root of a number that has none.
    """
    found = np.empty((len(formulas.outputs) + len(more), 0), np.int64)
    lines = [(name, ast.parse(text, mode="eval").body) for name, _, text in (line.partition(" = ") for line in formulas.lines)]
    outputs = [ast.parse(text, mode="eval").body for text in (*formulas.outputs, *more)]
    for seed in range(TRIALS):
        reader = _ResidueReader(count, prime, seed)
        for name, node in lines:
            reader.known[name] = reader.read(node)
        values = np.array([reader.read(node) for node in outputs])
        found = np.hstack([found, values[:, reader.usable]])
        if found.shape[1] >= count:
            break
    return found[:, :count]


def residue(x: Fraction, prime: int) -> int:
    """x modulo prime, which does not divide its denominator."""
    return x.numerator * pow(x.denominator, -1, prime) % prime


def inverse(a: Array, prime: int) -> Array:
    """1/a (n,), 0 for 0."""
    return power(a, prime - 2, prime)


def power(a: Array, n: int, prime: int) -> Array:
    """a^n (n,) by squares."""
    out = np.ones_like(a)
    while n:
        if n & 1:
            out = out * a % prime
        a, n = a * a % prime, n >> 1
    return out


class _ResidueReader:
    """Expressions as arrays (count,) of int64, conditions as bool. known: those that have a name. usable: points where all are numbers."""

    def __init__(self, count: int, prime: int, seed: int) -> None:
        self.known: dict[str, Array] = {}
        self._rng, self._count, self._prime = np.random.default_rng([seed, prime]), count, prime
        self.usable = np.ones(count, bool)

    def read(self, node: ast.expr) -> Array:
        p = self._prime
        match node:
            case ast.Constant(value=int() | float() as number) if isfinite(number):
                return np.full(self._count, residue(Fraction(number), p))
            case ast.Name(id=name):
                if name not in self.known:
                    self.known[name] = self._rng.integers(1, p, self._count)
                return self.known[name]
            case ast.UnaryOp(op=ast.USub(), operand=a):
                return -self.read(a) % p
            case ast.UnaryOp(op=ast.Not(), operand=a):
                return ~self.read(a)
            case ast.BinOp(left=a, op=ast.Add() | ast.Sub() | ast.Mult() | ast.Div() as op, right=b):
                x, y = self.read(a), self.read(b)
                done: dict[type, Callable[[], Array]] = {ast.Add: lambda: x + y, ast.Sub: lambda: x - y, ast.Mult: lambda: x * y}
                return done.get(type(op), lambda: x * inverse(y, p))() % p
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
        """A random number for each value of the arguments."""
        mixed = np.full(self._count, crc32(name.encode()), np.uint64)
        for x in arguments:
            mixed = (mixed ^ np.asarray(x, np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
            mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
            mixed ^= mixed >> np.uint64(32)
        return (mixed % np.uint64(self._prime)).astype(np.int64)

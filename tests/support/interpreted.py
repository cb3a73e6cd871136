"""The text of an explicit step, run statement by statement in plain Python: a target that nobody has to trust a compiler for."""

import ast
import copy
import math
import struct
from collections.abc import Callable
from fractions import Fraction
from types import FunctionType
from typing import Any

import numpy as np

from odesim.base.arrays import Array
from odesim.stepper import control
from odesim.stepper import powers as arithmetic
from odesim.stepper.problem import fixed_steps, usable
from odesim.stepper.statements import Comb, Each, If, Let, Out, Reader, Right, Row, Statement, Sum, Take, While, explicit_reader, unparsed
from odesim.stepper.tableau import Method

RULES = ("trial_step", "steepest", "first_step", "step_end", "too_small", "pi_goal", "next_step", "at_most", "moment")


def fma(a: float, b: float, c: float) -> float:
    """a b + c rounded once."""
    return float(Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c)))


def plain(function: Any, **known: Any) -> Callable[..., Any]:
    """A compiled function as Python, with these names in place of intrinsics."""
    return FunctionType(function.py_func.__code__, {**vars(arithmetic), **known})


def powers() -> dict[str, Callable[..., Any]]:
    """The logarithm and powers of step control, whose multiply-add is exact here."""
    known: dict[str, Any] = {"fma": fma, "bits": lambda x: struct.unpack("q", struct.pack("d", x))[0]}
    known["from_bits"] = lambda x: struct.unpack("d", struct.pack("q", (int(x) + 2**63) % 2**64 - 2**63))[0]
    known |= {name: plain(getattr(arithmetic, name), **known) for name in ("log2", "exp2")}
    return {name: known[name] for name in ("log2", "exp2")} | {"power": plain(arithmetic.power, **known)}


def added(values: Array) -> float:
    """The sum in the one order of all targets: blocks of 1024, in each 32 strided sums, folded by halves."""
    blocks = []
    for block in np.split(values, range(1024, len(values), 1024)):
        sums = [0.0] * (32 if len(block) > 64 else 1)
        for i, value in enumerate(block):
            sums[i % len(sums)] += value
        blocks.append(folded(sums))
    return folded(blocks)


def folded(sums: list[float]) -> float:
    while len(sums) > 1:
        half = (len(sums) + 1) // 2
        sums = [sums[i] + sums[i + half] if i + half < len(sums) else sums[i] for i in range(half)]
    return sums[0]


class _Plain(ast.NodeTransformer):
    """A combination as additions, each product first."""

    def visit_Comb(self, node: Comb) -> ast.expr:
        total: ast.expr = ast.Name(node.base) if node.base else ast.Constant(0.0)
        for j, w in node.terms:
            weight = ast.BinOp(copy.deepcopy(node.factor), ast.Mult(), w) if node.factor is not None else w
            stage = ast.Subscript(ast.Name("k"), ast.Constant(j))
            total = ast.BinOp(total, ast.Add(), ast.BinOp(weight, ast.Mult(), stage))
        return total


class Interpreted:
    """One run of a method. right(t, y): the right-hand side; save (T,): times; rules: other rules of step control than odesim's."""

    def __init__(
        self, method: Method, right: Callable[[float, Array], Array], y0: Array, span: tuple[float, float], save: Array,
        *, rtol: float = 1e-6, atol: float = 1e-9, step: float | None = None, first_step: float | None = None, most: int = 10**6,
        rules: dict[str, Any] | None = None,
    ) -> None:  # fmt: skip
        self.reader: Reader = explicit_reader(method, adaptive=step is None, saves=True, together=False, chooses=first_step is None)
        self.right, self.save, self.states, self.calls = right, save, list[Array](), 0
        t0, t1 = map(np.float64, span)
        (total, rest) = fixed_steps(t0, t1, step) if step else (0, 0.0)
        numbers = dict(zip(("rtol", "atol"), usable(rtol, atol, "float64"), strict=True))
        numbers |= {"t0": t0, "t1": t1, "longest": math.inf, "h0": first_step or 0.0, "most": most}
        numbers |= {"fixed": step or 0.0, "rest": rest, "total": total}
        self.names: dict[str, Any] = {name: np.float64(x) for name, x in numbers.items()}
        self.names |= {"k": [np.zeros_like(y0) for _ in range(method.stages)], "y": y0.copy(), "z": y0.copy(), "x": y0.copy(), "p": None}
        self.names |= {"n": len(y0), "h": 0.0, "inf": np.inf, "nan": np.nan, "sqrt": np.sqrt, "abs": abs, "square": lambda x: x * x}
        self.names |= {"larger": np.maximum, "grid": lambda q: save[int(q)] if q < len(save) else np.inf}
        self.names |= {name: getattr(control, name) for name in RULES} | powers() | (rules or {})

    def run(self) -> "Interpreted":
        read = self.reader.read
        with np.errstate(all="ignore"):
            self.do(read("begin", "first_save"))
            step = read("aim", "step", "save", "accept")
            while self.names["code"] == 0.0:
                self.do(step)
        return self

    def value(self, e: ast.expr) -> Any:
        return eval(unparsed(_Plain().visit(copy.deepcopy(e))), self.names)

    def row(self, row: Row) -> Array:
        found: Array = self.names[row] if isinstance(row, str) else self.names[row[0]][row[1]]
        return found

    def do(self, statements: list[Statement]) -> None:
        names = self.names
        for s in statements:
            match s:
                case Let([name], value):
                    names[name] = self.value(value)
                case Let(several, value):
                    names.update(zip(several, self.value(value), strict=True))
                case Sum(name, value):
                    names[name] = added(self.value(value))
                case Right(stage, time, state, keep):
                    at = self.value(state)
                    names["k"][stage], self.calls = self.right(self.value(time), at), self.calls + 1
                    names |= {keep: at} if keep else {}
                case Each(row, value):
                    names[row] = self.value(value)
                case Take(row, source, when):
                    if names[when]:
                        self.row(row)[:] = self.row(source)
                case Out(place, value):
                    assert int(names[place]) == len(self.states)
                    self.states.append(np.array(self.value(value)))
                case If(test, yes, no):
                    self.do(yes if self.value(test) else no)
                case While(test, body):
                    while self.value(test):
                        self.do(body)
                case _:
                    raise TypeError(s)

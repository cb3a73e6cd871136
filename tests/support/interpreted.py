"""The text of a step, run statement by statement in plain Python: a target that nobody has to trust a compiler for."""

import ast
import copy
import math
import struct
from collections.abc import Callable, Sequence
from fractions import Fraction
from types import FunctionType
from typing import Any

import numpy as np

from odesim.base.arrays import Array, Layout
from odesim.base.options import RunOptions
from odesim.stepper import control
from odesim.stepper import powers as arithmetic
from odesim.stepper.problem import fixed_steps, usable
from odesim.stepper.readers import Switches, explicit_reader, implicit_reader
from odesim.stepper.rosenbrock_methods import Rosenbrock
from odesim.stepper.statements import (
    Comb,
    Do,
    Each,
    If,
    Let,
    Out,
    Reader,
    Right,
    Row,
    Statement,
    Sum,
    Take,
    While,
)  # fmt: skip
from odesim.stepper.tableau import Method

RULES = ("trial_step", "steepest", "first_step", "step_end", "too_small", "pi_goal", "gustafsson", "next_step", "at_most", "moment")


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
        self, method: Any, right: Callable[[float, Array], Array], y0: Array, span: tuple[float, float], save: Array,
        *, rtol: float = 1e-6, atol: Any = 1e-9, step: float | None = None, first_step: float | None = None, most: int = 10**6,
        rules: dict[str, Any] | None = None,
    ) -> None:  # fmt: skip
        self.reader = self.read(method, Switches(step is None, first_step is None, saves=True), len(y0))
        self.right, self.save, self.states, self.calls = right, save, list[Array](), 0
        self.codes: dict[int, tuple[ast.expr, Any]] = {}
        t0, t1 = map(np.float64, span)
        (total, rest) = fixed_steps(t0, t1, step) if step else (0, 0.0)
        numbers = dict(
            zip(("rtol", "atol"), usable(RunOptions(rtol=rtol, atol=atol), Layout(("y",), ((len(y0),),)), "float64"), strict=True)
        )
        numbers |= {"t0": t0, "t1": t1, "longest": math.inf, "h0": first_step or 0.0, "most": most}
        numbers |= {"fixed": step or 0.0, "rest": rest, "total": total}
        self.names: dict[str, Any] = {name: np.asarray(x, float)[()] for name, x in numbers.items()}
        self.names |= {"k": [np.zeros_like(y0) for _ in range(method.stages)], "y": y0.copy(), "z": y0.copy(), "x": y0.copy(), "p": None}
        self.names |= {"n": len(y0), "h": 0.0, "inf": np.inf, "nan": np.nan, "sqrt": np.sqrt, "abs": abs, "square": lambda x: x * x}
        self.names |= {"larger": np.maximum, "grid": lambda q: save[int(q)] if q < len(save) else np.inf}
        self.names |= {name: getattr(control, name) for name in RULES} | powers() | (rules or {})

    def read(self, method: Method, switches: Switches, n: int) -> Reader:
        """The text for a method."""
        return explicit_reader(method, switches)

    def run(self) -> "Interpreted":
        read = self.reader.read
        with np.errstate(all="ignore"):
            self.do(read("begin", "first_save"))
            step = read("aim", "step", "judge", "save", "accept")
            while self.names["code"] == 0.0:
                self.do(step)
        return self

    def value(self, e: ast.expr) -> Any:
        if id(e) not in self.codes:  # with the expression itself, or its number could be that of another one
            self.codes[id(e)] = e, compile(ast.unparse(_Plain().visit(copy.deepcopy(e))), "the text", "eval")
        return eval(self.codes[id(e)][1], self.names)

    def row(self, row: Row) -> Array:
        found: Array = self.names[row] if isinstance(row, str) else self.names[row[0]][row[1]]
        return found

    def put(self, row: Row, value: Any) -> None:
        if isinstance(row, str):
            self.names[row] = value
        else:
            self.names[row[0]][row[1]] = value

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
                case Right(row, time, state, keep):
                    at = self.value(state)
                    self.calls += 1
                    self.put(row, self.right(self.value(time), at))
                    names |= {keep: at} if keep else {}
                case Each(row, value):
                    self.put(row, self.value(value))
                case Do(results, what, arguments):
                    values = getattr(self, what)(*map(self.value, arguments))
                    for row, value in zip(results, values if len(results) > 1 else [values], strict=True):
                        self.put(row, value)
                case Take(row, source, when):
                    if names[when]:
                        self.put(row, copy.copy(self.row(source)))
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


class InterpretedImplicit(Interpreted):
    """One run of a Rosenbrock method: linear systems by numpy.linalg.solve.

    derivatives(t, y): df/dy (n, n) and df/dt (n,). sums: the weights (n,) of linear invariants, which steps keep one after another.
    """

    def __init__(
        self, method: Rosenbrock, right: Callable[[float, Array], Array], derivatives: Callable[[float, Array], tuple[Array, Array]],
        y0: Array, span: tuple[float, float], save: Array, *, sums: Sequence[Array] = (), **options: Any,
    ) -> None:  # fmt: skip
        super().__init__(method, right, y0, span, save, **options)
        self.derivatives, self.sums = derivatives, [(w, float(w @ y0)) for w in sums]

    def read(self, method: Any, switches: Switches, n: int) -> Reader:
        return implicit_reader(method, n, switches)

    def linear(self, t: float, y: Array) -> tuple[Array, tuple[Array, Array]]:
        self.calls += 1
        return self.right(t, y), self.derivatives(t, y)

    def along(self, J: tuple[Array, Array], f: Array) -> Array:
        return J[0] @ f + J[1]

    def eliminate(self, J: tuple[Array, Array], y: Array, g: float) -> bool:
        return True

    def drift(self, b: Array, J: tuple[Array, Array], g: float, later: float) -> Array:
        return b + g * later * J[1]

    def solve(self, J: tuple[Array, Array], g: float, b: Array) -> Array:
        return np.linalg.solve(np.eye(len(b)) - g * J[0], b)

    def solved(self, good: bool, *_: Any) -> bool:
        return good

    def restore(self, y: Array) -> Array:
        for w, value in self.sums:
            terms = w * y
            y = y + y * terms * (value - terms.sum()) / (terms @ terms)
        return y

"""Straight-line code of scalars as data: {name: Operation on names, numbers and other operations}.

x0 = (p0 - y0) * exp(y1)  ->  {"x0": Operation("*", (Operation("-", ("p0", "y0")), Operation("exp", ("y1",))))}

It is data and not text because it is derived (odesim.ir.slopes), eliminated (odesim.ir.elimination) and printed with other names.
"""

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from odesim.base.errors import CodegenError
from odesim.base.parsing import parse

SIGNS: dict[type[ast.AST], str] = {
    **{ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.USub: "-", ast.And: "and", ast.Or: "or"},
    **{ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="},
}
COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")
LEVELS = {"if": 1, "or": 2, "and": 3, **dict.fromkeys(COMPARISONS, 4), "+": 5, "-": 5, "*": 6, "/": 6}
"""How tightly a sign binds what stands beside it."""
MINUS, CALL = 7, 8


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation. function: a sign, "if" (condition, value, other value), or a function's name. "-" with one operand is negation."""

    function: str
    operands: tuple["Operand", ...]

    @property
    def level(self) -> int:
        return MINUS if self.function == "-" and len(self.operands) == 1 else LEVELS.get(self.function, CALL)

    def __str__(self) -> str:
        level = self.level
        if level == CALL:
            return f"{self.function}({', '.join(map(str, self.operands))})"
        first, *others = self.operands
        texts = [in_brackets(o, level + 1) for o in others]
        if not others:
            return f"-{in_brackets(first, level + 1)}"
        # a + b + c is (a + b) + c
        start = in_brackets(first, level if level >= LEVELS["+"] else level + 1)
        if self.function == "if":
            return f"{texts[0]} if {start} else {texts[1]}"
        return f" {self.function} ".join([start, *texts])


Operand = str | Operation
"""A name, a number as text, or what is computed in place."""
Code = dict[str, Operation]
"""{name: its operation}, each after those that it reads."""


def is_real(value: Any) -> bool:
    """Whether an operand is real: no integer, no array."""
    return isinstance(value, str | Operation)


def real_of(value: Any) -> Operand:
    """The operand, an integer converted to a float."""
    return value if is_real(value) else repr(float(value))


def in_brackets(operand: Operand, level: int) -> str:
    """The text of an operand, in brackets if it binds less tightly than level."""
    return f"({operand})" if isinstance(operand, Operation) and operand.level < level else str(operand)


def words_of(operand: Operand) -> Iterator[str]:
    """The names and functions in an operand, without numbers and signs."""
    if isinstance(operand, Operation):
        if operand.level == CALL:
            yield operand.function
        for o in operand.operands:
            yield from words_of(o)
    elif not is_number(operand):
        yield operand


def weight_of(operand: Operand) -> int:
    """How many operations there are in an operand, a function counting as ten."""
    if isinstance(operand, str):
        return 0
    return (10 if operand.level == CALL else 1) + sum(map(weight_of, operand.operands))


def renamed(operand: Operand, names: Mapping[str, str]) -> Operand:
    """The operand with names replaced."""
    if isinstance(operand, str):
        return names.get(operand, operand)
    return Operation(operand.function, tuple(renamed(o, names) for o in operand.operands))


def is_number(operand: Operand) -> bool:
    """Whether an operand is a number and not a name."""
    try:
        float(operand)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
    return operand not in ("nan", "inf")


def printed(code: Mapping[str, Operand]) -> list[str]:
    """The code as lines of Python."""
    return [f"{name} = {operand}" for name, operand in code.items()]


def needed(code: Code, used: Iterable[str]) -> Code:
    """The operations that these names depend on, in order."""
    wanted, out = set(used), Code()
    for name, operation in reversed(code.items()):
        if name in wanted:
            wanted.update(words_of(operation))
            out[name] = operation
    return dict(reversed(out.items()))


def parsed(text: str) -> Operand:
    """A Python expression as an operand."""

    def read(node: ast.AST) -> Operand:
        match node:
            case ast.Constant(value=x):
                return repr(x)
            case ast.Name(id=name):
                return name
            case ast.UnaryOp(op=ast.USub(), operand=a):
                return f"-{read(a)}" if isinstance(a, ast.Constant) else Operation("-", (read(a),))
            case ast.BinOp(left=a, op=op, right=b) | ast.Compare(left=a, ops=[op], comparators=[b]):
                return Operation(SIGNS[type(op)], (read(a), read(b)))
            case ast.BoolOp(op=op, values=parts):
                return Operation(SIGNS[type(op)], tuple(map(read, parts)))
            case ast.IfExp(test=test, body=yes, orelse=no):
                return Operation("if", (read(test), read(yes), read(no)))
            case ast.Call(func=ast.Name(id=function), args=args):
                return Operation(function, tuple(map(read, args)))
        raise CodegenError(f"no operation: {ast.unparse(node)[:60]}")

    return read(parse(text, mode="eval").body)


class CodeBuilder:
    """Straight-line code under construction, named by a letter and a number; constants are folded, products with one are left out."""

    def __init__(self, letter: str) -> None:
        self.code: Code = {}
        self._letter, self._known = letter, dict[Operation, str]()

    def name(self, function: str, *operands: Operand, fresh: bool = False) -> str:
        """The name of an operation. fresh: a new name even if an equal operation has one."""
        # equal operations share a name: derivatives of products repeat their factors again and again
        operation = Operation(function, operands)
        name = None if fresh else self._known.get(operation)
        if name is None:
            name = f"{self._letter}{len(self.code)}"
            self.code[name] = operation
            self._known.setdefault(operation, name)
        return name

    def write(self, operand: Operand, known: Mapping[str, str], fresh: bool = False) -> str:
        """The name or number of an expression in which names stand for earlier operands; each of its operations gets a name."""
        match operand:
            case str():
                return known.get(operand, operand)
            case Operation("-", (str(x),)) if is_number(x):
                return repr(-float(x))
        return self.name(operand.function, *(self.write(o, known) for o in operand.operands), fresh=fresh)

    def times(self, a: str, b: str) -> str:
        """The product a*b."""
        if is_number(a) and is_number(b):
            return repr(float(a) * float(b))
        for x, y in ((a, b), (b, a)):
            if is_number(x) and abs(float(x)) == 1.0:
                return y if float(x) > 0 else self.name("-", y)
        return self.name("*", a, b)

    def plus(self, a: str, b: str) -> str:
        """The sum a + b."""
        if is_number(a) and is_number(b):
            return repr(float(a) + float(b))
        return self.name("-", a, b[1:]) if b.startswith("-") else self.name("+", a, b)


@dataclass(frozen=True)
class Formulas:
    """Straight-line code that computes outputs from t, states y0, y1, ... and parameters p0, p1, ...; both flat, in the System's order.

    values: {name of a parameter of reals: its first p}. dtype: of states, outputs and parameters; t is float64, and so are the
    parameters `doubles`, which are no arrays. late: how many of the stages a kernel adds to a state without rounding it between
    them; it rounds after every four of the others. shifts: names of what has no derivatives.
    """

    code: Code
    outputs: tuple[str, ...]
    states: int
    values: dict[str, int]
    count: int
    dtype: str = "float64"
    doubles: frozenset[int] = frozenset()
    late: int = 0
    shifts: frozenset[str] = frozenset()

    @property
    def lines(self) -> list[str]:
        """The code as lines of Python."""
        return printed(self.code)

    @cached_property
    def words(self) -> frozenset[str]:
        """All names and functions in the code."""
        operands: list[Operand] = [*self.code.values(), *self.outputs]
        return frozenset(word for operand in operands for word in words_of(operand))

    @property
    def weight(self) -> int:
        """How many operations there are, a function counting as ten."""
        return sum(weight_of(operation) for operation in self.code.values())

    def reads(self, letter: str) -> list[int]:
        """Indices of the states (y) or parameters (p) that the code reads."""
        return sorted(int(word[1:]) for word in self.words if word[0] == letter and word[1:].isdigit())


@dataclass(frozen=True)
class WrittenRight:
    """A right-hand side of which a compiled run has a copy of its own. params: the text of where it finds each parameter.

    text: of right(t, y0, ..., p0, ...), with what it imports and its options. series: of series(t, y0, ..., p0, ...), the Taylor
    coefficients up to an order, in the same way.
    """

    formulas: Formulas
    params: tuple[str, ...]
    text: str
    series: Callable[[int], str]

"""Straight-line code as data: {name: Operation on names, numbers and other operations}.

x0 = (p0 - y0) * exp(y1)  ->  {"x0": Operation("*", (Operation("-", ("p0", "y0")), Operation("exp", ("y1",))))}
"""

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
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

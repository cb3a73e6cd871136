"""The grammar of VALUE on the command line: numbers, lists, files and fills. No code is evaluated."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from odesim.base.errors import ParamError, no_such
from odesim.inputs.grammar import check_table_name, parse_number, read_table, show_text
from odesim.inputs.times import Save, parse_save, parse_span, save_times

if TYPE_CHECKING:
    from odesim.base.arrays import Array

__all__ = ["FILLS", "Save", "Value", "parse_assignment", "parse_save", "parse_size", "parse_span", "parse_value", "save_times"]

FILLS = ("linspace", "logspace", "normal", "uniform")
FORMS = "write a number, 1,2,3, [[1, 2], [3, 4]], @file.csv, @file.npy, or linspace, logspace, uniform, normal with two numbers (a,b)"
DEPTH = 32  # numpy has room for 64 axes

_OPENED = re.compile(r"([^\W\d]\w*)\s*\([^)]*$")
_CALL = re.compile(r"([^\W\d]\w*)\s*\((.*)\)", re.DOTALL)
_PIECE = re.compile(r"[\[\],]|[^\[\],]+")


@dataclass(frozen=True)
class Value:
    """A parsed VALUE.

    kind: "number", "list", "file" or "fill". data: a number, a nested list, a path, or (function, a, b).
    text: as written. where: its name in messages.
    """

    kind: str
    data: Any
    text: str
    where: str

    def array(self, rank: int) -> "Array | None":
        """The array of a list or file, read with this rank; None where the value has no shape of its own."""
        import numpy as np

        if self.kind == "list":
            return np.array(self.data)
        if self.kind == "file":
            return read_table(self.data, rank, self.where)
        return np.array(self.data) if self.kind == "number" and rank == 0 else None

    def fill(self, shape: tuple[int, ...] | None, rng: Any = None) -> "Array":
        """An array of this shape, in C order; None: of the value's own shape.

        rng: a numpy Generator, for uniform and normal. Raises ParamError where the shapes differ, or a fill has no shape.
        """
        import numpy as np

        if self.kind in ("list", "file"):
            array = self.array(2 if shape is None else len(shape))
            assert array is not None
            if shape is not None and shape != array.shape:
                raise ParamError(f"{self.where}: {show_text(self.text)} has shape {array.shape}, not {shape}")
            return array
        if self.kind == "number":
            return np.full(shape or (), self.data)
        if shape is None:
            raise ParamError(f"{self.where}: {self.text} fills a shape, and here there is none")
        name, a, b = self.data
        count = math.prod(shape)
        make: dict[str, Callable[[], Array]] = {
            "linspace": lambda: np.linspace(a, b, count),
            "logspace": lambda: np.logspace(a, b, count),
            "uniform": lambda: rng.uniform(a, b, count),
            "normal": lambda: rng.normal(a, b, count),
        }
        return make[name]().reshape(shape)


def parse_value(text: str, where: str) -> Value:
    """The Value in text: a number, `1,2,3`, an array in brackets, `@file.csv`, `@file.npy`, or a fill such as `linspace(a,b)`.

    linspace(a,b): a to b; logspace(a,b): 10^a to 10^b, both ends included; uniform(a,b); normal(mean, standard deviation).
    Raises ParamError with a message that starts with `where`.
    """
    s = text.strip()
    if not s:
        raise ParamError(f"{where}: the value is empty; {FORMS}")
    make = partial(Value, text=s, where=where)
    if s.startswith("@"):
        check_table_name(s[1:], where)
        return make("file", s[1:])
    if s.startswith("["):
        return make("list", _parse_list(s, where))
    if call := _CALL.fullmatch(s):
        return make("fill", _parse_fill(call[1], call[2], where))
    if opened := _OPENED.match(s):
        raise ParamError(
            f"{where}: {show_text(s)}: a ) is missing" if opened[1] in FILLS else f"{where}: {no_such('function', opened[1][:60], FILLS)}"
        )
    if "," in s:
        return make("list", _parse_list(f"[{s}]", where))
    if s.lower().endswith((".csv", ".npy")):
        raise ParamError(f"{where}: {show_text(s)} is not a number; a file is written @{s}")
    return make("number", parse_number(s, where, f"; {FORMS}"))


def _parse_fill(name: str, inside: str, where: str) -> tuple[str, float, float]:
    if name not in FILLS:
        raise ParamError(f"{where}: {no_such('function', name[:60], FILLS)}")
    ends = inside.split(",")
    if len(ends) != 2:
        raise ParamError(f"{where}: {name} takes two numbers, as in {name}(0,1), not {show_text(inside)}")
    a, b = (float(parse_number(end, where)) for end in ends)
    if name == "uniform" and not a < b:
        raise ParamError(f"{where}: uniform({a:g},{b:g}): the second number must be the larger one")
    if name == "normal" and not b > 0:
        raise ParamError(f"{where}: normal({a:g},{b:g}): the second number is a standard deviation and must be positive")
    if name == "logspace" and max(abs(a), abs(b)) > 308:
        raise ParamError(f"{where}: logspace({a:g},{b:g}) runs from 10^{a:g} to 10^{b:g}; exponents lie in [-308, 308]")
    if not math.isfinite(b - a):
        raise ParamError(f"{where}: {name}({a:g},{b:g}): the numbers are too far apart")
    return name, a, b


def _parse_list(text: str, where: str) -> list[Any]:
    """The nested list of numbers in text, which starts with [ and ends with ]."""

    def fail(what: str) -> ParamError:
        return ParamError(f"{where}: {show_text(text)}: {what}")

    stack: list[list[Any]] = []
    result: list[Any] | None = None
    expects_value = True  # a number or [ comes next
    for piece in _PIECE.findall(text):
        piece = piece.strip()
        if not piece:
            continue
        if result is not None:
            raise fail(f"{show_text(piece)} follows the last ]; rows stand in one more pair of brackets")
        if piece == "]":
            if expects_value:
                raise fail("a number is missing before ]")
            result = stack.pop()
            if stack:
                stack[-1].append(result)
                result = None
            continue
        if expects_value == (piece == ","):
            raise fail("a number is missing before a comma" if piece == "," else f"a comma is missing before {show_text(piece)}")
        expects_value = piece in "[,"
        if piece == "[":
            stack.append([])
            if len(stack) > DEPTH:
                raise fail(f"brackets are nested deeper than {DEPTH}")
        elif piece != ",":
            stack[-1].append(parse_number(piece, where))
    if result is None:
        raise fail("a ] is missing")
    _nested_shape(result, fail)
    return result


def _nested_shape(rows: list[Any], fail: Callable[[str], ParamError]) -> tuple[int, ...]:
    """The shape of a nested list. Raises ParamError where its rows differ in length."""
    inner = [_nested_shape(row, fail) if isinstance(row, list) else () for row in rows]
    for shape in inner:
        if len(shape) != len(inner[0]):
            raise fail("numbers and rows are mixed")
        if shape != inner[0]:
            a, b = next((a, b) for a, b in zip(inner[0], shape, strict=True) if a != b)
            raise fail(f"the rows have different lengths, {a} and {b}")
    return (len(rows), *inner[0])


def parse_assignment(text: str, option: str = "--set") -> tuple[str, Value]:
    """The (name, value) in NAME=VALUE. Raises ParamError."""
    name, equals, value = (part.strip() for part in text.partition("="))
    if not equals or not name:
        raise ParamError(f"{option} takes NAME=VALUE, not {show_text(text)}")
    if not name.isidentifier():
        raise ParamError(f"{option} takes NAME=VALUE: {show_text(name)} is not a plain name")
    return name, parse_value(value, f"{option} {name}")


def parse_size(text: str) -> tuple[str, int]:
    """The (name, n) in NAME=N, with n >= 1. Raises ParamError."""
    name, equals, value = (part.strip() for part in text.partition("="))
    if not equals or not name.isidentifier():
        raise ParamError(f"--size takes NAME=N, as in --size M=100, not {show_text(text)}")
    n = parse_number(value, f"--size {name}")
    if isinstance(n, float) and n.is_integer() and abs(n) < 1e16:
        n = int(n)
    if not isinstance(n, int):
        raise ParamError(f"--size {name}={value[:60]}: a size is a whole number below 10^16")
    if n < 1:
        raise ParamError(f"--size {name}={n}: a size is at least 1")
    return name, n

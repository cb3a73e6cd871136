"""What people type, as numbers: NUMBER, VALUE, NAME=VALUE, and the tables they name. Nothing that is typed is executed."""

import csv
import math
import os
import re
import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odesim.base.errors import ParamError, counted, no_such, value_text

if TYPE_CHECKING:
    from odesim.base.arrays import Array

EXACT = 2.0**53  # whole numbers up to here are exact in float64

# float() alone would take inf, nan, 1_000 and the digits of every script; numbers are written one way here, on the command line, in TOML
# files and in tables.
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_WHOLE = re.compile(r"[+-]?[0-9]+")


def show_text(text: str) -> str:
    """text in quotes for a message, with control characters escaped, shortened to 60 characters."""
    return repr(text if len(text) <= 60 else text[:57] + "...")


def parse_number(text: str, where: str, hint: str = "") -> int | float:
    """The finite number in text; an int where it is written as a whole number that float64 holds exactly.

    where: the subject of the message. hint: what else could be written. Raises ParamError.
    """
    text = text.strip()
    if not text:
        raise ParamError(f"{where}: a number is missing")
    if not _NUMBER.fullmatch(text):
        if text.lstrip("+-").lower() in ("inf", "infinity", "nan"):
            raise ParamError(f"{where}: {text} is not a finite number")
        raise ParamError(f"{where}: {show_text(text)} is not a number{hint}")
    value = float(text)
    if math.isinf(value):
        raise ParamError(f"{where}: {show_text(text)} overflows: numbers go up to 1.8e308")
    return int(value) if _WHOLE.fullmatch(text) and abs(value) <= EXACT else value


def parse_numbers(parts: Sequence[str], where: str) -> list[float]:
    """The finite floats in n texts. Raises ParamError."""
    return [float(parse_number(part, where)) for part in parts]


def device_sentence(path: str | os.PathLike[str]) -> str:
    """`'/dev/zero' is a device, not a file` where it is one, and so for a named pipe; else nothing.

    A pipe without a name, as `<(command)` of a shell, has a writer.
    """
    try:
        mode, named = os.stat(path).st_mode, os.path.exists(os.path.realpath(path))
    except (OSError, ValueError):  # what opens it says why it cannot
        return ""
    kind = "device" if stat.S_ISCHR(mode) or stat.S_ISBLK(mode) else "pipe" if stat.S_ISFIFO(mode) and named else ""
    return f"{value_text(os.fspath(path))} is a {kind}, not a file" if kind else ""


# np.genfromtxt reads a bad cell as nan and a decimal comma as two columns, and pandas guesses: a wrong parameter would integrate quietly.
# This reader knows less, and says which line is wrong.
NOT_FINITE = re.compile(r"(?i)nan|inf(inity)?")
DECIMAL_COMMA = re.compile(r"[-+]?[0-9]+,[0-9]+([eE][-+]?[0-9]+)?")
SUFFIXES = (".csv", ".npy", ".safetensors")
MARKS = (";", ",", "\t")  # between cells; else spaces
_QUOTED = re.compile(r'"[^"]*"')
_PART = re.compile(r"(.*\.(?:csv|safetensors))\[(.*)\](\.T)?", re.IGNORECASE | re.DOTALL)


def split_part(path: str) -> tuple[str, str | None, bool]:
    """(file, part, whether it is transposed) of `input.csv[u]`, `model.safetensors[fc.weight].T`; the part is None where none is named."""
    part = _PART.fullmatch(path)
    return (part[1], part[2].strip(), bool(part[3])) if part else (path, None, False)


def check_table_name(path: str, where: str) -> None:
    """Raises ParamError unless path ends in one of SUFFIXES, and names a tensor where it has to."""
    if not path.strip():
        raise ParamError(f"{where}: a file name must follow @")
    file, part, _ = split_part(path)
    suffix = Path(file).suffix
    if suffix.lower() not in SUFFIXES:
        raise ParamError(f"{where}: {no_such('file format', suffix[:20], SUFFIXES, show_text(path))}")
    if suffix.lower() == ".safetensors" and part is None:
        raise ParamError(f"{where}: {show_text(path)} has many tensors: name one, as in {show_text(file)[1:-1]}[layer.weight]")


def read_table(path: str, rank: int, where: str) -> "Array":
    """The numbers in a file, in a column of a csv by its name, or in a tensor of a .safetensors by its name, as an array.

    A .csv has cells between semicolons, commas, tabs or spaces, which quotes may hold, and perhaps a first line of names, which is left
    out. Its shape is (rows, columns); with rank 1 one row or one column has shape (n,); with rank 0 one number has shape ().
    Raises ParamError with the number of the wrong line.
    """
    check_table_name(path, where)
    path, part, transposed = split_part(path)
    suffix = Path(path).suffix.lower()
    try:
        if suffix == ".safetensors":
            from odesim.inputs.tensors import read_tensor

            array = read_tensor(_check_path(path, where), part or "", where)
        else:
            array = _read_npy(path, where) if suffix == ".npy" else _read_csv(path, rank, where, part)
        return array.T if transposed else array
    except FileNotFoundError:
        raise ParamError(f"{where}: there is no file {path!r}") from None
    except OSError as e:
        raise ParamError(f"{where}: cannot read {path!r}: {e.strerror or e}") from None
    except MemoryError:
        raise ParamError(f"{where}: {path!r} holds more than fits in memory") from None


def _read_npy(path: str, where: str) -> "Array":
    import numpy as np

    with open(_check_path(path, where), "rb") as file:
        try:
            # the file may be a stranger's: numbers are data, and a pickle is a program
            # not np.load, which takes zip files and looks for pickles
            array: Any = np.lib.format.read_array(file, allow_pickle=False)
        except (OSError, MemoryError):
            raise
        except Exception as e:  # a damaged header can make numpy raise anything
            raise ParamError(f"{where}: {path!r} is not a .npy file of numbers, or is cut short") from e
    return array


def _read_csv(path: str, rank: int, where: str, column: str | None) -> "Array":
    import numpy as np

    rows: list[list[float]] = []
    first, width, mark, chosen = 0, 0, "", slice(None)
    try:
        with open(_check_path(path, where), encoding="utf-8-sig") as file:
            for number, line in enumerate(file, 1):
                if not line.strip() or line.lstrip().startswith("#"):
                    continue
                bare = _QUOTED.sub("", line)
                mark = mark or next((mark for mark in MARKS if mark in bare), "")
                cells = [unquoted(cell) for cell in (line.split(mark or None) if bare == line else _quoted_cells(line, mark))]
                if not first and is_header(cells):
                    first, width = number, len(cells) if mark or column is not None else 0
                    chosen = slice(None) if column is None else _column_place(cells, column, f"{where}: {path!r}")
                    continue
                if column is not None and not first:
                    raise ParamError(f"{where}: {path!r} has no column {show_text(column)}: its first line is not one of names")
                first, width = first or number, width or len(cells)
                if len(cells) != width:
                    raise ParamError(f"{where}: {path!r}, line {number}: {counted(len(cells), 'value')}, where line {first} has {width}")
                rows.append(_csv_row(cells[chosen], f"{where}: {path!r}, line {number}"))
    except UnicodeDecodeError:
        raise ParamError(f"{where}: {path!r} is not text") from None
    except csv.Error as e:
        raise ParamError(f"{where}: {path!r}, line {number}: {e}") from None
    if not rows:
        raise ParamError(f"{where}: {path!r} holds no numbers")
    table = np.array(rows)
    if rank < 2 and 1 in table.shape:
        table = table.reshape(-1)
    return table.reshape(()) if rank == 0 and table.size == 1 else table


def _column_place(names: list[str], column: str, where: str) -> slice:
    """Where the cell of a column by this name is. Raises ParamError."""
    if names.count(column) != 1:
        twice = f"two columns are named {show_text(column)}"
        raise ParamError(f"{where}: {twice if column in names else no_such('column', column, names)}")
    place = names.index(column)
    return slice(place, place + 1)


def _quoted_cells(line: str, mark: str) -> list[str]:
    """The cells of a line in which quotes may hold marks, as in `t,"u, V"`."""
    cells = next(csv.reader([line.strip()], delimiter=mark or " ", skipinitialspace=True))
    return cells if mark else [cell for cell in cells if cell]


def is_header(cells: list[str]) -> bool:
    """Whether the cells of a first line are names: each starts with a letter or _, and none is nan or infinity."""
    words = [unquoted(cell) for cell in cells]
    return all(word[:1].isalpha() or word[:1] == "_" for word in words) and not any(NOT_FINITE.fullmatch(word) for word in words)


def unquoted(cell: str) -> str:
    """A cell without the quotes and spaces around it."""
    cell = cell.strip()
    return cell[1:-1].strip() if len(cell) > 1 and cell[0] == cell[-1] == '"' else cell


def _csv_row(cells: list[str], where: str) -> list[float]:
    if all(cell.isascii() and "_" not in cell for cell in cells):  # float() alone would take 1_0 and digits of other scripts
        try:
            row = [float(cell) for cell in cells]
        except ValueError:
            row = [math.nan]
        if all(map(math.isfinite, row)):
            return row
    for cell in cells:
        if DECIMAL_COMMA.fullmatch(cell):
            raise ParamError(f"{where}: {cell!r} has a decimal comma; write a point")
    return [float(parse_number(cell, where)) for cell in cells]


def _check_path(path: str, where: str) -> str:
    """path, if it can be the name of a file. Raises ParamError."""
    try:
        encoded = os.fsencode(path)
    except UnicodeEncodeError:
        encoded = b"\0"
    if b"\0" in encoded:
        raise ParamError(f"{where}: {show_text(path)} cannot be the name of a file")
    if device := device_sentence(path):
        raise ParamError(f"{where}: {device}")
    return path


FILLS = ("linspace", "loguniform", "logspace", "normal", "uniform")
FORMS = (
    "write a number, 1,2,3, [[1, 2], [3, 4]], @file.csv, @file.npy, or linspace, logspace, uniform, loguniform, normal with two numbers "
    "(a,b)"
)
DEPTH = 32  # numpy has room for 64 axes

_OPENED = re.compile(r"([^\W\d]\w*)\s*\([^)]*$")
_CALL = re.compile(r"([^\W\d]\w*)\s*\((.*)\)", re.DOTALL)
_FILL = re.compile(rf"(?:{'|'.join(FILLS)})\b")
RANGE = re.compile(rf"({_NUMBER.pattern}):({_NUMBER.pattern})(?::({_NUMBER.pattern}))?")  # of numpy and Julia; no value here
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
            "loguniform": lambda: np.clip(np.exp(rng.uniform(math.log(a), math.log(b), count)), a, b),
            "normal": lambda: rng.normal(a, b, count),
        }
        return make[name]().reshape(shape)


def parse_value(text: str, where: str) -> Value:
    """The Value in text: a number, `1,2,3`, an array in brackets, `@file.csv`, `@file.npy`, or a fill such as `linspace(a,b)`.

    linspace(a,b): a to b; logspace(a,b): 10^a to 10^b, both ends included; uniform(a,b); loguniform(a,b), whose
    logarithm is uniform; normal(mean, standard deviation).
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
    if word := _FILL.match(s):
        raise ParamError(f"{where}: {show_text(s)} is not a value; {word[0]} takes two numbers, as in {word[0]}(0,1)")
    if "," in s:
        return make("list", _parse_list(f"[{s}]", where))
    if ends := RANGE.fullmatch(s):
        meant = f"uniform({ends[1]},{ends[2]}) for numbers drawn at random, linspace({ends[1]},{ends[2]}) for even ones"
        raise ParamError(f"{where}: {show_text(s)} is not a number; write {meant}")
    if s.lower().endswith(SUFFIXES):
        raise ParamError(f"{where}: {show_text(s)} is not a number; a file is written @{s}")
    return make("number", parse_number(s, where, f"; {FORMS}"))


def _parse_fill(name: str, inside: str, where: str) -> tuple[str, float, float]:
    if name not in FILLS:
        raise ParamError(f"{where}: {no_such('function', name[:60], FILLS)}")
    ends = inside.split(",")
    if len(ends) != 2:
        raise ParamError(f"{where}: {name} takes two numbers, as in {name}(0,1), not {show_text(inside)}")
    a, b = (float(parse_number(end, where)) for end in ends)
    if name in ("uniform", "loguniform") and not a < b:
        raise ParamError(f"{where}: {name}({a:g},{b:g}): the second number must be the larger one")
    if name == "loguniform" and not a > 0:
        raise ParamError(f"{where}: loguniform({a:g},{b:g}): both numbers must be positive, from 0.01 to 10 for example")
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

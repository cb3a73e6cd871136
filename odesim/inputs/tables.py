"""Arrays of numbers read from .csv and .npy files."""

import math
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odesim.base.errors import ParamError, counted, no_such
from odesim.inputs.grammar import device_sentence, parse_number, show_text

if TYPE_CHECKING:
    from odesim.base.arrays import Array

NOT_FINITE = re.compile(r"(?i)nan|inf(inity)?")
DECIMAL_COMMA = re.compile(r"[-+]?[0-9]+,[0-9]+([eE][-+]?[0-9]+)?")
SUFFIXES = (".csv", ".npy")
MARKS = (";", ",", "\t")  # between cells; else spaces


def check_table_name(path: str, where: str) -> None:
    """Raises ParamError unless path ends in .csv or .npy."""
    if not path.strip():
        raise ParamError(f"{where}: a file name must follow @")
    if Path(path).suffix.lower() not in SUFFIXES:
        raise ParamError(f"{where}: {no_such('file format', Path(path).suffix[:20], SUFFIXES, show_text(path))}")


def read_table(path: str, rank: int, where: str) -> "Array":
    """The numbers in a file as an array.

    A .csv has cells between semicolons, commas, tabs or spaces, and perhaps a first line of names, which is left out. Its shape is
    (rows, columns);
    with rank 1 one row or one column has shape (n,); with rank 0 one number has shape ().
    Raises ParamError with the number of the wrong line.
    """
    check_table_name(path, where)
    try:
        return _read_npy(path, where) if Path(path).suffix.lower() == ".npy" else _read_csv(path, rank, where)
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
            # not np.load, which takes zip files and looks for pickles
            array: Any = np.lib.format.read_array(file, allow_pickle=False)
        except (OSError, MemoryError):
            raise
        except Exception as e:  # a damaged header can make numpy raise anything
            raise ParamError(f"{where}: {path!r} is not a .npy file of numbers, or is cut short") from e
    return array


def _read_csv(path: str, rank: int, where: str) -> "Array":
    import numpy as np

    rows: list[list[float]] = []
    first, width, mark = 0, 0, ""
    try:
        with open(_check_path(path, where), encoding="utf-8-sig") as file:
            for number, line in enumerate(file, 1):
                if not line.strip() or line.lstrip().startswith("#"):
                    continue
                mark = mark or next((mark for mark in MARKS if mark in line), "")
                cells = [unquoted(cell) for cell in line.split(mark or None)]
                if not first and is_header(cells):
                    first, width = number, len(cells) if mark else 0
                    continue
                row = _csv_row(cells, f"{where}: {path!r}, line {number}")
                first, width = first or number, width or len(row)
                if len(row) != width:
                    raise ParamError(f"{where}: {path!r}, line {number}: {counted(len(row), 'value')}, where line {first} has {width}")
                rows.append(row)
    except UnicodeDecodeError:
        raise ParamError(f"{where}: {path!r} is not text") from None
    if not rows:
        raise ParamError(f"{where}: {path!r} holds no numbers")
    table = np.array(rows)
    if rank < 2 and 1 in table.shape:
        table = table.reshape(-1)
    return table.reshape(()) if rank == 0 and table.size == 1 else table


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

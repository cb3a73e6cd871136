"""JSON of a stored run, read as data from a stranger: of bounded size, with finite numbers and text that can be shown."""

import errno
import json
import math
import os
import stat
from pathlib import Path
from typing import Any, NoReturn

from odesim.errors import StoreError

MAX_BYTES = 1 << 26
INT_BOUND = 1 << 63
NO_WAIT = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)  # no link, and no wait for a pipe
DIGITS = 20  # of a whole number below MOST_WHOLE


def read_document(file: Path) -> dict[str, Any]:
    """The JSON object in the file. Raises StoreError for anything else, OSError where the file cannot be read."""
    try:
        handle = os.open(file, os.O_RDONLY | NO_WAIT)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise StoreError(f"{file} is a symbolic link, and no link is followed inside a run") from None
        raise
    with os.fdopen(handle, "rb") as stream:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise StoreError(f"{file} is not a plain file")
        content = stream.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise StoreError(f"{file} is damaged: it has more than {MAX_BYTES} bytes")
    try:
        found = json.loads(content.decode(), parse_constant=_refuse_constant, parse_float=_parse_float, parse_int=_parse_int)
        check_text(found)
    except RecursionError:
        raise StoreError(f"{file} is damaged: its brackets are too deep") from None
    except ValueError as error:
        raise StoreError(f"{file} is damaged: {' '.join(str(error).split())[:120]}") from None
    if not isinstance(found, dict):
        raise StoreError(f"{file} is damaged: it holds no JSON object")
    return found


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number of JSON")


def _parse_float(text: str) -> float:
    found = float(text)
    if not math.isfinite(found):
        raise ValueError(f"the number {text[:20]} overflows")
    return found


def _parse_int(text: str) -> int:
    if len(text) > DIGITS or not -INT_BOUND <= (found := int(text)) < INT_BOUND:
        raise ValueError(f"the number {text[:20]} is too large")
    return found


def check_text(value: Any) -> None:
    """Raises ValueError for text with a NUL, or with half of a pair of surrogates, which no file can hold."""
    todo = [value]
    while todo:
        one = todo.pop()
        if isinstance(one, dict):
            todo += [*one, *one.values()]
        elif isinstance(one, list):
            todo += one
        elif isinstance(one, str):
            if "\0" in one:
                raise ValueError("a text holds a NUL character")
            one.encode()  # a UnicodeEncodeError is a ValueError

"""Reads JSON that may come from a stranger: its size is bounded, its numbers are finite, its text can be encoded."""

import errno
import json
import math
import os
import stat
from pathlib import Path
from typing import Any, NoReturn

from odesim.base.errors import StoreError
from odesim.store.remote import RemotePath

MAX_BYTES = 1 << 26
INT_BOUND = 1 << 63
FLAGS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)  # no links, no waiting for a pipe
DIGITS = 20  # of a whole number below INT_BOUND, with its sign


def read_document(file: Path) -> dict[str, Any]:
    """The JSON object in the file. Raises StoreError for other content, OSError if the file cannot be read."""
    content = file.read_bytes(MAX_BYTES + 1) if isinstance(file, RemotePath) else read_plain(file)
    if len(content) > MAX_BYTES:
        raise StoreError(f"{file} is damaged: it has more than {MAX_BYTES} bytes")
    try:
        value = json.loads(content.decode(), parse_constant=_refuse_constant, parse_float=_parse_float, parse_int=_parse_int)
        check_text(value)
    except RecursionError:
        raise StoreError(f"{file} is damaged: its brackets are too deep") from None
    except ValueError as error:
        raise StoreError(f"{file} is damaged: {' '.join(str(error).split())[:120]}") from None
    if not isinstance(value, dict):
        raise StoreError(f"{file} is damaged: it holds no JSON object")
    return value


def read_plain(file: Path) -> bytes:
    """The first MAX_BYTES + 1 bytes of a plain file. Raises StoreError for a link or what is no file."""
    try:
        handle = os.open(file, os.O_RDONLY | FLAGS)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise StoreError(f"{file} is a symbolic link, and no link is followed inside a run") from None
        raise
    with os.fdopen(handle, "rb") as stream:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise StoreError(f"{file} is not a plain file")
        return stream.read(MAX_BYTES + 1)


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number of JSON")


def _parse_float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"the number {text[:20]} overflows")
    return number


def _parse_int(text: str) -> int:
    if len(text) > DIGITS or not -INT_BOUND <= (number := int(text)) < INT_BOUND:
        raise ValueError(f"the number {text[:20]} is too large")
    return number


def check_text(value: Any) -> None:
    """Raises ValueError if a text inside the JSON value holds a NUL or a lone surrogate, which no file name can hold."""
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, dict):
            pending += [*item, *item.values()]
        elif isinstance(item, list):
            pending += item
        elif isinstance(item, str):
            if "\0" in item:
                raise ValueError("a text holds a NUL character")
            item.encode()  # a UnicodeEncodeError is a ValueError

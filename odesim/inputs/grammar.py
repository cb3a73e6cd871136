"""The smallest parts of typed input: one finite number, and quoted text for messages."""

import math
import re
from collections.abc import Sequence

from odesim.base.errors import ParamError

EXACT = 2.0**53  # whole numbers up to here are exact in float64

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

"""Exceptions, one a layer, and the sentence that names what was meant instead."""

from collections.abc import Iterable
from typing import Any

MAX_WORD = 200  # characters of one word of a message
UNESCAPED = "\n\u00a0\u2009\u202f"  # what is printed as it is, though Python calls it unprintable: ends of lines and narrow spaces


def escaped(text: str, keep: str = UNESCAPED) -> str:
    """text with every character escaped that a terminal would act on or not show: ESC, carriage returns, marks of direction, ...

    keep: characters that stay.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else c.encode("unicode_escape").decode() for c in text)


class OdesimError(Exception):
    """A request that cannot be met: the message is one sentence for the person who asked.

    Words beyond 200 characters are cut, and what a terminal would act on is escaped.
    """

    def __init__(self, sentence: str = "", *more: object) -> None:
        super().__init__(escaped(" ".join(map(shorten, str(sentence).split(" ")))), *more)


class SpecError(OdesimError):
    """A System is not well formed; the message holds the expression. part: the field of the System and the number of its item."""

    part: tuple[str, int | None] | None = None


class CodegenError(OdesimError):
    """A backend has no way to compute an expression, or is not there."""


class ParamError(OdesimError):
    """A parameter, size, initial value, span or grid has a wrong value."""


class ModelError(OdesimError):
    """A model cannot be found or its file cannot be used."""


class ModelWarning(UserWarning):
    """A model can be used, but something in its file is likely a slip."""


class SolveError(OdesimError):
    """An unknown method, or options that a method does not have."""


class DeviceError(OdesimError):
    """A GPU has too little memory, or failed."""

    def __init__(self, sentence: str, *, stored: bool = False) -> None:
        """stored: whether what was computed before is on disk."""
        super().__init__(sentence)
        self.stored = stored


class StoreError(OdesimError):
    """A file cannot be read or written."""


def shorten(word: str, most: int = MAX_WORD) -> str:
    """word, or its beginning and its end where it is longer than most."""
    return word if len(word) <= most else f"{word[: most - 40]}...{word[-20:]}"


def value_text(value: Any) -> str:
    """value as messages show it: one line of at most 60 characters."""
    try:
        text = " ".join(repr(value).split())
    except Exception:  # of a stranger's class, or an integer that Python does not write out
        text = f"a value of type {type(value).__name__}"
    return text if len(text) <= 60 else text[:57] + "..."


def nearest(name: str, choices: Iterable[str]) -> str:
    """`; did you mean 'x'?` for the choice spelled most like name, or an empty string."""
    import difflib

    found = difflib.get_close_matches(name[:MAX_WORD], list(choices), n=1, cutoff=0.5)
    return f"; did you mean {found[0]!r}?" if found else ""


def no_such(what: str, name: str, choices: Iterable[str], where: str = "") -> str:
    """One sentence: there is no such thing here, what there is, and the nearest spelling."""
    options = sorted(choices)
    place = f" in {where}" if where else ""
    listed = f"; choose from {', '.join(options)}" if options else "; there are none"
    return f"no {what} {shorten(name, 60)!r}{place}{listed}{nearest(name, options)}"


def counted(count: float, noun: str, plural: str = "") -> str:
    """`1 member`, `2 members`, `0 members`, `0.5 steps`; plural: of a noun that takes another ending than s."""
    word = noun if count == 1 else plural or f"{noun}s"
    return f"{count:g} {word}" if isinstance(count, float) and count < 1e6 else f"{count:.0f} {word}"

"""Python as text: syntax trees of it, texts from templates, and signatures as help() prints them."""

import ast
import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from types import CodeType
from typing import Any, ParamSpec, TypeVar

from odesim.base.errors import ParamError, no_such
from odesim.base.memo import ForkLock

# Python 3.11 counts the depth of a tree in one place for all threads: two at once end in a SystemError (its issue 106905)
_LOCK = ForkLock()


def parse(text: str, mode: str = "exec") -> Any:
    """The tree of text, as ast.parse gives it. Raises SyntaxError."""
    with _LOCK:
        return ast.parse(text, mode=mode)


def names_in(text: str) -> set[str]:
    """The names that the text of a module reads, in its functions too. Raises SyntaxError."""
    return _names_of(compile(text, "text", "exec"))


def _names_of(code: CodeType) -> set[str]:
    return set(code.co_names).union(*(_names_of(inner) for inner in code.co_consts if isinstance(inner, CodeType)))


def margin(lines: Iterable[str]) -> list[str]:
    """Lines of an inner block; one of several lines is moved as a whole."""
    return ["    " + inner for line in lines for inner in line.split("\n")]


def fit(template: str, **words: object) -> str:
    """The template with its words filled in; a word of several lines is indented like its first line."""
    out = []
    for line in template.split("\n"):
        name = line.strip().strip("{}")
        if line.strip() == f"{{{name}}}":
            margin = line[: len(line) - len(line.lstrip())]
            out += [margin + inner for inner in str(words[name]).split("\n")]
        else:
            out.append(line.format(**words))
    return "\n".join(out)


Public = TypeVar("Public")
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
WIDTH = 80


def readable(public: Public) -> Public:
    """public, a function or class, with a signature that people can read. Its module must have `from __future__ import annotations`."""
    signature = inspect.signature(public)  # type: ignore[arg-type]
    parameters = [p.replace(annotation=_written(p.annotation)) for p in signature.parameters.values()]
    public.__signature__ = _Lines(parameters, return_annotation=_written(signature.return_annotation))  # type: ignore[attr-defined]
    return public


def argument_names(call: Callable[..., Any]) -> list[str]:
    """The names of the arguments of a function or method."""
    return [name for name in inspect.signature(call).parameters if name != "self"]


def unknown_argument(call: Callable[..., Any], word: str) -> ParamError:
    """What is raised for a keyword that a function does not have."""
    return ParamError(no_such("argument", word, argument_names(call), f"{call.__name__}()"))


def check_keywords(call: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """call, with a ParamError for a keyword that it does not have: the sentence has the choices and the nearest spelling."""
    names = argument_names(call)

    @wraps(call)
    def with_known(*args: Arguments.args, **keywords: Arguments.kwargs) -> Result:
        for word in keywords:
            if word not in names:
                raise unknown_argument(call, word)
        return call(*args, **keywords)

    return readable(with_known)


class _Words(str):
    """A text that prints without quotes."""

    __repr__ = str.__str__


def _written(annotation: Any) -> Any:
    return _Words(annotation.replace('"', "").replace("sp.", "")) if isinstance(annotation, str) else annotation


class _Lines(inspect.Signature):
    """A signature of which a long one is printed with one parameter a line."""

    def __str__(self) -> str:
        line = super().__str__()
        if len(line) <= WIDTH:
            return line
        parts: list[str] = []
        keyword_only = False
        for p in self.parameters.values():
            if p.kind is p.KEYWORD_ONLY and not keyword_only:
                parts, keyword_only = [*parts, "*"], True
            keyword_only |= p.kind is p.VAR_POSITIONAL
            parts.append(str(p))
        end = "" if self.return_annotation is self.empty else f" -> {inspect.formatannotation(self.return_annotation)}"
        return "(\n    " + ",\n    ".join(parts) + f",\n){end}"

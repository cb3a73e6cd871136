"""Passes of a long kernel as functions of their own: equal passes of many layers are one function, compiled once.

A compiler's optimiser takes more than twice the time for a function of twice the length. These functions are called, not inlined:
SEPARATE in their names says so.
"""

import re
from collections.abc import Iterable, Sequence

from odesim.targets.native import SEPARATE
from odesim.targets.nest import UNITS

MANY = 40
"""A kernel of so many passes is split: a call costs some ten nanoseconds."""
WORD = re.compile(r"[A-Za-z_]\w*")
ASSIGNED = re.compile(r"\s*(\w+(?:, \w+)*) = |\s*for (\w+) in ")


def separate_passes(kernel: str, passes: Sequence[Sequence[str]], known: Iterable[str], end: Sequence[str]) -> tuple[list[str], list[str]]:
    """(definitions of functions, lines that call them) for the lines of each pass of a kernel.

    known: the names that the lines before define. end: the lines after the passes.
    """
    names, functions, calls = set(known), dict[str, str](), list[str]()  # functions {text: name}
    for n, lines in enumerate(passes):
        own = [line for line in lines if line.strip() != UNITS]
        numbers = numbers_of(own)
        after = _words(line for p in [*passes[n + 1 :], end] for line in p)
        results = [name for name in numbers if name in after]
        given = [name for name in _words(own) if name in names and name not in numbers]
        text = _function(own, given, results)
        name = functions.setdefault(text, f"{SEPARATE}_{kernel}_{len(functions)}")
        calls.append(f"    {', '.join(results)}{' = ' if results else ''}{name}({', '.join(given)})")
        names |= set(results)
    return [f"@kernel\ndef {name}{text}" for text, name in functions.items()], calls


def _function(lines: Sequence[str], given: Sequence[str], results: Sequence[str]) -> str:
    """The text of a function after its name, with names p0_, p1_, ... in the order in which they come."""
    own = {*given, *assigned(lines)}
    renamed = {name: f"p{n}_" for n, name in enumerate(name for name in _words(lines) if name in own)}
    text = [f"({', '.join(renamed[name] for name in given)}):"]
    text += [f"    {UNITS}"] * bool({"one_", "zero_"} & set(_words(lines)))
    text += [WORD.sub(lambda m: renamed.get(m[0], m[0]), line) for line in lines]
    return "\n".join([*text, *[f"    return {', '.join(renamed[name] for name in results)}"] * bool(results)])


def _words(lines: Iterable[str]) -> list[str]:
    """The words of these lines, each once."""
    return list(dict.fromkeys(word for line in lines for word in WORD.findall(line)))


def numbers_of(lines: Iterable[str]) -> list[str]:
    """The names that these lines of a kernel give values outside of loops, each once."""
    return assigned(line for line in lines if line.startswith("    ") and line[4] != " " and " in " not in line)


def assigned(lines: Iterable[str]) -> list[str]:
    """The names that these lines give values, each once."""
    found = [m for m in map(ASSIGNED.match, lines) if m]
    return list(dict.fromkeys(name for m in found for name in (m[1] or m[2]).split(", ")))

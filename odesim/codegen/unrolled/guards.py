"""The conditions under which a value is used: in a branch that is not taken it may be infinite, and its derivatives are dropped."""

from collections.abc import Iterable, Sequence

from odesim.ir.scalars import Code, Operand, Operation

Guard = tuple[tuple[Operand, bool], ...]
"""The conditions, and how each turned out, under which a value is looked at."""

MOST_WAYS = 8


def guards_of(code: Code, outputs: Iterable[str]) -> dict[str, list[Guard]]:
    """{name: a Guard for each path from an output to this operation}."""
    found: dict[str, list[Guard]] = {name: [()] for name in outputs}
    for name, operation in reversed(code.items()):
        ways = found[name] = shortest(found.get(name, [()]))
        match operation:
            case Operation("if", (test, yes, no)):
                parts = [(part, [(*way, (test, taken)) for way in ways]) for part, taken in ((yes, True), (no, False))]
            case _:
                parts = [(part, ways) for part in operation.operands]
        for part, own in parts:
            found.setdefault(str(part), []).extend(own)
    return found


def shortest(guards: Sequence[Guard]) -> list[Guard]:
    """The distinct paths, without those that include a shorter one; more than MOST_WAYS are replaced by their common part."""
    first: list[Guard] = []
    for guard in sorted(dict.fromkeys(guards), key=len):
        if not any(guard[: len(f)] == f for f in first):
            first.append(guard)
    return first if len(first) <= MOST_WAYS else [common(first)]


def common(guards: Sequence[Guard]) -> Guard:
    """The conditions that all paths begin with."""
    first, *rest = guards
    size = 0
    while size < len(first) and all(g[: size + 1] == first[: size + 1] for g in rest):
        size += 1
    return first[:size]

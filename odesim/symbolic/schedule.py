"""The order of statements, and which of them share a loop."""

from collections.abc import Mapping

from sympy import Expr, Indexed, Symbol

from odesim.symbolic.expr import base_name
from odesim.symbolic.program import Statement


def passes(statements: list[Statement], extents: Mapping[Symbol, Expr]) -> tuple[tuple[Statement, ...], ...]:
    """Statements in passes: those of one pass run over one index and read each other only at the same place.

    [r0[i] = ..., r1 = sum_i r0[i], d_z[i] = r0[i] / r1]  ->  [r0[i], r1], [d_z[i]]
    """
    made: dict[str, tuple[int, tuple[object, ...], Statement]] = {}
    groups: dict[tuple[object, ...], list[Statement]] = {}
    for n, s in enumerate(ordered(statements)):
        kind = _kind(s, n, extents)
        level = 0
        for name in s.reads():
            if name in made:
                at, other, writer = made[name]
                joins = kind == other and kind[0] == "line" and writer.op == "map" and _local(s, name)
                level = max(level, at if joins else at + 1)
        made[s.name] = (level, kind, s)
        groups.setdefault((level, *kind), []).append(s)
    order = sorted(groups, key=lambda g: g[0])  # type: ignore[arg-type,return-value]
    return tuple(tuple(groups[g]) for g in order)


def ordered(statements: list[Statement]) -> list[Statement]:
    """Each statement after those it reads; otherwise in the order given."""
    by_name = {s.name: s for s in statements}
    done: dict[str, Statement] = {}

    def visit(s: Statement) -> None:
        if s.name not in done:
            for name in sorted(s.reads()):
                if name in by_name and name != s.name:
                    visit(by_name[name])
            done[s.name] = s

    for s in statements:
        visit(s)
    return list(done.values())


def _kind(s: Statement, n: int, extents: Mapping[Symbol, Expr]) -> tuple[object, ...]:
    """("line", extent) for one loop, ("number",) for none; other statements have a pass of their own."""
    if s.op in ("map", "sum", "max") and len(s.loops) == 1:
        return ("line", extents[s.loops[0]])
    if s.op == "map" and not s.loops:
        return ("number",)
    return ("own", n)


def _local(s: Statement, name: str) -> bool:
    """s reads the array `name` only at its own loop index."""
    reads = [a for a in s.body.atoms(Indexed) if base_name(a) == name]
    return bool(reads) and all(a.indices == s.loops for a in reads)

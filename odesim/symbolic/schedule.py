"""The order of statements, and their grouping into loops."""

from collections.abc import Mapping

from sympy import Expr, Indexed, Symbol

from odesim.ir.program import Statement
from odesim.symbolic.indices import base_name


def passes(statements: list[Statement], extents: Mapping[Symbol, Expr]) -> tuple[tuple[Statement, ...], ...]:
    """The statements in passes: those of one pass share a loop and read each other only at the same element.

    [r0[i] = ..., r1 = sum_i r0[i], d_z[i] = r0[i] / r1]  ->  [r0[i], r1], [d_z[i]]
    """
    assigned: dict[str, tuple[int, tuple[object, ...], Statement]] = {}
    groups: dict[tuple[object, ...], list[Statement]] = {}
    for n, s in enumerate(dependency_order(statements)):
        kind = _kind(s, n, extents)
        level = 0
        for name in s.reads():
            if name in assigned:
                earlier, other, writer = assigned[name]
                shares_loop = kind == other and kind[0] == "line" and writer.op == "map" and _local(s, name)
                level = max(level, earlier if shares_loop else earlier + 1)
        assigned[s.name] = (level, kind, s)
        groups.setdefault((level, *kind), []).append(s)
    order = sorted(groups, key=lambda g: g[0])  # type: ignore[arg-type,return-value]
    return tuple(tuple(groups[g]) for g in order)


def dependency_order(statements: list[Statement]) -> list[Statement]:
    """The statements, each after those it reads, otherwise in their order."""
    by_name = {s.name: s for s in statements}
    visited: dict[str, Statement] = {}

    def visit(s: Statement) -> None:
        if s.name not in visited:
            for name in sorted(s.reads()):
                if name in by_name and name != s.name:
                    visit(by_name[name])
            visited[s.name] = s

    for s in statements:
        visit(s)
    return list(visited.values())


def _kind(s: Statement, n: int, extents: Mapping[Symbol, Expr]) -> tuple[object, ...]:
    """The kind of loop of a statement: ("line", extent) for one index, ("number",) for none, ("own", n) for a pass of its own."""
    if s.op in ("map", "sum", "max") and len(s.loops) == 1:
        return ("line", extents[s.loops[0]])
    if s.op == "map" and not s.loops:
        return ("number",)
    return ("own", n)


def _local(s: Statement, name: str) -> bool:
    """Whether s reads the array `name` only at its own loop index."""
    reads = [a for a in s.body.atoms(Indexed) if base_name(a) == name]
    return bool(reads) and all(a.indices == s.loops for a in reads)

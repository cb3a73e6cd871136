"""The Jacobian of a right-hand side as a sparse linear system in straight-line code, in an elimination order from its structure.

Every operation of the right-hand side is an unknown of its own, d x = sum of slopes * d (what it reads). Those that cost least are
eliminated first (Markowitz): operations while they have no right-hand side, states with the pivot 1/(gamma h) - d f/d y. The unknowns
left when the first state would be cheaper are all that depends on the point. So a Jacobian of full rank ends as its own entries. Sums
over many states stay unknowns, which is Woodbury's formula.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from odesim.ir.scalars import Code, CodeBuilder, Formulas, is_number, needed, printed
from odesim.ir.slopes import Slopes

SOLVES = 9
"""Right-hand sides for each matrix, about: what an entry beside the pivot costs."""
WORST = 1e-11
"""A residual, relative to the size of all terms, that is not accepted any more."""

Rows = dict[str, dict[str, str]]
"""{unknown: {unknown, or t: how it depends on that, as a name or a number}}."""


@dataclass(frozen=True)
class SparseSystem:
    """code computes, from t, y0, ..., p0, ..., the derivatives outputs (n,) and what rows names.

    rows: of the states (named y0, y1, ...: the row is that of the derivative) and of the sums that stay unknown.
    order: the pivots, all unknowns.
    """

    code: Code
    outputs: tuple[str, ...]
    rows: Rows
    order: tuple[str, ...]

    @property
    def states(self) -> int:
        return len(self.outputs)

    @cached_property
    def constants(self) -> tuple[str, ...]:
        """The operations that depend on the point but are no state or parameter: computed once for all steps from there."""
        entries = {e: None for row in self.rows.values() for e in row.values() if not is_number(e)}
        return tuple(e for e in entries if e[0] not in "yp")

    @cached_property
    def sums(self) -> tuple[str, ...]:
        """The unknowns that are not states, each after those that it reads."""
        return tuple(name for name in self.rows if name[0] != "y")

    @cached_property
    def moves(self) -> bool:
        """Whether the right-hand side depends on t explicitly."""
        return any("t" in row for row in self.rows.values())

    @cached_property
    def diagonal(self) -> bool:
        """Whether the Jacobian is diagonal: nothing has to be eliminated."""
        return all(set(row) <= {name, "t"} for name, row in self.rows.items())

    def tangent(self, direction: Mapping[str, str], time: str | None = None) -> tuple[list[str], dict[str, str]]:
        """Code, and by the name of a state the directional derivative of its rate along a direction of the states (and of t)."""
        builder, known = CodeBuilder("v"), dict(direction)
        for name in (*self.sums, *(f"y{k}" for k in range(self.states))):
            total: str | None = None
            for read, entry in self.rows[name].items():
                if read == "t" and time is None:
                    continue
                term = builder.times(entry, time if read == "t" and time is not None else known[read])
                total = term if total is None else builder.plus(total, term)
            known[name if name[0] != "y" else f"f{name}"] = total or "0.0"
        return printed(builder.code), {f"y{k}": known[f"fy{k}"] for k in range(self.states)}


def sparse_system(formulas: Formulas) -> SparseSystem:
    """The SparseSystem of a right-hand side. Raises CodegenError for an operation without a derivative."""
    slopes = Slopes(formulas)
    states = [f"y{k}" for k in range(formulas.states)]
    rows = slopes.rows | {y: {f: "1.0"} for y, f in zip(states, slopes.outputs, strict=True)}
    active = {*slopes.rows, *states, "t"}
    rows = _needed({name: {read: e for read, e in row.items() if read in active} for name, row in rows.items()}, states)
    for name in [name for name, bare in _order({n: set(row) - {"t"} for n, row in rows.items()}, set(rows) - set(states)) if bare]:
        _substitute(rows, name, slopes.builder)
    left = _order({name: set(row) - {"t"} for name, row in rows.items()}, set(rows) - set(states))
    used = [*slopes.outputs, *(e for row in rows.values() for e in row.values())]
    return SparseSystem(needed(slopes.builder.code, used), slopes.outputs, rows, tuple(name for name, _ in left))


def _needed(rows: Rows, states: Iterable[str]) -> Rows:
    """The rows on which the states' rows depend."""
    wanted = set(states)
    for name in reversed(rows):
        if name in wanted:
            wanted.update(rows[name])
    return {name: row for name, row in rows.items() if name in wanted}


def _substitute(rows: Rows, name: str, builder: CodeBuilder) -> None:
    """Eliminates an operation: each of its readers then reads its operands."""
    row_of_name = rows.pop(name)
    for row in rows.values():
        if name in row:
            factor = row.pop(name)
            for read, entry in row_of_name.items():
                term = builder.times(factor, entry)
                row[read] = builder.plus(row[read], term) if read in row else term


def _order(reads: dict[str, set[str]], inner: set[str]) -> list[tuple[str, bool]]:
    """(unknown, whether it was an operation without a right-hand side) in elimination order; reads is consumed."""
    place = {name: k for k, name in enumerate(reads)}
    readers: dict[str, set[str]] = {name: set() for name in reads}
    for name, row in reads.items():
        for read in row:
            readers[read].add(name)
    # Markowitz's rule with one cost more: an unknown with a right-hand side is solved for in all SOLVES stages, a bare one once a matrix
    loaded = set(reads) - inner  # those with a right-hand side

    def cost(name: str) -> float:
        r, c = len(readers[name] - {name}), len(reads[name] - {name})
        if name not in loaded:
            return (r - 1) * (c - 1)  # the entries that come, less those that go
        return r * c + SOLVES * (r + c) + (name not in inner)

    costs, out = {name: cost(name) for name in reads}, []
    # a search over all each time: the unknowns of systems that are written out are few
    while costs:
        name = min(costs, key=lambda n: (costs[n], place[n]))
        del costs[name]
        out.append((name, name not in loaded))
        above, below = readers.pop(name) - {name}, reads.pop(name) - {name}
        for r in above:
            reads[r].discard(name)
            reads[r] |= below
            if name in loaded:
                loaded.add(r)
        for c in below:
            readers[c].discard(name)
            readers[c] |= above
        for n in above | below:
            costs[n] = cost(n)
    return out

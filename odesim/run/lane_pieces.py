"""A loop over lanes as several loops, one for each stage of a step: what a later one reads lies in memory between them.

In one loop for a whole step each stage waits for the one before, and a processor looks some 500 instructions ahead: not to the next lanes.
In a loop of a stage it finds those of all lanes at once. On an Intel with registers of 512 bits 16 lanes in pieces take .76 of the time of
8 in one loop (W1, tsit5), .79 (vern7), .78 (dop853); 32 lanes are as fast. The numbers between two loops stay in the nearest cache. They
are the same numbers, so bits are those of one loop, but for what contracts across an end.

What is cut are printed lines, not statements: which numbers are loaded, stored or dropped is decided where a stage is printed.
"""

import ast
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from odesim.base.parsing import parse

END = "right"
"""The function that the last line of a piece calls."""


@dataclass(frozen=True)
class Piece:
    """Lines of a lane.

    sets: how often they set which names. reads: names that they read before they set them. loads: {name: the place in memory from which
    a line takes it}. stores: the places where they write.
    """

    lines: list[str] = field(default_factory=list)
    sets: Counter[str] = field(default_factory=Counter)
    reads: set[str] = field(default_factory=set)
    loads: dict[str, str] = field(default_factory=dict)
    stores: set[str] = field(default_factory=set)


def pieces_of(lines: Iterable[str]) -> list[Piece]:
    """Straight lines, cut after each right-hand side."""
    pieces = [Piece()]
    for line in lines:
        last, tree = pieces[-1], parse(line)
        nodes = list(ast.walk(tree))
        names = [n for n in nodes if isinstance(n, ast.Name)]
        sets = {n.id for n in names if isinstance(n.ctx, ast.Store)}
        changed = sets if any(isinstance(n, ast.AugAssign) for n in nodes) else set()  # such a line reads what it sets
        last.lines.append(line)
        last.reads.update(({n.id for n in names if isinstance(n.ctx, ast.Load)} | changed) - last.sets.keys())
        last.sets.update(sets)
        match tree.body:
            case [ast.Assign([ast.Name(name)], ast.Subscript() as place)] if {n.id for n in names} == {name, "S", "l"}:
                last.loads[name] = ast.unparse(place)
        last.stores.update(ast.unparse(n) for n in nodes if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store))
        if any(isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id == END for n in nodes):
            pieces.append(Piece())
    return pieces


def in_pieces(lines: Sequence[str], logical: Collection[str], rows: range, width: int) -> list[list[str]]:
    """The lines of each piece for lane l. logical: names that are truths. rows: for what lies between two pieces.

    A name that is only set by a load, from where no piece but the last stores, is loaded again.
    """
    pieces = pieces_of(lines)
    stored = set[str]().union(*(piece.stores for piece in pieces[:-1]))
    times = sum((piece.sets for piece in pieces), Counter[str]())
    loads = {x: place for piece in pieces[:-1] for x, place in piece.loads.items() if times[x] == 1 and place not in stored}
    places = dict(loads)
    wanted, out = set[str](), list[list[str]]()
    for k, piece in reversed(list(enumerate(pieces))):
        kept = sorted((piece.sets.keys() & wanted) - loads.keys())
        end = [f"{places[x]} = {f'1.0 if {x} else 0.0' if x in logical else x}" for x in kept]
        reads = sorted(piece.reads & set[str]().union(*(p.sets for p in pieces[:k])))
        wanted = (wanted - piece.sets.keys()).union(reads)
        for x in reads:
            if x not in places:
                places[x] = f"S[{rows[len(places) - len(loads)] * width} + l]"
        begin = [f"{x} = {places[x]}{' != 0.0' * (x in logical)}" for x in reads]
        out.insert(0, [*begin, *piece.lines, *end])
    return out

"""One loop over a block of an axis. Its views start at 0 and do not overlap, so that LLVM vectorises the loop."""

from collections.abc import Callable, Mapping, Sequence

import sympy as sp
from sympy import Expr, Indexed, IndexedBase, Symbol

from odesim.symbolic.indices import base_name
from odesim.symbolic.layered import names_read
from odesim.targets.expressions import ScalarPrinter

BLOCK = 1024
"""Elements of a block; a reduction adds a block in one fixed order, and then combines blocks as a tree."""

HERE = "here_"
"""The name of the block of the state that a loop computes."""

LATE = 6
"""The most stages that the loop itself adds to the state; earlier stages are added before the loop."""


class BlockPrinter(ScalarPrinter):
    """A printer that loads elements of views with the promise that they do not overlap what the loop writes.

    views: names of blocks. vectors: {array: (name of its memory as a vector, extents as text)}, of elements that are not neighbours.
    place: the index of the axis.
    """

    def __init__(self, integers: set[str], number: int, views: set[str], vectors: Mapping[str, tuple[str, Sequence[str]]], place: Symbol):
        super().__init__(integers)
        self.loop, self.views, self.vectors, self.moving = number, views, vectors, place

    def element(self, e: Indexed) -> str:
        if base_name(e) in self.views:
            return f"load({self.loop}, {base_name(e)}, {e.indices[0]})"
        if base_name(e) in self.vectors and _is_strided(e, self.moving):
            name, extents = self.vectors[base_name(e)]
            at = e.indices[0].name
            for i, extent in zip(e.indices[1:], extents[1:], strict=True):
                at = f"{f'({at})' if '+' in at else at}*{extent} + {i.name}"
            return f"load({self.loop}, {name}, {at})"
        return super().element(e)


class BlockLoop:
    """The text of a loop over one block: target = expression for i in [lo, hi).

    pairs: (target, expression). number: of the loop in its kernel. new: a function that makes an unused name. slice_of: a function
    for the text of a block of an array. state: the element of the state that the loop computes itself.
    views: lines that name the blocks. body(): lines for one element.
    """

    def __init__(
        self,
        i: Symbol,
        pairs: Sequence[tuple[Indexed, Expr]],
        number: int,
        new: Callable[[str], Symbol],
        printer: ScalarPrinter,
        slice_of: Callable[[str, Sequence[str]], str],
        state: Indexed | None = None,
    ):
        self.i, self.number, self._new, self._base = i, number, new, printer
        self.views: list[str] = []
        self.arrays: dict[Indexed, Indexed] = {}
        self.vectors: dict[str, tuple[str, Sequence[str]]] = {}
        self.state = state
        written = {base_name(target) for target, _ in pairs}
        for a in sorted({a for pair in pairs for e in pair for a in e.atoms(Indexed)} - {state}, key=str):
            if a.indices[-1] == i and not any(x.has(i) for x in a.indices[:-1]):
                self.view(a, slice_of(base_name(a), [printer.subscript(x) for x in a.indices[:-1]]))
            elif state is None and _is_strided(a, i) and base_name(a) not in written | set(self.vectors):
                self._vector(a)
        self.place = new(f"{i}_")
        self.value = new(base_name(state)) if state is not None else None
        swap = {**self.arrays, **({state: self.value} if state is not None else {})}
        self.pairs = [(target.xreplace(swap), _at_place(e.xreplace(swap), i, self.place)) for target, e in pairs]

    def view(self, a: Indexed, text: str) -> Indexed:
        """The element a in a block of its array; text: of the block, which gets a name in views."""
        same = [other for other in self.arrays if base_name(other) == base_name(a) and other.indices == a.indices]
        if same:
            return self.arrays[same[0]]
        if a not in self.arrays:
            name = str(self._new("w" if base_name(a).startswith("work_[") else f"{base_name(a)}_"))
            self.views.append(f"{name} = {text}")
            self.arrays[a] = IndexedBase(name, shape=(BLOCK,))[self.i]
        return self.arrays[a]

    def _vector(self, a: Indexed) -> None:
        """The memory of an array as a vector, of which the loop loads elements: indexed, they might be negative, or what it writes.

        R[l, n] for l  ->  R_0 = part_of(R, 0, (K*M,)); load(2, R_0, l*M + n)
        """
        extents = [f"({e})" if e.args else str(e) for e in a.base.shape]
        name = str(self._new(f"{base_name(a)}_"))
        self.views.append(f"{name} = part_of({base_name(a)}, 0, ({'*'.join(extents)},))")
        self.vectors[base_name(a)] = name, extents

    @property
    def printer(self) -> BlockPrinter:
        views = {base_name(a) for a in self.arrays.values()}
        return BlockPrinter(self._base.integers | {self.place.name}, self.number, views, self.vectors, self.place)

    def body(self, before: Sequence[tuple[Symbol, Expr]] = ()) -> list[str]:
        """The lines for one element. before: (name, expression) of numbers that are computed first."""
        lines = [f"{self.place} = lo_ + {self.i}"] if any(e.has(self.place) for _, e in self.pairs) else []
        registers: dict[Expr, Symbol] = {}
        order: list[tuple[Symbol | Indexed, Expr]] = list(before)
        for target, e in self.pairs:  # an element just computed is read from its register
            e = e.xreplace(registers)
            if any(other.has(target) for _, other in self.pairs):
                registers[target] = self._new("x")
                order += [(registers[target], e), (target, registers[target])]
            else:
                order.append((target, e))
        common, bodies = sp.cse([e for _, e in order], symbols=iter(lambda: self._new("x"), None), order="none")
        printer, written = self.printer, 0
        waiting = list(common)
        for (target, _), e in zip(order, bodies, strict=True):
            count = _parts_before(waiting, e)
            for symbol, part in waiting[:count]:
                lines.append(f"{symbol} = {printer.text(part)}")
            waiting = waiting[count:]
            if isinstance(target, Indexed):
                lines.append(f"store({self.number}, {written}, {base_name(target)}, {self.i}, {printer.text(e)})")
                written += 1
            else:
                lines.append(f"{target} = {printer.text(e)}")
        return lines

    def scalars(self, more: Sequence[Expr] = ()) -> list[str]:
        """Names of the numbers that the body reads."""
        arrays = {base_name(a) for a in self.arrays.values()}
        all_names = set[str]().union(*(names_read(e) for _, e in self.pairs), *map(names_read, more))
        local = {self.i.name, self.place.name, *arrays, *([self.value.name] if self.value is not None else [])}
        return sorted(all_names - local) + (["lo_"] if any(e.has(self.place) for _, e in self.pairs) else [])


def _is_strided(a: Indexed, i: Symbol) -> bool:
    """Whether a is an element of a matrix, or of more axes, and moves with i; no gathered one, and no neighbour."""
    return len(a.indices) > 1 and i in a.indices and all(isinstance(x, Symbol) for x in a.indices) and a.base.shape is not None


def _parts_before(common: list[tuple[Symbol, Expr]], e: Expr) -> int:
    """The number of common parts, in order, that must be computed before e."""
    last = 0
    for n, (symbol, _) in enumerate(common):
        if e.has(symbol):
            last = n + 1
    return last


def _at_place(e: Expr, i: Symbol, place: Symbol) -> Expr:
    """e with the index i of the block replaced by the index `place` of the axis, except in elements of views."""
    if isinstance(e, Indexed) and e.indices == (i,):
        return e
    if e == i:
        return place
    return e.func(*(_at_place(a, i, place) for a in e.args)) if e.args and e.has(i) else e

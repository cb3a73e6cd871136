"""One loop over a block of an axis. Its views start at 0 and do not overlap, so that LLVM vectorises the loop.

A fused loop also computes the state from the stages, in the same pass, so that memory and arithmetic overlap. The state is computed AHEAD
elements before it is used. For one element, loads, sum and exponential form such a long chain that a processor has few elements in
flight. With the distance, loads of a later element run during the arithmetic of this one.
"""

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
AHEAD = 64
"""A number of elements, at least one iteration of the vectorised loop, so that no element is read before it is written."""


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
        # each array that moves with the loop gets a view that starts at 0, loaded by `load`: without the promise that views do not overlap
        # LLVM compares pairs of pointers, and leaves a loop over more than a few arrays scalar
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


class FusedLoops:
    """The text of the fused loops, one for each even number of late stages, all with the same element function.

    constants: parameter arrays of which every stage contains a multiple; their factors are c0_, c1_, ...
    """

    def __init__(self, constants: Sequence[str]):
        self.constants = list(constants)
        self.definition = ""

    def setup(self, weights: str) -> list[str]:
        """The lines before the loop over blocks, which split the stages into early and late ones."""
        late = ", ".join(f"a{q}_" for q in range(LATE))
        return [
            f"    terms_, more_ = split_terms({weights}, ns_, early_, late_, amounts_)",
            # late stages are numbers a0_, a1_, ... and not an array: LLVM keeps them in registers over the whole block
            f"    {late} = {', '.join(f'amounts_[{q}]' for q in range(LATE))}",
        ]

    def prologue(self) -> list[str]:
        """The lines at the start of a block: the memory of the state, and the value that it starts from."""
        return [
            "at_ = lo_*keep_",
            f"{HERE} = block(y_, at_, at_ + hi_ - lo_)",
            "start_ = block(x_, lo_, hi_)",
            "if more_:",
            "    combine_block(x_, k_, rows_, early_, ns_, lo_, hi_, base_)",
            "    start_ = block(base_, 0, hi_ - lo_)",
            *(f"k{q}_ = row_block(k_, rows_[late_[{q}]], lo_, hi_)" for q in range(LATE)),
        ]

    def loops(self, loop: BlockLoop) -> list[str]:
        """The lines of the loops over one block. It sets `definition`: the functions that compute and use an element of the state."""
        assert loop.state is not None and loop.value is not None
        i, number = loop.i.name, loop.number
        extra = [loop.view(IndexedBase(a, shape=(BLOCK,))[loop.i], f"block({a}, lo_, hi_)") for a in self.constants]
        weights = [f"c{q}_" for q in range(len(extra))]
        state = " + ".join(["value_", *(f"{c}*{loop.printer.text(a)}" for c, a in zip(weights, extra, strict=True))])
        lines = loop.body()
        place = f"{number}, {sum(line.startswith('store(') for line in lines)}, {HERE}, {i}"
        lines = [f"{loop.value} = reload({place})", *lines]
        arguments = ", ".join([HERE, *map(base_name, extra), *weights])
        arrays = [name for name in map(base_name, loop.arrays.values()) if any(f" {name}, " in line for line in lines)]
        used = ", ".join([HERE, *arrays, *loop.scalars()])
        self.definition = "\n".join(
            [
                *("@kernel", f"def form({i}, value_, {arguments}):", f"    store({place}, {state})", "", ""),
                *("@kernel", f"def element({i}, {used}):", *(f"    {line}" for line in lines)),
            ]
        )
        out = [*loop.views, f"ahead_ = min({AHEAD}, hi_ - lo_)"]
        # one loop for each even number of stages: a loop over stages inside the loop over elements would not be vectorised
        for terms in range(0, LATE + 1, 2):
            first, later = (self._form(number, terms, at, arguments) for at in (i, f"{i} + {AHEAD}"))
            out += [
                f"{'if' if terms == 0 else 'elif'} terms_ == {terms}:",
                *(f"    for {i} in range(ahead_):", f"        {first}"),
                *(f"    for {i} in range(hi_ - lo_ - ahead_):", f"        {later}", f"        element({i}, {used})"),
            ]
        return [*out, f"for {i} in range(hi_ - lo_ - ahead_, hi_ - lo_):", f"    element({i}, {used})"]

    @staticmethod
    def _form(number: int, terms: int, at: str, arguments: str) -> str:
        """The call that computes the element `at` of the state from this number of stages."""
        stages = (f" + a{q}_*load({number}, k{q}_, {at})" for q in range(terms))
        return f"form({at}, load({number}, start_, {at}){''.join(stages)}, {arguments})"

"""The runtime's functions as straight-line code, as in odesim.runtime: loads, stores, sums, maxima, matrix products.

Memory is cells that hold names, numbers and operations, viewed as arrays.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import product as iterate
from math import prod
from typing import Any

from odesim.base.errors import CodegenError
from odesim.ir.scalars import Code, Operand, Operation, real_of
from odesim.runtime.constants import LANES, LOST, SEQUENCE

MOST = 20_000
"""Operations: beyond it a system is too large to be written out."""
ZERO = "0.0"


@dataclass(frozen=True)
class View:
    """A strided array view of cells: cells[start + i*stride + ...]. cast: the conversion of a value that is stored."""

    cells: list[Any]
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    start: int = 0
    cast: str = ""

    def place(self, index: Sequence[int]) -> int:
        """The position of an element among the cells."""
        if not all(0 <= i < n for i, n in zip(index, self.shape, strict=True)):
            raise CodegenError(f"index {tuple(index)} is out of range for {self.shape}")
        return self.start + sum(i * s for i, s in zip(index, self.strides, strict=True))

    def places(self) -> list[int]:
        """The positions of all elements, in C order."""
        places = [self.start]
        for n, stride in zip(self.shape, self.strides, strict=True):
            places = [p + i * stride for p in places for i in range(n)]
        return places

    def values(self) -> list[Any]:
        return [self.cells[place] for place in self.places()]

    def part(self, start: int, shape: tuple[int, ...]) -> "View":
        """A contiguous part of a vector, reshaped."""
        return make_view(self.cells, shape, self.start + start, self.cast)

    def row(self, r: int) -> "View":
        return replace(self, shape=self.shape[1:], strides=self.strides[1:], start=self.start + r * self.strides[0])

    def turned(self) -> "View":
        return replace(self, shape=self.shape[::-1], strides=self.strides[::-1])

    def stored(self, value: Operand) -> Operand:
        """A value as the cells hold it, after the cast."""
        return Operation(self.cast, (value,)) if self.cast else value


def make_view(cells: list[Any], shape: tuple[int, ...], start: int = 0, cast: str = "") -> View:
    """A view of all cells in C order."""
    strides = tuple(prod(shape[d + 1 :]) for d in range(len(shape)))
    return View(cells, shape, strides, start, cast)


class Calls:
    """The runtime's functions, each of which appends its operations to the code.

    shifts: names of what has no derivatives: maxima over an axis, with all that these are made of, and the sizes of inverses.
    """

    def __init__(self) -> None:
        self.code: Code = {}
        self.shifts: set[str] = set()
        self._chains: dict[Operand, set[str]] = {}

    def named(self, value: Any) -> Any:
        """A value as an operand: a name or a number."""
        if not isinstance(value, Operation):
            return value
        if len(self.code) >= MOST:
            raise CodegenError(f"written out the system has more than {MOST} operations")
        name = f"x{len(self.code)}"
        self.code[name] = value
        return name

    def keep(self, value: Any) -> None:
        """Records a maximum that has a derivative, with its arguments; it is not a shift of an exponential."""
        self.shifts -= self._chains.get(value, set())

    # -- parts of arrays

    def block(self, a: View, low: int, high: int) -> View:
        return a.part(low, (high - low,))

    def row_block(self, a: View, row: int, low: int, high: int) -> View:
        return a.row(row).part(low, (high - low,))

    def part_of(self, a: View, start: int, shape: tuple[int, ...]) -> View:
        return a.part(start, shape)

    def load(self, loop: int, a: View, i: int) -> Any:
        return a.cells[a.place((i,))]

    def reload(self, loop: int, q: int, a: View, i: int) -> Any:
        return self.load(loop, a, i)

    def store(self, loop: int, q: int, a: View, i: int, x: Any) -> None:
        a.cells[a.place((i,))] = self.named(a.stored(real_of(x)))

    # -- places on an axis

    def wrap(self, i: int, n: int) -> int:
        return i % n

    def clip(self, i: int, n: int) -> int:
        return max(0, min(i, n - 1))

    def on_axis(self, i: int, n: int) -> bool:
        return 0 <= i < n

    # -- the state of a stage, which is formed outside

    def split_terms(self, coef: Any, ns: int, early: Any, late: Any, amounts: Any) -> tuple[int, bool]:
        assert ns == 0
        return 0, False

    def combine_block(self, y: View, k: Any, rows: Any, coef: Any, ns: int, low: int, high: int, out: View) -> None:
        assert ns == 0
        for i in range(high - low):
            out.cells[out.place((i,))] = y.cells[y.place((low + i,))]

    # -- sums

    def block_sum(self, a: View, n: int) -> Any:
        return self._sum(a.values()[:n])

    def block_dot(self, a: View, b: View, n: int) -> Any:
        return self._sum([Operation("*", pair) for pair in zip(a.values()[:n], b.values()[:n], strict=True)])

    def tree_sum(self, part: View, width: int) -> Any:
        sums = part.values()[:width]
        while len(sums) > 1:
            half = (len(sums) + 1) // 2
            for k in range(len(sums) - half):
                sums[k] = self._add(sums[k], sums[k + half])
            sums = sums[:half]
        return sums[0]

    def vector(self, a: View, start: int) -> View:
        return a.part(start, (prod(a.shape) - start,))

    def product(self, out: View, a: View, b: View, steps: tuple[int, ...], shape: tuple[int, int, int], add: int) -> None:
        down, beside, a_down, along, below, b_beside = steps
        rows, depth, columns = shape
        for i, j in iterate(range(rows), range(columns)):
            place = out.place((i * down + j * beside,))
            total = out.cells[place] if add else self.named(out.stored(ZERO))
            for k in range(depth):
                factors = a.cells[a.place((i * a_down + k * along,))], b.cells[b.place((k * below + j * b_beside,))]
                total = self._add(total, Operation("*", factors))
            out.cells[place] = total

    def invert(self, a: View, x: View, matrix: View, count: int, n: int) -> None:
        """odesim.runtime.matrices.invert, with choices in the place of branches."""
        for start in range(0, count * n * n, n * n):

            def cell(view: View, r: int, k: int, start: int = start) -> int:
                return view.place((start + r * n + k,))

            def put(view: View, place: int, value: Operation) -> None:
                view.cells[place] = self.named(view.stored(value))

            for r, k in iterate(range(n), range(n)):
                x.cells[cell(x, r, k)] = "1.0" if r == k else ZERO
            for c in range(n):
                for r in range(c + 1, n):
                    sizes = [self.named(Operation("abs", (a.cells[cell(a, row, c)],))) for row in (r, c)]
                    larger = Operation(">", (sizes[0], sizes[1]))
                    for view, k in iterate((a, x), range(n)):
                        low, high = cell(view, r, k), cell(view, c, k)
                        below, above = view.cells[low], view.cells[high]
                        view.cells[low] = self.named(Operation("if", (larger, above, below)))
                        view.cells[high] = self.named(Operation("if", (larger, below, above)))
                pivot = a.cells[cell(a, c, c)]
                for k, view in iterate(range(n), (a, x)):
                    put(view, cell(view, c, k), Operation("/", (view.cells[cell(view, c, k)], pivot)))
                for r in (r for r in range(n) if r != c):
                    factor = a.cells[cell(a, r, c)]
                    for k, view in iterate(range(n), (a, x)):
                        less = Operation("*", (factor, view.cells[cell(view, c, k)]))
                        put(view, cell(view, r, k), Operation("-", (view.cells[cell(view, r, k)], less)))
            if n > 1:
                self._refuse(x, matrix, start, n)

    def _refuse(self, x: View, matrix: View, start: int, n: int) -> None:
        """odesim.runtime.matrices.refuse_one."""

        def row(view: View, i: int) -> list[Any]:
            sizes = [self.named(Operation("abs", (view.cells[view.place((start + i * n + k,))],))) for k in range(n)]
            self.shifts.update(sizes)  # what is refused is so as a whole: no derivatives
            return sizes

        def dot(left: list[Any], right: list[Any]) -> Any:
            return reduce(self._add, (self.named(Operation("*", pair)) for pair in zip(left, right, strict=True)))

        def largest(values: list[Any]) -> Any:
            return reduce(lambda a, b: self._chained(self.named(Operation("maximum", (a, b))), a, b), values)

        sizes = [row(x, i) for i in range(n)]
        d = [largest(size) for size in sizes]
        u = [dot(row(matrix, i), d) for i in range(n)]
        worst = largest([self.named(Operation("/", (dot(size, u), at))) for size, at in zip(sizes, d, strict=True)])
        rest = self.named(x.stored(Operation("/", ("1.0", Operation("*", (repr(LOST), worst))))))
        above = self.named(x.stored(Operation("+", ("1.0", rest))))
        divisor = self.named(Operation("if", (Operation(">", (above, "1.0")), "1.0", ZERO)))
        for k in range(n * n):
            place = x.place((start + k,))
            x.cells[place] = self.named(x.stored(Operation("/", (x.cells[place], divisor))))

    def add_up(self, a: View, before: int, n: int, after: int) -> None:
        self._partial_sums(a, before, after, range(1, n), n, -1)

    def add_down(self, a: View, before: int, n: int, after: int) -> None:
        self._partial_sums(a, before, after, range(n - 2, -1, -1), n, 1)

    def _partial_sums(self, a: View, before: int, after: int, places: Sequence[int], n: int, step: int) -> None:
        for b, i, c in iterate(range(before), places, range(after)):
            here, beside = (a.place(((b * n + k) * after + c,)) for k in (i, i + step))
            a.cells[here] = self.named(a.stored(Operation("+", (a.cells[here], a.cells[beside]))))

    def _sum(self, terms: Sequence[Operand]) -> Any:
        """The sum of operands in the order of odesim.runtime.sums."""
        lanes = LANES if len(terms) > SEQUENCE else 1
        sums = [ZERO] * lanes
        for i, term in enumerate(terms):
            sums[i % lanes] = self._add(sums[i % lanes], term)
        while len(sums) > 1:
            half = len(sums) // 2
            sums = [self._add(a, b) for a, b in zip(sums[:half], sums[half:], strict=True)]
        return sums[0]

    def _add(self, a: Operand, b: Operand) -> Any:
        return self.named(Operation("+", (a, b)))

    # -- maxima

    def block_max(self, a: View, n: int) -> Any:
        highest = self.tree_max(a, n)
        return self._chained(self._add(highest, ZERO), highest)  # that of one element too

    def tree_max(self, part: View, width: int) -> Any:
        top, *others = part.values()[:width]
        for value in others:
            top = self._chained(self.named(Operation("maximum", (top, value))), top, value)
        return top

    def _chained(self, top: str, *parts: str) -> str:
        """The maximum named `top`, with the names of its arguments, nested ones included."""
        self._chains[top] = {top}.union(*(self._chains.get(p, set()) for p in parts))
        self.shifts.add(top)
        return top

"""The memory of an interpreted kernel: cells that hold names, numbers and operations, viewed as arrays."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from odesim.base.errors import CodegenError
from odesim.ir.scalars import Operand, Operation


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

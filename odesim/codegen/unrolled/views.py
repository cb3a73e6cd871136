"""The memory of a kernel that is written out: cells that hold names, numbers and operations, seen as arrays."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from odesim.codegen.unrolled.operations import Operand, Operation
from odesim.errors import CodegenError


@dataclass(frozen=True)
class View:
    """A part of memory: cells[start + i*stride + ...] for each place of its shape. cast: what a value becomes when it is stored."""

    cells: list[Any]
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    start: int = 0
    cast: str = ""

    def place(self, index: Sequence[int]) -> int:
        """Where an element lies among the cells."""
        if not all(0 <= i < n for i, n in zip(index, self.shape, strict=True)):
            raise CodegenError(f"index {tuple(index)} is out of range for {self.shape}")
        return self.start + sum(i * s for i, s in zip(index, self.strides, strict=True))

    def places(self) -> list[int]:
        """Where its elements lie, in C order."""
        places = [self.start]
        for n, stride in zip(self.shape, self.strides, strict=True):
            places = [p + i * stride for p in places for i in range(n)]
        return places

    def values(self) -> list[Any]:
        return [self.cells[place] for place in self.places()]

    def part(self, start: int, shape: tuple[int, ...]) -> "View":
        """A contiguous part of a vector, as an array of this shape."""
        return make_view(self.cells, shape, self.start + start, self.cast)

    def row(self, r: int) -> "View":
        return replace(self, shape=self.shape[1:], strides=self.strides[1:], start=self.start + r * self.strides[0])

    def turned(self) -> "View":
        return replace(self, shape=self.shape[::-1], strides=self.strides[::-1])

    def stored(self, value: Operand) -> Operand:
        """The value as the cells hold it."""
        return Operation(self.cast, (value,)) if self.cast else value


def make_view(cells: list[Any], shape: tuple[int, ...], start: int = 0, cast: str = "") -> View:
    """cells in C order."""
    strides = tuple(prod(shape[d + 1 :]) for d in range(len(shape)))
    return View(cells, shape, strides, start, cast)

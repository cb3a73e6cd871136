"""A state or observable of one run to draw, and how: as lines, as a map, as bands."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from odesim.base.arrays import Array
from odesim.plot.labels import symbol
from odesim.plot.scales import ALIKE

ROUNDING = 1e-12  # of the value: sums of some thousand terms, in an order that changes
LINES, ROWS, MAP = 10, 500, 2000  # largest numbers of components: as lines, as rows of a map, in a map


def is_still(values: Array) -> bool:
    """Whether the columns of values (T, n) are finite and change by no more than the rounding of a sum."""
    return bool(np.isfinite(values).all()) and bool(np.all(np.ptp(values, axis=0) <= ROUNDING * np.abs(values[0])))


@dataclass(frozen=True)
class Quantity:
    """A state or observable to draw: values (T, *shape), the names of the axes of shape, the times at which each component jumps.

    floor: below which size values may be errors, 0 where that is not known.
    """

    name: str
    values: Array
    dims: tuple[str, ...]
    jumps: tuple[Array, ...] = ()
    floor: float = 0.0

    @property
    def flat(self) -> Array:
        """The values (T, n) with components in C order."""
        return np.asarray(self.values, float).reshape(len(self.values), -1)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape[1:]

    @property
    def count(self) -> int:
        return int(np.prod(self.shape, dtype=int))

    @property
    def kind(self) -> str:
        """How it is drawn: `lines`, `map` (a vector) or `bands`."""
        return "lines" if self.count <= LINES else "map" if self.count <= MAP and len(self.shape) == 1 else "bands"

    @property
    def is_matrix(self) -> bool:
        """Whether it is a matrix whose last values are drawn too: they are not all alike."""
        if self.count <= LINES or len(self.shape) < 2 or max(self.shape[0], self.count // self.shape[0]) > ROWS:
            return False
        last = next((row for row in self.flat[::-1] if np.isfinite(row).all()), None)
        return last is None or bool(np.ptp(last) > ALIKE * np.abs(last).max())

    @property
    def title(self) -> str:
        """The name with its axes: `V[l, k]`."""
        return self.name + (f"[{', '.join(self.dims)}]" if self.dims else "")

    @property
    def label(self) -> str:
        """The name with its axes, as a symbol."""
        return symbol(self.name, self.dims)

    def part(self, index: tuple[int, ...] | None) -> "Quantity":
        """One component as a number, whose label has the index; all of it for None."""
        if not index:
            return self
        chosen: Any = (slice(None), *index)
        jumps = self.jumps and (self.jumps[int(np.ravel_multi_index(index, self.shape))],)
        return Quantity(self.name, self.values[chosen], tuple(map(str, index)), jumps, self.floor)

    @property
    def is_constant(self) -> bool:
        """Whether it has few components and none changes by more than rounding."""
        return self.count <= LINES and len(self.values) > 1 and is_still(self.flat)

    @property
    def neighbours(self) -> int:
        """Number of neighbouring components of which a map shows the largest."""
        return -(-self.count // ROWS) if self.kind == "map" else 1

    def component(self, i: int) -> str:
        """The index of component i as text: `3`, or `1,0` of a matrix."""
        return ",".join(map(str, np.unravel_index(i, self.shape)))

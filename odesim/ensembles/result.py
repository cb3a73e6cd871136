"""What an ensemble is asked for, and what a chunk of it gives."""

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from odesim.arrays import Array, Layout
from odesim.codegen.compiled import CompiledRHS
from odesim.solve.problem import Status
from odesim.symbolic.system import System

STATUSES = (Status.OK, Status.EVENT, Status.MAX_STEPS, Status.STEP_TOO_SMALL, Status.NON_FINITE, Status.BLOW_UP, Status.INTERRUPTED)
UNDONE = -1


@dataclass(frozen=True)
class Request:
    """A System, compiled, and how its members are integrated; times (T,) are kept."""

    compiled: CompiledRHS
    sizes: dict[str, int]
    t0: float
    t1: float
    times: Array
    method: str = "tsit5"
    rtol: float = 1e-6
    atol: float = 1e-9
    max_steps: int = 1_000_000
    step: float | None = None

    @property
    def system(self) -> System:
        return self.compiled.system

    @property
    def dtype(self) -> str:
        return self.compiled.dtype

    @property
    def strict(self) -> bool:
        return self.compiled.strict

    @cached_property
    def layout(self) -> Layout:
        return self.compiled.layout(self.sizes)

    @property
    def row(self) -> int:
        """Bytes of the states of one member at all its times."""
        return len(self.times) * self.layout.size * np.dtype(self.dtype).itemsize

    @property
    def saves(self) -> bool:
        """Whether more than the end is kept."""
        return len(self.times) != 1 or self.times[0] != self.t1

    @staticmethod
    def number(status: Status) -> int:
        """The status as it stands in arrays."""
        return STATUSES.index(status)


@dataclass(frozen=True)
class Chunk:
    """Members: y (N, T, n), NaN where a member did not come; status (N,) numbers of STATUSES, -1 not done; t_end (N,): the last time
    reached; steps, rejected (N,)."""

    y: Array
    status: Array
    t_end: Array
    steps: Array
    rejected: Array

    @property
    def arrays(self) -> dict[str, Array]:
        """{field: (N, ...)}: all that is known of the members."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def part(self, at: Any) -> "Chunk":
        """The members at: a slice, or their places (k,)."""
        return Chunk(**{name: values[at] for name, values in self.arrays.items()})

    def put(self, at: Any, part: "Chunk") -> None:
        """Writes the members of part in the places at."""
        for name, values in part.arrays.items():
            self.arrays[name][at] = values

    @classmethod
    def empty(cls, count: int, times: int, n: int) -> "Chunk":
        """Nothing done yet."""
        whole = (np.zeros(count, np.int64) for _ in range(2))
        return cls(np.full((count, times, n), np.nan), np.full(count, UNDONE, np.int8), np.full(count, np.nan), *whole)

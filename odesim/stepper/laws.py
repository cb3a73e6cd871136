"""Laws along a run: the largest violation of each over all steps taken.

A constant is compared with its value at the start, a monotone law with its extreme so far, a nonnegative one with 0.
"""

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Protocol

import numpy as np

from odesim.base.arrays import Array
from odesim.base.callbacks import VALUES

SENSES = ("constant", "nonincreasing", "nondecreasing", "nonnegative")
"""Their places are the numbers that an integrator has for them."""
CONSTANT, NONINCREASING, NONDECREASING, NONNEGATIVE = range(4)
CLAUSE = "; the invariant "
"""The beginning of the clause on a broken law in a message."""

Worst = dict[str, tuple[float, float]]
"""{law: (worst violation, the time of it)}; NaN and its first time where a law was not a number."""


class BoundValues(Protocol):
    """n_events numbers of a state as an address: events(i64 table, f64 t, i64 y, i64 g), as odesim.stepper.problem.BoundSystem has it."""

    @property
    def events(self) -> int: ...
    @property
    def table(self) -> int: ...
    @property
    def n_events(self) -> int: ...


class Values(BoundValues, Protocol):
    """The values of laws."""

    def check(self) -> None:
        """Raises the exception of a callback."""


@dataclass(frozen=True)
class LawSpec:
    """One law, an array of this shape. tol: the violation from which the message names it; None: never."""

    name: str
    sense: str
    shape: tuple[int, ...] = ()
    tol: float | None = None

    @cached_property
    def size(self) -> int:
        """The number of components of this law."""
        return prod(self.shape)


@dataclass(frozen=True)
class Laws:
    """The laws of a problem, whose values lie one after another.

    before (3, size): the state of the watched laws where this run goes on with another one. Its rows are the values that they are compared
    with, the worst violations and their times.
    """

    specs: tuple[LawSpec, ...]
    values: Values
    before: Array | None = None

    @cached_property
    def size(self) -> int:
        """The number of components of all laws."""
        return sum(spec.size for spec in self.specs)

    @property
    def senses(self) -> Array:
        """(size,): the index in SENSES of each component."""
        return np.repeat([SENSES.index(spec.sense) for spec in self.specs], [spec.size for spec in self.specs]).astype(np.int64)

    def worst(self, violations: Array, times: Array) -> Worst:
        """The worst component of each law. violations, times (size,): of each component."""
        violated, first = {}, 0
        for spec in self.specs:
            mine, when = violations[first : first + spec.size], times[first : first + spec.size]
            first += spec.size
            if not spec.size:
                violated[spec.name] = (0.0, float("nan"))
                continue
            lost = np.isnan(mine)
            i = int(np.argmin(np.where(lost, when, np.inf))) if lost.any() else int(np.argmax(mine))
            violated[spec.name] = (float(mine[i]), float(when[i]))
        return violated


class LawWatch:
    """The violations of laws seen by a run that numpy leads: violations and times (size,)."""

    def __init__(self, laws: Laws, dtype: str) -> None:
        self.laws, self.dtype = laws, np.dtype(dtype)
        self._sense, self._best = laws.senses, np.empty(0)
        self.violations, self.times = np.zeros(laws.size), np.zeros(laws.size)
        if laws.before is not None:
            self._best, self.violations, self.times = laws.before.copy()
        self._function = VALUES(laws.values.events)

    def look(self, t: float, y: Array) -> None:
        """Updates the violations with a state y (n,) of the run; the first one is the start."""
        values = self.laws.values
        seen, out = np.ascontiguousarray(y, self.dtype), np.empty(self.laws.size, self.dtype)
        self._function(values.table, t, seen.ctypes.data, out.ctypes.data)
        values.check()
        now = out.astype(np.float64)
        if not len(self._best):
            self._best = now.copy()
            self.times[:] = t
        off = now - self._best
        off = np.select([self._sense == CONSTANT, self._sense == NONDECREASING, self._sense == NONNEGATIVE], [np.abs(off), -off, -now], off)
        larger = ~np.isnan(self.violations) & ~(off <= self.violations)
        self.violations[larger], self.times[larger] = off[larger], t
        better = ((self._sense == NONINCREASING) & (now < self._best)) | ((self._sense == NONDECREASING) & (now > self._best))
        self._best[better] = now[better]

    def watched(self) -> Array:
        """The state of the watch, for a run that continues this one: `before` of its laws."""
        return np.stack([self._best, self.violations, self.times])

    def worst(self) -> Worst:
        """The worst violation of each law."""
        return self.laws.worst(self.violations, self.times)


def broken(laws: Laws | None, worst: Worst) -> tuple[LawSpec, ...]:
    """The laws that were NaN, or violated by more than their tolerance."""
    return tuple(s for s in laws.specs if np.isnan(worst[s.name][0]) or (s.tol is not None and worst[s.name][0] > s.tol)) if laws else ()


def with_broken(message: str, laws: Laws | None, worst: Worst) -> str:
    """The message of a run with a clause for each broken law."""
    for spec in broken(laws, worst):
        off, t = worst[spec.name]
        if np.isnan(off):
            message += f"{CLAUSE}{spec.name!r} is not a number from t = {t:.9g} on"
        else:
            message += f"{CLAUSE}{spec.name!r} is violated by {off:.3g} at t = {t:.9g}, more than its tolerance {spec.tol:g}"
    return message

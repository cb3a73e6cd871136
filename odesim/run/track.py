"""Known states along a run, the way between two of them, and the right-hand side there: what is looked at when a run is done."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sympy import Expr, Symbol

from odesim.base.arrays import Array
from odesim.inputs.bind import Numbers
from odesim.run.conditions import values
from odesim.symbolic.indices import base_name
from odesim.symbolic.system import System

Tolerances = tuple[float, Mapping[str, Array]]
"""rtol, and atol by state."""


@dataclass(frozen=True)
class Track:
    """R known states along a run, or along several, one after another.

    rows {name: (R, *shape)}: states, times `t`, and parameters that differ between runs; numbers: sizes and other parameters.
    arrays(sizes, values): the right-hand side, {d_<state>: its rate}. divisors, keepers: what is looked at.
    """

    system: System
    numbers: Numbers
    rows: Mapping[str, Array]
    arrays: Callable[[Mapping[str, int], Mapping[str, Any]], Mapping[str, Any]]
    divisors: Mapping[Expr, Mapping[Symbol, Any]]
    keepers: tuple[str, ...]

    def of(self, some: Array | slice) -> "Track":
        """Some of the states."""
        return replace(self, rows={name: values[some] for name, values in self.rows.items()})

    @property
    def moving(self) -> set[str]:
        """The names of what changes along a run."""
        return {*self.system.states, "t"}

    def between(self, part: float) -> dict[str, Any]:
        """What is at this part of the straight way from the first state to the next."""
        return {name: v[0] + part * (v[1] - v[0]) if name in self.moving else v[0] for name, v in self.rows.items()}

    def rates(self, point: Mapping[str, Any]) -> Mapping[str, Any]:
        """{d_<state>: its rate} at such a point."""
        with np.errstate(all="ignore"):
            return self.arrays(self.numbers.sizes, {**self.numbers.params, **point})

    def values(self, e: Expr) -> Array:
        """The components (R, components) of a divisor."""
        return values(e, self.divisors[e], self.numbers.sizes, self.numbers.params, self.rows).reshape(len(self.rows["t"]), -1)


def is_set(system: System) -> set[str]:
    """The states that events set, to any number."""
    return {base_name(key) for event in system.events for key in event.resets}

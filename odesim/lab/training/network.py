"""How parameters start, each seed with its own generator, and what Models share that need no more than this."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.random import Generator

from odesim.base.arrays import Array
from odesim.lab.training.task import Params


@dataclass(frozen=True)
class InitialLaw:
    """The initial law of an array of this shape (of one seed): constant value, U(-value, value), or N(0, value^2).

    given: what stands in the place of what is drawn. It is drawn all the same, so that what comes later does not depend on it.
    """

    shape: tuple[int, ...]
    law: Literal["constant", "uniform", "normal"]
    value: Any
    given: Array | None = None

    def draw(self, rng: Generator) -> Any:
        """The array of one seed, in float64."""
        if self.law == "constant":
            return self.value
        bound = self.value
        drawn = rng.uniform(-bound, bound, self.shape) if self.law == "uniform" else bound * rng.standard_normal(self.shape)
        return drawn if self.given is None else self.given


def constant(value: Any) -> InitialLaw:
    """The law of numbers that are the same in every seed."""
    return InitialLaw(np.shape(value), "constant", value)


def draw_start(laws: Mapping[str, InitialLaw], rngs: Sequence[Generator], dtype: str) -> Params:
    """{name: (R, *shape)}, of seed r from rngs[r] alone, in the order of the laws."""
    params = {name: np.empty((len(rngs), *law.shape), dtype) for name, law in laws.items()}
    for r, rng in enumerate(rngs):
        for name, law in laws.items():
            params[name][r] = law.draw(rng)
    return params


class Network:
    """A base of Models: parameters start by their `laws`, and are one `group`."""

    group = "all"

    if TYPE_CHECKING:  # a dataclass would take a property for the default of its field

        @property
        def laws(self) -> Mapping[str, InitialLaw]:
            """{parameter: InitialLaw}, in the order in which a seed draws them."""

    @property
    def groups(self) -> Mapping[str, str]:
        """{parameter: group}."""
        return dict.fromkeys(self.laws, self.group)

    def initial(self, rngs: Sequence[Generator], dtype: str = "float64") -> Params:
        """Initial parameters {name: (R, ...)}."""
        return draw_start(self.laws, rngs, dtype)

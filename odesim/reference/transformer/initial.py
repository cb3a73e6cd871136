"""Random initial values of parameters, each seed with its own generator."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.random import Generator

from odesim.lab.training.protocols import Params


@dataclass(frozen=True)
class InitialLaw:
    """The initial law of an array of this shape (of one seed): constant value, U(-value, value), or N(0, value^2)."""

    shape: tuple[int, ...]
    law: Literal["constant", "uniform", "normal"]
    value: float


def torch_linear(shape: tuple[int, ...], fan_in: int) -> InitialLaw:
    """The default law of torch for weights and bias of Linear."""
    return InitialLaw(shape, "uniform", 1.0 / math.sqrt(fan_in))


def draw_params(starts: Mapping[str, InitialLaw], rngs: Sequence[Generator], dtype: str) -> Params:
    """Initial parameters {name: (R, *shape)}: seed r draws its arrays in the order of starts, in float64, from rngs[r] alone."""
    params = {name: np.empty((len(rngs), *start.shape), dtype) for name, start in starts.items()}
    for r, rng in enumerate(rngs):
        for name, start in starts.items():
            if start.law == "constant":
                params[name][r] = start.value
            elif start.law == "uniform":
                params[name][r] = rng.uniform(-start.value, start.value, start.shape)
            else:
                params[name][r] = start.value * rng.standard_normal(start.shape)
    return params

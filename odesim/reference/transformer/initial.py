"""Initial values of named arrays, each seed's from its own generator."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.random import Generator

from odesim.reference.protocols import Params


@dataclass(frozen=True)
class InitialLaw:
    """How an array of this shape (one seed's) starts: all entries at value, in U(-value, value), or in N(0, value^2)."""

    shape: tuple[int, ...]
    law: Literal["constant", "uniform", "normal"]
    value: float


def torch_linear(shape: tuple[int, ...], fan_in: int) -> InitialLaw:
    """torch's default for the weights and the bias of Linear."""
    return InitialLaw(shape, "uniform", 1.0 / math.sqrt(fan_in))


def draw_params(starts: Mapping[str, InitialLaw], rngs: Sequence[Generator], dtype: str) -> Params:
    """{name: (R, *shape)}: seed r draws its arrays in the order of the names, in float64, from rngs[r] alone."""
    out = {name: np.empty((len(rngs), *start.shape), dtype) for name, start in starts.items()}
    for r, rng in enumerate(rngs):
        for name, start in starts.items():
            if start.law == "constant":
                out[name][r] = start.value
            elif start.law == "uniform":
                out[name][r] = rng.uniform(-start.value, start.value, start.shape)
            else:
                out[name][r] = start.value * rng.standard_normal(start.shape)
    return out

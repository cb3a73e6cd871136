"""Whether stability limits the steps of an explicit run: its spectral radius, by power iterations on differences of the right-hand side."""

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from odesim.base.arrays import Array
from odesim.stepper.control import HELD, MANY
from odesim.stepper.memory import RunState
from odesim.stepper.tableau import stable_up_to

REAL = 0.9
"""The cosine between a direction and minus what the Jacobian makes of it, from which its eigenvalue counts as real and negative.

Diffusion has .999, also with advection; advection alone 0, eigenvalues -1 +- 10 i .1, growth -.999. A wrong yes costs a trial.
"""
SETTLED = 1e-2
"""Two power iterations that agree so far are the last. Few rates far apart need three, which take as long as a hundred steps of them."""


def held(state: RunState, step: float) -> tuple[float, bool]:
    """The spectral radius where an explicit run is, 0 unless stability limits steps of this size: they are the largest stable ones there.

    And whether the eigenvalue of this size is real and negative.
    """
    radius, real = spectral_radius(state.problem.rhs, state.t, state.y, state.atol / state["rtol"])
    return (radius, real) if radius * step > HELD * stable_up_to(state.method) else (0.0, False)


def spectral_radius(rhs: Callable[[float, Array, Array], None], t: float, y: Array, least: float | Array) -> tuple[float, bool]:
    """The largest |eigenvalue| of df/dy at y (n,), by up to MANY power iterations on differences of rhs; components count from least up.

    And whether it is real and negative, as far as the last direction and what df/dy makes of it show.
    """
    dtype, n = y.dtype, len(y)
    units, (slant, small) = np.maximum(np.abs(y), least, dtype=np.float64), _first_way(n, dtype)
    base, out = np.empty((2, n), dtype)
    rhs(t, y, base)
    way, radius = slant * units, 0.0
    for _ in range(MANY):
        moved = (y + way).astype(dtype, copy=False)
        size = (moved - y) / units
        rhs(t, moved, out)
        change = (out - base).astype(np.float64, copy=False)
        grown = change / units
        before, after = math.sqrt(size @ size), math.sqrt(grown @ grown)
        if not (math.isfinite(after) and after > 0 and before > 0):
            return radius, False
        last, radius = radius, after / before
        if abs(radius - last) <= SETTLED * radius:
            break
        way = change * (small * math.sqrt(n) / after)
    return radius, float(size @ grown) <= -REAL * after * before


@lru_cache(maxsize=16)
def _first_way(n: int, dtype: np.dtype) -> tuple[Array, float]:
    """A direction (n,) in units of the states, as control.slant has it, and the size of its components: the root of the rounding."""
    small = math.sqrt(np.finfo(dtype).eps)
    return small * np.cos(1.0 + 2.4 * np.arange(n) ** 2), small

"""Curves whose distances are known, and sides made of arrays."""

from typing import Any

import numpy as np

from odesim.lab.compare.sides import Side

T = np.linspace(0.0, 8.0, 81)


def rising(rates: Any, t: Any = T, delay: float = 0.0) -> np.ndarray:
    """tanh of rate (t - 4 - delay): (1, T, n), half way at 4 + delay."""
    return np.tanh(np.asarray(rates) * (np.asarray(t)[:, None] - 4 - delay))[None]


def side(t: Any = T, dims: Any = None, **arrays: Any) -> Side:
    """A Side of arrays (R, T, *shape)."""
    seeds = tuple(range(len(next(iter(arrays.values())))))
    loaders = {name: (lambda values=values: np.asarray(values, float)) for name, values in arrays.items()}
    return Side("made", np.asarray(t, float), "steps", loaders, dims or {}, seeds)

"""Sums of states with weights that a right side keeps constant, and their values to the last digit."""

from dataclasses import dataclass

import numpy as np

from odesim.arrays import Array

SPLIT = 2.0**27 + 1


@dataclass(frozen=True)
class LinearInvariant:
    """sum over k of weights[k] y[places[k]], which is constant along every solution."""

    places: tuple[int, ...]
    weights: tuple[float, ...]


def exact_sums(invariant: LinearInvariant, starts: Array) -> Array:
    """The values (N,) of an invariant for states starts (N, n), as if computed with twice the digits.

    T. Ogita, S. M. Rump, S. Oishi, Accurate sum and dot product, SIAM J. Sci. Comput. 26 (2005): algorithm 5.3.
    """
    total, rest = np.zeros(len(starts)), np.zeros(len(starts))
    with np.errstate(all="ignore"):
        for place, weight in zip(invariant.places, invariant.weights, strict=True):
            product, error = _product(weight, starts[:, place])
            new = total + product
            part = new - total
            rest += ((total - (new - part)) + (product - part)) + error
            total = new
        return total + np.where(np.isfinite(rest), rest, 0.0)


def _product(weight: float, x: Array) -> tuple[Array, Array]:
    """weight*x (N,), and what its rounding leaves out."""
    product = weight * x
    if abs(weight) == 1:
        return product, np.zeros_like(x)
    high = SPLIT * x - (SPLIT * x - x)
    w = SPLIT * weight - (SPLIT * weight - weight)
    return product, ((w * high - product) + w * (x - high) + (weight - w) * high) + (weight - w) * (x - high)

"""Activations g of a committee, their slopes, and means E g(a) g(b) over Gaussian fields a, b.

Sources of the means: Saad and Solla 1995 (erf), Cho and Saul 2009 (relu, the arc-cosine kernel of order 1).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import erf

from odesim.base.arrays import Array, array_namespace, on_host


@dataclass(frozen=True)
class Activation:
    """An activation: value(u) = g(u), slope(u) = g'(u), numpy or cupy, any shape.

    mean(ab, aa, bb) = E g(a) g(b), numpy, for fields with the covariance ab and the variances aa, bb.
    """

    value: Callable[[Array], Array]
    slope: Callable[[Array], Array]
    mean: Callable[[Array, Array, Array], Array]


def erf_value(u: Array) -> Array:
    """erf(u / sqrt 2), computed on the host: a step has few fields, and cupy's own is in another module."""
    value: Array = array_namespace(u).asarray(erf(on_host(u) * np.asarray(0.5**0.5, u.dtype)))
    return value


def erf_slope(u: Array) -> Array:
    """sqrt(2 / pi) exp(-u^2 / 2)."""
    slope: Array = (2 / np.pi) ** 0.5 * array_namespace(u).exp(-0.5 * u * u)
    return slope


def erf_mean(ab: Array, aa: Array, bb: Array) -> Array:
    """(2 / pi) arcsin(ab / sqrt((1 + aa)(1 + bb)))."""
    mean: Array = 2 / np.pi * np.arcsin(ab / np.sqrt((1 + aa) * (1 + bb)))
    return mean


def relu_mean(ab: Array, aa: Array, bb: Array) -> Array:
    """sqrt(aa bb) (sin t + (pi - t) cos t) / (2 pi), t the angle between the fields."""
    lengths = np.sqrt(aa * bb)
    cosine = np.clip(ab / np.where(lengths == 0, 1, lengths), -1, 1)
    angle = np.arccos(cosine)
    mean: Array = lengths * (np.sin(angle) + (np.pi - angle) * cosine) / (2 * np.pi)
    return mean


ACTIVATIONS = {
    "erf": Activation(erf_value, erf_slope, erf_mean),
    "relu": Activation(lambda u: u * (u > 0), lambda u: (u > 0).astype(u.dtype), relu_mean),
    "linear": Activation(lambda u: u, lambda u: array_namespace(u).ones_like(u), lambda ab, aa, bb: ab),
}


def generalisation_error(overlaps: Array, weights: Array, activation: str) -> Array:
    """Half the mean square (...,) of sum_a weights_a g(field_a), of fields with these overlaps (..., n, n) and weights (..., n).

    With the student's second layer and minus the teacher's as weights it is e_g = E (student - teacher)^2 / 2.
    """
    own = np.diagonal(overlaps, axis1=-2, axis2=-1)  # (..., n)
    means = ACTIVATIONS[activation].mean(overlaps, own[..., :, None], own[..., None, :])  # (..., n, n)
    error: Array = 0.5 * (weights[..., :, None] * means * weights[..., None, :]).sum(axis=(-2, -1))
    return error

"""Layer normalisation and its gradient: rows with mean 0 and variance 1, then gain and shift (Ba et al. 2016)."""

from typing import NamedTuple

from odesim.base.arrays import Array, array_namespace
from odesim.lab.networks import device

EPS = 1e-5  # torch's default


class NormTape(NamedTuple):
    """Intermediate results for the backward pass: rows (R, N, d) before gain and shift, and 1 / standard deviation (R, N, 1)."""

    rows: Array
    scale: Array


def layer_norm(x: Array, gain: Array, shift: Array) -> tuple[Array, NormTape]:
    """Normalised rows y (R, N, d) of x (R, N, d) with gain and shift (R, d), and the tape for the backward pass."""
    if device.is_fused(x):
        y, rows, scale = device.layer_norm(x, gain, shift, EPS)
        return y, NormTape(rows, scale)
    xp = array_namespace(x)
    rows = x - x.mean(axis=-1, keepdims=True)  # (R, N, d)
    y = rows * rows
    scale = 1.0 / xp.sqrt(y.mean(axis=-1, keepdims=True) + EPS)  # (R, N, 1)
    rows *= scale
    xp.multiply(rows, gain[:, None], out=y)
    y += shift[:, None]
    return y, NormTape(rows, scale)


def layer_norm_back(dy: Array, saved: NormTape, gain: Array) -> tuple[Array, Array, Array]:
    """The gradients dx (R, N, d), dgain (R, d) and dshift (R, d), from dy (R, N, d)."""
    rows, scale = saved
    if device.is_fused(dy):
        return device.layer_norm_back(dy, rows, scale, gain)
    product = dy * rows  # (R, N, d)
    dgain, dshift = product.sum(axis=1), dy.sum(axis=1)  # (R, d) each
    dx = dy * gain[:, None]  # (R, N, d): from here on, the gradient by the rows
    product *= gain[:, None]
    along = product.mean(axis=-1, keepdims=True)  # (R, N, 1)
    dx -= dx.mean(axis=-1, keepdims=True)
    product = array_namespace(dy).multiply(rows, along, out=product)
    dx -= product
    dx *= scale
    return dx, dgain, dshift

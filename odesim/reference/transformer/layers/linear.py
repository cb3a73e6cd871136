"""A linear map of rows and its gradient."""

from odesim.base.arrays import Array
from odesim.lab.networks import device


def linear(x: Array, w: Array, b: Array | None = None) -> Array:
    """The rows x w + b (R, N, k) for x (R, N, d), w (R, d, k) and b (R, k)."""
    y: Array = x @ w  # (R, N, k)
    if b is not None:
        y += b[:, None]
    return y


def linear_back(dy: Array, x: Array, w: Array) -> tuple[Array, Array]:
    """The gradients dx (R, N, d) and dw (R, d, k), from dy (R, N, k); that of the bias is sum_rows(dy)."""
    dx = dy @ w.swapaxes(1, 2)  # (R, N, d)
    dw = x.swapaxes(1, 2) @ dy  # (R, d, k)
    return dx, dw


def sum_rows(dy: Array) -> Array:
    """The sum (R, k) of the rows of dy (R, N, k)."""
    if device.is_fused(dy):
        return device.sum_rows(dy)[0]
    total: Array = dy.sum(axis=1)
    return total

"""A linear map of every row."""

from odesim.base.arrays import Array


def linear(x: Array, w: Array, b: Array | None = None) -> Array:
    """x w + b (R, N, k) of x (R, N, d), w (R, d, k) and b (R, k)."""
    y: Array = x @ w  # (R, N, k)
    if b is not None:
        y += b[:, None]
    return y


def linear_back(dy: Array, x: Array, w: Array) -> tuple[Array, Array]:
    """dx (R, N, d) and dw (R, d, k) of dy (R, N, k); the bias's gradient is sum_rows(dy)."""
    dx = dy @ w.swapaxes(1, 2)  # (R, N, d)
    dw = x.swapaxes(1, 2) @ dy  # (R, d, k)
    return dx, dw


def sum_rows(dy: Array) -> Array:
    """The sum (R, k) of the rows of dy (R, N, k)."""
    total: Array = dy.sum(axis=1)
    return total

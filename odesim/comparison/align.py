"""Reorders an axis whose order has no meaning, such as hidden nodes, so that two arrays match best."""

from collections.abc import Mapping

import numpy as np
from scipy.optimize import linear_sum_assignment

from odesim.base.arrays import Array
from odesim.base.errors import ParamError, no_such


def best_order(a: list[Array], b: list[Array]) -> Array:
    """The order (n,) for which a[..][order] is most correlated with b, over all arrays (n, ...) of the two lists together.

    It has the least sum of squared differences of all orders; each array is divided by its own norm.
    """
    total = np.zeros((len(b[0]), len(b[0])))
    for x, y in zip(a, b, strict=True):
        x, y = x.reshape(len(x), -1), y.reshape(len(y), -1)
        size = np.sqrt((x * x).sum() * (y * y).sum())
        total += (y @ x.T) / (size if size > 0 else 1)
    return linear_sum_assignment(total, maximize=True)[1]


def align_axis(a: Mapping[str, Array], b: Mapping[str, Array], dims: Mapping[str, tuple[str, ...]], axis: str) -> dict[str, Array]:
    """a {name: (R, T, *shape)} with one axis reordered, for each seed, to match b {name: (1 or R, T, *shape)} best.

    All arrays that have the axis get the same order. Raises ParamError if no array has it.
    """
    positions = {name: 2 + dims[name].index(axis) for name in a if axis in dims[name]}
    if not positions:
        raise ParamError(no_such("axis", axis, {dim for name in a for dim in dims[name]}, "what is compared"))
    result = dict(a)
    first = next(iter(positions))
    for name in positions:
        result[name] = a[name].copy()
    for r in range(len(a[first])):
        fronts = [
            [np.moveaxis(side[name][r % len(side[name])], position - 1, 0) for name, position in positions.items()] for side in (a, b)
        ]  # (n, T, ...)
        order = best_order(*fronts)
        for name, position in positions.items():
            result[name][r] = np.take(a[name][r], order, axis=position - 1)
    return result

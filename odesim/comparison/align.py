"""Which component of one side is which of the other, where an axis has no order of its own: hidden nodes, classes alike."""

from collections.abc import Mapping

import numpy as np
from scipy.optimize import linear_sum_assignment

from odesim.base.arrays import Array
from odesim.errors import ParamError, no_such


def best_order(a: list[Array], b: list[Array]) -> Array:
    """The order (n,) for which a[..][order] is most correlated with b, over all arrays (n, ...) of the two lists at once.

    Of all orders it has the least sum of squares; each array counts by its own size.
    """
    total = np.zeros((len(b[0]), len(b[0])))
    for x, y in zip(a, b, strict=True):
        x, y = x.reshape(len(x), -1), y.reshape(len(y), -1)
        size = np.sqrt((x * x).sum() * (y * y).sum())
        total += (y @ x.T) / (size if size > 0 else 1)
    return linear_sum_assignment(total, maximize=True)[1]


def align_axis(a: Mapping[str, Array], b: Mapping[str, Array], dims: Mapping[str, tuple[str, ...]], axis: str) -> dict[str, Array]:
    """a {name: (R, T, *shape)} with the axis of that name put, seed by seed, in the order that fits b {name: (1 or R, T, *shape)}.

    One order for all arrays that have the axis. Raises ParamError where none has, or where sizes differ.
    """
    places = {name: 2 + dims[name].index(axis) for name in a if axis in dims[name]}
    if not places:
        raise ParamError(no_such("axis", axis, {dim for name in a for dim in dims[name]}, "what is compared"))
    out = dict(a)
    first = next(iter(places))
    for name in places:
        out[name] = a[name].copy()
    for r in range(len(a[first])):
        fronts = [
            [np.moveaxis(side[name][r % len(side[name])], place - 1, 0) for name, place in places.items()] for side in (a, b)
        ]  # (n, T, ...)
        order = best_order(*fronts)
        for name, place in places.items():
            out[name][r] = np.take(a[name][r], order, axis=place - 1)
    return out

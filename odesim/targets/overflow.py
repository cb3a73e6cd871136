"""Formulas in which a part overflows unseen: u/sqrt(1 + u^2) is 0 at u = 1e200, where 1 is right, since the square is infinite there.

No code tells that it has overflowed, and infinite parts are often right, as in 1/(1 + exp(800)). So where numbers are extreme a formula is
evaluated once more, in numbers with a longer exponent.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from odesim.base.arrays import ROOT, Array, extreme
from odesim.targets.numpy_text import ArrayFunction

OFF = 1e-3
"""The part of a value by which it must be off: rounding alone may reach 1e-13 where nothing cancels."""

DRAWS = 3
"""Times that the inputs are moved by rounding: once may move all by the same part, which changes nothing where they cancel."""
MANY = 1000
"""Times that what rounding changes counts, for the same reason; in an overflow it is 1e-12 of what is missing."""


class Wrong(NamedTuple):
    """Where values (...) are wrong, the values, and what they should be."""

    where: Array
    values: Array
    right: Array


def wrong_values(function: ArrayFunction, sizes: Mapping[str, int], values: Mapping[str, Any], dtype: str) -> dict[str, Wrong]:
    """{output: where it is a number in this dtype, and another one than with longer exponents}; only outputs that are wrong somewhere.

    A difference counts if it is more than OFF, and more than rounding of the inputs makes: near a state of rest all digits cancel.
    """
    read = {name: np.asarray(values[name]) for name in function.inputs if name in values}
    if not extreme((value for value in read.values() if value.dtype.kind == "f"), dtype):
        return {}
    longer = np.longdouble if dtype == "float64" else np.float64
    limits, draws = np.finfo(dtype), np.random.default_rng(0)

    def in_type(kind: Any, eps: float = 0.0) -> dict[str, Any]:
        reals = {name: v.astype(kind) for name, v in read.items() if v.dtype.kind == "f"}  # whole numbers may be places in an array
        return {**read, **{name: (v * kind(1 + eps * draws.uniform(-1.0, 1.0, v.shape)) if eps else v)[()] for name, v in reals.items()}}

    kind = np.dtype(dtype).type
    try:
        rights = function(sizes, in_type(longer))
    except TypeError:  # LAPACK has none of them; what has no digits in a linear system ends its run
        return {}
    results, wrong = function(sizes, in_type(kind)), dict[str, Wrong]()
    near = [function(sizes, in_type(longer, 8 * float(limits.eps))) for _ in range(DRAWS)]
    for name, value in results.items():
        right, value, *others = np.broadcast_arrays(
            *(np.asarray(x).astype(longer) for x in (rights[name], value, *(n[name] for n in near)))
        )
        with np.errstate(all="ignore"):
            rounding = np.max([np.nan_to_num(abs(right - other), nan=0.0, posinf=0.0) for other in others], axis=0)
            off = abs(value - right) > OFF * abs(right) + MANY * rounding + float(limits.tiny) ** ROOT
            where = np.isfinite(value) & np.isfinite(right) & off
        if where.any():
            wrong[name] = Wrong(where, value.astype(kind), right)
    return wrong

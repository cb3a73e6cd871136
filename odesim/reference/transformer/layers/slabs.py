"""Cuts elementwise work into pieces that fit in a core's cache."""

from collections.abc import Iterator

import numpy as np

from odesim.base.arrays import Array, array_namespace

SLAB = 1 << 18  # bytes: a few arrays of this size fit in a second-level cache


def slabs(a: Array, rows: int) -> Iterator[slice]:
    """Yields slices of range(rows) in order, each of about SLAB bytes of a, which has that many rows; one slice on a GPU."""
    step = max(1, rows * SLAB // max(a.nbytes, 1)) if array_namespace(a) is np else max(rows, 1)
    for start in range(0, rows, step):
        yield slice(start, min(start + step, rows))

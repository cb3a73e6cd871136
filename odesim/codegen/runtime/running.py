"""Partial sums along an axis of an array, in place and in order."""

from typing import Any

import numba

adding = numba.njit(error_model="numpy", fastmath=False)


@adding
def add_up(a: Any, before: int, n: int, after: int) -> None:
    """Adds to each element of a (before, n, after) its left neighbour along the middle axis, from the left."""
    for b in range(before):
        for i in range(1, n):
            for c in range(after):
                at = (b * n + i) * after + c
                a[at] = a[at] + a[at - after]


@adding
def add_down(a: Any, before: int, n: int, after: int) -> None:
    """Adds to each element of a (before, n, after) its right neighbour along the middle axis, from the right."""
    for b in range(before):
        for i in range(1, n):
            for c in range(after):
                at = (b * n + n - 1 - i) * after + c
                a[at] = a[at] + a[at + after]

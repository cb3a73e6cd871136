"""Inverses of small matrices by elimination with partial pivoting, without LAPACK: the same bits on every machine."""

from typing import Any

import numba

eliminating = numba.njit(error_model="numpy", fastmath=False)


@eliminating
def invert_one(a: Any, x: Any, start: int, n: int) -> None:
    """Writes the inverse of the matrix a[start:] (n, n) into x[start:], and destroys a. Of a singular one no entry is finite."""
    for r in range(n):
        for k in range(n):
            x[start + r * n + k] = 1.0 if r == k else 0.0
    for c in range(n):
        top = start + c * n
        for r in range(c + 1, n):
            row = start + r * n
            if abs(a[row + c]) > abs(a[top + c]):
                for k in range(n):
                    held = a[row + k]
                    a[row + k] = a[top + k]
                    a[top + k] = held
                    held = x[row + k]
                    x[row + k] = x[top + k]
                    x[top + k] = held
        pivot = a[top + c]
        for k in range(n):
            a[top + k] = a[top + k] / pivot
            x[top + k] = x[top + k] / pivot
        for r in range(n):
            if r != c:
                row = start + r * n
                factor = a[row + c]
                for k in range(n):
                    a[row + k] = a[row + k] - factor * a[top + k]
                    x[row + k] = x[row + k] - factor * x[top + k]


@eliminating
def invert(a: Any, x: Any, count: int, n: int) -> None:
    """The same for a and x (count, n, n)."""
    for q in range(count):
        invert_one(a, x, q * n * n, n)

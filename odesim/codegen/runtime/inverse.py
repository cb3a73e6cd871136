"""Inverses of small matrices by elimination with partial pivoting, without LAPACK: the same bits on every machine.

An inverse X of A that rounding leaves fewer than about two digits is none. Its digits are lost where the condition
max_i (|X| |A| d)_i / d_i, with d_i = max_j |X[i, j]|, comes near 1 over the rounding unit: a number that the scales of columns do
not change, and those of rows little (Higham, Accuracy and Stability of Numerical Algorithms, section 14.1).
"""

from typing import Any

import numba

LOST = 256.0
"""An inverse is kept while 1 + 1 / (LOST condition) is above 1."""
eliminating = numba.njit(error_model="numpy", fastmath=False)


@eliminating
def refuse_one(a: Any, x: Any, matrix: Any, start: int, n: int) -> None:
    """Divides the inverse x[start:] of matrix[start:] (n, n), n > 1, by 0 where its digits are lost. a: room for 2 n numbers from start."""
    for i in range(n):
        largest = 0.0
        for j in range(n):
            largest = max(largest, abs(x[start + i * n + j]))
        a[start + i] = largest
    for i in range(n):
        total = 0.0
        for j in range(n):
            total = total + abs(matrix[start + i * n + j]) * a[start + j]
        a[start + n + i] = total
    worst = 0.0
    for i in range(n):
        total = 0.0
        for j in range(n):
            total = total + abs(x[start + i * n + j]) * a[start + n + j]
        worst = max(worst, total / a[start + i])
    a[start] = 1.0 / (LOST * worst)
    a[start + 1] = 1.0 + a[start]
    if not a[start + 1] > 1.0:
        zero = 0.0
        for k in range(n * n):
            x[start + k] = x[start + k] / zero


@eliminating
def invert_one(a: Any, x: Any, matrix: Any, start: int, n: int) -> None:
    """Writes the inverse of matrix[start:] (n, n) into x[start:]. Of one that is singular to rounding no entry is finite.

    a: its copy, which is destroyed.
    """
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

    if n > 1:
        refuse_one(a, x, matrix, start, n)


@eliminating
def invert(a: Any, x: Any, matrix: Any, count: int, n: int) -> None:
    """The same for a, x and matrix (count, n, n)."""
    for q in range(count):
        invert_one(a, x, matrix, q * n * n, n)

"""Inverses of small matrices by elimination with partial pivoting, without LAPACK: the same bits on every machine.

An inverse X of A that rounding leaves fewer than about two digits is refused. Its digits are lost where the condition
max_i (|X| |A| d)_i / d_i, with d_i = max_j |X[i, j]|, comes near 1 over the rounding unit. The scales of columns do not change this
number, and those of rows change it little (Higham, Accuracy and Stability of Numerical Algorithms, section 14.1).

Elimination itself loses digits where its numbers grow far beyond those of A, by up to 2^(n-1) (section 9.3). Then |A X v - v| is far above
the rounding of |A| |X| |v|, for a vector v of the size of A's rows. Such an X is refused too.
"""

from typing import Any

import numba

from odesim.runtime.constants import GROWN, LOST, SMALL

eliminating = numba.njit(error_model="numpy", fastmath=False)


@eliminating
def has_grown(a: Any, x: Any, matrix: Any, start: int, n: int) -> bool:
    """Whether the inverse x[start:] of matrix[start:] (n, n) has errors of growth. a: room for 3 n + 2 numbers from start."""
    for i in range(n):
        largest = 0.0
        for k in range(n):
            largest = max(largest, abs(matrix[start + i * n + k]))
        a[start + i] = largest * (1.0 + 0.0625 * (i * i % 11))
    for i in range(n):
        total = 0.0
        size = 0.0
        for k in range(n):
            total = total + x[start + i * n + k] * a[start + k]
            size = size + abs(x[start + i * n + k]) * a[start + k]
        a[start + n + i] = total
        a[start + 2 * n + i] = size
    found = False
    for i in range(n):
        total = -a[start + i]
        size = 0.0
        for k in range(n):
            total = total + matrix[start + i * n + k] * a[start + n + k]
            size = size + abs(matrix[start + i * n + k]) * a[start + 2 * n + k]
        a[start + 3 * n] = size
        a[start + 3 * n + 1] = a[start + 3 * n] + abs(total) / GROWN
        found = found or a[start + 3 * n + 1] > a[start + 3 * n]
    return found


@eliminating
def refuse_one(a: Any, x: Any, matrix: Any, start: int, n: int) -> None:
    """Divides the inverse x[start:] of matrix[start:] (n, n), n > 1, by 0 where its digits are lost. a: room for n^2 numbers from start."""
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
    if not a[start + 1] > 1.0 or (n > SMALL and has_grown(a, x, matrix, start, n)):
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
    """Inverts each of count matrices (count, n, n) into x, as invert_one does. a: their copies, which are destroyed."""
    for q in range(count):
        invert_one(a, x, matrix, q * n * n, n)

# ruff: noqa: F821
# mypy: disable-error-code="name-defined"
"""Linear systems (shift - J) x = b of a sparse Jacobian by dense fronts (odesim.ir.fronts), as functions of numbers and addresses.

The order is fixed, and pivots are found among the unknowns that a front eliminates. That may not be enough: the residual of the first
solution after each elimination shows it, row by row, and then SuperLU answers from Python. `at` is a pointer to a table of this run:
addresses and whole numbers. An entry of the matrix is a factor times a number of the Jacobian's row: slopes as the system's own kernel
writes them, then 1, the shift, and df/dt.
"""

from typing import Any

import numpy as np

from odesim.runtime.functions import njit
from odesim.runtime.intrinsics import call, doubles, ints

FIRST, LATER, BY_PYTHON = 0, 1, 2
PANEL = 32
"""Pivots between two products of matrices."""
MANY = 30_000
"""Multiplications from which BLAS is called."""
LARGEST_ERROR = 1e-11
"""The error of a row, relative to its terms, above which pivots are looked for everywhere."""

helper, loops = njit(fastmath={"contract"}), njit(fastmath={"contract"}, loops=True)


@loops
def multiply(at: Any, m: int, n: int, k: int, a: int, b: int, c: int, f: int) -> None:
    """c (m, n) -= a (m, k) b (k, n), columns f apart."""
    if at[GEMM] != 0 and m * n * k > MANY:
        # BLAS reads whole numbers of 32 bits: the lower halves of these
        whole, first = ints(at[WHOLE]), at[WHOLE]
        whole[0], whole[1], whole[2], whole[3] = m, n, k, f
        minus, one, no = at[REALS], at[REALS] + 8, at[WHOLE] + 32
        call(at[GEMM], (no, no, first, first + 8, first + 16, minus, a, first + 24, b, first + 24, one, c, first + 24))
        return
    for j in range(n):
        column, weights = doubles(c + 8 * j * f), doubles(b + 8 * j * f)
        for p in range(k):
            left, weight = doubles(a + 8 * p * f), weights[p]
            for i in range(m):
                column[i] -= left[i] * weight


@loops
def factor_front(at: Any, front: int, f: int, w: int, pivots: Any) -> bool:
    """Eliminates the first w of f unknowns of a front (f, f), column by column; whether that can be."""
    F = doubles(front)
    for start in range(0, w, PANEL):
        end = start + PANEL if start + PANEL < w else w
        for k in range(start, end):
            best, size = k, abs(F[k + k * f])
            for i in range(k + 1, w):
                if abs(F[i + k * f]) > size:
                    best, size = i, abs(F[i + k * f])
            if not size > 0.0:
                return False
            pivots[k] = best
            if best != k:
                for j in range(f):
                    F[k + j * f], F[best + j * f] = F[best + j * f], F[k + j * f]
            column, inverse = doubles(front + 8 * k * f), 1.0 / F[k + k * f]
            for i in range(k + 1, f):
                column[i] *= inverse
            for j in range(k + 1, end):
                other, weight = doubles(front + 8 * j * f), F[k + j * f]
                for i in range(k + 1, f):
                    other[i] -= column[i] * weight
        for j in range(end, f):
            other = doubles(front + 8 * j * f)
            for k in range(start, end):
                column, weight = doubles(front + 8 * k * f), other[k]
                for i in range(k + 1, end):
                    other[i] -= column[i] * weight
        rest, here = f - end, end - start
        if rest > 0:
            multiply(at, rest, rest, here, front + 8 * (end + start * f), front + 8 * (start + end * f), front + 8 * (end + end * f), f)
    return True


@helper
def keep(F: Any, L: Any, U: Any, left: Any, f: int, w: int) -> None:
    """Copies what a front was made into: both factors, row after row of U, and what is left for its parent."""
    r = f - w
    for i in range(f * w):
        L[i] = F[i]
    for j in range(r):
        for k in range(w):
            U[k * r + j] = F[k + (w + j) * f]
        for i in range(r):
            left[i + j * r] = F[w + i + (w + j) * f]


@helper
def factor(at: Any) -> bool:
    """Eliminates front after front; whether that can be."""
    values, F, left = doubles(at[VALUES]), doubles(at[FRONT]), doubles(at[LEFT])
    place, entries, rows, widths = ints(at[PLACE]), ints(at[FIRST_ENTRY]), ints(at[FIRST_ROW]), ints(at[WIDTHS])
    children, first_left = ints(at[FIRST_CHILD]), ints(at[FIRST_LEFT])
    places, factors, pivots = ints(at[PLACES]), ints(at[FIRST_FACTOR]), at[PIVOTS]
    for s in range(at[FRONTS]):
        f, w = rows[s + 1] - rows[s], widths[s]
        r = f - w
        for i in range(f * f):
            F[i] = 0.0
        for e in range(entries[s], entries[s + 1]):
            F[place[e]] += values[e]
        for c in range(children[s], children[s + 1]):
            count, first = rows[c + 1] - rows[c] - widths[c], rows[c] + widths[c]
            for b in range(count):
                column, from_ = doubles(at[FRONT] + 8 * f * places[first + b]), doubles(at[LEFT] + 8 * (first_left[c] + b * count))
                for a in range(count):
                    column[places[first + a]] += from_[a]
        start = first_left[s]
        L, U = doubles(at[FACTORS] + 8 * factors[s]), doubles(at[FACTORS] + 8 * (factors[s] + f * w))
        if w == 1:
            if not abs(F[0]) > 0.0:
                return False
            L[0] = 1.0 / F[0]  # an unknown of a chain would wait longest for a division, in each solution
            for i in range(1, f):
                L[i] = F[i] * L[0]
            for j in range(r):
                U[j] = F[(1 + j) * f]
                for i in range(r):
                    left[start + i + j * r] = F[1 + i + (1 + j) * f] - L[1 + i] * U[j]
        elif not factor_front(at, at[FRONT], f, w, ints(pivots + 8 * rows[s])):
            return False
        else:
            keep(F, L, U, doubles(at[LEFT] + 8 * start), f, w)
    return True


@loops
def substitute(at: Any) -> None:
    """X = the solution for the right side X."""
    x, v = doubles(at[X]), doubles(at[LOCAL])
    first, widths, factors = ints(at[FIRST_ROW]), ints(at[WIDTHS]), ints(at[FIRST_FACTOR])
    for s in range(at[FRONTS]):
        f, w, rows, pivots = first[s + 1] - first[s], widths[s], ints(at[ROWS] + 8 * first[s]), ints(at[PIVOTS] + 8 * first[s])
        if w == 1:  # most fronts of a chain: where loops are this short, what is before and after them would take longer
            L, weight = doubles(at[FACTORS] + 8 * factors[s]), x[rows[0]]
            for i in range(1, f):
                x[rows[i]] -= L[i] * weight
            continue
        for i in range(f):
            v[i] = x[rows[i]]
        for k in range(w):
            v[k], v[pivots[k]] = v[pivots[k]], v[k]
        for k in range(w):
            L, weight = doubles(at[FACTORS] + 8 * (factors[s] + k * f)), v[k]
            for i in range(k + 1, f):
                v[i] -= L[i] * weight
        for i in range(f):
            x[rows[i]] = v[i]
    for s in range(at[FRONTS] - 1, -1, -1):
        f, w, rows = first[s + 1] - first[s], widths[s], ints(at[ROWS] + 8 * first[s])
        r = f - w
        if w == 1:
            L, value = doubles(at[FACTORS] + 8 * factors[s]), x[rows[0]]
            for i in range(1, f):
                value -= L[r + i] * x[rows[i]]
            x[rows[0]] = value * L[0]
            continue
        for i in range(f):
            v[i] = x[rows[i]]
        later = doubles(at[LOCAL] + 8 * w)
        for k in range(w):
            U = doubles(at[FACTORS] + 8 * (factors[s] + f * w + k * r))
            # four sums: one would wait for each addition
            a, b, c, d, rest = 0.0, 0.0, 0.0, 0.0, r % 4
            for j in range(0, r - rest, 4):
                a += U[j] * later[j]
                b += U[j + 1] * later[j + 1]
                c += U[j + 2] * later[j + 2]
                d += U[j + 3] * later[j + 3]
            for j in range(r - rest, r):
                a += U[j] * later[j]
            v[k] -= (a + b) + (c + d)
        for k in range(w - 1, -1, -1):
            L = doubles(at[FACTORS] + 8 * (factors[s] + k * f))
            v[k] /= L[k]
            for i in range(k):
                v[i] -= L[i] * v[k]
        for i in range(w):
            x[rows[i]] = v[i]


@helper
def fits(at: Any, b: int, g: float) -> bool:
    """Whether X solves the system with this right side. Each row is held against its own terms: their sizes may be anything."""
    x, sizes, values, rest = doubles(at[X]), doubles(at[SIZES]), doubles(at[VALUES]), doubles(at[SIZES] + 8 * at[UNKNOWNS])
    rows, columns, least = ints(at[ROW]), ints(at[COLUMN]), doubles(at[REALS] + 16)
    for i in range(at[UNKNOWNS]):
        rest[i] = doubles(b)[i] / g if i < at[STATES] else 0.0
        sizes[i] = abs(rest[i])
    for e in range(at[ENTRIES]):
        i, j = rows[e], columns[e]
        rest[i] -= values[e] * x[j]
        sizes[i] += abs(values[e]) * (abs(x[j]) + least[j])
    good = True
    for i in range(at[UNKNOWNS]):
        good = good and abs(rest[i]) <= LARGEST_ERROR * sizes[i]
    return good


def linear(address: int, t: float, y: int, J: int) -> None:
    """The numbers of the Jacobian and df/dt at a point."""
    at = ints(address)
    if at[SLOPES] != 0:
        call(at[SLOPES], (at[SLOPES_TABLE], t, y, J))
    doubles(J)[at[COUNT]] = 1.0
    if at[TIME] != 0:
        call(at[TIME], (at[TIME_TABLE], t, y, J + 8 * (at[COUNT] + 2)))


def along(address: int, J: int, f: int, target: int) -> None:
    """target = J f + df/dt: intermediate arrays in the order in which they follow from each other."""
    at = ints(address)
    x, order, rows, columns, numbers = doubles(at[X]), ints(at[TANGENT]), ints(at[ROW]), ints(at[COLUMN]), doubles(J)
    n, factors, sources = at[STATES], doubles(at[FACTOR]), ints(at[SOURCE])
    for i in range(at[UNKNOWNS]):
        x[i] = doubles(f)[i] if i < n else 0.0
    for i in range(n):
        doubles(target)[i] = numbers[at[COUNT] + 2 + i] if at[TIME] != 0 else 0.0
    for q in range(at[TANGENTS]):
        e = order[q]
        term = factors[e] * numbers[sources[e]] * x[columns[e]]
        if rows[e] < n:
            doubles(target)[rows[e]] -= term
        else:
            x[rows[e]] -= term


def eliminate(address: int, J: int, g: float, truth: int) -> None:
    """Makes the solver for 1 / g and J; the truth is whether there is one."""
    at = ints(address)
    values, factors, sources, numbers = doubles(at[VALUES]), doubles(at[FACTOR]), ints(at[SOURCE]), doubles(J)
    numbers[at[COUNT] + 1] = 1.0 / g
    wild = 0.0
    for e in range(at[ENTRIES]):
        values[e] = factors[e] * numbers[sources[e]]
        wild += 0.0 * values[e]
    ints(truth)[0] = 0
    if wild == 0.0:  # an infinite entry would solve every system by 0
        at[NEXT] = FIRST
        ints(truth)[0] = 1
        if not factor(at):
            at[NEXT] = BY_PYTHON
            call(at[PIVOTED], (address, J, g, truth))


def drift(address: int, J: int, g_later: float, target: int) -> None:
    """Adds g_later df/dt."""
    at = ints(address)
    slope = doubles(J + 8 * (at[COUNT] + 2))
    for i in range(at[STATES]):
        doubles(target)[i] += g_later * slope[i]


def solve(address: int, J: int, g: float, b: int, target: int) -> None:
    """target = x of (1 - g J) x = b."""
    at = ints(address)
    x = doubles(at[X])
    if at[NEXT] != BY_PYTHON:
        for i in range(at[UNKNOWNS]):
            x[i] = doubles(b)[i] / g if i < at[STATES] else 0.0
        substitute(at)
        if at[NEXT] == FIRST:
            at[NEXT] = LATER
            if not fits(at, b, g):
                at[NEXT] = BY_PYTHON
                call(at[PIVOTED], (address, J, g, at[WHOLE] + 40))
                if ints(at[WHOLE])[5] == 0:
                    for i in range(at[STATES]):
                        doubles(target)[i] = np.nan
                    return
    if at[NEXT] == BY_PYTHON:
        call(at[SOLVE_PIVOTED], (address, J, g, b, target))
        return
    for i in range(at[STATES]):
        doubles(target)[i] = x[i]


SIGNATURES = {
    "linear": "void(int64, float64, int64, int64)",
    "along": "void(int64, int64, int64, int64)",
    "eliminate": "void(int64, int64, float64, int64)",
    "drift": "void(int64, int64, float64, int64)",
    "solve": "void(int64, int64, float64, int64, int64)",
}

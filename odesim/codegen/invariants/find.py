"""Sums w.y of states that a right-hand side keeps constant: w.f = 0, whatever the numbers are.

They are found in two ways. Term by term: coefficients are numbers of 53 bits, and what is left of a sum that should be 0 is one where
it is no more than their rounding. And at random points modulo a prime, where numbers are exact and quotients may cancel too.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations
from math import isqrt, lcm

import numpy as np

from odesim.base.arrays import Array
from odesim.codegen.invariants.linear import LinearInvariant
from odesim.codegen.invariants.modular import PRIMES, random_values, residue
from odesim.codegen.invariants.monomials import Terms, right_side_terms
from odesim.codegen.unrolled.formulas import Formulas

MOST_STATES = 64
MOST_LINES = 1500
MOST_TERMS = 4000
MOST_SUMS = 12
"""Sums beyond the independent ones are looked at while they are so few."""
ROUNDING = 1e-14
"""What is left of a sum, relative to its terms, where these cancel."""
LARGEST = 1000
"""Whole numbers and denominators up to here are taken for what a weight is meant to be."""


def linear_invariants(formulas: Formulas, declared: Sequence[LinearInvariant] = ()) -> tuple[LinearInvariant, ...]:
    """The invariants of a right-hand side, those with few states last; the declared ones alone where it is too large to look.

    Where two of them have states in common, so do their combinations: small states of two large sums may have a sum of their own,
    which is lost in the rounding of the large ones. So there are more than independent ones.
    """
    if formulas.states > MOST_STATES or len(formulas.lines) > MOST_LINES:
        return _ordered(declared)
    basis: list[Array] = []
    for w in (*_null_vectors(right_side_terms(formulas)), *_modular_null_vectors(formulas)):
        if _eliminated(np.array([*basis, w]), len(w)) > len(basis):
            basis.append(_plain(w))
    found = [_made(w) for w in _sparse(basis)]
    known = np.array(basis).reshape(len(basis), formulas.states)
    return _ordered([*found, *(d for d in declared if not _spanned(d, known))])


def _ordered(found: Sequence[LinearInvariant]) -> tuple[LinearInvariant, ...]:
    return tuple(sorted(found, key=lambda w: (-len(w.places), w.places)))


def _spanned(invariant: LinearInvariant, known: Array) -> bool:
    """Whether an invariant is a combination of known ones (k, n)."""
    if invariant.reads:
        return False
    w = np.zeros(known.shape[1])
    w[list(invariant.places)] = invariant.weights
    return _eliminated(np.vstack([known, w]), known.shape[1]) <= len(known)


def _made(w: Array) -> LinearInvariant:
    return LinearInvariant(_places(w), tuple(w[w != 0].tolist()))


def _places(w: Array) -> tuple[int, ...]:
    return tuple(np.flatnonzero(w).tolist())


def _null_vectors(rows: Sequence[Terms]) -> list[Array]:
    """A basis of all w (n,) with sum w_k rows[k] = 0, without the states whose derivative is 0."""
    columns = {monomial: j for j, monomial in enumerate(dict.fromkeys(m for row in rows for m in row))}
    if len(columns) > MOST_TERMS:
        return []
    terms = np.zeros((len(rows), len(columns)))
    for k, row in enumerate(rows):
        for monomial, c in row.items():
            terms[k, columns[monomial]] = float(c)
    live = terms.any(axis=1)
    scaled = np.unique(terms[live] / np.abs(terms).max(axis=0, initial=0), axis=1) if columns else terms[live]
    if not np.isfinite(scaled).all():
        return []
    matrix = np.hstack([scaled, np.eye(len(scaled))])
    null = matrix[_eliminated(matrix, scaled.shape[1]) :, scaled.shape[1] :]
    _eliminated(null, len(scaled))
    found = np.zeros((len(null), len(rows)))
    found[:, live] = null
    return [w for w in found if np.all(np.abs(w @ terms) <= ROUNDING * (np.abs(w) @ np.abs(terms)))]


def _modular_null_vectors(formulas: Formulas) -> list[Array]:
    """The same from values at random points; weights are small fractions, which hold for another prime as well."""
    n, (prime, other) = formulas.states, PRIMES
    values, check = (random_values(formulas, n + 4, p) for p in PRIMES)
    if min(values.shape[1], check.shape[1]) < n + 4:
        return []
    live = np.flatnonzero(values.any(axis=1))
    matrix = np.hstack([values[live], np.eye(len(live), dtype=np.int64)])
    rank = _modular_eliminated(matrix, n + 4, prime)
    null = matrix[rank:, n + 4 :]
    _modular_eliminated(null, len(live), prime)
    found = []
    for row in null:
        weights = [small_fraction(int(x), prime) for x in row]
        total = sum(residue(w, other) * check[k] % other for w, k in zip(weights, live, strict=True)) % other
        if not np.any(total):
            found.append(np.zeros(n))
            found[-1][live] = [float(w) for w in weights]
    return found


def _modular_eliminated(matrix: Array, columns: int, prime: int) -> int:
    """How many pivots matrix (n, m), itself reduced by rows modulo prime, has in its first columns; each is 1, alone in its column."""
    row = 0
    for column in range(columns):
        candidates = np.flatnonzero(matrix[row:, column])
        if not len(candidates):
            continue
        pivot = row + int(candidates[0])
        matrix[[row, pivot]] = matrix[[pivot, row]]
        matrix[row] = matrix[row] * pow(int(matrix[row, column]), -1, prime) % prime
        others = np.arange(len(matrix)) != row
        matrix[others] = (matrix[others] - matrix[others, column, None] * matrix[row] % prime) % prime
        row += 1
        if row == len(matrix):
            break
    return row


def small_fraction(x: int, prime: int) -> Fraction:
    """The fraction with the smallest numbers, about, that is x modulo prime, by Euclid's algorithm."""
    most = isqrt(prime // 2)
    (a, s), (b, t) = (prime, 0), (x, 1)
    while b > most:
        (a, s), (b, t) = (b, t), (a % b, s - a // b * t)
    return Fraction(b, t)


def _eliminated(matrix: Array, columns: int) -> int:
    """How many pivots matrix (n, m), itself reduced by rows, has in its first columns: each pivot is 1, alone in its column."""
    row, sizes = 0, np.abs(matrix)  # of all that an entry was made of
    while row < len(matrix) and columns:
        i, j = np.unravel_index(np.argmax(np.abs(matrix[row:, :columns])), (len(matrix) - row, columns))
        pivot = matrix[row + i, j]
        if pivot == 0:
            break
        for array, by in ((matrix, pivot), (sizes, abs(pivot))):
            array[[row, row + int(i)]] = array[[row + int(i), row]]
            array[row] /= by
        for other in range(len(matrix)):
            x = matrix[other, j]
            if other != row and x != 0:
                sizes[other] += abs(x) * sizes[row]
                left = matrix[other] - x * matrix[row]
                matrix[other] = np.where(np.abs(left) <= ROUNDING * sizes[other], 0.0, left)
                matrix[other, j] = 0.0
        row += 1
    return row


def _less(a: Array, b: Array) -> Array:
    """a - b (n,), 0 where they are equal to rounding."""
    left: Array = np.where(np.abs(a - b) <= ROUNDING * (np.abs(a) + np.abs(b)), 0.0, a - b)
    return left


def _plain(w: Array) -> Array:
    """w times a number: small whole numbers where it is such a vector, else at most 1; the first one positive."""
    first = w / w[np.flatnonzero(w)[0]]
    near = [Fraction(x).limit_denominator(LARGEST) for x in first.tolist()]
    whole = lcm(*(x.denominator for x in near))
    if whole <= LARGEST and all(abs(float(x) - y) <= 100 * ROUNDING * abs(y) for x, y in zip(near, first.tolist(), strict=True)):
        return np.array([float(x * whole) for x in near])
    return first / np.abs(first).max()


def _sparse(basis: list[Array]) -> list[Array]:
    """As many independent vectors as in basis, and others of their span; each with no more states than needed."""
    known = {tuple(w.tolist()): w for w in basis}
    for _ in range(2):
        for a, b in combinations(list(known.values()), 2):
            for c in _combined(a, b):
                if len(known) < 8 * MOST_SUMS:
                    known[tuple(c.tolist())] = c
    supports = {key: frozenset(_places(w)) for key, w in known.items()}
    minimal = [w for key, w in known.items() if not any(other < supports[key] for other in supports.values())]
    chosen: list[Array] = []
    others: list[Array] = []
    for w in sorted(minimal, key=lambda w: (np.count_nonzero(w), _places(w))):
        fresh = _eliminated(np.array([*chosen, w]), len(w)) > len(chosen)
        (chosen if fresh else others).append(w)
    return chosen + others[: max(0, MOST_SUMS - len(chosen))]


def _combined(a: Array, b: Array) -> Iterator[Array]:
    """Of a and b (n,) what has not one of the states that both have."""
    for k in np.flatnonzero((a != 0) & (b != 0)):
        c = _less(a * b[k], b * a[k])
        c[k] = 0.0
        if c.any():
            yield _plain(c)

"""Linear invariants: weighted sums of states that are constant along every solution, how they are found, and their accurate values.

They are searched for at random points modulo a prime (odesim.ir.exact): weights are small fractions. A sum with other weights, or with
parameters in them, is kept where the System declares it.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from math import isqrt, lcm
from operator import add, mul, neg, sub, truediv
from typing import Any

import numpy as np

from odesim.base.arrays import Array
from odesim.ir.exact import PRIMES, random_values, residue
from odesim.ir.scalars import Formulas, Operand, Operation, is_number, words_of

SPLIT = 2.0**27 + 1
ARITHMETIC: dict[tuple[str, int], Callable[..., Any]] = {
    ("+", 2): add, ("-", 2): sub, ("*", 2): mul, ("/", 2): truediv, ("-", 1): neg, ("powi", 2): lambda x, n: x ** int(n),
}  # fmt: skip
"""{(operation, number of operands): its value}, of those that a weight may have."""


@dataclass(frozen=True)
class LinearInvariant:
    """A sum over k of weights[k] y[places[k]] that is constant along every solution. A weight is a number, or text of parameters p0, ..."""

    places: tuple[int, ...]
    weights: tuple[float | Operand, ...]

    @classmethod
    def of(cls, weights: Sequence[tuple[int, Operand]]) -> "LinearInvariant":
        """The invariant of these places with their weights, which are numbers where they have no parameters."""
        invariant = cls(tuple(place for place, _ in weights), tuple(weight for _, weight in weights))
        return invariant if invariant.reads else invariant.with_numbers({})

    @cached_property
    def reads(self) -> list[int]:
        """The numbers of the parameter entries in its weights."""
        return sorted(
            {
                int(word[1:])
                for w in self.weights
                if not isinstance(w, float)
                for word in words_of(w)
                if word[0] == "p" and word[1:].isdigit()
            }
        )

    def with_numbers(self, params: Mapping[int, float]) -> "LinearInvariant":
        """The invariant with numbers as weights, for parameter entries {number: value}."""
        if all(isinstance(w, float) for w in self.weights):
            return self
        return replace(self, weights=tuple(float(np.squeeze(weight_at(w, params))) for w in self.weights))


def parameter_values(
    firsts: Mapping[str, int], wanted: Iterable[int], shared: Mapping[str, Any], of_members: Mapping[str, Array]
) -> dict[int, Any]:
    """{number: value (1,) or (N,)} of the wanted parameter entries.

    firsts: {parameter: number of its first entry}. shared: parameters of all members. own: parameters of N members {name: (N, *shape)}.
    """
    values = {}
    for k in wanted:
        name = max((name for name, first in firsts.items() if first <= k), key=lambda name: firsts[name])
        value = np.asarray(of_members[name] if name in of_members else shared[name], np.float64)
        values[k] = value.reshape(len(value) if name in of_members else 1, -1)[..., k - firsts[name]]
    return values


def weight_at(weight: float | Operand, params: Mapping[int, Array | float]) -> Any:
    """The weight for parameter entries {number: value, or array (N,)}."""
    if isinstance(weight, Operation):
        value = ARITHMETIC[weight.function, len(weight.operands)]
        return value(*(weight_at(operand, params) for operand in weight.operands))
    return params[int(weight[1:])] if isinstance(weight, str) and not is_number(weight) else float(weight)


def text_of(weight: float | Operand) -> Operand:
    """The weight in generated code."""
    return repr(weight) if isinstance(weight, float) else weight


def exact_sums(invariant: LinearInvariant, starts: Array, params: Mapping[int, Array | float] | None = None) -> Array:
    """The values (N,) of an invariant for states starts (N, n), as accurate as if computed with twice the digits.

    T. Ogita, S. M. Rump, S. Oishi, Accurate sum and dot product, SIAM J. Sci. Comput. 26 (2005): algorithm 5.3.
    """
    weights = [weight_at(weight, params or {}) for weight in invariant.weights]
    with np.errstate(all="ignore"):
        total, rest = _total_and_rest(weights, [starts[:, place] for place in invariant.places], np.zeros(len(starts)))
        return total + np.where(np.isfinite(rest), rest, 0.0)


def exact_sum(invariant: LinearInvariant, start: Array) -> float:
    """The same of an invariant with numbers as weights for one state (n,): a run of a small system would wait for arrays of one number."""
    total, rest = _total_and_rest(invariant.weights, [float(start[place]) for place in invariant.places], 0.0)
    return float(total + rest if math.isfinite(rest) else total)


def _total_and_rest(weights: Iterable[Any], states: Iterable[Any], zero: Any) -> tuple[Any, Any]:
    """The rounded sum of products, and what rounding took from it; numbers or arrays (N,)."""
    total, rest = zero, zero
    for weight, x in zip(weights, states, strict=True):
        product = weight * x
        high = SPLIT * x - (SPLIT * x - x)
        w = SPLIT * weight - (SPLIT * weight - weight)
        error = ((w * high - product) + w * (x - high) + (weight - w) * high) + (weight - w) * (x - high)
        new = total + product
        part = new - total
        rest = rest + (((total - (new - part)) + (product - part)) + error)
        total = new
    return total, rest


MOST_STATES = 64
MOST_LINES = 1500
MOST_SUMS = 12
"""The most invariants; dependent ones fill up the number."""
ROUNDING = 1e-14
"""The size of a sum, relative to its terms, up to which the terms cancel."""
LARGEST = 1000
"""The largest whole number or denominator that a weight is rounded to."""


def linear_invariants(formulas: Formulas, declared: Sequence[LinearInvariant] = ()) -> tuple[LinearInvariant, ...]:
    """The linear invariants of a right-hand side, those with few states last; only the declared ones where it is too large.

    They include dependent ones, for two sums with large states in common may combine to a sum of small states. It would otherwise be lost
    in the rounding of the large states.
    """
    if formulas.states > MOST_STATES or len(formulas.code) > MOST_LINES:
        return _ordered(declared)
    basis = [_normalized(w) for w in _null_vectors(formulas)]
    sparse = [LinearInvariant(_places(w), tuple(w[w != 0].tolist())) for w in _sparse_vectors(basis)]
    vectors = np.array(basis).reshape(len(basis), formulas.states)
    return _ordered([*sparse, *(d for d in declared if not _is_combination(d, vectors))])


def _ordered(invariants: Sequence[LinearInvariant]) -> tuple[LinearInvariant, ...]:
    return tuple(sorted(invariants, key=lambda w: (-len(w.places), w.places)))


def _is_combination(invariant: LinearInvariant, vectors: Array) -> bool:
    """Whether the weights of an invariant are a linear combination of vectors (k, n)."""
    if invariant.reads:
        return False
    w = np.zeros(vectors.shape[1])
    w[list(invariant.places)] = [weight_at(weight, {}) for weight in invariant.weights]
    return _rank(np.vstack([vectors, w])) <= len(vectors)


def _places(w: Array) -> tuple[int, ...]:
    return tuple(np.flatnonzero(w).tolist())


def _null_vectors(formulas: Formulas) -> list[Array]:
    """Vectors w (n,) with w.f = 0 at random points modulo a prime; their weights are small fractions, checked modulo another prime."""
    n, (prime, other) = formulas.states, PRIMES
    values, check = (random_values(formulas, n + 4, p) for p in PRIMES)
    if min(values.shape[1], check.shape[1]) < n + 4:
        return []
    live = np.flatnonzero(values.any(axis=1))
    matrix = np.hstack([values[live], np.eye(len(live), dtype=np.int64)])
    rank = _eliminate_modular(matrix, n + 4, prime)
    null = matrix[rank:, n + 4 :]
    _eliminate_modular(null, len(live), prime)
    vectors = []
    for row in null:
        weights = [small_fraction(int(x), prime) for x in row]
        total = sum(residue(w, other) * check[k] % other for w, k in zip(weights, live, strict=True)) % other
        if not np.any(total):
            vectors.append(np.zeros(n))
            vectors[-1][live] = [float(w) for w in weights]
    return vectors


def _eliminate_modular(matrix: Array, columns: int, prime: int) -> int:
    """The rank of the first columns of matrix (n, m) modulo prime. The matrix is reduced in place: each pivot is 1, alone in its column."""
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
    """A fraction with small numerator and denominator that equals x modulo prime, by Euclid's algorithm."""
    most = isqrt(prime // 2)
    (a, s), (b, t) = (prime, 0), (x, 1)
    while b > most:
        (a, s), (b, t) = (b, t), (a % b, s - a // b * t)
    return Fraction(b, t)


def _rank(vectors: Array) -> int:
    """The rank of vectors (k, n), each in units of its largest entry."""
    # weights are fractions of small whole numbers: what is independent is so by far more than 1e-10, and rounding is far less
    return int(np.linalg.matrix_rank(vectors / np.abs(vectors).max(axis=1, initial=0.0, keepdims=True), 1e-10))


def _difference(a: Array, b: Array) -> Array:
    """The difference a - b (n,), with 0 where a and b are equal to rounding."""
    return np.where(np.abs(a - b) <= ROUNDING * (np.abs(a) + np.abs(b)), 0.0, a - b)


def _normalized(w: Array) -> Array:
    """A multiple of w with a positive first entry: of small whole numbers where there is one, else with a largest entry of 1."""
    first = w / w[np.flatnonzero(w)[0]]
    near = [Fraction(x).limit_denominator(LARGEST) for x in first.tolist()]
    whole = lcm(*(x.denominator for x in near))
    if whole <= LARGEST and all(abs(float(x) - y) <= 100 * ROUNDING * abs(y) for x, y in zip(near, first.tolist(), strict=True)):
        return np.array([float(x * whole) for x in near])
    return first / np.abs(first).max()


def _sparse_vectors(basis: list[Array]) -> list[Array]:
    """Vectors of the span of basis with as few states as possible: first a basis, then dependent ones."""
    vectors = {tuple(w.tolist()): w for w in basis}
    for _ in range(2):
        for a, b in combinations(list(vectors.values()), 2):
            for c in _combinations(a, b):
                if len(vectors) < 8 * MOST_SUMS:
                    vectors[tuple(c.tolist())] = c
    supports = {key: frozenset(_places(w)) for key, w in vectors.items()}
    minimal = [w for key, w in vectors.items() if not any(other < supports[key] for other in supports.values())]
    independent: list[Array] = []
    others: list[Array] = []
    for w in sorted(minimal, key=lambda w: (np.count_nonzero(w), _places(w))):
        is_new = _rank(np.array([*independent, w])) > len(independent)
        (independent if is_new else others).append(w)
    return independent + others[: max(0, MOST_SUMS - len(independent))]


def _combinations(a: Array, b: Array) -> Iterator[Array]:
    """Linear combinations of a and b (n,), each without one of the states that both have."""
    for k in np.flatnonzero((a != 0) & (b != 0)):
        c = _difference(a * b[k], b * a[k])
        c[k] = 0.0
        if c.any():
            yield _normalized(c)

"""The leading eigenvalues of a large Jacobian by Arnoldi's method, and how many of all grow where that can be counted."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import ArpackError, ArpackNoConvergence, LinearOperator, eigs, splu

from odesim.base.arrays import Array
from odesim.dynamics.large import LargeRoot, Operator, SingularError
from odesim.dynamics.newton import counted_spectrum
from odesim.ir.linear_systems import Sparse, Structured

LEADING = 6
"""Eigenvalues that are computed."""
KRYLOV = 60
"""Products by which the outer eigenvalues are guessed."""
MARGIN = 1e-2
"""How far beside a guess, relative to the size of the Jacobian, eigenvalues are looked for by the inverse."""
RESTARTS, MOST_RESTARTS = 12, 30
"""Restarts of Arnoldi's method by the inverse, and by products alone, after which what has not converged is left out."""
ZOOMS, NEARER = 4, 0.03
"""How often a place comes nearer, and by which factor: 60 products err by some 1e-3 of the distance, so that it stays outside."""
GUESSES, MOST_PLACES = 3, 8
"""Guesses beside which eigenvalues are looked for, and the most places."""
SAME = 1e-9
"""The distance, relative to the size of the Jacobian, within which an eigenvalue found from two places is one."""


@dataclass(frozen=True)
class LeadingSpectrum:
    """The leading eigenvalues (m,) of a rest state, the fastest growing first. growing: how many of all grow, NaN where that is not known.

    stability: as of odesim.dynamics.newton.Spectrum, or unknown.
    """

    values: Array
    growing: float
    stability: str


def leading_spectrum(root: LargeRoot) -> LeadingSpectrum:
    """The leading eigenvalues of a root on its leaf, of a Map the multipliers; all are looked at where the Jacobian is blocks alone."""
    J = root.J
    if root.kink:
        return LeadingSpectrum(np.full(min(LEADING, J.n), np.nan, complex), np.nan, "unknown")
    slack = 1e4 * float(np.finfo(float).eps) * max(J.size, float(J.discrete)) + root.slack
    everything = _all_values(J)
    spectrum = counted_spectrum(leading_values(J) if everything is None else everything, slack, J.discrete)
    values, grow = spectrum.values, spectrum.growing
    if not len(values):
        return LeadingSpectrum(values, np.nan, "unknown")
    if everything is not None:
        return LeadingSpectrum(values[:LEADING], grow, spectrum.stability)
    count = _count_growing(J, slack)
    if grow == len(values):  # and how many more may not be known; where any decays, it is a saddle all the same
        kind = ("unstable" if count == J.n else "saddle") if np.isfinite(count) else "saddle" if _some_decay(J, slack) else "unknown"
        return LeadingSpectrum(values, count, kind)
    if np.isfinite(count) and count != grow:
        return LeadingSpectrum(values, np.nan, "unknown")
    return LeadingSpectrum(values, grow, spectrum.stability)  # not all grow


def _all_values(J: Operator) -> Array | None:
    """All eigenvalues (n,) where the Jacobian is blocks alone and no law holds; else None."""
    if not isinstance(J.J, Structured) or J.J.U.shape[1] or len(J.normals):
        return None
    values = np.linalg.eigvals(J.J.blocks).ravel().astype(complex)
    return np.concatenate([values, np.zeros(J.n - len(values))])


def ritz_values(product: Callable[[Array], Array], n: int, kind: type = float) -> Array:
    """The eigenvalues (m,) of a matrix (n, n) on the space of its first products with a random vector: its outer ones, roughly."""
    m = min(n, KRYLOV)
    Q: Array = np.zeros((m + 1, n), kind)
    H: Array = np.zeros((m + 1, m), kind)
    Q[0] = np.random.default_rng(0).standard_normal(n)
    Q[0] /= np.linalg.norm(Q[0])
    for k in range(m):
        q = product(Q[k])
        size = np.linalg.norm(q)
        for _ in range(2):  # twice is enough: what is left is orthogonal to rounding
            part = Q[: k + 1].conj() @ q
            H[: k + 1, k] += part
            q = q - part @ Q[: k + 1]
        H[k + 1, k] = np.linalg.norm(q)
        if abs(H[k + 1, k]) <= 1e-12 * size:
            return np.asarray(np.linalg.eigvals(H[: k + 1, : k + 1]), complex)
        Q[k + 1] = q / H[k + 1, k]
    return np.asarray(np.linalg.eigvals(H[:m, :m]), complex)


def _outer_values(J: Operator) -> Array:
    """The outer eigenvalues (m,) of J (a Map: of J + 1), roughly."""
    return ritz_values(lambda x: J @ x + (x if J.discrete else 0.0), J.n)


def values_near(J: Operator, place: complex, beside: float) -> Array:
    """The eigenvalues of J (a Map: of J + 1) nearest to a place, none where they are not found. beside: its distance from them, roughly.

    Of a long chain they lie so close together that from there they look alike: the place then comes nearer, step by step. Where all but a
    few go on looking alike, as those of a random graph that fill a disc, it is these few.
    """
    few = np.zeros(0, complex)
    for _ in range(ZOOMS):
        real = place.imag == 0
        at, kind = (place.real, float) if real else (place, complex)
        try:
            solve = J.solver(at - 1.0 if J.discrete else at)
            inverse = LinearOperator((J.n, J.n), matvec=lambda x, solve=solve: solve(x.ravel()), dtype=kind)
            first = np.random.default_rng(0).standard_normal(J.n).astype(kind)  # the same bits in every run
            many = min(J.n, 8 * LEADING)
            factors: Any = eigs(inverse, 2 * LEADING, v0=first, ncv=many, maxiter=RESTARTS, return_eigenvectors=False)
            return np.asarray(at - 1 / np.asarray(factors, complex))
        except ArpackNoConvergence as stop:  # what has converged may lack copies of eigenvalues that are equal
            if len(stop.eigenvalues) and not len(few):
                few = at - 1 / values_apart(inverse, first)
        except (SingularError, ArpackError):
            break
        guess = at - 1 / ritz_values(solve, J.n, kind)
        nearest = complex(guess[np.argmin(np.abs(guess - at))])
        if real:  # eigenvalues that turn have a place of their own
            nearest = complex(nearest.real)
        away = at - nearest
        beside *= NEARER
        place = nearest + beside * away / max(abs(away), 1e-300)
    return few


def values_apart(matrix: Any, first: Array) -> Array:
    """The largest eigenvalues of a matrix (n, n), a LinearOperator, up to those that Arnoldi's method from first (n,) does not part.

    Each is found without the directions of those before it: of equal eigenvalues one start shows one.
    """
    values, Q = np.zeros(0, complex), np.zeros((len(first), 0), first.dtype)

    def beside(x: Array) -> Array:
        return np.asarray(x - Q @ (Q.conj().T @ x))

    rest = LinearOperator(matrix.shape, matvec=lambda x: beside(matrix @ beside(x.ravel())), dtype=first.dtype)
    while len(values) < 2 * LEADING:
        try:
            value, vector = eigs(rest, 1, v0=beside(first), ncv=8 * LEADING, maxiter=RESTARTS)
        except ArpackError:
            break
        pair = value.imag != 0 and first.dtype == float
        values = np.concatenate([values, value, value.conj()] if pair else [values, value])
        vector = np.hstack([vector.real, vector.imag] if pair else [vector if first.dtype == complex else vector.real])
        Q = np.linalg.qr(np.hstack([Q, vector]))[0]
    return values


def values_by_products(J: Operator) -> Array:
    """The eigenvalues that grow fastest by Arnoldi's method over products with J: LEADING, or one where the others lie too close together.

    None where that does not converge either.
    """
    matrix = LinearOperator((J.n, J.n), matvec=lambda x: J @ x + (x if J.discrete else 0.0), dtype=np.float64)
    first = np.random.default_rng(0).standard_normal(J.n)  # the same bits in every run
    which: Literal["LM", "LR"] = "LM" if J.discrete else "LR"
    for count in (LEADING, 1):
        with suppress(ArpackError):  # of what has converged until then copies of equal eigenvalues may be missing
            values: Any = eigs(matrix, count, which=which, v0=first, ncv=KRYLOV, maxiter=MOST_RESTARTS, return_eigenvectors=False)
            return np.concatenate([values, values[values.imag != 0].conj()]) if count == 1 else np.asarray(values, complex)
    return np.zeros(0, complex)


def leading_values(J: Operator) -> Array:
    """The eigenvalues (at most LEADING) that grow fastest, none where Arnoldi's method finds none.

    Where many lie close together, as of a long chain, products alone do not part them: they say roughly where the fastest ones are, and
    beside those they are found by the inverse, if there is one.
    """
    if J.by_products:
        return values_by_products(J)

    def rate(z: Any) -> Any:
        return np.abs(z) if J.discrete else np.real(z)

    def beyond(z: complex) -> complex:
        z = complex(z.real, z.imag if abs(z.imag) > margin else 0.0)
        return z * (1 + margin / max(abs(z), margin)) if J.discrete else z + margin

    margin, eigenvalues = MARGIN * max(J.size, float(J.discrete)), np.zeros(0, complex)
    guess = _outer_values(J)
    guess = guess[np.argsort(-rate(guess))]
    places = [beyond(z) for z in guess[guess.imag >= 0][:GUESSES]]
    tried, missed = list[complex](), -np.inf  # the largest rate at a place where none are found
    while places and len(tried) < MOST_PLACES:
        place = places.pop(0)
        if any(abs(place - other) <= margin for other in tried):
            continue
        tried.append(place)
        near = values_near(J, place, margin)
        missed = missed if len(near) else max(missed, rate(place))
        near = np.concatenate([near, near[near.imag > margin].conj()]) if place.imag else near
        fresh = np.array([z for z in near if not np.any(np.abs(eigenvalues - z) <= SAME * J.size)], complex)
        eigenvalues = np.concatenate([eigenvalues, fresh])
        if len(fresh) and rate(top := fresh[np.argmax(rate(fresh))]) > max(map(rate, tried)):  # the guess was too low
            places.insert(0, beyond(complex(top.real, abs(top.imag))))
    if np.max(rate(eigenvalues), initial=-np.inf) < missed - 2 * margin:  # products alone say that faster ones exist
        return np.zeros(0, complex)
    return eigenvalues[np.argsort(-rate(eigenvalues), kind="stable")][:LEADING]


def _count_growing(J: Operator, slack: float) -> float:
    """How many eigenvalues are above slack, by the signs of pivots (Sylvester); NaN unless the Jacobian is sparse, symmetric and alone."""
    if J.by_products or J.discrete or len(J.normals) or not isinstance(J.J, Sparse) or J.J.pattern.unknowns > J.n:
        return np.nan
    A = J.extended
    if abs(A - A.T).max() > 1e-14 * abs(A).max():
        return np.nan
    try:
        lu = splu((A + slack * sparse.eye_array(J.n)).tocsc(), "MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    except RuntimeError:
        return np.nan
    pivots, largest = lu.U.diagonal(), abs(lu.U).max()
    # without pivots beside the diagonal rounding grows with the factors: too large ones are no proof
    sound = np.array_equal(lu.perm_r, lu.perm_c) and largest <= 1e6 * abs(A).max()
    return float(np.sum(pivots < 0)) if sound else np.nan


def _some_decay(J: Operator, slack: float) -> bool:
    """Whether an eigenvalue decays, clearly: those of a few products are looked at."""
    values = _outer_values(J)
    rates = np.abs(values) - 1.0 if J.discrete else values.real
    return bool(np.any(rates < -slack - MARGIN * J.size))

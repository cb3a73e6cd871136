"""Rest states of more states than a dense matrix is for: Newton's method by sparse elimination, and the leading eigenvalues."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import ArpackError, ArpackNoConvergence, LinearOperator, eigs, splu

from odesim.base.arrays import Array
from odesim.base.errors import ParamError
from odesim.dynamics.field import MOST_STATES, Field, independent
from odesim.dynamics.newton import CLOSE, FAR, MOST_ITERATIONS, ROUNDING, UNKNOWN
from odesim.ir.linear_systems import Dense, Jacobian, Sparse, Structured

MOST_LARGE = 200_000
"""The most states: the path of a run that is looked at for slow states takes 320 MB."""
MOST_LAWS = 64
"""The most numbers that laws hold: each is a full row and a full column."""
LEADING = 6
"""Eigenvalues that are computed."""
SINGULAR = 1e-12
"""The smallest singular value, relative to the size of the Jacobian, from which on it counts as singular."""
MOST_NULL = 8
"""The most directions beside those of the laws in which a Jacobian may be singular."""
HALVINGS = 12
"""How often a correction is halved that does not make the right-hand side smaller."""
NULL = 1e-9
"""The smallest singular value of the border's block, relative to the Jacobian, up to which it counts as 0."""
KRYLOV = 60
"""Products by which the outer eigenvalues are guessed."""
MARGIN = 1e-2
"""How far beside a guess, relative to the size of the Jacobian, eigenvalues are looked for by the inverse."""
RESTARTS = 50
"""Restarts of Arnoldi's method, after which what has not converged is left out."""
GUESSES, MOST_PLACES = 3, 8
"""Guesses beside which eigenvalues are looked for, and the most places."""
SAME = 1e-9
"""The distance, relative to the size of the Jacobian, within which an eigenvalue found from two places is one."""


class SingularError(ArithmeticError):
    """A matrix is singular to rounding."""


Solve = Callable[..., Array]


@dataclass(frozen=True)
class Operator:
    """The Jacobian J of f on the leaf of laws, J - weight N^T N: where N J = 0 its eigenvalues are those of J but for the zeros of N.

    J: of the equations. normals: N (k, n), orthonormal. discrete: whether f is the change y' - y of a Map, and its Jacobian J - 1.
    Unknowns beside the states (sums, and the k products with N) stay unknowns in a sparse matrix.
    """

    J: Jacobian
    normals: Array
    discrete: bool

    @property
    def n(self) -> int:
        """The number of states."""
        return self.normals.shape[1]

    def change(self, x: Array) -> Array:
        """The product (n,) of the Jacobian of f with x (n,), without the laws."""
        out = self.J @ x
        return out - x if self.discrete else out

    def __matmul__(self, x: Array) -> Array:
        return self.change(x) - self.weight * (self.normals.T @ (self.normals @ x))

    @cached_property
    def size(self) -> float:
        """The size of the Jacobian of f: of its product with a random vector."""
        x = np.random.default_rng(0).standard_normal(self.n)
        return float(np.linalg.norm(self.change(x)) / np.linalg.norm(x)) or 1.0

    @cached_property
    def weight(self) -> float:
        # not all eigenvalues lie beyond it: the root mean square of all is at most the size; a multiplier of 1 becomes 0
        return 1.0 if self.discrete else 10 * self.size

    @cached_property
    def extended(self) -> Any:
        """The matrix of -J of the equations and its own unknowns (m, m), sparse, and dense where J is."""
        J = self.J
        if isinstance(J, Dense):
            return -J.J
        if isinstance(J, Sparse):
            return J.pattern.matrix(J.entries)
        N, p = J.blocks.shape[:2]
        rows = np.broadcast_to(J.places[:, :, None], (N, p, p)).ravel()
        columns = np.broadcast_to(J.places[:, None, :], (N, p, p)).ravel()
        blocks = sparse.csc_array((-J.blocks.ravel(), (rows, columns)), shape=(self.n, self.n))
        if not J.U.shape[1]:
            return blocks
        return sparse.block_array(
            [[blocks, -sparse.csc_array(J.U)], [-sparse.csc_array(J.G.T), sparse.eye_array(J.U.shape[1])]], format="csc"
        )

    def terms(self, d: Array) -> Array:
        """The sizes (n,) of the terms of the Jacobian's product with d (n,)."""
        J, n = self.J, self.n
        if isinstance(J, Dense):
            out = np.abs(J.J) @ np.abs(d)
        elif isinstance(J, Structured):
            out = abs(self.extended)[:n] @ np.concatenate([np.abs(d), np.abs(J.G).T @ np.abs(d)])
        else:
            out = abs(self.extended)[:n] @ np.abs(np.concatenate([d, J._others(d)]))
        return np.asarray(out + np.abs(d) if self.discrete else out)

    def solver(self, shift: complex = 0.0, left: Array | None = None, right: Array | None = None) -> Solve:
        """The solver (b, transposed=False) -> x of (shift - self) x = b, or of the transposed matrix. Raises SingularError.

        left (n, m), right (m, n): a border [[shift - self, left], [right, 0]]; b and x then have m more numbers.
        """
        n, k = self.n, len(self.normals)
        m = 0 if right is None else len(right)
        shift = shift + 1.0 if self.discrete else shift
        if isinstance(self.J, Dense):
            A = self.extended + self.weight * (self.normals.T @ self.normals)
            A = A.astype(complex) if isinstance(shift, complex) else A
            A[np.diag_indices(n)] += shift
            if left is not None and right is not None:
                A = np.block([[A, left], [right, np.zeros((m, m))]])
            return _dense_solver(A)
        inner = self.extended.shape[0]
        rows = [[self.extended + sparse.diags_array(np.where(np.arange(inner) < n, shift, 0.0))]]

        def padded(block: Array, width: int) -> Any:  # a block (n, r) beside unknowns of which there are more
            return sparse.csc_array(np.vstack([block, np.zeros((width - n, block.shape[1]))]))

        if k:
            N = padded(self.normals.T, inner)
            rows = [[*rows[0], self.weight * N], [-N.T, sparse.eye_array(k)]]
        if left is not None and right is not None:
            whole = sparse.block_array(rows, format="csc")
            rows = [[whole, padded(left, inner + k)], [padded(right.T, inner + k).T, sparse.csc_array((m, m))]]
        A = sparse.block_array(rows, format="csc")
        if not np.isfinite(A.data).all():
            raise SingularError
        try:
            lu: Any = splu(A)
        except RuntimeError:  # exactly singular
            raise SingularError from None
        total = A.shape[0]
        places = np.concatenate([np.arange(n), np.arange(total - m, total)])

        def solve(b: Array, transposed: bool = False) -> Array:
            whole = np.zeros(total, np.result_type(A.dtype, b.dtype))
            whole[places] = b
            turn, matrix = ("T", A.T) if transposed else ("N", A)
            x = lu.solve(whole, turn)
            return np.asarray((x + lu.solve(whole - matrix @ x, turn))[places])

        return solve


def _dense_solver(A: Array) -> Solve:
    """The solver of A x = b by LU decomposition. Raises SingularError."""
    from scipy.linalg import lu_factor, lu_solve

    if not np.isfinite(A).all():
        raise SingularError
    factors: Any = lu_factor(A)
    if not np.all(np.diag(factors[0])):
        raise SingularError
    return lambda b, transposed=False: lu_solve(factors, b, trans=1 if transposed else 0)


@dataclass(frozen=True)
class Correction:
    """The solution d (n,) of J d = b on the leaf, of least norm where J is singular beyond the laws.

    null, left (n, c): orthonormal, the directions in which it is, J null = 0 and left^T J = 0.
    """

    solve: Solve
    null: Array
    left: Array

    def __call__(self, b: Array) -> Array:
        d = self.solve(-b)
        return d - self.null @ (self.null.T @ d)


def correction_of(J: Operator) -> Correction | None:
    """The solver of a Newton step; None where J is singular in more directions than are looked for."""
    n, rng = J.n, np.random.default_rng(1)
    probe = rng.standard_normal(n)
    try:
        solve = J.solver()
        x = solve(probe)
        if np.isfinite(x).all() and np.linalg.norm(x) * J.size * SINGULAR <= 1.0:  # beside the probe's part in one direction
            return Correction(solve, np.zeros((n, 0)), np.zeros((n, 0)))
    except SingularError:
        pass
    # [[-J, B], [C, 0]] with random B and C is regular, and the last block S of its inverse is singular in as many directions as J is:
    # W. Govaerts, Numerical methods for bifurcations of dynamical equilibria (2000), section 3.2
    B, C = rng.standard_normal((n, MOST_NULL)) * J.size / np.sqrt(n), rng.standard_normal((MOST_NULL, n)) / np.sqrt(n)
    try:
        bordered = J.solver(left=B, right=C)
    except SingularError:
        return None
    border = np.zeros((MOST_NULL, n + MOST_NULL))
    border[:, n:] = np.eye(MOST_NULL)
    columns, turned = np.stack([bordered(e) for e in border], axis=1), np.stack([bordered(e, transposed=True) for e in border], axis=1)
    if not (np.isfinite(columns).all() and np.isfinite(turned).all()):
        return None
    V, S = columns[:n], columns[n:]
    U, s, rows = np.linalg.svd(S)
    free = s <= NULL * max(J.size, s[0])
    if free.all():
        return None

    def least(b: Array) -> Array:
        # the unknowns of the border are made 0 by another right-hand side C d, as far as b is met at all
        z = bordered(np.concatenate([b, np.zeros(MOST_NULL)]))
        return np.asarray(z[:n] - V @ np.linalg.lstsq(S, z[n:], rcond=NULL)[0])

    return Correction(least, np.linalg.qr(V @ rows[free].T)[0], np.linalg.qr(turned[:n] @ U[:, free])[0])


@dataclass(frozen=True)
class LargeRoot:
    """A state y (n,) where f is 0 to rounding. J: the Jacobian on its leaf; slack: how far it may be off."""

    y: Array
    residual: float
    J: Operator
    slack: float


@dataclass(frozen=True)
class Point:
    """A state y (n,) with f there, the laws' values less those of the start h (k,), their slopes (k, n), and the Jacobian on the leaf."""

    y: Array
    f: Array
    h: Array
    slopes: Array
    J: Operator

    @property
    def right(self) -> Array:
        """The right-hand side (n,) of Newton's equation on the leaf."""
        N = self.J.normals
        if not len(N):
            return -self.f
        return np.asarray(self.J.weight * (N.T @ (N @ np.linalg.lstsq(self.slopes, self.h)[0])) - self.f)

    def is_met(self, d: Array, left: Array) -> bool:
        """Whether with the correction d (n,) f and the laws are as they should be, not just as near as they can be.

        Each equation is held against its own terms: one that fades, as exp(-y), is small, but not beside its slope. In the directions left
        (n, c), where no correction helps, f has to be rounding.
        """
        J, size = self.J, np.maximum(np.abs(self.y), 1.0)
        terms = J.terms(size)
        met = np.all(np.abs(J @ d - self.right) <= UNKNOWN * terms) and np.all(
            np.abs(left.T @ self.f) <= ROUNDING * (np.abs(left).T @ terms)
        )
        return bool(met and np.all(np.abs(self.h) <= UNKNOWN * (np.abs(self.slopes) @ size)))


def find_large_root(field: Field, start: Array) -> LargeRoot | None:
    """The rest state to which Newton's method comes from start (n,), on the leaf of the declared laws there; None where to none.

    Raises ParamError for too many laws.
    """
    laws = field.constants(start)
    kept = field.kept(laws, start)
    if len(kept) > MOST_LAWS:
        raise ParamError(
            f"{field.system.name} declares {len(kept)} numbers that no run changes, and of more than {MOST_STATES} states {MOST_LAWS} are "
            "the most for rest states"
        )

    def at(y: Array) -> Point:
        rows = np.vstack([np.zeros((0, field.n)), *(field.slopes(law, y) for law in laws)])
        finite = np.isfinite(rows).all(axis=1)
        J = Operator(field.sparse_jacobian(y), independent(rows[finite]), field.system.discrete)
        return Point(y, field(y), (field.kept(laws, y) - kept)[finite], rows[finite], J)

    with np.errstate(all="ignore"):
        return _iterated(at, start, _whole) or _iterated(at, start, _halved)


At = Callable[[Array], Point]


def _iterated(at: At, start: Array, choose: Callable[[At, Point, Array], Point | None]) -> LargeRoot | None:
    """The root to which corrections chosen like this lead from start (n,)."""
    here, before = at(start), None
    for _ in range(MOST_ITERATIONS):
        if not (np.isfinite(here.f).all() and np.isfinite(here.h).all() and np.isfinite(here.J.size)):
            return None
        correct = correction_of(here.J)
        if correct is None:
            return None
        d, size = correct(here.right), np.maximum(np.abs(here.y), 1.0)
        longest, most = float(np.max(np.abs(d))), float(np.max(size))
        noise = ROUNDING * here.J.terms(size)
        small = longest <= CLOSE * most or (longest <= UNKNOWN * most and bool(np.all(np.abs(here.f) <= noise)))
        if small:
            rests = here.is_met(d, correct.left) and not (before is not None and _fades(before, here))
            return _accepted(at, here, d, correct, noise) if rests else None
        there = choose(at, here, d) if np.isfinite(d).all() else None
        if there is None:
            return None
        here, before = there, here
    return None


def _fades(before: Point, here: Point) -> bool:
    """Whether a right-hand side came to 0 by rounding alone, as odesim.dynamics.newton.fades says: its slope fades with it."""
    d = here.y - before.y
    if np.max(np.abs(d)) <= FAR * max(1.0, float(np.max(np.abs(here.y)))):
        return False
    return bool(np.any(np.abs(here.J.change(d)) < 0.5 * np.abs(before.J.change(d)) - ROUNDING * before.J.terms(d)))


def _whole(at: At, here: Point, d: Array) -> Point:
    """The state after Newton's correction, but no leap beyond what the state is like."""
    return at(here.y + d * min(1.0, max(1.0, float(np.max(np.abs(here.y)))) / max(float(np.max(np.abs(d))), 1e-300)))


def _halved(at: At, here: Point, d: Array) -> Point | None:
    """The state after the correction, halved until f is smaller; None where it never is."""
    for k in range(HALVINGS):
        there = at(here.y + d / 2**k)
        if np.hypot(np.linalg.norm(there.f), np.linalg.norm(there.h)) < np.hypot(np.linalg.norm(here.f), np.linalg.norm(here.h)):
            return there
    return None


def _accepted(at: At, here: Point, d: Array, correct: Correction, noise: Array) -> LargeRoot:
    """The root, after a last correction where that makes f smaller."""
    better = at(here.y + d)
    if np.max(np.abs(better.f)) < np.max(np.abs(here.f)):
        here = better
    rng, n = np.random.default_rng(2), len(noise)
    longest = UNKNOWN * max(1.0, float(np.max(np.abs(here.y))))
    doubt = correct(noise * rng.choice([-1.0, 1.0], n)) + longest * (correct.null @ np.ones(correct.null.shape[1]))
    doubt = np.abs(doubt) + np.abs(d)
    doubt *= min(1.0, longest / max(float(np.max(doubt)), 1e-300))
    beside = at(here.y + doubt).J
    # how far eigenvalues move with the state, by products with signs: the largest row, of which a random sum is a part
    moved = [np.max(np.abs(beside.change(z) - here.J.change(z))) for z in rng.choice([-1.0, 1.0], (3, n))]
    return LargeRoot(here.y, float(np.max(np.abs(here.f))), here.J, 4 * float(max(moved)))


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
    slack = 1e4 * float(np.finfo(float).eps) * max(J.size, float(J.discrete)) + root.slack
    everything = _all_values(J)
    values = leading_values(J) if everything is None else everything
    values = np.where(np.abs(values.imag) <= slack, values.real, values)
    rates = np.abs(values) - 1.0 if J.discrete else values.real
    order = np.lexsort((-values.imag, -rates))
    values, rates = values[order], rates[order]
    grow, rest = int(np.sum(rates > slack)), int(np.sum(np.abs(rates) <= slack))
    if not len(values):
        return LeadingSpectrum(values, np.nan, "unknown")
    if everything is not None:
        kind = ("unstable" if grow == len(values) else "saddle") if grow else "neutral" if rest else "stable"
        return LeadingSpectrum(values[:LEADING], grow, kind)
    if grow == len(values):  # and how many more may not be known; where any decays, it is a saddle all the same
        count = _count_growing(J, slack)
        kind = ("unstable" if count == J.n else "saddle") if np.isfinite(count) else "saddle" if _some_decay(J, slack) else "unknown"
        return LeadingSpectrum(values, count, kind)
    return LeadingSpectrum(values, grow, "saddle" if grow else "neutral" if rest else "stable")


def _all_values(J: Operator) -> Array | None:
    """All eigenvalues (n,) where the Jacobian is blocks alone and no law holds; else None."""
    if not isinstance(J.J, Structured) or J.J.U.shape[1] or len(J.normals):
        return None
    values = np.linalg.eigvals(J.J.blocks).ravel().astype(complex)
    return np.concatenate([values, np.zeros(J.n - len(values))])


def ritz_values(J: Operator) -> Array:
    """The eigenvalues (m,) of J (a Map: of J + 1) on the space of its first products with a random vector: its outer ones, roughly."""
    m = min(J.n, KRYLOV)
    Q, H = np.zeros((m + 1, J.n)), np.zeros((m + 1, m))
    Q[0] = np.random.default_rng(0).standard_normal(J.n)
    Q[0] /= np.linalg.norm(Q[0])
    for k in range(m):
        q = J @ Q[k] + (Q[k] if J.discrete else 0.0)
        for _ in range(2):  # twice is enough: what is left is orthogonal to rounding
            part = Q[: k + 1] @ q
            H[: k + 1, k] += part
            q = q - part @ Q[: k + 1]
        H[k + 1, k] = np.linalg.norm(q)
        if H[k + 1, k] <= 1e-12 * J.size:
            return np.asarray(np.linalg.eigvals(H[: k + 1, : k + 1]), complex)
        Q[k + 1] = q / H[k + 1, k]
    return np.asarray(np.linalg.eigvals(H[:m, :m]), complex)


def values_near(J: Operator, place: complex) -> Array:
    """The eigenvalues of J (a Map: of J + 1) nearest to a place that is none, none where they are not found."""
    real = place.imag == 0
    at, kind = (place.real, float) if real else (place, complex)
    try:
        solve = J.solver(at - 1.0 if J.discrete else at)
        first = np.random.default_rng(0).standard_normal(J.n).astype(kind)  # the same bits in every run
        inverse = LinearOperator((J.n, J.n), matvec=lambda x: solve(x.ravel()), dtype=kind)
        factors: Any = eigs(inverse, 2 * LEADING, v0=first, ncv=min(J.n, 8 * LEADING), maxiter=RESTARTS, return_eigenvectors=False)
    except ArpackNoConvergence as partial:
        factors = partial.eigenvalues
    except (SingularError, ArpackError):
        return np.zeros(0, complex)
    return np.asarray(at - 1 / np.asarray(factors, complex))


def leading_values(J: Operator) -> Array:
    """The eigenvalues (at most LEADING) that grow fastest, none where Arnoldi's method finds none.

    Where many lie close together, as of a long chain, products alone do not part them: they say roughly where the fastest ones are, and
    beside those they are found by the inverse.
    """

    def rate(z: Any) -> Any:
        return np.abs(z) if J.discrete else np.real(z)

    def beyond(z: complex) -> complex:
        z = complex(z.real, z.imag if abs(z.imag) > margin else 0.0)
        return z * (1 + margin / max(abs(z), margin)) if J.discrete else z + margin

    margin, found = MARGIN * max(J.size, float(J.discrete)), np.zeros(0, complex)
    guess = ritz_values(J)
    guess = guess[np.argsort(-rate(guess))]
    places = [beyond(z) for z in guess[guess.imag >= 0][:GUESSES]]
    tried = list[complex]()
    while places and len(tried) < MOST_PLACES:
        place = places.pop(0)
        if any(abs(place - other) <= margin for other in tried):
            continue
        tried.append(place)
        near = values_near(J, place)
        near = np.concatenate([near, near[near.imag > margin].conj()]) if place.imag else near
        fresh = np.array([z for z in near if not np.any(np.abs(found - z) <= SAME * J.size)], complex)
        found = np.concatenate([found, fresh])
        if len(fresh) and rate(top := fresh[np.argmax(rate(fresh))]) > max(map(rate, tried)):  # the guess was too low
            places.insert(0, beyond(complex(top.real, abs(top.imag))))
    return found[np.argsort(-rate(found), kind="stable")][:LEADING]


def _count_growing(J: Operator, slack: float) -> float:
    """How many eigenvalues are above slack, by the signs of pivots (Sylvester); NaN unless the Jacobian is sparse, symmetric and alone."""
    if J.discrete or len(J.normals) or not isinstance(J.J, Sparse) or J.J.pattern.unknowns > J.n:
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
    values = ritz_values(J)
    rates = np.abs(values) - 1.0 if J.discrete else values.real
    return bool(np.any(rates < -slack - MARGIN * J.size))

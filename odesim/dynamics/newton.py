"""Newton's method for a rest state: damped as Levenberg and Marquardt do, least norm where the Jacobian is singular."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from odesim.base.arrays import Array
from odesim.dynamics.field import Field, independent, null_rows
from odesim.symbolic.parts import Invariant

MOST_ITERATIONS = 60
CLOSE = 1e-10
"""The last correction of an accepted state, relative to the largest of its numbers and the unit."""
DAMPING = (0.0, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0)
"""Damping that is tried, as parts of the largest singular value."""
FAR = 1e-3
"""The length of a correction, relative to the largest number and the unit, from which on it is no last one of a curved function."""
UNKNOWN = 1e-5
"""The most that a number of an accepted state is off, as in CLOSE, at roots of higher order."""
BESIDE, ALIKE = 1e-6, 1e-6
"""How far from a state its Jacobian is looked at, as in CLOSE, and the change there, beside its size, that may be rounding."""
ROUNDING = 16 * float(np.finfo(float).eps)


@dataclass(frozen=True)
class Root:
    """A state y (n,) where f is 0 to rounding. J (n, n): the Jacobian; slack: how far it may be off; normals (k, n): of the leaf.

    kink: whether the Jacobian jumps there.
    """

    y: Array
    residual: float
    J: Array
    slack: float
    normals: Array
    kink: bool


@dataclass(frozen=True)
class Spectrum:
    """Eigenvalues (m,) of a rest state on its leaf, the fastest growing first, and how many grow and neither grow nor decay.

    At a kink there are none: NaN.
    """

    values: Array
    growing: float
    resting: int

    @property
    def stability(self) -> str:
        """stable, saddle, unstable (in every direction), neutral (nothing grows, and not everything decays), or at a kink unknown."""
        if np.isnan(self.growing):
            return "unknown"
        if self.growing:
            return "unstable" if self.growing == len(self.values) else "saddle"
        return "neutral" if self.resting else "stable"


def find_root(field: Field, start: Array, unit: float = 1.0) -> Root | None:
    """The rest state to which Newton's method comes from start (n,), on the leaf of the invariants there; None where to none.

    unit: the size of states, at most 1: those of nanomoles in mol are 1e-9, and what is small beside 1 is not small beside them.

    First without damping: (mu - v) exp(v^2/2) grows on the way to its root, and whoever makes f smaller with every step stays away. Then
    with damping.
    """
    laws = field.constants(start)
    fixed, kept = field.weights @ start, field.kept(laws, start)

    def residual(y: Array) -> Array:
        return np.concatenate([field(y), field.weights @ y - fixed, field.kept(laws, y) - kept])

    with np.errstate(all="ignore"):
        return _iterated(field, start, unit, laws, residual, _whole) or _iterated(field, start, unit, laws, residual, _damped)


Residual = Callable[[Array], Array]
Choice = Callable[["Step", Array, Array, Residual], Array | None]


def _iterated(field: Field, y: Array, unit: float, laws: tuple[Invariant, ...], residual: Residual, choose: Choice) -> Root | None:
    """The root to which corrections chosen like this lead from y (n,)."""
    values, last = residual(y), (np.zeros(len(y)), np.zeros((len(y), len(y))))
    for _ in range(MOST_ITERATIONS):
        equation = _equation(field, y, laws, values)
        if equation is None:
            return None
        J, A, G, weight, step = equation
        U, s, size = step.U, step.s, size_of(y, unit)
        noise, beside_1 = (ROUNDING * (np.abs(U).T @ (np.abs(A) @ np.maximum(np.abs(y), least))) for least in (unit, 1.0))
        # terms of f may be as large as 1 beside states of any unit. But where this excused any correction, each state of 1e-20 was at rest
        noise = np.maximum(noise, np.minimum(beside_1, UNKNOWN * size * s))
        if step.is_small(CLOSE * size, noise):
            # where more is asked than there are numbers, the least squares of what cannot be met are no root: z' = -z that keeps z^2 = 1
            beyond = float(np.linalg.norm(G - U @ (U.T @ G)))
            met = beyond <= CLOSE * s[0] * size and not fades(J, *last, size)
            return _accepted(field, y, unit, step, noise, laws, residual) if met else None
        d = choose(step, y, G, lambda y, weight=weight: residual(y) * weight)  # type: ignore[misc]
        if d is None:
            return None
        y, values, last = y + d, residual(y + d), (d, J)
    return None


def _equation(field: Field, y: Array, laws: tuple[Invariant, ...], values: Array) -> tuple[Array, Array, Array, Array, "Step"] | None:
    """The Jacobian (n, n) at y (n,), and Newton's equation A d = -G (m, n), its rows' weights and its Step; None if not finite."""
    J, normals = field.jacobian(y), field.normals(laws, y)
    # invariants weigh as much as the right-hand side does: beside rows of 1 a Jacobian of 1e-15, as of exp(-y), would be rounding
    weight = np.where(np.arange(len(values)) < len(y), 1.0, float(np.linalg.norm(J)) or 1.0)
    A = np.vstack([J, normals])
    if len(A) != len(values):
        return None
    A, G = A * weight[:, None], values * weight
    if not (np.isfinite(A).all() and np.isfinite(G).all()):  # with their weights: the norm of a Jacobian of 1e200 overflows
        return None
    U, s, V = singular(A)
    return J, A, G, weight, Step(U, s, V, -(U.T @ G))


def singular(A: Array) -> tuple[Array, Array, Array]:
    """(U (m, k), singular values (k,), V (k, n)) of A (m, n), finite."""
    try:
        return np.linalg.svd(A, full_matrices=False)
    except np.linalg.LinAlgError:
        # LAPACK's divide and conquer, which numpy has, gives up on some matrices whose entries reach over many powers of ten, as those of
        # a softmax that is full do; the iteration of gesvd takes twice as long and does not
        from scipy.linalg import svd

        U, s, V = svd(A, full_matrices=False, lapack_driver="gesvd")
        return U, s, V


def fades(J: Array, d: Array, before: Array, size: float) -> bool:
    """Whether a right-hand side came to 0 by rounding alone: the last correction d (n,) was long, and no step along a straight line.

    1 - 1/(1 + exp(-y)) is 0 in float64 from y = 37 on. Newton's corrections there are 1, and each Jacobian (n, n) a third of the one
    before; where a long correction leads to a root, the Jacobian stays as it is.
    """
    if np.max(np.abs(d)) <= FAR * size:
        return False
    line, rounding = np.abs(before @ d), ROUNDING * (np.abs(before) @ np.abs(d))
    return bool(np.any(np.abs((J - before) @ d) > 0.5 * line + rounding))


def _whole(step: "Step", y: Array, G: Array, residual: Residual) -> Array | None:
    """Newton's correction (n,), but no leap beyond what the state is like."""
    return no_longer(step.damped(0.0), size_of(y))


def size_of(y: Array, unit: float = 1.0) -> float:
    """The size of a state y (n,): its largest number, or the unit."""
    return max(unit, float(np.max(np.abs(y))))


def no_longer(d: Array, most: float) -> Array:
    """d (n,), shortened where its largest number is above most."""
    return np.asarray(d * min(1.0, most / max(float(np.max(np.abs(d))), 1e-300)))


def _damped(step: "Step", y: Array, G: Array, residual: Residual) -> Array | None:
    """The least damped correction (n,) that makes f smaller; None where none does."""
    for damping in DAMPING:
        d = step.damped(damping)
        if np.linalg.norm(residual(y + d)) < np.linalg.norm(G):
            return d
    return None


@dataclass(frozen=True)
class Step:
    """A linear least-squares problem: singular vectors U (m, n), V (n, n), values s (n,), and its right-hand side in them (n,)."""

    U: Array
    s: Array
    V: Array
    right: Array

    def damped(self, damping: float) -> Array:
        """The correction (n,) of this damping; without damping of least norm."""
        s, most = self.s, self.s[0]
        if damping:
            return np.asarray(self.V.T @ (s * self.right / (s**2 + (damping * most) ** 2)))
        large = s > len(s) * np.finfo(float).eps * most
        return np.asarray(self.V.T @ np.where(large, self.right / np.where(large, s, 1.0), 0.0))

    def is_small(self, length: float, noise: Array) -> bool:
        """Whether the correction in every direction is at most this long, or due to rounding, which is noise (n,) there.

        Both are asked of each direction alone: f = -exp(-y) never rests, and at y = 40 no norm tells that from rounding.
        """
        return bool(np.all((np.abs(self.right) <= length * self.s) | (np.abs(self.right) <= noise)))


def _accepted(field: Field, y: Array, unit: float, step: Step, noise: Array, laws: tuple[Invariant, ...], residual: Residual) -> Root:
    """The root, after a last correction where that makes f smaller, and more of them where noise, which is beside 1, is not CLOSE."""
    J, last, after = field.jacobian(y), step, np.max(np.abs(field(y)))
    for _ in range(MOST_ITERATIONS):
        d, before = last.damped(0.0), after
        after = np.max(np.abs(field(y + d)))
        if not after < before:
            break
        y = y + d
        J = field.jacobian(y)
        equation = None if np.max(np.abs(d)) <= CLOSE * size_of(y, unit) else _equation(field, y, laws, residual(y))
        if equation is None:
            break
        last = equation[-1]
    # at a root of higher order the state is known to a few digits only, and so are its eigenvalues: how far they move tells which are 0
    doubt = replace(step, right=np.maximum(np.abs(step.right), noise)).damped(0.0)
    doubt = no_longer(doubt, UNKNOWN * size_of(y, unit))
    slack = 4 * float(np.linalg.norm(field.jacobian(y + doubt) - J, 2))
    # what no state about the start changes may be changed here, where a condition is another
    weights, normals = field.weights, field.normals(laws, y)
    rows = [null_rows(weights, J) if len(weights) else weights, normals[len(weights) :]]
    leaf = independent(np.vstack(rows))
    return Root(y, float(np.max(np.abs(field(y)))), J, slack, leaf, at_kink(field, y, unit, leaf))


def at_kink(field: Field, y: Array, unit: float, normals: Array) -> bool:
    """Whether the Jacobian jumps at y (n,) on its leaf: its values on two sides of y come no nearer to each other where these do.

    Two opposite ways lie on both sides of every boundary through y. That of -x above 0 and of 2 x below is -1 at 0, and 0 is not stable.
    """
    if len(normals) >= len(y):
        return False
    d = np.random.default_rng(0).standard_normal(len(y))
    d -= normals.T @ (normals @ d)
    d *= BESIDE * size_of(y, unit) / float(np.max(np.abs(d)))
    far, near = (float(np.linalg.norm(field.jacobian(y + d / k) - field.jacobian(y - d / k))) for k in (1, 16))
    return near > max(far / 2, ALIKE * float(np.linalg.norm(field.jacobian(y + d / 16))))


def spectrum_of(root: Root, *, discrete: bool) -> Spectrum:
    """The eigenvalues of a root on its leaf; of a Map the multipliers of an update."""
    n = len(root.y)
    tangent = np.linalg.qr(root.normals.T, mode="complete")[0][:, len(root.normals) :]
    values = np.linalg.eigvals(tangent.T @ root.J @ tangent) + (1.0 if discrete else 0.0)
    slack = 1e3 * n * float(np.finfo(float).eps) * max(float(np.linalg.norm(root.J, 2)), float(discrete)) + root.slack
    return Spectrum(np.full_like(values, np.nan), np.nan, 0) if root.kink else counted_spectrum(values, slack, discrete)


def counted_spectrum(values: Array, slack: float, discrete: bool) -> Spectrum:
    """Eigenvalues (n,) that may be off by slack as a Spectrum."""
    values, rates = fastest_first(np.where(np.abs(values.imag) <= slack, values.real, values), discrete)
    return Spectrum(values, int(np.sum(rates > slack)), int(np.sum(np.abs(rates) <= slack)))


def fastest_first(values: Array, discrete: bool) -> tuple[Array, Array]:
    """Eigenvalues (n,), of a Map multipliers, the fastest growing first, and their rates."""
    values = values.astype(complex)
    rates = np.abs(values) - 1.0 if discrete else values.real
    order = np.lexsort((-values.imag, -rates))
    return values[order], rates[order]

"""Rest states of more states than a dense matrix is for: Newton's method by sparse elimination, or by products with the Jacobian alone."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import reverse_cuthill_mckee
from scipy.sparse.linalg import splu

from odesim.base.arrays import Array
from odesim.base.errors import ParamError, counted
from odesim.dynamics.field import MOST_STATES, Field, independent
from odesim.dynamics.newton import ALIKE, BESIDE, CLOSE, FAR, MOST_ITERATIONS, ROUNDING, UNKNOWN, no_longer, size_of
from odesim.ir.linear_systems import Dense, Jacobian, LeastResiduals, Pattern, Products, Sparse, Structured

# Where a Jacobian, or its factors, are too large to be written down: what its products say of their terms, and what factors take.

LOOSE, TIGHT = 0.1, 1e-6
"""The largest and the least residual, beside the right-hand side, to which a Newton step is solved. The last step is solved to the least:
a looser one may be short because it leaves out what is slow."""
PROBES = 4
"""Random directions by which the sizes of rows are estimated: that all say less than a tenth of one happens to one row in 40,000."""
MOST_FILLED = 200_000_000
"""The most entries of factors: they take 3 GB and a minute or two, for random graphs from 27,000 nodes on."""
HUB = 10.0
"""An unknown with so many entries, as a multiple of the root of all, is a sum over everything, which is eliminated last."""


def sizes_of_terms(J: Products, d: Array) -> Array:
    """The sizes (n,) of the terms of the product J d, in the mean square."""
    # normal: of signs two equal terms cancel half of the time
    ways = np.random.default_rng(3).standard_normal((PROBES, len(d)))
    return np.asarray(np.sqrt(np.mean([(J @ (d * z)) ** 2 for z in ways], axis=0)))


def filled(pattern: Pattern) -> int:
    """About how many entries a factor of a sparse matrix has: its profile in the order of Cuthill and McKee, without full rows.

    Measured, both factors of SuperLU together have 0.5 of it for random graphs and grids in the plane, 2 for grids in space.
    """
    matrix = pattern.matrix(np.ones(len(pattern.rows)))
    graph = (matrix + matrix.T).tocsr()
    few = np.flatnonzero(np.diff(graph.indptr) <= HUB * np.sqrt(pattern.unknowns))
    graph = sparse.csr_matrix(graph[few][:, few])
    place = np.argsort(reverse_cuthill_mckee(graph, symmetric_mode=True))
    first = np.arange(len(few))
    np.minimum.at(first, np.repeat(place, np.diff(graph.indptr)), place[graph.indices])
    return int(np.sum(np.arange(len(few)) - first))


MOST_LARGE = 200_000
"""The most states: the path of a run that is looked at for slow states takes 320 MB."""
MOST_LAWS = 64
"""The most numbers that laws hold: each is a full row and a full column."""
SINGULAR = 1e-12
"""The smallest singular value, relative to the size of the Jacobian, from which on it counts as singular."""
LATE = 1e-3
"""The size of the rows of sums and laws beside those of states, by which pivots are chosen."""
MOST_NULL = 8
"""The most directions beside those of the laws in which a Jacobian may be singular."""
STUCK = 0.9
"""The residual that products leave, beside the right-hand side, from which on a correction is none."""
HALVINGS = 12
"""How often a correction is halved that does not make the right-hand side smaller."""
NULL = 1e-9
"""The smallest singular value of the border's block, relative to the Jacobian, up to which it counts as 0."""


class SingularError(ArithmeticError):
    """A matrix is singular to rounding."""


Solve = Callable[..., Array]


@dataclass(frozen=True)
class Operator:
    """The Jacobian J of f on the leaf of laws, J - weight N^T N: where N J = 0 its eigenvalues are those of J but for the zeros of N.

    J: of the equations. normals: N (k, n), orthonormal. discrete: whether f is the change y' - y of a Map, and its Jacobian J - 1.
    Unknowns beside the states (sums, and the k products with N) stay unknowns in a sparse matrix.
    """

    J: Jacobian | Products
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
    def by_products(self) -> bool:
        """Whether equations are solved by products with J: where there is no matrix, and where its factors would fill up."""
        return isinstance(self.J, Products) or (isinstance(self.J, Sparse) and filled(self.J.pattern) > MOST_FILLED)

    @cached_property
    def extended(self) -> Any:
        """The matrix of -J of the equations and its own unknowns (m, m), sparse, and dense where J is."""
        J = self.J
        assert not isinstance(J, Products)
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
        if isinstance(J, Products):
            out = sizes_of_terms(J, d)
        elif isinstance(J, Dense):
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
        # with small rows of what is no state pivots stay on the diagonal: one taken from the full row of a sum would fill the whole matrix
        scale = np.where(np.arange(A.shape[0]) < n, 1.0, LATE) / np.maximum(abs(A).max(axis=1).toarray().ravel(), 1e-300)
        try:
            lu: Any = splu((sparse.diags_array(scale) @ A).tocsc())
        except RuntimeError:  # exactly singular
            raise SingularError from None
        total = A.shape[0]
        places = np.concatenate([np.arange(n), np.arange(total - m, total)])

        def solve(b: Array, transposed: bool = False) -> Array:
            whole = np.zeros(total, np.result_type(A.dtype, b.dtype))
            whole[places] = b
            matrix = A.T if transposed else A

            def rough(b: Array) -> Array:
                return scale * lu.solve(b, "T") if transposed else lu.solve(scale * b)

            x = rough(whole)
            return np.asarray((x + rough(whole - matrix @ x))[places])

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


def correction_of(J: Operator, tolerance: float, floor: float) -> Correction | None:
    """The solver of a Newton step; None where J is singular in more directions than are looked for.

    tolerance, floor: the residual at which products stop, beside the right-hand side and in all. What is rounding, and no J d meets, would
    become a long correction where J is singular.
    """
    n, rng = J.n, np.random.default_rng(1)
    if J.by_products:
        none = np.zeros((n, 0))

        def by_products(b: Array) -> Array:
            return LeastResiduals(lambda x: -(J @ x), n)(b, max(tolerance * float(np.linalg.norm(b)), floor))[0]

        return Correction(by_products, none, none)
    probe = rng.standard_normal(n)
    try:
        solve = J.solver()
        x = solve(probe)
        if np.isfinite(x).all() and np.linalg.norm(x) * J.size * SINGULAR <= 1.0:  # beside the probe's part in one direction
            return Correction(solve, np.zeros((n, 0)), np.zeros((n, 0)))
    except SingularError:
        pass
    # [[-J, B], [C, 0]] with random B and C is regular, and the last block S of its inverse is singular in as many directions as J is
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
    """A state y (n,) where f is 0 to rounding. J: the Jacobian on its leaf; slack: how far it may be off; kink: whether it jumps there."""

    y: Array
    residual: float
    J: Operator
    slack: float
    kink: bool


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
        terms, off = J.terms(size), J @ d - self.right
        met = np.all(np.abs(off) <= UNKNOWN * terms) and np.all(np.abs(left.T @ self.f) <= ROUNDING * (np.abs(left).T @ terms))
        if J.by_products:  # which do not say what is left of f
            met &= np.linalg.norm(off) <= max(LOOSE * np.linalg.norm(self.right), ROUNDING * np.linalg.norm(terms))
        return bool(met and np.all(np.abs(self.h) <= UNKNOWN * (np.abs(self.slopes) @ size)))

    def is_solved(self, d: Array) -> bool:
        """Whether the correction d (n,) solves Newton's equation in part: products find none, or one of rounding, that J cannot meet."""
        J, b = self.J, float(np.linalg.norm(self.right))
        if not J.by_products:
            return True
        return bool(np.linalg.norm(J @ d - self.right) <= STUCK * b and np.linalg.norm(d) * J.size * SINGULAR <= b)


def find_large_root(field: Field, start: Array, unit: float = 1.0) -> LargeRoot | None:
    """The rest state to which Newton's method comes from start (n,), on the leaf of the declared laws there; None where to none.

    unit: the size of states, as odesim.dynamics.newton has it. Raises ParamError for too many laws.
    """
    laws = field.constants(start)
    kept = field.kept(laws, start)
    if len(kept) > MOST_LAWS:
        held = counted(len(kept), "number")
        raise ParamError(
            f"{field.system.name} declares {held} that no run changes, and of more than {MOST_STATES} states {MOST_LAWS} are the most for "
            "rest states"
        )

    def at(y: Array) -> Point:
        rows = np.vstack([np.zeros((0, field.n)), *(field.slopes(law, y) for law in laws)])
        finite = np.isfinite(rows).all(axis=1)
        J = Operator(field.large_jacobian(y), independent(rows[finite]), field.system.discrete)
        return Point(y, field(y), (field.kept(laws, y) - kept)[finite], rows[finite], J)

    with np.errstate(all="ignore"):
        return _iterated(at, start, unit, _whole) or _iterated(at, start, unit, _halved)


At = Callable[[Array], Point]


def _iterated(at: At, start: Array, unit: float, choose: Callable[[At, Point, Array], Point | None]) -> LargeRoot | None:
    """The root to which corrections chosen like this lead from start (n,)."""
    here, before, tolerance, least = at(start), None, LOOSE, 1.0
    for _ in range(MOST_ITERATIONS):
        if not (np.isfinite(here.f).all() and np.isfinite(here.h).all() and np.isfinite(here.J.size)):
            return None
        noise, beside_1 = (ROUNDING * here.J.terms(np.maximum(np.abs(here.y), size)) for size in (unit, 1.0))
        correct = correction_of(here.J, tolerance, least * float(np.linalg.norm(noise)))
        if correct is None:
            return None
        d = correct(here.right)
        longest, most = float(np.max(np.abs(d))), size_of(here.y, unit)
        small = longest <= CLOSE * most or (longest <= UNKNOWN * most and bool(np.all(np.abs(here.f) <= beside_1)))
        if small and here.J.by_products and tolerance > TIGHT:  # short because what is slow is left out?
            tolerance = TIGHT
            continue
        if small and here.is_met(d, correct.left):
            return None if before is not None and _fades(before, here, unit) else _accepted(at, here, unit, d, correct, noise)
        if small and not (here.J.by_products and least):
            return None
        if small:  # beside what is rounding of others, an equation may be far from met by its own terms
            least = 0.0
            continue
        there = choose(at, here, d) if np.isfinite(d).all() and here.is_solved(d) else None
        if there is None:
            return None
        # Eisenstat and Walker, SIAM J. Sci. Comput. 17 (1996), choice 2: as near as the linear model was good for in the last step
        ratio = float(np.linalg.norm(there.right) / np.linalg.norm(here.right))
        here, before, tolerance, least = there, here, float(np.clip(0.9 * ratio**2, TIGHT, LOOSE)), 1.0
    return None


def _fades(before: Point, here: Point, unit: float) -> bool:
    """Whether a right-hand side came to 0 by rounding alone, as odesim.dynamics.newton.fades says: its slope fades with it."""
    d = here.y - before.y
    if np.max(np.abs(d)) <= FAR * size_of(here.y, unit):
        return False
    return bool(np.any(np.abs(here.J.change(d)) < 0.5 * np.abs(before.J.change(d)) - ROUNDING * before.J.terms(d)))


def _whole(at: At, here: Point, d: Array) -> Point:
    """The state after Newton's correction, but no leap beyond what the state is like."""
    return at(here.y + no_longer(d, size_of(here.y)))


def _halved(at: At, here: Point, d: Array) -> Point | None:
    """The state after the correction, halved until f is smaller; None where it never is."""
    for k in range(HALVINGS):
        there = at(here.y + d / 2**k)
        if np.hypot(np.linalg.norm(there.f), np.linalg.norm(there.h)) < np.hypot(np.linalg.norm(here.f), np.linalg.norm(here.h)):
            return there
    return None


def _accepted(at: At, here: Point, unit: float, d: Array, correct: Correction, noise: Array) -> LargeRoot:
    """The root, after last corrections where they make f smaller, as odesim.dynamics.newton has them."""
    for _ in range(MOST_ITERATIONS):
        better = at(here.y + d)
        if not np.max(np.abs(better.f)) < np.max(np.abs(here.f)):
            break
        here = better
        again = None if np.max(np.abs(d)) <= CLOSE * size_of(here.y, unit) else correction_of(here.J, TIGHT, 0.0)
        if again is None:
            break
        d, correct = again(here.right), again
    rng, n = np.random.default_rng(2), len(noise)
    correct = correction_of(here.J, LOOSE, 0.0) or correct if here.J.by_products else correct
    longest = UNKNOWN * size_of(here.y, unit)
    doubt = correct(noise * rng.choice([-1.0, 1.0], n)) + longest * (correct.null @ np.ones(correct.null.shape[1]))
    doubt = no_longer(np.abs(doubt) + np.abs(d), longest)
    beside = at(here.y + doubt).J
    # how far eigenvalues move with the state, by products with signs: the largest row, of which a random sum is a part
    moved = [np.max(np.abs(beside.change(z) - here.J.change(z))) for z in rng.choice([-1.0, 1.0], (3, n))]
    return LargeRoot(here.y, float(np.max(np.abs(here.f))), here.J, 4 * float(max(moved)), _at_kink(at, here, unit))


def _at_kink(at: At, here: Point, unit: float) -> bool:
    """Whether the Jacobian jumps at a root, as odesim.dynamics.newton.at_kink says, by its product with a random vector."""
    rng, normals = np.random.default_rng(0), here.J.normals
    d, z = rng.standard_normal((2, len(here.y)))
    d -= normals.T @ (normals @ d)
    d *= BESIDE * size_of(here.y, unit) / float(np.max(np.abs(d)))
    sides = [(at(here.y + d / k).J.change(z), at(here.y - d / k).J.change(z)) for k in (1, 16)]
    far, near = (float(np.linalg.norm(a - b)) for a, b in sides)
    return near > max(far / 2, ALIKE * float(np.linalg.norm(sides[1][0])))

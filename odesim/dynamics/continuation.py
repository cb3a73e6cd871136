"""Pseudo-arclength continuation of a rest state in one parameter, with the points at which its stability changes."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.optimize import brentq

from odesim.base.arrays import Array
from odesim.dynamics.field import Field, independent, null_rows

MOST_CORRECTIONS = 8
EXACT = 1e-11
"""The last correction of a point, relative to the largest of its numbers and 1."""
SHORTEST = 1e-10
"""The shortest step, as a part of the longest; none is shorter than what a point is exact to. So small is the radius of a fold of states
that are far smaller than the range."""
LARGEST = 0.01
"""The longest step relative to the largest state so far, where that is more than a part of the range: a learning rate of 1e-3 may move
states of 1, and steps of a part of its range would not come far. Largest is at most 1 or as at the start: what goes to infinity is not
followed there."""
STILL = 1e-12
"""A direction with less of the parameter than this is that of a line of states at one parameter: what turns round there is rounding."""
TURN = 0.97
"""The least cosine between the tangents of neighbouring points."""
STRAY = 0.25
"""The longest correction of a step, by the step: an arc that turns by TURN, a quarter, leaves its tangent by half of that."""
SAME_POINT = 1e-5
"""The distance, relative to the largest number and 1, within which two points are one."""
ZERO = 1e-11
"""The real part of an eigenvalue, relative to the Jacobian, that is due to rounding."""
CRITICAL = 1e-5
"""The real part of an eigenvalue, relative to the Jacobian, that counts as 0 at a special point."""
PARTS = 6
"""How often the way between two points is cut around a turning point: to an eighteenth, so that a cubic there is exact to 1e-5 of what it
is between the two, which is 1e-8 or less."""
MORE_PARTS = 18
"""How often it is cut where the parameter goes on: to 2e-4, so that the determinant is a straight line there."""
BESIDE = (0.2, 0.05, 1.0, *(0.05 * 0.1**k for k in range(1, 8)))
"""Where branches are looked for beside a branch point, in units: near it, where corrections are good; farther, where they are lost in
rounding; then nearer and nearer: states that are far smaller than the range move the parameter FAR at once."""
FAR = 30.0
"""Units by which the parameter may move to a point beside a branch point: .3 of the range, of which a unit is .01 or less. What is farther
may lie outside the range, and no branch is followed from there. With no limit the first try moved the parameter by 200 units beside states
of 1e-3 of the range, by 500 beside 1e-4, and the branches that cross were lost. With 1, 4, 10, 30 and 100 the same ones were found."""
CUT = 0.381966
"""Not the middle: between two points that mirror one another the middle is the branch point itself, where no tangent is known."""


@dataclass(frozen=True)
class Point:
    """A rest state with its parameter z (n + 1,), the parameter last, and the direction of the branch there (n + 1,).

    jacobian (n, n + 1): the derivatives of the right-hand side by state and parameter.
    """

    curve: "Curve"
    z: Array
    tangent: Array
    jacobian: Array

    @cached_property
    def eigenvalues(self) -> Array:
        """Eigenvalues (n,) of the state, the fastest growing first."""
        inside = self.curve.inside
        values = np.linalg.eigvals(self.jacobian[: inside.shape[1], :-1] @ inside)
        return np.asarray(values[np.lexsort((-values.imag, -values.real))])

    @cached_property
    def side(self) -> tuple[float, float]:
        """Sign, and logarithm, of the determinant of the derivatives with the tangent as last row, which is 0 at a branch point only."""
        sign, size = np.linalg.slogdet(np.vstack([self.jacobian, self.tangent]))
        return float(sign), float(size)

    @cached_property
    def growing(self) -> int:
        """How many eigenvalues grow."""
        return int(np.sum(self.eigenvalues.real > ZERO * np.linalg.norm(self.jacobian, 2)))


@dataclass(frozen=True)
class Curve:
    """The rest states of a field whose last state is the parameter, on the leaf of its linear invariants through start (n + 1,).

    laws (k, n): the weights of those that the model declares and that its equations do not show.
    """

    field: Field
    start: Array
    laws: Array

    @cached_property
    def weights(self) -> Array:
        """An orthonormal basis (k, n) of the linear invariants that the equations show; that the parameter stays is none of them."""
        return independent(self.field.weights[:, :-1])

    @cached_property
    def normals(self) -> Array:
        """An orthonormal basis (k, n) of all linear invariants of the states."""
        return independent(np.vstack([self.weights, self.laws]))

    @cached_property
    def inside(self) -> Array:
        """An orthonormal basis (n, n - k) of the leaf."""
        return np.linalg.qr(self.normals.T, mode="complete")[0][:, len(self.normals) :]

    def f(self, z: Array) -> Array:
        """The right-hand side in the leaf, then how far z (n + 1,) is off it: (n,)."""
        return np.concatenate([self.inside.T @ self.field(z)[:-1], self.normals @ (z - self.start)[:-1]])

    def jacobian(self, z: Array) -> Array:
        """Its derivatives (n, n + 1)."""
        return self.in_leaf(self.field.jacobian(z))

    def in_leaf(self, J: Array) -> Array:
        """The derivatives of f (n, n + 1), from those of the field (n + 1, n + 1)."""
        return np.vstack([self.inside.T @ J[:-1], np.hstack([self.normals, np.zeros((len(self.normals), 1))])])

    def holds(self, z: Array, J: Array) -> bool:
        """Whether what no state about the start changes stays at z (n + 1,) too, where a condition may be another.

        J (n + 1, n + 1): the derivatives of the field at z.
        """
        W = self.weights
        if not len(W):
            return True
        rounding = EXACT * float(np.linalg.norm(J[:-1])) * max(1.0, float(np.max(np.abs(z))))
        return len(null_rows(W, J[:-1])) == len(W) and float(np.max(np.abs(W @ self.field(z)[:-1]))) <= rounding

    def point(self, guess: Array, normal: Array, along: Array | None = None) -> Point | None:
        """The point near guess (n + 1,) in the plane through it that is normal to `normal`; None where Newton's method finds none.

        along (n + 1,): the side on which the tangent of the point is to lie.
        """
        z = guess.copy()
        for _ in range(MOST_CORRECTIONS):
            A = np.vstack([self.jacobian(z), normal])
            right = np.append(self.f(z), normal @ (z - guess))
            if not (np.isfinite(A).all() and np.isfinite(right).all()):
                return None
            d = np.linalg.lstsq(A, -right, rcond=1e-13)[0]  # A is singular at a branch point, where the residual is 0
            z = z + d
            size = max(1.0, float(np.max(np.abs(z))))
            if np.max(np.abs(d)) <= EXACT * size:
                whole = self.field.jacobian(z)
                if not self.holds(z, whole):
                    return None
                J = self.in_leaf(whole)
                _, s, V = np.linalg.svd(J)
                # the part of the way in the kernel: at a branch point that has more dimensions than one
                kernel = V[np.append(s, 0.0) <= 1e-9 * max(float(s[0]), 1e-9)]
                tangent = kernel.T @ (kernel @ (normal if along is None else along))
                size = float(np.linalg.norm(tangent))
                return Point(self, z, tangent / size, J) if size > 0 else None
        return None


@dataclass(frozen=True)
class Special:
    """A special point of a branch: fold, branch point or Hopf point. frequency: of the oscillation that begins there."""

    kind: str
    point: Point
    frequency: float = 0.0


def walk(start: Point, low: float, high: float, longest: float, most: int) -> Iterator[tuple[Point, list[Special]]]:
    """The points of a branch from start in the direction of its tangent, each with the special ones since the one before.

    longest: the longest step of the parameter, and of a state that is not large.
    Ends where the parameter leaves [low, high], where the branch closes or no next point is found, and after `most` points.
    """
    here, step, size = start, longest / 10, 0.0
    natural = max(1.0, float(np.max(np.abs(start.curve.start[:-1]))))
    for count in range(most):
        after, exact = None, EXACT * max(1.0, float(np.max(np.abs(here.z))))
        while step > max(SHORTEST * longest, exact):
            guess = here.z + step * here.tangent
            after = here.curve.point(guess, here.tangent)
            # beside states that are far larger, a correction along the parameter is short wherever it leads, also to another branch
            if (
                after is not None
                and after.tangent @ here.tangent >= TURN
                and np.linalg.norm(after.z - guess) <= STRAY * step
                and abs(after.z[-1] - here.z[-1]) <= 2 * longest
            ):
                break
            after, step = None, step / 2
        if after is None:
            return
        if not low <= after.z[-1] <= high:
            edge = low if after.z[-1] < low else high
            unit = np.eye(len(after.z))[-1]
            part = (edge - here.z[-1]) / (after.z[-1] - here.z[-1])
            guess = here.z + part * (after.z - here.z)
            guess[-1] = edge
            last = here.curve.point(guess, unit, here.tangent)
            if last is not None:
                yield last, special_points(here, last)
            return
        yield after, special_points(here, after)
        if count > 4 and np.linalg.norm(after.z - start.z) < step and after.tangent @ start.tangent > 0.5:
            return
        size = max(size, min(natural, float(np.max(np.abs(after.z[:-1])))))
        here, step = after, min(1.5 * step, max(longest, LARGEST * size), longest / max(abs(float(after.tangent[-1])), 1e-300))


def special_points(a: Point, b: Point) -> list[Special]:
    """The folds, branch points and Hopf points between two neighbouring points."""
    length = float(np.linalg.norm(b.z - a.z))
    chord = (b.z - a.z) / max(length, 1e-300)
    near: dict[float, Point] = {0.0: a, length: b}

    def at(s: float) -> Point:
        if s not in near:
            # by a cubic: beside a branch point the chord comes nearer to the branch that crosses than to this one
            corrected = a.curve.point(between(a, b, s / length)[0], chord)
            if corrected is None:
                raise ArithmeticError
            near[s] = corrected
        return near[s]

    def root(test: Callable[[Point], float]) -> Point | None:
        try:
            return at(float(brentq(lambda s: test(at(s)), 0.0, length, xtol=1e-12 * max(1.0, length), rtol=1e-14)))
        except (ArithmeticError, ValueError):
            return None

    specials: list[Special] = []
    if a.tangent[-1] * b.tangent[-1] < 0 and max(abs(a.tangent[-1]), abs(b.tangent[-1])) > STILL:
        turning = branch_point(a, b, True)
        if turning is not None:
            specials.append(Special("branch", turning))
        elif (point := root(lambda p: float(p.tangent[-1]))) is not None:
            specials.append(Special("fold", point))
    elif abs(a.growing - b.growing) == 1 and (crossed := branch_point(a, b, False)) is not None:
        return [Special("branch", crossed)]
    for k in range(min(a.growing, b.growing), max(a.growing, b.growing)):
        point = root(lambda p, k=k: float(p.eigenvalues[k].real))  # type: ignore[misc]
        if point is None or any(is_near(point, s.point, 0.1 * length) for s in specials):
            continue
        size = float(np.linalg.norm(point.jacobian, 2))
        crossing = [v for v in point.eigenvalues if abs(v.real) <= CRITICAL * size]
        frequency = max((abs(v.imag) for v in crossing), default=0.0)
        if frequency > CRITICAL * size:
            specials.append(Special("hopf", point, float(frequency)))
        else:
            specials.append(Special("branch", point))
    return specials


def between(a: Point, b: Point, part: float) -> tuple[Array, Array]:
    """The cubic through two points with their tangents, and its derivative, at a part of the way: (n + 1,) each."""
    d, p = b.z - a.z, part
    length = float(np.linalg.norm(d))
    ma, mb = length * a.tangent, length * b.tangent
    z = a.z + p * ma + p * p * (3 * d - 2 * ma - mb) + p**3 * (ma + mb - 2 * d)
    return z, ma + 2 * p * (3 * d - 2 * ma - mb) + 3 * p * p * (ma + mb - 2 * d)


def branch_point(a: Point, b: Point, turns: bool) -> Point | None:
    """The branch point between two points; None where there is none, as at a fold. turns: the parameter turns round between them.

    At a branch point the determinant of all derivatives with the tangent changes its sign. It is that of the derivatives by the states,
    divided by the tangent's part along the parameter: so at a fold it does not, and where a branch turns round at a branch point, as
    x^2 = r of x' = r x - x^3, no eigenvalue changes its sign.
    """
    for _ in range(PARTS if turns else MORE_PARTS):
        z, way = between(a, b, CUT)
        middle = a.curve.point(z, way / np.linalg.norm(way))
        if middle is None:
            return None
        same = middle.tangent[-1] * a.tangent[-1] > 0 if turns else middle.side[0] == a.side[0]
        a, b = (middle, b) if same else (a, middle)
    (sign, size), (other, beyond) = a.side, b.side
    if sign == other:
        return None
    # of a cubic and not by Newton's method, to which the branch that crosses is as good
    if turns:
        part = float(brentq(lambda p: float(between(a, b, p)[1][-1]), 0.0, 1.0))
    else:
        part = 1 / (1 + float(np.exp(np.clip(beyond - size, -50, 50))))
    z, way = between(a, b, part)
    return Point(a.curve, z, way / np.linalg.norm(way), a.curve.jacobian(z))


def is_near(a: Point, b: Point, most: float) -> bool:
    """Whether two points are one. most: the distance beyond which they are not, whatever the size of their numbers."""
    return float(np.max(np.abs(a.z - b.z))) <= min(SAME_POINT * max(1.0, float(np.max(np.abs(a.z)))), most)


def branches_at(special: Special, size: float) -> list[Point]:
    """Points of other branches beside a branch point, with directions away from it.

    size: how far from it they are looked for. The directions are those of the kernel of all derivatives; of a kernel of many dimensions,
    as symmetry makes them, the unit vectors' parts in it.
    """
    point = special.point
    _, s, V = np.linalg.svd(np.vstack([point.jacobian, point.tangent]))
    kernel = V[s <= 1e-4 * max(s[0], 1e-300)]
    if not len(kernel):
        return []
    ways = [kernel[0]] if len(kernel) == 1 else [kernel.T @ column for column in kernel.T if np.linalg.norm(column) > 0.1]
    starts: list[Point] = []
    for way in ways:
        way = way / np.linalg.norm(way)
        for side in (way, -way):
            tries = (point.curve.point(point.z + part * size * side, side) for part in BESIDE)
            beside = next((b for b in tries if b is not None and abs(b.z[-1] - point.z[-1]) <= FAR * size), None)
            if beside is None or any(is_near(beside, other, 0.1 * size) for other in starts):
                continue
            away = beside.z - point.z
            starts.append(beside if beside.tangent @ away >= 0 else replace(beside, tangent=-beside.tangent))
    return starts

"""The periodic orbit that begins at a Hopf point: on which side of it, whether it is stable, and how large it is."""

from dataclasses import dataclass

import numpy as np

from odesim.base.arrays import Array
from odesim.dynamics.continuation import Special

BESIDE = 1e-4
"""How far beside a Hopf point derivatives of the exact Jacobian are taken, relative to the largest number and 1: the second difference has
an error of 1e-8 by truncation, and as much by rounding."""


@dataclass(frozen=True)
class Orbit:
    """The first orbit at a Hopf point.

    lyapunov: the first Lyapunov coefficient, for an eigenvector of length 1; below 0 the orbit attracts in its plane. side: 1 where it
    exists above the parameter of the point, -1 below. amplitudes (n + 1,): half the range of each state, by the root of the distance
    from that parameter; 0 for the parameter. NaN where there is no such orbit.
    """

    lyapunov: float
    side: float
    amplitudes: Array


def orbit_of(special: Special) -> Orbit:
    """The Orbit at a Hopf point, by the normal form (Kuznetsov, Elements of applied bifurcation theory, 2004, eq. 3.20).

    With A q = i w q, A^T p = -i w p, |q| = 1 and <p, q> = 1, and the forms B and C of the second and third derivatives,
    l = Re(<p, C(q, q, q*)> - 2 <p, B(q, A^-1 B(q, q*))> + <p, B(q*, (2 i w - A)^-1 B(q, q))>) / (2 w).
    """
    point, w = special.point, special.frequency
    curve, z = point.curve, point.z
    inside = curve.inside
    h = BESIDE * max(1.0, float(np.max(np.abs(z))))

    def matrix(x: Array) -> Array:
        return np.asarray(curve.jacobian(x)[: inside.shape[1], :-1] @ inside)

    def shifted(u: Array) -> tuple[Array, Array]:
        """The Jacobians on both sides of the point along a real u."""
        step = np.append(h * (inside @ u), 0.0)
        return matrix(z + step), matrix(z - step)

    def second(u: Array, v: Array) -> Array:
        """B(u, v)."""
        parts = [(np.subtract(*shifted(part)) / (2 * h)) @ v for part in (u.real, u.imag)]
        return np.asarray(parts[0] + 1j * parts[1])

    A = matrix(z)

    def along(u: Array) -> Array:
        """The second derivative of the Jacobian along a real u."""
        return np.asarray((sum(shifted(u)) - 2 * A) / h**2)

    def closest(M: Array, value: complex) -> Array:
        values, vectors = np.linalg.eig(M)
        return np.asarray(vectors[:, np.argmin(np.abs(values - value))])

    q, p = closest(A, 1j * w), closest(A.T, -1j * w)
    q = q / np.linalg.norm(q)
    p = p / np.conj(np.vdot(p, q))
    # C(q, q, q*) = (C(a, a) + C(b, b)) q for q = a + i b
    cubic = (along(q.real) + along(q.imag)) @ q
    eye = np.eye(len(A))
    l1 = np.vdot(p, cubic - 2 * second(q, np.linalg.solve(A, second(q, q.conj())).astype(complex)))
    l1 += np.vdot(p, second(q.conj(), np.linalg.solve(2j * w * eye - A, second(q, q))))
    lyapunov = float(l1.real) / (2 * w)
    beside = [curve.point(z + side * h * point.tangent, point.tangent) for side in (1, -1)]
    if lyapunov == 0 or any(b is None for b in beside):
        return Orbit(lyapunov, np.nan, np.full(len(z), np.nan))
    (up, p1), (down, p0) = ((float(b.eigenvalues[np.argmin(np.abs(b.eigenvalues - 1j * w))].real), float(b.z[-1])) for b in beside if b)
    if p1 == p0:
        return Orbit(lyapunov, np.nan, np.full(len(z), np.nan))
    crossing = (up - down) / (p1 - p0)
    # r' = crossing (parameter - that of the point) r + w l r^3
    size = 2 * np.sqrt(abs(crossing / (w * lyapunov)))
    return Orbit(lyapunov, float(-np.sign(crossing * lyapunov)), np.append(size * np.abs(inside @ q), 0.0))

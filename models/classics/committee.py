"""Online learning of a two-layer teacher by a two-layer student, by their order parameters: a plateau, then specialisation.

Inputs are Gaussian in N -> infinity dimensions, activations erf(x / sqrt 2), and each step takes one fresh sample. Q (K, K) are the
overlaps of the student's weights with each other, R (K, M) those with the teacher's, T (M, M) the teacher's; v, A the second layers. From
a small start all students become alike and rest on a plateau: their symmetry breaks later, at a time of order the logarithm of their
first difference.

Assumed: rate eta / sqrt(N) for the first layer, eta_2 / N for the second, label noise of standard deviation sigma, time = steps / N.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from sympy import Interval, KroneckerDelta, Sum, Symbol, asin, oo, pi, sqrt

from odesim.symbolic import Constraint, Event, IndexedBase, Invariant, Param, Source, System, index, over, sizes

# Means of products of erf(x / sqrt 2) and its derivative over Gaussian fields: arXiv 1906.08632, appendix; Saad and Solla 1995.

Cov = Callable[[Any, Any], Any]  # of two fields


def i2(C: Cov, a: Any, b: Any) -> Any:
    """E g(a) g(b)."""
    return 2 / pi * asin(C(a, b) / sqrt((1 + C(a, a)) * (1 + C(b, b))))


def det(C: Cov, a: Any, b: Any) -> Any:
    """The determinant of 1 + the covariance of two fields."""
    return (1 + C(a, a)) * (1 + C(b, b)) - C(a, b) ** 2


def det_3(C: Cov, a: Any, b: Any, c: Any) -> Any:
    """The determinant of 1 + the covariance of three fields."""
    pairs = C(b, c) ** 2 * (1 + C(a, a)) + C(a, c) ** 2 * (1 + C(b, b))
    return det(C, a, b) * (1 + C(c, c)) - pairs + 2 * C(a, b) * C(a, c) * C(b, c)


def i3(C: Cov, a: Any, b: Any, c: Any) -> Any:
    """E g'(a) b g(c)."""
    return 2 / pi * (C(b, c) * (1 + C(a, a)) - C(a, b) * C(a, c)) / (sqrt(det(C, a, c)) * (1 + C(a, a)))


def i4(C: Cov, a: Any, b: Any, c: Any, d: Any) -> Any:
    """E g'(a) g'(b) g(c) g(d)."""
    top = det(C, a, b) * C(c, d) - C(b, c) * C(b, d) * (1 + C(a, a)) - C(a, c) * C(a, d) * (1 + C(b, b))
    top += C(a, b) * (C(a, c) * C(b, d) + C(a, d) * C(b, c))
    return 4 / pi**2 / sqrt(det(C, a, b)) * asin(top / sqrt(det_3(C, a, b, c) * det_3(C, a, b, d)))


i, k, l, h, m, n, o = index("i k l h m n o")
K, M = sizes("K M")
Q, R, v = IndexedBase("Q", shape=(K, K)), IndexedBase("R", shape=(K, M)), IndexedBase("v", shape=(K,))
T, A = IndexedBase("T", shape=(M, M)), IndexedBase("A", shape=(M,))
eta, eta_2, sigma, q0, r0 = (Symbol(name, nonnegative=True) for name in ("eta", "eta_2", "sigma", "q0", "r0"))
STUDENTS, TEACHERS = {i, k, l, h}, {m, n, o}


def orthogonal(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """T (M, M): weights of length 1, at right angles."""
    return np.eye(sizes["M"])


def C(a: Any, b: Any) -> Any:
    """The covariance of two fields, students or teachers."""
    if a in STUDENTS:
        return Q[a, b] if b in STUDENTS else R[a, b]
    return R[b, a] if b in STUDENTS else T[a, b]


def error(term: Callable[[Any], Any], student: Any, teacher: Any) -> Any:
    """The mean of a term over the teacher's fields, with weights A, less that over the student's, with weights v."""
    return over(Sum, A[teacher] * term(teacher), (teacher, M)) - over(Sum, v[student] * term(student), (student, K))


def error_twice(term: Callable[[Any, Any], Any]) -> Any:
    """The mean of a symmetric term of two fields over the error squared; rows of Q, R and T are summed first."""
    students = over(Sum, v[l] * v[h] * term(h, l), (l, K), (h, K))
    mixed = over(Sum, v[l] * A[n] * term(l, n), (n, M), (l, K))
    return students - 2 * mixed + over(Sum, A[n] * A[o] * term(o, n), (n, M), (o, M))


def pull(a: Any, b: Any) -> Any:
    """v_a times the mean of g'(a) b (teacher - student)."""
    return v[a] * error(lambda field: i3(C, a, b, field), l, n)


spread = error_twice(lambda a, b: i4(C, i, k, a, b)) + sigma**2 * 2 / pi / sqrt(det(C, i, k))
skew = over(Sum, (Q[i, k] - Q[k, i]) ** 2, (i, K), (k, K))
mean_R = over(Sum, R[k, n], (k, K), (n, M)) / (K * M)
differences = over(Sum, (R[i, m] - mean_R) ** 2, (i, K), (m, M)) / (K * M)
e_g = error_twice(lambda a, b: i2(C, a, b)) / 2

SYSTEM = System(
    name="classics.committee",
    source=Source("goldt2019dynamics", "eqs. S12 to S32", "erf units, both layers"),
    axes={i: K, k: K, l: K, h: K, m: M, n: M, o: M},
    equations={
        Q[i, k]: eta * (pull(i, k) + pull(k, i)) + eta**2 * v[i] * v[k] * spread,
        R[i, m]: eta * pull(i, m),
        v[i]: eta_2 * error(lambda field: i2(C, i, field), l, n),
    },
    params=(
        Param(T, orthogonal, Interval(-oo, oo), "overlaps of the teacher's weights, symmetric"),
        Param(A, 1.0, Interval(-oo, oo), "second layer of the teacher"),
        Param(eta, 1.5, Interval(0, oo), "learning rate of the first layer"),
        Param(eta_2, 0.5, Interval(0, oo), "learning rate of the second layer"),
        Param(sigma, 0.0, Interval(0, oo), "standard deviation of label noise"),
    ),
    initial={Q[i, k]: KroneckerDelta(i, k) * (0.25 - 0.09 * i / K), R[i, m]: 1e-3 * KroneckerDelta(i, m) / (1 + i), v[i]: 1},
    sizes={K: 2, M: 2},
    span=(0.0, 200.0),
    time="samples / dimension",
    observables={"e_g": e_g},
    display={
        "det": det(C, i, k),
        "det_3": det_3(C, i, k, l),
        "det_R": det_3(C, i, k, n),
        "pull": pull(i, k),
        "pull_R": pull(i, m),
        "spread": spread,
        "e_g": e_g,
    },
    constraints=(Constraint("T is symmetric", T[m, n] - T[n, m], "==0"),),
    events=(
        Event(
            "plateau ends",
            differences - mean_R**2 / 4,
            direction=1,
            doc="overlaps of students and teachers, alike on the plateau, differ by half of their mean: students specialise",
        ),
    ),
    invariants=(
        Invariant("Q stays symmetric", skew, "nonincreasing", when=skew <= 0),
        Invariant("error is not negative", e_g, "nonnegative", when=skew <= 0),
    ),
)

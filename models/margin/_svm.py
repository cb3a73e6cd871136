"""Hard-margin problems: the shortest weights that keep all margins at 1, in the Euclidean norm and in the nuclear norm."""

from typing import Any, cast

import numpy as np
from scipy.optimize import minimize, nnls


def separator(D: Any) -> Any:
    """The x (n,) of least |x| with D x >= 1, D (margin, n): least distance programming, by non-negative least squares.

    Lawson and Hanson, Solving Least Squares Problems, chapter 23.
    """
    E = np.vstack([D.T, np.ones(len(D))])
    f = np.r_[np.zeros(D.shape[1]), 1.0]
    r = E @ nnls(E, f)[0] - f
    return -r[:-1] / r[-1]


def nuclear_separator(D: Any) -> Any:
    """The W (d, d) of least nuclear norm with <D_k, W> >= 1, D (margin, d, d), by its factors.

    min (|A|^2 + |B|^2)/2 of W = A B^T is the nuclear norm; with full factors a local minimum is one. Ten starts, the best.
    """
    rng, d = np.random.default_rng(0), D.shape[1]

    def factors(x: Any) -> Any:
        return x[: d * d].reshape(d, d), x[d * d :].reshape(d, d)

    def margins(x: Any) -> Any:
        A, B = factors(x)
        return np.einsum("kab,ac,bc->k", D, A, B) - 1

    def slopes(x: Any) -> Any:
        A, B = factors(x)
        return np.concatenate([np.einsum("kab,bc->kac", D, B), np.einsum("kab,ac->kbc", D, A)], axis=1).reshape(len(D), -1)

    found, given, solve = [], dict[str, Any](), cast("Any", minimize)
    given |= {"constraints": {"type": "ineq", "fun": margins, "jac": slopes}, "options": {"maxiter": 1000}, "tol": 1e-13}
    for _ in range(10):
        done = solve(lambda x: float(x @ x) / 2, rng.normal(size=2 * d * d), jac=lambda x: x, method="SLSQP", **given)
        if margins(done.x).min() > -1e-8:
            found.append((done.fun, done.x))
    A, B = factors(min(found, key=lambda pair: pair[0])[1])
    return A @ B.T


def nuclear_norm(W: Any) -> float:
    """The sum of singular values."""
    return float(np.linalg.svd(W, compute_uv=False).sum())


def cosine(a: Any, b: Any) -> float:
    """Of two arrays as vectors."""
    a, b = np.ravel(a), np.ravel(b)
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def differences(X: Any, z: Any) -> Any:
    """D (N (T - 1), d, d): (x_0 - x_t) z^T of each sequence, X (N, T, d), z (N, d), the first token best."""
    return np.array([np.outer(x[0] - other, query) for x, query in zip(X, z, strict=True) for other in x[1:]])

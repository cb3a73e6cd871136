"""Gradient flow of a weight whose gradient is a mean of A - B W C: the gradient tends to its slowest mode, and so to a low rank.

W (m, n) is the weight, G = dW/dt the gradient with its sign turned: the paper's parametric form, with B and C symmetric and positive
semidefinite. G obeys vec G(t) = exp(-S t) vec G(0), where S is the mean of the Kronecker products of C and B (columns stacked). Its stable
rank |.|_F^2 / |.|_2^2 tends to that of the part of G(0) in the eigenspace of the smallest eigenvalue of S that G(0) has a part in.

Assumed: a batch that does not change, gradient flow of the loss, the mean of <W, B W C> / 2 - <W, A>. Steps of gradient descent are the
method euler with its step eta: vec G_t = (1 - eta S)^t vec G_0.
"""

from typing import Any

import numpy as np
from sympy import Interval, Sum, oo

from odesim.symbolic import ClosedForm, Constraint, IndexedBase, Invariant, Param, Source, System, index, over, sizes

i, j, k, l, s = index("i j k l s")
m, n, N = sizes("m n N")
W = IndexedBase("W", shape=(m, n))
A, B, C = IndexedBase("A", shape=(N, m, n)), IndexedBase("B", shape=(N, m, m)), IndexedBase("C", shape=(N, n, n))


def gaussian(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """A (N, m, n): normal numbers, always the same."""
    return np.random.default_rng(0).standard_normal((sizes["N"], sizes["m"], sizes["n"]))


def wishart(seed: int, count: int, size: int) -> np.ndarray:
    """(count, size, size): X X^T / size of square normal X, always the same for a seed."""
    X = np.random.default_rng(seed).standard_normal((count, size, size))
    product = X @ X.transpose(0, 2, 1) / size
    return (product + product.transpose(0, 2, 1)) / 2


def left(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """B (N, m, m): Wishart matrices."""
    return wishart(1, sizes["N"], sizes["m"])


def right(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """C (N, n, n): Wishart matrices."""
    return wishart(2, sizes["N"], sizes["n"])


def gradient(W: Any, A: Any, B: Any, C: Any) -> np.ndarray:
    """G (m, n): the mean of A - B W C."""
    return (A - B @ W @ C).mean(axis=0)


def relaxation(t: float, y0: dict[str, Any], params: dict[str, Any]) -> dict[str, Any]:
    """W (m, n) at time t: W(0) and (1 - exp(-S t)) / S of G(0), in the eigenvectors of S."""
    W, B, C = y0["W"], params["B"], params["C"]
    S = np.einsum("sjl,sik->ijkl", C, B).reshape(W.size, W.size) / len(B)  # rows stacked here: B before C
    rates, modes = np.linalg.eigh(S)
    x = np.maximum(rates, 0) * t
    reached = t * np.where(x < 1e-12, 1, -np.expm1(-x) / np.where(x < 1e-12, 1, x))
    G = gradient(W, params["A"], B, C).ravel()
    return {"W": W + (modes @ (reached * (modes.T @ G))).reshape(W.shape)}


def stable_rank(a: np.ndarray) -> np.ndarray:
    """|a|_F^2 / |a|_2^2 of a (..., m, n); 0 of a matrix of zeros. a is divided by its largest entry first: squares of tiny ones are 0."""
    largest = np.abs(a).max(axis=(-2, -1), keepdims=True)
    scaled = a / np.where(largest == 0, 1, largest)
    norm = np.linalg.norm(scaled, ord=2, axis=(-2, -1))
    return (np.linalg.norm(scaled, axis=(-2, -1)) / np.where(norm == 0, 1, norm)) ** 2


def numerical_rank(a: np.ndarray, tol: float = 1e-3) -> np.ndarray:
    """How many singular values of a (..., m, n) are above tol times the largest."""
    values = np.linalg.svd(a, compute_uv=False)
    return (values > tol * values.max(axis=-1, keepdims=True)).sum(axis=-1)


def stable_rank_W(t: float, states: dict[str, Any], derivatives: dict[str, Any], params: dict[str, Any]) -> np.ndarray:
    """Stable rank of W; where W is 0, that of G, to which it tends."""
    W, G = np.asarray(states["W"], float), np.asarray(derivatives["W"], float)
    return stable_rank(np.where(np.any(W != 0, axis=(-2, -1), keepdims=True), W, G))


def stable_rank_G(t: float, states: dict[str, Any], derivatives: dict[str, Any], params: dict[str, Any]) -> np.ndarray:
    """Stable rank of G."""
    return stable_rank(np.asarray(derivatives["W"], float))


def numerical_rank_G(t: float, states: dict[str, Any], derivatives: dict[str, Any], params: dict[str, Any]) -> np.ndarray:
    """How many singular values of G are above a thousandth of the largest."""
    return numerical_rank(np.asarray(derivatives["W"], float))


curved = over(Sum, over(Sum, B[s, i, k] * W[k, l], (k, m)) * C[s, l, j], (l, n))  # B W C
G = over(Sum, A[s, i, j] - curved, (s, N)) / N
loss = over(Sum, over(Sum, W[i, j] * (curved / 2 - A[s, i, j]), (i, m), (j, n)), (s, N)) / N

SYSTEM = System(
    name="galore.parametric_gradient",
    source=Source("zhao2024galore", "Theorem 3.2 and Lemma 3.3", "wording recalled from version 2"),
    axes={i: m, j: n, k: m, l: n, s: N},
    equations={W[i, j]: G},
    params=(
        Param(A, gaussian, Interval(-oo, oo), "constant part of the gradient of sample s"),
        Param(B, left, Interval(-oo, oo), "left factor of sample s, symmetric, positive semidefinite"),
        Param(C, right, Interval(-oo, oo), "right factor of sample s, symmetric, positive semidefinite"),
    ),
    initial={W[i, j]: 0},
    sizes={m: 4, n: 5, N: 6},
    span=(0.0, 20.0),
    time="steps times learning rate",
    observables={"loss": loss, "stable_rank_W": stable_rank_W, "stable_rank_G": stable_rank_G, "numerical_rank_G": numerical_rank_G},
    constraints=(
        Constraint("B symmetric", B[s, i, k] - B[s, k, i], "==0", tol=1e-12),
        Constraint("C symmetric", C[s, j, l] - C[s, l, j], "==0", tol=1e-12),
    ),
    invariants=(Invariant("loss falls", loss, "nonincreasing"),),
    closed_forms=(ClosedForm("matrix exponential", "for every start", relaxation),),
)

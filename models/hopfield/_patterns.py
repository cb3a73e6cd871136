"""Stored patterns, and what the flows of a memory leave to decay: the part of a state that no pattern reads or writes."""

from typing import Any

import numpy as np


def gaussian(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """X (d, N): normal numbers, always the same, scaled so that every pattern has length sqrt(d)."""
    X = np.random.default_rng(0).standard_normal((sizes["d"], sizes["N"]))
    return X * np.sqrt(sizes["d"]) / np.linalg.norm(X, axis=0)


def signs(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """X (d, N): random signs, always the same."""
    return np.where(np.random.default_rng(0).random((sizes["d"], sizes["N"])) < 0.5, -1.0, 1.0)


def damaged(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """s0 (d,): the first pattern of X, every eighth sign of it turned."""
    return np.where(np.arange(sizes["d"]) % 8 == 7, -1.0, 1.0) * params["X"][:, 0]


def one_by_one(sizes: dict[str, int], params: dict[str, Any]) -> int:
    """B = d: one neuron a step."""
    return sizes["d"]


def outside(A: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The part of x (d,) that is orthogonal to all columns of A (d, N)."""
    left, values, _ = np.linalg.svd(A, full_matrices=False)
    basis = left[:, values > 1e-10 * values[:1].max(initial=0)]
    return x - basis @ (basis.T @ x)

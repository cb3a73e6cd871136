"""Stored patterns, and what the flows of a memory leave to decay: the part of a state that no pattern reads or writes."""

from typing import Any

import numpy as np


def gaussian(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """X (d, N): normal numbers, always the same, scaled so that every pattern has length sqrt(d)."""
    X = np.random.default_rng(0).standard_normal((sizes["d"], sizes["N"]))
    return X * np.sqrt(sizes["d"]) / np.linalg.norm(X, axis=0)


def outside(A: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The part of x (d,) that is orthogonal to all columns of A (d, N)."""
    left, values, _ = np.linalg.svd(A, full_matrices=False)
    basis = left[:, values > 1e-10 * values[:1].max(initial=0)]
    rest: np.ndarray = x - basis @ (basis.T @ x)
    return rest

"""Checks of the classes of the one-layer model, and the tokens that their contexts may hold."""

import numpy as np

from odesim.base.arrays import Array
from odesim.base.errors import ParamError

TOLERANCE = 1e-6  # of a sum of probabilities
SINGULAR = 1e-12  # least ratio of the smallest to the largest eigenvalue of F^T F


def check_classes(P: Array, psi: Array, p: Array, M: float) -> None:
    """Raises ParamError unless P (K, S), psi (K,), p (K,) and M describe classes: shapes, probabilities, queries 0, 1, ..."""
    if P.ndim != 2 or P.size == 0:
        raise ParamError(f"P must be a table of classes and tokens, not an array of shape {P.shape}")
    K = len(P)
    for name, value in (("psi", psi), ("p", p)):
        if value.shape != (K,):
            raise ParamError(f"{name} must hold one number for each row of P ({K}), not have shape {value.shape}")
    for name, value in (("P", P), ("p", p)):
        if not np.all(value >= 0) or not np.all(np.isfinite(value)):
            raise ParamError(f"{name} must hold probabilities, not {value[~(value >= 0) | ~np.isfinite(value)][0]:g}")
        with np.errstate(over="ignore"):
            off = np.abs(value.sum(axis=-1) - 1)
        worst = float(np.max(off))
        if worst > TOLERANCE:
            row = f"row {int(np.argmax(off))} of P" if name == "P" else "p"
            raise ParamError(f"{row} must sum to 1, and is off by {worst:.3g}")
    queries = np.unique(psi)
    if not np.array_equal(queries, np.arange(len(queries))):
        raise ParamError(f"psi must use every query 0, 1, ..., its largest, not {', '.join(f'{m:g}' for m in queries[:8])}")
    if not (np.isfinite(M) and M >= K):
        raise ParamError(f"M must be at least the number of classes, {K}, not {M:g}")


def check_independent(P: Array) -> None:
    """Raises ParamError if the rows of P (K, S) are linearly dependent, because F^T F must have an inverse."""
    f = P / np.linalg.norm(P, axis=1, keepdims=True)
    values = np.linalg.eigvalsh(f @ f.T)
    if values[0] < SINGULAR * values[-1]:
        raise ParamError("decoder = decorrelated needs classes whose rows of P are linearly independent, and these are not")


def token_lists(P: Array, support: Array | None, queries: Array | None, rows: int) -> tuple[Array, Array]:
    """(tokens (K, W), indicators (K, W) of the query): distinct tokens that the contexts of each class may hold.

    support (K, V): the first V tokens; None: those with P > 0, and others to fill the row. queries (K,): rows of queries to include.
    """
    if support is None:
        width = int(np.max(np.sum(P > 0, axis=1)))
        support = np.sort(np.argsort(P == 0, axis=1, kind="stable")[:, :width], axis=1)
    elif np.any(np.abs(np.take_along_axis(P, support, axis=1).sum(axis=1) - 1) > TOLERANCE):
        raise ParamError("support must hold every token of its class with P > 0, each once")
    if queries is None:
        return support, np.zeros(support.shape)
    missing = ~np.any(support == queries[:, None], axis=1)
    if np.any(missing):
        others = [np.setdiff1d(np.arange(rows), tokens)[0] for tokens in support]
        support = np.column_stack([support, np.where(missing, queries, others)])
    return support, (support == queries[:, None]).astype(float)

"""The classes of the one-layer model as tables: what each may hold, and whether they make sense."""

import numpy as np

from odesim.base.arrays import Array
from odesim.errors import ParamError

TOLERANCE = 1e-6  # of a sum of probabilities that is 1
SINGULAR = 1e-12  # smallest eigenvalue of F^T F, against the largest, that still counts as independent


def check_classes(P: Array, psi: Array, p: Array, M: float) -> None:
    """Raises ParamError unless P (K, S), psi (K,), p (K,) and M describe classes."""
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
    """Raises ParamError where two classes of P (K, S), or more, cannot be told apart: F^T F must have an inverse."""
    f = P / np.linalg.norm(P, axis=1, keepdims=True)
    values = np.linalg.eigvalsh(f @ f.T)
    if values[0] < SINGULAR * values[-1]:
        raise ParamError("decoder = decorrelated needs classes whose rows of P are linearly independent, and these are not")


def token_lists(P: Array, support: Array | None, queries: Array | None, rows: int) -> tuple[Array, Array]:
    """Tokens (K, W) that each class's contexts may hold, all different, and where its query is among them (K, W), 0 or 1.

    support (K, V): the first V of them; None: those with P > 0, filled up with others of P = 0. queries (K,): rows to have as well.
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
        others = [np.setdiff1d(np.arange(rows), own)[0] for own in support]
        support = np.column_stack([support, np.where(missing, queries, others)])
    return support, (support == queries[:, None]).astype(float)

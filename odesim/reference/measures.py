"""Measures of the order in an array: normalised correlation, stable rank, entropy; with any leading axes, numpy or cupy."""

from odesim.base.arrays import Array, array_namespace


def normalised_correlation(a: Array, b: Array) -> Array:
    """Cosine (...,) of a and b (..., M), each minus its mean over the last axis; 0 where one of them is constant.

    It is the NC of tian2023joma, section 4, and does not depend on scales and offsets.
    """
    xp = array_namespace(a, b)
    a = a - a.mean(axis=-1, keepdims=True)
    b = b - b.mean(axis=-1, keepdims=True)
    lengths = xp.sqrt((a * a).sum(axis=-1)) * xp.sqrt((b * b).sum(axis=-1))
    return (a * b).sum(axis=-1) / xp.where(lengths == 0, xp.ones_like(lengths), lengths)


def stable_rank(a: Array) -> Array:
    """|a|_F^2 / |a|_2^2 (...,) of a (..., M, K), between 1 and the rank; 0 of a matrix of zeros, nan of one that is not finite."""
    xp = array_namespace(a)
    finite = xp.isfinite(a).all(axis=(-2, -1), keepdims=True)
    values = xp.linalg.svd(xp.where(finite, a, xp.zeros_like(a)), compute_uv=False)  # (..., min(M, K)); svd raises on a nan
    largest = values[..., :1]
    ratios = values / xp.where(largest == 0, xp.ones_like(largest), largest)
    return xp.where(finite[..., 0, 0], (ratios * ratios).sum(axis=-1), xp.full_like(largest[..., 0], xp.nan))


def entropy(p: Array) -> Array:
    """Entropy -sum p ln p (...,) over the last axis of p (..., M), with 0 ln 0 = 0; p is not normalised."""
    xp = array_namespace(p)
    return -(p * xp.log(xp.where(p > 0, p, xp.ones_like(p)))).sum(axis=-1)

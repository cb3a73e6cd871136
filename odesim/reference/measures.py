"""Numbers that say how ordered an array is: normalised correlation, stable rank, entropy; any leading axes, numpy or cupy."""

from odesim.base.arrays import Array, array_namespace


def normalised_correlation(a: Array, b: Array) -> Array:
    """Cosine (...,) between a and b (..., M), each less its mean over the last axis; 0 where one of them is constant.

    The NC of tian2023joma, section 4; it sees neither the scale nor the offset of either.
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
    values = xp.linalg.svd(xp.where(finite, a, xp.zeros_like(a)), compute_uv=False)  # (..., min(M, K)), it raises on a nan
    largest = values[..., :1]
    ratios = values / xp.where(largest == 0, xp.ones_like(largest), largest)
    return xp.where(finite[..., 0, 0], (ratios * ratios).sum(axis=-1), xp.full_like(largest[..., 0], xp.nan))


def entropy(p: Array) -> Array:
    """-sum p ln p (...,) over the last axis of p (..., M), with 0 ln 0 = 0; p is taken as it is, its sum need not be 1."""
    xp = array_namespace(p)
    return -(p * xp.log(xp.where(p > 0, p, xp.ones_like(p)))).sum(axis=-1)

"""Measures of the order in an array, with any leading axes, numpy or cupy: softmax, correlations, stable rank, entropy."""

from collections.abc import Sequence

from odesim.base.arrays import Array, array_namespace


def softmax(x: Array) -> Array:
    """exp(x) / sum exp(x) over the last axis."""
    e = array_namespace(x).exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def log_softmax(x: Array) -> Array:
    """ln of softmax(x)."""
    xp, x = array_namespace(x), x - x.max(axis=-1, keepdims=True)
    return x - xp.log(xp.exp(x).sum(axis=-1, keepdims=True))


def norm(a: Array, axes: int | tuple[int, ...] = -1) -> Array:
    """The root of the sum of squares over these axes."""
    return array_namespace(a).sqrt((a * a).sum(axis=axes))


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


# Correlation of single nodes of a network with the latent variables of its input. weight (R, B): how often a sample counts.


def correlations(latents: Array, nodes: Array, weight: Array) -> Array:
    """Pearson correlations (R, A, W) of latents (R, B, A) and nodes (R, B, W); 0 where one is constant, up to rounding."""
    xp = array_namespace(nodes)
    weight = xp.asarray(weight, dtype=nodes.dtype)
    share = (weight / weight.sum(axis=1, keepdims=True))[:, :, None]  # (R, B, 1)
    (x, dx), (y, dy) = _centred(xp.asarray(latents, dtype=nodes.dtype), share), _centred(nodes, share)
    result: Array = (x * share).swapaxes(1, 2) @ y  # (R, A, W)
    result /= dx.swapaxes(1, 2)
    result /= dy
    return result


def mean_best_correlation(latents: Array, nodes: Array, weight: Array) -> Array:
    """NCorr (R,): the correlation of each latent with its best node, averaged over latents that occur.

    latents (R, B, A): 0 or 1; nodes (R, B, W).
    """
    xp = array_namespace(nodes)
    best = correlations(latents, nodes, weight).max(axis=2)  # (R, A)
    occurs = ((xp.asarray(latents) > 0) & (xp.asarray(weight) > 0)[:, :, None]).any(axis=1)  # (R, A)
    count = xp.maximum(occurs.sum(axis=1), 1).astype(best.dtype)
    return xp.where(occurs, best, 0.0).sum(axis=1) / count


def by_layer(latents: Sequence[Array], nodes: Sequence[Array], weight: Array) -> Array:
    """NCorr (R, S) of latents of S layers with nodes of the same number of layers, or of more."""
    values = [mean_best_correlation(y, h, weight) for y, h in zip(latents, nodes, strict=False)]
    return array_namespace(nodes[0]).stack(values, axis=1)


def _centred(x: Array, share: Array) -> tuple[Array, Array]:
    """x (R, B, W) minus its mean, and its standard deviation (R, 1, W), infinite where that is only rounding.

    Entries of one array are rounded alike: a node may be small because large terms cancel.
    """
    xp = array_namespace(x)
    largest = xp.where(share > 0, xp.abs(x), 0.0).max(axis=(1, 2), keepdims=True)  # (R, 1, 1)
    x = x - (share * x).sum(axis=1, keepdims=True)
    deviation = xp.sqrt((share * x * x).sum(axis=1, keepdims=True))
    return x, xp.where(deviation > 16 * xp.finfo(x.dtype).eps * largest, deviation, xp.inf)

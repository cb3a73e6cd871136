"""Correlation of single nodes of a network with the latent variables of its input."""

from odesim.base.arrays import Array, array_namespace


def correlations(latents: Array, nodes: Array, weight: Array) -> Array:
    """Pearson correlations (R, A, W) of latents (R, B, A) and nodes (R, B, W); 0 where one is constant, up to rounding.

    weight (R, B): how often a sample counts.
    """
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

    latents (R, B, A): 0 or 1; nodes (R, B, W); weight (R, B): how often a sample counts.
    """
    xp = array_namespace(nodes)
    best = correlations(latents, nodes, weight).max(axis=2)  # (R, A)
    occurs = ((xp.asarray(latents) > 0) & (xp.asarray(weight) > 0)[:, :, None]).any(axis=1)  # (R, A)
    count = xp.maximum(occurs.sum(axis=1), 1).astype(best.dtype)
    mean: Array = xp.where(occurs, best, 0.0).sum(axis=1) / count
    return mean


def _centred(x: Array, share: Array) -> tuple[Array, Array]:
    """x (R, B, W) minus its mean, and its standard deviation (R, 1, W), infinite where that is only rounding.

    Entries of one array are rounded alike: a node may be small because large terms cancel.
    """
    xp = array_namespace(x)
    largest = xp.where(share > 0, xp.abs(x), 0.0).max(axis=(1, 2), keepdims=True)  # (R, 1, 1)
    x = x - (share * x).sum(axis=1, keepdims=True)
    deviation = xp.sqrt((share * x * x).sum(axis=1, keepdims=True))
    return x, xp.where(deviation > 16 * xp.finfo(x.dtype).eps * largest, deviation, xp.inf)

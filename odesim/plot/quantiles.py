"""Quantiles of all members at many times, of blocks that are read one after the other."""

from collections.abc import Callable, Iterable

import numpy as np

from odesim.base.arrays import Array

SAMPLE = 20_000  # members from which the place of a quantile is guessed
AROUND = 0.03  # of the rank: a quantile of the sample is off by 0.0035 (standard error), so that this is 8 of them
BINS = 256  # between a rank that much lower and one that much higher: finer than a line is wide


def quantiles(read: Callable[[], Iterable[Array]], count: int, levels: Iterable[float], room: int) -> Array:
    """Quantiles (L, ...) over the first axis of blocks (n, ...) that read() yields; NaN is left out, and is the result of NaN alone.

    count: of members in all blocks; room: the number of members that fit in memory. If all fit, quantiles are numpy's. Else they are
    those of a random sample, moved to the right rank by counting all members in bins around them.
    """
    levels = np.array(list(levels))
    if count <= room:
        return nan_quantiles(np.concatenate(list(read())), levels)
    random, chosen = np.random.default_rng(0), []
    for block in read():
        chosen.append(block[random.random(len(block)) < min(SAMPLE, room) / count])
    sample = np.concatenate(chosen)
    low, high = (nan_quantiles(sample, np.clip(levels + side * AROUND, 0, 1)) for side in (-1, 1))
    return count_around(read(), levels, low, high)


def count_around(blocks: Iterable[Array], levels: Array, low: Array, high: Array) -> Array:
    """Quantiles (L, ...) of all blocks, which lie between low and high (L, ...), by counts in bins between these."""
    shape = low.shape[1:]
    low, high = low.reshape(len(levels), -1), high.reshape(len(levels), -1)
    width = np.where(high > low, high - low, 1.0)
    columns = np.arange(low.shape[1])
    counts, total = np.zeros((len(levels), low.shape[1], BINS + 2)), np.zeros(low.shape[1])
    for block in blocks:
        values = block.reshape(len(block), -1)
        finite = np.isfinite(values)
        total += finite.sum(axis=0)
        for k in range(len(levels)):
            with np.errstate(invalid="ignore"):
                place = np.clip(np.floor((values - low[k]) / width[k] * BINS) + 1, 0, BINS + 1)  # 0: below, BINS + 1: above
            flat = (columns * (BINS + 2) + np.where(finite, place, 0)).astype(np.int64)[finite]
            counts[k] += np.bincount(flat, minlength=counts[k].size).reshape(counts[k].shape)
    below = np.cumsum(counts, axis=2)
    found = np.full(low.shape, np.nan)
    for k, level in enumerate(levels):
        for c in np.flatnonzero(total):
            edge = low[k, c] + width[k, c] * np.arange(BINS + 1) / BINS
            found[k, c] = min(np.interp(level * total[c], below[k, c, :-1], edge), high[k, c])
    return found.reshape(len(levels), *shape)


def nan_quantiles(values: Array, levels: Array) -> Array:
    """Quantiles (L, ...) of values (n, ...) without NaN and infinities; NaN where no value is finite."""
    values = np.where(np.isfinite(values), values, np.nan)
    found = np.full((len(levels), *values.shape[1:]), np.nan)
    some = np.isfinite(values).any(axis=0)
    if some.any():
        found[:, some] = np.nanquantile(values[:, some], levels, axis=0)
    return found

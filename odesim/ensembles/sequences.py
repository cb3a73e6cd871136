"""Points of the unit cube that fill it more evenly than random ones: those of Sobol, Halton and Latin hypercubes, by their number."""

from functools import lru_cache

import numpy as np

from odesim.base.arrays import Array
from odesim.base.device import check_fits
from odesim.base.errors import ParamError, counted
from odesim.base.options import DESIGNS

SEQUENCES = DESIGNS[1:]
MOST_POINTS = {"sobol": 2**30}
"""scipy's points of Sobol have 30 bits."""
MOST_NUMBERS = {"sobol": 21201, "halton": 1000}
"""scipy's table has so many of Sobol's directions; Halton's points with the thousandth prime, 7919, fill no plane before 10^7 of them."""


def check_sequence(name: str, count: int, dimensions: int) -> None:
    """Raises ParamError unless `name` has this many points of so many numbers each."""
    most, widest = MOST_POINTS.get(name, count), MOST_NUMBERS.get(name, dimensions)
    if count > most:
        raise ParamError(f"a design {name} has at most {counted(most, 'member')}, not {count}")
    if dimensions > widest:
        raise ParamError(f"a design {name} is for at most {counted(widest, 'number')} of a member, and {dimensions} vary")
    if name == "latin":  # each of its points depends on all others
        check_fits(f"a design latin of {counted(count, 'member')}", {"all its points": 2 * count * dimensions}, 8)


@lru_cache(maxsize=4)
def sequence(name: str, seed: int, dimensions: int, count: int, first: int, end: int) -> Array:
    """The points first to end - 1 (end - first, dimensions) of the `count` points of scipy.stats.qmc with rng=seed.

    After the last one the first one comes again. name: one of SEQUENCES. The array is shared: it is read only.
    """
    check_sequence(name, count, dimensions)  # a stored run may be a stranger's
    parts = []
    while first < end:
        start = first % count
        stop = min(start + end - first, count)
        parts.append(_points(name, seed, dimensions, count, start, stop))
        first += stop - start
    points = np.concatenate(parts) if parts else np.empty((0, dimensions))
    points.setflags(write=False)
    return points


def _points(name: str, seed: int, dimensions: int, count: int, first: int, end: int) -> Array:
    from scipy.stats import qmc

    if name == "latin":
        return _hypercube(seed, dimensions, count)[first:end]
    engine = (qmc.Sobol if name == "sobol" else qmc.Halton)(dimensions, rng=seed)
    if first:
        engine.fast_forward(first)
        return np.asarray(engine.random(end - first))
    # the first point alone: asked for all at once, scipy warns where they are no power of 2, and warnings cannot be turned off in a thread
    return np.concatenate([engine.random(1), *([engine.random(end - 1)] if end > 1 else [])])


@lru_cache(maxsize=1)
def _hypercube(seed: int, dimensions: int, count: int) -> Array:
    from scipy.stats import qmc

    return np.asarray(qmc.LatinHypercube(dimensions, rng=seed).random(count))

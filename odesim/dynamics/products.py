"""Where a Jacobian, or its factors, are too large to be written down: what its products say of their terms, and what factors take."""

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import reverse_cuthill_mckee

from odesim.base.arrays import Array
from odesim.ir.krylov import Products
from odesim.ir.linear_systems import Pattern

LOOSE, TIGHT = 0.1, 1e-6
"""The largest and the least residual, beside the right-hand side, to which a Newton step is solved. The last step is solved to the least:
a looser one may be short because it leaves out what is slow."""
PROBES = 4
"""Random directions by which the sizes of rows are estimated: that all say less than a tenth of one happens to one row in 40,000."""
MOST_FILLED = 200_000_000
"""The most entries of factors: they take 3 GB and a minute or two, for random graphs from 27,000 nodes on."""
HUB = 10.0
"""An unknown with so many entries, as a multiple of the root of all, is a sum over everything, which is eliminated last."""


def sizes_of_terms(J: Products, d: Array) -> Array:
    """The sizes (n,) of the terms of the product J d, in the mean square."""
    # normal: of signs two equal terms cancel half of the time
    ways = np.random.default_rng(3).standard_normal((PROBES, len(d)))
    return np.asarray(np.sqrt(np.mean([(J @ (d * z)) ** 2 for z in ways], axis=0)))


def filled(pattern: Pattern) -> int:
    """About how many entries a factor of a sparse matrix has: its profile in the order of Cuthill and McKee, without full rows.

    Measured, both factors of SuperLU together have 0.5 of it for random graphs and grids in the plane, 2 for grids in space.
    """
    matrix = pattern.matrix(np.ones(len(pattern.rows)))
    graph = (matrix + matrix.T).tocsr()
    few = np.flatnonzero(np.diff(graph.indptr) <= HUB * np.sqrt(pattern.unknowns))
    graph = sparse.csr_matrix(graph[few][:, few])
    place = np.argsort(reverse_cuthill_mckee(graph, symmetric_mode=True))
    first = np.arange(len(few))
    np.minimum.at(first, np.repeat(place, np.diff(graph.indptr)), place[graph.indices])
    return int(np.sum(np.arange(len(few)) - first))

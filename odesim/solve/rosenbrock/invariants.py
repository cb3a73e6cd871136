"""Linear invariants of a right side kept by a stiff step: rounding in the Jacobian breaks them, and that adds up over the steps.

Where components are much smaller than they were, what is left of old rounding errors is large beside them. So the state after a step
is moved to where w.y is what it was at the start, by the least change in units of the components themselves: y_k by a part of itself
that goes as w_k y_k. Large components take what is to be taken, a component that is 0 stays 0.
"""

from collections.abc import Sequence

import numpy as np

from odesim.arrays import Array
from odesim.codegen.linear_invariant import LinearInvariant, exact_sums


class Kept:
    """Linear invariants with the values that they have at the start of a run."""

    def __init__(self, invariants: Sequence[LinearInvariant], start: Array) -> None:
        self._sums = [(np.array(i.places), np.array(i.weights), float(exact_sums(i, start[None])[0])) for i in invariants]

    def restore(self, y: Array) -> Array:
        """y (n,) itself, moved so that the invariants, one after another, have their values."""
        for places, weights, value in self._sums:
            parts = y[places]
            terms = weights * parts
            size = float(terms @ terms)
            rest = value - float(terms.sum())
            if size > 0 and np.isfinite(rest):
                y[places] = parts + parts * (terms * (rest / size))
        return y

"""The derivatives of a System's right-hand side for stiff methods, where the Jacobian is large and dense: its products with vectors.

Apart from compiled.py, which every run imports: matrices of derivatives, and what writes them out, take 35 ms to import.
"""

from dataclasses import dataclass

import numpy as np

from odesim.base.arrays import Array
from odesim.base.callbacks import VALUES
from odesim.ir.invariants import LinearInvariant
from odesim.ir.linear_systems import Jacobian, Products
from odesim.targets.compiled import BoundValues
from odesim.targets.linearization import MOST_DENSE, BoundLinear


@dataclass(frozen=True)
class BoundProducts:
    """The derivatives of a right-hand side with numbers (odesim.stepper.problem.ByProducts), the Jacobian as products with vectors.

    bound: the same with matrices. values: the compiled products, of a state and a direction after it.
    """

    bound: BoundLinear
    values: BoundValues

    def prepare(self) -> None:
        """Derives and compiles all derivatives now."""
        _ = self.values.events, self.values.table, self.bound.linear.diagonal, self.bound.linear.time, self.invariants()

    def jacobian(self, t: float, y: Array) -> Products:
        """The Jacobian df/dy at y (n,)."""
        n, call, table = len(y), VALUES(self.values.events), self.values.table
        both = np.concatenate([y, np.zeros(n)])

        def times(x: Array) -> Array:
            both[n:] = x
            out = np.empty(n)
            call(table, t, both.ctypes.data, out.ctypes.data)
            return out

        return Products(times, self.bound.diagonal(t, y))

    @property
    def has_matrix(self) -> bool:
        """Whether the Jacobian may be had as a matrix too."""
        return self.bound.layout.size <= MOST_DENSE

    def matrix(self, t: float, y: Array) -> Jacobian:
        """The Jacobian at y (n,) as a matrix."""
        return self.bound.jacobian(t, y)

    def time_slope(self, t: float, y: Array) -> Array | None:
        """As of BoundLinear."""
        return self.bound.time_slope(t, y)

    def invariants(self) -> tuple[LinearInvariant, ...]:
        """As of BoundLinear."""
        return self.bound.invariants()

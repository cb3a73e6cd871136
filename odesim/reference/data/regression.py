"""Independent normal inputs and a linear function of them, fresh in every iteration."""

from collections.abc import Sequence

import numpy as np

from odesim.base.arrays import Array
from odesim.lab.training.protocols import Batch
from odesim.lab.training.randomness import BATCHES, generators


class LinearTargets:
    """The Stream of batches for a JoMA block with the signal mse: x (R, B, M) iid normal, target c . x (R, B, 1), one query."""

    def __init__(self, seeds: Sequence[int], c: Array, batch: int, dtype: str) -> None:
        self.seeds, self.c, self.batch, self.dtype = tuple(seeds), c, batch, dtype

    def __call__(self, iteration: int) -> Batch:
        x = np.stack([rng.standard_normal((self.batch, len(self.c))) for rng in generators(self.seeds, BATCHES, iteration)])
        shape = (len(self.seeds), self.batch)
        return {
            "x": x.astype(self.dtype),
            "target": (x @ self.c)[..., None].astype(self.dtype),
            "query": np.zeros(shape, np.int64),
            "pi": np.full(shape, 1 / self.batch, self.dtype),
        }

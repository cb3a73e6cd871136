"""Gaussian inputs and what a two-layer teacher sum_m A_m g(w_m . x / sqrt N) says of them, with noise; fresh in every iteration."""

from collections.abc import Sequence

import numpy as np
from numpy.random import Generator

from odesim.base.arrays import Array
from odesim.lab.tasks.committee import ACTIVATIONS
from odesim.lab.training.protocols import Batch
from odesim.lab.training.randomness import BATCHES, DATA, generators

BLOCK = 2**14  # numbers of a seed that are drawn at once, where a batch is not larger


def orthogonal_teachers(seeds: Sequence[int], M: int, N: int) -> Array:
    """Weights (R, M, N) of a teacher for each seed: rows of length sqrt N at right angles, in random directions."""
    drawn = [rng.standard_normal((N, M)) for rng in generators(seeds, DATA)]
    return np.stack([np.linalg.qr(normal)[0].T * N**0.5 for normal in drawn])


class TeacherBatches:
    """A Stream {"x": (R, batch, N), "y": (R, batch)}: x iid normal, y the teacher's output with noise of deviation sigma."""

    def __init__(self, seeds: Sequence[int], teacher: Array, A: Array, activation: str, *, batch: int, sigma: float, dtype: str) -> None:
        self.seeds, self.teacher, self.A, self.activation = tuple(seeds), teacher, A, activation
        self.batch, self.sigma, self.dtype = batch, sigma, dtype
        self.rows = max(1, BLOCK // (batch * teacher.shape[2]))  # iterations drawn at once
        self.block = -1
        self.drawn: tuple[Array, Array] = (np.empty(0), np.empty(0))

    def __call__(self, iteration: int) -> Batch:
        block, row = divmod(iteration, self.rows)
        if block != self.block:
            pairs = zip(generators(self.seeds, BATCHES, block), self.teacher, strict=True)
            drawn = [self.one_seed(rng, teacher) for rng, teacher in pairs]
            self.drawn = np.stack([x for x, _ in drawn], axis=1), np.stack([y for _, y in drawn], axis=1)
            self.block = block
        x, y = self.drawn
        return {"x": x[row], "y": y[row]}

    def one_seed(self, rng: Generator, teacher: Array) -> tuple[Array, Array]:
        """x (rows, batch, N) and y (rows, batch) for one seed and its teacher (M, N)."""
        N = teacher.shape[1]
        x = rng.standard_normal((self.rows, self.batch, N))
        fields = x.reshape(-1, N) @ teacher.T * N**-0.5  # (rows * batch, M)
        y = ACTIVATIONS[self.activation].value(fields) @ self.A + self.sigma * rng.standard_normal(len(fields))
        return x.astype(self.dtype), y.reshape(self.rows, self.batch).astype(self.dtype)

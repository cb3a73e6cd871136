"""Facts about pairs and chains of tokens, and the order in which a training sees them."""

from collections.abc import Sequence

import numpy as np

from odesim.base.arrays import Array
from odesim.lab.training.protocols import Batch
from odesim.lab.training.randomness import BATCHES, generators


def pair_facts(pairs: int, both: int) -> tuple[Array, Array]:
    """Trained facts (2, N) and those held out (2, n), source and target: A_i -> B_i of all pairs, B_i -> A_i of the first `both`.

    A_i is token i, B_i token pairs + i.
    """
    A, B = np.arange(pairs), pairs + np.arange(pairs)
    trained = np.stack([np.r_[A, B[:both]], np.r_[B, A[:both]]])
    return trained, np.stack([B[both:], A[both:]])


def chain_facts(chains: int, whole: int) -> tuple[Array, Array, Array]:
    """Trained facts (2, N), those held out (2, n), and the two trained facts (2, n), by number, that lead to each of these.

    Trained: A_i -> B_i and B_i -> C_i of all chains, A_i ~> C_i of the first `whole`; held out: A_i ~> C_i of the others, source and
    target. A_i is token i, B_i token chains + i, C_i token 2 chains + i.
    """
    A = np.arange(chains)
    B, C = A + chains, A + 2 * chains
    trained = np.stack([np.r_[A, B, A[:whole]], np.r_[B, C, C[:whole]]])
    return trained, np.stack([A[whole:], C[whole:]]), np.stack([A[whole:], B[whole:]])


class FactStream:
    """The Stream {"source": (R, 1), "target": (R, 1)}: one fact in each iteration, with replacement, or each epoch in a new order."""

    def __init__(self, facts: Array, seeds: Sequence[int], *, shuffled: bool) -> None:
        self.facts, self.seeds, self.shuffled = facts, tuple(seeds), shuffled
        self.epoch = -1
        self.orders: Array = np.empty(0)

    def __call__(self, iteration: int) -> Batch:
        count = self.facts.shape[1]
        epoch, place = divmod(iteration, count)
        if epoch != self.epoch:
            rngs = generators(self.seeds, BATCHES, epoch)
            self.orders = np.stack([rng.permutation(count) if self.shuffled else rng.integers(count, size=count) for rng in rngs])
            self.epoch = epoch
        here = self.orders[:, place, None]  # (R, 1)
        return {"source": self.facts[0][here], "target": self.facts[1][here]}

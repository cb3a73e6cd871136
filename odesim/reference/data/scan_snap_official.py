"""Start and contexts of the published runs of tian2023scan, number for number, from the seeds of its code.

Source: facebookresearch/luckmatters, `ssl/real-dataset/decoder_only.py`, and `set_all_seeds` of `ssl/common_utils/helper.py`: a run with
seed s has Python's generator with seed s and torch's with seed s + 2. Torch draws the start, the decoder before the attention, also
where both are then set to 0. For each sequence Python draws the class and torch the tokens.
"""

from collections.abc import Sequence
from random import Random

import numpy as np

from odesim.base.arrays import Array
from odesim.lab.training.protocols import Batch, Params
from odesim.lab.training.randomness import OFFICIAL_SHIFT, TorchGenerator


def official_start(seeds: Sequence[int], M: int, queries: Array, rows: int, dtype: str) -> Params:
    """Y (R, rows, M) and Z (R, Q, rows) as torch starts two linear layers of M inputs and outputs. queries (Q,): their tokens."""
    bound, Y, Z = M**-0.5, [], []
    for seed in seeds:
        torch = TorchGenerator(seed + OFFICIAL_SHIFT)
        decoder, attention = (torch.uniform(-bound, bound, (M, M)) for _ in range(2))  # row: output
        Y.append(decoder.T[:rows])
        Z.append(attention[queries, :rows])
    return {"Y": np.array(Y, dtype), "Z": np.array(Z, dtype)}


def official_weights(common: int, unique: int) -> Array:
    """Probabilities (W,) of a class's tokens, float32: weight 1 of `common` ones, then its own, 0.1 to 1 as torch.linspace rounds."""
    low, high = np.float32(0.1), np.float32(1)
    step = (high - low) / np.float32(max(unique - 1, 1))
    up = np.arange(unique)
    rising, falling = float(low) + float(step) * up, float(high) - float(step) * up[::-1]
    own = np.where(up < unique // 2, rising, falling) if unique > 1 else np.full(unique, low)
    weights = np.concatenate([np.ones(common), own]).astype(np.float32)
    return weights / weights.sum()


class OfficialContexts:
    """A Stream {"classes": (R, batch), "counts": (R, batch, W)}: classes 0 to K - 1, `length` tokens each with these weights (W,).

    drawn_before: torch's 32-bit outputs that the start took. A batch needs those before it: going back starts again.
    """

    def __init__(self, seeds: Sequence[int], weights: Array, K: int, *, batch: int, length: int, drawn_before: int, dtype: str) -> None:
        self.seeds, self.weights, self.K, self.batch, self.length = tuple(seeds), weights, K, batch, length
        self.drawn_before, self.dtype = drawn_before, dtype
        self.next = 0
        self.generators: list[tuple[Random, TorchGenerator]] = []
        self.drawn: Batch = {}

    def __call__(self, iteration: int) -> Batch:
        if iteration != self.next - 1:
            self.go_to(iteration)
            batches = [self.one_seed(*pair) for pair in self.generators]
            classes, counts = (np.stack(arrays) for arrays in zip(*batches, strict=True))
            self.drawn = {"classes": classes, "counts": counts.astype(self.dtype)}
            self.next += 1
        return self.drawn

    def go_to(self, iteration: int) -> None:
        """The generators before this batch."""
        if iteration < self.next or not self.generators:
            self.generators = [(Random(seed), TorchGenerator(seed + OFFICIAL_SHIFT)) for seed in self.seeds]
            for _, torch in self.generators:
                torch.skip(self.drawn_before)
            self.next = 0
        for python, torch in self.generators:
            self.draw_classes(python, iteration - self.next)
            torch.skip(2 * (iteration - self.next) * self.batch * self.length)
        self.next = iteration

    def draw_classes(self, python: Random, batches: int) -> list[int]:
        """The classes of so many batches, one after the other."""
        choices = range(self.K)
        return [python.choice(choices) for _ in range(batches * self.batch)]

    def one_seed(self, python: Random, torch: TorchGenerator) -> tuple[Array, Array]:
        """Classes (batch,) and counts (batch, W) for one seed."""
        W = len(self.weights)
        tokens = torch.multinomial(self.weights, self.batch * self.length).reshape(self.batch, self.length)
        places = tokens + W * np.arange(self.batch)[:, None]
        return np.array(self.draw_classes(python, 1)), np.bincount(places.ravel(), minlength=W * self.batch).reshape(self.batch, W)

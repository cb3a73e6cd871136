"""Random numbers: numpy's generators by seed, purpose and block of iterations, and torch's CPU generator without torch."""

from collections.abc import Callable, Sequence
from math import prod
from typing import Generic, TypeVar

import numpy as np
from numpy.random import Generator, RandomState, default_rng
from numpy.typing import ArrayLike

from odesim.base.arrays import Array
from odesim.base.errors import ParamError
from odesim.lab.training.task import Batch

INITIAL, BATCHES, TESTS, DATA = 0, 1, 2, 3  # purposes
AT_ONCE = 2**14  # numbers of a seed that are drawn at once, where a batch is not larger
RNGS = ("numpy", "official")  # the setting rng: numpy's generators, or those of a paper's code, so that a seed is its run


def generators(seeds: Sequence[int], purpose: int, place: int = 0) -> list[Generator]:
    """A generator for each seed. Different purposes and places (blocks of iterations) have independent streams."""
    # numpy's SeedSequence mixes the three words, so nearby seeds are as independent as distant ones. A place of its own for each block
    # makes a batch a function of its number: a resumed training stores no state of generators, and goes back without drawing again.
    # Seeding takes some tens of microseconds, longer than drawing a small batch: streams draw a block of iterations at once.
    return [default_rng([seed, purpose, place]) for seed in seeds]


Draw = Callable[[Generator, int], Batch]
"""(generator, count) -> arrays (count, ...) by name."""


def stack_seeds(rows: Sequence[Batch], axis: int = 0) -> dict[str, Array]:
    """{name: (R, ...)} of the arrays of each seed."""
    return {name: np.stack([one[name] for one in rows], axis=axis) for name in rows[0]}


class InBlocks:
    """A Stream of arrays (R, ...) by name, drawn for `length` iterations at once and kept until another block is used.

    draw(generator, number of the seed): arrays (length, ...) of one seed.
    """

    def __init__(self, seeds: Sequence[int], length: int, draw: Draw) -> None:
        self.seeds, self.length, self.draw = tuple(seeds), length, draw
        self.block, self.arrays = -1, dict[str, Array]()

    def __call__(self, iteration: int) -> Batch:
        block, row = divmod(iteration, self.length)
        if block != self.block:
            by_seed = [self.draw(rng, r) for r, rng in enumerate(generators(self.seeds, BATCHES, block))]
            self.block, self.arrays = block, stack_seeds(by_seed, axis=1)
        return {name: a[row] for name, a in self.arrays.items()}


G = TypeVar("G")


class InOrder(Generic[G]):
    """A Stream of arrays (R, ...) by name from generators of a published program, of which a batch needs those before it.

    begin(seed): the generator of a seed before its first batch. skip(generator, batches) leaves out so many. draw(generator): arrays
    (...) of the next one. Going back begins again.
    """

    def __init__(self, seeds: Sequence[int], begin: Callable[[int], G], skip: Callable[[G, int], None], draw: Callable[[G], Batch]) -> None:
        self.seeds, self.begin, self.skip, self.draw = tuple(seeds), begin, skip, draw
        self.next, self.generators = 0, list[G]()
        self.batch: Batch = {}

    def __call__(self, iteration: int) -> Batch:
        if iteration != self.next - 1:
            if iteration < self.next or not self.generators:
                self.generators, self.next = [self.begin(seed) for seed in self.seeds], 0
            for generator in self.generators:
                self.skip(generator, iteration - self.next)
            self.batch, self.next = stack_seeds([self.draw(generator) for generator in self.generators]), iteration + 1
        return self.batch


class Drawn:
    """A Stream of arrays (R, batch, ...) by name: new ones in every iteration, or always the same `samples`. draw: of one seed."""

    def __init__(self, seeds: Sequence[int], draw: Draw, *, batch: int, samples: int = 0) -> None:
        self.seeds, self.draw, self.size = tuple(seeds), draw, batch
        self.fixed = self.drawn(samples, DATA) if samples else None

    def __call__(self, iteration: int) -> Batch:
        return self.drawn(self.size, BATCHES, iteration) if self.fixed is None else self.fixed

    def test(self, count: int) -> Batch:
        """Samples that are not trained on."""
        return self.drawn(count, TESTS)

    def drawn(self, count: int, purpose: int, place: int = 0) -> Batch:
        """A batch of `count` samples for each seed."""
        return stack_seeds([self.draw(rng, count) for rng in generators(self.seeds, purpose, place)])


# Torch's random numbers on a CPU, without torch: the same numbers, in the same order, as after torch.manual_seed(seed).
#
# Source: `CPUGeneratorImpl.cpp`, `DistributionTemplates.h`, `DistributionsHelper.h` and `MultinomialKernel.cpp` of PyTorch (ATen). Every
# number comes from the 32-bit outputs of one Mersenne Twister, MT19937 (Matsumoto and Nishimura 1998), that the seed starts.

GROUP = 16  # numbers that the Box-Muller transform takes at once
FEWEST = 2  # numbers that a multinomial draws; torch draws a single one in another way
OFFICIAL_SHIFT = 2  # from the seed of a published run to its torch generator's
BLOCK = 2**20  # outputs left out at once
MOST = 2**28 - 1  # of randint: above it torch takes 64 bits a number


class TorchGenerator:
    """torch.Generator of a CPU with this seed. Numbers are float32 values in float64, as torch's default type has them."""

    def __init__(self, seed: int) -> None:
        self._twister = RandomState(seed % 2**32)  # torch takes 32 bits of a seed
        self._sine: float | None = None

    def raw(self, count: int) -> Array:
        """The next 32-bit outputs (count,) of the Mersenne Twister, as uint64."""
        return self._twister.randint(2**32, size=count, dtype=np.uint32).astype(np.uint64)

    def skip(self, count: int) -> None:
        """Leaves out `count` 32-bit outputs."""
        for first in range(0, count, BLOCK):
            self._twister.bytes(4 * min(BLOCK, count - first))

    def random(self, shape: tuple[int, ...]) -> Array:
        """torch.rand(shape): uniform in [0, 1), 24 bits each."""
        return (self.raw(prod(shape)) & 0xFFFFFF).reshape(shape) * 2.0**-24

    def random_double(self, shape: tuple[int, ...]) -> Array:
        """torch.rand(shape, dtype=torch.float64): uniform in [0, 1), 53 bits of two outputs each, the high ones first."""
        high, low = self.raw(2 * prod(shape)).reshape(-1, 2).T
        return ((high << np.uint64(32) | low) & (2**53 - 1)).reshape(shape) * 2.0**-53

    def uniform(self, low: float, high: float, shape: tuple[int, ...]) -> Array:
        """torch.empty(shape).uniform_(low, high): low + x (high - low) by a fused multiply-add in float32, which rounds once."""
        low32, width = np.float32(low), np.float32(high) - np.float32(low)
        return _single(float(low32) + self.random(shape) * float(width))

    def normal(self, shape: tuple[int, ...]) -> Array:
        """torch.randn(shape): N(0, 1) by Box-Muller. Torch's own float32 logarithm and sines make it differ by some 1e-7."""
        size = prod(shape)
        if size < GROUP:
            return _single([self._one_normal() for _ in range(size)]).reshape(shape)
        values = self.random((size,))
        whole = size - size % GROUP
        values[:whole] = _box_muller(values[:whole])
        if whole < size:  # the last 16 are drawn again
            values[-GROUP:] = _box_muller(self.random((GROUP,)))
        return _single(values).reshape(shape)

    def _one_normal(self) -> float:
        """One N(0, 1), cosine and sine of a pair in turn; the generator keeps the sine, also for the next call."""
        if self._sine is not None:
            value, self._sine = self._sine, None
            return value
        angle, radius = self.random_double((2,))
        radius, angle = np.sqrt(-2 * np.log1p(-radius)), 2 * np.pi * angle
        self._sine = float(radius * np.sin(angle))
        return float(radius * np.cos(angle))

    def randint(self, high: int, shape: tuple[int, ...]) -> Array:
        """torch.randint(0, high, shape). Raises ParamError unless 1 <= high < 2^28."""
        if not 1 <= high <= MOST:
            raise ParamError(f"high must be 1 to {MOST}, not {high}")
        return (self.raw(prod(shape)) % high).astype(np.int64).reshape(shape)

    def multinomial(self, weights: Array, count: int) -> Array:
        """torch.multinomial(weights, count, replacement=True): indices (..., count) with probabilities weights (..., W), in float32.

        Raises ParamError for a count below 2, which torch draws in another way.
        """
        if count < FEWEST:
            raise ParamError(f"count must be at least {FEWEST}, not {count}")
        sums = np.cumsum(np.asarray(weights, np.float32), axis=-1)
        sums /= sums[..., -1:]
        draws = self.random_double((*sums.shape[:-1], count))
        rows = zip(sums.reshape(-1, sums.shape[-1]).astype(float), draws.reshape(-1, count), strict=True)
        return np.array([np.searchsorted(row, numbers) for row, numbers in rows]).reshape(draws.shape)


def normal_outputs(size: int) -> int:
    """How many 32-bit outputs the normal numbers of one array of this size take."""
    return 4 * -(-size // 2) if size < GROUP else size + GROUP * (size % GROUP > 0)


def _single(values: ArrayLike) -> Array:
    """values rounded to float32."""
    return np.asarray(values, np.float32).astype(float)


def _box_muller(uniform: Array) -> Array:
    """Normal numbers from uniform ones (n,), n a multiple of 16: in each group number j < 8 gives the radius, j + 8 the angle."""
    radius, angle = uniform.reshape(-1, 2, GROUP // 2).swapaxes(0, 1)
    radius, angle = np.sqrt(-2 * np.log(1 - radius)), 2 * np.pi * angle
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1).ravel()

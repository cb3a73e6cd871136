"""The task tokens: a stack of blocks of attention, which nothing trains; the tokens that go through it, block by block.

Source: Geshkovski et al. 2023, arXiv 2312.10794. A block adds h times what attention reads, Q = K = V = 1, and noise of variance 2 kappa h,
then normalises: x <- (x + h f + noise) / |x + h f + noise|. Attention is softmax(beta <x_i, x_j>), or without the normalisation of softmax
(K/n) exp(beta <x_i, x_j>). An iteration is a block, its depth h: small blocks are particles.sphere, or, of many tokens,
particles.density and particles.sphere_density, both to the order h. Moments are about the mean of the tokens.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.random import Generator

from odesim.base.arrays import Array, array_namespace, on_same_device
from odesim.base.errors import ParamError
from odesim.lab.networks.measures import norm
from odesim.lab.training.randomness import AT_ONCE, InBlocks
from odesim.lab.training.task import Batch, Experiment, Observable, Pair, Params, ReferenceTask, Setting, Settings, pair_of


@dataclass(frozen=True, eq=False)
class Stack:
    """Tokens x (R, n, d) as a Model. Its batch: noise (R, n, d), or nothing.

    What it calls the gradient is what a block does over -h, so that a step of descent at the rate h is a block.
    """

    shape: tuple[int, int]
    beta: float
    strength: float
    softmax: bool
    h: float
    spread: float
    modes: int

    name = "blocks"
    groups = MappingProxyType({"x": "x"})

    @property
    def observables(self) -> tuple[Observable, ...]:
        """Under the names of particles.*."""
        return (
            Observable.parameter("x", ("i", "a"), "tokens", costly=True),
            Observable("a", self.moments, ("k",), "moments of the cosine to the mean"),
            Observable("r", lambda params: norm(params["x"].mean(axis=1)), (), "length of the mean"),
        )

    def initial(self, rngs: Sequence[Generator], dtype: str) -> Params:
        """Normal directions about the first axis: e_1 + spread z, of length 1."""
        x = np.stack([self.spread * rng.standard_normal(self.shape) for rng in rngs])
        x[:, :, 0] += 1
        return {"x": (x / np.linalg.norm(x, axis=2, keepdims=True)).astype(dtype)}

    def loss_and_gradients(self, params: Params, batch: Batch) -> tuple[Array, Params]:
        """1 - mean exp(beta (<x_i, x_j> - 1)) (R,), 0 where all tokens are one, and {x: (R, n, d)}."""
        x, batch = params["x"], on_same_device(params["x"], batch)
        xp = array_namespace(x)
        near = xp.exp(self.beta * (x @ x.swapaxes(1, 2) - 1))  # (R, n, n)
        each = near.sum(axis=2)[..., None]  # (R, n, 1)
        scale = 1 / each if self.softmax else float(np.exp(self.beta)) / self.shape[0]
        moved = x + (self.h * self.strength) * scale * (near @ x)
        if batch:
            moved = moved + batch["noise"]
        moved = moved / norm(moved)[..., None]
        return 1 - each.mean(axis=(1, 2)) / self.shape[0], {"x": (x - moved) * (1 / self.h)}

    def moments(self, params: Params) -> Array:
        """a (R, modes): means of P_k(u), u the cosine to the mean, P_k Gegenbauer's polynomial of d dimensions with P_k(1) = 1."""
        x, d = params["x"], self.shape[1]
        mean = x.mean(axis=1)
        u = (x @ (mean / norm(mean)[:, None])[..., None])[..., 0]  # (R, n)
        before, now = array_namespace(u).ones_like(u), u
        means = [before.mean(axis=1), now.mean(axis=1)]
        for k in range(1, self.modes - 1):
            before, now = now, ((2 * k + d - 2) * u * now - k * before) / (k + d - 2)
            means.append(now.mean(axis=1))
        return array_namespace(u).stack(means[: self.modes], axis=1)


SETTINGS = (
    Setting("n", 64, "tokens", low=1),
    Setting("d", 2, "dimensions", low=2),
    Setting("beta", 1.0, "inverse temperature of attention", low=0.0),
    Setting("K", 1.0, "strength of attention", low=0.0),
    Setting("kappa", 0.0, "strength of the noise", low=0.0),
    Setting("attention", "softmax", "or without its normalisation", choices=("softmax", "unnormalised")),
    Setting("h", 0.05, "depth of a block", low=0.0, open_low=True, rate_of="x"),
    Setting("optimizer", "sgd", "a step at the rate h is a block; no other one is", choices=("sgd",)),
    Setting("spread", 1.0, "of the tokens at the start, about the first axis", low=0.0, open_low=True),
    Setting("modes", 24, "moments that are recorded", low=2),
)


def memory(values: Settings, seeds: int, model: str) -> Mapping[str, int]:
    """{what takes memory: number of numbers} of a run: products of tokens, and tokens with their noise."""
    n, d = values["n"], values["d"]
    drawn = (seeds + 2) * max(AT_ONCE, n * d) if values["kappa"] > 0 else 0
    return {"the products of tokens": 3 * seeds * n * n, "the tokens": 8 * seeds * n * d + drawn, "the moments": seeds * values["modes"]}


def make(values: Settings, seeds: tuple[int, ...], model: str, dtype: str) -> Experiment:
    """The experiment. Raises ParamError for a strength of attention with softmax, which K is not of."""
    n, d, softmax = values["n"], values["d"], values["attention"] == "softmax"
    beta, K, kappa, h = (float(values[name]) for name in ("beta", "K", "kappa", "h"))
    if softmax and K != 1:
        raise ParamError(f"K is {K:g}, and softmax has the strength 1: attention=unnormalised has another")
    rows, wide = max(1, AT_ONCE // (n * d)), (2 * kappa * h) ** 0.5

    def drawn(rng: Generator, r: int) -> Batch:
        return {"noise": (wide * rng.standard_normal((rows, n, d))).astype(dtype)}

    params = {"beta": beta, "K": K, "kappa": kappa}
    of_each = {"particles.sphere": {"beta": beta}, "particles.density": params, "particles.sphere_density": {**params, "d": float(d)}}
    return Experiment(
        model=Stack((n, d), beta, K, softmax, h, values["spread"], values["modes"]),
        stream=InBlocks(seeds, rows, drawn) if kappa > 0 else lambda i: {},
        steps=400,
        theory=of_each,
    )


def of_density(**required: Any) -> Pair:
    """The Pair of a density, which starts with the moments of the tokens."""
    example = {"attention": "unnormalised", "kappa": 0.5}
    required["attention"] = ("unnormalised",)
    return pair_of("a", "r", step="x", linear=False, start="a", requirements=required, example=example)


SOFTMAX = {"attention": ("softmax",), "kappa": (0,)}
PAIRS = {
    "particles.sphere": pair_of("x", step="x", linear=False, start="x", requirements=SOFTMAX, example={"n": 6}),
    "particles.density": of_density(d=(2,)),
    "particles.sphere_density": of_density(),
}
DOC = "tokens that go through a stack of blocks of attention, with noise (geshkovski2023mathematical)"
TASK = ReferenceTask("tokens", DOC, SETTINGS, make, memory, ("blocks",), PAIRS)

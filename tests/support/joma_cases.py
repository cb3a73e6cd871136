"""Small JoMA blocks with random data, and three lines of gradient descent."""

from typing import Any

import numpy as np

from odesim.base.arrays import Array
from odesim.lab.networks.joma import JomaBlock
from odesim.lab.training.task import Batch, Params

ATTENTIONS, PHIS, SIGNALS = ("linear", "exp", "softmax"), ("identity", "relu", "softplus", "square"), ("fixed", "ce", "mse")
N, MC, MQ, K, C, D = 6, 5, 2, 3, 4, 9


def batch_of(seeds: int, *, queries: int = MQ, dtype: str = "float64") -> dict[str, Array]:
    """A batch for every signal: counts of tokens, some of them 0, in six samples of unequal weight."""
    rng = np.random.default_rng(5)
    x = rng.integers(0, 3, (seeds, N, MC)) / 2 + rng.uniform(0, 0.5, (seeds, N, MC)) * rng.integers(0, 2, (seeds, N, MC))
    x[..., 0] += 0.25  # no sample without a token
    pi = rng.uniform(0.5, 1.5, (seeds, N))
    floats = {
        "x": x,
        "pi": pi / pi.sum(axis=1, keepdims=True),
        "signal": rng.standard_normal((seeds, N, K)),
        "target": rng.standard_normal((seeds, N, C)),
    }
    query = np.tile(np.arange(N) % queries, (seeds, 1))
    return {name: a.astype(dtype) for name, a in floats.items()} | {"query": query, "label": rng.integers(0, C, (seeds, N))}


def block_of(
    attention: str, phi: str = "identity", signal: str = "ce", *, queries: int = MQ, oblique: bool = False, **options: Any
) -> JomaBlock:
    """A block of 5 tokens and 3 nodes at T = 0.7 below 4 outputs; oblique: trained as W, embeddings random."""
    rng = np.random.default_rng(6)
    top, embeddings = rng.standard_normal((C, K)), rng.standard_normal((D, MC + queries)) / 2
    given: dict[str, Any] = {"temperature": 0.7, "scale": 0.5, "top": top, "embeddings": embeddings if oblique else None} | options
    return JomaBlock((MC, queries, K), attention=attention, phi=phi, signal=signal, **given)


def start_of(block: JomaBlock, seeds: int = 1, dtype: str = "float64") -> Params:
    """Parameters of seeds 0, 1, ..."""
    return block.initial([np.random.default_rng(seed) for seed in range(seeds)], dtype)


def descend(block: JomaBlock, params: Params, batch: Batch, steps: int, rates: dict[str, float]) -> Params:
    """Parameters after so many steps of plain gradient descent."""
    for _ in range(steps):
        gradients = block.loss_and_gradients(params, batch)[1]
        params = {name: a - rates[block.groups[name]] * gradients[name] for name, a in params.items()}
    return params

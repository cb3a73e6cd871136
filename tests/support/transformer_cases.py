"""Small transformers, one a combination of options, and random batches for them."""

from typing import Any

import numpy as np

from odesim.base.arrays import Array
from odesim.lab.networks.transformer import Transformer
from odesim.lab.training.randomness import generators

R, B, T, V, D = 2, 3, 5, 7, 6
SMALL: dict[str, Any] = {"vocabulary": V, "width": D, "layers": 2, "mlp": 9, "heads": 2}
HIERARCHY: dict[str, Any] = {
    "heads": 1,
    "norm": "post",
    "activation": "relu",
    "projection": False,
    "biases": ("mlp", "head"),
    "outputs": 4,
}
# every option away from its default at least once, and the pairs that meet in the code
CASES: dict[str, dict[str, Any]] = {
    "default": {},
    "hierarchy": HIERARCHY,
    "post": {"norm": "post", "positions": 8},
    "bare": {"norm": "none", "biases": (), "mlp": 0, "heads": 1},
    "pre, no projection": {"projection": False, "start": "normal", "std": 0.5},
    "no head bias": {"biases": ("attention", "projection"), "activation": "relu"},
    "next token": {"at": "all", "positions": T},
    "masked": {"at": "given", "causal": False, "positions": T},
    "bidirectional": {"causal": False, "biases": ("projection", "mlp")},
    "given, post": {"at": "given", "outputs": 3, "norm": "post"},
    "no layer": {"layers": 0, "at": "all"},
    "attention only": {"mlp": 0, "at": "all", "norm": "post"},
}
EXTRAS: dict[str, tuple[str, ...]] = {
    "plain": (),
    "log_weight": ("log_weight",),
    "weight": ("weight",),
    "both": ("log_weight", "weight"),
}


def make(case: str, **more) -> Transformer:
    return Transformer(**(SMALL | CASES[case] | more))


def start(model: Transformer, seeds=range(R), dtype="float64") -> dict[str, Array]:
    """Parameters, gains and shifts included, away from special values."""
    params = model.initial(generators(seeds, 0), dtype)
    for name, value in params.items():
        if name.endswith(("gain", "shift")):
            value += np.stack([g.uniform(-0.3, 0.3, value.shape[1:]) for g in generators(seeds, 1, len(name))]).astype(dtype)
    return params


def batch_for(model: Transformer, extras: tuple[str, ...] = (), R: int = R, B: int = B, T: int = T, seed: int = 0) -> dict[str, Array]:
    """A random batch; where at is "all" or "given" some rows are left out of the loss."""
    rng = np.random.default_rng(seed)
    P = {"last": (), "all": (T,), "given": (4,)}[model.at]
    batch: dict[str, Array] = {"tokens": rng.integers(0, model.vocabulary, (R, B, T))}
    if model.at == "given":
        batch["positions"] = rng.integers(-1, T, (R, B, *P))  # some twice, some left out
    batch["targets"] = rng.integers(-1 if P else 0, model.classes, (R, B, *P))
    unseen = np.arange(T) < rng.integers(0, T, (R, B, 1))  # at least the last token is seen
    entries = {
        "log_weight": np.where(unseen, -np.inf, rng.standard_normal((R, B, T))),
        "weight": rng.random((R, B)),
    }
    return batch | {name: entries[name] for name in extras}

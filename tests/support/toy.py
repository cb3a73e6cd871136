"""The smallest task: least squares on drawn batches, for what trains, stores and resumes; `odesim train toy` where it is registered."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from odesim.base.errors import ParamError
from odesim.lab.training.randomness import BATCHES, generators
from odesim.lab.training.task import Batch, Experiment, Observable, Optimizer, Params, Setting


@dataclass(frozen=True)
class LeastSquares:
    """w (R, D): half the mean square of x.w - y over a batch x (R, B, D), y (R, B)."""

    size: int
    slow: float = 0.0
    name: str = "linear"

    @property
    def groups(self) -> Mapping[str, str]:
        return {"w": "w"}

    @property
    def observables(self) -> tuple[Observable, ...]:
        return (
            Observable("norm", lambda p: np.sqrt(np.sum(p["w"] ** 2, axis=1)), (), "length of w"),
            Observable("w", lambda p: p["w"], ("d",), "the weights"),
            Observable("cubes", lambda p: p["w"] ** 3, ("d",), "w^3", costly=True),
            Observable("outer", lambda p: np.tile(p["w"][:, :1], (1, 1001)), ("wide",), "more than 1000 entries"),
        )

    def initial(self, rngs: Sequence[np.random.Generator], dtype: str) -> Params:
        return {"w": np.stack([rng.normal(size=self.size) for rng in rngs]).astype(dtype)}

    def loss_and_gradients(self, params: Params, batch: Batch) -> tuple[Any, Params]:
        if self.slow:
            import time

            time.sleep(self.slow)
        x, w = batch["x"].astype(params["w"].dtype), params["w"]
        error = np.matmul(x, w[:, :, None])[:, :, 0] - x.sum(axis=2)  # (R, B); the target is w = 1
        return np.mean(error**2, axis=1) / 2, {"w": np.matmul(error[:, None, :], x)[:, 0] / x.shape[1]}


@dataclass(frozen=True)
class Toy:
    """The task."""

    name: str = "toy"
    doc: str = "Least squares on drawn batches."
    models: tuple[str, ...] = ("linear", "other")
    settings: tuple[Setting, ...] = (
        Setting("size", 3, "number of weights", low=1),
        Setting("rate", 0.1, "learning rate", low=0, open_low=True),
        Setting("slow", 0.0, "seconds an iteration", low=0, high=10),
        Setting("noise", "none", "of the batches", choices=("none", "normal")),
        Setting("text", "", "a text"),
        Setting("flag", False, "anything"),
        Setting("scale", None, "of the batches (D,)", low=0, rank=1),
    )

    def memory(self, values: Mapping[str, Any], seeds: int, model: str | None = None) -> Mapping[str, int]:
        return {"w": 8 * seeds * values["size"]}

    def make(self, values: Mapping[str, Any], *, seeds: Sequence[int], model: str | None = None, dtype: str = "float64") -> Experiment:
        size, scale = values["size"], values["scale"]
        if scale is not None and np.shape(scale) != (size,):
            raise ParamError(f"scale has shape {np.shape(scale)}, not ({size},)")

        def stream(i: int) -> Batch:
            x = np.stack([rng.normal(size=(4, size)) for rng in generators(seeds, BATCHES, i)])
            return {"x": x if scale is None else x * scale}

        optimizer = Optimizer("sgd", {"w": values["rate"]}, momentum=0.5)
        network = LeastSquares(size, values["slow"])
        return Experiment(network, stream, optimizer, steps=20, task="toy", config=dict(values), seeds=tuple(seeds))


TASK = Toy()

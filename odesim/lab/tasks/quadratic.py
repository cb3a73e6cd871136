"""The task quadratic: a layer W of weights on the loss tr(W H W^T)/2 - <b, W>, by each of the optimizers.

Gradients are full: a linear layer on inputs of covariance H, in the mean over all of them. With one row it is what optimisers.* have of
weights w; with H = 1 what optimisers.muon has, |W - b|^2/2 but for a constant. The Maps are the steps themselves, to rounding;
optimisers.adam, momentum and sign are limits of small steps, the last one smoothed over slopes up to lr max(H), about which steps of a
sign go to and fro.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from odesim.base.arrays import Array, array_namespace
from odesim.base.errors import ParamError, counted
from odesim.lab.training.network import InitialLaw, Network, constant
from odesim.lab.training.optimizers import SGD, descent
from odesim.lab.training.task import (
    Batch,
    Experiment,
    Link,
    Observable,
    Pair,
    Params,
    ReferenceTask,
    Setting,
    Settings,
    TrainingFacts,
    pair_of,
)


@dataclass(frozen=True, eq=False)
class Quadratic(Network):
    """W (R, m, n) as a Model without batches. H (n, n), b (m, n)."""

    laws: Mapping[str, InitialLaw]
    H: Array
    b: Array

    name, group = "linear", "W"

    @property
    def observables(self) -> tuple[Observable, ...]:
        """Under the names of optimisers.*: w is the first row of W."""
        return (
            Observable.parameter("W", ("i", "j"), "weights"),
            Observable("w", lambda params: params["W"][:, 0].copy(), ("i",), "the first row of the weights"),
        )

    def loss_and_gradients(self, params: Params, batch: Batch) -> tuple[Array, Params]:
        """The loss (R,) and its gradient {W: (R, m, n)}."""
        W = params["W"]
        xp = array_namespace(W)
        H, b = (xp.asarray(a, dtype=W.dtype) for a in (self.H, self.b))
        pull = W @ H
        return (W * (0.5 * pull - b)).sum(axis=(1, 2)), {"W": pull - b}


SETTINGS = (
    Setting("H", None, "Hessian (n, n), symmetric; 1, 2, ... on its diagonal"),
    Setting("b", None, "minus the slope at 0 (m, n), or (n,) for one row; 0"),
    Setting("W", None, "weights at the start, as b; 1, 1/2, 1/3, as n and b say"),
    Setting("n", 2, "columns, where none of the arrays is given", low=1),
    *descent(0.01, group="W")[:1],
    Setting("b1", 0.9, "memory of the mean of slopes, of adam", low=0.0, high=1.0),
    Setting("b2", 0.99, "memory of the mean of squares, of adam", low=0.0, high=1.0),
    Setting("eps", 1e-8, "added to the root of the mean square, of adam", low=0.0, open_low=True),
    *SGD,
)


def arrays(values: Settings) -> tuple[Array, Array, Array]:
    """H (n, n), b and W (m, n). Raises ParamError for shapes that do not fit."""
    given = {name: np.asarray(values[name], float) for name in ("H", "b", "W") if values[name] is not None}
    rows = [np.atleast_2d(given[name]) for name in ("b", "W") if name in given]
    n = int(values["n"]) if not given else (rows[0] if rows else np.atleast_2d(given["H"])).shape[1]
    m = len(rows[0]) if rows else 1
    H = np.atleast_2d(given["H"]) if "H" in given else np.diag(np.arange(1.0, n + 1))
    b = np.atleast_2d(given["b"]) if "b" in given else np.zeros((m, n))
    W = np.atleast_2d(given["W"]) if "W" in given else np.tile(1 / np.arange(1.0, n + 1), (m, 1))
    for name, a, shape in (("H", H, (n, n)), ("b", b, (m, n)), ("W", W, (m, n))):
        if a.shape != shape:
            raise ParamError(f"{name} has the shape {a.shape}, and the others make it {shape}")
    if not np.allclose(H, H.T, rtol=0, atol=1e-12):
        raise ParamError("H is not symmetric")
    return H, b, W


def memory(values: Settings, seeds: int, model: str) -> Mapping[str, int]:
    """{what takes memory: number of numbers} of a training: weights with what moves them, H."""
    size = {name: 0 if values[name] is None else np.size(values[name]) for name in ("H", "b", "W")}
    n = values["n"] if not any(size.values()) else 1
    return {"the weights": 8 * seeds * max(size["b"], size["W"], n), "the Hessian": 3 * max(size["H"], n * n)}


def make(values: Settings, seeds: tuple[int, ...], model: str, dtype: str) -> Experiment:
    """The experiment. Raises ParamError for shapes that do not fit, an H that is not symmetric."""
    H, b, W = arrays(values)
    lr, mu, b1, b2, eps = (float(values[name]) for name in ("eta", "momentum", "b1", "b2", "eps"))
    row = {"H": H, "b": b[0], "w0": W[0]}
    times = {"t1": -lr / np.log(b1), "t2": -lr / np.log(b2)} if 0 < b1 < 1 and 0 < b2 < 1 else {}
    of_each: dict[str, dict[str, Any]] = {
        "optimisers.adam": {**row, **times, "eps": eps, "first": lr},
        "optimisers.adam_steps": {**row, "lr": lr, "b1": b1, "b2": b2, "eps": eps},
        "optimisers.heavy_ball": {**row, "lr": lr, "mu": mu},
        "optimisers.momentum": {**row, "gamma": (1 - mu) / lr**0.5},
        "optimisers.sign": {**row, "eps": max(float(np.abs(H).max()) * lr, 1e-300)},
        "optimisers.muon": {"A": b, "lr": lr, "beta": mu},
    }
    return Experiment(model=Quadratic({"W": constant(W)}, H, b), stream=lambda i: {}, steps=200, theory=of_each)


def not_a_row(facts: TrainingFacts) -> list[str]:
    """A phrase where W has several rows."""
    rows = len(arrays(facts.config)[2])
    return [f"b and W have {counted(rows, 'row')}, not 1"] * (rows > 1)


def without_memory(facts: TrainingFacts, least: float = 0) -> list[str]:
    """Phrases where a mean of Adam is that of the last step alone, unless least is below 0, or of all."""
    return not_a_row(facts) + [f"{name} is {facts.config[name]:g}" for name in ("b1", "b2") if not least < facts.config[name] < 1]


def not_of_muon(facts: TrainingFacts) -> list[str]:
    """Phrases where the loss is not |W - b|^2 / 2, or W is high."""
    H, _, W = arrays(facts.config)
    wrong = ["H is not 1"] * (not np.array_equal(H, np.eye(len(H)))) + ["W has more rows than columns"] * (len(W) > W.shape[1])
    return wrong + ["momentum is 1"] * (facts.config["momentum"] >= 1)


def of_row(step: Any, optimizers: tuple[str, ...], wrong: Any = not_a_row, **more: Any) -> Pair:
    """The Pair of a System of weights w (n,), whose start is its parameter w0. step: as of pair_of."""
    example = {"optimizer": optimizers[0], **more}
    return pair_of("w", "loss", step=step, linear=False, other_misfits=wrong, optimizers=optimizers, example=example)


MATRICES = {"H": np.eye(3), "b": np.diag([2.0, 1.0, 0.5]), "W": np.zeros((3, 3))}
PAIRS = {
    "optimisers.adam": of_row("W", ("adam",), without_memory),
    "optimisers.adam_steps": of_row(
        Pair.step, ("adam",), lambda facts: without_memory(facts, -1)
    ),
    "optimisers.heavy_ball": of_row(Pair.step, ("sgd", "momentum"), momentum=0.9),
    "optimisers.momentum": of_row(lambda facts: float(facts.optimizer["rates"]["W"]) ** 0.5, ("sgd", "momentum"), momentum=0.9),
    "optimisers.sign": of_row("W", ("sign",), lambda facts: not_a_row(facts) + ["momentum is not 0"] * (facts.config["momentum"] > 0)),
    "optimisers.muon": pair_of(
        "W", Link("loss", ("loss",), lambda seen, facts: seen["loss"] + 0.5 * (arrays(facts.config)[1] ** 2).sum()),  # |W - b|^2 / 2
        linear=False, start="W", other_misfits=not_of_muon, optimizers=("muon",),
        example={"optimizer": "muon", **MATRICES},
    ),
}  # fmt: skip
DOC = "weights on a quadratic loss, by each of the optimizers (kingma2015adam, jordan2024muon)"
TASK = ReferenceTask("quadratic", DOC, SETTINGS, make, memory, ("linear",), PAIRS)

"""The task power_law: linear regression by one-pass SGD, inputs and target on power laws.

Source: Paquette, Paquette, Xiao and Pennington 2024, arXiv 2405.15074, without random features. Inputs are x_j ~ N(0, j^(-2a)), each by
itself, the target has the coefficients j^(-b), labels have noise of variance s2; every step takes a new batch, from weights 0.

In the mean over seeds the squared errors D of the coefficients follow scaling.sgd, to second order in eta for one sample a step and to
first order for more; time counts steps. One seed is off by the noise of its own samples, which is no smaller than the risk itself: that is
in noise.sgd_least_squares, whose paths have the law of those of SGD to first order in eta. With lam and target given there is no power law.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from odesim.base.arrays import Array, array_namespace, on_same_device, shaped
from odesim.lab.training.network import InitialLaw, Network, constant
from odesim.lab.training.optimizers import descent
from odesim.lab.training.randomness import AT_ONCE, InBlocks
from odesim.lab.training.task import Batch, Experiment, Link, Observable, Params, ReferenceTask, Setting, Settings, pair_of


@dataclass(frozen=True, eq=False)
class Regression(Network):
    """One linear unit as a Model. Its batch: x (R, B, n) and y (R, B). lam (n,): variances of inputs; target (n,); s2: noise of labels."""

    laws: Mapping[str, InitialLaw]
    lam: Array
    target: Array
    s2: float

    name, group = "linear", "w"

    @property
    def observables(self) -> tuple[Observable, ...]:
        """D and R, under the names of scaling.sgd, and delta."""
        return (
            Observable("delta", self.delta, ("i",), "errors of the coefficients"),
            Observable("D", lambda params: self.delta(params) ** 2, ("i",), "squared errors of the coefficients"),
            Observable("R", self.risk, (), "half the mean squared error of a new sample, noise of its label included"),
        )

    def loss_and_gradients(self, params: Params, batch: Batch) -> tuple[Array, Params]:
        """The loss (R,), half the mean squared error of the batch, and its gradient {w: (R, n)}."""
        w, batch = params["w"], on_same_device(params["w"], batch)
        miss = (batch["x"] @ w[..., None])[..., 0] - batch["y"]  # (R, B)
        slope = (miss[:, None] @ batch["x"])[:, 0] * (1 / miss.shape[1])  # (R, n)
        return 0.5 * (miss * miss).mean(axis=1), {"w": slope}

    def delta(self, params: Params) -> Array:
        """w - target (R, n)."""
        w = params["w"]
        return w - array_namespace(w).asarray(self.target, dtype=w.dtype)

    def risk(self, params: Params) -> Array:
        """R (R,)."""
        D = self.delta(params) ** 2
        return 0.5 * ((D * array_namespace(D).asarray(self.lam, dtype=D.dtype)).sum(axis=1) + self.s2)


def samples(seeds: Sequence[int], network: Regression, *, batch: int, dtype: str) -> InBlocks:
    """A Stream {"x": (R, batch, n), "y": (R, batch)}, new in each iteration."""
    n = len(network.lam)
    rows = max(1, AT_ONCE // (batch * n))

    def of_seed(rng: Generator, r: int) -> Batch:
        x = rng.standard_normal((rows, batch, n)) * network.lam**0.5
        y = x @ network.target + network.s2**0.5 * rng.standard_normal((rows, batch))
        return {"x": x.astype(dtype), "y": y.astype(dtype)}

    return InBlocks(seeds, rows, of_seed)


SETTINGS = (
    Setting("n", 100, "inputs", low=1),
    Setting("a", 1.0, "variances of inputs fall as j^(-2 a)", low=0.0, open_low=True),
    Setting("b", 0.8, "coefficients of the target fall as j^(-b)", low=0.0),
    Setting("lam", None, "variances of the inputs (n,); those of a", low=0.0, open_low=True, rank=1),
    Setting("target", None, "coefficients of the target (n,); those of b", rank=1),
    Setting("s2", 0.01, "variance of the noise of labels", low=0.0),
    Setting("batch", 1, "samples of a step", low=1),
    *descent(0.1, "learning rate, g of scaling.sgd", group="w"),
)


def number_of(values: Settings) -> int:
    """Inputs: n, or as many as the given arrays have."""
    given = [np.size(values[name]) for name in ("lam", "target") if values[name] is not None]
    return max(given) if given else int(values["n"])


def memory(values: Settings, seeds: int, model: str) -> Mapping[str, int]:
    """{what takes memory: number of numbers} of a training: the weights with gradients, the inputs drawn at once."""
    n, batch = number_of(values), values["batch"]
    return {"the weights": seeds * 6 * n, "the inputs": (seeds + 2) * max(AT_ONCE, batch * n)}


def make(values: Settings, seeds: tuple[int, ...], model: str, dtype: str) -> Experiment:
    """The experiment. Raises ParamError for arrays of unequal lengths."""
    n, eta, B, s2 = number_of(values), float(values["eta"]), float(values["batch"]), float(values["s2"])
    j = np.arange(1.0, n + 1)
    usual = {"lam": j ** (-2 * values["a"]), "target": j ** -values["b"]}
    lam, target = (shaped(name, values[name], powers, f"{n} inputs") for name, powers in usual.items())
    network = Regression({"w": constant(np.zeros(n))}, lam, target, s2)
    return Experiment(
        model=network,
        stream=samples(seeds, network, batch=values["batch"], dtype=dtype),
        theory={
            "noise.sgd_least_squares": {"lam": lam, "eta": eta, "B": B, "s2": s2},
            "scaling.sgd": {"g": eta, "B": B, "a": values["a"], "b": values["b"], "s2": s2},
        },
    )


RISK = Link("risk", ("R",), lambda seen, facts: seen["R"] - facts.config["s2"] / 2)  # without the noise of labels
PLAIN, LAWS = {"momentum": (0,)}, {"lam": (None,), "target": (None,)}
DOC = "linear regression by one-pass SGD on power laws (paquette2024phases)"
PAIRS = {
    "scaling.sgd": pair_of("D", "R", linear=False, start="D", requirements={**PLAIN, **LAWS}),
    "noise.sgd_least_squares": pair_of("delta", RISK, step="w", linear=False, start=["delta"], requirements=PLAIN),
}
TASK = ReferenceTask("power_law", DOC, SETTINGS, make, memory, ("linear",), PAIRS)

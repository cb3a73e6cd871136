"""The task binary_chain: one layer of attention, reduced to an embedding, a weight and a bias, learns binary Markov chains from pairs.

Source: Makkuva et al. 2024, arXiv 2406.03072. The logit of a 1 after x is e^2 (1 + 2 w |w|) x + b - e^2 / 2. Pairs of a
token and the next are drawn from the stationary chain with P(0 -> 1) = p, P(1 -> 0) = q, and the loss is their mean cross-entropy. In the
mean over pairs a step is one of in_context.markov_bias, or, with bias=best, which sets b to its optimum over all pairs, of
in_context.markov: then the gradient goes through b too. Where s = e^2 (1 + 2 w |w|) is at its best the loss is flat along it: there batches
move e and w more than s.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator

from odesim.base.arrays import Array, array_namespace, on_same_device
from odesim.lab.training.network import InitialLaw, Network, constant
from odesim.lab.training.optimizers import descent
from odesim.lab.training.randomness import AT_ONCE, InBlocks
from odesim.lab.training.task import Batch, Experiment, Observable, Params, ReferenceTask, Setting, Settings, TrainingFacts, pair_of


@dataclass(frozen=True, eq=False)
class Chain(Network):
    """Numbers e, w and b (R,) as a Model. Its batch: x (R, B) and y (R, B), what comes next, 0 or 1. Without b in laws it is the best."""

    p: float
    q: float
    laws: Mapping[str, InitialLaw]

    name = "reduced"

    @property
    def observables(self) -> tuple[Observable, ...]:
        """Under the names of in_context.markov_bias."""
        docs = {"e": "embedding", "w": "attention", "b": "bias"}
        return (
            Observable("loss_population", self.population_loss, (), "loss in the mean over pairs"),
            Observable("s", lambda params: gain(params)[0], (), "how much more the logit of a 1 is after a 1"),
            *(Observable.parameter(name, (), docs[name]) for name in self.laws),
        )

    def loss_and_gradients(self, params: Params, batch: Batch) -> tuple[Array, Params]:
        """The loss (R,) and its gradient {e, w, b: (R,)}."""
        batch = on_same_device(params["e"], batch)
        xp, e, w, (s, slope) = array_namespace(params["e"]), params["e"], params["w"], gain(params)
        x, y, (f0, of_f0) = batch["x"], batch["y"], self.after_0(params)
        f = s[:, None] * x + f0[:, None]
        loss = (xp.logaddexp(0 * f, f) - y * f).mean(axis=1)
        back = 0.5 + 0.5 * xp.tanh(0.5 * f) - y  # (R, B)
        of_b, of_s = back.mean(axis=1), (back * x).mean(axis=1)
        if "b" in params:
            return loss, {"e": 2 * e * slope * of_s - e * of_b, "w": 4 * e * e * abs(w) * of_s, "b": of_b}
        of_s = of_s + of_f0 * of_b
        return loss, {"e": 2 * e * slope * of_s, "w": 4 * e * e * abs(w) * of_s}

    def after_0(self, params: Params) -> tuple[Array, Array]:
        """The logit f0 (R,) of a 1 after 0, and its slope by s where b is the best: the root of the quadratic equation for e^b."""
        if "b" in params:
            f0 = params["b"] - 0.5 * params["e"] * params["e"]
            return f0, 0 * f0
        xp, (s, _) = array_namespace(params["e"]), gain(params)
        z = (self.p - self.q) / (2 * (self.p * self.q) ** 0.5) * xp.exp(-0.5 * s)
        root = xp.sqrt(1 + z * z)
        arsinh = xp.sign(z) * xp.log(abs(z) + root)
        return 0.5 * float(np.log(self.p / self.q)) + arsinh - 0.5 * s, -0.5 * z / root - 0.5

    def population_loss(self, params: Params) -> Array:
        """The loss (R,) over all pairs of the chain."""
        xp, (s, _), (f0, _) = array_namespace(params["e"]), gain(params), self.after_0(params)
        pi1 = self.p / (self.p + self.q)
        after_0, after_1 = (xp.logaddexp(0 * f, f) - one * f for f, one in ((f0, self.p), (f0 + s, 1 - self.q)))
        return (1 - pi1) * after_0 + pi1 * after_1


def gain(params: Params) -> tuple[Array, Array]:
    """s = e^2 (1 + 2 w |w|) and 1 + 2 w |w| (R,)."""
    e, w = params["e"], params["w"]
    slope: Any = 1 + 2 * w * abs(w)
    return e * e * slope, slope


SETTINGS = (
    Setting("p", 0.2, "probability of 1 after 0", low=0.0, high=1.0, open_low=True),
    Setting("q", 0.3, "probability of 0 after 1", low=0.0, high=1.0, open_low=True),
    Setting("e", 0.1, "embedding at the start"),
    Setting("w", 0.1, "attention at the start"),
    Setting("b", 0.0, "bias at the start"),
    Setting("bias", "learned", "or the best one at each step", choices=("learned", "best")),
    Setting("batch", 256, "pairs of a step", low=1),
    *descent(0.05),
)


def memory(values: Settings, seeds: int, model: str) -> Mapping[str, int]:
    """{what takes memory: number of numbers} of a training: pairs and what a step computes."""
    batch = values["batch"]
    return {"the pairs": (4 * seeds + 3) * max(AT_ONCE, batch) + 6 * seeds * batch}


def make(values: Settings, seeds: tuple[int, ...], model: str, dtype: str) -> Experiment:
    """The experiment."""
    p, q, batch = float(values["p"]), float(values["q"]), values["batch"]
    rows = max(1, AT_ONCE // batch)

    def pairs(rng: Generator, r: int) -> Batch:
        x = rng.random((rows, batch)) < p / (p + q)
        y = rng.random((rows, batch)) < np.where(x, 1 - q, p)
        return {"x": x.astype(dtype), "y": y.astype(dtype)}

    learned = values["bias"] == "learned"
    system = "in_context.markov_bias" if learned else "in_context.markov"
    return Experiment(
        model=Chain(p, q, {name: constant(values[name]) for name in ("ewb" if learned else "ew")}),
        stream=InBlocks(seeds, rows, pairs),
        steps=2000,
        theory={system: {"p": p, "q": q}},
    )


def not_random(facts: TrainingFacts) -> list[str]:
    """A phrase for each probability that is 1, where the loss has a term 0 ln 0."""
    return [f"{name} is 1, not below 1" for name in "pq" if facts.config[name] >= 1]


PLAIN = {"momentum": (0,)}
CHAIN = ("loss=loss_population", *"sew")

DOC = "one layer of attention, as three numbers, learns binary Markov chains (makkuva2024local)"
PAIRS = {
    "in_context.markov_bias": pair_of(
        *CHAIN, "b", step="all", start="ewb", other_misfits=not_random, requirements={**PLAIN, "bias": ("learned",)}
    ),
    "in_context.markov": pair_of(
        *CHAIN, step="all", start="ew", other_misfits=not_random, requirements={**PLAIN, "bias": ("best",)}, example={"bias": "best"}
    ),
}
TASK = ReferenceTask("binary_chain", DOC, SETTINGS, make, memory, ("reduced",), PAIRS)

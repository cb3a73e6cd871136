"""The task valley: gradient descent at a large step in a valley whose floor leads beyond the edge of stability.

Source: Cohen et al. 2024, arXiv 2410.24206. The loss is S(y) x^2/2 + kap |y - c|^2/2 with the sharpness S = 10 + 6 y1 + 2 y2^2. Steps are
those of edge.valley, to rounding; means of them over many steps follow edge.central_flow. The floor of a mean is a window of saved times,
so that these have to be many a cycle: as many as there are steps.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from odesim.base.arrays import Array
from odesim.lab.training.network import InitialLaw, Network, constant
from odesim.lab.training.optimizers import descent
from odesim.lab.training.task import Batch, Experiment, Link, Observable, Params, ReferenceTask, Setting, Settings, TrainingFacts, pair_of

STATES = ("x", "y1", "y2")


@dataclass(frozen=True, eq=False)
class Valley(Network):
    """Numbers x, y1 and y2 (R,) as a Model without batches."""

    kap: float
    c: tuple[float, float]
    laws: Mapping[str, InitialLaw]

    name = "valley"

    @property
    def observables(self) -> tuple[Observable, ...]:
        """Under the names of edge.*."""
        docs = dict(zip(STATES, ("across the valley", "along its floor", "along its floor"), strict=True))
        return (
            *(Observable.parameter(name, (), doc) for name, doc in docs.items()),
            Observable("sharpness", self.sharpness, (), "curvature across"),
        )

    def sharpness(self, params: Params) -> Array:
        """S (R,)."""
        return 10 + 6 * params["y1"] + 2 * params["y2"] * params["y2"]

    def loss_and_gradients(self, params: Params, batch: Batch) -> tuple[Array, Params]:
        """The loss (R,) and its gradient {x, y1, y2: (R,)}."""
        x, y1, y2 = (params[name] for name in STATES)
        S, half = self.sharpness(params), 0.5 * x * x
        off1, off2 = y1 - self.c[0], y2 - self.c[1]
        loss = S * half + 0.5 * self.kap * (off1 * off1 + off2 * off2)
        return loss, {"x": S * x, "y1": 6 * half + self.kap * off1, "y2": 4 * y2 * half + self.kap * off2}


SETTINGS = (
    Setting("kap", 0.01, "curvature of the floor", low=0.0, open_low=True),
    Setting("c1", 2.0, "y1 of the least loss"),
    Setting("c2", 1.0, "y2 of the least loss"),
    Setting("x", 0.05, "across the valley at the start"),
    Setting("y1", 1.55, "along the floor at the start"),
    Setting("y2", 0.3, "along the floor at the start"),
    Setting("window", 301, "saved times that a mean is over, beside edge.central_flow", low=1),
    *descent(0.1),
)


def make(values: Settings, seeds: tuple[int, ...], model: str, dtype: str) -> Experiment:
    """The experiment."""
    theory = {name: values[name] for name in ("eta", "kap", "c1", "c2")}
    return Experiment(
        model=Valley(values["kap"], (values["c1"], values["c2"]), {name: constant(values[name]) for name in STATES}),
        stream=lambda i: {},
        theory={"edge.valley": theory, "edge.central_flow": {**theory, "stiff": 100.0}},
    )


def mean_of(name: str, source: str, power: int = 1) -> Link:
    """The Link of a mean of a power of what is recorded, over the window of saved times, less of them near the ends."""

    def mean(seen: Mapping[str, Array], facts: TrainingFacts) -> Array:
        values = seen[source] ** power  # (R, T)
        at, half = np.arange(values.shape[1]), facts.config["window"] // 2
        half = np.minimum(half, np.minimum(at, at[::-1]))
        total = np.concatenate([0 * values[:, :1], np.cumsum(values, axis=1)], axis=1)
        return (total[:, at + half + 1] - total[:, at - half]) / (2 * half + 1)

    return Link(name, (source,), mean, doc=f"mean of {source}{f'^{power}' * (power > 1)} over saved times")


MEANS = (mean_of("y1", "y1"), mean_of("y2", "y2"), mean_of("sharpness", "sharpness"), mean_of("sigma2", "x", 2))
PLAIN = {"momentum": (0,)}
DOC = "gradient descent at a large step, at the edge of stability (cohen2024central)"
PAIRS = {
    "edge.valley": pair_of(*STATES, "loss", "sharpness", linear=False, start=STATES, requirements=PLAIN, optimizers=("sgd",)),
    "edge.central_flow": pair_of(*MEANS, linear=False, start=("y1=y1", "y2=y2"), requirements=PLAIN),
}
TASK = ReferenceTask("valley", DOC, SETTINGS, make, lambda values, seeds, model: {"the seeds": 150 * seeds}, ("valley",), PAIRS)

"""The task single_location: attention learns which of L tokens tells the label, and what to read there.

Source: Marion, Berthier, Biau and Boyer 2025, arXiv 2410.01537. Tokens are N(0, I) in d dimensions, but the first is
N(sqrt(d/2) k*, gamma2 I), and its product with v*, with noise, is the label; the predictor is sum_l erf(lam X_l . k) X_l . v. Where the
first token stands does not matter to it. The loss is the mean square of what is missed, without a factor 1/2; each step has a new batch.

k and v are directions of trained weights: their gradients are those projected on the sphere, and a step makes weights longer to second
order in the rate, by which it slows down. At the start k . v = k . v* = v . k* = 0, which descent keeps up to the noise of batches.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

import numpy as np
from numpy.random import Generator
from scipy.special import erf

from odesim.base.arrays import Array, array_namespace, on_host, on_same_device
from odesim.lab.networks.measures import norm
from odesim.lab.training.optimizers import descent
from odesim.lab.training.randomness import Drawn
from odesim.lab.training.task import Batch, Experiment, Observable, Params, ReferenceTask, Setting, Settings, pair_of


def draw_tokens(d: int, L: int, gamma2: float, noise: float, dtype: str, rng: Generator, count: int) -> Batch:
    """X (count, L, d) and y (count,) of one seed; k* and v* are the first two axes."""
    X = rng.standard_normal((count, L, d))
    X[:, 0] *= gamma2**0.5
    X[:, 0, 0] += (d / 2) ** 0.5
    return {"X": X.astype(dtype), "y": (X[:, 0, 1] + noise * rng.standard_normal(count)).astype(dtype)}


@dataclass(frozen=True, eq=False)
class Locator:
    """Weights k and v (d,) as a Model, which uses their directions. Its batch: that of draw_tokens, with a leading axis of seeds."""

    d: int
    lam: float
    kappa: float
    nu: float

    name = "attention"
    groups = MappingProxyType({"k": "all", "v": "all"})

    @property
    def observables(self) -> tuple[Observable, ...]:
        """The overlaps under the names of in_context.single_location, those that stay 0, and how long weights are."""
        return (
            Observable("kappa", lambda params: unit(params["k"])[:, 0].copy(), (), "k . k*"),
            Observable("nu", lambda params: unit(params["v"])[:, 1].copy(), (), "v . v*"),
            Observable("across", self.across, ("other",), "k . v, v . k*, k . v*"),
            Observable("length", lambda params: norm(params["k"]), (), "of the weights of k, 1 at the start"),
        )

    def initial(self, rngs: Sequence[Generator], dtype: str) -> Params:
        """k and v (R, d): the overlaps are exact, the rest of each is a direction of the seed, at right angles to the other's."""
        params: dict[str, list[Array]] = {"k": [], "v": []}
        for rng in rngs:
            others = np.zeros((2, self.d))
            others[:, 2:] = np.linalg.qr(rng.standard_normal((self.d - 2, 2)))[0].T
            for n, (name, overlap) in enumerate((("k", self.kappa), ("v", self.nu))):
                w = (1 - overlap**2) ** 0.5 * others[n]
                w[n] = overlap
                params[name].append(w)
        return {name: np.stack(rows).astype(dtype) for name, rows in params.items()}

    def loss_and_gradients(self, params: Params, batch: Batch) -> tuple[Array, Params]:
        """The loss (R,) and its gradient {k: (R, d), v: (R, d)}."""
        xp, batch = array_namespace(params["k"]), on_same_device(params["k"], batch)
        k, v, X = unit(params["k"]), unit(params["v"]), batch["X"]
        R, B, L, d = X.shape
        rows = X.reshape(R, B * L, d)
        score = self.lam * (rows @ k[..., None])[..., 0].reshape(R, B, L)
        # on the host: cupy's own is in another module
        attention = xp.asarray(erf(on_host(score)))
        reads = (rows @ v[..., None])[..., 0].reshape(R, B, L)
        off = (attention * reads).sum(axis=2) - batch["y"]  # (R, B)
        back = (off * (2 / B))[..., None]
        of_k = back * reads * (2 * np.pi**-0.5 * self.lam) * xp.exp(-score * score)
        slopes = {name: (c.reshape(R, 1, B * L) @ rows)[:, 0] for name, c in (("k", of_k), ("v", back * attention))}
        for name, direction in (("k", k), ("v", v)):
            g = slopes[name]
            slopes[name] = (g - (g * direction).sum(axis=1)[:, None] * direction) / norm(params[name])[:, None]
        return (off * off).mean(axis=1), slopes

    def across(self, params: Params) -> Array:
        """k . v, v . k*, k . v* (R, 3)."""
        k, v = unit(params["k"]), unit(params["v"])
        return array_namespace(k).stack([(k * v).sum(axis=1), v[:, 0], k[:, 1]], axis=1)


def unit(w: Array) -> Array:
    """w (R, d) over its length."""
    return w / norm(w)[:, None]


SETTINGS = (
    Setting("d", 80, "dimension of a token", low=4),
    Setting("L", 10, "tokens of an input", low=1),
    Setting("lam", 0.1, "inverse temperature of attention", low=0.0, open_low=True),
    Setting("gamma2", 0.5, "variance of the token that tells the label", low=0.0, open_low=True),
    Setting("noise", 0.1, "deviation of the noise of labels", low=0.0),
    Setting("kappa", 0.2, "k . k* at the start", low=-1.0, high=1.0),
    Setting("nu", 0.2, "v . v* at the start", low=-1.0, high=1.0),
    Setting("batch", 32, "inputs of a step", low=1),
    *descent(0.002),
)


def memory(values: Settings, seeds: int, model: str) -> Mapping[str, int]:
    """{what takes memory: number of numbers} of a training: tokens, attention, weights."""
    d, L, batch = (values[name] for name in ("d", "L", "batch"))
    return {"the tokens": (2 * seeds + 1) * batch * L * d, "attention": 8 * seeds * batch * L, "the weights": 12 * seeds * d}


def make(values: Settings, seeds: tuple[int, ...], model: str, dtype: str) -> Experiment:
    """The experiment."""
    d, L = values["d"], values["L"]
    lam, gamma2, noise = (float(values[name]) for name in ("lam", "gamma2", "noise"))
    theory = {"d": float(d), "L": float(L), "lam": lam, "gamma2": gamma2, "eps2": noise**2}
    return Experiment(
        model=Locator(d, lam, float(values["kappa"]), float(values["nu"])),
        stream=Drawn(seeds, partial(draw_tokens, d, L, gamma2, noise, dtype), batch=values["batch"]),
        steps=2000,
        theory={"in_context.single_location": theory},
    )


DOC = "attention learns which token tells the label, and what to read there (marion2025attention)"
PAIRS = {
    "in_context.single_location": pair_of("kappa", "nu", step="all", linear=False, start=("kappa", "nu"), requirements={"momentum": (0,)})
}
TASK = ReferenceTask("single_location", DOC, SETTINGS, make, memory, ("attention",), PAIRS)

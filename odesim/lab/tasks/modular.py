"""The task modular: a network of one hidden layer learns to add numbers mod p, from all pairs or a share of them.

Source: He, Wang, Chen and Yang 2026, arXiv 2602.16849. Neuron n reads theta_x + theta_y, takes the square (or relu), and adds xi_z to the
logit of each z; the loss is the mean cross-entropy of z = x + y mod p. While logits are small each frequency of each neuron follows
modular.phases, with errors of first order in the learning rate and in the logits: amplitudes and phases are those of the waves
alpha cos(2 pi k j / p + phi) of theta and beta cos(2 pi k j / p + psi) of xi. What comes after logits are of order 1 has no System: with
a share of the pairs, weight decay and optimizer=adamw it is grokking.

The start is init_scale times normal numbers, theta first; xi has no mean, which softmax would not see.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from odesim.base.arrays import Array, array_namespace, on_host, on_same_device
from odesim.base.errors import ParamError
from odesim.lab.networks.measures import log_softmax
from odesim.lab.training.network import InitialLaw, Network
from odesim.lab.training.optimizers import OPTIMIZERS, SGD, descent
from odesim.lab.training.randomness import DATA, generators
from odesim.lab.training.task import Batch, Experiment, Link, Observable, Params, ReferenceTask, Setting, Settings, pair_of

ACTIVATIONS = ("square", "relu")


def pairs_of(p: int, chosen: Array) -> Batch:
    """The pairs with the numbers chosen (R, B), x p + y: how often each number is a term (R, B, p), and their sums as (R, B, p)."""
    x, y = chosen // p, chosen % p
    number = np.arange(p)
    terms = (x[..., None] == number).astype(float) + (y[..., None] == number)
    return {"terms": terms, "sums": ((x + y)[..., None] % p == number).astype(float)}


@dataclass(frozen=True, eq=False)
class Adder(Network):
    """theta and xi (N, p) as a Model. Its batch: that of pairs_of. held: the pairs that are not trained on, none of them for {}."""

    laws: Mapping[str, InitialLaw]
    p: int
    activation: str
    held: Batch

    name = "two_layers"

    @property
    def observables(self) -> tuple[Observable, ...]:
        """Amplitudes and phases under the names of modular.phases; the loss above that of no logits; what is right."""
        wave = ("n", "k")
        held = (
            Observable("loss_held", lambda params: self.judged(params, self.held)[0], (), "loss of the pairs that are left out"),
            Observable("right_held", lambda params: self.judged(params, self.held)[1], (), "share of them that is right"),
        )
        return (
            Observable("alpha", lambda params: self.amplitudes(params["theta"]), wave, "amplitudes of theta"),
            Observable("beta", lambda params: self.amplitudes(params["xi"]), wave, "amplitudes of xi"),
            Observable("phi", lambda params: self.phases(params["theta"]), wave, "phases of theta"),
            Observable("D", self.gap, wave, "psi - 2 phi, from -pi to pi"),
            Observable.parameter("theta", ("n", "j"), "weights of the terms"),
            Observable.parameter("xi", ("n", "j"), "weights of the sums"),
            *(held if self.held else ()),
        )

    def initial(self, rngs: Sequence[Generator], dtype: str = "float64") -> Params:
        """theta and xi (R, N, p), the latter less its mean."""
        params = super().initial(rngs, dtype)
        return {**params, "xi": params["xi"] - params["xi"].mean(axis=2, keepdims=True)}

    def forward(self, params: Params, batch: Batch) -> tuple[Array, Array, Array]:
        """What neurons read (R, B, N), what they say (R, B, N), and ln of probabilities of sums (R, B, p)."""
        xp = array_namespace(params["theta"])
        read = batch["terms"] @ params["theta"].swapaxes(1, 2)
        says = read * read if self.activation == "square" else xp.maximum(read, 0)
        return read, says, log_softmax(says @ params["xi"])

    def loss_and_gradients(self, params: Params, batch: Batch) -> tuple[Array, Params]:
        """Loss (R,) and its gradient by parameter (R, N, p)."""
        xp, batch = array_namespace(params["theta"]), on_same_device(params["theta"], batch)
        read, says, log_p = self.forward(params, batch)
        count = read.shape[1]
        back = (xp.exp(log_p) - batch["sums"]) * (1 / count)  # of logits
        down = back @ params["xi"].swapaxes(1, 2)
        down = 2 * read * down if self.activation == "square" else xp.where(read > 0, down, 0 * down)
        loss = -(log_p * batch["sums"]).sum(axis=(1, 2)) * (1 / count)
        return loss, {"theta": down.swapaxes(1, 2) @ batch["terms"], "xi": says.swapaxes(1, 2) @ back}

    def judged(self, params: Params, batch: Batch) -> tuple[Array, Array]:
        """Loss (R,) on these pairs, and the share (R,) of them that gets the largest probability."""
        batch = on_same_device(params["theta"], batch)
        log_p = self.forward(params, batch)[2]
        of_sum = (log_p * batch["sums"]).sum(axis=2)
        right = (of_sum >= log_p.max(axis=2)).astype(of_sum.dtype)
        return -of_sum.mean(axis=1), right.mean(axis=1)

    def waves(self, w: Array) -> tuple[Array, Array]:
        """The cosine and sine parts (R, N, (p - 1)/2) of weights (R, N, p): w_j is their sum over k."""
        xp = array_namespace(w)
        angles = 2 * np.pi / self.p * np.outer(np.arange(self.p), np.arange(1, (self.p + 1) // 2))
        return w @ xp.asarray(2 / self.p * np.cos(angles), dtype=w.dtype), w @ xp.asarray(-2 / self.p * np.sin(angles), dtype=w.dtype)

    def amplitudes(self, w: Array) -> Array:
        """(R, N, (p - 1)/2)."""
        a, b = self.waves(w)
        return array_namespace(w).sqrt(a * a + b * b)

    def phases(self, w: Array) -> Array:
        """(R, N, (p - 1)/2), from -pi to pi; on the host, which has the angle of a point."""
        a, b = map(on_host, self.waves(w))
        return array_namespace(w).asarray(np.arctan2(b, a))

    def gap(self, params: Params) -> Array:
        """D (R, N, (p - 1)/2)."""
        phi, psi = (on_host(self.phases(params[name])) for name in ("theta", "xi"))
        turned = (psi - 2 * phi + np.pi) % (2 * np.pi) - np.pi
        return array_namespace(params["theta"]).asarray(turned)


SETTINGS = (
    Setting("p", 23, "the modulus, odd", low=3),
    Setting("N", 8, "neurons", low=1),
    Setting("activation", "square", "of a neuron", choices=ACTIVATIONS),
    Setting("share", 1.0, "of the pairs x, y that is trained on, drawn by seed", low=0.0, high=1.0, open_low=True),
    Setting("init_scale", 0.02, "deviation of normal weights at the start", low=0.0, open_low=True),
    descent(1.0)[0],
    Setting("weight_decay", 0.0, "of weights", low=0.0),
    Setting("optimizer", "sgd", "how it descends", choices=OPTIMIZERS),
    SGD[1],
)


def memory(values: Settings, seeds: int, model: str) -> Mapping[str, int]:
    """{what takes memory: number of numbers} of a training: pairs, neurons and logits, weights."""
    p, N = values["p"], values["N"]
    return {"the pairs": 4 * seeds * p**3, "neurons and logits": 4 * seeds * p * p * (N + p), "the weights": 10 * seeds * N * p}


def make(values: Settings, seeds: tuple[int, ...], model: str, dtype: str) -> Experiment:
    """The experiment. Raises ParamError for an even p, and a share that leaves no pair."""
    p, share = values["p"], float(values["share"])
    if p % 2 == 0:
        raise ParamError(f"p of modular is odd, not {p}: an even one has a frequency p/2, whose waves have no phase")
    count = round(share * p * p)
    if count == 0:
        raise ParamError(f"share of modular: {share:g} of {p * p} pairs is none")
    normal = InitialLaw((values["N"], p), "normal", float(values["init_scale"]))
    order = np.stack([rng.permutation(p * p) if count < p * p else np.arange(p * p) for rng in generators(seeds, DATA)])
    batch, held = ({k: a.astype(dtype) for k, a in pairs_of(p, part).items()} for part in (order[:, :count], order[:, count:]))
    return Experiment(
        model=Adder(dict.fromkeys(("theta", "xi"), normal), p, values["activation"], held if count < p * p else {}),
        stream=lambda i: batch,
        steps=900,
        theory={"modular.phases": {"p": float(p)}},
    )


LOSS = Link("loss", ("loss",), lambda seen, facts: seen["loss"] - np.log(facts.config["p"]), doc="above that of no logits, ln p")

DOC = "a layer of squares learns to add numbers mod p, frequency by frequency (he2026mechanism)"
PAIRS = {
    "modular.phases": pair_of(
        "alpha",
        "beta",
        "D",
        LOSS,
        step="all",
        linear=False,
        start=("alpha", "beta", "phi", Link("psi", ("D", "phi"), lambda seen, facts: seen["D"] + 2 * seen["phi"])),
        requirements={"activation": ("square",), "share": (1.0,), "weight_decay": (0.0,), "momentum": (0,)},
    )
}
TASK = ReferenceTask("modular", DOC, SETTINGS, make, memory, ("two_layers",), PAIRS)

"""The task hierarchy_layers: two layers of nodes with exp attention learn the classes of a hierarchy of shared latents.

Source: tian2023joma, Section 5, on the hierarchy of its Table 1 (the task hierarchy_dag has its transformer): class k is the set of tokens
below it, and all classes are in every step. Each node is a query with logits of its own, from Z = V^2 / 2, as gradient flow keeps them:
descent then follows hierarchy.multilayer to first order in eta. NCorr is that of hierarchy_dag, of the latents of layer s with the nodes
of layer s. Time of gradient flow is eta times the iteration.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np
from numpy.random import Generator

from odesim.base.arrays import Array, array_namespace, on_same_device
from odesim.lab.networks.joma import ACTIVATIONS, ce
from odesim.lab.networks.measures import by_layer
from odesim.lab.tasks.hierarchy_dag import SETS, dag_of_seed, latents_of
from odesim.lab.training.network import InitialLaw, constant, draw_start
from odesim.lab.training.optimizers import descent
from odesim.lab.training.task import Batch, Experiment, Observable, Params, ReferenceTask, Setting, Settings, pair_of

# Two layers of MLP with exp attention and a linear decoder, with hand-written gradients of the cross-entropy.
#
# A node k of layer s weighs its inputs h by V_s[k] exp(Z_s[k]) and adds xi_s[k]. It is a query of its own: its logits Z_s are free
# parameters and do not depend on activations. So the gradient goes down through values alone. Source: tian2023joma, Section 5. From
# Z = V^2 / 2, which gradient flow keeps (Theorem 1), weights follow hierarchy.multilayer; V, xi, U and Z follow its variant JOINT.

NAMES = ("V1", "V2", "U", "xi1", "xi2", "Z1", "Z2")


@dataclass(frozen=True, eq=False)
class TwoLayers:
    """The network as a Model. Its batch: x (R, N, K0), weights pi (R, N), label (R, N).

    shape: (K0, K1, K2, C). scale: deviation of a start, of order 1 / sqrt(inputs); present: how many inputs of a sample are 1, if fewer.
    """

    shape: tuple[int, int, int, int]
    phi: str = "identity"
    scale: float = 1.0
    present: float = 0.0
    observables: tuple[Observable, ...] = ()

    name = "two_layers"
    groups = MappingProxyType(dict.fromkeys(NAMES, "all"))

    def initial(self, rngs: Sequence[Generator], dtype: str) -> Params:
        """V1 (R, K1, K0), V2 (R, K2, K1), U (R, C, K2) normal, xi1, xi2 0, and Z1, Z2 half the squared weights."""
        K0, K1, K2, C = self.shape
        shapes = {"V1": (K1, K0), "V2": (K2, K1), "U": (C, K2)}
        inputs = {"V1": self.present or K0, "V2": K1, "U": K2}
        laws = {name: InitialLaw(shape, "normal", self.scale / np.sqrt(inputs[name])) for name, shape in shapes.items()}
        start = draw_start({**laws, "xi1": constant(np.zeros(K1)), "xi2": constant(np.zeros(K2))}, rngs, "float64")
        start |= {f"Z{s}": start[f"V{s}"] ** 2 / 2 for s in (1, 2)}
        return {name: a.astype(dtype) for name, a in start.items()}

    def hidden(self, params: Params, x: Array) -> tuple[Array, Array, Array, Array]:
        """h1 and its slope (R, N, K1), h2 and its slope (R, N, K2): what the nodes say."""
        xp, phi = array_namespace(params["V1"]), ACTIVATIONS[self.phi]
        h1, slope1 = phi(x @ (params["V1"] * xp.exp(params["Z1"])).swapaxes(1, 2) + params["xi1"][:, None])
        return h1, slope1, *phi(h1 @ (params["V2"] * xp.exp(params["Z2"])).swapaxes(1, 2) + params["xi2"][:, None])

    def loss_and_gradients(self, params: Params, batch: Batch) -> tuple[Array, Params]:
        """Loss (R,), weighted by pi, and its gradient by parameter (R, ...)."""
        xp, batch = array_namespace(params["V1"]), on_same_device(params["V1"], batch)
        x, pi, U = batch["x"], batch["pi"], params["U"]
        e1, e2 = xp.exp(params["Z1"]), xp.exp(params["Z2"])
        h1, slope1, h2, slope2 = self.hidden(params, x)
        losses, by_scores = ce(h2 @ U.swapaxes(1, 2), None, batch)  # (R, N), (R, N, C)
        back = pi[..., None] * by_scores  # (R, N, C)

        du2 = (back @ U) * slope2  # (R, N, K2)
        dM2 = du2.swapaxes(1, 2) @ h1  # (R, K2, K1)
        du1 = (du2 @ (params["V2"] * e2)) * slope1  # (R, N, K1)
        dM1 = du1.swapaxes(1, 2) @ x  # (R, K1, K0)
        dV1, dV2 = dM1 * e1, dM2 * e2
        gradient = {"V1": dV1, "V2": dV2, "U": back.swapaxes(1, 2) @ h2, "xi1": du1.sum(axis=1), "xi2": du2.sum(axis=1)}
        return (pi * losses).sum(axis=1), gradient | {"Z1": dV1 * params["V1"], "Z2": dV2 * params["V2"]}


DESCRIBED = {"identity": "hierarchy.multilayer", **{phi: f"hierarchy.multilayer.{phi}" for phi in ("relu", "softplus")}}
"""{activation: the System of that}."""


def layer_observables(model: TwoLayers, batch: Batch, latents: Sequence[Array]) -> tuple[Observable, ...]:
    """States under the names of hierarchy.multilayer, the law of Theorem 1, and NCorr (R, 2)."""

    def ncorr(params: Params) -> Array:
        h1, _, h2, _ = model.hidden(params, array_namespace(params["V1"]).asarray(batch["x"]))
        return by_layer(latents, (h1, h2), batch["pi"])

    def off(params: Params) -> Array:
        xp = array_namespace(params["V1"])
        return xp.stack([xp.abs(params[f"Z{s}"] - params[f"V{s}"] * params[f"V{s}"] / 2).max(axis=(1, 2)) for s in (1, 2)], axis=1)

    axes = {"V1": ("j", "i"), "V2": ("k", "j"), "U": ("c", "k"), "xi1": ("j",), "xi2": ("k",)}
    return (
        Observable("NCorr", ncorr, ("layer_of_latents",), "correlation of a latent with its best node, mean over latents"),
        Observable("law", off, ("layer",), "largest |Z - V^2 / 2|, which is 0 under gradient flow"),
        *(Observable.parameter(name, dims, "weights", costly=True) for name, dims in axes.items()),
    )


SETTINGS = (
    *SETS,
    Setting("vocabulary", 100, "tokens, the last of which is in no set", low=2),
    Setting("K1", 100, "nodes of the first layer", low=1),
    Setting("K2", 100, "nodes of the second", low=1),
    Setting("phi", "identity", "activation of the nodes", choices=tuple(ACTIVATIONS)),
    Setting("init_scale", 1.0, "deviation of the start, over sqrt(inputs)", low=0.0),
    *descent(0.02),
)


def memory(values: Settings, seeds: int, model: str) -> Mapping[str, int]:
    """{what takes memory: number of numbers} of a training: parameters, samples, a step."""
    C, M, K1, K2 = (values[name] for name in ("num_classes", "vocabulary", "K1", "K2"))
    weights = K1 * M + K2 * K1
    return {
        "the parameters and their gradients": seeds * (9 * weights + 3 * C * K2),
        "the samples": seeds * C * (3 * M + 8 * (K1 + K2)),
        "the hierarchies": (values["n0"] + values["n1"] + C) * (values["num_children"] + M),
    }


def make(values: Settings, seeds: tuple[int, ...], model: str, dtype: str) -> Experiment:
    """The experiment. Raises ParamError: more latents than distinct sets."""
    C, R = values["num_classes"], len(seeds)
    dags = [dag_of_seed(values, seed) for seed in seeds]
    X = np.stack([dag.present[:, :-1] for dag in dags]).astype(dtype)  # (R, C, K0)
    batch = {"x": X, "pi": np.full((R, C), 1 / C, dtype), "label": np.tile(np.arange(C), (R, 1))}
    latents = latents_of(dags)
    network = TwoLayers(
        (X.shape[2], values["K1"], values["K2"], C),
        phi=values["phi"],
        scale=float(values["init_scale"]),
        present=float(values["num_children"] ** 3),
    )
    return Experiment(
        model=replace(network, observables=layer_observables(network, batch, latents)),
        stream=lambda i: batch,
        steps=300,
        exact={"X": X, "latents0": latents[0], "latents1": latents[1]},
        theory={name: {"X": X, "pi": batch["pi"], "y": batch["label"]} for name in DESCRIBED.values()},
    )


LAYERS = ("V1", "V2", "U", "xi1", "xi2")

DOC = "classes made of shared latents, learned by two layers of nodes with exp attention (tian2023joma, Section 5)"
PAIRS = {
    # the System has the logits of the flow, half the squared weights, which discrete descent does not keep
    "hierarchy.multilayer": pair_of(
        *("loss", *LAYERS),
        step=lambda facts: float(facts.config["eta"]),
        linear=False,
        start=LAYERS,
        per_seed=True,
        requirements={"phi": ("identity",), "momentum": (0,)},
        example={"K1": 4, "K2": 3, "num_classes": 5, "n0": 4, "n1": 5, "vocabulary": 9},
    )
}
TASK = ReferenceTask("hierarchy_layers", DOC, SETTINGS, make, memory, ("two_layers",), PAIRS)

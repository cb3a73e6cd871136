"""The task hierarchy_layers: two layers of nodes with exp attention learn the classes of a hierarchy of shared latents.

Source: tian2023joma, Section 5, on the hierarchy of its Table 1 (the task hierarchy_dag has its transformer): class k is the set of tokens
below it, and all classes are in every step. Each node is a query with logits of its own, from Z = V^2 / 2, as gradient flow keeps them:
descent then follows hierarchy.multilayer to first order in eta. NCorr is that of hierarchy_dag, of the latents of layer s with the nodes
of layer s. Time of gradient flow is eta times the iteration.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from odesim.base.arrays import Array, array_namespace, check_dtype
from odesim.base.errors import ParamError, no_such
from odesim.reference.data.dag import draw_dag
from odesim.reference.data.latents import mean_best_correlation
from odesim.reference.joma.heads import ACTIVATIONS
from odesim.reference.multilayer.model import TwoLayers
from odesim.reference.protocols import Batch, Experiment, Observable, Optimizer, Params, Setting
from odesim.reference.training.optimizers import OPTIMIZERS

DESCRIBED = {"identity": "hierarchy.multilayer", **{phi: f"hierarchy.multilayer.{phi}" for phi in ("relu", "softplus")}}
"""{activation: the System of that}."""


def layer_observables(model: TwoLayers, batch: Batch, latents: Sequence[Array]) -> tuple[Observable, ...]:
    """States under the names of hierarchy.multilayer, the law of Theorem 1, and NCorr (R, 2)."""

    def ncorr(params: Params) -> Array:
        xp = array_namespace(params["V1"])
        _, h1, _, h2 = model.hidden(params, xp.asarray(batch["x"]))
        return xp.stack([mean_best_correlation(y, h, batch["pi"]) for y, h in zip(latents, (h1, h2), strict=True)], axis=1)

    def off(params: Params) -> Array:
        xp = array_namespace(params["V1"])
        parts = [xp.abs(params[f"Z{s}"] - params[f"V{s}"] * params[f"V{s}"] / 2).max(axis=(1, 2)) for s in (1, 2)]
        return xp.stack(parts, axis=1)

    axes = {"V1": ("j", "i"), "V2": ("k", "j"), "U": ("c", "k"), "xi1": ("j",), "xi2": ("k",)}
    states = [Observable(name, lambda p, name=name: p[name].copy(), dims, "weights", costly=True) for name, dims in axes.items()]  # type: ignore[misc]
    return (
        Observable("NCorr", ncorr, ("layer_of_latents",), "correlation of a latent with its best node, mean over latents"),
        Observable("law", off, ("layer",), "largest |Z - V^2 / 2|, which is 0 under gradient flow"),
        *states,
    )


@dataclass(frozen=True)
class HierarchyLayers:
    """The task hierarchy_layers: classes of shared latents, two layers of nodes."""

    name: str = "hierarchy_layers"
    doc: str = "classes made of shared latents, learned by two layers of nodes with exp attention (tian2023joma, Section 5)"
    models: tuple[str, ...] = ("two_layers",)
    settings: tuple[Setting, ...] = (
        Setting("num_classes", 20, "classes, each a set of upper latents", low=1),
        Setting("num_children", 2, "members of every set", low=1),
        Setting("n0", 10, "lower latents, sets of tokens", low=1),
        Setting("n1", 20, "upper latents, sets of lower ones", low=1),
        Setting("vocabulary", 100, "tokens, the last of which is in no set", low=2),
        Setting("K1", 100, "nodes of the first layer", low=1),
        Setting("K2", 100, "nodes of the second", low=1),
        Setting("phi", "identity", "activation of the nodes", choices=tuple(ACTIVATIONS)),
        Setting("init_scale", 1.0, "deviation of the start, over sqrt(inputs)", low=0.0),
        Setting("eta", 0.02, "learning rate", low=0.0, open_low=True),
        Setting("optimizer", "sgd", "how it descends", choices=OPTIMIZERS),
        Setting("momentum", 0.0, "of sgd", low=0.0, high=1.0),
    )

    def memory(self, values: Mapping[str, Any], seeds: int, model: str | None = None) -> Mapping[str, int]:
        """{what takes memory: number of numbers} of a training: parameters, samples, a step."""
        C, M, K1, K2 = (values[name] for name in ("num_classes", "vocabulary", "K1", "K2"))
        weights = K1 * M + K2 * K1
        return {
            "the parameters and their gradients": seeds * (9 * weights + 3 * C * K2),
            "the samples": seeds * C * (3 * M + 8 * (K1 + K2)),
            "the hierarchies": (values["n0"] + values["n1"] + C) * (values["num_children"] + M),
        }

    def make(self, values: Mapping[str, Any], *, seeds: Sequence[int], model: str | None = None, dtype: str = "float64") -> Experiment:
        """The experiment. Raises ParamError: more latents than distinct sets."""
        if model not in (None, *self.models):
            raise ParamError(no_such("model", str(model), self.models, self.name))
        check_dtype(dtype)
        C, R = values["num_classes"], len(seeds)
        sizes = {name: values[name] for name in ("n0", "n1", "num_classes")}
        dags = [draw_dag(seed, sizes, values["num_children"], values["vocabulary"]) for seed in seeds]
        X = np.stack([dag.present[:, :-1] for dag in dags]).astype(dtype)  # (R, C, K0)
        batch = {"x": X, "pi": np.full((R, C), 1 / C, dtype), "label": np.tile(np.arange(C), (R, 1))}
        latents = [np.stack([dag.active[s] for dag in dags]) for s in range(2)]
        network = TwoLayers(
            (X.shape[2], values["K1"], values["K2"], C),
            phi=values["phi"],
            scale=float(values["init_scale"]),
            present=float(values["num_children"] ** 3),
        )
        described = values["phi"] in DESCRIBED and values["optimizer"] == "sgd" and values["momentum"] == 0
        return Experiment(
            task=self.name,
            config=dict(values),
            seeds=tuple(seeds),
            model=replace(network, observables=layer_observables(network, batch, latents)),
            stream=lambda i: batch,
            optimizer=Optimizer(values["optimizer"], {"all": float(values["eta"])}, momentum=values["momentum"]),
            steps=300,
            vocabulary=values["vocabulary"],
            exact={"X": X, "latents0": latents[0], "latents1": latents[1]},
            theory={DESCRIBED[values["phi"]]: {"X": X, "pi": batch["pi"], "y": batch["label"]}} if described else {},
        )


TASK = HierarchyLayers()

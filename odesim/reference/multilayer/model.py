"""Two layers of MLP with exp attention and a linear decoder, with hand-written gradients of the cross-entropy.

A node k of layer s weighs its inputs h by V_s[k] exp(Z_s[k]) and adds xi_s[k]. It is a query of its own: its logits Z_s are free
parameters and do not depend on activations. So the gradient goes down through values alone. Source: tian2023joma, Section 5. From
Z = V^2 / 2, which gradient flow keeps (Theorem 1), weights follow hierarchy.multilayer; V, xi, U and Z follow its variant JOINT.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.random import Generator

from odesim.base.arrays import Array, array_namespace, on_same_device
from odesim.lab.networks.joma import ACTIVATIONS
from odesim.lab.training.protocols import Batch, Observable, Params

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
        drawn = [[rng.standard_normal(shape) for shape in ((K1, K0), (K2, K1), (C, K2))] for rng in rngs]
        V1, V2, U = (np.stack(parts) for parts in zip(*drawn, strict=True))
        V1 *= self.scale / np.sqrt(self.present or K0)
        V2 *= self.scale / np.sqrt(K1)
        U *= self.scale / np.sqrt(K2)
        R = len(rngs)
        start = {"V1": V1, "V2": V2, "U": U, "xi1": np.zeros((R, K1)), "xi2": np.zeros((R, K2)), "Z1": V1**2 / 2, "Z2": V2**2 / 2}
        return {name: a.astype(dtype) for name, a in start.items()}

    def hidden(self, params: Params, x: Array) -> tuple[Array, Array, Array, Array]:
        """u1, h1 (R, N, K1), u2 and h2 (R, N, K2): fields of the nodes, and what they say."""
        xp, phi = array_namespace(params["V1"]), ACTIVATIONS[self.phi]
        u1 = x @ (params["V1"] * xp.exp(params["Z1"])).swapaxes(1, 2) + params["xi1"][:, None]
        h1 = phi.value(u1)
        u2 = h1 @ (params["V2"] * xp.exp(params["Z2"])).swapaxes(1, 2) + params["xi2"][:, None]
        return u1, h1, u2, phi.value(u2)

    def loss_and_gradients(self, params: Params, batch: Batch) -> tuple[Array, Params]:
        """Loss (R,), weighted by pi, and its gradient by parameter (R, ...)."""
        xp, batch, slope = array_namespace(params["V1"]), on_same_device(params["V1"], batch), ACTIVATIONS[self.phi].slope
        x, pi, U = batch["x"], batch["pi"], params["U"]
        e1, e2 = xp.exp(params["Z1"]), xp.exp(params["Z2"])
        u1, h1, u2, h2 = self.hidden(params, x)
        scores = h2 @ U.swapaxes(1, 2)  # (R, N, C)
        scores = scores - scores.max(axis=2, keepdims=True)
        p = xp.exp(scores)
        total = p.sum(axis=2, keepdims=True)
        onehot = (batch["label"][..., None] == xp.arange(p.shape[2])).astype(p.dtype)
        losses = xp.log(total[..., 0]) - (onehot * scores).sum(axis=2)
        back = pi[..., None] * (p / total - onehot)  # (R, N, C)

        du2 = (back @ U) * slope(u2)  # (R, N, K2)
        dM2 = du2.swapaxes(1, 2) @ h1  # (R, K2, K1)
        du1 = (du2 @ (params["V2"] * e2)) * slope(u1)  # (R, N, K1)
        dM1 = du1.swapaxes(1, 2) @ x  # (R, K1, K0)
        dV1, dV2 = dM1 * e1, dM2 * e2
        gradient = {"V1": dV1, "V2": dV2, "U": back.swapaxes(1, 2) @ h2, "xi1": du1.sum(axis=1), "xi2": du2.sum(axis=1)}
        return (pi * losses).sum(axis=1), gradient | {"Z1": dV1 * params["V1"], "Z2": dV2 * params["V2"]}

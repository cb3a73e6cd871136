"""The architecture of a transformer: checked options, the initial laws of its parameters, and the memory that it takes."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.random import Generator

from odesim.base.errors import ParamError, no_such
from odesim.lab.networks.layers import ACTIVATIONS, LOSSES
from odesim.lab.training.protocols import Params

# Random initial values of parameters, each seed with its own generator.


@dataclass(frozen=True)
class InitialLaw:
    """The initial law of an array of this shape (of one seed): constant value, U(-value, value), or N(0, value^2)."""

    shape: tuple[int, ...]
    law: Literal["constant", "uniform", "normal"]
    value: float


def torch_linear(shape: tuple[int, ...], fan_in: int) -> InitialLaw:
    """The default law of torch for weights and bias of Linear."""
    # torch draws weights by kaiming_uniform with a = sqrt 5, whose bound sqrt(6 / ((1 + 5) fan_in)) is this one. Networks that are started
    # by other laws (Glorot, N(0, 0.02)) learn at other times: the published runs of tian2023joma are torch's defaults.
    return InitialLaw(shape, "uniform", 1.0 / math.sqrt(fan_in))


def draw_params(starts: Mapping[str, InitialLaw], rngs: Sequence[Generator], dtype: str) -> Params:
    """Initial parameters {name: (R, *shape)}: seed r draws its arrays in the order of starts, in float64, from rngs[r] alone."""
    params = {name: np.empty((len(rngs), *start.shape), dtype) for name, start in starts.items()}
    for r, rng in enumerate(rngs):
        for name, start in starts.items():
            if start.law == "constant":
                params[name][r] = start.value
            elif start.law == "uniform":
                params[name][r] = rng.uniform(-start.value, start.value, start.shape)
            else:
                params[name][r] = start.value * rng.standard_normal(start.shape)
    return params


# The architecture of a transformer: checked options, and the initial laws of its parameters.

Norm = Literal["pre", "post", "none"]
CHOICES = {
    "norm": ("pre", "post", "none"),
    "activation": tuple(ACTIVATIONS),
    "loss": tuple(LOSSES),
    "at": ("last", "all", "given"),
    "start": ("torch", "normal"),
}
BIASES = ("attention", "projection", "mlp", "head")
LEAST = {"vocabulary": 1, "width": 1, "layers": 0, "heads": 1, "mlp": 0, "positions": 0}


@dataclass(frozen=True)
class Architecture:
    """Options of a transformer. Raises ParamError if they are invalid or do not fit together.

    outputs: number of outputs at a position, None for the vocabulary. mlp: nodes of the MLP, 0 for attention alone. positions: longest
    length with learned positions, 0 for none. norm: "pre" adds a layer norm before the head. tied: the head is the embedding. at: the
    positions in the loss. start: torch's defaults, or N(0, std^2) for every matrix.
    """

    vocabulary: int
    width: int
    layers: int
    mlp: int = 0
    heads: int = 1
    outputs: int | None = None
    positions: int = 0
    norm: Norm = "pre"
    residual: bool = True
    activation: str = "gelu"
    causal: bool = True
    projection: bool = True
    biases: tuple[str, ...] = BIASES
    tied: bool = False
    loss: str = "cross_entropy"
    at: Literal["last", "all", "given"] = "last"
    start: Literal["torch", "normal"] = "torch"
    std: float = 0.02

    def __post_init__(self) -> None:
        for name, choices in CHOICES.items():
            if getattr(self, name) not in choices:
                raise ParamError(no_such(name, str(getattr(self, name)), choices))
        for place in self.biases:
            if place not in BIASES:
                raise ParamError(no_such("place of a bias", place, BIASES))
        for name, least in LEAST.items():
            if getattr(self, name) < least:
                raise ParamError(f"{name} is at least {least}, not {getattr(self, name)}")
        if self.outputs is not None and self.outputs < 1:
            raise ParamError(f"outputs is at least 1, not {self.outputs}")
        if self.width % self.heads:
            raise ParamError(f"heads must divide the width: {self.heads} heads do not divide width {self.width}")
        if self.tied and self.classes != self.vocabulary:
            raise ParamError(f"a tied head has one output a token: outputs is {self.outputs}, the vocabulary {self.vocabulary}")
        if not self.std > 0:
            raise ParamError(f"std must be above 0, not {self.std}")

    @property
    def classes(self) -> int:
        """Number of outputs C at a position."""
        return self.vocabulary if self.outputs is None else self.outputs

    @property
    def groups(self) -> Mapping[str, str]:
        """{parameter: group}: embedding, attention, mlp, norm or head."""
        return {name: _group(name) for name in self.starts()}

    def starts(self) -> dict[str, InitialLaw]:
        """{parameter: InitialLaw}, in the order in which a seed draws them."""
        d, normal = self.width, self.start == "normal"

        def matrix(inner: int, outer: int) -> InitialLaw:
            return InitialLaw((inner, outer), "normal", self.std) if normal else torch_linear((inner, outer), inner)

        def bias(inner: int, outer: int) -> InitialLaw:
            return InitialLaw((outer,), "constant", 0.0) if normal else torch_linear((outer,), inner)

        def linear_map(name: str, place: str, inner: int, outer: int) -> dict[str, InitialLaw]:
            return {name: matrix(inner, outer)} | ({f"{name}_bias": bias(inner, outer)} if place in self.biases else {})

        def norm(name: str) -> dict[str, InitialLaw]:
            return {f"{name}_gain": InitialLaw((d,), "constant", 1.0), f"{name}_shift": InitialLaw((d,), "constant", 0.0)}

        table = self.std if normal else 1.0  # torch's Embedding is N(0, 1), wider than its Linear
        laws = {"embedding": InitialLaw((self.vocabulary, d), "normal", table)}
        if self.positions:
            laws["position"] = InitialLaw((self.positions, d), "normal", table)
        layer: dict[str, InitialLaw] = {}
        for name in ("query", "key", "value"):
            layer |= linear_map(name, "attention", d, d)
        layer |= linear_map("projection", "projection", d, d) if self.projection else {}
        layer |= norm("norm1") if self.norm != "none" else {}
        if self.mlp:
            layer |= linear_map("up", "mlp", d, self.mlp) | linear_map("down", "mlp", self.mlp, d)
            layer |= norm("norm2") if self.norm != "none" else {}
        for i in range(self.layers):
            laws |= {f"layer{i}.{name}": start for name, start in layer.items()}
        laws |= norm("norm") if self.norm == "pre" else {}
        head = linear_map("head", "head", d, self.classes)
        if self.tied:
            del head["head"]
        return laws | head


def _group(name: str) -> str:
    part = name.split(".")[-1].removesuffix("_bias")
    table: dict[str, tuple[str, ...]] = {
        "embedding": ("embedding", "position"),
        "attention": ("query", "key", "value", "projection"),
        "mlp": ("up", "down"),
        "head": ("head",),
    }
    return next((group for group, names in table.items() if part in names), "norm")


# Memory that the training of a transformer takes, from its sizes.


def transformer_memory(design: Architecture, *, seeds: int, batch: int, length: int, read: int = 1) -> Mapping[str, int]:
    """{what takes memory: approximate number of numbers} for sequences of `length` tokens, with outputs at `read` positions."""
    width, layers, mlp, outputs = design.width, design.layers, design.mlp, design.classes
    matrices = layers * (4 * width * width + 2 * width * mlp)
    tables = width * (design.vocabulary + outputs)
    # a block stores rows, queries, keys, values, attended rows, two norms, MLP nodes before and after activation
    pass_ = layers * (length * (10 * width + 3 * mlp) + 2 * design.heads * length * length) + read * 3 * outputs
    return {
        "the parameters, their gradients and the optimizer": 5 * seeds * (matrices + tables),
        "what a step computes": seeds * batch * pass_,
        "the cosines of all pairs of embeddings": 2 * seeds * design.vocabulary**2,
    }

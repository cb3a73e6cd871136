"""A transformer block: attention and an MLP, each with residual connection and layer norm."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from odesim.base.arrays import Array
from odesim.lab.networks.layers import (
    ACTIVATIONS,
    NormTape,
    attention,
    attention_back,
    layer_norm,
    layer_norm_back,
    linear,
    linear_back,
    sum_rows,
)

Weights = Mapping[str, Array]  # of one block: {name: (R, ...)}
Gradients = dict[str, Array]
Norm = Literal["pre", "post", "none"]


class BlockOptions(Protocol):
    """The options of the architecture that a block uses."""

    @property
    def heads(self) -> int: ...
    @property
    def mlp(self) -> int: ...
    @property
    def activation(self) -> str: ...
    @property
    def norm(self) -> Norm: ...
    @property
    def residual(self) -> bool: ...
    @property
    def projection(self) -> bool: ...


@dataclass
class Tape:
    """Intermediate results of a block for its backward pass; rows are (R, N, width), N = B * T.

    attended, expanded: inputs of attention and MLP. a: attention weights (R, B, H, T, T). hidden: MLP nodes after the activation.
    """

    attended: Array
    q: Array
    k: Array
    v: Array
    a: Array
    mixed: Array
    expanded: Array | None = None
    hidden: Array | None = None
    slope: Array | None = None
    normed: dict[str, NormTape] = field(default_factory=dict)


def _apply_norm(x: Array, p: Weights, place: str, saved: dict[str, NormTape]) -> Array:
    y, saved[place] = layer_norm(x, p[f"{place}_gain"], p[f"{place}_shift"])
    return y


def _apply_norm_back(dy: Array, p: Weights, place: str, saved: dict[str, NormTape], g: Gradients) -> Array:
    dx, g[f"{place}_gain"], g[f"{place}_shift"] = layer_norm_back(dy, saved[place], p[f"{place}_gain"])
    return dx


def _linear_back(dy: Array, x: Array, p: Weights, name: str, g: Gradients) -> Array:
    """The gradient dx; the gradients of weights and bias are added to g."""
    dx, g[name] = linear_back(dy, x, p[name])
    if f"{name}_bias" in p:
        g[f"{name}_bias"] = sum_rows(dy)
    return dx


def block(x: Array, p: Weights, design: BlockOptions, *, B: int, bias: Array | None) -> tuple[Array, Tape]:
    """The output (R, N, d) of a block for x (R, N, d), and its tape. bias: see attention.key_bias."""
    saved: dict[str, NormTape] = {}
    u = _apply_norm(x, p, "norm1", saved) if design.norm == "pre" else x  # (R, N, d)
    q, k, v = (linear(u, p[name], p.get(f"{name}_bias")) for name in ("query", "key", "value"))  # (R, N, d) each
    mixed, a = attention(q, k, v, B=B, H=design.heads, bias=bias)  # (R, N, d), (R, B, H, T, T)
    y = linear(mixed, p["projection"], p.get("projection_bias")) if design.projection else mixed  # (R, N, d)
    y = x + y if design.residual else y
    y = _apply_norm(y, p, "norm1", saved) if design.norm == "post" else y
    tape = Tape(attended=u, q=q, k=k, v=v, a=a, mixed=mixed, normed=saved)
    if not design.mlp:
        return y, tape
    u = _apply_norm(y, p, "norm2", saved) if design.norm == "pre" else y  # (R, N, d)
    hidden, slope = ACTIVATIONS[design.activation](linear(u, p["up"], p.get("up_bias")))  # (R, N, mlp) each
    z = linear(hidden, p["down"], p.get("down_bias"))  # (R, N, d)
    if design.residual:
        z += y
    z = _apply_norm(z, p, "norm2", saved) if design.norm == "post" else z
    tape.expanded, tape.hidden, tape.slope = u, hidden, slope
    return z, tape


def block_back(dz: Array, p: Weights, design: BlockOptions, tape: Tape) -> tuple[Array, Gradients]:
    """The gradient dx (R, N, d) and those of parameters {name: (R, ...)}, from dz (R, N, d)."""
    g: Gradients = {}
    saved = tape.normed
    dy = dz  # (R, N, d)
    if design.mlp:
        assert tape.expanded is not None and tape.hidden is not None and tape.slope is not None
        dz = _apply_norm_back(dz, p, "norm2", saved, g) if design.norm == "post" else dz
        dh = _linear_back(dz, tape.hidden, p, "down", g)  # (R, N, mlp)
        dh *= tape.slope
        dy = _linear_back(dh, tape.expanded, p, "up", g)  # (R, N, d)
        dy = _apply_norm_back(dy, p, "norm2", saved, g) if design.norm == "pre" else dy
        if design.residual:
            dy += dz
    dy = _apply_norm_back(dy, p, "norm1", saved, g) if design.norm == "post" else dy
    dm = _linear_back(dy, tape.mixed, p, "projection", g) if design.projection else dy  # (R, N, d)
    dq, dk, dv = attention_back(dm, tape.q, tape.k, tape.v, tape.a)  # (R, N, d) each
    dx = _linear_back(dq, tape.attended, p, "query", g)
    dx += _linear_back(dk, tape.attended, p, "key", g)
    dx += _linear_back(dv, tape.attended, p, "value", g)
    dx = _apply_norm_back(dx, p, "norm1", saved, g) if design.norm == "pre" else dx
    if design.residual:
        dx += dy
    return dx, g

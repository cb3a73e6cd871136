"""The attentions of the JoMA block, forward and backward: linear, exp, softmax (tian2023joma, section 3).

x (R, N, Mc) counts the contextual tokens of a sample, s (R, N, Mc) are the logits of its query over the temperature.
"""

from collections.abc import Callable
from dataclasses import dataclass

from odesim.base.arrays import Array, array_namespace


@dataclass(frozen=True)
class Attention:
    """An attention: forward(x, s) -> b (R, N, Mc), and back(p, x, b) -> dJ/ds (R, N, Mc) for p = dJ/db (R, N, Mc)."""

    forward: Callable[[Array, Array], Array]
    back: Callable[[Array, Array, Array], Array]


def linear(x: Array, s: Array) -> Array:
    """Linear attention b = x s."""
    return x * s


def linear_back(p: Array, x: Array, b: Array) -> Array:
    """Gradient of linear attention: dJ/ds = x p."""
    return x * p


def exponential(x: Array, s: Array) -> Array:
    """Exponential attention b = x exp(s)."""
    return x * array_namespace(s).exp(s)


def exponential_back(p: Array, x: Array, b: Array) -> Array:
    """Gradient of exponential attention: dJ/ds = b p."""
    return b * p


def softmax(x: Array, s: Array) -> Array:
    """Softmax attention b = x exp(s) / sum x exp(s)."""
    xp = array_namespace(s)
    present = xp.where(x > 0, s, xp.full_like(s, -xp.inf))  # absent tokens must not make the others underflow
    weights = x * xp.exp(present - present.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def softmax_back(p: Array, x: Array, b: Array) -> Array:
    """Gradient of softmax attention: dJ/ds = b (p - b.p)."""
    return b * (p - (b * p).sum(axis=-1, keepdims=True))


ATTENTIONS = {
    "linear": Attention(linear, linear_back),
    "exp": Attention(exponential, exponential_back),
    "softmax": Attention(softmax, softmax_back),
}

"""Activations phi of the JoMA block, and losses above it with their gradients."""

from collections.abc import Callable
from dataclasses import dataclass

from odesim.base.arrays import Array, array_namespace
from odesim.lab.training.protocols import Batch


@dataclass(frozen=True)
class Activation:
    """An activation: value(u) = phi(u) and slope(u) = phi'(u), for arrays of any shape."""

    value: Callable[[Array], Array]
    slope: Callable[[Array], Array]


ACTIVATIONS = {
    "identity": Activation(lambda u: u, lambda u: array_namespace(u).ones_like(u)),
    "relu": Activation(lambda u: u * (u > 0), lambda u: (u > 0).astype(u.dtype)),
    "softplus": Activation(lambda u: array_namespace(u).logaddexp(u, u * 0), lambda u: 0.5 + 0.5 * array_namespace(u).tanh(0.5 * u)),
    "square": Activation(lambda u: u * u, lambda u: 2 * u),
}


def fixed(h: Array, top: Array | None, batch: Batch) -> tuple[Array, Array]:
    """Loss (R, N) and its gradient (R, N, K) at h (R, N, K): -sum_k G h with G = batch["signal"] (R, N, K); top is not used.

    The back-propagated signal is G, independent of h.
    """
    G = batch["signal"]
    return -(G * h).sum(axis=-1), -G


def ce(h: Array, top: Array | None, batch: Batch) -> tuple[Array, Array]:
    """Loss (R, N) and its gradient (R, N, K) at h (R, N, K): -ln softmax(A h)[label], with batch["label"] (R, N)."""
    xp = array_namespace(h)
    scores = h if top is None else h @ top.T  # (R, N, C)
    scores = scores - scores.max(axis=-1, keepdims=True)
    p = xp.exp(scores)
    total = p.sum(axis=-1, keepdims=True)
    onehot = (batch["label"][..., None] == xp.arange(p.shape[-1])).astype(h.dtype)
    loss = xp.log(total[..., 0]) - (onehot * scores).sum(axis=-1)
    back = p / total - onehot  # (R, N, C)
    return loss, back if top is None else back @ top


def mse(h: Array, top: Array | None, batch: Batch) -> tuple[Array, Array]:
    """Loss (R, N) and its gradient (R, N, K) at h (R, N, K): |A h - y|^2 / 2 with y = batch["target"] (R, N, C)."""
    back = (h if top is None else h @ top.T) - batch["target"]  # (R, N, C)
    return 0.5 * (back * back).sum(axis=-1), back if top is None else back @ top


SIGNALS = {"fixed": fixed, "ce": ce, "mse": mse}

"""Losses of the transformer with gradients, as weighted means over rows of outputs."""

from odesim.base.arrays import Array, array_namespace
from odesim.lab.networks import device
from odesim.lab.networks.layers import slabs


def shares(counted: Array, weight: Array | None, dtype: str) -> Array:
    """The weights (R, B, P) of rows in the mean over a seed's counted rows (R, B, P). weight (R, B): how often a sample counts.

    A seed without counted rows has weights 0, so loss 0.
    """
    xp = array_namespace(counted)
    share = counted.astype(dtype)
    if weight is not None:
        share *= weight.astype(dtype)[:, :, None]
    total = share.reshape(len(share), -1).sum(axis=1)  # (R,)
    share /= xp.where(total > 0.0, total, 1.0)[:, None, None]
    return share


def cross_entropy(logits: Array, targets: Array, share: Array) -> tuple[Array, Array]:
    """The loss sum share * (logsumexp(logits) - logits[target]) (R,) and its gradient (R, B, P, C), which overwrites logits.

    targets (R, B, P) of rows with share 0 may be anything below C.
    """
    xp = array_namespace(logits)
    R, C = logits.shape[0], logits.shape[-1]
    z = logits.reshape(-1, C)  # (R * B * P, C), a view
    target, part_of = xp.maximum(targets.reshape(-1), 0), share.reshape(-1)
    if device.is_fused(z):
        row = device.cross_entropy(z, target, part_of)
        return (row * part_of).reshape(R, -1).sum(axis=1), z.reshape(logits.shape)
    row = xp.empty(len(z), z.dtype)
    for part in slabs(z, len(z)):
        piece, at = z[part], target[part]
        rows = xp.arange(len(piece))
        piece -= piece.max(axis=1, keepdims=True)
        target_logits = piece[rows, at]
        xp.exp(piece, out=piece)
        total = piece.sum(axis=1)
        row[part] = xp.log(total) - target_logits
        piece *= (part_of[part] / total)[:, None]
        piece[rows, at] -= part_of[part]
    loss: Array = (row * part_of).reshape(R, -1).sum(axis=1)
    return loss, z.reshape(logits.shape)


def squared_error(outputs: Array, targets: Array, share: Array) -> tuple[Array, Array]:
    """The loss sum share * mean_c (outputs - targets)^2 (R,) and its gradient (R, B, P, C); overwrites outputs."""
    R, C = outputs.shape[0], outputs.shape[-1]
    outputs -= targets
    weighted = outputs * (share / C)[..., None]  # (R, B, P, C)
    loss: Array = (outputs * weighted).reshape(R, -1).sum(axis=1)
    weighted *= 2.0
    return loss, weighted


LOSSES = {"cross_entropy": cross_entropy, "squared_error": squared_error}

"""Multi-head softmax attention and its gradient."""

import math

from odesim.base.arrays import Array, array_namespace
from odesim.lab.networks import device


def split_heads(x: Array, B: int, H: int) -> Array:
    """x (R, B * T, H * e) as a view (R, B, H, T, e), by heads."""
    R, N, d = x.shape
    view: Array = x.reshape(R, B, N // B, H, d // H).transpose(0, 1, 3, 2, 4)
    return view


def key_bias(T: int, like: Array, *, causal: bool, padding: Array | None, log_weight: Array | None) -> Array | None:
    """The bias of attention logits, (T, T) or (R, B, 1, T or 1, T), or None: -inf for masked keys, log_weight (R, B, T) by key.

    padding (R, B, T): True at masked keys. like: an array on the same device, with the same dtype.
    """
    xp, dtype = array_namespace(like), like.dtype
    bias = None
    if log_weight is not None:
        bias = log_weight.astype(dtype)[:, :, None, None]  # (R, B, 1, 1, T)
    if padding is not None:
        hidden = xp.where(padding, -math.inf, 0.0).astype(dtype)[:, :, None, None]
        bias = hidden if bias is None else bias + hidden
    if causal:
        later = xp.where(xp.arange(T)[None] > xp.arange(T)[:, None], -math.inf, 0.0).astype(dtype)  # (T, T)
        bias = later if bias is None else bias + later
    return bias


def attention(q: Array, k: Array, v: Array, *, B: int, H: int, bias: Array | None) -> tuple[Array, Array]:
    """The output (R, B * T, d) and attention weights a (R, B, H, T, T), from queries, keys and values (R, B * T, d).

    Logits are q . k / sqrt(d / H) + bias. A query whose keys are all masked has weights 0.
    """
    xp = array_namespace(q)
    a = split_heads(q, B, H) @ split_heads(k, B, H).swapaxes(3, 4)  # (R, B, H, T, T)
    scale = 1.0 / math.sqrt(q.shape[2] // H)
    if device.is_fused(a):
        device.softmax(a, bias, scale)
    else:
        a *= scale
        if bias is not None:
            a += bias
        top = a.max(axis=4, keepdims=True)  # (R, B, H, T, 1)
        a -= xp.where(top > -math.inf, top, 0.0)
        xp.exp(a, out=a)
        total = a.sum(axis=4, keepdims=True)
        a *= 1.0 / xp.where(total > 0.0, total, 1.0)
    out = xp.empty(v.shape, v.dtype)  # (R, B * T, d)
    xp.matmul(a, split_heads(v, B, H), out=split_heads(out, B, H))
    return out, a


def attention_back(dy: Array, q: Array, k: Array, v: Array, a: Array) -> tuple[Array, Array, Array]:
    """The gradients (dq, dk, dv) (R, B * T, d) from dy (R, B * T, d)."""
    xp = array_namespace(q)
    B, H = a.shape[1:3]
    qs, ks, vs, dys = (split_heads(x, B, H) for x in (q, k, v, dy))  # (R, B, H, T, e) each
    dq, dk, dv = (xp.empty(q.shape, q.dtype) for _ in range(3))
    xp.matmul(a.swapaxes(3, 4), dys, out=split_heads(dv, B, H))
    ds = dys @ vs.swapaxes(3, 4)  # (R, B, H, T, T): first by the weights, then by the logits
    scale = 1.0 / math.sqrt(q.shape[2] // H)
    if device.is_fused(ds):
        device.softmax_back(ds, a, scale)
    else:
        ds -= (ds * a).sum(axis=4, keepdims=True)
        ds *= a
        ds *= scale
    xp.matmul(ds, ks, out=split_heads(dq, B, H))
    xp.matmul(ds.swapaxes(3, 4), qs, out=split_heads(dk, B, H))
    return dq, dk, dv

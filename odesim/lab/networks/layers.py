"""Layers of the transformer, forward and backward side by side, and its loss."""

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from odesim.base.arrays import Array, array_namespace
from odesim.lab.networks import device

# Cuts elementwise work into pieces that fit in a core's cache.

SLAB = 1 << 18  # bytes: a few arrays of this size fit in a second-level cache


def slabs(a: Array, rows: int) -> Iterator[slice]:
    """Yields slices of range(rows) in order, each of about SLAB bytes of a, which has that many rows; one slice on a GPU."""
    step = max(1, rows * SLAB // max(a.nbytes, 1)) if array_namespace(a) is np else max(rows, 1)
    for start in range(0, rows, step):
        yield slice(start, min(start + step, rows))


# Activation functions with their derivatives.

Activation = Callable[[Array], tuple[Array, Array]]  # x -> (y, slope), all of one shape; x is not changed

# 1 - Phi(x) = exp(-x^2 / 2) * A(x) / B(x) for x >= 0: algorithm 5666 of Hart et al., Computer Approximations (1968),
# as given by West, Better approximations to cumulative normal functions, Wilmott Magazine (2005); highest power first
HART_A = (0.0352624965998911, 0.700383064443688, 6.37396220353165, 33.912866078383, 112.079291497871, 221.213596169931, 220.206867912376)
HART_B = (
    0.0883883476483184, 1.75566716318264, 16.064177579207, 86.7807322029461, 296.564248779674, 637.333633378831, 793.826512519948,
    440.413735824752,
)  # fmt: skip
# 1 - Phi(x) = phi(x) (b1 t + ... + b5 t^5), t = 1 / (1 + 0.2316419 x): Abramowitz and Stegun 26.2.17, within 7.5e-8,
# which is a rounding of float32; b5 first
STEGUN = (1.330274429, -1.821255978, 1.781477937, -0.356563782, 0.319381530)
STEGUN_P = 0.2316419


def _horner(x: Array, coefficients: tuple[float, ...], out: Array) -> Array:
    """The polynomial with these coefficients, highest power first, at x; written to out."""
    xp = array_namespace(x)
    xp.multiply(x, coefficients[0], out=out)
    for c in coefficients[1:-1]:
        out += c
        out *= x
    out += coefficients[-1]
    return out


def _tail(a: Array, bell: Array) -> Array:
    """1 - Phi(a) for a >= 0, in the shape of a. bell: exp(-a^2 / 2)."""
    xp = array_namespace(a)
    out, other = xp.empty_like(a), xp.empty_like(a)
    if a.dtype.itemsize > 4:
        _horner(a, HART_A, out)
        out /= _horner(a, HART_B, other)
    else:
        t = xp.multiply(a, STEGUN_P, out=other)
        t += 1.0
        xp.divide(1.0, t, out=t)
        _horner(t, STEGUN, out)
        out *= t
        out *= 1.0 / math.sqrt(2.0 * math.pi)
    out *= bell
    return out


def gelu(x: Array) -> tuple[Array, Array]:
    """GELU x Phi(x) and its derivative Phi(x) + x phi(x), without the tanh approximation (Hendrycks, Gimpel 2016)."""
    if device.is_fused(x):
        return device.gelu(x)
    xp = array_namespace(x)
    y, slope = xp.empty(x.shape, x.dtype), xp.empty(x.shape, x.dtype)
    flat, flat_y, flat_slope = x.reshape(-1), y.reshape(-1), slope.reshape(-1)
    for part in slabs(flat, flat.size):
        piece = flat[part]
        a = xp.abs(piece)
        # bell is 0 from there on, and an infinite a would make the tail 0 * nan
        xp.minimum(a, 40.0, out=a)
        bell = a * a
        bell *= -0.5
        xp.exp(bell, out=bell)
        tail = _tail(a, bell)
        bell *= 1.0 / math.sqrt(2.0 * math.pi)
        bell *= a
        bell -= tail  # a phi(a) - (1 - Phi(a))
        xp.multiply(a, tail, out=a)
        xp.subtract(xp.maximum(piece, 0.0), a, out=flat_y[part])
        flat_slope[part] = xp.where(piece > 0.0, 1.0 + bell, -bell)
    return y, slope


def relu(x: Array) -> tuple[Array, Array]:
    """ReLU max(x, 0) and its derivative x > 0, as booleans."""
    return array_namespace(x).maximum(x, 0.0), x > 0.0


ACTIVATIONS: dict[str, Activation] = {"gelu": gelu, "relu": relu}


# A linear map of rows and its gradient.


def linear(x: Array, w: Array, b: Array | None = None) -> Array:
    """The rows x w + b (R, N, k) for x (R, N, d), w (R, d, k) and b (R, k)."""
    y: Array = x @ w  # (R, N, k)
    if b is not None:
        y += b[:, None]
    return y


def linear_back(dy: Array, x: Array, w: Array) -> tuple[Array, Array]:
    """The gradients dx (R, N, d) and dw (R, d, k), from dy (R, N, k); that of the bias is sum_rows(dy)."""
    dx = dy @ w.swapaxes(1, 2)  # (R, N, d)
    dw = x.swapaxes(1, 2) @ dy  # (R, d, k)
    return dx, dw


def sum_rows(dy: Array) -> Array:
    """The sum (R, k) of the rows of dy (R, N, k)."""
    if device.is_fused(dy):
        return device.sum_rows(dy)[0]
    return dy.sum(axis=1)


# Layer normalisation and its gradient: rows with mean 0 and variance 1, then gain and shift (Ba et al. 2016).

EPS = 1e-5  # torch's default, added to the variance; the variance is that of N, not N - 1


class NormTape(NamedTuple):
    """Intermediate results for the backward pass: rows (R, N, d) before gain and shift, and 1 / standard deviation (R, N, 1)."""

    rows: Array
    scale: Array


def layer_norm(x: Array, gain: Array, shift: Array) -> tuple[Array, NormTape]:
    """Normalised rows y (R, N, d) of x (R, N, d) with gain and shift (R, d), and the tape for the backward pass."""
    if device.is_fused(x):
        y, rows, scale = device.layer_norm(x, gain, shift, EPS)
        return y, NormTape(rows, scale)
    xp = array_namespace(x)
    rows = x - x.mean(axis=-1, keepdims=True)  # (R, N, d)
    y = rows * rows
    scale = 1.0 / xp.sqrt(y.mean(axis=-1, keepdims=True) + EPS)  # (R, N, 1)
    rows *= scale
    xp.multiply(rows, gain[:, None], out=y)
    y += shift[:, None]
    return y, NormTape(rows, scale)


def layer_norm_back(dy: Array, saved: NormTape, gain: Array) -> tuple[Array, Array, Array]:
    """The gradients dx (R, N, d), dgain (R, d) and dshift (R, d), from dy (R, N, d)."""
    rows, scale = saved
    if device.is_fused(dy):
        return device.layer_norm_back(dy, rows, scale, gain)
    product = dy * rows  # (R, N, d)
    dgain, dshift = product.sum(axis=1), dy.sum(axis=1)  # (R, d) each
    dx = dy * gain[:, None]  # (R, N, d): from here on, the gradient by the rows
    product *= gain[:, None]
    along = product.mean(axis=-1, keepdims=True)  # (R, N, 1)
    dx -= dx.mean(axis=-1, keepdims=True)
    product = array_namespace(dy).multiply(rows, along, out=product)
    dx -= product
    dx *= scale
    return dx, dgain, dshift


# Embedding of tokens and its gradient.


def _flat(tokens: Array, V: int) -> Array:
    """Row numbers (R * N,) of tokens in the tables of all seeds, concatenated."""
    xp = array_namespace(tokens)
    R = tokens.shape[0]
    return (tokens.reshape(R, -1) + V * xp.arange(R)[:, None]).reshape(-1)


def embed(tokens: Array, table: Array) -> Array:
    """The rows (R, N, d) of table (R, V, d) for tokens (R, ...) with N entries for each seed, each in 0..V-1."""
    R, V, d = table.shape
    x: Array = table.reshape(R * V, d).take(_flat(tokens, V), axis=0)  # (R * N, d)
    return x.reshape(R, -1, d)


def embed_back(dy: Array, tokens: Array, V: int) -> Array:
    """The gradient (R, V, d) of the table: sums of dy (R, N, d) over the entries of each token, in order."""
    if device.is_fused(dy):
        R, N, d = dy.shape
        return device.embed_back(dy.reshape(R * N, d), _flat(tokens, V), R * V).reshape(R, V, d)
    return (_by_rows if array_namespace(dy) is np else _by_product)(dy, tokens, V)


def _by_product(dy: Array, tokens: Array, V: int) -> Array:
    """embed_back as a product with indicators, for GPUs, where atomic adds would change bits from run to run."""
    R, N, _ = dy.shape
    indicators = (tokens.reshape(R, 1, N) == array_namespace(dy).arange(V)[:, None]).astype(dy.dtype)  # (R, V, N)
    return indicators @ dy


def _by_rows(dy: Array, tokens: Array, V: int) -> Array:
    """embed_back as a sparse product, which sums entries in order."""
    from scipy.sparse import csr_array

    R, N, d = dy.shape
    rows = _flat(tokens, V)  # (R * N,)
    order = np.argsort(rows, kind="stable")
    starts = np.concatenate(([0], np.cumsum(np.bincount(rows, minlength=R * V))))
    indicators = csr_array((np.ones(R * N, dy.dtype), order, starts), shape=(R * V, R * N))
    total: Array = indicators @ dy.reshape(R * N, d)  # (R * V, d)
    return total.reshape(R, V, d)


# Multi-head softmax attention and its gradient.


def split_heads(x: Array, B: int, H: int) -> Array:
    """x (R, B * T, H * e) as a view (R, B, H, T, e), by heads."""
    R, N, d = x.shape
    return x.reshape(R, B, N // B, H, d // H).transpose(0, 1, 3, 2, 4)


def key_bias(T: int, like: Array, *, causal: bool, log_weight: Array | None) -> Array | None:
    """The bias of attention logits, (T, T) or (R, B, 1, T or 1, T), or None: -inf for masked keys, log_weight (R, B, T) by key.

    like: an array on the same device, with the same dtype.
    """
    xp, dtype = array_namespace(like), like.dtype
    bias = None if log_weight is None else log_weight.astype(dtype)[:, :, None, None]  # (R, B, 1, 1, T)
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


# The loss of the transformer with its gradient, a weighted mean over rows of outputs.


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

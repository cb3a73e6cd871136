"""Each layer against a formula or a loop, and its gradient against central differences."""

import numpy as np
import pytest
from scipy.special import ndtr

from odesim.lab.networks.layers import (
    ACTIVATIONS,
    EPS,
    SLAB,
    attention,
    attention_back,
    embed,
    embed_back,
    key_bias,
    layer_norm,
    layer_norm_back,
    linear,
    linear_back,
    sum_rows,
)
from tests.support.slopes import check_gradients

R, B, T, D, K = 2, 3, 5, 6, 4
N = B * T


def normal(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape)


def total(y, c):
    """The sum (R,) of y c, whose gradient by y is c."""
    return (y * c).reshape(len(y), -1).sum(1)


def test_linear_gradient():
    """The gradient of x w + b by x, w and b."""
    at, c = {"x": normal(0, R, N, D), "w": normal(1, R, D, K), "b": normal(2, R, K)}, normal(3, R, N, K)
    dx, dw = linear_back(c, at["x"], at["w"])
    check_gradients(lambda p: total(linear(p["x"], p["w"], p["b"]), c), at, {"x": dx, "w": dw, "b": sum_rows(c)})


def test_embedding_gradient():
    """A row of the table gets the sum over its occurrences in its own seed; a token that does not occur gets 0."""
    tokens = np.random.default_rng(0).integers(0, K, (R, B, T))  # the last of K + 1 tokens is not there
    at, c = {"table": normal(1, R, K + 1, D)}, normal(2, R, N, D)
    gradient = embed_back(c, tokens, K + 1)
    check_gradients(lambda p: total(embed(tokens, p["table"]), c), at, {"table": gradient})
    assert (gradient[:, K] == 0).all()


def test_layer_norm_rows():
    """With gain 1 and shift 0 a row has mean 0 and variance v / (v + eps)."""
    x = normal(0, R, N, D)
    y, _ = layer_norm(x, np.ones((R, D)), np.zeros((R, D)))
    v = x.var(axis=-1)
    np.testing.assert_allclose(y.mean(-1), 0, atol=1e-14)  # rounding
    np.testing.assert_allclose(y.var(-1), v / (v + EPS), rtol=1e-12)  # rounding


def test_layer_norm_gradient():
    """The gradient of the normed rows by x, gain and shift."""
    at, c = {"x": normal(0, R, N, D), "gain": normal(1, R, D), "shift": normal(2, R, D)}, normal(3, R, N, D)
    dx, dgain, dshift = layer_norm_back(c, layer_norm(**at)[1], at["gain"])
    check_gradients(lambda p: total(layer_norm(**p)[0], c), at, {"x": dx, "gain": dgain, "shift": dshift})


FORMULAS = {
    "relu": lambda x: np.where(x > 0, x, 0.0),
    "gelu": lambda x: x * ndtr(x),
}
# the largest error in units of max(1, |x|): a few roundings; float32's tail formula is within 7.5e-8, and |x| <= 40
ACCURACY = {"float64": 1e-15, "float32": 3e-7}


@pytest.mark.parametrize("dtype", ACCURACY)
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activation_formula(name, dtype):
    """The value of an activation over more points than one slab holds, to the rounding of the dtype."""
    x = np.linspace(-40, 40, SLAB // 4 + 11).astype(dtype)
    y, slope = ACTIVATIONS[name](x)
    assert y.dtype == x.dtype and slope.dtype in (x.dtype, bool)
    exact = FORMULAS[name](x.astype(float))
    assert (np.abs(y - exact) / np.maximum(1, np.abs(x))).max() <= ACCURACY[dtype]


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activation_slope(name):
    """The slope is the derivative: central differences, away from relu's corner."""
    x = np.linspace(-9, 9, 1000)  # an even number: 0 is not among them
    h = 1e-5
    rise = (ACTIVATIONS[name](x + h)[0] - ACTIVATIONS[name](x - h)[0]) / (2 * h)
    np.testing.assert_allclose(ACTIVATIONS[name](x)[1], rise, rtol=1e-6, atol=1e-9)  # h^2 and rounding / h


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activation_far_out(name):
    """At infinity an activation is x or 0, and silent."""
    with np.errstate(over="raise", divide="raise"):
        np.testing.assert_allclose(ACTIVATIONS[name](np.array([-1e4, 1e30]))[0], [0, 1e30], atol=1e-300)


def keys(causal, padded, weighted):
    weights = normal(9, R, B, T) if weighted else np.zeros((R, B, T))
    unseen = np.arange(T) >= np.array([[5, 3, 2], [4, 5, 1]])[:, :, None]  # lengths (R, B)
    log_weight = np.where(unseen, -np.inf, weights) if padded else weights
    return key_bias(T, np.empty(0), causal=causal, log_weight=log_weight if padded or weighted else None)


MASKS = [(c, p, w) for c in (False, True) for p in (False, True) for w in (False, True)]


@pytest.mark.parametrize(
    "mask", MASKS, ids=lambda m: "-".join(n for n, on in zip(("causal", "padded", "weighted"), m, strict=True) if on) or "all"
)
def test_attention_loop(mask):
    """Attention equals a loop over seeds, samples, heads and queries."""
    q, k, v, H, bias = normal(0, R, N, D), normal(1, R, N, D), normal(2, R, N, D), 2, keys(*mask)
    out, a = attention(q, k, v, B=B, H=H, bias=bias)
    shift = np.broadcast_to(0.0 if bias is None else bias, (R, B, 1, T, T))
    e = D // H
    for r, b, h, t in np.ndindex(R, B, H, T):
        rows, own = slice(b * T, (b + 1) * T), slice(h * e, (h + 1) * e)
        weights = np.exp(k[r, rows, own] @ q[r, b * T + t, own] / np.sqrt(e) + shift[r, b, 0, t])
        weights /= weights.sum()
        np.testing.assert_allclose(a[r, b, h, t], weights, rtol=1e-12)  # rounding
        np.testing.assert_allclose(out[r, b * T + t, own], weights @ v[r, rows, own], rtol=1e-12, atol=1e-14)  # rounding


@pytest.mark.parametrize("mask", MASKS, ids=str)
def test_attention_gradient(mask):
    """The gradient of attention by queries, keys and values, under every mask."""
    at, c, bias = {n: normal(i, R, N, D) for i, n in enumerate("qkv")}, normal(3, R, N, D), keys(*mask)
    _, a = attention(**at, B=B, H=2, bias=bias)
    got = dict(zip("qkv", attention_back(c, **at, a=a), strict=True))
    check_gradients(lambda p: total(attention(**p, B=B, H=2, bias=bias)[0], c), at, got)


def test_attention_to_nothing():
    """A query whose keys are all hidden gets zeros and passes on no gradient, without a warning."""
    weights = np.zeros((R, B, T))
    weights[:, :, :2] = -np.inf  # under a causal mask the first two queries see these alone
    bias = key_bias(T, np.empty(0), causal=True, log_weight=weights)
    x, c = normal(0, R, N, D), normal(1, R, N, D)
    out, a = attention(x, x, x, B=B, H=2, bias=bias)
    assert (out.reshape(R, B, T, D)[:, :, :2] == 0).all() and (a[..., 2:, :].sum(-1) > 0.9).all()
    dq, dk, _ = attention_back(c, x, x, x, a)
    assert (dq.reshape(R, B, T, D)[:, :, :2] == 0).all() and (dk.reshape(R, B, T, D)[:, :, :2] == 0).all()

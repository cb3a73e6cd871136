"""Embedding of tokens and its gradient."""

import numpy as np

from odesim.base.arrays import Array, array_namespace
from odesim.lab.networks import device


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
    product: Array = indicators @ dy
    return product


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

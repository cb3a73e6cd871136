"""Rows of a table, by token."""

import numpy as np

from odesim.base.arrays import Array, array_namespace


def _flat(tokens: Array, V: int) -> Array:
    """Row numbers (R * N,) in the tables (R, V) laid one under the other."""
    xp = array_namespace(tokens)
    R = tokens.shape[0]
    return (tokens.reshape(R, -1) + V * xp.arange(R)[:, None]).reshape(-1)


def embed(tokens: Array, table: Array) -> Array:
    """Rows (R, N, d) of table (R, V, d) at tokens (R, ...) with N entries a seed, each in 0..V-1."""
    R, V, d = table.shape
    x: Array = table.reshape(R * V, d).take(_flat(tokens, V), axis=0)  # (R * N, d)
    return x.reshape(R, -1, d)


def embed_back(dy: Array, tokens: Array, V: int) -> Array:
    """The table's gradient (R, V, d): the sum of dy (R, N, d) over the entries of each token, in their order."""
    return (_by_rows if array_namespace(dy) is np else _by_product)(dy, tokens, V)


def _by_product(dy: Array, tokens: Array, V: int) -> Array:
    """The same by a product with indicators, on a GPU: atomic adds have other bits in every run."""
    R, N, _ = dy.shape
    one = (tokens.reshape(R, 1, N) == array_namespace(dy).arange(V)[:, None]).astype(dy.dtype)  # (R, V, N)
    product: Array = one @ dy
    return product


def _by_rows(dy: Array, tokens: Array, V: int) -> Array:
    """The same by a sparse product, each entry in its turn."""
    from scipy.sparse import csr_array

    R, N, d = dy.shape
    rows = _flat(tokens, V)  # (R * N,)
    order = np.argsort(rows, kind="stable")
    starts = np.concatenate(([0], np.cumsum(np.bincount(rows, minlength=R * V))))
    one = csr_array((np.ones(R * N, dy.dtype), order, starts), shape=(R * V, R * N))
    total: Array = one @ dy.reshape(R * N, d)  # (R * V, d)
    return total.reshape(R, V, d)

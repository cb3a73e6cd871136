"""Sequences with a query each: what margin.weights and margin.key_query share."""

from typing import Any

import numpy as np
from sympy import Interval, oo

from odesim.models.margin._softmax import BEST, LACK, N, T, i, l
from odesim.symbolic import IndexedBase, Param, index, sizes

a, b, c, e = index("a b c e")
(d,) = sizes("d")
X, z = IndexedBase("X", shape=(N, T, d)), IndexedBase("z", shape=(N, d))


def tokens(sizes: dict[str, int]) -> Any:
    """X (N, T, d), normal."""
    return np.random.default_rng(11).normal(size=(sizes["N"], sizes["T"], sizes["d"]))


def queries(sizes: dict[str, int]) -> Any:
    """z (N, d): normal numbers, those after the tokens."""
    rng = np.random.default_rng(11)
    rng.normal(size=(sizes["N"], sizes["T"], sizes["d"]))
    return rng.normal(size=(sizes["N"], sizes["d"]))


AXES = {i: N, l: T, a: d, b: d, c: d, e: d}
SIZES = {N: 3, T: 3, d: 4}
PARAMS = (
    Param(X, tokens, Interval(-oo, oo), "tokens of each sequence"),
    Param(z, queries, Interval(-oo, oo), "query of each sequence"),
    LACK,
    BEST,
)

"""Decoding in T steps with revision: at step t all but k_t tokens, chosen uniformly, are shown again, and the others are drawn anew.

pi <- pi Ptilde_k of gibbs.parallel, k_t = n (T - t)/T to the next whole number, at least 1: all tokens first, fewer and fewer then, each
drawn by itself from its law given those that are shown. After T steps decoding is done. More steps come closer to p, but even with T = n
steps they do not reach it, for each step revises tokens by a kernel that does not keep p; gibbs.unmask, which revises nothing, does.

T is the length of `k`, 2 by default. At t < T decoding is not done, after step T pi stays; a run has ten steps by default,
`--size T=20 --steps 20` has more.

gibbs.mask_predict:SYNCHRONOUS draws all tokens at every step, each given all others as they were. It goes to a law of its own, for signs
with equal pairs exp(h sum_j x_j) prod_j 2 cosh(h + J sum_(i != j) x_i) over its sum.

Assumed: masks are chosen uniformly and tokens drawn (the paper masks the least sure ones and takes the likeliest word for each), the law
of each token given those shown is exact. The law at rest of all at once is that of peretto1984collective.
"""

from functools import cache
from typing import Any

import numpy as np
from sympy import Naturals

from odesim.models.gibbs._decoding import T, decoder, synchronous
from odesim.models.gibbs._kernels import length, parallel
from odesim.symbolic import IndexedBase, Param, Source, System

k = IndexedBase("k", shape=(T,))


def schedule(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """k (T,): how many tokens are drawn at each step."""
    n, T = length(sizes["S"], int(params["q"])), sizes["T"]
    return np.maximum(1, np.rint(n * (T - np.arange(T)) / T).astype(int))


def revising(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """K (T, S, S): Ptilde of k tokens at each step."""
    return np.array([parallel(params["p"], int(params["q"]), int(many)) for many in params["k"]])


def all_at_once(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """K (T, S, S): at every step the kernel that draws all tokens given the others."""
    return np.repeat(synchronous(params["p"], int(params["q"]))[None], sizes["T"], axis=0)


SYSTEM = decoder(
    "gibbs.mask_predict",
    Source("ghazvininejad2019mask", "Section 3.1", "masks chosen uniformly, tokens drawn: the k-Gibbs sampler with independent draws"),
    revising,
    (Param(k, schedule, Naturals, "k[a]: how many tokens are drawn at step a"),),
)


def redrawing_all() -> System:
    """The decoder that draws all tokens at every step."""
    return decoder(
        "gibbs.mask_predict.synchronous",
        Source("little1974existence", "the dynamics of all neurons at once", "symmetric couplings"),
        all_at_once,
        (),
    )


VARIANTS = {"SYNCHRONOUS": cache(redrawing_all)}

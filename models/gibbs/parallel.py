"""Parallel decoding as a chain in continuous time: masked tokens are drawn each by itself, from its law given those not masked.

dpi/dt = pi (Ptilde_k - 1). For k = 1 this is gibbs.master. For k > 1 it forgets how masked tokens depend on each other, and pi goes to a
law s other than the target p: two signs of correlation rho, both masked, end as independent ones, at a total variation of |rho| / 2
from p. s is found by elimination of states, without subtractions.

Assumed: k > 1 tokens masked at each event, chosen uniformly; the law of each token given the others is exact.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from sympy import Interval, Sum, oo

from odesim.models.gibbs._chain import S, chain, pi, x
from odesim.models.gibbs._kernels import parallel, stationary
from odesim.models.gibbs._laws import equal_pairs
from odesim.models.gibbs._measures import distance, divergence, positive
from odesim.models.gibbs.master import PAIRS
from odesim.symbolic import IndexedBase, Invariant, Param, over

s = IndexedBase("s", shape=(S,))


def parallel_generator(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """Q (S, S) = Ptilde_k - 1."""
    return parallel(params["p"], int(params["q"]), int(params["k"])) - np.eye(sizes["S"])


def invariant_law(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """s (S,): the law that Q keeps."""
    return stationary(np.asarray(params["Q"]) + np.eye(sizes["S"]))


exact = chain("gibbs.parallel", "parallel decoding", equal_pairs, PAIRS, states={S: 16}, k=2)
SYSTEM = replace(
    exact,
    params=(
        *(replace(q, default=parallel_generator) if q.name == "Q" else q for q in exact.params),
        Param(s, invariant_law, Interval(0, oo), "s[x]: the law that Q keeps"),
    ),
    span=(0.0, 40.0),
    observables=exact.observables | {"TV_kept": distance(pi, s), "KL_kept": divergence(pi, s)},
    display={"TV_kept": distance(pi, s), "KL_kept": divergence(pi, s)},
    invariants=(
        Invariant("mass", over(Sum, pi[x], (x, S)), "constant"),
        Invariant("TV to s falls", distance(pi, s), "nonincreasing"),
        Invariant("KL to s falls", divergence(pi, s), "nonincreasing", when=positive(pi)),
    ),
)

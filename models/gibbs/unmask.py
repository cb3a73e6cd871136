"""Decoding in T steps without revision: tokens are shown block after block, those of a block drawn each by itself given all before.

pi is the law of the sequence as it is predicted: at step t the tokens drawn before stay, all others are drawn by themselves given those;
step[j] says when token j is drawn for good. What is missed falls with each step, KL(p | pi) = sum over blocks of the correlation of the
block given all before it. In the mean over blocks of sizes k_1..k_T that is sum_i sum_l eta(m_i) - eta(l), m_i <= l < m_(i+1) the tokens
shown: the left Riemann error of eta(m) = Hbar(m + 1) - Hbar(m), the entropy that one token more has in the mean. T = 1: the total
correlation; T = n: nothing is missed.

A step at which no token is drawn for good changes nothing. T is the last step of all tokens + 1 where `step` asks for more than two. After
step T decoding is done and pi stays; a run has ten steps by default, `--size T=20 --steps 20` has more.

Assumed: the law of each token given those shown is exact. For laws without order any blocks of these sizes miss as much.
"""

from typing import Any

import numpy as np
from sympy import Naturals0

from odesim.models.gibbs._decoding import T, decoder, entropy, falls, fill, n
from odesim.models.gibbs._kernels import length
from odesim.symbolic import ClosedForm, IndexedBase, Param, Source

step = IndexedBase("step", shape=(n,))


def in_order(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """step (n,): the first tokens first, in blocks as even as can be."""
    return np.arange(sizes["n"]) * sizes["T"] // sizes["n"]


def filling(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """K (T, S, S): step a draws all tokens that are not drawn before, given those. Raises ValueError unless S = q^n."""
    q = int(params["q"])
    if length(sizes["S"], q) != sizes["n"]:
        raise ValueError(f"n = {sizes['n']} tokens of {q} have S = {q ** sizes['n']} sequences, not {sizes['S']}")
    return np.array([fill(params["p"], q, np.flatnonzero(params["step"] < a)) for a in range(sizes["T"])])


def correlations(t: float, y: dict[str, Any], y0: dict[str, Any], params: dict[str, Any]) -> Any:
    """By how much KL(p | pi) after t steps is off the sum over blocks of their correlations given what is before, by entropies."""
    p, q, when = np.asarray(params["p"]), int(params["q"]), np.asarray(params["step"])
    missed, last = -entropy(p, q, range(len(when))), round(t) - 1
    if last < 0:
        return p @ np.log(y0["pi"] / y["pi"])
    for a in range(min(last, int(when.max())) + 1):
        before = np.flatnonzero(when < a)
        block = np.flatnonzero(when == a if a < last else when >= a)
        missed += sum(entropy(p, q, (*before, j)) - entropy(p, q, before) for j in block)
    return p @ np.log(p / y["pi"]) - missed


SYSTEM = decoder(
    "gibbs.unmask",
    Source("li2024promises", "talk: decoding in T steps", "nothing is revised; the error in closed form is ours"),
    filling,
    (Param(step, in_order, Naturals0, "step[j]: the step at which token j is drawn", indexes=T, cover=False),),
    (falls(),),
    (ClosedForm("correlations", "from every start, after the first step", correlations, "implicit"),),
    {n: 4},
)

"""Masked sampling where only the number m of ones matters: gibbs.master for tokens 0 and 1 that are alike, n + 1 states instead of 2^n.

pi[m] is the probability of m ones; every sequence with m ones has the weight exp(log_w[m]). dpi/dt = pi (P_k - 1), where P_k hides k of
the tokens, ones and zeros as they come, and draws how many of them are ones, given the rest. The default is the Curie-Weiss law of
coupling b: for b < 1 it relaxes in about n / (1 - b) redraws. For b > 1 it has two modes, and k tokens at once leave one sooner than one
by one, though after exponentially many redraws all the same. gibbs.lumped:MIXTURE mixes two laws of independent tokens.

Assumed: the target does not change when tokens change places, the law of masked tokens is exact, and they are drawn together.
"""

from functools import cache, partial
from typing import Any

import numpy as np
from sympy import Interval, KroneckerDelta, Naturals, Sum, Symbol, oo

from odesim.models.gibbs._kernels import log_binomial, lumped
from odesim.models.gibbs._laws import normalised
from odesim.models.gibbs._measures import distance, divergence, linear, positive
from odesim.symbolic import ClosedForm, IndexedBase, Invariant, Param, Source, System, index, over, sizes

m, l = index("m l")
(n,) = sizes("n")
pi, p, Q, log_w = (
    IndexedBase("pi", shape=(n + 1,)),
    IndexedBase("p", shape=(n + 1,)),
    IndexedBase("Q", shape=(n + 1, n + 1)),
    IndexedBase("log_w", shape=(n + 1,)),
)


def curie_weiss(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """log_w (n+1,): (b/n) sum_(i<j) x_i x_j of signs, m of them 1."""
    n = sizes["n"]
    return np.asarray(params["b"] / n * ((2 * np.arange(n + 1) - n) ** 2 - n) / 2)


def mixture(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """log_w (n+1,) of half a law of tokens that are 1 with probability 1/2 + delta, half one with 1/2 - delta."""
    ones, up, down = np.arange(sizes["n"] + 1), np.log(0.5 + params["delta"]), np.log(0.5 - params["delta"])
    return np.asarray(np.logaddexp(ones * up + ones[::-1] * down, ones * down + ones[::-1] * up))


def target(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """p (n+1,): the probability of m ones."""
    return normalised(log_binomial(sizes["n"], np.arange(sizes["n"] + 1)) + params["log_w"])


def generator(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """Q (n+1, n+1) = P_k - 1."""
    return lumped(params["log_w"], int(params["k"])) - np.eye(sizes["n"] + 1)


def chain(name: str, law: Any, own: Param) -> System:
    """The chain for weights with a parameter of their own."""
    return System(
        name=name,
        source=Source("li2024promises", "the k-Gibbs sampler", "sequences put together by their number of ones"),
        axes={m: n + 1, l: n + 1},
        equations={pi[m]: over(Sum, pi[l] * Q[l, m], (l, n + 1))},
        params=(
            Param(Symbol("k"), 1, Naturals, "number of masked tokens, drawn together"),
            own,
            Param(log_w, law, Interval(-oo, oo), "log_w[m]: logarithm of the weight of a sequence with m ones"),
            Param(p, target, Interval.open(0, oo), "p[m]: target probability of m ones"),
            Param(Q, generator, Interval(-oo, oo), "Q[l, m]: rate of the step from l ones to m"),
        ),
        initial={pi[m]: KroneckerDelta(m, 0)},
        sizes={n: 16},
        span=(0.0, 1000.0),
        time="redraws",
        observables={"TV": distance(pi, p), "KL": divergence(pi, p), "mean": over(Sum, m * pi[m], (m, n + 1)) / n},
        display={"TV": distance(pi, p), "KL": divergence(pi, p)},
        invariants=(
            Invariant("mass", over(Sum, pi[m], (m, n + 1)), "constant"),
            Invariant("TV falls", distance(pi, p), "nonincreasing"),
            Invariant("KL falls", divergence(pi, p), "nonincreasing", when=positive(pi)),
        ),
        closed_forms=(ClosedForm("linear flow", "for every start", linear),),
    )


SYSTEM = chain(
    "gibbs.lumped", curie_weiss, Param(Symbol("b"), 1.5, Interval(-oo, oo), "coupling; all tokens interact, b / n for each pair")
)
HALVES = Param(Symbol("delta"), 0.3, Interval.Ropen(0, 0.5), "how far tokens are from even in each part")
VARIANTS = {"MIXTURE": cache(partial(chain, "gibbs.lumped.mixture", mixture, HALVES))}

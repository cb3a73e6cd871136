"""What the chains share: the law pi of a sequence at time t, which the generator Q of redraws moves to a target p."""

from collections.abc import Callable
from typing import Any

import numpy as np
from sympy import Interval, KroneckerDelta, Naturals, Sum, Symbol, oo

from odesim.models.gibbs._kernels import exact, length, sequences
from odesim.models.gibbs._measures import distance, divergence, linear, positive
from odesim.symbolic import ClosedForm, Constraint, IndexedBase, Invariant, Param, Source, System, index, over, sizes

Build = Callable[[dict[str, int], dict[str, Any]], np.ndarray]
x, y = index("x y")
(S,) = sizes("S")
pi, p, Q, f = IndexedBase("pi", shape=(S,)), IndexedBase("p", shape=(S,)), IndexedBase("Q", shape=(S, S)), IndexedBase("f", shape=(S,))


def exact_generator(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """Q (S, S) = P_k - 1."""
    return exact(params["p"], int(params["q"]), int(params["k"])) - np.eye(sizes["S"])


def share_of_ones(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """f (S,): the share of the tokens of a sequence that are not 0."""
    q = int(params["q"])
    return (sequences(sizes["S"], q) > 0).mean(axis=1) if length(sizes["S"], q) else np.zeros(1)


def tokens(q: int = 2, k: int = 1) -> tuple[Param, ...]:
    """The parameters q and k."""
    return (
        Param(Symbol("q"), q, Naturals, "number of tokens, 0..q - 1"),
        Param(Symbol("k"), k, Naturals, "number of masked tokens, drawn together"),
    )


TARGET = "p[x]: target probability of sequence x, in lexicographic order"


def chain(name: str, where: str, law: Build, own: tuple[Param, ...], *, states: dict[Any, int], k: int = 1) -> System:
    """The master equation of exact redraws, for a law of sequences with parameters of its own."""
    return System(
        name=name,
        source=Source("li2024promises", where, "one redraw of k tokens per unit of time"),
        axes={x: S, y: S},
        equations={pi[x]: over(Sum, pi[y] * Q[y, x], (y, S))},
        params=(
            *tokens(k=k),
            *own,
            Param(p, law, Interval.open(0, oo), TARGET),
            Param(Q, exact_generator, Interval(-oo, oo), "Q[y, x]: rate of the step from sequence y to x"),
            Param(f, share_of_ones, Interval(-oo, oo), "f[x]: a number of a sequence, whose mean is followed"),
        ),
        initial={pi[x]: KroneckerDelta(x, 0)},
        sizes=states,
        span=(0.0, 400.0),
        time="redraws",
        observables={"TV": distance(pi, p), "KL": divergence(pi, p), "mean": over(Sum, f[x] * pi[x], (x, S))},
        display={"TV": distance(pi, p), "KL": divergence(pi, p)},
        constraints=(Constraint("p sums to 1", over(Sum, p[x], (x, S)) - 1, "==0", 1e-9),),
        invariants=(
            Invariant("mass", over(Sum, pi[x], (x, S)), "constant"),
            Invariant("TV falls", distance(pi, p), "nonincreasing"),
            Invariant("KL falls", divergence(pi, p), "nonincreasing", when=positive(pi)),
        ),
        closed_forms=(ClosedForm("linear flow", "for every start", linear),),
    )

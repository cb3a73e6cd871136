"""What the decoders share: the law pi of a sequence after t of T steps, each with a kernel of its own."""

from collections.abc import Callable, Iterable
from itertools import combinations
from typing import Any

import numpy as np
from sympy import Eq, Interval, Naturals, Piecewise, Sum, Symbol, oo

from odesim.models.gibbs._chain import TARGET, S, p, pi, x, y
from odesim.models.gibbs._kernels import length
from odesim.models.gibbs._laws import equal_pairs
from odesim.models.gibbs._measures import distance, divergence, positive
from odesim.models.gibbs.master import PAIRS
from odesim.symbolic import ClosedForm, Constraint, IndexedBase, Invariant, Map, Param, Source, System, index, over, sizes, time

a = index("a")[0]
n, T = sizes("n T")
K = IndexedBase("K", shape=(T, S, S))


def shape_of(p: np.ndarray, q: int) -> tuple[int, ...]:
    """(q, ..., q): the axes of a law of sequences, one a token."""
    return (q,) * length(len(p), q)


def given(p: np.ndarray, q: int, shown: Iterable[int]) -> np.ndarray:
    """(S,): the product of the laws of all tokens that are not shown, each given those shown, at the tokens of the sequence itself."""
    shape, shown = shape_of(p, q), frozenset(shown)
    table, places = p.reshape(shape), range(len(shape))
    product, context = np.ones(shape), table.sum(axis=tuple(set(places) - shown), keepdims=True)
    for j in set(places) - shown:
        product = product * table.sum(axis=tuple(set(places) - shown - {j}), keepdims=True) / context
    return np.broadcast_to(product, shape).ravel()


def fill(p: np.ndarray, q: int, shown: Iterable[int]) -> np.ndarray:
    """The kernel (S, S) that keeps the tokens shown and draws each other one by itself, from its law given those."""
    shown = tuple(shown)
    tokens = np.indices(shape_of(p, q)).reshape(-1, len(p))[list(shown)]
    same = (tokens[:, :, None] == tokens[:, None]).all(axis=0)
    return np.asarray(same * given(p, q, shown))


def synchronous(p: np.ndarray, q: int) -> np.ndarray:
    """The kernel (S, S) that draws all tokens at once, each from its law given all others as they were."""
    shape = shape_of(p, q)
    tokens, kernel = np.indices(shape).reshape(-1, len(p)), np.ones((len(p), len(p)))
    table = p.reshape(shape)
    for j in range(len(shape)):
        own = np.moveaxis(table / table.sum(axis=j, keepdims=True), j, -1)
        others = np.moveaxis(np.broadcast_to(own[..., None, :], (*own.shape[:-1], q, q)), -2, j)  # whatever token j was
        kernel *= others.reshape(len(p), q)[:, tokens[j]]
    return kernel


def entropy(p: np.ndarray, q: int, shown: Iterable[int]) -> float:
    """H of the tokens shown."""
    shape, shown = shape_of(p, q), frozenset(shown)
    law = p.reshape(shape).sum(axis=tuple(set(range(len(shape))) - shown)).ravel()
    return float(-(law[law > 0] @ np.log(law[law > 0])))


def mean_entropies(p: np.ndarray, q: int) -> np.ndarray:
    """Hbar (n + 1,): the mean entropy of m tokens."""
    n = length(len(p), q)
    return np.array([np.mean([entropy(p, q, chosen) for chosen in combinations(range(n), m)]) for m in range(n + 1)])


def missed(p: np.ndarray, q: int, block: Iterable[int]) -> float:
    """E KL(p | law) in the mean over ordered blocks of these sizes: the left Riemann error of eta(m) = Hbar(m + 1) - Hbar(m)."""
    eta, first, error = np.diff(mean_entropies(p, q)), 0, 0.0
    for size in block:
        error += float(size * eta[first] - eta[first : first + size].sum())
        first += size
    return error


def decoder(
    name: str, source: Source, kernels: Callable[..., Any], own: tuple[Param, ...], laws: tuple[Invariant, ...] = (),
    forms: tuple[ClosedForm, ...] = (), states: dict[Any, int] | None = None,
) -> System:  # fmt: skip
    """The Map pi <- pi K_t, t < T, from the uniform law; kernels makes K of sizes and parameters, own."""
    step = over(Sum, over(Sum, Piecewise((pi[y] * K[a, y, x], Eq(time, a)), (0, True)), (y, S)), (a, T))
    return Map(
        name=name,
        source=source,
        axes={x: S, y: S, a: T},
        updates={pi[x]: Piecewise((step, time < T), (pi[x], True))},
        params=(
            Param(Symbol("q"), 2, Naturals, "number of tokens, 0..q - 1"),
            *PAIRS,
            Param(p, equal_pairs, Interval.open(0, oo), TARGET),
            *own,
            Param(K, kernels, Interval(0, oo), "K[a, y, x]: chance that step a goes from sequence y to x"),
        ),
        initial={pi[x]: 1 / S},
        sizes={S: 16, T: 2} | (states or {}),
        steps=10,  # all of unmask for ten signs, more than arrays (T, S, S) are for; after step T pi stays
        time="steps of the decoder",
        observables={"TV": distance(pi, p), "KL_missed": divergence(p, pi)},
        display={"TV": distance(pi, p), "KL_missed": divergence(p, pi)},
        constraints=(Constraint("p sums to 1", over(Sum, p[x], (x, S)) - 1, "==0", 1e-9),),
        invariants=(Invariant("mass", over(Sum, pi[x], (x, S)), "constant"), *laws),
        closed_forms=forms,
    )


def falls() -> Invariant:
    """The law that KL(p | pi) falls."""
    return Invariant("KL_missed falls", divergence(p, pi), "nonincreasing", when=positive(pi))

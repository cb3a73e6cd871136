"""One head whose query is always the same, with all its weights: what the models of patterns have by symmetry, in claims beside them."""

from typing import Any

import numpy as np
from sympy import Interval, Sum, oo

from odesim.symbolic import IndexedBase, Param, Source, System, gradient_flow, index, logsumexp, over, sizes, softmax

s, l, k, j = index("s l k j")
S, V, K = sizes("S V K")
Z, W = IndexedBase("Z", shape=(V,)), IndexedBase("W", shape=(V, K))
X, y, p = IndexedBase("X", shape=(S, V)), IndexedBase("y", shape=(S, K)), IndexedBase("p", shape=(S,))


def output(s: Any, k: Any) -> Any:
    """The logit of label k in context s."""
    return over(Sum, softmax(Z[l], (l, V), weight=X[s, l]) * W[l, k], (l, V))


loss = over(Sum, p[s] * (logsumexp(output(s, j), (j, K)) - over(Sum, y[s, k] * output(s, k), (k, K))), (s, S))

HEAD = System(
    name="patterns.head",
    source=Source("elhage2021mathematical", "one layer of attention", "one head, one query, all contexts"),
    axes={s: S, l: V, k: K, j: K},
    equations=gradient_flow(loss, {Z[l]: 1, W[l, k]: 1}),
    params=(
        Param(X, 1.0, Interval(0, oo), "how often each token is in a context"),
        Param(y, 0.5, Interval(0, 1), "probability of each label in a context"),
        Param(p, 1.0, Interval(0, 1), "probability of a context"),
    ),
    initial={Z[l]: 0, W[l, k]: 0},
    sizes={S: 1, V: 2, K: 2},
    span=(0.0, 100.0),
    time="steps times learning rate",
    observables={"loss": loss},
)


def keys_in_noise(K: int, N: int, n: int) -> dict[str, Any]:
    """X, y, p of all contexts of a key and n of N noise tokens; sequences with the same counts are counted one by one."""
    noise = np.indices((N,) * n).reshape(n, -1).T
    counts = (noise[:, :, None] == np.arange(N)).sum(axis=1)
    rows = [np.r_[np.eye(K)[key], row] for key in range(K) for row in counts]
    return {"X": rows, "y": np.repeat(np.eye(K), len(counts), axis=0), "p": np.full(len(rows), 1 / len(rows))}


def tokens_of_topics(T: int, rho: tuple[float, float]) -> dict[str, Any]:
    """X, y, p of T tokens of two topics: of topic k each shows k with chance (1 + rho[k])/2, else the other."""
    from scipy.stats import binom

    c = np.arange(T + 1)
    X = np.array([c, T - c], dtype=float).T
    shown = binom.pmf(c, T, (1 + rho[0]) / 2), binom.pmf(T - c, T, (1 + rho[1]) / 2)
    return {"X": np.tile(X, (2, 1)), "y": np.repeat(np.eye(2), T + 1, axis=0), "p": np.concatenate(shown) / 2}

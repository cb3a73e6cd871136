"""Small systems, each with one thing that lowering must get right, and numbers for them. No two sizes are equal."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sympy import Eq, Interval, KroneckerDelta, Max, Piecewise, S, Sum, exp, log, oo, sqrt, symbols, tanh

from odesim.symbolic import Event, IndexedBase, MaxOver, Param, Source, System, index, logsumexp, over, sizes, softmax, time

REAL = Interval(-oo, oo)
SOURCE = Source("none", "made for the tests")
M, K, Q, L = sizes("M K Q L")
m, k, l, q, j = index("m k l q j")


def vector(name: str, n: Any = M) -> IndexedBase:
    return IndexedBase(name, shape=(n,))


def param(base: Any, domain: Any = REAL, **more: Any) -> Param:
    return Param(base, 1.0, domain, "a number", **more)


v, u, mu, a, P = vector("v"), vector("u"), vector("mu"), vector("a"), vector("P")
V, D, X = (IndexedBase(n, shape=s) for n, s in (("V", (M, K)), ("D", (M, K)), ("X", (K, M))))
Z, w = IndexedBase("Z", shape=(Q, M)), vector("w", K)
psi, phi = vector("psi", K), vector("phi")
b, c, T = symbols("b c T", real=True)


def w_(i: Any) -> Any:
    """An unnormalised weight."""
    return P[i] * exp(v[i])


def one_or(e: Any) -> Any:
    """A weight: 1 of the first entry, the positive part of e of the others."""
    return Piecewise((1, Eq(m, 0)), (Max(e, 0), True))


SYSTEMS = {
    s.name: s
    for s in (
        System(
            name="elementwise", source=SOURCE, axes={m: M}, equations={v[m]: (mu[m] - v[m]) * exp(v[m] ** 2 / 2) * (1 + m) / M},
            params=(param(mu),), initial={v[m]: 0.05}, events=(Event("half", v[m] - mu[m] / 2, 1),),
        ),
        System(
            name="two_of_one", source=SOURCE, axes={m: M},
            equations={v[m]: -T * (exp(v[m]) + 1) ** 2, u[m]: -u[m] * (exp(v[m]) + 1) ** 2},
            params=(param(T),), initial={v[m]: 0.5, u[m]: 1.0},
        ),
        System(
            name="softmax", source=SOURCE, axes={m: M}, equations={v[m]: (mu[m] - v[m]) * softmax(v[m] ** 2 / T, (m, M))},
            params=(param(mu), param(T)), initial={v[m]: 0.05},
        ),
        System(
            name="mean_field", source=SOURCE, axes={m: M},
            equations={v[m]: a[m] - M * w_(m) * over(Sum, a[m] * w_(m), (m, M)) / over(Sum, w_(k), (k, M)) ** 2},
            params=(param(a), param(P)), initial={v[m]: 0.0},
        ),
        System(
            name="scaled", source=SOURCE, axes={m: M},
            equations={v[m]: b * a[m] - K * T * w_(m) * v[m] * over(Sum, w_(k) * v[k], (k, M)) / M},
            params=(param(b), param(a), param(w), param(T), param(P)), initial={v[m]: 0.1},
        ),
        System(
            name="shuffled", source=SOURCE, axes={m: M}, equations={v[m]: a[phi[m]] - w_(m) * v[m] * over(Sum, w_(k) * v[k], (k, M))},
            params=(param(a), param(P), Param(phi, 0, S.Naturals0, "place in a", indexes=M)), initial={v[m]: 0.1},
        ),
        System(
            name="rows", source=SOURCE, axes={m: M, k: K},
            equations={V[m, k]: D[m, k] * exp(over(Sum, V[m, j] ** 2, (j, K)) / 2) + tanh(over(Sum, V[l, k] * a[l], (l, M)))},
            params=(param(D), param(a)), initial={V[m, k]: 0.1 * (m + 1) - 0.01 * k},
        ),
        System(
            name="products", source=SOURCE, axes={m: M, k: K, l: K},
            equations={V[m, k]: over(Sum, X[l, m] * over(Sum, V[j, l] * D[j, k], (j, M)), (l, K)) - V[m, k] ** 3},
            params=(param(D), param(X)), initial={V[m, k]: 0.1},
        ),
        System(
            name="gathered", source=SOURCE, axes={k: K, q: Q, m: M},
            equations={
                Z[q, m]: b * over(Sum, KroneckerDelta(q, psi[k]) * w[k] * (X[k, m] - softmax(Z[psi[k], m], (m, M), X[k, m] ** 2)), (k, K)),
                w[k]: logsumexp(Z[psi[k], m], (m, M)) - w[k],
            },
            params=(param(X), param(b), Param(psi, 0, S.Naturals0, "row of Z", indexes=Q)), initial={Z[q, m]: 0, w[k]: 1},
        ),
        System(
            name="numbers", source=SOURCE, axes={m: L - 1},
            equations={
                b: -b * c + over(Sum, vector("u", L - 1)[m], (m, L - 1)) + time,
                c: sqrt(1 + b**2) - log(2 + tanh(c)),
                vector("u", L - 1)[m]: Piecewise((b, Eq(m, 0)), (c * T ** (2 * m), True)) - vector("u", L - 1)[m],
            },
            params=(param(T),), initial={b: 0.5, c: 0.25, vector("u", L - 1)[m]: m},
        ),
        System(
            name="neighbours", source=SOURCE, axes={m: M, k: K}, boundary={m: "periodic", k: "edge", l: "zero"},
            equations={
                v[m]: (v[m + 1] - v[m - 2]) * v[m - 1] - v[m] + over(Sum, X[l + 1, m - 1] * tanh(w[l - 1]), (l, K)),
                V[m, k]: b * (V[m, k + 1] - 2 * V[m, k] + V[m + 1, k - 2]) - V[m, k] * over(Sum, v[j] * v[m] * V[j, k + 1] ** 2, (j, M)),
            },
            params=(param(b), param(w), param(X)), initial={v[m]: 0.1 + 0.2 * m, V[m, k]: 0.2 - 0.1 * k},
        ),
        System(
            name="causal", source=SOURCE, axes={m: M, k: K}, 
            equations={
                v[m]: over(Sum, softmax(a[m] * v[j], (j, m + 1)) * u[j], (j, m + 1)) - v[m] * Sum(exp(u[j]) * V[j, 0], (j, m + 1, M - 1)),
                u[m]: a[m] * Sum(tanh(v[j]) * u[j], (j, 0, m - 1)) - u[m],
                V[m, k]: Sum(v[j] * V[j, k], (j, m, M - 1)) / (m + 1) + b * Sum(V[m, l] * D[m, k], (l, 0, k - 2)) - V[m, k] ** 3,
            },
            params=(param(a), param(b), param(D)), initial={v[m]: 0.1 + 0.2 * m, u[m]: 0.3, V[m, k]: 0.2 - 0.1 * k},
        ),
        System(
            # what is left out is larger by 900, by a mask, by weights that are 0, and by weights that a state makes 0
            name="masked", source=SOURCE, axes={m: M},
            equations={
                v[m]: softmax(T * v[m] + 900 * m, (m, M), weight=Piecewise((a[m], m < 2), (0, True))) - v[m],
                u[m]: a[m] * logsumexp(v[m] + Piecewise((0, Eq(m, 0) | (P[m] > 0.7)), (900 + m, True)), (m, M), weight=one_or(P[m] - 0.7))
                - softmax(v[m], (m, M), weight=one_or(u[m])) * u[m],
            },
            params=(param(a), param(P), param(T)), initial={v[m]: 0.1, u[m]: 0.2},
        ),
        System(
            name="largest", source=SOURCE, axes={m: M, k: K},
            equations={
                v[m]: over(MaxOver, a[j] * v[j], (j, M)) * a[m] - v[m] + over(MaxOver, V[m, l] * v[m] - b * l, (l, K)),
                V[m, k]: over(MaxOver, D[j, l] * V[j, l], (j, M), (l, K)) - V[m, k],
            },
            params=(param(a), param(b), param(D)), initial={v[m]: 0.1, V[m, k]: 0.2},
        ),
    )
}  # fmt: skip


@dataclass(frozen=True)
class Numbers:
    """sizes, parameters and states for a System, drawn from a seed."""

    sizes: dict[str, int]
    params: dict[str, Any]
    states: dict[str, np.ndarray]

    @property
    def env(self) -> dict[str, Any]:
        return {**self.sizes, **self.params, **self.states, "t": 0.3}


def numbers(system: System, *, big: int = 7, seed: int = 0) -> Numbers:
    """Moderate random numbers; big is M."""
    from odesim.targets.compiled import extents

    rng = np.random.default_rng(seed)
    chosen = {n: {"M": big, "K": 3, "Q": 2, "L": 5}[n] for n in system.size_names}
    params: dict[str, Any] = {}
    for p in system.params:
        shape = extents(p.shape, chosen)
        params[p.name] = (
            np.arange(shape[0]) % 2 if p.indexes is not None else rng.uniform(0.3, 1.2, shape) if shape else rng.uniform(0.5, 1.5)
        )
    states = {n: rng.normal(0, 0.5, extents(shape, chosen)) for n, shape in system.shapes.items()}
    return Numbers(chosen, params, states)

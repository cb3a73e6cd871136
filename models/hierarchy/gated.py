"""Layers of hierarchy.grouped one above the other: each attends to latents of its height, as well as the layer below tells them apart.

Layer s groups its tokens, latents of height s - 1, by the height H = s..L-1 of the ancestor they share with the query; component h of vs
holds H = h + s. Weights rest at mu = kappa r^2 P: P is the exact probability of co-occurrence at that height, r the correlation of what
the layer below produces with its latents, 1 below the first. What a layer produces is the sum of its tokens, weighted by v exp(v^2/2), and
of the query itself: its own correlation r_s follows from the covariance of the tree. Attention to one token is noisy and to far ones
unspecific, so that r_s falls while attention is sparse, and recovers as it spreads. hierarchy.gated:TWO and FOUR have other depths.

Assumed: a mean-field closure, not an exact reduction: activations are their latents and independent noise, with mean 0.
"""

from functools import cache, partial
from typing import Any

import numpy as np
from sympy import Expr, Integer, Interval, Sum, Symbol, exp, oo, sqrt

from odesim.models.hierarchy.grouped import separated
from odesim.symbolic import ClosedForm, Constraint, IndexedBase, Invariant, Param, Source, System, index, over, sizes, softmax

(g,) = index("g")
(L,) = sizes("L")
N, rho, rho0, kappa = Symbol("N", positive=True), Symbol("rho", positive=True), Symbol("rho0", real=True), Symbol("kappa", real=True)


def first_layer(t: float, y: dict[str, Any], y0: dict[str, Any], params: dict[str, Any]) -> np.ndarray:
    """The distance (L-1,) of v1 from its value by separation of variables: the first layer is hierarchy.grouped."""
    return separated(t, {"v": y["v1"]}, {"v": y0["v1"]}, params)


def occurrence(s: int, h: Any) -> Expr:
    """P of height H = h + s in layer s."""
    return 1 - (1 - rho ** (2 * (h + 1))) / (2 * (1 - rho ** (L - s) * rho0))


def quality(v: IndexedBase, s: int, r: Expr, h: Any) -> Expr:
    """The correlation of what layer s produces with the latents above, from that of its tokens, r."""
    groups = (h, L - s)

    def count(k: Any) -> Expr:
        return (N - 1) * N**k

    def w(k: Any) -> Expr:
        return v[k] * exp(v[k] ** 2 / 2)

    def c(k: Any) -> Expr:
        return r**2 * rho ** (2 * (k + 1))

    nearer = over(Sum, count(g) * w(g), (g, h))
    within = over(Sum, count(g) * c(g), (g, h)) + (N - 2) * N**h * c(h)
    variance = 1 + over(Sum, count(h) * (w(h) ** 2 * (1 + within) + 2 * w(h) * c(h) * (1 + nearer)), groups)
    return r * (rho + over(Sum, count(h) * w(h) * rho ** (2 * h + 1), groups)) / sqrt(variance)


def gated(name: str, S: int) -> System:
    """The model with S layers."""
    v = [IndexedBase(f"v{s}", shape=(L - s,)) for s in range(1, S + 1)]
    r, equations = [Integer(1)], {}
    named: dict[str, Expr] = {}
    axes = {index(f"h{s}")[0]: L - s for s in range(1, S + 1)}
    for s, h in enumerate(axes, 1):
        state, resting = v[s - 1], kappa * r[-1] ** 2 * occurrence(s, h)
        mass = softmax(state[h] ** 2 / 2, (h, L - s), weight=N**h)
        equations[state[h]] = (resting - state[h]) * mass / ((N - 1) * N**h)
        r.append(quality(state, s, r[-1], h))
        named |= {f"mu{s}": resting, f"mass{s}": mass, f"r{s}": r[-1]}
    (h, *_) = axes
    return System(
        name=name,
        source=Source("tian2023joma", "Section 5", "layers of Theorems 4 and 5, with correlations between them"),
        axes=axes,
        equations=equations,
        params=(
            Param(N, 2.0, Interval(2, oo), "number of children of a node"),
            Param(rho, 0.95, Interval.Lopen(0, 1), "correlation of a node with its parent"),
            Param(rho0, 0.95, Interval.Ropen(-1, 1), "mean polarity 2 P[y = 0] - 1 of the root's children"),
            Param(kappa, 3.0, Interval(-oo, oo), "resting weight of a token that always occurs with the query"),
        ),
        initial={state[k]: 0.05 for state, k in zip(v, axes, strict=True)},
        sizes={L: S + 1},
        span=(0.0, 60.0),
        time="time of gradient flow",
        observables={f"r{s}": r[s] for s in range(1, S + 1)},
        display=named,
        constraints=(Constraint(f"L is at least {S + 1}", L - S - 1, ">=0"),),
        invariants=(Invariant("approach", (kappa * occurrence(1, h) - v[0][h]) ** 2, "nonincreasing"),),
        closed_forms=(ClosedForm("separation of variables", "the first layer, for every start", first_layer, "implicit"),),
    )


SYSTEM = gated("hierarchy.gated", 3)
VARIANTS = {name: cache(partial(gated, f"hierarchy.gated.{name.lower()}", S)) for name, S in (("TWO", 2), ("FOUR", 4))}

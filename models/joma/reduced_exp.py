"""MLP and exp attention of one layer, trained together on a loss, with the attention eliminated: joma.joint_exp with fewer states.

Theorem 1 makes the logits of one query a function of the weights, z[l] = z0[l] + (eta_z / eta_w) / (2 T) sum_k V[l, k]^2: exactly, for
every data set, activation and upper layer. V (Mc, K) holds the weights of K nodes over contextual tokens, Xi (K,) that of the query.

Assumed: one query, orthonormal embeddings. z0 are the logits where V = 0: for another start the logits less their part of the weights.
"""

from typing import Any

from sympy import Indexed, Interval, Naturals0, Sum, exp, oo

from odesim.models.joma._joint import A, C, K, Mc, N, T, V, X, a, bumps, classes, eta_w, eta_z, even, k, l, n, pi, upper, y
from odesim.symbolic import Constraint, IndexedBase, Invariant, Param, Source, System, at, entropy, gradient_flow, logsumexp, over, softmax

Xi, Z, z0 = IndexedBase("Xi", shape=(K,)), IndexedBase("Z", shape=(Mc,)), IndexedBase("z0", shape=(Mc,))
z = z0[l] + eta_z / eta_w / (2 * T) * over(Sum, V[l, k] ** 2, (k, K))


def theorem_1(e: Any) -> Any:
    """e with the logits Z as what Theorem 1 makes of the weights."""
    return e.replace(lambda x: isinstance(x, Indexed) and x.base == Z, lambda x: at(z, {l: x.indices[0]}))


b = X[n, l] * exp(Z[l] / T)
u = over(Sum, b * V[l, k], (l, Mc)) + Xi[k]
score, own = over(Sum, A[a, k] * u, (k, K)), over(Sum, A[y[n], k] * u, (k, K))
loss = over(Sum, pi[n] * (logsumexp(score, (a, C)) - own), (n, N))
share = b / over(Sum, b, (l, Mc))

SYSTEM = System(
    name="joma.reduced_exp",
    source=Source("tian2023joma", "Theorem 1", "exp attention, logits eliminated; one query, orthonormal embeddings"),
    axes={n: N, l: Mc, k: K, a: C},
    equations={key: theorem_1(e) for key, e in gradient_flow(loss, {V[l, k]: eta_w, Xi[k]: eta_w}).items()},
    params=(
        Param(X, bumps, Interval(0, oo), "counts of the contextual tokens of a sample"),
        Param(pi, even, Interval(0, 1), "weight of a sample"),
        Param(A, upper, Interval(-oo, oo), "upper layer: from nodes to classes"),
        Param(y, classes, Naturals0, "class of a sample", indexes=C, cover=False),
        Param(z0, 0.0, Interval(-oo, oo), "attention logits where V = 0"),
        Param(T, 1.0, Interval.open(0, oo), "temperature of the attention"),
        Param(eta_w, 1.0, Interval.open(0, oo), "learning rate of V and Xi"),
        Param(eta_z, 1.0, Interval(0, oo), "learning rate of the logits"),
    ),
    initial={V[l, k]: 0.0, Xi[k]: 0.0},
    sizes={Mc: 6, K: 4, N: 4, C: 4},
    span=(0.0, 20.0),
    time="steps times learning rate",
    observables={"loss": theorem_1(loss), "z": z, "entropy": over(Sum, pi[n] * theorem_1(entropy(share, (l, Mc))), (n, N))},
    display={"z": z, "b": theorem_1(b), "u": theorem_1(u), "p": theorem_1(softmax(score, (a, C)))},
    constraints=(Constraint("pi sums to 1", over(Sum, pi[n], (n, N)) - 1, "==0", 1e-9),),
    invariants=(Invariant("loss falls", theorem_1(loss), "nonincreasing"),),
)

"""Masked training of one attention layer on documents of tau of T topics, by gradient flow: first values are learned, then attention.

W_V are values, the logit of key l for query w is sum_a W_K[a, l] W_Q[a, w] / sqrt(d_a), d_a = 1 in the paper; token 0 is the mask.
Documents s are infinitely long, all equally likely. A masked word is shown as itself (p_c), as any word (p_r) or as the mask; the loss
is squared.
"""

from sympy import Interval, Sum, Symbol, cos, oo, sqrt

from odesim.models.topics._documents import PARAMS, B, N, P, P_shown, d
from odesim.symbolic import IndexedBase, Invariant, Lines, Matrix, Param, Source, System, gradient_flow, index, over, softmax

i, j, a, s, l, w, x = index("i j a s l w x")
W_V, W_K, W_Q = weights = [IndexedBase(name, shape=(d, d)) for name in ("W_V", "W_K", "W_Q")]
eps, d_a = Symbol("eps", nonnegative=True), Symbol("d_a", positive=True)
attention = softmax(over(Sum, W_K[a, l] * W_Q[a, w], (a, d)) / sqrt(d_a), (l, d), weight=P_shown[s, l])
output = over(Sum, W_V[x, l] * attention, (l, d))
target = over(Sum, B[w, x] * P[s, x], (x, d))
loss = 1 + over(Sum, target * over(Sum, output**2, (x, d)) - 2 * over(Sum, B[w, x] * P[s, x] * output, (x, d)), (s, N), (w, d)) / N
balance = over(Sum, W_K[i, a] * W_K[j, a] - W_Q[i, a] * W_Q[j, a], (a, d))
SYSTEM = System(
    name="topics.full",
    source=Source("li2023topic", "Sections 3 and 4", "one-hot embeddings"),
    axes={**dict.fromkeys((i, j, l, w, x), d), s: N},
    equations=gradient_flow(loss, {W[i, j]: 1 for W in weights}),
    params=(
        *PARAMS,
        Param(d_a, 1.0, Interval.open(0, oo), "logits are divided by its square root"),
        Param(eps, 1e-3, Interval(0, oo), "size of W_K and W_Q at the start"),
    ),
    initial={W_V[i, j]: 0, W_K[i, j]: eps * cos(3 * i + 5 * j + 1), W_Q[i, j]: eps * cos(5 * i + 3 * j + 2)},
    sizes={d: 13, N: 6},
    span=(0.0, 2500.0),
    time="time of gradient flow",
    observables={"loss": loss, **{f"norm_{W.label}": sqrt(over(Sum, W[i, j] ** 2, (i, d), (j, d))) for W in weights}},
    views=(Lines("loss"), Matrix("W_V"), Matrix("W_K")),
    invariants=(Invariant("balance", balance, "constant"), Invariant("loss falls", loss, "nonincreasing")),
    display={"attention": attention, "output": output, "loss": loss},
)

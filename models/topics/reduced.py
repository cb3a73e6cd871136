"""topics.full on its symmetric starts, in 16 numbers: alike words and alike topics stay alike.

W_V = a_w P_w + a_t P_t + 1 (r_w 1^T + r_m e_0^T), W_K = k_w P_w + k_t P_t + U K2 U^T, W_Q = q_w P_w + q_t P_t + U Q2 U^T: P_t are the
contrasts of topics (rank T - 1), P_w those within topics (rank T (v - 1)), 1 the unit vector of all words, U = [e_0, 1] with the mask e_0.
First a_t and r learn the topics of a document under uniform attention, then k_t q_t lets words attend to their own topic, last a_w and
k_w q_w copy the word that is shown. The metric has the ranks of the projectors.

Assumed: a symmetric start; T topics of v words, tau of them in a document, words shown as in topics.full.
"""

from typing import Any

from sympy import Interval, Naturals, Sum, Symbol, exp, oo, sqrt

from odesim.symbolic import Constraint, IndexedBase, Invariant, Param, Source, System, gradient_flow, index, named, over

i, j, a = index("i j a")
a_w, a_t, r_w, r_m, k_w, q_w, k_t, q_t = scalars = [
    Symbol(name, real=True) for name in ("a_w", "a_t", "r_w", "r_m", "k_w", "q_w", "k_t", "q_t")
]
K2, Q2 = IndexedBase("K2", shape=(2, 2)), IndexedBase("Q2", shape=(2, 2))
T, v, tau, d_a = (Symbol(name, positive=True) for name in ("T", "v", "tau", "d_a"))
p_m, p_c, p_r, eps = (Symbol(name, nonnegative=True) for name in ("p_m", "p_c", "p_r", "eps"))

n = T * v
kappa = named("kappa", 1 - (1 - p_c) * p_m)  # what is not hidden
m0 = named("m0", p_m * (1 - p_c - p_r))  # the mask
p2 = named("p2", p_m * p_r / n)  # a word of another topic
p1 = named("p1", kappa / (tau * v) + p2)  # a word of the document's topics


def logit(key: int, query: int) -> Any:
    """K2^T Q2 / sqrt(d_a): 0 the mask, 1 all words."""
    return (K2[0, key] * Q2[0, query] + K2[1, key] * Q2[1, query]) / sqrt(d_a)


topic, word = k_t * q_t / sqrt(d_a), k_w * q_w / sqrt(d_a)  # logits
alpha = named("alpha", exp((topic - word) / v))  # attention to other words of the topic
beta = named("beta", exp(word) * alpha)  # to the word itself
mean = named("mean", (beta + (v - 1) * alpha) / v)
mask = named("mask", m0 * exp(logit(0, 1) / sqrt(n) - logit(1, 1) / n + topic / n))  # of the mask, for a word
blank = named("blank", m0 * exp(logit(0, 0) - logit(1, 0) / sqrt(n)))  # of the mask, for the mask
z1 = named("z1", p1 * v * (mean + tau - 1) + p2 * v * (T - tau) + mask)  # a word of the document's topics is shown
z2 = named("z2", p2 * v * (mean + T - tau - 1) + p1 * v * tau + mask)  # one of another topic
z3 = named("z3", 1 - m0 + blank)  # the mask


def outputs(number: int, norm: Any, masked: Any, masses: dict[str, tuple[Any, Any]]) -> list[Any]:
    """The outputs at words, {name: (mass, mean mass of its topic)}, for attention of this norm with `masked` on the mask."""
    hidden = masked / norm
    rest = named(f"rest{number}", ((r_w - a_t) * (1 - hidden) + r_m * sqrt(n) * hidden) / n)
    return [named(name, (a_w * (x - middle) + a_t * middle) / norm + rest) for name, (x, middle) in masses.items()]


shown = {"own": (beta * p1, mean * p1), "same": (alpha * p1, mean * p1), "other": (p1, p1), "out": (p2, p2)}
wrong = {"own2": (beta * p2, mean * p2), "same2": (alpha * p2, mean * p2), "in2": (p1, p1), "out2": (p2, p2)}
own, same, other, out = outputs(1, z1, mask, shown)
own2, same2, in2, out2 = outputs(2, z2, mask, wrong)
in3, out3 = outputs(3, z3, blank, {"in3": (p1, p1), "out3": (p2, p2)})
b1 = named("b1", own**2 + (v - 1) * same**2 + (tau - 1) * v * other**2 + (T - tau) * v * out**2 + 1)
b2 = named("b2", own2**2 + (v - 1) * same2**2 + tau * v * in2**2 + (T - tau - 1) * v * out2**2 + 1)
b3 = named("b3", tau * v * in3**2 + (T - tau) * v * out3**2 + 1)
loss = (p_c + p_r / n) * (b1 - 2 * own) + p_r / T * (1 - 1 / v) * (b1 - 2 * same) + p_r * (tau - 1) / T * (b1 - 2 * other)
loss += p_r * (1 - tau / T) * (b2 - 2 * in2) + (1 - p_c - p_r) * (b3 - 2 * in3)

WORDS, TOPICS = T * (v - 1), T - 1  # ranks of the projectors
RATES = {a_w: 1 / WORDS, k_w: 1 / WORDS, q_w: 1 / WORDS, a_t: 1 / TOPICS, k_t: 1 / TOPICS, q_t: 1 / TOPICS, r_w: 1, r_m: 1}
balance = over(Sum, K2[i, a] * K2[j, a] - Q2[i, a] * Q2[j, a], (a, 2))

SYSTEM = System(
    name="topics.reduced",
    source=Source("li2023topic", "Sections 3 and 4", "symmetric starts"),
    axes={i: 2, j: 2, a: 2},
    equations=gradient_flow(loss, {**{s: RATES[s] for s in scalars}, K2[i, j]: 1, Q2[i, j]: 1}),
    params=(
        Param(T, 4, Naturals, "number of topics"),
        Param(v, 3, Naturals, "words of a topic"),
        Param(tau, 2, Naturals, "topics of a document"),
        Param(p_m, 0.15, Interval(0, 1), "probability that a word is masked"),
        Param(p_c, 0.3, Interval(0, 1), "probability that a masked word is shown itself"),
        Param(p_r, 0.1, Interval(0, 1), "probability that any word is shown in its place"),
        Param(d_a, 1.0, Interval.open(0, oo), "logits are divided by its square root"),
        Param(eps, 1e-2, Interval(0, oo), "all numbers at the start"),
    ),
    initial={**dict.fromkeys(scalars, eps), K2[i, j]: eps, Q2[i, j]: eps},
    span=(0.0, 10000.0),
    time="time of gradient flow",
    observables={"loss": loss, "alpha": alpha, "beta": beta},
    constraints=(
        Constraint("at least two topics", T - 2, ">=0"),
        Constraint("at least two words", v - 2, ">=0"),
        Constraint("a document has at most all topics", T - tau, ">=0"),
    ),
    invariants=(
        Invariant("loss falls", loss, "nonincreasing"),
        Invariant("balance within topics", k_w**2 - q_w**2, "constant"),
        Invariant("balance of topics", k_t**2 - q_t**2, "constant"),
        Invariant("balance of means", balance, "constant"),
    ),
)

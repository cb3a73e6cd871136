"""One layer of attention on binary Markov chains, its bias at the optimum: the start decides between bigram and unigram.

The logit of a 1 after x is e^2 (1 + 2 w |w|) x + b - e^2 / 2: an embedding e, one weight w of attention, a bias b. With the best b the
loss depends on s = e^2 (1 + 2 w |w|) alone, least at ln((1 - p)(1 - q) / (p q)), the bigram; s = 0 is the unigram. Gradient flow keeps
e^2 - w^2 - sign(w) ln |w| and the signs of e and w. The line e = 0 attracts where (1 + 2 w |w|)(1 - p - q) < 0: for p + q > 1 all small
starts; for p + q < 1 starts with w < -1/sqrt(2) and e^2 - w^2 + ln |w| < -(1 + ln 2) / 2.

in_context.markov_bias learns b too.
"""

from typing import Any

from sympy import Abs, Expr, Interval, Ne, Rational, asinh, cosh, exp, log, sign, sqrt, symbols

from odesim.symbolic import Event, Invariant, Param, Source, System, gradient_flow

# The loss of one layer of attention on binary Markov chains: P(0 -> 1) = p, P(1 -> 0) = q.

e, w = symbols("e w", real=True)
p, q = symbols("p q", positive=True)
pi1 = p / (p + q)
s = e**2 * (1 + 2 * w * Abs(w))


def softplus(x: Any) -> Expr:
    """ln(1 + e^x), whose slope, by tanh, overflows nowhere."""
    return x / 2 + log(2 * cosh(x / 2))


def loss_of(f0: Any, f1: Any) -> Expr:
    """The mean cross-entropy of logits f0 and f1 of a 1 after 0 and 1."""
    return (1 - pi1) * (softplus(f0) - p * f0) + pi1 * (softplus(f1) - (1 - q) * f1)


def middle(s: Any) -> Expr:
    """(f0 + f1) / 2 at the best bias, given f1 - f0 = s: the root of the quadratic equation for e^b, without cancellation."""
    return log(p / q) / 2 + asinh((p - q) / (2 * sqrt(p * q)) * exp(-s / 2))


def entropy(x: Any) -> Expr:
    """h(x) of a coin."""
    return -x * log(x) - (1 - x) * log(1 - x)


unigram = entropy(pi1)
bigram = (1 - pi1) * entropy(p) + pi1 * entropy(q)
"""The loss of the best prediction without the last token, and with it."""
PARAMS = (Param(p, 0.2, Interval.open(0, 1), "probability of 1 after 0"), Param(q, 0.3, Interval.open(0, 1), "probability of 0 after 1"))


loss = loss_of(middle(s) - s / 2, middle(s) + s / 2)

SYSTEM = System(
    name="in_context.markov",
    source=Source("makkuva2024local", "Abstract", "embedding and attention of a single layer, the bias at its optimum"),
    axes={},
    equations=gradient_flow(loss, {e: 1, w: 1}),
    params=PARAMS,
    initial={e: Rational(1, 10), w: Rational(1, 10)},
    span=(0.0, 200.0),
    time="steps times learning rate",
    observables={"loss": loss, "s": s},
    display={"s": s, "mid": middle(s)},
    invariants=(
        Invariant("energy", e**2 - w**2 - sign(w) * log(Abs(w)), "constant", when=Ne(w, 0)),
        Invariant("loss falls", loss, "nonincreasing"),
    ),
    events=(Event("half way", loss - (unigram + bigram) / 2, doc="the loss is half way from the unigram to the bigram"),),
)

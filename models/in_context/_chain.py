"""The loss of one layer of attention on binary Markov chains: P(0 -> 1) = p, P(1 -> 0) = q."""

from typing import Any

from sympy import Abs, Expr, Interval, asinh, cosh, exp, log, sqrt, symbols

from odesim.symbolic import Param

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

"""An induction head in three numbers: a finds the previous token, b the token that is asked for again, c copies what followed it.

A query repeats one of N different tokens of a vocabulary of V; the answer is the token after it. Layer 1 attends by position with
P = a (S - 1/N), S the shift by one; layer 2 by tokens with W_2 = b (1 - 1/V); the output is W_3 = c (1 - 1/V). First c grows, the loss
falls from ln V to ln N, and rests there: a and b are at a saddle point, each grows with the other. Then the loss falls at once, at a time
of order N^(3/2). a, b and c themselves are trained; in `induction.stages:MATRIX` the matrices are, whose directions have the squared norms
N - 1, V - 1 and V - 1: there the time is of order N^(5/2).

Assumed: attention only, one-hot embeddings, cyclic positions, gradient flow of the mean over all sequences from P, W_2, W_3 of this form.
"""

from functools import cache, partial
from typing import Any

from sympy import Integer, Interval, Rational, Symbol, exp, log, oo

from odesim.symbolic import Constraint, Event, Invariant, Param, Source, System, gradient_flow

a, b, c = (Symbol(name, real=True) for name in "abc")
N, V, eps = Symbol("N", positive=True), Symbol("V", positive=True), Symbol("eps", nonnegative=True)
s1 = 1 / (1 + (N - 1) * exp(-a))  # attention to the previous token
D = (1 - exp(-a)) * s1
s2 = 1 / (1 + (N - 1) * exp(-b * D))  # attention to the answer
loss = log(1 + (N - 1) * exp(c * ((1 - s2) / (N - 1) - s2)) + (V - N) * exp(-c * s2))


def stages(name: str, norms: tuple[Any, Any, Any], end: float = 1000.0) -> System:
    """The flow of a, b, c whose directions have these squared norms, to a time after the loss has fallen."""
    return System(
        name=name,
        source=Source("bietti2023birth", "Section 4", "attention only, one occurrence, by symmetry"),
        axes={},
        equations=gradient_flow(loss, {state: Integer(1) / norm for state, norm in zip((a, b, c), norms, strict=True)}),
        params=(
            Param(N, 32.0, Interval(2, oo), "number of tokens in a sequence"),
            Param(V, 64.0, Interval.open(2, oo), "number of tokens in the vocabulary"),
            Param(eps, 0.01, Interval(0, oo), "a, b and c at the start"),
        ),
        initial=dict.fromkeys((a, b, c), eps),
        span=(0.0, end),
        time="time of gradient flow",
        observables={"loss": loss, "s1": s1, "s2": s2},
        display={"s1": s1, "D": D, "s2": s2, "loss": loss},
        constraints=(Constraint("the vocabulary is larger than a sequence", V - N, ">=0"),),
        invariants=(
            Invariant("loss falls", loss, "nonincreasing"),
            Invariant("balance", norms[1] * b**2 / 2 - norms[0] * (exp(a) + (N - 2) * a + (N - 1) * exp(-a)) / N, "constant"),
        ),
        events=(Event("copied", s2 - Rational(1, 2), doc="half of the attention is on the answer"),),
    )


SYSTEM = stages("induction.stages", (1, 1, 1))
VARIANTS = {"MATRIX": cache(partial(stages, "induction.stages.matrix", (N - 1, V - 1, V - 1), 50_000.0))}

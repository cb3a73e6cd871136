"""One layer of attention on binary Markov chains with a bias that learns as well.

As in in_context.markov the logit of a 1 after x is e^2 (1 + 2 w |w|) x + b - e^2 / 2. While b lags behind its optimum,
e^2 - w^2 - sign(w) ln |w| changes; from small weights the flow ends where that with the best bias does.
"""

from sympy import Rational, S, Symbol

from odesim.models.in_context.markov import PARAMS, bigram, e, loss_of, s, unigram, w
from odesim.symbolic import Event, Invariant, Source, System, gradient_flow

b = Symbol("b", real=True)
loss = loss_of(b - e**2 / 2, b - e**2 / 2 + s)

SYSTEM = System(
    name="in_context.markov_bias",
    source=Source("makkuva2024local", "Abstract", "embedding, attention and bias of a single layer"),
    axes={},
    equations=gradient_flow(loss, {e: 1, w: 1, b: 1}),
    params=PARAMS,
    initial={e: Rational(1, 10), w: Rational(1, 10), b: S.Zero},
    span=(0.0, 200.0),
    time="steps times learning rate",
    observables={"loss": loss, "s": s},
    invariants=(Invariant("loss falls", loss, "nonincreasing"),),
    events=(Event("half way", loss - (unigram + bigram) / 2, doc="the loss is half way from the unigram to the bigram"),),
)

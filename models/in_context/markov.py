"""One layer of attention on binary Markov chains, its bias at the optimum: the start decides between bigram and unigram.

The logit of a 1 after x is e^2 (1 + 2 w |w|) x + b - e^2 / 2: an embedding e, one weight w of attention, a bias b. With the best b the
loss depends on s = e^2 (1 + 2 w |w|) alone, least at ln((1 - p)(1 - q) / (p q)), the bigram; s = 0 is the unigram. Gradient flow keeps
e^2 - w^2 - sign(w) ln |w| and the signs of e and w. The line e = 0 attracts where (1 + 2 w |w|)(1 - p - q) < 0: for p + q > 1 all small
starts; for p + q < 1 starts with w < -1/sqrt(2) and e^2 - w^2 + ln |w| < -(1 + ln 2) / 2.

in_context.markov_bias learns b too.
"""

from sympy import Abs, Ne, Rational, log, sign

from odesim.models.in_context._chain import PARAMS, bigram, e, loss_of, middle, s, unigram, w
from odesim.symbolic import Event, Invariant, Source, System, gradient_flow

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

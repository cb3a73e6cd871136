"""Adam on a quadratic loss, step by step: running means of the slope and of its square, corrected for their start at 0.

At a slope that does not change each weight moves by lr a step, exactly. In time lr t it is near optimisers.adam with
t1 = -lr / ln b1, t2 = -lr / ln b2, to first order in lr.
"""

from sympy import Interval, Max, oo, sqrt, symbols

from odesim.models.optimisers._quadratic import AXES, PARAMS, SYMMETRIC, at_one_rate, g, i, loss, n, w, w0
from odesim.symbolic import ClosedForm, IndexedBase, Map, Param, Source, time

m, v = IndexedBase("m", shape=(n,)), IndexedBase("v", shape=(n,))
lr, eps = symbols("lr eps", positive=True)
b1, b2 = symbols("b1 b2", nonnegative=True)
mean, square = b1 * m[i] + (1 - b1) * g, b2 * v[i] + (1 - b2) * g**2
# v is a mean of squares: Max is for states that no run is in
step = mean / (1 - b1 ** (time + 1)) / (sqrt(Max(square, 0) / (1 - b2 ** (time + 1))) + eps)

SYSTEM = Map(
    name="optimisers.adam_steps",
    source=Source("kingma2015adam", "Algorithm 1"),
    axes=AXES,
    updates={w[i]: w[i] - lr * step, m[i]: mean, v[i]: square},
    params=(
        *PARAMS,
        Param(lr, 0.01, Interval.open(0, oo), "learning rate"),
        Param(b1, 0.9, Interval.Ropen(0, 1), "memory of the mean of slopes"),
        Param(b2, 0.99, Interval.Ropen(0, 1), "memory of the mean of squares"),
        Param(eps, 1e-8, Interval.open(0, oo), "what is added to the root of the mean square"),
    ),
    constraints=SYMMETRIC,
    initial={w[i]: w0[i], m[i]: 0, v[i]: 0},
    sizes={n: 2},
    steps=200,
    observables={"loss": loss},
    display={"step": step},
    closed_forms=(ClosedForm("one rate", "H = 0", at_one_rate),),
)

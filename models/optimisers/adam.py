"""Adam in continuous time: means of the slope and of its square over times t1 and t2, with the corrections of their start.

Time is steps times learning rate lr, b1 = e^(-lr/t1), b2 = e^(-lr/t2); m and v are divided by 1 - e^(-t/t1) and 1 - e^(-t/t2). Both are 0
at the start, where the quotient is that of the first step: t counts from `first` on, the length of that step. The equation without a first
step is the limit first -> 0, from which w differs by the order of `first`: w(2) of the defaults by 1.4 %. Adam itself is
optimisers.adam_steps, which differs from this by the order of lr. As t1 and t2 go to 0 it is optimisers.sign.

A slope that does not change moves each weight at the rate 1, with corrections from the first step on; without them at
sqrt(t t2) / t1 in their place, which is small.
"""

from sympy import Interval, Max, exp, oo, sqrt, symbols

from odesim.models.optimisers._quadratic import AXES, PARAMS, SYMMETRIC, at_one_rate, g, i, loss, n, slope, w, w0
from odesim.symbolic import ClosedForm, IndexedBase, Invariant, Param, Source, System, time

m, v = IndexedBase("m", shape=(n,)), IndexedBase("v", shape=(n,))
t1, t2, eps, first = symbols("t1 t2 eps first", positive=True)
start = slope(lambda j: w0[j])


def ripe(scale: object, t: object) -> object:
    """1 - e^(-(t + first) / scale): the part of a mean that is not its 0 at the start."""
    return 1 - exp(-(t + first) / scale)  # type: ignore[operator]


SYSTEM = System(
    name="optimisers.adam",
    source=Source("kingma2015adam", "Algorithm 1", "in continuous time"),
    axes=AXES,
    equations={w[i]: -m[i] / ripe(t1, time) / (sqrt(Max(v[i], 0) / ripe(t2, time)) + eps), m[i]: (g - m[i]) / t1, v[i]: (g**2 - v[i]) / t2},
    params=(
        *PARAMS,
        Param(t1, 0.1, Interval.open(0, oo), "time over which slopes are averaged"),
        Param(t2, 1.0, Interval.open(0, oo), "time over which their squares are averaged"),
        Param(eps, 1e-3, Interval.open(0, oo), "what is added to the root of the mean square"),
        Param(first, 1e-3, Interval.open(0, oo), "length of the first step: the learning rate"),
    ),
    constraints=SYMMETRIC,
    initial={w[i]: w0[i], m[i]: ripe(t1, 0) * start, v[i]: ripe(t2, 0) * start**2},
    sizes={n: 2},
    span=(0.0, 2.0),
    time="steps times learning rate",
    observables={"loss": loss},
    invariants=(Invariant("mean squares are positive", v[i], "nonnegative", when=v[i] >= 0),),
    closed_forms=(ClosedForm("one rate", "H = 0, from the means of the start", at_one_rate),),
)

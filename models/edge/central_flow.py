"""The central flow of edge.valley: gradient descent in the mean, with the spread across the valley that keeps it at the edge.

y' = -eta (grad L + sigma2 grad S / 2), and sigma2, the mean of x^2, is what keeps the sharpness S at 2/eta: at the edge
sigma2 = max(0, -2 grad S . grad L / |grad S|^2), below it 0. Here the edge is soft: sigma2 rises by stiff (S - 2/eta) over |grad S|^2, so
that S comes to the edge at the rate eta stiff / 2 and no condition has to be switched. As stiff grows this is the central flow.

Assumed: one direction at the edge; time is counted in steps.
"""

from sympy import Interval, Max, oo, symbols

from odesim.models.edge.valley import FLOOR, S, eta, slope1, slope2, y1, y2
from odesim.symbolic import Invariant, Param, Source, System

stiff = symbols("stiff", positive=True)
n1, n2 = 6, 4 * y2  # grad S
sigma2 = Max(0, stiff * (S - 2 / eta) - 2 * (n1 * slope1 + n2 * slope2)) / (n1**2 + n2**2)

SYSTEM = System(
    name="edge.central_flow",
    source=Source("cohen2024central", "Abstract", "one direction, with a soft edge"),
    axes={},
    equations={y1: -eta * (slope1 + sigma2 * n1 / 2), y2: -eta * (slope2 + sigma2 * n2 / 2)},
    params=(*FLOOR, Param(stiff, 1.0, Interval.open(0, oo), "how sharp the edge is")),
    initial={y1: 1.55, y2: 0.3},
    span=(0.0, 1000.0),
    time="steps",
    observables={"sharpness": S, "sigma2": sigma2},
    display={"S": S, "sigma2": sigma2},
    invariants=(Invariant("not over the edge", 2 / eta - S, "nonnegative", when=2 / eta >= S),),
)

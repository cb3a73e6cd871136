"""One-pass SGD on power laws, many modes: the risk falls as a power of time, which the target sets, or the noise of SGD.

D[j] is the mean squared error of coefficient j, R the risk. With g/(2 B) sum_j lam_j < 1 the modes sum up to a Volterra equation,
R(t) = F(t) + int_0^t K(t - s) R(s) ds: F is the risk without the noise of SGD and falls as t^(-r), r = (2a + 2b - 1)/(2a); K falls as
t^(-(2 - 1/(2a))). So the noise rules where b > a. With label noise s2 the risk comes to rest at (s2/2)/(1 - g/(2 B) sum_j lam_j).

Assumed: Gaussian inputs, small g. scaling.sgd_steps is SGD itself, in discrete steps; this is its limit to order g, and to order g^2 for
B = 1, where what (1 - g lam)^2 lacks of exp(-2 g lam) is what a mode's own noise adds. Of n modes the power law lasts until t is about
n^(2a)/g, then the fall is exponential; a <= 1/2 needs n finite.
"""

from typing import Any

import numpy as np
from scipy.linalg import expm
from sympy import Interval, Sum, oo, symbols

from odesim.symbolic import ClosedForm, IndexedBase, Log, Param, Source, System, index, over, sizes

# What the models of SGD on power laws share: spectrum, target, risk, parameters.

i, j = index("i j")
(n,) = sizes("n")
D = IndexedBase("D", shape=(n,))
a, g, B = symbols("a g B", positive=True)
b = symbols("b", real=True)
s2 = symbols("s2", nonnegative=True)


def lam(k: object) -> object:
    """The variance of input k = 0, 1, ...: (k + 1)^(-2 a)."""
    return (1 + k) ** (-2 * a)  # type: ignore[operator]


R = over(Sum, lam(j) * D[j], (j, n)) / 2 + s2 / 2
AXES = {i: n, j: n}
START = {D[i]: (1 + i) ** (-2 * b)}
PARAMS = (
    Param(a, 1.0, Interval.open(0, oo), "the variances of the inputs fall as j^(-2 a)"),
    Param(b, 0.8, Interval(-oo, oo), "the squared coefficients of the target fall as j^(-2 b)"),
    Param(g, 0.1, Interval.open(0, oo), "learning rate"),
    Param(B, 1.0, Interval.open(0, oo), "size of a mini-batch"),
    Param(s2, 0.01, Interval(0, oo), "variance of the noise of labels"),
)


def linear(t: float, y0: dict[str, Any], params: dict[str, Any]) -> dict[str, np.ndarray]:
    """D (n,): the equations are linear, with a constant from the noise of labels."""
    start = y0["D"]
    lam = np.arange(1.0, len(start) + 1) ** (-2 * params["a"])
    kick = params["g"] ** 2 / params["B"] * lam
    rate = np.zeros((len(start) + 1,) * 2)
    rate[:-1, :-1] = np.outer(kick, lam) - 2 * params["g"] * np.diag(lam)
    rate[:-1, -1] = kick * params["s2"]
    return {"D": (expm(t * rate) @ [*start, 1.0])[:-1]}


SYSTEM = System(
    name="scaling.sgd",
    source=Source("paquette2024phases", "abstract", "modes of the Volterra equation, without random features"),
    axes=AXES,
    equations={D[i]: -2 * g * lam(i) * D[i] + 2 * g**2 / B * lam(i) * R},
    params=PARAMS,
    initial=START,
    sizes={n: 60},
    span=(0.0, 1000.0),
    time="SGD steps",
    observables={"R": R},
    views=(Log("R"), Log("D")),
    closed_forms=(ClosedForm("linear", "always", linear),),
    display={"R": R},
)

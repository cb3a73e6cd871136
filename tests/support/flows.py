"""Many flows of one number in one System, so that a kernel meets all of them side by side, and what is known of each."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from scipy.special import erfinv
from sympy import Float, Interval, Piecewise, exp, oo, sqrt

from odesim.base.arrays import Array
from odesim.symbolic import IndexedBase, Param, Source, System, index, sizes, time

(m,), (M,) = index("m"), sizes("M")
x, a, kind = (IndexedBase(name, shape=(M,)) for name in ("x", "a", "kind"))
z = x[m]
SPAN = (0.0, 3.0)
OVERFLOW = "a state that overflows, not its slope"
LARGEST = float(np.finfo(float).max)


@dataclass(frozen=True)
class Flow:
    """x' = right from x0. exact(t, x0, a): the solution; end: where it ceases to be; status: what says so."""

    right: Any
    exact: Callable[[Any, Any, Any], Any]
    x0: float
    a: float = 0.0
    end: float = SPAN[1]
    status: str = "ok"


# Poles and logarithms are blow-ups; a square root ends with a finite state. a = 0 times NaN marks where no step may go.
FLOWS = {
    "logistic": Flow(z * (1 - z) * (1 - time) * a[m], lambda t, x0, a: 1 / (1 + (1 / x0 - 1) * np.exp(-a * (t - t * t / 2))), 0.2, 1.0),
    "x^2": Flow(z**2, lambda t, x0, a: x0 / (1 - x0 * t), 1.0, 0.0, 1.0, "blow_up"),
    "x^3, downwards": Flow(z**3, lambda t, x0, a: x0 / np.sqrt(1 - 2 * t * x0**2), -1.0, 0.0, 0.5, "blow_up"),
    "exp(x^2/2)": Flow(
        exp(z**2 / 2), lambda t, x0, a: np.sqrt(2) * erfinv(t * np.sqrt(2 / np.pi)), 0.0, 0.0, float(np.sqrt(np.pi / 2)), "blow_up"
    ),
    "exp(x)": Flow(exp(z), lambda t, x0, a: -np.log(1 - t), 0.0, 0.0, 1.0, "blow_up"),
    "1/(1-t)": Flow(1 / (1 - time), lambda t, x0, a: -np.log(1 - t), 0.0, 0.0, 1.0, "blow_up"),
    "-1/(2x)": Flow(-1 / (2 * z), lambda t, x0, a: np.sqrt(1 - t), 1.0, 0.0, 1.0, "step_too_small"),
    "1-sqrt(1-t)": Flow(1 - sqrt(1 - time), lambda t, x0, a: t - 2 / 3 * (1 - (1 - t) ** 1.5), 0.0, 0.0, 1.0, "step_too_small"),
    "1/sqrt(1-t)": Flow(1 / sqrt(1 - time), lambda t, x0, a: x0 + 2 - 2 * np.sqrt(1 - t), 1.0, 0.0, 1.0, "step_too_small"),
    "NaN beyond 1": Flow(1 + a[m] * sqrt(1 - z), lambda t, x0, a: t, 0.0, 0.0, 1.0, "step_too_small"),
    OVERFLOW: Flow(Float(1e307), lambda t, x0, a: x0 + 1e307 * t, 1.5e308, 0.0, (LARGEST - 1.5e308) / 1e307, "step_too_small"),
    "NaN below 0": Flow(-50 * z * (1 + a[m] * sqrt(z)), lambda t, x0, a: x0 * np.exp(-50 * t), 1.0),
    "NaN at once": Flow(sqrt(a[m] - 2) * z, lambda t, x0, a: t * np.nan, 1.0, 1.0, 0.0, "non_finite"),
}


EVERY = tuple(FLOWS)
FEW = ("logistic", "x^2", "NaN beyond 1", "NaN at once")  # one for each status: lanes of stiff methods take long to compile


@cache
def menagerie(names: tuple[str, ...] = EVERY) -> System:
    """x[m]' = the flow of number kind[m] of those named."""
    choices = [(FLOWS[name].right, kind[m] < i + 0.5) for i, name in enumerate(names)]
    real = Interval(-oo, oo)
    return System(
        name="test.menagerie",
        source=Source("none", "made for the tests"),
        axes={m: M},
        equations={z: Piecewise(*choices, (0, True))},
        params=(Param(kind, 0.0, real, "the number of a flow"), Param(a, 1.0, real, "a number of the flow")),
        initial={z: 0.2},
        sizes={M: 1},
        span=SPAN,
    )


def members_of(names: tuple[str, ...]) -> tuple[dict[str, Array], dict[str, Array]]:
    """Parameters and starts (N, 1): a member for each flow."""
    flows = [FLOWS[name] for name in names]
    params = {"kind": np.arange(len(names), dtype=float)[:, None], "a": np.array([[f.a] for f in flows])}
    return params, {"x": np.array([[f.x0] for f in flows])}

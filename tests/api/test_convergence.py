"""`odesim.convergence` against moments in closed form."""

import numpy as np
import pytest
from sympy import Interval, oo, symbols

import odesim
from odesim.symbolic import Param, Source, System

MU, S = 0.5, 0.6
x, mu, B = symbols("x mu B")
s = symbols("s", positive=True)
GEOMETRIC = System(
    name="test.geometric",
    source=Source("none", "geometric Brownian motion"),
    axes={},
    equations={x: mu * x},
    noise={x: {B: s * x}},
    params=(Param(mu, MU, Interval(-oo, oo), "drift"), Param(s, S, Interval.open(0, oo), "noise")),
    initial={x: 1.0},
    span=(0.0, 1.0),
    observables={"twice": 2 * x},
)


def moments(h: float) -> tuple[float, float]:
    """(mean square of x_h - x_{h/2}, |its mean|) at t = 1, for Euler's step on the same path.

    One step of h multiplies by a = 1 + mu h + s (d1 + d2), two of h/2 by b = (1 + mu h/2 + s d1)(1 + mu h/2 + s d2), where d1, d2 are
    independent, of variance h/2. So a^2, b^2 and ab have the means below, and steps are independent.
    """
    steps, half = round(1 / h), 1 + MU * h / 2
    a, b = (1 + MU * h) ** 2 + S**2 * h, (half**2 + S**2 * h / 2) ** 2
    ab = (1 + MU * h) * half**2 + S**2 * h * half
    return a**steps + b**steps - 2 * ab**steps, abs((1 + MU * h) ** steps - half ** (2 * steps))


def test_errors_of_euler_steps() -> None:
    """Both errors are what the moments say, the observable's are twice the state's, and the orders 1/2 and 1."""
    found = odesim.convergence(GEOMETRIC, step=0.25, levels=4, members=4000, method="em", seed=5, observe="twice")
    exact = np.array([moments(h) for h in found.step.values])
    assert found.step.values.tolist() == [0.25, 0.125, 0.0625, 0.03125] and found.attrs["members"] == 4000
    # a mean square over 4,000 members of a law with long tails is off by some 3 %
    assert found.x_strong.values == pytest.approx(np.sqrt(exact[:, 0]), rel=0.06)
    assert np.all(np.abs(found.x_weak.values - exact[:, 1]) < 4 * found.x_noise.values)
    assert found.x_noise.values == pytest.approx(np.sqrt((exact[:, 0] - exact[:, 1] ** 2) / 4000), rel=0.06)
    assert found.twice_strong.values == pytest.approx(2 * found.x_strong.values, rel=1e-12)
    assert found.attrs["strong_order"]["x"] == pytest.approx(0.5, abs=0.1)
    assert found.attrs["weak_order"]["x"] == pytest.approx(1.0, abs=0.4)  # the last weak error is 3 standard errors


@pytest.mark.parametrize(("levels", "members", "order"), [(8, 2000, 1.0), (5, 200, None)])
def test_weak_order_is_not_of_chance(levels: int, members: int, order: float | None) -> None:
    """Means of fine steps are chance: the order is that of the steps before, and there is none where all are."""
    found = odesim.convergence(GEOMETRIC, step=0.25, levels=levels, members=members, method="em", seed=5)
    assert np.any(found.x_weak.values < found.x_noise.values) and "x" in found.attrs["strong_order"]
    # two or three weak errors of three to six standard errors: their slope is off by .3
    assert found.attrs["weak_order"] == ({} if order is None else {"x": pytest.approx(order, abs=0.4)})


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ({"step": 0.25, "levels": 1}, "an order needs at least 2"),
        ({}, "step is needed"),
        ({"step": 0.3}, "the span 0:1 is no whole number of steps of 0.3"),
        ({"step": 2 / 3}, "no whole number of steps of 0.666667"),  # half of it fills the span
        ({"step": 0.25, "method": "heum"}, "its methods are em, heun"),
    ],
)
def test_sentences(words: dict[str, object], sentence: str) -> None:
    """What cannot be is said."""
    with pytest.raises(odesim.base.errors.OdesimError, match=sentence):
        odesim.convergence(GEOMETRIC, **words)  # type: ignore[arg-type]


def test_without_noise() -> None:
    """A System without noise has no paths."""
    with pytest.raises(odesim.base.errors.OdesimError, match="has no noise"):
        odesim.convergence("joma.nonlinear", step=0.1)

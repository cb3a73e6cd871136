"""Functions that pass zero and come back between two samples of a step: every zero is found, where a closed form has it.

y' = 1 in steps of 1, so that a width is one in parts of a step. Zeros are known where the function is made from them.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from odesim.run.integrate import integrate_problem
from odesim.stepper.codes import Status
from odesim.stepper.methods import METHODS
from odesim.stepper.problem import EventSpec
from odesim.stepper.rosenbrock_methods import ROSENBROCK
from tests.support.stiff_problems import stiff

STEPS = 4
Rng = np.random.Generator
Case = tuple[Callable[[float], float], list[float]]
"""A function and its zeros."""


def width(rng: Rng) -> float:
    """From 1e-6 to 0.3 of a step, of all sizes as often."""
    return float(10 ** rng.uniform(-6, np.log10(0.3)))


def middle(rng: Rng) -> float:
    """Anywhere, at an end of a step or as near to one as a dip is wide, at an end of its pieces."""
    return float(
        rng.choice(
            [
                rng.uniform(0.4, STEPS - 0.4),
                rng.integers(1, STEPS) + rng.choice([-1, 1]) * width(rng),
                rng.integers(1, STEPS),
                rng.integers(2, 4 * STEPS - 2) / 4,
            ]
        )
    )


def power(rng: Rng, p: int) -> Case:
    c, w = middle(rng), width(rng)
    return lambda s: abs(s - c) ** p - (w / 2) ** p, [c - w / 2, c + w / 2]


def arms(rng: Rng) -> Case:
    """The larger one of two straight lines."""
    low, w = middle(rng), width(rng)
    a, b = 10 ** rng.uniform(-2, 2, 2)
    return lambda s: max(a * (low - s), b * (s - low - w)), [low, low + w]


def disc(rng: Rng) -> Case:
    """A point that passes through a disc on a straight line."""
    c, w, angle = middle(rng), width(rng), rng.uniform(0, 2 * np.pi)
    off = w * rng.uniform(0, 2)
    x, y = np.cos(angle), np.sin(angle)
    return lambda s: ((s - c) * x - off * y) ** 2 + ((s - c) * y + off * x) ** 2 - off**2 - w * w / 4, [c - w / 2, c + w / 2]


def top(rng: Rng) -> Case:
    """A wave with a line just under its maxima, to a depth of 1e-12."""
    k, depth, phase = rng.uniform(0.5, 1.5), 10 ** rng.uniform(-12, -1), rng.uniform(0, 2 * np.pi)
    a = 2 * np.arcsin(np.sqrt(depth / 2)) / k
    tops = (np.pi / 2 - phase + 2 * np.pi * np.arange(4)) / k
    return lambda s: 2 * np.sin((k * s + phase - np.pi / 2) / 2) ** 2 - depth, [z for c in tops for z in (c - a, c + a) if 0 < z < STEPS]


def bent(rng: Rng) -> Case:
    """Times a function that grows or falls tenfold in the span."""
    g, zeros = power(rng, 2)
    rate = rng.uniform(-0.6, 0.6)
    return lambda s: np.exp(rate * s) * g(s), zeros


def down(rng: Rng) -> Case:
    """One that is negative on both sides."""
    g, zeros = power(rng, 2)
    return lambda s: -g(s), zeros


def near(rng: Rng) -> Case:
    """One that comes as near as 1e-12 and stays above."""
    c, p, gap = middle(rng), rng.choice([1, 2]), 10 ** rng.uniform(-12, -2)
    return lambda s: abs(s - c) ** p + gap, []


FAMILIES: dict[str, Callable[[Rng], Case]] = {
    "parabola": lambda rng: power(rng, 2), "corner": lambda rng: power(rng, 1), "fourth power": lambda rng: power(rng, 4),
    "arms": arms, "disc": disc, "top": top, "bent": bent, "down": down, "near": near,
}  # fmt: skip


def found(cases: list[Case], method: str, step: float = 1.0, **options: Any) -> list[list[float]]:
    """The zeros of each function along y' = 1, y(0) = 0."""
    specs = tuple(EventSpec(f"{k}", **options) for k in range(len(cases)))
    p = stiff(lambda t, y: 1 + 0 * y, lambda t, y: 0, 0.0, STEPS, events=lambda t, y: [g(y[0]) for g, _ in cases], specs=specs)
    run = integrate_problem(p, method=method, step=step)
    return [run.events[f"{k}"].t.tolist() for k in range(len(cases))]


@pytest.mark.parametrize("method", [*METHODS, *ROSENBROCK])
@pytest.mark.parametrize("name", FAMILIES)
def test_every_dip_is_found(name: str, method: str) -> None:
    """Many in one step, which are searched themselves and not the polynomials through their samples."""
    rng = np.random.default_rng(sum(map(ord, name + method)))
    for _ in range(2):
        cases = [FAMILIES[name](rng) for _ in range(12)]
        for times, (_, zeros) in zip(found(cases, method), cases, strict=True):
            # y is off by some roundings of 4; the top of a wave multiplies them by 1/sqrt(depth)
            assert times == pytest.approx(zeros, abs=1e-9)


@pytest.mark.parametrize("direction", [-1, 0, 1])
def test_direction(direction: int) -> None:
    """A dip below zero is a zero downwards and one upwards."""
    g, zeros = (lambda s: (s - 1.55) ** 2 - 1e-6), [1.549, 1.551]
    (times,) = found([(g, zeros)], "tsit5", direction=direction)
    assert times == pytest.approx({-1: zeros[:1], 0: zeros, 1: zeros[1:]}[direction], abs=1e-9)


@pytest.mark.parametrize("method", ["tsit5", "vern7", "rodas5p"])
def test_a_dip_ends_a_run(method: str) -> None:
    """A terminal event of a dip is its first zero, whatever else there is in the step."""
    specs = (EventSpec("other"), EventSpec("dip", terminal=True))

    def events(t: float, y: Any) -> Any:
        return abs(y[0] - 2.6) - 1e-3, (y[0] - 2.61) ** 2 - 1e-8

    p = stiff(lambda t, y: 1 + 0 * y, lambda t, y: 0, 0.0, STEPS, events=events, specs=specs)
    run = integrate_problem(p, method=method, step=1.0)
    assert run.status is Status.EVENT and run.t_last == pytest.approx(2.6099, abs=1e-12) == run.y_last[0]
    assert run.events["other"].t == pytest.approx([2.599, 2.601], abs=1e-12)


@pytest.mark.parametrize("method", [*METHODS, *ROSENBROCK])
def test_a_touch_is_no_zero(method: str) -> None:
    """Functions that are zero at one time, at a sample too, and keep their sign; one that is so for a while."""
    functions: list[Callable[[float], float]] = [lambda s, c=c: abs(s - c) for c in (0.5, 1 / 3, 1.75, 2.2, 3 - 1e-7)]  # type: ignore[misc]
    functions += [lambda s: (s - 1.5) ** 2, lambda s: -((s - 2.25) ** 2), lambda s: max(abs(s - 1.5) - 0.3, 0.0)]
    assert found([(g, []) for g in functions], method) == [[]] * 8


def test_a_zero_where_a_step_ends_counts() -> None:
    """What comes after is not known there; where the next step begins with a zero, that is not counted again."""
    assert found([(lambda s: abs(s - 2), []), (lambda s: s - 3, [])], "euler") == [[2.0], [3.0]]


@pytest.mark.first(1)
@pytest.mark.parametrize("method", ["tsit5", "dop853", "rodas5p"])
def test_dips_of_many_components(method: str) -> None:
    """More than are searched themselves: the polynomials through the samples have the dips of functions linear in the state."""
    depth = np.logspace(-8, -2, 100)
    p = stiff(
        lambda t, y: (y[1], -y[0]),
        lambda t, y: ((0, 1), (-1, 0)),
        [0.0, 1.0],
        2.0,
        events=lambda t, y: y[0] - 1 + depth,
        specs=(EventSpec("top", (100,)),),
    )
    run = integrate_problem(p, method=method, step=0.5)
    near = integrate_problem(p, method=method, step=0.5, save=np.linspace(1.55, 1.59, 40001)).y[:, 0].max() - 1
    for i, d in enumerate(depth):
        times = run.events["top"].t[run.events["top"].indices[:, 0] == i]  # type: ignore[index]
        top = d + near  # of the interpolant, whose error at 1 is what is above the line or not
        assert len(times) == 2 * (top > 0)
        # sin is 1 - (t - pi/2)^2/2 there; the interpolant's maximum is elsewhere by its error in the slope
        assert times == pytest.approx(np.pi / 2 + np.sqrt(2 * top) * np.array([-1, 1])[: len(times)], abs=1e-2)


SPIKES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "decays": lambda s, rate, c: np.exp(-rate * s),
    "tips": lambda s, rate, c: np.exp(-rate * abs(s - c)),
    "hills": lambda s, rate, c: 1 / (1 + (rate * (s - c)) ** 2),
}


@pytest.mark.parametrize("method", ["tsit5", "vern7", "rodas5p"])
@pytest.mark.parametrize("name", SPIKES)
def test_polynomials_make_no_zeros(name: str, method: str) -> None:
    """Many functions above zero that their samples do not show well: the polynomials through these go below it."""
    rng = np.random.default_rng(5)
    numbers = zip(10 ** rng.uniform(0.3, 2.0, 200), rng.uniform(0, STEPS, 200), 10 ** rng.uniform(-12, -6, 200), strict=True)
    functions = [lambda s, k=k, c=c, left=left: SPIKES[name](s, k, c) + left for k, c, left in numbers]
    assert found([(g, []) for g in functions], method) == [[]] * 200

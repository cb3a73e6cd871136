"""What is stated of gradient descent at the edge of stability, and what holds, by maps of two numbers."""

from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import brentq, nnls
from scipy.stats import norm
from sympy import Symbol

import odesim
from odesim.lab.claims import Claim, Mark, Measurement, Statement, deviation
from odesim.symbolic import Source

CYCLES, PRODUCT, LAYERS, NEURON = (f"edge.{name}" for name in ("self_stabilisation", "product", "four_layers", "threshold_neuron"))
SAM, VALLEY, FLOW, DIRECTIONS = (f"edge.{name}" for name in ("sam", "valley", "central_flow", "directions"))


def run(model: str, initial: dict[str, float], steps: int, every: int | None = None, **params: float) -> Any:
    """A run of a map; kept at its start and end, or each `every` steps."""
    save: Any = 2 if every is None else np.arange(0, steps + 1, every)
    return odesim.integrate(model, initial=initial, params=params, span=(0, steps), save=save)


def squared(a: Any) -> Any:
    """The squares of an array, of numbers up to 1e50 in size: a map that runs away shall not overflow."""
    return np.clip(a, -1e50, 1e50) ** 2


def cycles() -> Iterable[Measurement]:
    """15,000 steps at ea = 1e-4: means of x^2 and y, and two recorded states."""
    found = run(CYCLES, {"x": 1e-3, "y": -0.01}, 15_000, 1, ea=1e-4, b=1.0)
    x, y = found.y["x"], found.y["y"]
    yield Measurement("mean of x^2", squared(x).mean(), 2e-4, 4e-6)
    yield Measurement("mean of y", y.mean(), 0.0, 2e-3)
    yield Measurement("first step above the edge", np.argmax(y > 0), 101.0)
    yield deviation(
        "x, y after 2000 and 5000 steps", (x[2000], y[2000], x[5000], y[5000]), (3.9533e-4, -0.01128054, 1.0026e-4, -0.01799354), 1e-8
    )


def for_ever() -> Iterable[Measurement]:
    """How long cycles last: ea = 1e-2 and 1e-3, the steps until |y| is above 1."""
    for ea in (1e-2, 1e-3):
        y = run(CYCLES, {"x": 1e-2, "y": -0.01}, 10_000, 1, ea=ea, b=1.0).y["y"]
        away = ~(np.abs(y) < 1)
        yield Measurement(f"steps until |y| > 1, ea = {ea:g}", np.argmax(away) if away.any() else len(y) - 1, 10_000, 0.0, ">=")


def growth() -> Iterable[Measurement]:
    """H near the fixed point, ea = .01, over 200 steps: its factor; and its increment in a step, second order in ea."""
    found = run(CYCLES, {"x": float(np.sqrt(0.02) * (1 + 1e-6)), "y": 0.0}, 200, 1, ea=0.01, b=1.0)
    # H to second order: u - ln u - 1 has no digits left there
    near = squared(np.abs(found.y["x"]) / np.sqrt(0.02) - 1) * 0.02 + squared(found.y["y"])
    yield Measurement("factor of H in 200 steps", near[-1] / near[0], 1.02**200, 0.5)
    found = run(CYCLES, {"x": 1e-3, "y": -0.01}, 4000, 1, ea=1e-4, b=1.0)
    u, y = found.observables["u"], found.y["y"]
    change = np.diff(np.clip(found.observables["H"], -1e100, 1e100))
    want = 1e-8 * squared(1 - u[:-1]) + 1e-4 * squared(y[:-1]) * (1 + u[:-1])
    yield Measurement("H gained in 4000 steps, over the sum of its increments", change.sum() / want.sum(), 1.0, 0.02)


def ends_below() -> Iterable[Measurement]:
    """l(x y) from above 2/eta: y^2 in the end, by two losses, and from starts that differ."""
    for eta, shape, steps in ((0.1, 0, 20_000), (0.03, 0, 70_000), (0.01, 0, 600_000), (0.03, 1, 70_000)):
        start = {"x": 0.1, "y": float(np.sqrt(2 / eta + 2))}
        gap = float(run(PRODUCT, start, steps, eta=eta, shape=shape).final_observables["gap"])
        yield Measurement(
            f"(2/eta - y^2) 2 c/eta, eta = {eta:g}, c = {'1/3' if shape else '1/2'}", gap * (2 / 3 if shape else 1) / eta, 1.0, eta**2
        )
    for y0, want in ((6.0, 19.8994950), (5.0, 19.8994950), (4.6, 19.8994931), (4.4, 19.2280662)):
        found = run(PRODUCT, {"x": 0.1, "y": y0}, 20_000, eta=0.1).final_observables["sharpness"]
        yield Measurement(f"y^2 in the end from y = {y0:g}, eta = .1", found, want, 6e-8)


FOUR = {
    0.2: (3, 0.3, 0.36320),
    0.1: (4, 0.2, 0.46150),
    0.05: (5, 0.19, 0.49004),
    0.02: (7.2, 0.135, 0.49839),
    0.01: (10.1, 0.0985, 0.49960),
}


def four_layers(tight: bool) -> Iterable[Measurement]:
    """(2/eta - sharpness)/eta in the end from five starts: recorded and, if tight, 1/2; within (0, 20/3)."""
    for eta, (x, y, want) in FOUR.items():
        found = run(LAYERS, {"x": x, "y": y}, int(100 / eta**2), eta=eta)
        gap = float(found.final_observables["gap"]) / eta
        if tight:
            yield Measurement(f"gap over eta, eta = {eta:g}", gap, want, 6e-6)
        else:
            yield Measurement(f"gap over eta, eta = {eta:g}", gap, 20 / 3, 0.0, "<=")
            yield Measurement(f"gap over eta is positive, eta = {eta:g}", gap, 0.0, 0.0, ">=")
            yield Measurement(f"loss in the end, eta = {eta:g}", found.final_observables["loss"], 0.0, 1e-20)
    if tight:
        yield Measurement("at eta = .01", gap, 0.5, 5e-4)


NEURONS = {0.5: -1.408e-4, 0.9: -6.963e-4, 1.1: -0.069105, 1.5: -0.262943, 3.0: -0.970128}


def neuron() -> Iterable[Measurement]:
    """The bias in the end at five learning rates around 8 pi/d^2, d = 20, beside the bias at which the edge is passed."""
    for share, want in NEURONS.items():
        eta = share * 8 * np.pi / 400
        b = float(run(NEURON, {"A": 0.3, "b": 0.0}, 30_000, eta=eta, d=20.0).final["b"])
        yield Measurement(f"b in the end, eta d^2/(8 pi) = {share:g}", b, want, 6e-7)
        edge = brentq(lambda b, eta=eta: 400 * eta * (norm.pdf(b) + b * norm.cdf(b)) ** 2 - 4, -3, 3)
        if share > 1:
            yield Measurement(f"b less than at the edge, {share:g}", b, edge, 0.0, "<=")
        else:
            yield Measurement(f"|b| stays small, {share:g}", abs(b), 1e-3, 0.0, "<=")


def aware(normalised: bool) -> Iterable[Measurement]:
    """Where |w| ends from three starts, eta lam = .4 and 1.6, rho = .05."""
    for eta, lam in ((0.1, 4.0), (0.4, 4.0)):
        cycle = eta * lam * 0.05 / (2 - eta * lam)
        for w in (0.3, -0.01, 2.0):
            found = float(run(SAM, {"w": w}, 400, eta=eta, lam=lam).final["w"])
            # a fixed point of |w|, left with the factor |1 - eta lam| a step: rounding after 400
            yield Measurement(f"|w| in the end, eta lam = {eta * lam:g}, from {w:g}", abs(found), cycle if normalised else 0.0, 1e-12)
    if normalised:
        # 4 (1 + .05 * 4) = 4.8: .52 a step, and from eta = 2 / 4.8 on away from the minimum
        for eta, factor in ((0.1, 0.52), (0.45, -1.16)):
            after = run(SAM, {"w": 0.3}, 10, eta=eta, lam=4.0, kind=1)
            yield Measurement(f"ascent of rho times the slope, eta = {eta:g}: w after ten steps", after.final["w"], 0.3 * factor**10, 1e-12)


CENTRAL = {
    500: (1.5740052, 0.5272423, 0.00175683),
    1000: (1.5337150, 0.6315498, 0.00175948),
    2000: (1.4973160, 0.7127776, 0.00173810),
    5000: (1.4827476, 0.7428037, 0.00172557),
}
"""step -> y1, y2 and the mean of x^2 of the central flow, by another program."""


def central() -> Iterable[Measurement]:
    """Means of gradient descent over 301 steps around four of them, beside the central flow and the gradient flow."""
    steps = run(VALLEY, {"x": 0.05, "y1": 1.55, "y2": 0.3}, 5150, 1)
    given: dict[str, Any] = {"params": {"stiff": 100.0}, "span": (0, 5000), "save": [0, *CENTRAL], "rtol": 1e-9, "atol": 1e-12}
    along = odesim.integrate(FLOW, **given)
    for row, (t, recorded) in enumerate(CENTRAL.items(), 1):
        means = {name: float(steps.y[name][t - 150 : t + 151].mean()) for name in ("y1", "y2")}
        spread = float(squared(steps.y["x"][t - 150 : t + 151]).mean())
        # of a floor without walls y - c decays
        yield Measurement(f"gradient flow at {t}, above mean y1", 2 - 0.45 * float(np.exp(-1e-3 * t)) - means["y1"], 0.15, 0.0, ">=")
        yield deviation(f"central flow at {t}", [along.y["y1"][row], along.y["y2"][row]], recorded[:2], 2e-7)
        yield Measurement(f"mean y1 at step {t}", means["y1"], recorded[0], 0.015)
        yield Measurement(f"mean y2 at step {t}", means["y2"], recorded[1], 0.01)
        yield Measurement(f"mean x^2 at step {t}", spread, along.observables["sigma2"][row], 0.2 * recorded[2])
        yield Measurement(f"sharpness of the flow at {t}", along.observables["sharpness"][row], 20.0, 1e-6)


COUPLING = np.array([[1.0, 0.3], [0.2, 0.8]])
FREE, HELD = np.array([0.002, 0.003]), np.array([0.004, 0.0005])
"""Descents along the floor: by one both directions come to the edge, by the other the first holds the second below it."""
SPREADS = (0.00270270, 0.00648649)
"""sigma^2 where FREE keeps both directions at the edge, by another program."""


def complementary(a: Any) -> Any:
    """sigma^2 (2,) >= 0 with G G^T sigma^2 / 2 - G a >= 0, one of the two 0 in each direction: least squares with signs, by scipy."""
    return nnls(COUPLING.T / 2**0.5, 2**0.5 * a)[0]


def descent(a: Any, s: Any, steps: int) -> Any:
    """x^2 and S (steps, 2, 2) of gradient descent with rate .1 on sum_i S_i x_i^2 / 2 - a.y, S = s + G y."""
    x, y, out = np.sqrt(SPREADS) * (1.2, 0.9), np.zeros(2), np.empty((steps, 2, 2))
    for step in range(steps):
        S = s + COUPLING @ y
        out[step] = x**2, S
        x, y = x - 0.1 * S * x, y + 0.1 * (a - COUPLING.T @ x**2 / 2)
    return out


def two_directions() -> Iterable[Measurement]:
    """Both directions at the edge; one that is held below it; one that comes there later: 40,000 steps, beside the flow and the problem."""
    steps = 40_000
    given: dict[str, Any] = {"span": (0, steps), "save": [0, 100, 5000, steps], "rtol": 1e-9, "atol": 1e-12}
    for name, a, s in (("both", FREE, (20, 20)), ("later", FREE, (20, 19.9)), ("held", HELD, (20, 20))):
        spread, sharp = descent(a, np.array(s), steps).transpose(1, 0, 2)
        flow = odesim.integrate(DIRECTIONS, params={"G": COUPLING, "a": a, "s": s, "stiff": 100.0}, **given).observables
        yield deviation(f"{name}: sigma^2 of the flow in the end", flow["sigma2"][-1], complementary(a), 1e-8)
        # G^T mean(x^2) / 2 is a but for how far y has come, some .2, over eta times the steps
        yield deviation(f"{name}: mean of x^2", spread.mean(axis=0), complementary(a), 5e-5)
        if name == "both":
            # with the last step or without
            yield deviation("both: recorded means of x^2", spread.mean(axis=0), (0.00270308, 0.00648226), 2e-7)
            yield deviation("both: recorded means of S", sharp.mean(axis=0), (19.99994, 20.00009), 6e-6)
        if name == "held":
            yield Measurement("held: growth of S_2 by a alone", COUPLING[1] @ a, 0.0, 0.0, ">=")
            end = 20 + 0.1 * steps * float(COUPLING[1] @ (a - COUPLING[0] * complementary(a)[0] / 2))
            yield Measurement("held: S_2 of the flow in the end", flow["sharpness"][-1, 1], end, 1e-4)
            yield Measurement("held: mean of S_2 over the last 301 steps", sharp[-301:, 1].mean(), end, 0.1)
        else:
            yield deviation(f"{name}: recorded sigma^2", flow["sigma2"][-1], SPREADS, 6e-9)
            # mean S - 2/eta is ln |x| in the end over its start, over eta times the steps
            yield deviation(f"{name}: mean of S", sharp.mean(axis=0), 20.0, 3e-3)
        if name == "later":
            alone = 2 * COUPLING[0] @ a / (COUPLING[0] @ COUPLING[0])
            yield deviation("later: sigma^2 of the flow at first", flow["sigma2"][1], (alone, 0.0), 1e-8)


DIGIT = "half a unit of the last recorded digit and a bit"
AT = "edge.self_stabilisation, ea = 1e-4"
CLAIMS = (
    Claim(
        "edge.learns_a_bias",
        Source("ahn2023threshold", "abstract", "mean model"),
        "edge.threshold_neuron, d = 20, five learning rates",
        "a bias is learnt only for a learning rate above 8 pi/d^2",
        neuron,
        DIGIT,
    ),
    Claim(
        "edge.ends_below",
        Source("ahn2023threshold", "Section 3"),
        "edge.product, eta = .1 to .01, two losses",
        "gradient descent on l(x y) from above 2/eta ends at y^2 = 2/eta - O(eta)",
        ends_below,
        "the next order, eta^2",
    ),
    Claim(
        "edge.averages",
        Source("damian2023self", "Section 4"),
        f"{AT}, 15000 steps",
        "the sharpness cycles about 2/eta, and x^2 has the mean 2 ea/b",
        cycles,
        "2 % of means over 22 cycles",
    ),
    Claim(
        "edge.cycles",
        Source("damian2023self", "Section 4", "the map, for long"),
        f"edge.self_stabilisation, 10000 steps at ea = .01 and .001; {AT}",
        "the cycles repeat, as H is conserved for small steps",
        for_ever,
        "none: they leave |y| < 1 or not",
        fails=True,
        corrected=Statement("each cycle is larger, H grows by ea^2 (1-u)^2 + ea y^2 (1+u) a step", growth, "second order in ea: 2 %"),
    ),
    Claim(
        "edge.sharpness",
        Source("zhu2023edge", "Theorem 1.1"),
        "edge.four_layers, eta = .2 to .01",
        "the final sharpness is within (2/eta - 20 eta/3, 2/eta)",
        partial(four_layers, False),
        "none: bounds",
        marks=(Mark("sharpness", 2 / Symbol("eta") - 20 * Symbol("eta") / 3), Mark("sharpness", 2 / Symbol("eta"))),
    ),
    Claim(
        "edge.sharpness_gap",
        Source("zhu2023edge", "Theorem 1.1", "how far below"),
        "edge.four_layers, eta = .2 to .01",
        "the gap to 2/eta is eta/2 for small eta",
        partial(four_layers, True),
        DIGIT,
        depends=("edge.sharpness",),
    ),
    Claim(
        "edge.central",
        Source("cohen2024central", "Abstract", "one direction"),
        "edge.valley, eta = .1, 5150 steps, beside edge.central_flow",
        "gradient descent follows the central flow in the mean, at a sharpness of 2/eta, not the gradient flow",
        central,
        "cycles: 1 % of y, 20 % of x^2 over 301 steps; the flow: the last recorded digit",
    ),
    Claim(
        "edge.several",
        Source("cohen2024central", "Abstract", "two directions"),
        "edge.directions beside 40,000 steps of gradient descent, eta = .1",
        "the spread across each direction keeps it at the edge or is 0: 0 <= sigma_i^2, S_i <= 2/eta, and one of them is an equality",
        two_directions,
        "means: how far states have come, over eta times the steps; the flow: a soft edge of 1e-4",
        depends=("edge.central",),
    ),
    Claim(
        "edge.sam_cycles",
        Source("dai2023crucial", "the quadratic loss", "one direction"),
        "edge.sam, eta lam = .4 and 1.6; with an ascent of rho times the slope at eta lam = .4 and 1.8",
        "sharpness-aware descent with a constant rate comes to the minimum",
        partial(aware, False),
        "rounding",
        fails=True,
        corrected=Statement(
            "it comes to a cycle about it, |w| = eta lam rho / (2 - eta lam); not normalised, w <- (1 - eta lam (1 + rho lam)) w",
            partial(aware, True),
            "rounding",
        ),
    ),
)

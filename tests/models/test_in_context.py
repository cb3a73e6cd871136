"""Learning in context: the losses beside means over prompts and chains, and numbers of the flows by independent integrations."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import erf, owens_t

import odesim
from odesim.dynamics.spectrum import spectrum
from odesim.inputs.bind import bind
from odesim.inputs.registry import load_model
from odesim.symbolic import System
from odesim.symbolic.definition import GradientFlow
from odesim.targets.numpy_text import evaluate

FINE: dict[str, Any] = {"rtol": 1e-10, "atol": 1e-14, "backend": "numpy"}


def observed(system: System, name: str, sizes: dict[str, int], **values: Any) -> float:
    """An observable at a state."""
    return float(evaluate(system.observables[name], (), system.axes, sizes, {n: np.asarray(x, float) for n, x in values.items()}))


def test_loss_of_prompts() -> None:
    """D = N = 2: the mean over the prompt and the task by Gauss and Hermite, exact as degrees in a variable are 7 at most.

    .689575 by an independent script.
    """
    lam, W = np.array([0.7, 0.3]), np.array([[0.4, -0.3], [0.2, 0.6]])
    nodes, weights = np.polynomial.hermite_e.hermegauss(4)
    weights /= weights.sum()
    points = np.array(list(product(nodes, repeat=6)))
    mass = np.prod(list(product(weights, repeat=6)), axis=1)
    x, w = points[:, :4].reshape(-1, 2, 2) * np.sqrt(lam), points[:, 4:]
    beta = np.einsum("nsa,nsb,nb->na", x, x, w) / 2
    want = float(mass @ ((w - beta @ W) ** 2 @ lam))  # the query, N(0, diag(lam)), has its mean on paper
    system, sizes = load_model("in_context.merged"), {"H": 1, "D": 2}
    got = observed(system, "loss", sizes, lam=lam, N=2, v=[1.0], U=W[None])
    assert got == pytest.approx(want, rel=1e-13) and got == pytest.approx(0.689575, abs=5e-7)


def normal_mean(f: Any, bends: list[float]) -> float:
    """The mean of f over a normal variable, by adaptive quadrature that begins with these points."""
    return float(
        quad(lambda x: f(x) * np.exp(-(x**2) / 2) / (2 * np.pi) ** 0.5, -10, 10, points=bends, epsabs=1e-13, epsrel=1e-12, limit=400)[0]
    )


@pytest.mark.parametrize(("d", "lam", "gamma2"), [(400.0, 0.1, 0.5), (20.0, 3.0, 1.0), (1e4, 0.5, 4.0), (3.0, 20.0, 0.01)])
def test_risk_of_one_location(d: float, lam: float, gamma2: float) -> None:
    """The mean of erf^2 over a normal variable by adaptive quadrature."""
    system = load_model("in_context.single_location")
    numbers = bind(system, params={"d": d, "L": 3, "lam": lam, "gamma2": gamma2, "eps2": 0.2})
    g, across = lam * gamma2**0.5, lam * (d / 2) ** 0.5
    for kappa, nu in ((0.05, 0.3), (0.4, 0.9), (-0.7, 0.2)):
        bends = sorted({0.0, *np.clip((np.array([-2, 0, 2]) - across * kappa) / g, -9, 9)})  # where erf passes 0
        first, square = (normal_mean(lambda x, k=k, m=across * kappa: erf(m + g * x) ** k, bends) for k in (1, 2))
        others = 4 / np.pi * np.arcsin(2 * lam**2 / (1 + 2 * lam**2))
        want = gamma2 * (1 - 2 * nu * first + square) + others + 0.2
        assert observed(system, "risk", numbers.sizes, **numbers.params, kappa=kappa, nu=nu) == pytest.approx(want, rel=1e-10)


def test_the_flow_of_one_location_descends_its_risk_to_rounding() -> None:
    """The risk by Owen's T function and its slope in closed form, for 2,340 numbers from the flat to the steep end of erf.

    A is where erf is in the direction of k*. Slopes to 3e-14 of their largest over nu: 36 roundings in exp(-A^2), which above A = 6 is
    less than 1e-15.
    """
    system = load_model("in_context.single_location")
    assert isinstance(system.equations, GradientFlow) and system.equations.loss == system.observables["risk"]
    shared = bind(system, params={"L": 3, "eps2": 0.2})
    for d, lam, gamma2 in product((2.0, 400.0, 1e5), (1e-3, 0.1, 1.0, 30.0), (1e-4, 0.5, 20.0)):
        b, slope = (1 + 4 * lam**2 * gamma2) ** -0.5, lam * (d / (2 + 4 * lam**2 * gamma2)) ** 0.5
        others = 4 / np.pi * np.arcsin(2 * lam**2 / (1 + 2 * lam**2))
        for A, nu in product((-9.0, -4.0, -1.3, -0.01, 1e-6, 0.1, 0.7, 1.0, 2.0, 3.0, 5.0, 6.0, 20.0), (-0.9, 0.0, 0.2, 0.99, 1.0)):
            kappa = np.clip(A / slope, -1, 1)
            values = {**shared.params, "d": d, "lam": lam, "gamma2": gamma2, "kappa": kappa, "nu": nu}
            A = slope * kappa
            want = gamma2 * (2 - 2 * nu * erf(A) - 8 * owens_t(2**0.5 * A, b)) + others + 0.2
            assert observed(system, "risk", shared.sizes, **values) == pytest.approx(want, rel=3e-15)
            steepest = {"kappa": 4 / np.pi**0.5 * gamma2 * slope * (1 - kappa**2) * np.exp(-(A**2)), "nu": 2 * gamma2 * (1 - nu**2)}
            share = {"kappa": nu - erf(b * A), "nu": erf(A)}
            for key, rate in system.equations.items():
                got = evaluate(rate, (), system.axes, shared.sizes, {n: np.asarray(x, float) for n, x in values.items()})
                most = steepest[str(key)]
                assert float(got) == pytest.approx(most * share[str(key)], rel=0, abs=3e-14 * most if abs(A) <= 6 else 1e-30), values


def test_the_spectrum_of_one_location() -> None:
    """It knows the risk: at (0, 0) the Hessian is diag(8 s^2 b / pi, 0) gamma2 - 4 s / sqrt(pi) gamma2 off the diagonal."""
    found = spectrum("in_context.single_location", initial={"kappa": 0, "nu": 0}, span=(0, 1), save=2)
    b, slope = (1 + 4 * 0.01 * 0.5) ** -0.5, 0.1 * (400 / (2 + 4 * 0.01 * 0.5)) ** 0.5
    off = -4 / np.pi**0.5 * slope * 0.5
    low, top = np.linalg.eigvalsh([[8 * slope**2 * b / np.pi * 0.5, off], [off, 0]])
    ends = [float(found["lowest"][0]), float(found["sharpness"][0, 0])]
    assert found.attrs["loss"] == "loss" and ends == pytest.approx([low, top], rel=1e-13)


def test_loss_of_a_chain() -> None:
    """The cross-entropy over the four pairs of tokens; with the best bias the least one over biases; .594464 by a long chain to 2e-4."""
    p, q, e, w = 0.2, 0.3, 0.9, -0.4

    def of_bias(b: float) -> float:
        total, first = 0.0, {0: q / (p + q), 1: p / (p + q)}
        for x, y in product((0, 1), repeat=2):
            logit = e**2 * (1 + 2 * w * abs(w)) * x + b - e**2 / 2
            chance = (p if x == 0 else 1 - q) if y else (1 - p if x == 0 else q)
            total -= first[x] * chance * np.log(1 / (1 + np.exp(-logit if y else logit)))
        return total

    bias, best = (load_model(f"in_context.markov{name}") for name in ("_bias", ""))
    for b in (-1.0, 0.3):
        assert observed(bias, "loss", {}, p=p, q=q, e=e, w=w, b=b) == pytest.approx(of_bias(b), rel=1e-13)
    least = min(map(of_bias, np.linspace(-2, 2, 40_001)))
    assert observed(best, "loss", {}, p=p, q=q, e=e, w=w) == pytest.approx(least, abs=1e-8)


HEAD = {"v": [0.02], "k": 0.02 * np.array([[0.3, 0.5, -0.4, 0.7]]), "q": 0.02 * np.array([[0.1, 0.6, 0.2, -0.5]])}
NUMBERS: dict[str, tuple[str, dict[str, Any], dict[str, tuple[tuple[float, ...], tuple[float, ...]]], float]] = {
    "two layers": (
        "in_context.two_layers",
        {},
        {"eta1": ((1, 5), (0.46370165, 0.53910964)), "eta2": ((1, 5), (0.63468481, 1.02747090))},
        6e-9,
    ),
    "one location": (
        "in_context.single_location",
        {},
        {
            "kappa": ((1, 2, 5, 10, 20, 80), (0.06369823, 0.13299654, 0.57406193, 0.80020623, 0.89432361, 0.98324923)),
            "nu": ((1, 2, 5, 10), (0.12874571, 0.27094221, 0.94366789, 0.99998767)),
            "risk": ((1, 2, 5, 10, 20, 80), (0.6075542, 0.5805211, 0.1873510, 0.1188071, 0.1153077, 0.1136907)),
        },
        6e-8,
    ),
    "equal variances": (
        "in_context.merged",
        {"params": {"lam": 0.25}},
        {"loss": ((5, 10, 15, 20), (0.970291017, 0.721487522, 0.204296837, 0.139678649))},
        6e-10,
    ),
    "merged": (
        "in_context.merged",
        {},
        {
            "loss": ((10, 30, 60, 100, 400), (0.3534266355, 0.1728831664, 0.1461423951, 0.1370000164, 0.1359950716)),
            "v": ((10, 100), (1.6906026770, 2.9339976983)),
        },
        1e-9,
    ),
    "separate": (
        "in_context.separate",
        {},
        {
            "loss": (
                (20, 50, 100, 300, 600, 1000),
                (0.9998165135, 0.9949089662, 0.6197929800, 0.2097973072, 0.2097655511, 0.1366157008),
            )
        },
        1e-9,
    ),
    "one head": ("in_context.separate", {"sizes": {"H": 1}, "initial": HEAD}, {"loss": ((500,), (0.6405797112,))}, 1e-9),
    "chain": ("in_context.markov", {}, {"e": ((100,), (1.27892458,)), "w": ((100,), (0.42753372,)), "s": ((100,), (2.2335922,))}, 5e-8),
    "chain, w < 0": (
        "in_context.markov",
        {"initial": {"e": 0.1, "w": -0.1}},
        {"e": ((100,), (1.49469219,)), "w": ((100,), (-0.01071002,))},
        6e-9,
    ),
    "chain, in time": (
        "in_context.markov",
        {"initial": {"e": 0.5, "w": -1}},
        {"e": ((100,), (1.49829646,)), "w": ((100,), (-0.05016812,))},
        6e-9,
    ),
    "chain, p + q > 1": (
        "in_context.markov",
        {"params": {"p": 0.5, "q": 0.8}, "initial": {"e": 0.5, "w": -1}},
        {"e": ((100,), (0.78949458,)), "w": ((100,), (-1.26966818,)), "loss": ((100,), (0.6190145817,))},
        6e-9,
    ),
    "chain, unigram": (
        "in_context.markov",
        {"params": {"p": 0.5, "q": 0.8}},
        {"e": ((100,), (5.1254e-8,)), "w": ((100,), (0.09902421,)), "loss": ((100,), (0.6662784424,))},
        6e-9,
    ),
    "bias": (
        "in_context.markov_bias",
        {},
        {"e": ((100,), (1.34745498,)), "w": ((100,), (0.33926315,)), "b": ((100,), (-0.47847689,))},
        6e-9,
    ),
}
"""Quantities at times by independent integrations of the whole weights or of one equation a mode; half of the last digit or 10 rtol."""


@pytest.mark.first(2)
@pytest.mark.parametrize("case", NUMBERS)
def test_numbers(case: str) -> None:
    """As recorded."""
    model, given, wanted, tolerance = NUMBERS[case]
    times = sorted({0.0, *(float(t) for at, _ in wanted.values() for t in at)})
    run = odesim.integrate(model, save=times, span=(0, times[-1]), **given, **FINE)
    for name, (at, values) in wanted.items():
        rows = (run.y[name] if name in run.y else run.observables[name]).reshape(len(times), -1)[:, 0]
        np.testing.assert_allclose(rows[[times.index(t) for t in at]], values, rtol=0, atol=tolerance, err_msg=name)


def test_the_saddle_at_the_start_of_one_location() -> None:
    """Rates -3.267941 and .771515 of the two overlaps at 0: the flow of a tenth of a time from 1e-5, whose cube is rounding."""
    flow = []
    for start in ((1e-5, 0.0), (0.0, 1e-5)):
        given: dict[str, Any] = {"initial": dict(zip(("kappa", "nu"), start, strict=True)), "span": (0, 0.1), "save": 2}
        run = odesim.integrate("in_context.single_location", **given, **FINE)
        flow.append([float(run.final[name]) / 1e-5 for name in ("kappa", "nu")])
    assert sorted(np.log(np.linalg.eigvals(flow).real) / 0.1) == pytest.approx([-3.267941, 0.771515], abs=1e-5)


def test_overlaps_with_one_location() -> None:
    """kappa, nu and the risk at three times from .05, and the risk at (.4, .3), by an independent script."""
    run = odesim.integrate("in_context.single_location", save=[0, 3, 5, 20], span=(0, 20), **FINE)
    for row, wanted in enumerate(((0.262386, 0.519091, 0.487304), (0.574062, 0.943668, 0.187351), (0.894324, 1.0, 0.115308)), 1):
        found = [run.y["kappa"][row], run.y["nu"][row], run.observables["risk"][row]]
        np.testing.assert_allclose(found, wanted, atol=6e-7)
    given: dict[str, Any] = {"initial": {"kappa": 0.4, "nu": 0.3}, "span": (0, 1e-6), "save": 2}
    run = odesim.integrate("in_context.single_location", **given, **FINE)
    assert run.observables["risk"][0] == pytest.approx(0.606563, abs=6e-7)


@pytest.mark.parametrize(("p", "q"), [(0.2, 0.3), (0.5, 0.8)])
def test_small_embeddings_grow_where_p_and_q_sum_to_less_than_one(p: float, q: float) -> None:
    """ln e moves at 2 pi0 pi1 (1 - p - q)(1 + 2 w |w|), to first order in e^2 = 1e-8."""
    run = odesim.integrate("in_context.markov", params={"p": p, "q": q}, initial={"e": 1e-4, "w": 0.3}, span=(0, 0.1), save=2, **FINE)
    rate = 2 * p * q / (p + q) ** 2 * (1 - p - q) * 1.18
    assert np.log(run.final["e"] / 1e-4) / 0.1 == pytest.approx(rate, rel=1e-6)


def test_loss_of_the_nearest() -> None:
    """Three points in a drawn prompt: the mean over their eight labels; two points on a sphere: by another rule, in the angles of both."""
    system, rng = load_model("in_context.nearest"), np.random.default_rng(0)
    cosines = np.sort(rng.uniform(-1, 1, (5, 3)))[:, ::-1]
    given = {"behind": cosines[:, :1] - cosines, "weight": np.full(5, 0.2)}
    p = np.exp(2.5 * cosines) / np.exp(2.5 * cosines).sum(axis=1, keepdims=True)
    labels = np.array(list(product((-1.0, 1.0), repeat=3)))
    want = ((p @ labels.T - labels[:, 0]) ** 2).mean()
    assert observed(system, "loss", {"S": 5, "N": 3}, xi=2.5, **given) == pytest.approx(want, rel=1e-13)
    numbers = bind(system).params
    node, weight = np.polynomial.legendre.leggauss(400)
    sigma = 1 / (1 + np.exp(3.0 * np.abs(node[:, None] - node)))  # 400: the kink where both are alike is of order 1e-5
    assert observed(system, "loss", {"S": 64, "N": 2}, xi=3.0, **numbers) == pytest.approx(weight @ (2 * sigma**2) @ weight / 4, abs=2e-5)

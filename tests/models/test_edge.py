"""Maps at the edge of stability: the Jacobian at rest, gradient descent on samples and networks beside them, other starts."""

from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import norm

import odesim


def test_the_fixed_point_spirals_outwards() -> None:
    """At x^2 = 2 ea/b, y = 0 the multipliers are -(1 +- i sqrt(2 ea)) of x as it alternates: modulus sqrt(1 + 2 ea), by differences."""
    ea, h = 0.01, 1e-7
    rest = np.array([np.sqrt(2 * ea), 0.0])

    def twice(z: Any) -> Any:
        """Two steps, after which x has its sign again."""
        run = odesim.integrate("edge.self_stabilisation", initial=dict(zip("xy", z, strict=True)), params={"ea": ea}, span=(0, 2), save=2)
        return np.array([run.final["x"], run.final["y"]], dtype=float)

    np.testing.assert_allclose(twice(rest), rest, atol=1e-15)
    J = np.transpose([(twice(rest + h * e) - twice(rest - h * e)) / (2 * h) for e in np.eye(2)])
    assert np.abs(np.linalg.eigvals(J)) == pytest.approx(1 + 2 * ea, abs=1e-7)


def test_cycles_of_small_steps() -> None:
    """ea = 1e-4: five peaks of u, as another program has them, each higher; the ODE's period and extremes, of H, are those of the first."""
    start = {"x": 1e-3, "y": -0.01}
    run = odesim.integrate("edge.self_stabilisation", initial=start, params={"ea": 1e-4}, span=(0, 15_000), save=15_001)
    u = run.observables["u"]
    peaks = np.flatnonzero((u[1:-1] > u[:-2]) & (u[1:-1] > u[2:]) & (u[1:-1] > 2))[:5] + 1
    assert (peaks - 1).tolist() == [421, 1080, 1761, 2467, 3201]  # it counts the first step as 0
    np.testing.assert_allclose(u[peaks], (8.788, 9.527, 10.365, 11.316, 12.408), atol=6e-4)
    # a step more or less of 15,000, of which x^2 at a peak is 12 times the mean
    assert (run.y["x"] ** 2).mean() == pytest.approx(2.0169e-4, abs=3e-8) and run.y["y"].mean() == pytest.approx(-1.08e-3, abs=6e-6)
    # along the orbit of the ODE y^2 = H - ea (u - ln u - 1), z = ln u, z' = 2 y
    H, z = float(run.observables["H"][0]), np.log(u[0])
    left, right = (brentq(lambda z: H - 1e-4 * (np.exp(z) - z - 1), *ends, xtol=1e-14) for ends in ((-20, 0), (0, 20)))
    assert np.exp(right) == pytest.approx(8.4358, abs=6e-5) and np.exp(left) == pytest.approx(0.0018336, abs=6e-8) and left < z < right
    middle, half = (left + right) / 2, (right - left) / 2  # z = middle + half sin w takes the roots away

    def slowness(w: float) -> float:
        z = middle + half * np.sin(w)
        return float(half * np.cos(w) / np.sqrt(H - 1e-4 * (np.exp(z) - z - 1)))

    assert quad(slowness, -np.pi / 2 + 1e-7, np.pi / 2 - 1e-7, limit=200)[0] == pytest.approx(638.25, abs=6e-3)


@pytest.mark.parametrize(("ea", "steps"), [(1e-2, 649), (1e-3, 10_000)])
def test_how_cycles_end(ea: float, steps: int) -> None:
    """x runs away, or is lost in rounding, and then y rises by ea a step for ever: as another program has it."""
    start = {"x": 1e-3, "y": -0.01}
    run = odesim.integrate("edge.self_stabilisation", initial=start, params={"ea": ea}, span=(0, steps), save=steps + 1)
    x, y = (run.y[name] for name in "xy")
    if ea == 1e-2:
        assert int(np.argmax(np.abs(x) > 1e3)) == steps
    else:
        assert x[-1] == 0 and y[-1] - y[-2] == pytest.approx(ea, rel=1e-9) and y[-1] == pytest.approx(5.87, abs=6e-3)


GAPS = [(0.1, 6.0, 0, 1.0, 0.100505), (0.03, 8.3, 0, 1.0, 0.0300135), (0.03, 8.3, 1, 1.0, 0.0450122), (0.06, 6.0, 1, 2.0, 0.180197)]
GAPS += [(0.4, 3.0, 0, 1.0, 0.43740)]
"""eta, y at the start, shape of the loss, scale of y^2, and the recorded gap; the fourth is 4 l(x y) of the symmetric logistic loss,
2 ln cosh of half of x y, at eta = .03; the last is too large for a gap of eta."""


@pytest.mark.parametrize(("eta", "y", "shape", "scale", "want"), GAPS)
def test_gaps_of_another_program(eta: float, y: float, shape: int, scale: float, want: float) -> None:
    """2/eta - y^2 in the end, from above the edge."""
    run = odesim.integrate("edge.product", initial={"x": 0.1, "y": y}, params={"eta": eta, "shape": shape}, span=(0, 70_000), save=2)
    assert scale * float(run.final_observables["gap"]) == pytest.approx(want, abs=6e-6 if want > 0.04 else 6e-7)


@pytest.mark.parametrize(("eta", "x", "y", "want"), [(0.2, 3, 0.3, 9.9273602), (0.1, 4, 0.2, 19.9538502), (0.05, 5, 0.19, 39.9754980)])
def test_the_sharpness_of_another_program(eta: float, x: float, y: float, want: float) -> None:
    """Of four layers, in the end."""
    run = odesim.integrate("edge.four_layers", initial={"x": x, "y": y}, params={"eta": eta}, span=(0, int(100 / eta**2)), save=2)
    assert float(run.final_observables["sharpness"]) == pytest.approx(want, abs=6e-8)


def test_the_bias_passes_the_edge() -> None:
    """Above the threshold it falls further than to where the edge is passed, near it to twice that; at six times it does not settle."""
    edges = {0.5: 0.296, 0.9: 0.042, 1.1: -0.037698, 1.5: -0.156118, 3.0: -0.400318}
    for share, want in edges.items():
        eta = share * 8 * np.pi / 400
        found = brentq(lambda b, eta=eta: 400 * eta * (norm.pdf(b) + b * norm.cdf(b)) ** 2 - 4, -3, 3)
        assert found == pytest.approx(want, abs=6e-4 if want > 0 else 6e-7)
    run = odesim.integrate("edge.threshold_neuron", params={"eta": 1.1 * 8 * np.pi / 400, "d": 20.0}, span=(0, 30_000), save=2)
    assert float(run.final["b"]) / edges[1.1] == pytest.approx(2, rel=0.1)  # .2 of the way above the threshold: the next order
    run = odesim.integrate("edge.threshold_neuron", params={"eta": 6 * 8 * np.pi / 400, "d": 20.0}, span=(0, 60_000), save=3)
    assert float(run.final["b"]) == pytest.approx(-3.12, abs=6e-3) and run.y["b"][1] - run.final["b"] > 0.05


RECORDED_MEANS = {
    500: (1.5601, 0.5211, 0.00196),
    1000: (1.5426, 0.6345, 0.00201),
    2000: (1.5009, 0.7144, 0.00183),
    5000: (1.4846, 0.7439, 0.00156),
}


def test_means_of_steps_in_the_valley() -> None:
    """Over 150 steps before and after, as another program has them: a step more or less in the window moves them by a 300th of a cycle."""
    run = odesim.integrate("edge.valley", span=(0, 5150), save=5151)
    for t, want in RECORDED_MEANS.items():
        found = [values[t - 150 : t + 151].mean() for values in (run.y["y1"], run.y["y2"], run.y["x"] ** 2)]
        np.testing.assert_allclose(found, want, atol=5e-4)
        assert found[2] == pytest.approx(want[2], rel=0.01)


STARTS = [(0.1, 0.1, 4.5, 19.8656235), (0.1, 0.001, 4.5, 19.9113888), (0.1, 0.001, 4.6, 19.8994982), (0.1, 0.001, 4.4, 19.3599688)]
STARTS += [(0.05, 0.1, 30**0.5, 29.969857), (0.05, 0.1, 44**0.5, 39.949937), (0.05, 0.1, 60**0.5, 39.949937)]


@pytest.mark.parametrize(("eta", "x", "y", "want"), STARTS)
def test_where_a_product_ends(eta: float, x: float, y: float, want: float) -> None:
    """Little above 2/eta, and below it, the end depends on the start, far above it does not: numbers of another program."""
    run = odesim.integrate("edge.product", initial={"x": x, "y": y}, params={"eta": eta}, span=(0, 20_000), save=2)
    assert run.final_observables["sharpness"] == pytest.approx(want, abs=6e-8 if eta == 0.1 else 6e-7)  # half a digit


def test_the_sharpness_is_that_of_the_hessian() -> None:
    """Of four layers, at the end of a run, by differences of the gradient by all four weights."""
    run = odesim.integrate("edge.four_layers", span=(0, 10_000), save=2)
    w, h = np.array([run.final[name] for name in "xyxy"], dtype=float), 1e-6

    def gradient(w: Any) -> Any:
        return (np.prod(w) - 1) * np.array([np.prod(np.delete(w, k)) for k in range(4)])

    H = np.transpose([(gradient(w + h * e) - gradient(w - h * e)) / (2 * h) for e in np.eye(4)])
    assert np.linalg.eigvalsh(H)[-1] == pytest.approx(float(run.final_observables["sharpness"]), rel=1e-7)


SHARPNESS = {
    0.8: {300: 2.588, 1000: 2.517, 2000: 2.490, 4000: 2.498, 8000: 2.500},
    0.6: {300: 3.337, 1000: 3.529, 2000: 3.129, 4000: 3.326, 8000: 3.313},
    0.05: {0: 1.98, 1000: 2.25, 8000: 3.98},
}
"""learning rate -> steps -> recorded sharpness."""


@pytest.mark.parametrize("rate", SHARPNESS)
def test_a_network_ends_at_the_edge(rate: float) -> None:
    """Ten tanh units on sin 3x by gradient descent: its sharpness comes to 2/rate, to 1 %, or still rises at a small rate."""
    rng, x = np.random.default_rng(0), np.linspace(-1, 1, 12)[:, None]
    W, b, v = rng.normal(size=(1, 10)), 0.5 * rng.normal(size=10), rng.normal(size=10) / np.sqrt(10)
    target = np.sin(3 * x[:, 0])

    def gradient(p: Any) -> Any:
        W, b, v = p[:10], p[10:20], p[20:]
        a = np.tanh(x * W + b)
        r = (a @ v - target) / 12
        back = r[:, None] * v * (1 - a**2)
        return np.concatenate([(back * x).sum(axis=0), back.sum(axis=0), a.T @ r])

    def sharpness(p: Any) -> float:
        H = np.array([(gradient(p + 1e-5 * e) - gradient(p - 1e-5 * e)) / 2e-5 for e in np.eye(30)])
        return float(np.linalg.eigvalsh((H + H.T) / 2)[-1])

    p = np.concatenate([W[0], b, v])
    found = {}
    for step in range(8001):
        after = p - rate * gradient(p)
        if step in SHARPNESS[rate]:
            # at the edge it alternates between two values, and rounding at the start, 1e-15, says which of them comes at even steps
            values = np.array([sharpness(p), sharpness(after)])
            found[step] = float(values[np.abs(values - SHARPNESS[rate][step]).argmin()])
        p = after
    assert found == pytest.approx(SHARPNESS[rate], abs=0.02)
    assert found[8000] == pytest.approx(2 / rate, rel=0.01) or rate == 0.05

"""Maps at the edge of stability: the Jacobian at rest, gradient descent on samples and networks beside them, other starts."""

from typing import Any

import numpy as np
import pytest

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


def test_a_network_ends_at_the_edge() -> None:
    """Ten tanh units on sin 3x by gradient descent with learning rate .8: its sharpness after 8000 steps is 2/.8, to 1 %."""
    rng, x = np.random.default_rng(0), np.linspace(-1, 1, 12)[:, None]
    W, b, v = rng.normal(size=(1, 10)), 0.5 * rng.normal(size=10), rng.normal(size=10) / np.sqrt(10)
    target = np.sin(3 * x[:, 0])

    def gradient(p: Any) -> Any:
        W, b, v = p[:10], p[10:20], p[20:]
        a = np.tanh(x * W + b)
        r = (a @ v - target) / 12
        back = r[:, None] * v * (1 - a**2)
        return np.concatenate([(back * x).sum(axis=0), back.sum(axis=0), a.T @ r])

    p = np.concatenate([W[0], b, v])
    for _ in range(8000):
        p = p - 0.8 * gradient(p)
    H = np.array([(gradient(p + 1e-5 * e) - gradient(p - 1e-5 * e)) / 2e-5 for e in np.eye(30)])
    assert np.linalg.eigvalsh((H + H.T) / 2)[-1] == pytest.approx(2.5, rel=0.01)

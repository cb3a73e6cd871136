"""Scaling laws, embeddings, escape and saddles: training itself beside the flow, closed forms in other ways, and edges of the models."""

from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad

import odesim
from odesim.models.scaling._saddles import saddles
from odesim.models.scaling.claims import CORRELATED, TEACHERS, TOGETHER, volterra
from odesim.models.scaling.single_index import time_to
from odesim.models.scaling.word2vec import modes, target

FINE: dict[str, Any] = {"rtol": 1e-9, "atol": 1e-12, "backend": "numpy"}


def test_the_volterra_equation_is_solved_to_second_order() -> None:
    """Halving the step of the trapezoidal rule divides the error by four; ||K|| = .08, so that R is close to F."""
    R = [volterra(h, 4.0, n=30)[-1] for h in (0.4, 0.2, 0.1)]
    assert (R[0] - R[1]) / (R[1] - R[2]) == pytest.approx(4, rel=0.05)


@pytest.mark.parametrize("B", [1, 4])
def test_moments_of_three_inputs(B: int) -> None:
    """Exact moments of least squares after 40 steps of .05, as SGD itself has them: 20,000 runs, four standard errors.

    lam = 1, 1/4, 1/9: a = 1.
    """
    given: dict[str, Any] = {"params": {"g": 0.05, "B": B, "s2": 0.25, "b": 0.0}, "sizes": {"n": 3}}
    run = odesim.integrate("scaling.sgd_steps", **given, steps=40, save=2, backend="numpy")
    rng, root = np.random.default_rng(1), np.arange(1.0, 4) ** -1.0
    delta = np.ones((20_000, 3))
    for _ in range(40):
        x = rng.normal(size=(20_000, B, 3)) * root
        miss = np.einsum("rbi,ri->rb", x, delta) - 0.5 * rng.normal(size=(20_000, B))
        delta -= 0.05 * np.einsum("rb,rbi->ri", miss, x) / B
    square = delta**2
    assert np.all(np.abs(square.mean(axis=0) - run.final["D"]) < 4 * square.std(axis=0) / 20_000**0.5)


def test_the_target_of_words_is_a_bounded_mutual_information() -> None:
    """M = 2 tanh(PMI/2): PMI where it is small, and within (-2, 2)."""
    alone = np.outer(TOGETHER.sum(axis=1), TOGETHER.sum(axis=1))
    np.testing.assert_allclose(target(TOGETHER), 2 * np.tanh(np.log(TOGETHER / alone) / 2), atol=1e-14)


def test_the_loss_of_words_is_that_of_pairs() -> None:
    """With the weights G it is sum P (x^2/4 - x) + p p (x^2/4 + x) up to a constant: the same slope along a random way."""
    rng = np.random.default_rng(2)
    W, way = rng.normal(size=(2, 4, 2)) / 3
    p = TOGETHER.sum(axis=1)

    def loss(W: Any) -> float:
        x = W @ W.T
        return float((TOGETHER * (x**2 / 4 - x) + np.outer(p, p) * (x**2 / 4 + x)).sum())

    given: dict[str, Any] = {"params": {"P": TOGETHER, "flat": 0.0}, "sizes": {"d": 2}, "span": (0, 1e-6), "save": 2, "backend": "numpy"}
    ours = [
        odesim.integrate("scaling.word2vec", initial={"W": w}, **given).observables["loss"][0] for w in (W + 1e-4 * way, W - 1e-4 * way)
    ]
    assert ours[0] - ours[1] == pytest.approx(loss(W + 1e-4 * way) - loss(W - 1e-4 * way), rel=1e-8)


def test_directions_of_words_are_not_seen() -> None:
    """Turning all vectors alike turns the run: only W W^T has a meaning."""
    turn = np.linalg.qr(np.random.default_rng(3).normal(size=(3, 3)))[0]
    W = 0.1 * np.random.default_rng(4).normal(size=(4, 3))
    given: dict[str, Any] = {"params": {"P": TOGETHER, "flat": 0.4}, "span": (0, 3), "save": 3, **FINE}
    plain, turned = (odesim.integrate("scaling.word2vec", initial={"W": w}, **given).y["W"] for w in (W, W @ turn))
    np.testing.assert_allclose(plain @ turn, turned, atol=1e-7)


def test_what_is_opposed_is_never_learned() -> None:
    """Along the eigenvector of M with a negative eigenvalue the vectors shrink to 0."""
    m, U = modes(TOGETHER)
    run = odesim.integrate("scaling.word2vec", initial={"W": 0.5 * U[:, 3:]}, params={"P": TOGETHER}, span=(0, 2), save=2, **FINE)
    assert m[3] < 0 and np.abs(run.final["W"]).max() < 0.5 * np.exp(2 * m[3] * 2)


@pytest.mark.parametrize("k", [1, 2, 3, 4, 5, 6])
def test_the_time_of_passage_is_an_integral(k: int) -> None:
    """By quadrature."""
    want = quad(lambda m: 1 / (k * m ** (k - 1) * (1 - m**2)), 0.1, 0.9, epsabs=1e-12)[0]
    assert time_to(0.9, 0.1, k) == pytest.approx(want, rel=1e-10)


@pytest.mark.parametrize(("k", "end"), [(2, -1.0), (3, 0.0), (4, -1.0), (1, 1.0)])
def test_a_start_on_the_other_side(k: int, end: float) -> None:
    """From m = -.3 an even exponent finds -1, which has the same loss, an odd one stops at the equator, k = 1 crosses it."""
    run = odesim.integrate("scaling.single_index", initial={"m": -0.3}, params={"k": k}, span=(0, 3e5), save=2, **FINE)
    assert float(run.final["m"]) == pytest.approx(end, abs=1e-5)


def test_one_teacher_is_the_single_index() -> None:
    """Two directions of which one is a teacher: its overlap obeys the scalar equation."""
    given: dict[str, Any] = {"span": (0, 2), "save": 5, **FINE}
    m0 = [0.2, np.sqrt(0.96)]
    many = odesim.integrate("scaling.multi_index", params={"a": [1, 0], "m0": m0}, sizes={"n": 2}, **given)
    one = odesim.integrate("scaling.single_index", params={"d": 25}, **given)
    np.testing.assert_allclose(many.y["m"][:, 0], one.y["m"], atol=1e-8)


def test_spherical_sgd_leaves_the_equator_as_the_flow_does() -> None:
    """Phase retrieval, k = 2: online SGD on the sphere in 20 dimensions, step .001, 400 runs from m = .2, at t = .5, 1, 1.5.

    Below the flow by the order of step times dimension: 5 %. The correlation loss of the second Hermite part, y = (w*.x)^2 - 1, h(x) =
    ((w.x)^2 - 1)/2, has the mean -m^2.
    """
    rng, d, step = np.random.default_rng(6), 20, 1e-3
    w = np.zeros((400, d))
    w[:, 0], w[:, 1] = 0.2, np.sqrt(0.96)
    seen = []
    for n in range(1, 1501):
        x = rng.normal(size=w.shape)
        push = ((x[:, 0] ** 2 - 1) * (w * x).sum(axis=1))[:, None] * x
        w += step * (push - (push * w).sum(axis=1)[:, None] * w)
        w /= np.linalg.norm(w, axis=1)[:, None]
        if n % 500 == 0:
            seen.append(np.abs(w[:, 0]).mean())
    flow = odesim.integrate("scaling.single_index", params={"k": 2, "d": 25}, span=(0, 1.5), save=4, **FINE).y["m"][1:]
    np.testing.assert_allclose(flow, (0.4852, 0.8335, 0.9715), atol=5e-5)
    assert np.all(np.array(seen) < flow) and np.all(np.array(seen) > 0.93 * flow)


def test_the_winner_does_not_depend_on_a_common_factor() -> None:
    """All weights three times as large: the same way, three times as fast."""
    given: dict[str, Any] = {"save": 3, **FINE}
    slow = odesim.integrate("scaling.multi_index", params={"a": TEACHERS}, span=(0, 3), **given)
    fast = odesim.integrate("scaling.multi_index", params={"a": 3 * TEACHERS}, span=(0, 1), **given)
    np.testing.assert_allclose(slow.y["m"], fast.y["m"], atol=1e-7)


def test_jumps_without_correlations() -> None:
    """At 1/|c_i|, largest first, each to its own coefficient; a coefficient of 0 is never learned."""
    c = np.array([0.5, -2.0, 0.0, 1.0])
    found = saddles(np.eye(4), c)
    assert [tau for tau, _ in found] == pytest.approx([0.5, 1.0, 2.0])
    np.testing.assert_allclose(np.stack([beta for _, beta in found]), [[0.0, -2, 0, 0], [0.0, -2, 0, 1], [0.5, -2, 0, 1]], atol=1e-12)


def test_a_coefficient_may_be_turned_off_again() -> None:
    """Strong correlations: the first coefficient that is learned is 0 in the end, as least squares has it."""
    G = np.array([[1, 0.8, 0.8], [0.8, 1, 0.3], [0.8, 0.3, 1]])
    found = saddles(G, G @ [0.0, 1.0, 1.0])
    betas = np.array([beta for _, beta in found])
    assert betas[0, 0] > 1 and betas[-1] == pytest.approx([0, 1, 1], abs=1e-12)
    assert np.all(np.diff([tau for tau, _ in found]) > 0)


def test_gradient_descent_on_two_layers_follows_their_clock() -> None:
    """GD, learning rate .01, alpha = 1e-5, beside scaling.mirror: to the order of the rate, but for the second jump's steep part."""
    (G, c), alpha, rate = CORRELATED, 1e-5, 0.01
    S = np.log(1 / alpha)
    times = np.array([1.3, 3.0, 5.0, 8.0])
    u, v, seen = np.full(3, alpha), np.full(3, alpha), list[Any]()
    for n in range(1, round(8.0 * S / rate) + 1):
        slope = G @ (u**2 - v**2) / 2 - c
        u, v = u - rate * slope * u, v + rate * slope * v
        if len(seen) < 4 and n >= times[len(seen)] * S / rate - 0.5:
            seen.append((u**2 - v**2) / 2)
    run = odesim.integrate("scaling.mirror", params={"G": G, "c": c, "alpha": alpha}, span=(0, 8), save=[0, *times], **FINE)
    np.testing.assert_allclose(seen, run.observables["beta"][1:], atol=0.01)


def test_a_start_of_zero_stays() -> None:
    """u = v = 0 is a saddle of the layers."""
    run = odesim.integrate("scaling.diagonal", initial={"u": 0.0, "v": 0.0}, span=(0, 10), save=2, **FINE)
    assert np.all(run.final["u"] == 0) and np.all(run.observables["beta"] == 0)


def test_risks_of_another_program() -> None:
    """300 modes, a = 1, b = .8, g = .1, s2 = .01: the limit, the exact moments of SGD, and where the limit ends."""
    save: dict[str, Any] = {"sizes": {"n": 300}, "save": [0, 10, 100, 1000], "span": (0, 1000)}
    flow = odesim.integrate("scaling.sgd", **save, **FINE).observables["R"]
    steps = odesim.integrate("scaling.sgd_steps", **save, backend="numpy").observables["R"]
    np.testing.assert_allclose(flow[1:], (0.1231488154, 0.0106128618, 0.0056882347), atol=1e-9)
    np.testing.assert_allclose(steps[1:], (0.1264641, 0.0107142, 0.0057261), atol=6e-8)
    share = 0.05 * (np.arange(1.0, 301) ** -2).sum()
    assert share == pytest.approx(0.0820803, abs=6e-8) and 0.005 / (1 - share) == pytest.approx(0.0054470997, abs=6e-11)
    end = odesim.integrate("scaling.sgd", sizes={"n": 300}, span=(0, 1e8), save=2, method="rodas5p", rtol=1e-9, atol=1e-15)
    assert float(end.observables["R"][-1]) == pytest.approx(0.0054470997, abs=6e-11)


def test_the_first_saddles() -> None:
    """Of three correlated inputs, by another script."""
    betas = [beta for _, beta in saddles(*CORRELATED)]
    np.testing.assert_allclose(betas, [[0.91, 0, 0], [0.762637, 0, 0.491209], [1, -0.4, 0.5]], atol=6e-7)

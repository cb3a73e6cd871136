"""Stiff methods from starts that are 0 or tiny in most places: far from the front the components of a step fall below 1e-308."""

from typing import Any

import numpy as np
import pytest
from scipy.fft import dst, fft, idst, ifft
from scipy.integrate import solve_ivp
from scipy.linalg import expm
from scipy.sparse import diags_array
from scipy.stats import poisson

import odesim
from odesim.base.arrays import Array
from odesim.symbolic import IndexedBase, System, index, sizes
from tests.support.systems import SOURCE, param

STIFF = ("rodas4", "rodas5p")
(i,) = index("i")
(N,) = sizes("N")
u, a, b, c = (IndexedBase(name, shape=(N,)) for name in "uabc")
PARAMS = tuple(param(x) for x in (a, b, c))


def band(boundary: str) -> System:
    """Every place reads its neighbours, with coefficients of its own."""
    rate = a[i] * u[i - 1] + b[i] * u[i] + c[i] * u[i + 1]
    return System("test.band", SOURCE, {i: N}, {u[i]: rate}, PARAMS, {u[i]: 0}, boundary={i: boundary})


def end(system: System, start: Array, t1: float, params: Any, **options: Any) -> Array:
    """The state at t1 (N,). Steps that are refused one after another would end in max_steps."""
    options = {"max_steps": 500, **options, "sizes": {"N": len(start)}, "initial": {"u": start}}
    solution = odesim.integrate(system, params=params, span=(0, t1), **options)
    assert solution.status == "ok", solution.message
    return solution.y["u"][-1]


def assert_near(found: Array, want: Array) -> None:
    """Within ten tolerances of the defaults."""
    np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-8)


def starts(n: int) -> dict[str, Array]:
    """A constant, one place, and half of them."""
    places = np.arange(n)
    return {"one": np.ones(n), "delta": np.where(places == n // 2, 1.0, 0.0), "half": np.where(places < n // 2, 1.0, 0.0)}


def heat(boundary: str, start: Array, t: float) -> Array:
    """u' = N^2 (u[i - 1] - 2 u[i] + u[i + 1]) at t, by its modes: sines between ends at 0, waves on a ring."""
    n = len(start)
    if boundary == "zero":
        decay = np.exp(-4 * n**2 * np.sin(np.pi * np.arange(1, n + 1) / (n + 1) / 2) ** 2 * t)
        return np.asarray(idst(decay * dst(start, 1), 1))
    return np.asarray(ifft(np.exp(-4 * n**2 * np.sin(np.pi * np.arange(n) / n) ** 2 * t) * fft(start)).real)


@pytest.mark.parametrize("method", STIFF)
@pytest.mark.parametrize("start", starts(2))
@pytest.mark.parametrize("boundary", ["zero", "periodic"])
def test_heat(boundary: str, start: str, method: str) -> None:
    """Heat on 1000 cells is the sum of its modes."""
    n = 1000
    y0, square = starts(n)[start], float(n * n)
    found = end(band(boundary), y0, 1e-3, {"a": square, "b": -2 * square, "c": square}, method=method)
    assert_near(found, heat(boundary, y0, 1e-3))


@pytest.mark.parametrize("boundary", ["zero", "periodic"])
def test_auto(boundary: str) -> None:
    """The method auto finds that stability limits its steps, and takes the stiff ones to the end."""
    n, start = 1000, starts(1000)["delta"]
    square = float(n * n)
    found = end(band(boundary), start, 0.1, {"a": square, "b": -2 * square, "c": square})
    assert_near(found, heat(boundary, start, 0.1))


@pytest.mark.parametrize("method", STIFF)
def test_decay_chain(method: str) -> None:
    """A chain of 1000 decays at one rate holds the probabilities of a Poisson distribution."""
    found = end(band("zero"), np.where(np.arange(1000) == 0, 1.0, 0.0), 1.0, {"a": 100.0, "b": -100.0, "c": 0.0}, method=method)
    assert_near(found, poisson.pmf(np.arange(1000), 100.0))


@pytest.mark.parametrize("method", [*STIFF, "auto"])
def test_front(method: str) -> None:
    """A travelling front u' = u'' + u (1 - u) on 1000 cells is that of scipy's BDF at 1e-10."""
    n, start = 1000, starts(1000)["half"]
    rate = 2000 * (u[i - 1] - 2 * u[i] + u[i + 1]) + 50 * u[i] * (1 - u[i])
    front = System("test.front", SOURCE, {i: N}, {u[i]: rate}, (), {u[i]: 0}, boundary={i: "edge"})
    beside = np.ones(n - 1)
    D: Any = 2000.0 * diags_array([beside, -2 * np.ones(n), beside], offsets=[-1, 0, 1]).tolil()  # type: ignore[list-item]
    D[0, 0] = D[-1, -1] = -2000.0
    exact: Any = solve_ivp(
        lambda t, y: D @ y + 50 * y * (1 - y),
        (0, 0.1),
        start,
        "BDF",
        jac=lambda t, y: D + diags_array(50 - 100 * y),
        rtol=1e-10,
        atol=1e-13,
    )
    assert_near(end(front, start, 0.1, None, method=method, max_steps=2000), exact.y[:, -1])


@pytest.mark.parametrize("method", STIFF)
def test_weak_couplings(method: str) -> None:
    """Random bands whose couplings are far below the decay, from starts of all sizes down to 1e-300, have the exponential of their
    matrix."""
    n = 200
    for seed in range(3):
        rng = np.random.default_rng(seed)
        params = {name: 10.0 ** rng.uniform(-8, -2, n) * rng.choice([-1.0, 1.0], n) for name in "ac"}
        params["b"] = -(10.0 ** rng.uniform(2, 4, n))
        start = np.where(np.arange(n) == 0, 1.0, 0.0) if seed % 2 else 10.0 ** rng.uniform(-300, 0, n)
        A = np.diag(params["b"]) + np.diag(params["a"][1:], -1) + np.diag(params["c"][:-1], 1)
        assert_near(end(band("zero"), start, 0.01, params, method=method), expm(0.01 * A) @ start)

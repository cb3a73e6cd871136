"""Rest states of thousands of states: chains and rings with known eigenvalues, scipy's sparse solution, small systems written large.

Where the Jacobian is too large to be written down, or its factors are, there are its products: the laws hold that way too.
"""

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import brentq
from scipy.sparse.linalg import spsolve
from sympy import Interval, Max, Naturals0, Sum, exp, oo, sin, symbols, tanh

import odesim
from odesim.dynamics.field import Field
from odesim.dynamics.large import filled
from odesim.dynamics.leading import LEADING
from odesim.ir.linear_systems import Pattern
from odesim.symbolic import IndexedBase, Invariant, Map, Param, Source, System, index, over, sizes

SOURCE = Source("none", "made for the tests")
REAL = Interval(-oo, oo)
(i, j), (N,) = index("i j"), sizes("N")
u, s = IndexedBase("u", shape=(N,)), IndexedBase("s", shape=(N,))
D = symbols("D", real=True)
NUMBER, FEW = 2500, 50
"""More states than are written as a dense matrix, and so many where products are tested."""
WAYS = ("elimination", "products", "filled")
WIDTH = Param(D, 1.0, REAL, "diffusion")


def system(equation, *, n=NUMBER, boundary="periodic", start=0.5, kind=System, **more):
    """The System u[i]' = equation on a ring of n, over a short time."""
    times = {} if kind is Map else {"span": (0.0, 0.1)}
    return kind(
        "test.large",
        SOURCE,
        {i: N},
        {u[i]: equation},
        more.pop("params", ()),
        {u[i]: start},
        sizes={N: n},
        boundary={i: boundary},
        **times,
        **more,
    )


SPREAD = D * (u[i - 1] - 2 * u[i] + u[i + 1])
ALLEN_CAHN = system(SPREAD + u[i] - u[i] ** 3, params=(WIDTH,))


def force(way, monkeypatch):
    """Has rest states of any number of states be searched for in this way."""
    for module in ("odesim.dynamics.rest", "odesim.dynamics.large"):
        monkeypatch.setattr(f"{module}.MOST_STATES", 0)
    if way == "products":
        monkeypatch.setattr(Field, "matrix_free", True)
    if way == "filled":
        monkeypatch.setattr("odesim.dynamics.large.MOST_FILLED", -1)


@pytest.fixture(params=WAYS)
def n(request, monkeypatch):
    """The number of states of a system that is solved by elimination, or by products."""
    if request.param == "elimination":
        return NUMBER
    force(request.param, monkeypatch)
    return FEW


def of_ring(n, d):
    """The eigenvalues (n,) of the second difference on a ring, the largest first."""
    return np.sort(-4 * d * np.sin(np.pi * np.arange(n) / n) ** 2)[::-1]


@pytest.mark.parametrize("n", [NUMBER, pytest.param(5000, marks=pytest.mark.slow), pytest.param(20_000, marks=pytest.mark.slow)])
def test_uniform_states_of_a_ring(n):
    """u and D u_xx + u - u^3 on a ring: 0 is a saddle with the eigenvalues 1 - 4 D sin^2(pi k / N), +-1 are stable with -2 - those."""
    found = odesim.rest(ALLEN_CAHN, params={"D": 0.7}, sizes={"N": n}, vary={"u": np.outer([-0.8, 0.01, 0.9], np.ones(n))})
    levels = found["u"].values
    assert sorted(levels[:, 0].round(12).tolist()) == [-1, 0, 1] and np.ptp(levels, axis=1) == pytest.approx(0, abs=1e-12)
    for k, level in enumerate(levels[:, 0]):
        known = 1 - 3 * level**2 + of_ring(n, 0.7)
        np.testing.assert_allclose(found["eigenvalue_real"].values[k], known[:LEADING], rtol=0, atol=1e-12)
        assert str(found["stability"].values[k]) == ("saddle" if abs(level) < 0.5 else "stable")
        assert found["index"].values[k] == np.sum(known > 0)


SOURCES = Param(s, 0.0, REAL, "sources")


def test_heat_with_sources(n):
    """D u_xx + s between ends at 0: the state is scipy's, the eigenvalues are -4 sin^2(pi k / (2 (N + 1)))."""
    model, sources = system(SPREAD + s[i], n=n, params=(WIDTH, SOURCES), boundary="zero"), np.sin(np.arange(n))
    found = odesim.rest(model, params={"s": sources})
    known = spsolve(sparse.diags_array([1.0, -2.0, 1.0], offsets=[-1, 0, 1], shape=(n, n)).tocsc(), -sources)
    np.testing.assert_allclose(found["u"].values, [known], atol=1e-9)  # rounding times N^2 / 10, the inverse of the slowest eigenvalue
    modes = -4 * np.sin(np.pi * np.arange(1, LEADING + 1) / (2 * (n + 1))) ** 2
    np.testing.assert_allclose(found["eigenvalue_real"].values, [modes], rtol=1e-6)
    assert found["stability"].values.tolist() == ["stable"] and found["index"].values.tolist() == [0]


@pytest.mark.parametrize("declared", [True, False])
def test_a_singular_jacobian(declared, n):
    """Heat on a ring rests on a line: the declared sum picks the state and leaves out its 0, without it the line is neutral."""
    laws = (Invariant("mass", Sum(u[i], (i, 0, N - 1)), "constant"),) * declared
    model, sources = system(SPREAD + s[i], n=n, params=(WIDTH, SOURCES), invariants=laws), np.sin(np.arange(n))
    found = odesim.rest(model, params={"s": sources - sources.mean()})
    assert found["u"].values.mean() == pytest.approx(0.5, abs=1e-9)  # a correction of least norm has no part along the line either
    modes = of_ring(n, 1.0)[declared:][:LEADING]
    np.testing.assert_allclose(found["eigenvalue_real"].values, [modes], rtol=1e-6, atol=1e-12)
    assert found["stability"].values.tolist() == ["stable" if declared else "neutral"]


@pytest.mark.parametrize("unit", [1e-9, 1e-30])
def test_a_unit_changes_no_digits(n, unit):
    """The middle of u' = (u - 1)(u - 3)(5 - u) on a ring is found to rounding in any unit, and f' = 4 there is not rounding."""
    found = odesim.rest(system((u[i] - unit) * (u[i] - 3 * unit) * (5 * unit - u[i]) / unit**2, start=2.8 * unit), sizes={"N": n})
    np.testing.assert_allclose(found["u"].values[0] / unit, 3, rtol=1e-12)
    assert found["stability"].values[0] in ("unstable", "unknown")  # products alone need not tell that all 50 grow


def test_sources_that_do_not_cancel_have_no_rest_state(n):
    """Heat on a ring grows for ever: least squares of what cannot be met are no rest state."""
    found = odesim.rest(system(SPREAD + s[i], n=n, params=(WIDTH, SOURCES)), params={"s": np.sin(np.arange(n)) + 0.1})
    assert found.sizes["rest"] == 0 and found.attrs["failed"] == found.attrs["starts"]


def test_a_mean_field(n):
    """-2 u + 3/2 mean(u) + s: mean(s) / (2 - 3/2) is the mean, the eigenvalues are -1/2 and else -2."""
    sources = np.sin(np.arange(n))
    model = system(-2 * u[i] + 3 * over(Sum, u[j], (j, N)) / N / 2 + s[i], n=n, params=(SOURCES,))
    found = odesim.rest(model, params={"s": sources})
    np.testing.assert_allclose(found["u"].values, [(sources + 3 * sources.mean()) / 2], atol=1e-12)
    assert found["eigenvalue_real"].values[0] == pytest.approx([-0.5, *[-2] * (LEADING - 1)], abs=1e-12)


def test_waves_grow_together(n):
    """u' = a u + c (u[i+1] - u[i-1]) turns: the eigenvalues a + 2 c i sin(2 pi k / N) all grow at one rate, and none decays."""
    found = odesim.rest(system(u[i] / 10 + u[i + 1] - u[i - 1], n=n))
    assert found["eigenvalue_real"].values == pytest.approx(np.full((1, LEADING), 0.1), abs=1e-9)
    assert found["stability"].values.tolist() == ["unknown"] and np.isnan(found["index"].values).all()


def test_multipliers_of_a_large_map(n):
    """Euler's step of 0.1: the multipliers at 1 are 1 + 0.1 times the eigenvalues."""
    step = system(u[i] + (SPREAD + u[i] - u[i] ** 3) / 10, n=n, params=(WIDTH,), kind=Map, start=0.9)
    found = odesim.rest(step, steps=20)
    assert found["eigenvalue_real"].values[0] == pytest.approx(1 + (of_ring(n, 1.0)[:LEADING] - 2) / 10, abs=1e-9)
    assert found["stability"].values.tolist() == ["stable"]


def test_every_node_of_joma_comes_to_its_own():
    """v = mu for 5000 components, with the rates exp(mu^2 / 2): all are known, the slowest six are shown."""
    mu = 1 + np.arange(5000) / 5000
    found = odesim.rest("joma.nonlinear", sizes={"M": 5000}, params={"mu": mu}, vary={"v": np.outer([0.9], mu)})
    np.testing.assert_allclose(found["v"].values, [mu], rtol=1e-12)
    np.testing.assert_allclose(found["eigenvalue_real"].values[0], -np.exp(mu[:LEADING] ** 2 / 2), rtol=1e-10)
    assert found["index"].values.tolist() == [0]


@pytest.mark.parametrize("equation", [exp(-u[i]), 1 - 1 / (1 + exp(-u[i])), SPREAD + exp(-u[i])], ids=["tail", "rounding", "coupled"])
def test_what_fades_does_not_rest(equation, n):
    """However small, also where the slope is rounding beside the spread."""
    found = odesim.rest(
        system(equation, n=n, params=(WIDTH,) if equation.has(D) else ()), vary={"u": np.outer([10.0, 24.0, 28.0], np.ones(n))}
    )
    assert found.sizes["rest"] == 0 and found.attrs["failed"] == 3


def test_a_law_that_bends(n):
    """Rayleigh's flow u_i' = u_i (c_i - sum c u^2 / sum u^2) keeps |u| and rests at |u| times an axis, with the eigenvalues c_i - c_k."""
    rayleigh = over(Sum, s[j] * u[j] ** 2, (j, N)) / over(Sum, u[j] ** 2, (j, N))
    law = Invariant("length", over(Sum, u[i] ** 2, (i, N)), "constant")
    c = 1 / (1 + np.arange(n))
    start = np.where(np.arange(n) == 1, 2.0, 1e-4)
    found = odesim.rest(
        system(u[i] * (s[i] - rayleigh), n=n, params=(SOURCES,), invariants=(law,)), params={"s": c}, vary={"u": start[None]}
    )
    assert found["u"].values[0, 1] == pytest.approx(np.linalg.norm(start), rel=1e-10)
    assert np.delete(found["u"].values[0], 1) == pytest.approx(0, abs=1e-10)
    leading = np.delete(c - c[1], 1)[:LEADING]
    assert found["eigenvalue_real"].values[0] == pytest.approx(leading, abs=1e-9)
    assert found["stability"].values.tolist() == ["saddle"] and found["index"].values.tolist() == [1]


@pytest.mark.parametrize("way", WAYS)
def test_a_way_is_the_dense_one(way, monkeypatch):
    """Of 60 states weakly coupled, near a pattern of signs, and two of signs and zeros, it finds what dense matrices find."""
    rng, n = np.random.default_rng(0), 60
    signs = rng.choice([-1.0, 1.0], n)
    starts = np.array([0.95 * np.where(np.arange(n) < zeros, 0.0, signs) for zeros in (0, 3, 5)])

    def found():
        return odesim.rest(ALLEN_CAHN, sizes={"N": n}, params={"D": 0.05}, vary={"u": starts})

    dense = found()
    force(way, monkeypatch)
    wide = found()
    assert sorted(dense["index"].values.tolist()) == [0, 3, 5] and wide.sizes["mode"] == LEADING
    a, b = np.argsort(dense["index"].values), np.argsort(wide["index"].values)
    np.testing.assert_allclose(wide["u"].values[b], dense["u"].values[a], atol=1e-12)
    np.testing.assert_array_equal(wide["index"].values[b], dense["index"].values[a])
    np.testing.assert_allclose(wide["eigenvalue_real"].values[b], dense["eigenvalue_real"].values[a, :LEADING], atol=1e-12)
    assert wide["stability"].values[b].tolist() == dense["stability"].values[a].tolist()


K = symbols("K", real=True)
KURAMOTO = system(K * over(Sum, sin(u[j] - u[i]), (j, N)) / N, params=(Param(K, 1.0, REAL, "coupling"),))


@pytest.mark.parametrize("n", [FEW, pytest.param(5001, marks=pytest.mark.slow), pytest.param(10_000, marks=pytest.mark.slow)])
def test_two_groups_of_oscillators(n, monkeypatch):
    """Pairs of K sin(u[j] - u[i]) / N rest with some of N half a turn away: the eigenvalues K, 0, K m (one less than they are) and -K m.

    Where m is the mean of the signs s: the Jacobian is K s s^T / N less K m s on its diagonal.
    """
    if n == FEW:
        force("products", monkeypatch)
    signs = np.where(np.arange(n) < 3, -1.0, 1.0)
    start = np.pi * (signs < 0) + 1e-3 * np.random.default_rng(0).standard_normal(n)
    found = odesim.rest(KURAMOTO, sizes={"N": n}, params={"K": 2.0}, vary={"u": start[None]})
    turned = np.mod(found["u"].values[0] - start.mean() + np.pi / 2, 2 * np.pi) - np.pi / 2
    np.testing.assert_allclose(np.ptp(turned[3:]), 0, atol=1e-9)
    np.testing.assert_allclose(turned[:3] - turned[-1], np.pi, atol=1e-9)
    assert found["u"].values.sum() == pytest.approx(start.sum(), abs=1e-9)  # no pair changes it, and so does no correction of least norm
    m = signs.mean()
    np.testing.assert_allclose(found["eigenvalue_real"].values[0], [2, 2 * m, 2 * m, 0, -2 * m, -2 * m], atol=1e-10)
    assert found["stability"].values.tolist() == ["saddle"] and found["index"].values.tolist() == [3]


@pytest.mark.parametrize("n", [FEW, pytest.param(5001, marks=pytest.mark.slow)])
def test_a_dense_matrix_of_couplings(n, monkeypatch):
    """-u + tanh(W u), all of W 3/2 / N: at u = tanh(3/2 u) the eigenvalues are 3/2 (1 - u^2) - 1 and else -1."""
    if n == FEW:
        force("products", monkeypatch)
    W = IndexedBase("W", shape=(N, N))
    model = system(-u[i] + tanh(over(Sum, W[i, j] * u[j], (j, N))), params=(Param(W, 0.0, REAL, "couplings"),))
    starts = np.outer([0.01, 0.9], np.ones(n)) + 1e-3 * np.random.default_rng(0).standard_normal((2, n))
    found = odesim.rest(model, sizes={"N": n}, params={"W": np.full((n, n), 1.5 / n)}, vary={"u": starts}).sortby("index")
    level = brentq(lambda x: x - np.tanh(1.5 * x), 0.1, 1, xtol=1e-15)
    np.testing.assert_allclose(found["u"].values, np.outer([level, 0], np.ones(n)), atol=1e-12)
    first = [1.5 * (1 - level**2) - 1, 0.5]
    np.testing.assert_allclose(found["eigenvalue_real"].values, [[x, *[-1] * (LEADING - 1)] for x in first], atol=1e-10)
    assert found["stability"].values.tolist() == ["stable", "saddle"]


@pytest.mark.parametrize("n", [200, pytest.param(30_000, marks=pytest.mark.slow)])
def test_a_random_graph_fills_the_factors(n, monkeypatch):
    """u - u^3 + the differences to three random nodes: at 0 and 1 the sum over all grows with 1 and -2, and nothing grows faster."""
    (k,), (M,) = index("k"), sizes("M")
    nodes = IndexedBase("nodes", shape=(N, M), integer=True)
    if n == 200:
        force("filled", monkeypatch)
    rng = np.random.default_rng(0)
    graph = np.stack([rng.permutation(n) for _ in range(3)], axis=1)  # as many come to each node as go
    model = System(
        "test.graph", SOURCE, {i: N, k: M}, {u[i]: u[i] - u[i] ** 3 + over(Sum, u[nodes[i, k]] - u[i], (k, M))},
        (Param(nodes, 0, Naturals0, "of each its neighbours", indexes=N, cover=False),), {u[i]: 0.5}, sizes={N: 5, M: 3}, span=(0.0, 0.1),
    )  # fmt: skip
    starts = np.outer([0.01, 0.9], np.ones(n)) + 1e-3 * rng.standard_normal((2, n))
    found = odesim.rest(model, sizes={"N": n, "M": 3}, params={"nodes": graph}, vary={"u": starts})
    order = np.argsort(found["u"].values[:, 0])
    np.testing.assert_allclose(found["u"].values[order], np.outer([0, 1], np.ones(n)), atol=1e-12)
    np.testing.assert_allclose(found["eigenvalue_real"].values[order, 0], [1, -2], atol=1e-10)
    assert found["stability"].values[order].tolist() == ["saddle", "stable"]


@pytest.mark.parametrize(("n", "parts"), [(400, 1), (400, 2), pytest.param(2100, 1, marks=pytest.mark.slow)])
def test_one_eigenvalue_apart_from_a_disc(n, parts, monkeypatch):
    """-x + J times the sum of tanh at four random nodes: that of ones is -1 + 4 J tanh', once in each part, the others fill a disc."""
    (k,), (M,) = index("k"), sizes("M")
    J, drive = symbols("J drive", real=True)
    nodes = IndexedBase("nodes", shape=(N, M), integer=True)
    if n == 400:
        force("elimination", monkeypatch)
        monkeypatch.setattr("odesim.dynamics.leading.RESTARTS", 2)  # a disc of few eigenvalues is found after more
    rng = np.random.default_rng(2)
    half = n // parts
    graph = np.stack([np.concatenate([half * p + rng.permutation(half) for p in range(parts)]) for _ in range(4)], axis=1)
    model = System(
        "test.disc", SOURCE, {i: N, k: M}, {u[i]: -u[i] + J * over(Sum, tanh(u[nodes[i, k]]), (k, M)) + drive},
        (
            Param(nodes, 0, Naturals0, "of each its neighbours", indexes=N, cover=False), Param(J, 0.27, REAL, "coupling"),
            Param(drive, 0.0, REAL, "drive"),
        ),
        {u[i]: 0.0}, sizes={N: 5, M: 4}, span=(0.0, 0.1),
    )  # fmt: skip
    for j, h, kind in ((0.27, 0.0, "saddle"), (0.1, 1.0, "stable")):
        one = brentq(lambda x, j=j, h=h: -x + 4 * j * np.tanh(x) + h, -0.1 if h == 0 else 1.0, 0.05 if h == 0 else 2.0, xtol=1e-15)
        start = np.full(n, one)
        values = odesim.rest(model, sizes={"N": n, "M": 4}, params={"nodes": graph, "J": j, "drive": h}, vary={"u": start[None]})
        top = -1 + 4 * j / np.cosh(one) ** 2
        np.testing.assert_allclose(values["eigenvalue_real"].values[0, :parts], top, atol=1e-10)
        # the disc has about the radius 2 J tanh', half of what the ones have
        assert values["eigenvalue_real"].values[0, parts] < -1 + 0.6 * (top + 1)
        assert (values["stability"].item(), values["index"].item()) == (kind, parts if top > 0 else 0)


def test_the_profile_says_where_factors_fill_up():
    """A square of nodes has the profile of its width at each node, a random graph a part of all pairs; a full row does not count."""
    k, rng = 60, np.random.default_rng(0)
    grid = np.arange(k * k).reshape(k, k)
    along = np.concatenate([grid[1:].ravel(), grid[:, 1:].ravel()]), np.concatenate([grid[:-1].ravel(), grid[:, :-1].ravel()])
    square = filled(Pattern(k * k, k * k, *along))
    full = filled(
        Pattern(k * k, k * k + 1, *(np.concatenate([a, b]) for a, b in zip(along, (np.full(k * k, k * k), grid.ravel()), strict=True)))
    )
    graph = filled(Pattern(k * k, k * k, np.tile(np.arange(k * k), 3), rng.integers(0, k * k, 3 * k * k)))
    assert full == square <= k**3 and graph > 0.1 * k**4


def test_the_table_says_what_was_computed():
    """The leading eigenvalues are called so, and what is not known is a question mark."""
    from odesim.cli.dynamics import rest_text

    text = rest_text(odesim.rest(system(u[i] / 10 + u[i + 1] - u[i - 1])), [])
    assert "the 6 leading ones" in text and " ? " in text and max(map(len, text.splitlines())) <= 80, text


@pytest.mark.parametrize(("equation", "kind"), [(Max(u[i], 0) / 2 - u[i], "unknown"), (u[i] * abs(u[i]) - u[i], "stable")])
def test_at_a_kink_no_stability_is_known(equation, kind):
    """As of few states: the Jacobian of one side says nothing of the other, and that of a bend does not jump."""
    at_rest = odesim.rest(system(equation, start=0.1))
    assert at_rest["stability"].values.tolist() == [kind]
    assert np.isnan(at_rest["index"].values).tolist() == [kind == "unknown"]

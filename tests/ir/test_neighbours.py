"""Neighbours x[i + 1] with their boundaries: right-hand sides, Jacobians, conservation laws, members, formulas."""

from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy import special
from sympy import KroneckerDelta, Naturals0, Piecewise, Sum, asin, cos, exp, log, pi, sin, sqrt, symbols

import odesim
from odesim.base.errors import ParamError, SpecError
from odesim.display.formulas import equations_text, latex
from odesim.ir.derive import directional_derivative, jvp
from odesim.ir.linear_systems import Sparse
from odesim.symbolic import Event, IndexedBase, Invariant, Map, Param, System, grad, gradient_flow, index, named, over, sizes, xlogy
from odesim.targets import linearization
from odesim.targets.compiled import compile_system
from odesim.targets.numpy_text import evaluate
from odesim.transforms.clock import rate_direction
from tests.support.products import backward, forward, jacobian, rates
from tests.support.systems import SOURCE, param

(i, j), (N,) = index("i j"), sizes("N")
heat, lorenz, wind, far = (IndexedBase(name, shape=(N,)) for name in ("heat", "lorenz", "wind", "far"))
c = symbols("c", real=True)
BEYOND = {"periodic": "wrap", "zero": "constant", "edge": "edge"}  # {boundary: mode of numpy.pad}
START = {"heat": sin(1.0 + i), "lorenz": 1.0 + sin(2.0 * i), "wind": exp(-((i - 2.0) ** 2)), "far": 0.1 * i}


@cache
def system(kind: str, **more: Any) -> System:
    """The heat equation, Lorenz-96, upwind transport, and steps longer than the axis with a sum of neighbours."""
    return System(
        name=f"test.{kind}", source=SOURCE, axes={i: N}, boundary={i: kind, j: kind}, params=(param(c),), sizes={N: 5},
        equations={
            heat[i]: c * (heat[i + 1] - 2 * heat[i] + heat[i - 1]),
            lorenz[i]: (lorenz[i + 1] - lorenz[i - 2]) * lorenz[i - 1] - lorenz[i] + 8,
            wind[i]: -c * (wind[i] - wind[i - 1]),
            far[i]: exp(-far[i + 7]) * heat[i - 11] - far[i] * over(Sum, wind[j - 1] * far[j] * far[j + 2], (j, N)),
        },
        initial={x[i]: START[str(x)] for x in (heat, lorenz, wind, far)}, **more,
    )  # fmt: skip


def by_padding(kind: str, y: np.ndarray, c: float) -> np.ndarray:
    """The same right-hand side by numpy.pad."""
    heat, lorenz, wind, far = y.reshape(4, -1)

    def at(x: np.ndarray, shift: int) -> np.ndarray:
        return np.pad(x, 12, mode=BEYOND[kind])[12 + shift : 12 + shift + len(x)]  # type: ignore[call-overload,no-any-return]

    return np.concatenate([
        c * (at(heat, 1) - 2 * heat + at(heat, -1)), (at(lorenz, 1) - at(lorenz, -2)) * at(lorenz, -1) - lorenz + 8,
        -c * (wind - at(wind, -1)), np.exp(-at(far, 7)) * at(heat, -11) - far * np.sum(at(wind, -1) * far * at(far, 2)),
    ])  # fmt: skip


@pytest.mark.parametrize("n", [1, 2, 5])
@pytest.mark.parametrize("backend", ["numpy", "numba"])
@pytest.mark.parametrize("kind", BEYOND)
def test_right_side(kind: str, backend: str, n: int) -> None:
    """That of numpy.pad, to rounding, also where a step is longer than the axis."""
    y = np.random.default_rng(n).normal(size=4 * n)
    np.testing.assert_allclose(rates(system(kind), {"N": n}, {"c": 0.7}, y, backend), by_padding(kind, y, 0.7), rtol=1e-12, atol=1e-13)


@pytest.mark.first(1)
@pytest.mark.parametrize("n", [1, 2, 5])
@pytest.mark.parametrize("kind", BEYOND)
def test_jacobian(kind: str, n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dense, sparse, and both products are central differences: 1e-6^2 of truncation and 1e-16/1e-6 of rounding leave 1e-8."""
    y, w = np.random.default_rng(n).normal(size=(2, 4 * n))
    differences = np.array([by_padding(kind, y + 1e-6 * e, 0.7) - by_padding(kind, y - 1e-6 * e, 0.7) for e in np.eye(4 * n)]).T / 2e-6
    bound = compile_system(system(kind)).bind({"N": n}, {"c": 0.7})
    np.testing.assert_allclose(jacobian(bound, 0.0, y).dense(), differences, atol=1e-7)
    monkeypatch.setattr(linearization, "MOST_DENSE", 0)
    J = jacobian(bound, 0.0, y)
    assert isinstance(J, Sparse)
    np.testing.assert_allclose(J.dense(), differences, atol=1e-7)
    x = J.solver(50.0)(w)
    np.testing.assert_allclose(50.0 * x - J @ x, w, rtol=1e-12)
    np.testing.assert_allclose(forward(bound, 0.0, y, w), differences @ w, atol=1e-6)
    np.testing.assert_allclose(backward(bound, 0.0, y, w), w @ differences, atol=1e-6)


def test_a_sparse_jacobian_is_found() -> None:
    """20,000 cells take a stiff step in time of order N: three entries a row, and the first mode decays as it must."""
    n = 20_000
    mode = np.sin(np.pi * np.arange(1, n + 1) / (n + 1))
    only = System(
        name="test.rod", source=SOURCE, axes={i: N}, boundary={i: "zero"}, params=(param(c),), sizes={N: n},
        equations={heat[i]: c * N**2 * (heat[i + 1] - 2 * heat[i] + heat[i - 1])}, initial={heat[i]: 0.0},
    )  # fmt: skip
    run = odesim.integrate(only, method="rodas5p", backend="numpy", initial={"heat": mode}, params={"c": 0.1}, span=(0, 1), rtol=1e-8)
    rate = 0.1 * (2 * n * np.sin(np.pi / 2 / (n + 1))) ** 2
    np.testing.assert_allclose(run.y["heat"][-1], np.exp(-rate) * mode, atol=1e-7)  # 10 * rtol
    assert len(jacobian(compile_system(only).bind({"N": n}, {"c": 0.1}), 0.0, mode).entries) == 3 * n - 2


def test_a_ring_conserves() -> None:
    """Heat and mass on a ring, and the energy of Lorenz-96 without forcing and friction: constant along a run, to its tolerance."""
    ring = System(
        name="test.ring", source=SOURCE, axes={i: N}, boundary={i: "periodic"}, params=(param(c),), sizes={N: 6},
        equations={
            heat[i]: c * (heat[i + 1] - 2 * heat[i] + heat[i - 1]), wind[i]: -c * (wind[i] - wind[i - 1]),
            lorenz[i]: (lorenz[i + 1] - lorenz[i - 2]) * lorenz[i - 1],
        },
        initial={x[i]: START[str(x)] for x in (heat, lorenz, wind)},
        invariants=(
            Invariant("heat", over(Sum, heat[i], (i, N)), "constant"), Invariant("mass", over(Sum, wind[i], (i, N)), "constant"),
            Invariant("energy", over(Sum, lorenz[i] ** 2, (i, N)), "constant"),
        ),
    )  # fmt: skip
    run = odesim.integrate(ring, method="dop853", rtol=1e-10, atol=1e-12, span=(0, 2))
    for law, tolerance in (("heat", 1e-13), ("mass", 1e-13), ("energy", 1e-8)):  # every stage conserves what is linear
        worst = run.invariants[law]
        assert worst is not None and worst < tolerance


@pytest.mark.slow
def test_members_have_the_bits_of_runs() -> None:
    """An ensemble in lanes, strict: each member is its run."""
    small = System(
        name="test.cells", source=SOURCE, axes={i: N}, boundary={i: "edge"}, params=(param(c),), sizes={N: 2},
        equations={lorenz[i]: c * (lorenz[i + 1] - lorenz[i - 2]) * lorenz[i - 1] - lorenz[i] + 8}, initial={lorenz[i]: 1.0 + 2 * i},
    )  # fmt: skip
    options: dict[str, Any] = {"strict": True, "method": "euler", "step": 0.05, "span": (0, 0.5), "save": 3}
    members = odesim.ensemble(small, params={"c": [0.3, 0.9]}, **options)
    for k, value in enumerate((0.3, 0.9)):
        one = odesim.integrate(small, params={"c": value}, **options)
        np.testing.assert_array_equal(members["lorenz"][k], one.y["lorenz"])


def test_a_typed_neighbour() -> None:
    """An event on neighbours: cell 1 passes cell 0 where its start says. Without a boundary it is refused."""
    falling = System(
        name="test.falling", source=SOURCE, axes={i: N}, equations={heat[i]: -i + 0 * heat[i]}, params=(), initial={heat[i]: 0.25 * i},
        sizes={N: 3}, boundary={i: "edge"},
    )  # fmt: skip
    run = odesim.integrate(falling, events="passes: heat[i] - heat[i + 1]; direction up")
    np.testing.assert_allclose([event["t"] for event in run.events["passes"]], [0.25, 0.25], atol=1e-9)
    plain = System(
        name="test.plain", source=SOURCE, axes={i: N}, equations={heat[i]: -heat[i]}, params=(), initial={heat[i]: 1.0}, sizes={N: 3}
    )
    with pytest.raises(ParamError, match=r"what stands beyond the ends of i: its System needs boundary=\{i: \.\.\.\}"):
        odesim.integrate(plain, events="up: heat[i + 1]")
    with pytest.raises(ParamError, match=r"a whole number is missing: write i \+ 1"):
        odesim.integrate(system("zero"), events="up: heat[i + j]")


def test_a_map_of_neighbours() -> None:
    """Rule 90 on a ring: the next state is the sum modulo 2 of the neighbours; exact."""
    rule = Map(
        "test.rule", SOURCE, {i: N}, {far[i]: far[i - 1] + far[i + 1] - 2 * far[i - 1] * far[i + 1]}, (), {far[i]: 0.0}, {N: 8}, steps=5,
        boundary={i: "periodic"},
    )  # fmt: skip
    cells = np.array([0.0, 0, 0, 1, 0, 0, 1, 0])
    run = odesim.integrate(rule, initial={"far": cells}, save=5)
    for _ in range(5):
        cells = (np.roll(cells, 1) + np.roll(cells, -1)) % 2
    np.testing.assert_array_equal(run.y["far"][-1], cells)


@pytest.mark.parametrize("kind", BEYOND)
def test_gradient_of_a_loss(kind: str) -> None:
    """-dE/du of the elastic energy of a chain, by central differences of the energy."""
    energy = over(Sum, (heat[j + 1] - heat[j]) ** 2 / 2 + exp(heat[j - 2] * heat[j]), (j, N))
    flow = System(
        name=f"test.chain_{kind}", source=SOURCE, axes={i: N}, params=(), initial={heat[i]: 0.0},
        equations=gradient_flow(energy, {heat[i]: 1}, boundary={j: kind}),
    )  # fmt: skip

    def value(u: np.ndarray) -> float:
        padded = np.pad(u, 3, mode=BEYOND[kind])  # type: ignore[call-overload]
        return float(np.sum((padded[4 : 4 + len(u)] - u) ** 2 / 2 + np.exp(padded[1 : 1 + len(u)] * u)))

    for n in (1, 2, 5):
        u, out = np.random.default_rng(n).normal(size=n) / 2, np.empty(n)
        out[:] = compile_system(flow, backend="numpy").arrays({"N": n}, {"heat": u, "t": 0.0})["d_heat"]
        np.testing.assert_allclose(out, [-(value(u + 1e-6 * e) - value(u - 1e-6 * e)) / 2e-6 for e in np.eye(n)], atol=1e-8)
    with pytest.raises(SpecError, match=r"what stands beyond the ends of j\? Say it by boundary=\{j: \.\.\.\} with 'periodic'"):
        grad(energy, heat[i])


def test_formulas_show_neighbours_as_they_are_written() -> None:
    assert "dlorenz[i]/dt = 8 + lorenz[i - 1]*(lorenz[i + 1] - lorenz[i - 2]) - lorenz[i]" in equations_text(system("zero"))
    assert r"{\mathrm{lorenz}}_{i - 1} \, \left({\mathrm{lorenz}}_{i + 1} - {\mathrm{lorenz}}_{i - 2}\right)" in latex(system("zero"))


@pytest.mark.slow
def test_an_event_resets_by_neighbours() -> None:
    """Each cell that reaches 1 takes the mean of its neighbours, which stay."""
    growing = System(
        name="test.growing", source=SOURCE, axes={i: N}, boundary={i: "periodic"}, params=(), sizes={N: 3}, span=(0, 0.6),
        equations={heat[i]: 1 + 0 * heat[i]}, initial={heat[i]: 0.5 * i / N},
        events=(Event("full", heat[i] - 0.75, 1, resets={heat[i]: (heat[i - 1] + heat[i + 1]) / 2}),),
    )  # fmt: skip
    run = odesim.integrate(growing)  # cell 2 is full at 5/12, with 5/12 and 7/12 beside it; cell 1 at 7/12, with 7/12 and 2/3
    np.testing.assert_allclose(run.y["heat"][-1], np.array([7 / 12, 5 / 8, 2 / 3]) + 0.6 - 7 / 12, atol=1e-6)


@pytest.mark.parametrize("kind", BEYOND)
def test_rates_of_neighbours(kind: str) -> None:
    """The rescaled clock's derivative of sum u[i, j] (u[i + 1, j] + u[i + 1, j + 1]) along solutions of u' = 1 + u^2 + u[i + 1, j + 1].

    Beyond an end, of one axis or of both, 0 does not move.
    """
    u = IndexedBase("u", shape=(N, N))
    growth = over(Sum, u[i, j] * (u[i + 1, j] + u[i + 1, j + 1]), (i, N), (j, N))
    s = System(
        name="test.growth", source=SOURCE, axes={i: N, j: N}, boundary={i: kind, j: kind}, params=(), initial={u[i, j]: 1.0}, sizes={N: 3},
        equations={u[i, j]: 1 + u[i, j] ** 2 + u[i + 1, j + 1]}, observables={"growth": growth},
    )  # fmt: skip
    ((key, rhs),) = s.equations.items()
    along = directional_derivative(s.observables["growth"], {"u": rate_direction(key, rhs)})

    def further(v: np.ndarray, *by: int) -> np.ndarray:
        padded = np.pad(v, 1, mode=BEYOND[kind])  # type: ignore[call-overload]
        return padded[1 + by[0] : 4 + by[0], 1 + by[1] : 4 + by[1]]  # type: ignore[no-any-return]

    def total(v: np.ndarray) -> float:
        return float((v * (further(v, 1, 0) + further(v, 1, 1))).sum())

    v = np.random.default_rng(3).normal(size=(3, 3))
    rate = 1 + v**2 + further(v, 1, 1)
    want = (total(v + 1e-6 * rate) - total(v - 1e-6 * rate)) / 2e-6
    np.testing.assert_allclose(evaluate(along, (), s.axes, {"N": 3}, {"u": v}), want, rtol=1e-8)


@pytest.mark.parametrize("kind", BEYOND)
@pytest.mark.parametrize("case", ["one", "several", "partial sum"])
def test_conditions_on_neighbours(case: str, kind: str) -> None:
    """A choice by neighbours, and the gradient of its square sum: by loops over numpy.pad, and central differences (1e-12/1e-6)."""
    condition = {
        "one": heat[i - 1] > lorenz[i],
        "several": ~((heat[i - 2] < lorenz[i]) | (heat[i + 1] < heat[i - 1])),
        "partial sum": Sum(heat[j], (j, 0, i - 1)) > lorenz[i],
    }[case]
    choice = Piecewise((heat[i - 1], condition), (heat[i] ** 2, True))
    (k,) = index("k")
    made: dict[str, Any] = {"axes": {i: N, k: N}, "params": (param(lorenz),), "boundary": {i: kind, k: kind}}
    rates = System("test.choice", SOURCE, equations={heat[i]: choice}, initial={heat[i]: 0.0}, **made)
    flow = gradient_flow(over(Sum, choice**2, (i, N)), {heat[k]: 1}, boundary={i: kind})
    falls = System("test.falls", SOURCE, equations=flow, initial={heat[k]: 0.0}, **made)

    def value(u: np.ndarray, w: np.ndarray) -> np.ndarray:
        p = np.pad(u, 3, mode=BEYOND[kind])  # type: ignore[call-overload]
        places = range(3, 3 + len(u))
        holds = {
            "one": [p[n - 1] > w[n - 3] for n in places],
            "several": [not (p[n - 2] < w[n - 3] or p[n + 1] < p[n - 1]) for n in places],
            "partial sum": [u[: n - 3].sum() > w[n - 3] for n in places],
        }[case]
        return np.where(holds, p[2 : 2 + len(u)], u**2)

    for n in (1, 5):
        u, w = np.random.default_rng(n).normal(size=(2, n))
        slope = [((value(u - 1e-6 * e, w) ** 2).sum() - (value(u + 1e-6 * e, w) ** 2).sum()) / 2e-6 for e in np.eye(n)]
        for system, exact, tolerance in ((rates, value(u, w), 1e-15), (falls, slope, 1e-8)):
            found = compile_system(system, backend="numpy").arrays({"N": n}, {"heat": u, "lorenz": w, "t": 0.0})["d_heat"]
            np.testing.assert_allclose(np.broadcast_to(found, n), exact, atol=tolerance)


SINGULAR: dict[str, tuple[Any, Any]] = {
    "root": (lambda y, z: sqrt(y), lambda y, z: np.sqrt(y)),
    "root of a product": (lambda y, z: sqrt(y * z), lambda y, z: np.sqrt(y * z)),
    "root of squares": (lambda y, z: sqrt(y**2 + z**2), lambda y, z: np.hypot(y, z)),
    "power": (lambda y, z: y**c, lambda y, z: y**0.7),
    "x log x": (lambda y, z: xlogy(y, y) * (1 + z), lambda y, z: special.xlogy(y, y) * (1 + z)),
    "arc": (lambda y, z: asin(1 - y) + z, lambda y, z: np.arcsin(1 - y) + z),
    "inner root": (lambda y, z: log(1 + sqrt(y)) * z, lambda y, z: np.log(1 + np.sqrt(y)) * z),
    "named": (lambda y, z: named("h", sqrt(heat[i + 1]), (i, N))[i] * z, lambda y, z: np.sqrt(y) * z),
    "empty sums": (lambda y, z: sqrt(Sum(heat[j], (j, 0, i - 1))) + sqrt(Sum(heat[j], (j, i + 1, N - 1))), None),
}


@pytest.mark.parametrize("what", SINGULAR)
def test_a_constant_beyond_the_end_has_no_slope(what: str) -> None:
    """Functions that are singular at 0, of neighbours that are 0 beyond the ends: all derivatives are central differences, 1e-8 off."""
    of, by_hand = SINGULAR[what]
    equation = of(heat[i + 1], heat[i - 1])
    more: dict[str, Any] = {"source": SOURCE, "axes": {i: N}, "params": (param(c),), "sizes": {N: 4}, "initial": {heat[i]: 0.5}}
    s = System(name="test.singular", equations={heat[i]: equation + 0 * c}, boundary={i: "zero", j: "zero"}, **more)
    flow = gradient_flow(over(Sum, equation, (i, N)), {heat[i]: -1}, boundary={i: "zero", j: "zero"})
    y, w = np.array([0.5, 0.7, 0.3, 0.9]), np.array([0.2, -1.0, 0.6, 0.4])

    def right(y: np.ndarray) -> np.ndarray:
        if by_hand is None:
            before = np.concatenate([[0.0], np.cumsum(y)[:-1]])
            return np.sqrt(before) + np.sqrt(np.maximum(y.sum() - before - y, 0) * (np.arange(4) < 3))  # type: ignore[no-any-return]
        return by_hand(np.append(y[1:], 0), np.append(0, y[:-1]))  # type: ignore[no-any-return]

    J = np.array([right(y + 1e-6 * e) - right(y - 1e-6 * e) for e in np.eye(4)]).T / 2e-6
    bound = compile_system(s).bind({"N": 4}, {"c": 0.7})
    np.testing.assert_allclose(jacobian(bound, 0.0, y).dense(), J, atol=1e-7)
    np.testing.assert_allclose(backward(bound, 0.0, y, w), w @ J, atol=1e-7)
    values = {"heat": y, "w_heat": w, "c": 0.7, "t": 0.0}
    np.testing.assert_allclose(compile_system(jvp(s), backend="numpy").arrays({"N": 4}, values)["d_w_heat"], J @ w, atol=1e-7)
    descent = compile_system(System(name="test.flow", equations=flow, **more), backend="numpy")
    np.testing.assert_allclose(descent.arrays({"N": 4}, values)["d_heat"], J.sum(0), atol=1e-7)


@pytest.mark.parametrize("kind", ["zero", "edge"])
def test_a_neighbour_of_a_gathered_place(kind: str) -> None:
    """The neighbour of the row that a parameter names, in an ensemble: the numbers of numpy.pad."""
    rows, k = IndexedBase("rows", shape=(N,)), index("k")[0]
    gathered = over(Sum, KroneckerDelta(k, rows[i]) * heat[k - 1] * (1 + heat[k + 2]), (k, N))
    s = System(
        name="test.gathered", source=SOURCE, axes={i: N}, boundary={k: kind}, equations={heat[i]: gathered}, initial={heat[i]: 0.5},
        params=(Param(rows, 0, Naturals0, "rows", indexes=N, cover=False),), sizes={N: 4},
    )  # fmt: skip
    starts, places = np.random.default_rng(7).normal(size=(3, 4)), np.array([3, 0, 1, 3])
    found = odesim.ensemble(s, method="euler", step=1.0, span=(0, 1), initial={"heat": starts}, params={"rows": places})
    for start, end in zip(starts, found["heat"].values[:, -1], strict=True):
        padded = np.pad(start, 2, mode=BEYOND[kind])  # type: ignore[call-overload]
        np.testing.assert_allclose(end - start, (padded[1:5] * (1 + padded[4:8]))[places], rtol=1e-12, atol=1e-14)


def test_a_grid_in_the_plane() -> None:
    """Heat on a torus of 20 x 20 cells decays as the eigenvalues of the difference operator say; its Jacobian has five entries a row."""
    (a, b), (n,) = index("a b"), sizes("n")
    u = IndexedBase("u", shape=(n, n))
    rate = n**2 * (u[a - 1, b] + u[a + 1, b] + u[a, b - 1] + u[a, b + 1] - 4 * u[a, b])
    start = cos(2 * pi * a / n) * cos(4 * pi * b / n)
    grid = System(
        name="grid",
        source=SOURCE,
        axes={a: n, b: n},
        equations={u[a, b]: rate},
        params=(),
        initial={u[a, b]: start},
        boundary={a: "periodic", b: "periodic"},
    )
    J = jacobian(compile_system(grid).bind({"n": 20}, {}), 0.0, np.zeros(400))
    assert isinstance(J, Sparse) and len(J.entries) == 5 * 400
    run = odesim.integrate(grid, sizes={"n": 20}, span=(0.0, 0.01), method="rodas5p", rtol=1e-8, atol=1e-10)
    turns = 2 * np.pi * np.arange(20) / 20
    decay = -4 * 400 * (np.sin(np.pi / 20) ** 2 + np.sin(2 * np.pi / 20) ** 2)
    exact = np.exp(0.01 * decay) * np.cos(turns)[:, None] * np.cos(2 * turns)
    np.testing.assert_allclose(run.y["u"][-1], exact, atol=1e-7)

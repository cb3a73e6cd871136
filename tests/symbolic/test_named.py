"""Numbers with names: their values, derivatives and formulas are those of the written-out model, and chains of them stay short."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sympy import Piecewise, Range, Sum, Symbol, exp, log, oo

import odesim
from odesim.base.errors import SpecError
from odesim.display.formulas import definitions_text
from odesim.symbolic import IndexedBase, MaxOver, Param, System, gradient_flow, index, named, over, sizes
from tests.support.systems import REAL, SOURCE

(i,), (D,) = index("i"), sizes("D")
x, a, s = IndexedBase("x", shape=(D,)), Symbol("a", real=True), Symbol("s", real=True)


def narrow(named_parts: bool) -> System:
    """Gradient flow of a number of losses of x and a, with names for the parts or without."""
    part = named if named_parts else lambda name, value: value
    total = part("total", over(Sum, exp(x[i]), (i, D)))
    ratio = part("ratio", s * a**2 / total)
    loss = ratio + log(part("wide", 1 + ratio * total**2))
    rates = {x[i]: 1, a: 2}
    start = {x[i]: (i + 1) / 10, a: 0.7}
    return System(
        name="t.named", source=SOURCE, axes={i: D}, equations=gradient_flow(loss, rates), params=(Param(s, 1.5, REAL, "scale"),),
        initial=start, sizes={D: 3}, span=(0, 1), observables={"loss": loss, "ratio": ratio},
    )  # fmt: skip


@pytest.mark.first(1)
@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_named_numbers_change_no_value(backend: str) -> None:
    """With names and without, one run, its sensitivities, and one by a stiff method; 1e-14 is what rounding leaves of a decayed number."""
    runs = [
        odesim.integrate(narrow(named_parts), span=(0, 1), save=3, backend=backend, sensitivities=("s", "a"))
        for named_parts in (True, False)
    ]
    for name in runs[0].y:
        np.testing.assert_allclose(runs[0].y[name], runs[1].y[name], rtol=1e-12, atol=1e-14)
    for name in ("loss", "ratio"):
        np.testing.assert_allclose(runs[0].observables[name], runs[1].observables[name], rtol=1e-12, atol=1e-14)
    stiff = [odesim.integrate(narrow(named_parts), span=(0, 1), method="rodas5p", backend=backend).y["x"] for named_parts in (True, False)]
    np.testing.assert_allclose(stiff[0], stiff[1], rtol=1e-9)


def test_named_numbers_are_shown_by_name() -> None:
    """A definition for each, without an index; a chain of them stays as long as it is written."""
    s = narrow(True)
    assert definitions_text(s).splitlines()[:3] == ["total = sum_i(exp(x[i]))", "ratio = s*a^2/total", "wide = 1 + ratio*total^2"]
    chain = a
    for n in range(30):
        chain = named(f"c{n}", chain * (1 + chain / 2))
    long = System(name="t.chain", source=SOURCE, axes={}, equations={a: -chain}, params=(), initial={a: 0.01}, sizes={}, span=(0, 1))
    assert len(definitions_text(long)) < 30 * 40
    value = 0.01
    for _ in range(30):
        value = value * (1 + value / 2)
    run = odesim.integrate(long, span=(0, 1e-6), method="euler", step=1e-6, backend="numpy")
    assert run.final["a"] - 0.01 == pytest.approx(-1e-6 * value, rel=1e-9)


def test_named_arrays() -> None:
    """An array with a name is read at any index, and shown with its own."""
    y = named("y", exp(x[i]) * s, (i, D))
    system = System(
        name="t.array", source=SOURCE, axes={i: D}, equations={x[i]: -y[i] / over(Sum, y[i], (i, D))},
        params=(Param(s, 1.5, REAL, "scale"),),
        initial={x[i]: i}, sizes={D: 3}, span=(0, 1),
    )  # fmt: skip
    assert definitions_text(system) == "y[i] = s*exp(x[i])"
    run = odesim.integrate(system, span=(0, 1e-6), method="euler", step=1e-6, backend="numpy")
    rate = (run.final["x"] - [0, 1, 2]) / 1e-6
    np.testing.assert_allclose(rate, -np.exp([0, 1, 2]) / np.exp([0, 1, 2]).sum(), rtol=1e-8)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: named("z[0]", a), r"a name of letters and digits, such as z1, not 'z\[0\]'"),
        (lambda: named("z", x[i]), r"has the free index i: sum over it, or give its axis, such as \(i, N\)"),
        (lambda: named("z", x[i], i), r"an axis is an index and its extent, such as \(i, N\), not i"),
        (lambda: named("z", [a]), "named..z.. takes an expression, not"),
    ],
)
def test_named_refuses(call: Callable[[], Any], words: str) -> None:
    """What is no name, no expression or no number."""
    with pytest.raises(SpecError, match=words):
        call()


@pytest.mark.parametrize("second", ["i j", "j i", "j k", "k l"])
def test_equal_arrays_with_other_indices(second: str) -> None:
    """Two names for one array, whatever the letters of their axes: the gradient of a loss of both is that of numpy."""
    (p, q), (i, j) = index(second), index("i j")
    y, W = IndexedBase("y", shape=(D,)), IndexedBase("W", shape=(D, D))
    G = named("G", x[i] * exp(y[j]), (i, D), (j, D))
    H = named("H", x[p] * exp(y[q]), (p, D), (q, D))
    loss = over(Sum, W[i, j] * G[i, j] * H[j, i] ** 2 + H[i, j], (i, D), (j, D))
    flow = System(
        name="t.equal", source=SOURCE, axes={i: D}, equations=gradient_flow(loss, {x[i]: -1, y[i]: -1}),
        params=(Param(W, 1.0, REAL, "weights"),), initial={x[i]: 0.0, y[i]: 0.0}, sizes={D: 3},
    )  # fmt: skip
    rng = np.random.default_rng(3)
    start, weights = {"x": rng.normal(size=3), "y": rng.normal(size=3)}, rng.normal(size=(3, 3))
    run = odesim.integrate(flow, method="euler", step=1.0, span=(0, 1), save=2, backend="numpy", params={"W": weights}, initial=start)

    def value(x: Any, y: Any) -> Any:
        G = np.outer(x, np.exp(y))
        return np.sum(weights * G * G.T**2 + G)

    for name in start:
        slopes = [value(**{**start, name: start[name] + 1e-30j * e}).imag / 1e-30 for e in np.eye(3)]
        np.testing.assert_allclose(run.y[name][-1] - start[name], slopes, rtol=1e-12)


@pytest.mark.parametrize("letters", ["k k_1", "k_1 k", "k_1 k_2"])
def test_an_array_whose_indices_are_called_as_generated_ones(letters: str) -> None:
    """outer(x, exp(y)), and x^2 along one axis: their letter k is an index of another axis, for which generated code says k_1."""
    (p, q), (k, j), (M,) = index(letters), index("k k_1"), sizes("M")
    y, u, Z = IndexedBase("y", shape=(D,)), IndexedBase("u", shape=(M,)), IndexedBase("Z", shape=(D, D))
    h, g = named("h", x[p] * exp(y[q]), (p, D), (q, D)), named("g", x[p] ** 2, (p, D), (q, D))
    s = System(
        name="t.letters", source=SOURCE, axes={k: M, i: D, j: D}, equations={u[k]: -u[k], Z[i, j]: h[i, j] - 2 * h[j, i] + g[i, j]},
        params=(Param(x, 1.0, REAL, "numbers"), Param(y, 1.0, REAL, "numbers")), initial={u[k]: 1.0, Z[i, j]: 0.0}, sizes={D: 3, M: 2},
    )  # fmt: skip
    a, b = np.random.default_rng(5).normal(size=(2, 3))
    run = odesim.integrate(s, method="euler", step=1.0, span=(0, 1), backend="numpy", params={"x": a, "y": b})
    want = np.outer(a, np.exp(b))
    np.testing.assert_allclose(run.y["Z"][-1], want - 2 * want.T + a[:, None] ** 2, rtol=1e-12)


def test_a_neighbour_in_a_layer_and_beside_it() -> None:
    """A maximum of neighbours that stands in a named array, with others of its own, and beside it once more."""
    (j, k), y = index("j k"), IndexedBase("y", shape=(D,))
    top = over(MaxOver, x[k - 1] * y[k], (k, D))
    h = named("h", top + x[j + 1], (j, D))
    s = System(
        name="t.neighbours", source=SOURCE, axes={i: D}, equations={y[i]: h[i] * top}, params=(Param(x, 1.0, REAL, "numbers"),),
        initial={y[i]: 0.0}, sizes={D: 3}, boundary={j: "periodic", k: "zero"},
    )  # fmt: skip
    a, b = np.random.default_rng(6).normal(size=(2, 3))
    run = odesim.integrate(s, method="euler", step=1.0, span=(0, 1), backend="numpy", params={"x": a}, initial={"y": b})
    want = max(0.0, a[0] * b[1], a[1] * b[2])
    np.testing.assert_allclose(run.y["y"][-1] - b, (want + np.roll(a, -1)) * want, rtol=1e-12, atol=1e-15)


def test_what_an_array_sums_up_to_its_own_index() -> None:
    """Rows that a parameter names at a neighbour, beside a neighbour; the index of the array is no axis of the System."""
    (j, k), V, rows = index("j k"), IndexedBase("V", shape=(D, D)), IndexedBase("rows", shape=(D,))
    h = named("h", over(Sum, V[rows[k + 1], k - 1], (k, j + 1)), (j, D))
    params = Param(V, 1.0, REAL, "numbers"), Param(rows, 0, Range(0, oo), "rows", indexes=D, cover=False)
    s = System(
        name="t.partial", source=SOURCE, axes={i: D}, equations={x[i]: h[i]}, params=params, initial={x[i]: 0.0}, sizes={D: 3},
        boundary={k: "periodic"},
    )  # fmt: skip
    assert definitions_text(s) == "h[j] = sum_k<=j(V[rows[k + 1], k - 1])"
    numbers, named_rows = np.random.default_rng(7).normal(size=(3, 3)), np.array([2, 0, 1])
    run = odesim.integrate(s, params={"V": numbers, "rows": named_rows})
    want = np.cumsum([numbers[named_rows[(n + 1) % 3], n - 1] for n in range(3)])
    np.testing.assert_allclose(run.y["x"][-1], want, rtol=1e-12)


def test_a_condition_on_a_sum_of_choices_takes_a_name() -> None:
    """sympy takes a Piecewise out of a sum in a condition, which is refused; of a sum with a name it does not: y' = 1 from sum > 1 on."""
    y, total = Symbol("y", real=True), over(Sum, Piecewise((x[i], x[i] > s), (0, True)), (i, D))
    parts: dict[str, Any] = {"axes": {i: D}, "params": (Param(s, 0.2, REAL, "least"),), "sizes": {D: 3}, "initial": {x[i]: 0, y: 0}}

    def chosen(total: Any) -> System:
        return System(name="t.chosen", source=SOURCE, equations={x[i]: 1, y: Piecewise((1, total > 1), (0, True))}, **parts)

    with pytest.raises(SpecError, match=r"name the sum first, as in z = named"):
        chosen(total)
    for backend in ("numpy", "numba"):
        assert odesim.integrate(chosen(named("z", total)), backend=backend).y["y"][-1] == pytest.approx(2 / 3, abs=1e-6)

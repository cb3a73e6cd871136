"""Layers: deep models hold each array once; their values, gradients, derivatives and formulas are those of the written-out model."""

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sympy import Heaviside, Max, Sum, exp, tanh

import odesim
from odesim.base.errors import SpecError
from odesim.display.document import latex_document
from odesim.display.formulas import definitions_text, equations_text
from odesim.ir.passes import lower
from odesim.symbolic import IndexedBase, Invariant, Param, System, at, gradient_flow, index, layers, over, sensitivities, sizes, time
from odesim.targets.compiled import compile_system
from tests.support.products import backward, jacobian, rates
from tests.support.systems import REAL, SOURCE

(a, b, i, j, k, n), (C, D, N) = index("a b i j k n"), sizes("C D N")
X, T = IndexedBase("X", shape=(D, N)), IndexedBase("T", shape=(D, N))
GIVEN = {"D": 3, "N": 2}
STEPS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {  # {what: a layer of z = W h, the same in numpy}
    "linear": (lambda z: z, lambda z: z),
    "tanh": (tanh, np.tanh),
    "gated": (lambda z: z * tanh(z) + z**2 / 3, lambda z: z * np.tanh(z) + z**2 / 3),
    "relu": (lambda z: Max(0, z), lambda z: np.maximum(0, z)),
}


def weights(depth: int) -> list[Any]:
    return [IndexedBase(f"W{l}", shape=(D, D)) for l in range(depth)]


def arrays(depth: int, what: str) -> list[Any]:
    W, f = weights(depth), STEPS[what][0]
    return layers(depth, lambda l, h: f(over(Sum, W[l][i, j] * h[j, n], (j, D))), X[i, n])


def flow(depth: int, what: str, **more: Any) -> System:
    """Gradient descent of |h_L - T|^2/2."""
    h, states = arrays(depth, what), {w[a, b]: 1 for w in weights(depth)}
    loss = over(Sum, (h[depth][i, n] - T[i, n]) ** 2, (i, D), (n, N)) / 2
    return System(
        name="test.deep", source=SOURCE, axes={a: D, b: D}, equations=gradient_flow(loss, states), observables={"loss": loss},
        params=(Param(X, 1.0, REAL, "inputs"), Param(T, 1.0, REAL, "targets")), initial=dict.fromkeys(states, 0.1), sizes={D: 3, N: 2},
        span=(0, 0.2), **more,
    )  # fmt: skip


def numbers(depth: int) -> tuple[dict[str, Any], np.ndarray]:
    """Parameters and a state."""
    rng = np.random.default_rng(depth)
    return {"X": rng.normal(size=(3, 2)), "T": rng.normal(size=(3, 2))}, rng.normal(size=9 * depth) / 2


def loss_of(what: str, given: dict[str, Any], y: np.ndarray) -> float:
    h = given["X"]
    for w in y.reshape(-1, 3, 3):
        h = STEPS[what][1](w @ h)
    return float(((h - given["T"]) ** 2).sum() / 2)


def central(f: Callable[[np.ndarray], Any], y: np.ndarray) -> np.ndarray:
    """The derivatives of f by y, in rows, by differences: 1e-8 off."""
    return np.array([f(y + 1e-6 * e) - f(y - 1e-6 * e) for e in np.eye(len(y))]) / 2e-6


@pytest.mark.first(1)
@pytest.mark.parametrize("what", STEPS)
def test_everything_grows_in_line_with_the_depth(what: str) -> None:
    """Formulas, statements and LaTeX of 2, 4 and 8 layers: each two more layers cost the same, but for longer numbers in names."""
    found = []
    for depth in (2, 4, 6, 8):
        s = flow(depth, what)
        formulas = equations_text(s) + definitions_text(s)
        found.append((sum(e.count_ops() for e in s.equations.values()), len(list(lower(s).statements())), len(formulas)))
    operations, statements, texts = (np.diff(row) for row in zip(*found, strict=True))
    assert len(set(operations)) == 1 and len(set(statements)) == 1 and len(set(texts)) == 1


@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("what", STEPS)
def test_gradient_flow(what: str, depth: int) -> None:
    """The equations are minus the differences of the loss; the Jacobian and its transposed product are those of the equations."""
    s, (given, y) = flow(depth, what), numbers(depth)
    bound = compile_system(s).bind(GIVEN, given)
    np.testing.assert_allclose(rates(s, GIVEN, given, y), -central(lambda y: loss_of(what, given, y), y), atol=1e-7)
    J, u = central(lambda y: rates(s, GIVEN, given, y), y).T, np.random.default_rng(9).normal(size=len(y))
    np.testing.assert_allclose(jacobian(bound, 0.0, y).dense(), J, atol=1e-6)
    np.testing.assert_allclose(backward(bound, 0.0, y, u), u @ J, atol=1e-6)


@pytest.mark.slow
def test_runs_and_sensitivities() -> None:
    """Compiled: numpy's run, and the loss falls; derivatives by a parameter are differences of runs."""
    given, y = numbers(2)
    start = {"W0": y[:9].reshape(3, 3), "W1": y[9:].reshape(3, 3)}
    h = arrays(2, "tanh")
    loss = over(Sum, (h[2][i, n] - T[i, n]) ** 2, (i, D), (n, N)) / 2
    s = flow(2, "tanh", invariants=(Invariant("falls", loss, "nonincreasing"),))
    options: dict[str, Any] = {"initial": start, "rtol": 1e-10, "atol": 1e-12}
    run = odesim.integrate(s, params=given, **options)
    same = odesim.integrate(s, params=given, backend="numpy", **options)
    np.testing.assert_allclose(run.y["W1"][-1], same.y["W1"][-1], rtol=1e-9)
    assert run.invariants["falls"] == 0.0
    first = loss_of("tanh", given, y)
    np.testing.assert_allclose(run.observables["loss"][0], first, rtol=1e-13)
    wide = odesim.integrate(sensitivities(s, "T"), params=given, backend="numpy", **options)

    def end(targets: np.ndarray) -> np.ndarray:
        there = {**given, "T": targets.reshape(3, 2)}
        return odesim.integrate(s, params=there, backend="numpy", **options).y["W0"][-1]  # type: ignore[no-any-return]

    slopes = np.moveaxis(central(end, given["T"].ravel()).reshape(3, 2, 3, 3), (0, 1), (2, 3))
    np.testing.assert_allclose(wide.y["dW0_dT"][-1], slopes, atol=1e-6)


def test_substitution_and_pickling() -> None:
    """at() reaches into definitions, and not to the indices of a layer; a System with layers comes back from a pickle."""
    x = IndexedBase("x", shape=(D,))
    h = layers(2, lambda l, h: tanh(over(Sum, h[j] * x[i], (j, D)) + time * (i + 1)), x[i])
    assert str(at(h[2][i], {time: 2}).base.definition) == "tanh(2*i + Sum(h1[j]*x[i], (j, 0, D - 1)) + 2)"
    assert at(h[2][i], {i: k}) == h[2][k] and at(h[2][i], {x[i]: 1}) == h[2][i]
    s = flow(2, "gated")
    assert pickle.loads(pickle.dumps(s)) == s
    assert lower(pickle.loads(pickle.dumps(s))) == lower(s)


def test_a_condition_in_a_layer_is_held() -> None:
    """A jump inside a layer is stepped to: x' = -H(x - 1) - 1/2 from 2 is exact, with a step to the time at which x is 1."""
    x = IndexedBase("x", shape=(D,))
    h = layers(1, lambda l, h: Heaviside(h[i] - 1), x[i])
    s = System(
        name="test.jump", source=SOURCE, axes={i: D}, equations={x[i]: -h[1][i] - 0.5 + 0 * x[i]}, params=(), initial={x[i]: 2.0 + i},
        sizes={D: 2}, span=(0, 2),
    )  # fmt: skip
    np.testing.assert_allclose(odesim.integrate(s, backend="numpy").y["x"][-1], [1 - (2 - 1 / 1.5) / 2, 1 - (2 - 2 / 1.5) / 2], atol=1e-12)


def test_neighbours_and_partial_sums_in_layers() -> None:
    """A layer may read the layer before beside its place, and up to it; exact for small numbers."""
    x = IndexedBase("x", shape=(D,))
    h = layers(2, lambda l, h: h[i + 1] + Sum(h[j], (j, 0, i)), x[i])
    s = System(
        name="test.axis", source=SOURCE, axes={i: D}, equations={x[i]: h[2][i]}, params=(), initial={x[i]: 1.0}, boundary={i: "periodic"}
    )
    value = np.array([1.0, 2.0, 4.0])
    out = rates(s, {"D": 3}, {}, value)
    for _ in range(2):
        value = np.roll(value, -1) + np.cumsum(value)
    np.testing.assert_array_equal(out, value)


def test_formulas_are_those_of_the_paper() -> None:
    """Backpropagation, a layer a line; the document of LaTeX has all of them."""
    s = flow(2, "linear")
    assert equations_text(s).splitlines()[1] == "dW1[a, b]/dt = -sum_n(grad_h2[a, n]*h1[b, n])"
    lines = definitions_text(s).splitlines()
    assert lines[0] == "h1[i, n] = sum_j(X[j, n]*W0[i, j])" and lines[-1] == "grad_h1[i, n] = sum_i'(W1[i', i]*grad_h2[i', n])"
    assert r"{h_{2}}_{i,n} = \sum_{j=0}^{D - 1} {W_{1}}_{i,j} \, {h_{1}}_{j,n}" in latex_document(s)


WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "count": (lambda: layers(-1, lambda l, h: h[i], X[i, n]), "a whole number from 0, not -1"),
    "start": (lambda: layers(1, lambda l, h: h[i], X), r"an index for each axis of a shape, such as x\[i\], not X"),
    "free index": (lambda: layers(1, lambda l, h: exp(h[j, n]), X[i, n]), "layer 1 of layers.. has the free index j: sum over it"),
    "two extents": (lambda: layers(1, lambda l, h: h[i, i], X[i, n]), "index i runs over D and over N"),
    "no expression": (lambda: layers(1, lambda l, h: [h], X[i, n]), "layer 1 of layers.. takes an expression"),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
def test_mistakes(what: str) -> None:
    make, message = WRONG[what]
    with pytest.raises(SpecError, match=message):
        make()


def test_mistakes_in_a_system() -> None:
    """An unknown name in a layer is named with its layer; so is a layer that is called like a parameter."""
    x, lost = IndexedBase("x", shape=(D,)), IndexedBase("lost", shape=(D,))
    with pytest.raises(SpecError, match=r"in layer h1, which is in the equation of x.*: no array 'lost'"):
        System("t.s", SOURCE, {i: D}, {x[i]: layers(2, lambda l, h: lost[i] * h[i], x[i])[2][i]}, (), {x[i]: 0})
    h1 = IndexedBase("h1", shape=(D,))
    with pytest.raises(SpecError, match="'h1' is a layer and also a state, parameter or size"):
        equations = {x[i]: layers(1, lambda l, h: h[i] * h1[i], x[i])[1][i]}
        System("t.s", SOURCE, {i: D}, equations, (Param(h1, 1.0, REAL, ""),), {x[i]: 0})


@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_two_towers_do_not_share_their_layers(backend: str) -> None:
    """Two stacks of layers with the same names h1, h2, one of which reads the other's weights too: the flow is minus the differences."""
    W = weights(2)
    one = layers(2, lambda l, h: tanh(over(Sum, W[l][i, j] * h[j, n], (j, D))), X[i, n])
    two = layers(2, lambda l, h: over(Sum, W[1 - l][i, j] * h[j, n], (j, D)) + h[i, n] ** 2 / 4, T[i, n])
    loss = over(Sum, (one[2][i, n] - two[2][i, n]) ** 2 + one[1][i, n] * two[1][i, n], (i, D), (n, N)) / 2
    s = System(
        name="test.towers", source=SOURCE, axes={a: D, b: D}, equations=gradient_flow(loss, {w[a, b]: 1 for w in W}),
        observables={"loss": loss}, params=(Param(X, 1.0, REAL, "left"), Param(T, 1.0, REAL, "right")),
        initial=dict.fromkeys((w[a, b] for w in W), 0.1), sizes={D: 3, N: 2}, span=(0, 0.2),
    )  # fmt: skip
    given, y = numbers(2)

    def value(y: np.ndarray) -> float:
        U = y.reshape(2, 3, 3)
        left, right = [given["X"]], [given["T"]]
        for l in range(2):
            left, right = [*left, np.tanh(U[l] @ left[-1])], [*right, U[1 - l] @ right[-1] + right[-1] ** 2 / 4]
        return float(((left[2] - right[2]) ** 2 + left[1] * right[1]).sum() / 2)

    np.testing.assert_allclose(rates(s, GIVEN, given, y, backend), -central(value, y), atol=1e-7)
    assert {"h1[i, n]", "h1_2[i, n]", "h2[i, n]", "h2_2[i, n]"} <= {line.partition(" = ")[0] for line in definitions_text(s).splitlines()}

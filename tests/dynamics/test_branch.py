"""Branches of rest states: folds, branch points and Hopf points of closed forms, and what is stable between them."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.interpolate import CubicSpline
from scipy.optimize import brentq
from scipy.special import iv, lambertw
from sympy import Heaviside, Indexed, Integer, Interval, Max, Symbol, oo, sqrt, symbols

import odesim
from odesim.base.errors import OdesimError
from odesim.cli.app import cli
from odesim.symbolic import IndexedBase, Log, Map, Param, Source, System, gradient_flow, index, named, sizes, time

SOURCE = Source("none", "made for the tests")
REAL = Interval(-oo, oo)
x, y, r, h, a, b = symbols("x y r h a b", real=True)


def system(equations, initial, **params: Any):
    """A System of these equations {state: right-hand side} with real parameters {name: value}."""
    rows = tuple(Param(Symbol(name, real=True), value, REAL, "a number") for name, value in params.items())
    return System("test.branch", SOURCE, {}, equations, rows, initial, span=(0.0, 200.0))


PITCHFORK = system({x: r * x - x**3}, {x: 0.1}, r=-1.0)
CUSP = system({x: h + r * x - x**3}, {x: -1.0}, h=0.0, r=1.5)
BRUSSELATOR = system({x: a - (b + 1) * x + x**2 * y, y: b * x - x**2 * y}, {x: 1.0, y: 1.0}, a=1.2, b=1.0)


def test_what_is_constant_only_about_the_start():
    """x + y = r, and x - y stays, up to x + y = 1000; beyond, rest states need x - y = 1, and the branch from x = y has none."""
    far = {x: r - x - y + (x - y - 1) * Heaviside(x + y - 1000), y: r - x - y - (x - y - 1) * Heaviside(x + y - 1000)}
    found = odesim.branch(system(far, {x: 0.5, y: 0.5}, r=1.0), "r", (1, 3000))
    assert float(found["r"].max()) == pytest.approx(1000, rel=1e-6)
    np.testing.assert_allclose(found["x"] + found["y"], found["r"], rtol=1e-9)


def test_pitchfork():
    """At r = 0 the state 0 becomes unstable, and +-sqrt(r) begin, stable."""
    found = odesim.branch(PITCHFORK, "r", (-1, 1))
    assert found["kind"].values.tolist() == ["branch"] and found["special_r"].values == pytest.approx([0], abs=1e-8)
    at, states, of = found["r"].values, found["x"].values, found["branch"].values
    assert np.abs(states[of == 0]).max() < 1e-9 and set(of) == {0, 1, 2}
    assert np.array_equal(found["growing"].values[of == 0] > 0, at[of == 0] > 1e-9)
    for k in (1, 2):
        np.testing.assert_allclose(states[of == k] ** 2, at[of == k], atol=1e-9)
        assert not found["growing"].values[of == k].any() and at[of == k].max() == pytest.approx(1, abs=1e-12)


def test_a_branch_ends_where_a_state_leaves_its_set():
    """sqrt(x^2) of a positive x is written as x, so that r - |x| seems to rest at x = r < 0 too. x (r - x) keeps its branch point at 0."""
    s = symbols("s", positive=True)
    ends = odesim.branch(system({s: r - sqrt(s**2)}, {s: 0.5}, r=1.0), "r", (1, -1))
    assert 0 <= float(ends["r"].min()) < 0.01 and not len(ends["special"])
    crossed = odesim.branch(system({s: s * (r - s)}, {s: 0.5}, r=1.0), "r", (1, -1))
    assert crossed["special_r"].values == pytest.approx([0], abs=1e-8) and float(crossed["s"].min()) > -1e-8


@pytest.mark.parametrize(("begin", "end"), [(2, -1), (2, -1.3), (1, -0.03)])
def test_a_pitchfork_from_its_ordered_side(begin, end):
    """+-sqrt(r) are one parabola that turns round at r = 0 and stays stable: no fold, and 0 crosses it there."""
    found = odesim.branch(PITCHFORK, "r", (begin, end))
    assert found["kind"].values.tolist() == ["branch"] and found["special_r"].values == pytest.approx([0], abs=1e-8)
    at, states, growing, of = (found[name].values for name in ("r", "x", "growing", "branch"))
    np.testing.assert_allclose(states[of == 0] ** 2, at[of == 0], atol=1e-9)
    assert states[of == 0].min() == pytest.approx(-np.sqrt(begin)) and not growing[of == 0].any()
    trivial = at[of > 0]
    assert np.abs(states[of > 0]).max() < 1e-8 and trivial.min() == pytest.approx(end) and trivial.max() == pytest.approx(begin)
    assert np.array_equal(growing[of > 0][np.abs(trivial) > 1e-9] == 1, trivial[np.abs(trivial) > 1e-9] > 0)


def test_a_fold_beside_a_turning_branch_point():
    """x (r - x^2 (1 - x^2)) from its ordered side: folds at r = 1/4, x^2 = 1/2, and at r = 0 a branch point that is none."""
    found = odesim.branch(system({x: x * (x**2 - x**4 - r)}, {x: 1.2}, r=-0.4), "r", (-0.4, 0.5))
    kinds = sorted(zip(found["kind"].values.tolist(), found["special_r"].values.round(8), found["special_x"].values.round(6), strict=True))
    half = round(np.sqrt(0.5), 6)
    assert [(kind, abs(at)) for kind, at, _ in kinds] == [("branch", 0), ("fold", 0.25), ("fold", 0.25)]
    assert sorted(at for kind, _, at in kinds if kind == "fold") == [-half, half]
    assert np.abs(found["x"].values[found["branch"].values > 0]).max() < 1e-8


@pytest.mark.parametrize("begin", [0.9, 0.95, 1.05])
def test_a_curved_branch_that_is_crossed(begin):
    """x (r - x - x^2): the curve r = x + x^2 meets 0 at r = 0, wherever its points come to lie, and folds at r = -1/4."""
    found = odesim.branch(system({x: x * (r - x - x**2)}, {x: 1.0}, r=1.0), "r", (begin, -0.5))
    assert found["kind"].values.tolist() == ["branch", "fold"]
    assert found["special_r"].values == pytest.approx([0, -0.25], abs=1e-9)
    zero = found["branch"].values > 0
    assert np.abs(found["x"].values[zero]).max() < 1e-8
    assert found["r"].values[zero].min() == pytest.approx(-0.5) and found["r"].values[zero].max() == pytest.approx(begin)


@pytest.mark.parametrize("unit", [1e-3, 1e-2])
def test_the_unit_of_the_parameter(unit):
    """A range of 1e-3, as of a learning rate, has the branches of one of 1."""
    scaled = system({x: r * x / unit - x**3}, {x: 0.1}, r=-unit)
    for ends in ((-unit, unit), (unit, -unit)):
        found = odesim.branch(scaled, "r", ends)
        assert found["kind"].values.tolist() == ["branch"] and found["special_r"].values / unit == pytest.approx([0], abs=1e-8)
        at, states = found["r"].values / unit, found["x"].values
        assert set(found["branch"].values) == {0, 1, 2} and at.max() == pytest.approx(1) and at.min() == pytest.approx(-1)
        np.testing.assert_allclose(states * (at - states**2), 0, atol=1e-9)
        assert states.max() == pytest.approx(1) and states.min() == pytest.approx(-1)


@pytest.mark.parametrize(("half", "unit"), [(3.0, 200.0), (2.0, 200.0), (2.5, 50.0)])
def test_small_states_of_a_large_range(half, unit):
    """r / unit + h^2 x - x^3 / 3 folds at x = -h and h, r = 2 h^3 unit / 3 and minus that: no step past a fold leads to the far side."""
    fold = 2 * half**3 * unit / 3
    ends = (1.7 if unit == 50 else 1.3) * 1.05 * fold
    found = odesim.branch(system({x: r / unit + half**2 * x - x**3 / 3}, {x: -6.0}, r=0.0), "r", (-ends, ends))
    assert found["kind"].values.tolist() == ["fold", "fold"]
    assert found["special_r"].values / fold == pytest.approx([1, -1], abs=1e-9)


@pytest.mark.parametrize("size", [1e-2, 1e-4])
def test_states_that_are_far_smaller_than_the_range(size):
    """x = size u: r + 3 u - u^3 folds at 2 and -2; the branches u = 0, r of r u - u^2 and 0, r^2 = u of r u - u^3 cross at 0.

    To 1e-7: points are exact to 1e-11 of the range, beside a state of 1e-4.
    """
    u = x / size
    found = odesim.branch(system({x: size * (r + 3 * u - u**3)}, {x: -2 * size}, r=0.0), "r", (-5, 5))
    assert found["kind"].values.tolist() == ["fold", "fold"] and found["special_r"].values == pytest.approx([2, -2], abs=1e-7)
    for power in (1, 2):
        found = odesim.branch(system({x: size * (r * u - u ** (power + 1))}, {x: size / 2}, r=0.0), "r", (-1, 1))
        assert found["kind"].values.tolist() == ["branch"] and found["special_r"].values == pytest.approx([0], abs=1e-7)
        at, states = found["r"].values, found["x"].values / size
        np.testing.assert_allclose(states * (at - states**power), 0, atol=1e-6)
        assert set(found["branch"].values) == {0, 1, 2} and states.max() == pytest.approx(1) and states.min() == pytest.approx(-1)


@pytest.mark.parametrize(("meeting", "slope"), [(0.15, -1.2), (0.25, -1.4)])
def test_large_states_of_a_small_range(meeting, slope):
    """A circle and a line through it, x up to 40 over a range of 0.04: no step past the top of the circle leads to the line.

    Such a step is 0.02 long beside a correction of 1e-3 along the parameter. Special points are where the two meet, and the circle's ends.
    """
    meets = meeting, float(np.sqrt(1 - meeting**2))
    level = meets[1] - slope * meets[0]
    other = (level**2 - 1) / (1 + slope**2) / meets[0]  # the product of the roots of q^2 + (slope q + level)^2 = 1
    u, q = x / 40, 100 * r
    found = odesim.branch(system({x: -40 * (u - slope * q - level) * (u**2 + q**2 - 1)}, {x: 200.0}, r=0.0), "r", (-0.02, 0.02))
    special = list(zip(found["special_r"].values * 100, found["special_x"].values / 40, found["kind"].values, strict=True))
    places = {meets: "branch", (other, slope * other + level): "branch", (1.0, 0.0): "fold", (-1.0, 0.0): "fold"}
    kinds = {place: [kind for *at, kind in special if np.allclose(at, place, atol=1e-5)] for place in places}
    assert kinds == {place: [kind] for place, kind in places.items()} and len(found["kind"]) == 4


def test_a_line_of_states_has_no_folds():
    """r x rests at r = 0 everywhere: that branch goes up and down, and nothing turns round on it but rounding."""
    found = odesim.branch(system({x: r * x}, {x: 0.0}, r=-1.0), "r", (-1, 1), most_points=150)
    assert found["kind"].values.tolist() == ["branch"]


def test_rolls_of_the_lorenz_system_begin_at_a_branch_point():
    """x = y = +-sqrt(8 (rho - 1) / 3) meet 0 at rho = 1: Lorenz (1963), Deterministic nonperiodic flow."""
    z = symbols("z", real=True)
    lorenz = system({x: 10 * (y - x), y: x * (r - z) - y, z: x * y - 8 * z / 3}, {x: 1.0, y: 2.0, z: 10.0}, r=20.0)
    found = odesim.branch(lorenz, "r", (20, 0.5))
    assert found["kind"].values.tolist() == ["branch"] and found["special_r"].values == pytest.approx([1], abs=1e-8)
    zero = found["branch"].values > 0
    assert np.abs(found["x"].values[zero]).max() < 1e-8 and found["r"].values[zero].min() == pytest.approx(0.5)
    np.testing.assert_allclose(found["x"].values[~zero] ** 2, 8 / 3 * (found["r"].values[~zero] - 1), atol=1e-8)


def test_what_pictures_of_a_model_show_is_no_matter():
    """A view of an observable, which rest states with a parameter for a state do not have."""
    seen = replace(PITCHFORK, observables={"square": x**2}, views=(Log("square"),))
    assert odesim.branch(seen, "r", (-1, 1))["kind"].values.tolist() == ["branch"]


def test_transcritical():
    """r x - x^2: 0 and r exchange their stability at r = 0, and both are followed through it."""
    found = odesim.branch(system({x: r * x - x**2}, {x: 0.1}, r=-1.0), "r", (-1, 1))
    assert found["kind"].values.tolist() == ["branch"]
    at, states = found["r"].values, found["x"].values
    np.testing.assert_allclose(states * (at - states), 0, atol=1e-9)
    for stable in (0.0, 1.0):  # of what is away from the point, the larger of 0 and r is stable
        away = np.abs(at) > 1e-6
        assert np.array_equal((found["growing"].values == 0)[away], (states >= np.maximum(at, 0) - 1e-9)[away])
        assert np.any(np.isclose(states, at) & away & (np.sign(at) == 2 * stable - 1))


def test_two_folds_of_a_cusp():
    """h + r x - x^3 folds at h = +-2 (r/3)^(3/2), whichever end one starts at, and is unstable between."""
    for ends in ((-2, 2), (2, -2)):
        found = odesim.branch(CUSP, "h", ends)
        assert found["kind"].values.tolist() == ["fold", "fold"]
        edge = 2 * (1.5 / 3) ** 1.5
        assert sorted(found["special_h"].values) == pytest.approx([-edge, edge], rel=1e-10)
        assert np.abs(found["special_x"].values) == pytest.approx(np.sqrt(0.5), rel=1e-5)
        inside = np.abs(found["x"].values) < np.sqrt(0.5)
        assert np.array_equal(found["growing"].values == 1, inside)
        np.testing.assert_allclose(found["h"] + 1.5 * found["x"] - found["x"] ** 3, 0, atol=1e-9)


def test_hopf_point_of_the_brusselator():
    """(a, b/a) loses its stability at b = 1 + a^2 to an oscillation of frequency a."""
    found = odesim.branch(BRUSSELATOR, "b", (1, 4))
    assert found["kind"].values.tolist() == ["hopf"]
    assert found["special_b"].values == pytest.approx([1 + 1.2**2], rel=1e-10) and found["frequency"].values == pytest.approx(
        [1.2], rel=1e-9
    )


def test_the_orbit_at_a_hopf_point():
    """Of the Brusselator it attracts above b = 1 + a^2, and x has the amplitude 2 a/sqrt(2 + a^2) by the root of the distance.

    That is the amplitude equation of Nicolis and Prigogine (1977). Of the normal form with +(x^2 + y^2) it repels below, of size 1, and
    of one that y drives a third state z follows: |z| = |x|/sqrt(1 + 2^2).
    """
    found = odesim.branch(BRUSSELATOR, "b", (1, 4))
    assert found["lyapunov"].values < 0 and found["side"].values == [1]
    assert found["amplitude_x"].values == pytest.approx([2.4 / np.sqrt(2 + 1.44)], rel=1e-6)
    z = symbols("z", real=True)
    grown = {x: r * x - 2 * y + x * (x**2 + y**2), y: 2 * x + r * y + y * (x**2 + y**2), z: x - z}
    found = odesim.branch(system(grown, {x: 0.1, y: 0.1, z: 0.0}, r=-1.0), "r", (-1, 1))
    assert found["lyapunov"].values > 0 and found["side"].values == [-1]
    sizes = [float(found[f"amplitude_{name}"][0]) for name in "xyz"]
    assert sizes == pytest.approx([1, 1, 1 / np.sqrt(5)], rel=1e-6)


@pytest.mark.parametrize("entry", [False, True])
def test_a_hopf_point_in_another_unit(entry):
    """b in thousandths, a number or an entry of an array: the point is where it was, and its orbit as wide at the same distance."""
    p = IndexedBase("p", shape=sizes("M"))
    rate = p[1] if entry else b
    scaled = {key: e.xreplace({b: 1000 * rate}) for key, e in BRUSSELATOR.equations.items()}
    rows = (Param(a, 1.2, REAL, "feed"), Param(p if entry else b, 1e-3, REAL, "rate"))
    more: Any = {"axes": dict(zip(index("m"), sizes("M"), strict=True)), "sizes": {sizes("M")[0]: 2}} if entry else {}
    other = System("test.branch", SOURCE, equations=scaled, params=rows, initial=BRUSSELATOR.initial, span=(0.0, 200.0), **more)
    plain, found = odesim.branch(BRUSSELATOR, "b", (1, 4)), odesim.branch(other, "p[1]" if entry else "b", (1e-3, 4e-3))
    for name, factor in (("p[1]" if entry else "b", 1e-3), ("x", 1.0), ("y", 1.0)):
        there = plain[f"special_{'b' if factor < 1 else name}"].values
        assert found[f"special_{name}"].values == pytest.approx(factor * there, rel=1e-8)
    # by the root of a distance that is a thousandth; second differences have 1e-7 or so
    for name in ("x", "y"):
        assert found[f"amplitude_{name}"].values == pytest.approx(np.sqrt(1000) * plain[f"amplitude_{name}"].values, rel=1e-4)
    assert found["lyapunov"].values == pytest.approx(plain["lyapunov"].values, rel=1e-4) and found["side"].values == plain["side"].values


def test_a_branch_that_begins_unstable_is_so_from_its_first_point():
    """r x + x^3 - x^5: what begins at r = 0 goes back to r = -1/4, unstable up to the fold there."""
    found = odesim.branch(system({x: r * x + x**3 - x**5}, {x: 0.0}, r=-1.0), "r", (-1, 1))
    of, growing, states = found["branch"].values, found["growing"].values, np.abs(found["x"].values)
    for k in set(of[of > 0]):
        assert np.array_equal(growing[of == k] == 1, states[of == k] < np.sqrt(0.5))


def test_potts():
    """N = 8: the uniform state loses 7 directions at c = 8, and patterns are stable from the fold at 4.249799 on."""
    found = odesim.branch("hopfield.potts", "c", (3, 10), up_to="k")
    kinds = dict(zip(found["kind"].values.tolist(), found["special_c"].values.tolist(), strict=True))
    assert kinds["branch"] == pytest.approx(8, abs=1e-8) and kinds["fold"] == pytest.approx(4.249799, abs=1e-6)
    of, growing = found["branch"].values, found["growing"].values
    assert set(growing[of == 0]) == {0, 7}
    large = found["z"].values.max(axis=1) > 0.9
    assert large.any() and not growing[large].any()
    small = (found["c"].values > 8.5) & (found["z"].values.min(axis=1) < 0.12)
    assert small.any()  # the branch goes on to the other side of c = 8, where one overlap is the smallest


def test_two_patterns_of_a_hopfield_memory():
    """u' = tanh(beta delta^2 u) - u: a pitchfork at beta delta^2 = 1, and u = .8585596366 of both signs where that is 1.5."""
    found = odesim.branch("hopfield.two_patterns", "beta", (0.3, 1.5 / 1.44), params={"delta": 1.2})
    assert found["kind"].values.tolist() == ["branch"] and found["special_beta"].values == pytest.approx([1 / 1.44], abs=1e-8)
    at_end = found.isel(point=np.isclose(found["beta"], 1.5 / 1.44, rtol=1e-14))
    rests = sorted(zip(at_end["u"].values, at_end["growing"].values, strict=True))
    assert [g for _, g in rests] == [0, 1, 0] and [u for u, _ in rests] == pytest.approx([-0.8585596366, 0, 0.8585596366], abs=1e-9)


def test_where_two_branches_have_one_energy():
    """N = 8: a pattern and the mean of all have the same energy at c* = 14 ln(7) / 6, read off the energies of their branches."""
    request: dict[str, Any] = {"params": {}, "up_to": "k"}
    curves = []
    for start in ([0.9, *[0.1 / 7] * 7], [1 / 8] * 8):
        found = odesim.branch("hopfield.potts", "c", (5, 4.3), initial={"z": start}, **request)
        first = found.isel(point=(found["branch"].values == 0) & (found["growing"].values == 0))
        curves.append(CubicSpline(first["c"].values[::-1], first["energy"].values[::-1]))
    pattern, mean = curves
    crossing = brentq(lambda c: float(pattern(c) - mean(c)), 4.4, 4.9, xtol=1e-12)
    assert crossing == pytest.approx(14 * np.log(7) / 6, abs=1e-8)  # the splines' h^4 of the step 0.0035
    np.testing.assert_allclose(mean([4.4, 4.9]), [1 / 16 - np.log(8 * np.exp(c / 8)) / c for c in (4.4, 4.9)], rtol=1e-9)


def test_observables_along_a_branch():
    """Those of states, also at special points, by another name where theirs is taken; none that is a function, and the loss of a flow."""
    seen = replace(PITCHFORK, observables={"kind": r * x**2, "called": lambda t, y, slopes, params: y["x"]})
    found = odesim.branch(seen, "r", (-1, 1))
    np.testing.assert_allclose(found["kind_"], found["r"] * found["x"] ** 2, atol=1e-12)
    assert found["special_kind"].values == pytest.approx([0], abs=1e-12) and "called" not in found
    flow = replace(PITCHFORK, equations=gradient_flow(x**4 / 4 - r * x**2 / 2, {x: 1}))
    found = odesim.branch(flow, "r", (-1, 1))
    np.testing.assert_allclose(found["loss"], -(np.where(found["branch"] > 0, found["r"], 0) ** 2) / 4, atol=1e-9)


def test_an_entry_of_an_array():
    """Components of joma.nonlinear rest at mu with the rates exp(mu^2/2), each by itself; an array of one entry needs no index."""
    request: dict[str, Any] = {"params": {"mu": [1.5, 2.0, 0.9]}, "sizes": {"M": 3}}
    found = odesim.branch("joma.nonlinear", "mu[1]", (0.5, 3), **request)
    mu = np.stack([np.full(len(found["point"]), 1.5), found["mu[1]"].values, np.full(len(found["point"]), 0.9)], axis=1)
    np.testing.assert_allclose(found["v"], mu, rtol=1e-9)
    np.testing.assert_allclose(found["eigenvalue"], -np.exp(mu.min(axis=1) ** 2 / 2), rtol=1e-9)
    np.testing.assert_allclose(found["gap"], 0, atol=1e-9)
    one = odesim.branch("joma.nonlinear", "mu", (0.5, 3), sizes={"M": 1})
    np.testing.assert_allclose(one["v"].values[:, 0], one["mu"], rtol=1e-9)


@pytest.mark.parametrize("layer", [False, True])
def test_a_branch_point_along_an_entry(layer):
    """x[i]' = r[j, i] x[i] - x[i]^3 with j = 1: at r[1][2] = 0 the state 2 leaves 0, and the others stay at the root of r[1]."""
    i, j = index("i j")
    n, m = sizes("N K")
    X, R = IndexedBase("X", shape=(n,)), IndexedBase("R", shape=(m, n))
    force = R[1, i] * X[i]
    force = named("force", force, (i, n))[i] if layer else force
    rows = (Param(R, 0.25, REAL, "rates"),)
    many = System("test.array", SOURCE, {i: n, j: m}, {X[i]: force - X[i] ** 3}, rows, {X[i]: 0.1}, sizes={n: 3, m: 2}, span=(0.0, 200.0))
    found = odesim.branch(many, "R[1, 2]", (-1, 1))
    assert found.attrs["parameter"] == "R[1, 2]" and found["kind"].values.tolist() == ["branch"]
    assert found["special_R[1, 2]"].values == pytest.approx([0], abs=1e-8)
    np.testing.assert_allclose(found["X"][:, :2], 0.5, rtol=1e-9)
    third = found["X"].values[:, 2]
    np.testing.assert_allclose(third**2, np.where(found["branch"] > 0, found["R[1, 2]"], 0), atol=1e-9)


def test_a_pattern_and_their_mean_have_one_energy():
    """N = 8, c* = 14 ln(7) / 6 = 4.540457: a retrieved pattern has the overlap 7/8, and |z|^2 / 2 - ln(sum exp(c z)) / c of the mean."""
    meet = 14 * np.log(7) / 6
    start = {"z": [0.9, *[0.1 / 7] * 7]}
    found = odesim.branch("hopfield.potts", "c", (10, meet), initial=start, up_to="k")
    last = found.isel(point=int(np.argmin(np.abs(found["c"].values - meet) - found["z"].values.max(axis=1))))
    assert float(last["c"]) == pytest.approx(meet, rel=1e-14) and meet == pytest.approx(4.540457, abs=1e-6)
    z, mean = last["z"].values, np.full(8, 1 / 8)
    assert z.max() == pytest.approx(7 / 8, abs=1e-10) and int(last["growing"]) == 0
    energies = [state @ state / 2 - np.log(np.sum(np.exp(meet * state))) / meet for state in (z, mean)]
    assert energies[0] == pytest.approx(energies[1], abs=1e-12)


def test_rest_of_a_node_of_joma():
    """A component of joma.self_consistent rests at sqrt(W(c^2)), with the rate (1 + v^2) exp(v^2): numbers for c = .5, 1, 2 and 4."""
    model = odesim.load_model("joma.self_consistent")
    ((key, rhs),) = model.equations.items()
    one = system({x: rhs.xreplace({key: x}).replace(lambda e: isinstance(e, Indexed), lambda e: r)}, {x: 0.1}, r=0.5)
    for c, rest, rate in ((1, 0.753089, 2.763), (2, 1.096434, 7.327), (4, 1.432897, 23.79)):
        found = odesim.branch(one, "r", (0.5, c))
        assert found["x"].values[[0, -1]] == pytest.approx([0.451540, rest], abs=1e-6) and found.sizes["special"] == 0
        assert found["eigenvalue"].values[[0, -1]] == pytest.approx([-1.476, -rate], rel=3e-4)  # of four digits
        w = [lambertw(float(r) ** 2).real for r in found["r"]]
        np.testing.assert_allclose(found["x"].values ** 2, w, rtol=1e-9)


@pytest.mark.parametrize("more", [{}, {"alpha": 1.7, "beta": 0.9}])
def test_collapse_under_a_moving_average(more):
    """BYOL's modes have SimSiam's p+ and p-, which meet in a fold at eta = 1/(4 (1 + sigma2)), with the target at W."""
    found = odesim.branch("self_supervised.modes_ema", "eta", (0.04, 1.0), sizes={"n": 1}, params=more)
    assert found["kind"].values.tolist() == ["fold"] and found["special_eta"].values == pytest.approx([1 / 4.4], abs=1e-10)
    p = found["p"].values[:, 0]
    assert p.max() == pytest.approx(0.8671565716, abs=1e-9) and p.min() == pytest.approx(0.0419343375, abs=1e-9)
    np.testing.assert_allclose(found["tau"], 1, atol=1e-9)


def test_order_of_the_density_of_noisy_tokens():
    """particles.density with 24 modes: order begins at K = kappa beta / I_1(beta) = .8847066188, a_1 = .4896680 at 1.1 times it."""
    threshold = float(0.5 / iv(1, 1.0))
    assert threshold == pytest.approx(0.8847066188, abs=1e-10)
    request: dict[str, Any] = {"params": {"kappa": 0.5, "beta": 1.0}, "initial": {"a": 0.05 ** np.arange(24)}}
    found = odesim.branch("particles.density", "K", (0.7 * threshold, 1.1 * threshold), **request)
    assert found["kind"].values.tolist() == ["branch"] and found["special_K"].values == pytest.approx([threshold], rel=1e-8)
    last = found.isel(point=int(np.argmax(found["a"].values[:, 1])))
    assert float(last["K"]) == pytest.approx(1.1 * threshold) and int(last["growing"]) == 0
    assert last["a"].values[1:3] == pytest.approx([0.4896680, 0.1645122], abs=1e-6)


def test_collapse_of_a_mode_of_simsiam():
    """p+ and p- = (1 +- sqrt(1 - 4 c eta)) / (2c), c = 1 + sigma2, meet in a fold at eta = 1/(4c); s = p^2/alpha on both."""
    c, alpha = 1.1, 1.7
    found = odesim.branch("self_supervised.modes", "eta", (0.04, 1.0), sizes={"n": 1}, params={"alpha": alpha})
    assert found["kind"].values.tolist() == ["fold"] and found["special_eta"].values == pytest.approx([1 / (4 * c)], abs=1e-12)
    p, upper = found["p"].values[:, 0], found["growing"].values == 0
    root = np.sqrt(np.maximum(1 - 4 * c * found["eta"].values, 0))
    np.testing.assert_allclose(p, (1 + np.where(upper, root, -root)) / (2 * c), atol=1e-6)  # the root of a rounding at the fold
    np.testing.assert_allclose(found["s"].values[:, 0], p**2 / alpha, atol=1e-9)
    assert p.max() == pytest.approx(0.8671565716, abs=1e-9) and p.min() == pytest.approx(0.0419343375, abs=1e-9)


def test_a_branch_stays_on_the_leaf():
    """x <-> y with rates r and 1: x = (sum) / (1 + r) for the sum of the start, without a special point."""
    found = odesim.branch(system({x: -r * x + y, y: r * x - y}, {x: 0.9, y: 0.6}, r=0.5), "r", (0.5, 3))
    np.testing.assert_allclose(found["x"], 1.5 / (1 + found["r"]), rtol=1e-9)
    assert found.sizes["special"] == 0 and not found["growing"].values.any()


WRONG: dict[str, tuple[Any, str, tuple[float, float], dict[str, Any], str]] = {
    "name": (PITCHFORK, "q", (-1, 1), {}, "no real parameter 'q'"),
    "empty": (PITCHFORK, "r", (1, 1), {}, "two different numbers"),
    "domain": ("hopfield.potts", "c", (-1, 4), {}, "outside"),
    "default": ("particles.density", "beta", (1, 2), {}, "the default of w is computed from beta"),
    "time": (system({x: time * r - x}, {x: 0.0}, r=1.0), "r", (0, 1), {}, "do not depend on t"),
    "no rest": (system({x: 1 + r**2}, {x: 0.0}, r=1.0), "r", (0, 1), {}, "leads to no rest state"),
    "line": (system({x: -r * x * y, y: r * x * y - y}, {x: 0.9, y: 0.1}, r=2.0), "r", (2, 3), {}, "one of a whole line of them"),
    "kink": (system({x: r * Max(x, 0) - x}, {x: 0.0}, r=1.0), "r", (0.5, 2), {}, "on a kink"),  # above r = 1 it grows on one side
    "entry": ("joma.nonlinear", "mu", (1, 2), {}, "named as mu.0., not mu"),
    "beyond": ("joma.nonlinear", "mu[10]", (1, 2), {}, "has shape"),
    "number": (PITCHFORK, "r[0]", (-1, 1), {}, "r is one number: write r, not r.0."),
    "below": ("joma.nonlinear", "mu[-1]", (1, 2), {}, "did you mean 'mu"),
    "map": (Map("test.map", SOURCE, {}, {x: r * x}, (Param(r, 0.5, REAL, "rate"),), {x: 0.1}), "r", (0, 0.5), {}, "is a Map"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_request_is_a_sentence(name):
    """What has no branches is refused."""
    model, parameter, span, request, words = WRONG[name]
    with pytest.raises(OdesimError, match=words):
        odesim.branch(model, parameter, span, **request)


WORDS = ["branch", "hopfield.potts", "c", "3:9", "--up-to", "k"]


def test_the_command(tmp_path, monkeypatch):
    """Prints a table in 80 columns, stores and draws; refuses with code 2 and writes nothing."""
    monkeypatch.chdir(tmp_path)
    for wrong in (["branch", "hopfield.potts", "c", "3"], ["branch", "hopfield.potts", "N", "3:9"], [*WORDS, "--plot", "b.txt"]):
        assert CliRunner().invoke(cli, [*wrong, "--out", "b.nc"]).exit_code == 2 and not list(tmp_path.iterdir())
    done = CliRunner().invoke(cli, [*WORDS, "--out", "b.nc", "--plot", "b.png"])
    assert "stable points" in done.output
    assert done.exit_code == 0 and max(map(len, done.stdout.splitlines())) <= 80, done.output
    assert {path.name for path in tmp_path.iterdir()} == {"b.nc", "b.png"}
    assert "fold" in json.loads(CliRunner().invoke(cli, [*WORDS, "--json"]).stdout)["kind"]


PITCHFORK_FILE = """
from sympy import Interval, oo, symbols
from odesim.symbolic import Param, Source, System
x, r = symbols("x r", real=True)
SYSTEM = System("test.branch", Source("none", "made for the tests"), {}, {x: r * x - x**3}, (Param(r, -1.0, Interval(-oo, oo), "rate"),),
                {x: 0.1}, span=(0.0, 200.0))
"""


def test_a_range_may_begin_below_0(tmp_path):
    """A range is no option, before and after the options."""
    (file := tmp_path / "pitchfork.py").write_text(PITCHFORK_FILE)
    for before, ends, after in ((), "-.5:.5", ["--json"]), (["--json"], "-1e-1:0.5", ()), (["--json", "--"], "-.5:0.5", ()):
        done = CliRunner().invoke(cli, ["branch", *before, str(file), "r", ends, *after])
        assert done.exit_code == 0 and json.loads(done.stdout)["kind"] == ["branch"], done.output


@pytest.mark.parametrize(
    ("word", "names"),
    [("-3", "no option '-3'"), ("-3:x", "'x'"), ("-3:1:2", "is A:B, as in 0:2, not '-3:1:2'"), ("--rang", "no option '--rang'")],
)
def test_what_is_no_range_is_refused(word, names):
    """With a sentence about what was typed."""
    done = CliRunner().invoke(cli, ["branch", "hopfield.potts", "c", word])
    assert done.exit_code == 2 and names in done.output and "' -" not in done.output


@pytest.mark.slow
def test_order_of_noisy_tokens():
    """Fourier modes of tokens on the circle: order begins at K = kappa beta / I_1(beta); its size is that of the density."""
    kappa, beta, modes = 0.5, 1.0, 12
    c = [2 * iv(m, beta) / beta for m in range(modes + 1)]
    state = [Integer(1), *symbols(f"a1:{modes + 1}", real=True), *[Integer(0)] * modes]
    rates = {
        state[m]: -kappa * m**2 * state[m]
        + Symbol("K", real=True) * m / 2 * sum(n * c[n] * state[n] * (state[abs(m - n)] - state[m + n]) for n in range(1, modes + 1))
        for m in range(1, modes + 1)
    }
    threshold = float(kappa * beta / iv(1, beta))
    found = odesim.branch(system(rates, dict.fromkeys(rates, 0.05), K=0.7), "K", (0.7 * threshold, 1.1 * threshold))
    assert found["kind"].values.tolist() == ["branch"] and found["special_K"].values == pytest.approx([threshold], rel=1e-8)
    last = found.isel(point=int(np.argmax(found["a1"].values)))
    assert float(last["K"]) == pytest.approx(1.1 * threshold) and int(last["growing"]) == 0
    # the density exp(K / kappa sum_l c_l a_l cos(l theta)) has these moments
    theta = np.linspace(0, 2 * np.pi, 400, endpoint=False)
    a_ = np.array([float(last[f"a{m}"]) for m in range(1, modes + 1)])
    density = np.exp(float(last["K"]) / kappa * sum(c[m] * a_[m - 1] * np.cos(m * theta) for m in range(1, modes + 1)))
    moments = [np.sum(density * np.cos(m * theta)) / density.sum() for m in (1, 2)]
    np.testing.assert_allclose(a_[:2], moments, rtol=1e-6)  # of twelve modes

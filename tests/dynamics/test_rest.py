"""Rest states: those of closed forms, numpy's roots and scipy's equations, with their eigenvalues; what has none is said."""

import json
import re
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.optimize import brentq, root
from sympy import Interval, Max, Piecewise, Sum, Symbol, exp, oo, symbols

import odesim
from odesim.base.arrays import Layout
from odesim.base.errors import OdesimError, ParamError
from odesim.cli.app import cli
from odesim.dynamics.field import make_field
from odesim.dynamics.newton import singular
from odesim.dynamics.rest import labels_of
from odesim.inputs.bind import bind
from odesim.inputs.registry import load_model
from odesim.symbolic import IndexedBase, Invariant, Map, Param, Source, System, gradient_flow, index, over, sizes, time
from tests.support.models import CHEAPEST_FIRST
from tests.support.truth import RIGHT_SIDES

SOURCE = Source("none", "made for the tests")
REAL = Interval(-oo, oo)
x, y, a, b = symbols("x y a b", real=True)
(m,), (M,) = index("m"), sizes("M")
v = IndexedBase("v", shape=(M,))


def system(equations, *, params=(), initial=None, **more):
    """A System of these equations {state: right-hand side} from 0.5."""
    start = dict.fromkeys(equations, 0.5) if initial is None else initial
    return System("test.rest", SOURCE, more.pop("axes", {}), equations, params, start, **more)


COEFFICIENTS = {
    "three": [-1.0, 0.3, 2.0, -0.4],
    "five": [1.0, 0.0, -5.0, 0.5, 4.0, -0.2],
    "one of three": [-1.0, 0.0, -1.0, 0.7],
}


@pytest.mark.parametrize("name", COEFFICIENTS)
def test_roots_of_a_polynomial(name):
    """Random starts find the real roots that numpy finds, each once, and the slope there is the eigenvalue."""
    p = np.array(COEFFICIENTS[name])
    roots = np.roots(p)
    real = np.sort(roots[np.abs(roots.imag) < 1e-9].real)
    found = odesim.rest(system({x: sum(c * x**k for k, c in enumerate(p[::-1].tolist()))}), vary={"x": "uniform(-3,3)"}, members=60)
    order = np.argsort(found["x"].values)
    np.testing.assert_allclose(found["x"].values[order], real, rtol=1e-12)
    slopes = np.polyval(np.polyder(p), real)
    np.testing.assert_allclose(found["eigenvalue_real"].values[order, 0], slopes, rtol=1e-10)
    assert found["stability"].values[order].tolist() == ["stable" if s < 0 else "unstable" for s in slopes]
    assert int(found["times"].sum()) + found.attrs["failed"] == 60


@pytest.mark.parametrize("unit", [1.0, 1e-6, 1e-9, 1e-12, 1e-19, 1e-34])
def test_a_unit_changes_no_digits(unit):
    """x' = (x - 1)(x - 3)(5 - x) in units of 1e-9, as of nanomoles in mol, has the same states, each once, with the same eigenvalues.

    Charges in C are 1e-19: all terms of f are less than the rounding of 1.
    """
    s = symbols("s", positive=True)
    scaled = system({x: (x - s) * (x - 3 * s) * (5 * s - x) / s**2}, params=(Param(s, unit, Interval.open(0, oo), "unit"),))
    found = odesim.rest(scaled, vary={"x": unit * np.linspace(0.2, 6, 30)})
    order = np.argsort(found["x"].values)
    np.testing.assert_allclose(found["x"].values[order] / unit, [1, 3, 5], rtol=1e-12)  # rounding
    np.testing.assert_allclose(found["eigenvalue_real"].values[order, 0], [-8, 4, -8], rtol=1e-10)


def test_states_of_the_potts_model():
    """At c = 4.4 there are the uniform state, and a stable and a growing one with one larger overlap, each in N places."""
    N, c = 8, 4.4

    def off(z):  # the equation of one overlap z and N - 1 others that share the rest
        return z - 1 / (1 + (N - 1) * np.exp(c * ((1 - z) / (N - 1) - z)))

    low, high = brentq(off, 0.3, 0.7, xtol=1e-14), brentq(off, 0.7, 1.0, xtol=1e-14)
    found = odesim.rest("hopfield.potts", params={"c": c}, vary={"z": "uniform(0,1)"}, members=60, up_to="k")
    largest = dict(zip(found["stability"].values.tolist(), found["z"].values.max(axis=1).tolist(), strict=True))
    assert sorted(found["z"].values.max(axis=1)) == pytest.approx([1 / N, low, high], abs=1e-10)
    assert largest["saddle"] == pytest.approx(low, abs=1e-10)
    # the uniform state: c/N - 1 in every direction of sum 0
    uniform = found.isel(rest=int(np.argmin(found["z"].values.max(axis=1))))
    assert uniform["eigenvalue_real"].values[:7] == pytest.approx(c / N - 1, abs=1e-10)


def test_equal_energies_of_the_potts_model():
    """At c = 2 (N - 1) log(N - 1) / (N - 2) a retrieved pattern has the energy of the uniform state, and the overlap (N - 1) / N."""
    N = 8
    c = 2 * (N - 1) * np.log(N - 1) / (N - 2)
    found = odesim.rest("hopfield.potts", params={"c": c}, vary={"z": "uniform(0,1)"}, members=40, up_to="k")
    stable = found.isel(rest=np.flatnonzero(found["stability"].values == "stable"))
    assert sorted(stable["z"].values.max(axis=1)) == pytest.approx([1 / N, (N - 1) / N], abs=1e-12)
    assert stable["energy"].values[0] == pytest.approx(stable["energy"].values[1], abs=1e-14)


def test_rest_state_of_joma():
    """v = mu with the rates exp(mu^2 / 2), all of which decay."""
    mu = np.array([2.0, 1.0, 0.5])
    found = odesim.rest("joma.nonlinear", params={"mu": mu})
    np.testing.assert_allclose(found["v"].values, [mu], rtol=1e-12)
    np.testing.assert_allclose(np.sort(found["eigenvalue_real"].values[0]), np.sort(-np.exp(mu**2 / 2)), rtol=1e-10)


def test_newton_stays_on_the_leaf():
    """x <-> y at rates 1 and 2: of a line of rest states it takes the one of the start's sum, and the zero eigenvalue is no part of it."""
    found = odesim.rest(system({x: -x + 2 * y, y: x - 2 * y}, initial={x: 0.9, y: 0.6}))
    assert (float(found["x"][0]), float(found["y"][0])) == pytest.approx((1.0, 0.5), abs=1e-12)
    assert found["stability"].values.tolist() == ["stable"]
    assert found["eigenvalue_real"].values[0, 0] == pytest.approx(-3, abs=1e-12) and np.isnan(found["eigenvalue_real"].values[0, 1])


def test_invariants_that_have_parameters_are_kept():
    """k2 u + k1 v is one of u' = k1 (v - u^3), v' = k2 (u^3 - v): 3 u + u^3 = 3. The slope along it is -3 - 3 u^2."""
    found = odesim.rest(
        system(
            {x: -a * x**3 + a * y, y: b * x**3 - b * y}, initial={x: 1.0, y: 0.0},
            params=(Param(a, 1.0, REAL, "rate"), Param(b, 3.0, REAL, "rate")),
        )
    )  # fmt: skip
    u = brentq(lambda u: 3 * u + u**3 - 3, 0, 1, xtol=1e-15)
    assert found["x"].values == pytest.approx([u], abs=1e-12)
    assert found["stability"].values.tolist() == ["stable"]
    assert found["eigenvalue_real"].values[0, 0] == pytest.approx(-3 - 3 * u**2, abs=1e-9)


@pytest.mark.parametrize("n", [7, 200])
def test_invariants_of_more_states_are_kept(n):
    """Attraction with masses 1/b: the center of mass is where all come together, above and below what symbols are searched for."""
    (i, j), (N,) = index("i j"), sizes("N")
    z, masses = IndexedBase("z", shape=(N,)), IndexedBase("masses", shape=(N,))
    pull = (z[j] - z[i]) / (1 + (z[j] - z[i]) ** 2)
    model = System(
        "test.masses", SOURCE, {i: N}, {z[i]: over(Sum, pull, (j, N)) / masses[i] / N}, (Param(masses, 1.0, REAL, "masses"),),
        {z[i]: i / N}, sizes={N: 5}, span=(0.0, 0.01),
    )  # fmt: skip
    start = np.arange(n) / n
    found = odesim.rest(model, sizes={"N": n}, params={"masses": 1 / (1 + start)})
    np.testing.assert_allclose(found["z"].values, np.full((1, n), np.average(start, weights=1 / (1 + start))), rtol=1e-11)
    assert found["stability"].values.tolist() == ["stable"]
    assert np.isnan(found["eigenvalue_real"].values[0]).sum() == 1


def test_what_changes_slowly_is_no_invariant():
    """A rate of 1e-9 beside one of 1, a right-hand side that is 0 on one side, and a sum that only the simplex holds."""
    slow = make_field(s := system({x: -x + y, y: -1e-9 * y}), bind(s), "")
    half = make_field(s := system({x: Max(x, 0) - y, y: Max(y - 1, 0)}), bind(s), "")
    replicator = make_field(s := system({x: x * (1 - x - 2 * y), y: y * (2 - x - 2 * y)}), bind(s), "")
    assert [len(field.weights) for field in (slow, half, replicator)] == [0, 0, 0]


def test_saddle_of_a_training_and_its_minimum():
    """Two layers a b -> s from small weights: the run passes the saddle at 0 with eigenvalues s and -s, and ends where a b = s."""
    s, start = 2.0, 1e-3
    loss = (s - a * b) ** 2 / 2
    law = Invariant("balance", a**2 - b**2, "constant")
    flow = system(gradient_flow(loss, {a: 1, b: 1}), initial={a: start, b: start}, span=(0.0, 10.0), invariants=(law,))
    found = odesim.rest(flow)
    assert found["loss"].values == pytest.approx([0, s**2 / 2], abs=1e-12)
    assert found["index"].values.tolist() == [0, 1] and found["stability"].values.tolist() == ["stable", "saddle"]
    assert np.abs([found["a"].values[0], found["b"].values[0]]) == pytest.approx(np.sqrt(s), abs=1e-9)
    assert found["eigenvalue_real"].values[0, 0] == pytest.approx(-2 * s, abs=1e-8)
    assert found["eigenvalue_real"].values[1, 0] == pytest.approx(s, abs=1e-8)


def test_fixed_points_of_a_map():
    """Henon's map has two, with the multipliers of its matrix."""
    henon = Map("test.henon", SOURCE, {}, {x: 1 - 1.4 * x**2 + y, y: 0.3 * x}, (), {x: 0.1, y: 0.1})
    found = odesim.rest(henon, vary={"x": "uniform(-2,2)", "y": "uniform(-1,1)"}, members=30)
    expected = np.sort(np.roots([1.4, 0.7, -1]).real)
    order = np.argsort(found["x"].values)
    np.testing.assert_allclose(found["x"].values[order], expected, rtol=1e-12)
    for k, at in zip(order, expected, strict=True):
        multipliers = np.linalg.eigvals([[-2.8 * at, 1], [0.3, 0]])
        assert found["eigenvalue_real"].values[k] == pytest.approx(multipliers[np.argsort(-np.abs(multipliers))], rel=1e-10)
        assert found["index"].values[k] == np.sum(np.abs(multipliers) > 1)


@pytest.mark.parametrize("power", [3, 5])
def test_a_root_of_higher_order_is_neutral(power):
    """y' = -y^3 rests at 0 without an eigenvalue that decays, beside a state that does."""
    found = odesim.rest(system({y: -(y**power), x: 1 - x}))
    assert found["stability"].values.tolist() == ["neutral"] * found.sizes["rest"]
    assert np.abs(found["y"].values) == pytest.approx(0, abs=1e-2) and found["x"].values == pytest.approx(1)


def test_what_cannot_be_met_is_no_rest_state():
    """x'' = x rests at 0 only, where x^2 - y^2 is not the 1 of the start: least squares of both are no root."""
    law = Invariant("energy", x**2 - y**2, "constant")
    found = odesim.rest(system({x: y, y: x}, initial={x: 1.0, y: 0.0}, invariants=(law,), span=(0.0, 1.0)))
    assert found.sizes["rest"] == 0 and found.attrs["failed"] == found.attrs["starts"]


def test_names_of_the_dataset_may_be_those_of_a_model():
    """A state `index` over an index `mode`, and an observable `rest`, have a _ more."""
    (mode,), state = index("mode"), IndexedBase("index", shape=(M,))
    model = system({state[mode]: 2 - state[mode]}, axes={mode: M}, sizes={M: 3}, observables={"rest": 2 * state[mode]})
    found = odesim.rest(model)
    assert found["index_"].dims == ("rest", "mode_") and found["rest_"].values == pytest.approx(np.full((1, 3), 4.0))
    assert found["index"].values.tolist() == [0] and found.attrs["rest_states"] == "index_"
    assert len(found.odesim.plot()) == 2


def test_slopes_of_laws():
    """Exact, also of laws with indices: those of differences, 1e-8 of their rounding."""
    model = load_model("scan_snap.reduced")
    values = bind(model, sizes=smallest(model))
    field = make_field(model, values, "rest states")
    at = field.layout.join(values.initial) + 0.1 * np.random.default_rng(0).random(field.n)
    laws = tuple(law for law in model.invariants if law.sense == "constant")
    slopes = np.vstack([field.slopes(law, at) for law in laws])
    h, eye = 1e-6, np.eye(field.n)
    differences = np.array([(field.kept(laws, at + h * e) - field.kept(laws, at - h * e)) / (2 * h) for e in eye]).T
    assert slopes.shape == (6, 7) and np.any(slopes)
    np.testing.assert_allclose(slopes, differences, atol=1e-8)


def smallest(model):
    """Sizes of a model, all alike and as small as it takes them."""
    for n in range(2, 9):
        try:
            bind(model, sizes=dict.fromkeys(model.size_names, n))
        except OdesimError:
            continue
        return dict.fromkeys(model.size_names, n)
    return None


QUICK = ("joma.self_consistent", "joma.linear_attention", "hopfield.classical")
"""An observable `rest`; no rest state on the leaf of the start; one that depends on t."""


@pytest.mark.first(len(QUICK))
@pytest.mark.parametrize("name", [*QUICK, *(name for name in CHEAPEST_FIRST if name not in QUICK)])
def test_every_model(name):
    """It ends with states at which the right-hand side by hand is 0, or a sentence; scipy comes back to those without zero eigenvalues.

    Tolerances: Newton's corrections are below 1e-10, or rounding; scipy's are below 1e-8.
    """
    model = load_model(name)
    values = bind(model, sizes=smallest(model))
    try:
        found = odesim.rest(model, sizes=values.sizes)
    except ParamError as error:
        assert re.search("do not depend on t|has noise", str(error))
        return
    layout = Layout(tuple(values.initial), tuple(np.shape(v) for v in values.initial.values()))

    def f(y):
        with np.errstate(all="ignore"):
            slopes = layout.join(RIGHT_SIDES[name](0.0, layout.split(y), values.params))
        if not np.isfinite(slopes).all():  # a softmax by hand, without a shift, overflows where logits are above 709
            return make_field(model, values, "rest states")(y)
        return slopes - y if model.discrete else slopes

    for k in range(found.sizes["rest"]):
        y = layout.join({state: found[labels_of(model)[state]].values[k] for state in layout.names})
        assert np.max(np.abs(f(y))) <= 1e-9 * max(1.0, float(np.max(np.abs(y))))
        eigenvalues = found["eigenvalue_real"].values[k] + 1j * found["eigenvalue_imag"].values[k] - model.discrete
        if np.isfinite(eigenvalues).all() and np.min(np.abs(eigenvalues)) > 1e-2:
            beside = y + 1e-4 * np.random.default_rng(0).standard_normal(len(y))
            again = root(f, beside, tol=1e-12)
            # its own flag is no law: where f is a difference of large numbers it sees no progress below their rounding
            assert np.max(np.abs(again.x - y)) <= 1e-7 * max(1.0, float(np.max(np.abs(y)))), again.message


def test_what_only_slows_down_does_not_rest():
    """y' = exp(-y) goes on for ever, however small its right-hand side, alone and beside states that rest."""
    found = odesim.rest(system({y: exp(-y), x: 1 - x}, span=(0.0, 1e6)))
    assert found.sizes["rest"] == 0 and found.attrs["failed"] == found.attrs["starts"]


def test_what_fades_to_zero_in_rounding_does_not_rest():
    """1 - 1/(1 + exp(-y)) is 0 in float64 from y = 37 on, where Newton's steps are still 1 long; so on the leaf of a law."""
    tail = 1 - 1 / (1 + exp(-y))
    for equations in ({y: tail, x: 1 - x}, {y: tail, x: -tail}):
        found = odesim.rest(system(equations, span=(0.0, 100.0)))
        assert found.sizes["rest"] == 0 and found.attrs["failed"] == found.attrs["starts"], found


def test_where_divide_and_conquer_gives_up_iteration_does_not(monkeypatch):
    """A matrix that LAPACK's gesdd refuses is decomposed by gesvd."""

    def refuse(*_: Any, **__: Any) -> Any:
        raise np.linalg.LinAlgError("SVD did not converge")

    monkeypatch.setattr(np.linalg, "svd", refuse)
    A = np.random.default_rng(3).normal(size=(5, 3)) * 10.0 ** np.array([0, -20, -40])
    U, s, V = singular(A)
    assert (U * s) @ V == pytest.approx(A, rel=1e-12) and s[0] > s[1] > s[2] > 0


def test_states_outside_their_sets_are_left_out():
    """Of x' = x^2 - 1 a positive x has the one rest state."""
    p = Symbol("p", positive=True)
    found = odesim.rest(system({p: p**2 - 1}, span=(0.0, 0.1)), vary={"p": [0.3, 0.9, 2.0, 1e-3]})
    assert found["p"].values == pytest.approx([1.0])


k = Symbol("k", real=True)
RATE = Param(k, 1.0, REAL, "rate")
FAR = {v[m]: (2 - v[m]) * Piecewise((1 + m, v[m] > 1), (1, True))}
"""Places are alike where the run begins, and not where it ends."""
WRONG: dict[str, tuple[Any, dict[str, Any], str]] = {
    "time": (system({x: time - x}), {}, "do not depend on t"),
    "noise": ("particles.noisy_circle", {}, "has noise"),
    "large": (system({v[m]: -v[m]}, axes={m: M}, sizes={M: 3}), {"sizes": {"M": 200_001}}, "at most 200000 states"),
    "parameter": (system({x: k - x}, params=(RATE,)), {"vary": {"k": "uniform(0,1)"}, "members": 3}, "k is a parameter"),
    "index": ("hopfield.potts", {"up_to": "j"}, "no index of a state 'j'"),
    "order": (system({v[m]: m - v[m]}, axes={m: M}, sizes={M: 3}), {"up_to": "m"}, "not the same in another order along m"),
    "order at the end": (system(FAR, axes={m: M}, sizes={M: 3}), {"up_to": "m"}, "not the same in another order along m"),
    "steps": (system({x: -x}), {"steps": 3}, "steps"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_request_is_a_sentence(name):
    """What has no rest states, or asks for what is not there, is refused."""
    model, request, words = WRONG[name]
    with pytest.raises(OdesimError, match=words):
        odesim.rest(model, **request)


WORDS = ["rest", "hopfield.potts", "--set", "c=4.4", "--vary", "z=uniform(0,1)", "--members", "12", "--up-to", "k"]


def test_the_command(tmp_path, monkeypatch):
    """Prints a table in 80 columns; stores, draws and prints the same states as Python has."""
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(cli, [*WORDS, "--out", "r.nc", "--plot", "r.png"])
    assert done.exit_code == 0 and max(map(len, done.stdout.splitlines())) <= 80, done.output
    import xarray as xr

    found = odesim.rest("hopfield.potts", params={"c": 4.4}, vary={"z": "uniform(0,1)"}, members=12, up_to="k")
    with xr.open_dataset("r.nc") as stored:
        np.testing.assert_array_equal(stored["z"], found["z"])
    assert (tmp_path / "r.png").stat().st_size > 1000
    printed = json.loads(CliRunner().invoke(cli, [*WORDS, "--json"]).stdout)
    assert printed["stability"] == found["stability"].values.tolist() and printed["starts"] == 12
    assert len(found.odesim.plot()) == 2


def test_the_command_refuses(tmp_path, monkeypatch):
    """Exit code 2 and nothing written."""
    monkeypatch.chdir(tmp_path)
    for words in (["--up-to", "q"], ["--set", "c=-1"], ["--out", "no/r.nc"], ["--out", "r.csv"], ["--plot", "r.txt"]):
        done = CliRunner().invoke(cli, [*WORDS, *words])
        assert done.exit_code == 2 and not list(tmp_path.iterdir()), (words, done.output)


def test_what_is_constant_only_about_the_start():
    """x - y stays where x + y < 1000, and grows at rate 5 about (600, 600), to which x = y leads: a saddle."""
    both, apart = 2 + (x - y) / 10, 3 * (x - y)
    far = system({x: Piecewise((both, x + y < 1000), (600 - x + apart, True)), y: Piecewise((both, x + y < 1000), (600 - y - apart, True))})
    found = odesim.rest(far, span=(0, 1000))
    assert found["stability"].values.tolist() == ["saddle"] and found["index"].values.tolist() == [1]
    np.testing.assert_allclose(np.sort(found["eigenvalue_real"].values[0]), [-1, 5], rtol=1e-9)


KINKS: dict[str, tuple[Any, dict[str, Any], list[str]]] = {
    "grows on the left": ({x: Piecewise((2 * x, x < 0), (-x, True))}, {x: 0.0}, ["unknown"]),
    "grows on the right": ({x: Piecewise((2 * x, x >= 0), (-x, True))}, {x: 0.0}, ["unknown"]),
    "between two units": ({x: -x + 3 * Max(x - y, 0), y: -y + 3 * Max(y - x, 0)}, {x: 0.0, y: 0.0}, ["unknown"]),
    "elsewhere": ({x: -x + 3 * Max(x - 1, 0), y: -y}, {x: 0.5, y: 0.5}, ["stable"]),
    # of the kinds only that it is known: how far eigenvalues may be off is measured in all directions
    "across what x + y is": ({x: y - x + Max(x + y, 0) / 2, y: x - y - Max(x + y, 0) / 2}, {x: 0.5, y: -0.5}, ["neutral"]),
    "a bend": ({x: -x + x * abs(x)}, {x: 0.0}, ["stable"]),
}


@pytest.mark.parametrize("name", KINKS)
def test_at_a_kink_no_stability_is_known(name):
    """The Jacobian of one side says nothing of the other; a kink elsewhere, or off the leaf, changes nothing."""
    equations, start, kinds = KINKS[name]
    at_rest = odesim.rest(system(equations, initial=start), vary={str(s): [float(value)] for s, value in start.items()})
    assert at_rest["stability"].values.tolist() == kinds
    assert np.isnan(at_rest["index"].values).tolist() == [kind == "unknown" for kind in kinds]


def test_the_command_finds_none(monkeypatch, tmp_path):
    """No rest state is an answer, with a code of its own."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "away.py").write_text(
        "from sympy import symbols\nfrom odesim.symbolic import System\nx = symbols('x')\n"
        "SYSTEM = System('my.away', equations={x: 1 + x**2}, initial={x: 0}, span=(0, 1.0))\n"
    )
    done = CliRunner().invoke(cli, ["rest", "away.py"])
    assert done.exit_code == 3 and "my.away: 0 rest states" in done.stdout, done.output

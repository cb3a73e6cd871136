"""Tables: the function through given points, held against numpy and SciPy, and runs that it drives."""

import ctypes
import shutil
import subprocess
from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from itertools import pairwise
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.interpolate import PchipInterpolator
from scipy.optimize import brentq
from sympy import Abs, Interval, Piecewise, Sum, Symbol, oo

import odesim
from odesim.base.errors import ParamError, SpecError
from odesim.display.document import latex_document
from odesim.display.text import describe
from odesim.inputs.grammar import parse_value
from odesim.symbolic import Constraint, Event, IndexedBase, Param, Source, System, index, named, over, sizes, table
from odesim.symbolic import time as t
from odesim.targets.compiled import compile_system

KINDS = ("linear", "pchip", "step")
(k, i), (K, N) = index("k i"), sizes("K N")
T, u, U = IndexedBase("T", shape=(K,)), IndexedBase("u", shape=(K,)), IndexedBase("U", shape=(N, K))
x, real = Symbol("x", real=True), Interval(-oo, oo)
TIMES = Param(T, lambda sizes: range(sizes["K"]), real, "times")
INCREASING = (Constraint("times", T[k], "increasing"),)
POINTS = {"T": [0.0, 0.5, 0.51, 2.0, 3.0], "u": [1.0, 3.0, -1.0, 2.0, 0.5]}
"""A peak of a hundredth of the others' distance."""


@cache
def driven(kind):
    """A state that follows a table of the time, and the table itself."""
    e = table(t, T[k], u[k], kind)
    return System(
        name="test.driven",
        source=Source("own", "test"),
        axes={k: K},
        equations={x: e - x},
        params=(TIMES, Param(u, 0.0, real, "input")),
        constraints=INCREASING,
        initial={x: 0},
        observables={"input": e},
        sizes={K: 5},
        span=(-1.0, 4.0),
    )


def curve(kind, times, values):
    """The table by numpy and SciPy, a function of an array of times."""
    times, values = np.asarray(times), np.asarray(values)
    if kind == "linear" or len(times) == 1:
        return lambda at: np.interp(at, times, values)
    if kind == "step":
        return lambda at: values[np.maximum(np.searchsorted(times, at, "right") - 1, 0)]
    smooth = PchipInterpolator(times, values)
    return lambda at: smooth(np.clip(at, times[0], times[-1]))


def by_scipy(kind, times, values, span=(-1.0, 4.0)):
    """x at the end, by DOP853 from one point to the next."""
    f, y = curve(kind, times, values), 0.0
    edges = [span[0], *times, span[1]]
    for a, b in pairwise(edges):
        held = f(0.5 * (a + b))  # a step that ends at a point would see the jump there

        def rate(at, y, held=held):
            return (held if kind == "step" else f(at)) - y

        y = solve_ivp(rate, (a, b), [y], method="DOP853", rtol=1e-12, atol=1e-14).y[0, -1]
    return y


@pytest.mark.first(3)
@pytest.mark.parametrize("count", [5, 9, 1, 2, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_table_and_run(kind, count):
    """At the points, between and beyond them; rounding of sums of a few rises, integration at 1e-10."""
    rng = np.random.default_rng(count)
    points = {"T": np.sort(rng.uniform(0, 3, count)), "u": rng.normal(size=count)}
    if count == 9:  # flat, and steep
        points["u"][3:6] = 1.0
        points["T"][7] = points["T"][6] + 1e-3
    save = np.unique([*points["T"], *np.linspace(-1, 4, 41)])
    run = odesim.integrate(driven(kind), params=points, save=save, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(run.observables["input"], curve(kind, **names(points))(run.t), rtol=0, atol=1e-14)
    assert float(run.final["x"]) == pytest.approx(by_scipy(kind, **names(points)), abs=1e-11)


def names(points):
    return {"times": points["T"], "values": points["u"]}


@pytest.mark.first(2)
@pytest.mark.parametrize("method", ["tsit5", "rk4", "rodas5p"])
def test_no_step_passes_over_a_peak(method):
    """Points are stops of every method: at a loose tolerance, and with steps 50 times as long as the peak."""
    options: dict[str, Any] = {"step": 0.5} if method == "rk4" else {"rtol": 1e-3, "atol": 1e-3}
    run = odesim.integrate(driven("linear"), params=POINTS, method=method, **options)
    wanted = by_scipy("linear", POINTS["T"], POINTS["u"])
    assert float(run.final["x"]) == pytest.approx(wanted, abs=2e-3)
    flat = by_scipy("linear", [0, 2, 3], [1, 2, 0.5])
    assert abs(wanted - flat) > 0.05


@pytest.mark.first(1)
@pytest.mark.parametrize("kind", KINDS[::-1])
def test_members_are_runs(kind):
    """Each member has its own points, and the bits of its run."""
    many: dict[str, Any] = {
        "T": np.multiply.outer(1 + np.arange(9) / 50, POINTS["T"]),
        "u": np.multiply.outer(1 + np.arange(9) / 10, POINTS["u"]),
    }
    members = odesim.ensemble(driven(kind), zipped=many, strict=True)
    for n in (0, 5, 8):
        alone = odesim.integrate(driven(kind), params={name: rows[n] for name, rows in many.items()}, strict=True)
        assert members["x"].values[n, -1] == alone.final["x"]


@pytest.mark.first(1)
@pytest.mark.parametrize("kind", KINDS)
def test_sensitivities(kind):
    """Derivatives by values and by times beside central differences of runs: h**2 and rounding/h are about 1e-9."""
    tight: dict[str, Any] = {"rtol": 1e-11, "atol": 1e-13}
    run = odesim.integrate(driven(kind), params=POINTS, sensitivities=["u", "T"], **tight)
    for name in ("u", "T"):
        for n in (0, 2, 3):
            ends = []
            for h in (1e-5, -1e-5):
                moved = {key: np.array(rows) for key, rows in POINTS.items()}
                moved[name][n] += h
                ends.append(float(odesim.integrate(driven(kind), params=moved, **tight).final["x"]))
            assert run.final[f"dx_d{name}"][n] == pytest.approx((ends[0] - ends[1]) / 2e-5, abs=1e-8)


def test_values_are_fitted():
    """The input behind a response, from the response."""
    run = odesim.integrate(driven("linear"), params=POINTS, save=31, rtol=1e-9)
    fit = odesim.fit(driven("linear"), {"t": run.t, "x": run.y["x"]}, free=["u"], params={"T": POINTS["T"]}, starts=1)
    np.testing.assert_allclose(fit["value"], POINTS["u"], atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_exports(kind, tmp_path):
    """A document gives the same bits; code for numpy, JAX and C the same table."""
    again = odesim.from_json(odesim.to_json(driven(kind)))
    runs = [odesim.integrate(s, params=POINTS, strict=True).final["x"] for s in (driven(kind), again)]
    assert runs[0] == runs[1]
    at = np.array([-1.0, 0.0, 0.2, 0.505, 0.51, 1.7, 3.0, 3.5])
    wanted = curve(kind, POINTS["T"], POINTS["u"])(at) - 2.0
    points = {name: np.array(rows) for name, rows in POINTS.items()}
    for language in ("numpy", "jax") if find_spec("jax") else ("numpy",):
        made = ModuleType("exported")
        exec(compile(odesim.to_code(driven(kind), language), "exported.py", "exec"), made.__dict__)
        found = [float(made.right_hand_side(float(a), {"x": 2.0}, points)["x"]) for a in at]
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-14)


@pytest.mark.parametrize("kind", KINDS[::-1])
def test_gradients_by_jax(kind):
    """By values and by times, beside central differences of SciPy's curve: no branch that is left out is nan."""
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    times, values = np.array([0.0, 0.5, 0.6, 2.0, 3.0, 4.0]), np.array([1.0, 3.0, -1.0, 2.0, 2.0, 2.5])
    made = ModuleType("exported")
    exec(compile(odesim.to_code(driven(kind), "jax", sizes={"K": 6}), "exported.py", "exec"), made.__dict__)
    gradient = jax.jit(jax.grad(lambda T, u, at: made.right_hand_side(at, {"x": 0.0}, {"T": T, "u": u})["x"], argnums=(0, 1)))
    smooth = [0, 1, 5] if kind == "pchip" else [*range(6)]  # the slope has a kink where the values beside a point are equal
    h, none = 1e-6 * np.eye(6), np.zeros((6, 6))
    for at in (-1.0, 0.3, 0.55, 1.2, 3.5, 6.0):
        for found, (dT, du) in zip(gradient(times, values, at), ((h, none), (none, h)), strict=True):
            up, down = (np.array([curve(kind, times + w * a, values + w * b)(at) for a, b in zip(dT, du, strict=True)]) for w in (1, -1))
            np.testing.assert_allclose(np.asarray(found)[smooth], ((up - down) / 2e-6)[smooth], atol=1e-7)
            assert np.isfinite(found).all()


@pytest.mark.parametrize("kind", KINDS)
def test_c(kind, tmp_path):
    """C with the default points, 0 to 4 with the values 1 to 5."""
    gcc = shutil.which("gcc") or shutil.which("cc")
    if gcc is None:
        pytest.skip("no C compiler")
    system = driven(kind)
    code = odesim.to_code(system, "c")
    (tmp_path / "a.c").write_text(code)
    subprocess.run([gcc, "-O1", "-shared", "-fPIC", "-o", tmp_path / "a.so", tmp_path / "a.c", "-lm"], check=True)
    call = ctypes.CDLL(str(tmp_path / "a.so")).right_hand_side
    numbers = ctypes.c_double * 10
    parameters = numbers(0, 1, 2, 3, 4, 1, 3, -1, 2, 0.5)
    for at in (-1.0, 0.0, 0.3, 2.0, 3.9, 5.0):
        state, rates = (ctypes.c_double * 1)(2.0), (ctypes.c_double * 1)()
        call(ctypes.c_double(at), state, rates, parameters)
        assert rates[0] == pytest.approx(curve(kind, [0, 1, 2, 3, 4], POINTS["u"])(at) - 2.0, abs=1e-14)


def test_a_stored_run(tmp_path):
    """Columns of a csv drive a run; an ensemble of inputs that was begun elsewhere goes on with the same bits."""
    (tmp_path / "input.csv").write_text("t,u,note\n0,1,a\n0.5,3,\n0.51,-1,\n2,2,b\n3,0.5,\n")
    values = {name: parse_value(f"@{tmp_path}/input.csv[{column}]", name) for name, column in (("T", "t"), ("u", "u"))}
    system = driven("pchip")
    read: dict[str, Any] = {name: value.array(1) for name, value in values.items()}
    run = odesim.integrate(system, params=read, strict=True)
    assert run.final["x"] == odesim.integrate(system, params=POINTS, strict=True).final["x"]
    rows = np.multiply.outer([1.0, 2.0, 3.0], POINTS["u"])
    options: dict[str, Any] = {"params": {"T": POINTS["T"]}, "vary": {"u": rows}, "strict": True}
    odesim.ensemble(driven("step"), out=tmp_path / "a.zarr", shard=(2, 2), **options)
    again = odesim.ensemble(driven("step"), out=tmp_path / "a.zarr", resume=True, **options)
    np.testing.assert_array_equal(again["x"], odesim.ensemble(driven("step"), **options)["x"])
    np.testing.assert_array_equal(again["u"], rows)  # on an axis that no state has


@pytest.mark.first(1)
@pytest.mark.parametrize("kind", KINDS[::-1])
def test_rows_of_inputs(kind):
    """u[i, k] is an input for each i, also inside a sum."""
    y = IndexedBase("y", shape=(N,))
    system = System(
        name="test.rows",
        source=Source("own", "test"),
        axes={i: N, k: K},
        equations={y[i]: table(t, T[k], U[i, k], kind) - y[i], x: over(Sum, table(t, T[k], U[i, k], kind), (i, N)) - x},
        params=(TIMES, Param(U, 0.0, real, "inputs")),
        constraints=INCREASING,
        initial={y[i]: 0, x: 0},
        sizes={N: 2, K: 5},
        span=(-1.0, 4.0),
    )
    rows = np.array([POINTS["u"], [0.0, 1.0, 1.5, 1.5, -2.0], [2.0, 2.0, 2.0, 2.0, 2.0]])
    run = odesim.integrate(system, params={"T": POINTS["T"], "U": rows}, rtol=1e-10, atol=1e-12)
    wanted = [by_scipy(kind, POINTS["T"], row) for row in rows]
    np.testing.assert_allclose(run.final["y"], wanted, rtol=0, atol=1e-11)
    assert float(run.final["x"]) == pytest.approx(sum(wanted), abs=1e-10)


def test_a_characteristic_of_a_state():
    """x' = -I(x) with I(x) = 2 x up to 1, then constant 2: a line down from 3, then an exponential."""
    system = System(
        name="test.characteristic",
        source=Source("own", "test"),
        axes={k: K},
        equations={x: -table(x, T[k], u[k])},
        params=(TIMES, Param(u, 0.0, real, "rates")),
        constraints=INCREASING,
        initial={x: 3},
        sizes={K: 3},
        span=(0.0, 2.0),
    )
    run = odesim.integrate(system, params={"T": [0, 1, 4], "u": [0, 2, 2]}, rtol=1e-10, atol=1e-12)
    assert float(run.final["x"]) == pytest.approx(np.exp(-2.0), rel=1e-8)


@pytest.mark.parametrize("members", [False, True])
def test_doses_at_times_of_a_list(members):
    """The sum of exponentials from each dose on."""
    blood, rate, dose = Symbol("blood"), Symbol("rate"), IndexedBase("dose", shape=(K,))
    system = System(
        name="test.doses",
        source=Source("own", "test"),
        axes={k: K},
        equations={blood: -rate * blood},
        params=(Param(rate, 0.1, real, "rate"), TIMES, Param(dose, 1.0, real, "doses")),
        initial={blood: 0},
        sizes={K: 3},
        span=(0.0, 48.0),
        events=(Event("dose", t - T[k], direction=1, resets={blood: blood + dose[k]}),),
    )
    times, doses = np.array([2.0, 8.0, 20.0, 30.0]), np.array([1.0, 1.0, 0.5, 2.0])
    options: dict[str, Any] = {"params": {"T": times, "dose": doses}, "rtol": 1e-10, "atol": 1e-12}
    if members:
        found = [*odesim.ensemble(system, grid={"rate": [0.1, 0.2]}, **options)["blood"].values[:, -1]]
    else:
        found = [odesim.integrate(system, **options).final["blood"]]
    for rate_of_it, end in zip((0.1, 0.2), found, strict=False):
        assert float(end) == pytest.approx(float(doses @ np.exp(-rate_of_it * (48 - times))), rel=1e-8)


@pytest.mark.parametrize(
    ("times", "words"),
    [
        ([0, 1, 1, 2, 3], "times: T[k] must increase along k, and 1 at k = 2 follows 1"),
        ([0, 1, 2, 3, -1], "times: T[k] must increase along k, and -1 at k = 4 follows 3"),
    ],
)
def test_times_that_do_not_increase(times, words):
    with pytest.raises(ParamError) as caught:
        odesim.integrate(driven("linear"), params={"T": times})
    assert str(caught.value) == words
    rows = np.array([range(5), times])
    with pytest.raises(ParamError, match="in member 1"):
        odesim.ensemble(driven("linear"), zipped={"T": rows})


def alone(kind, **changes):
    """The driven state without a constraint of its own, nor an axis for the points."""
    return replace(driven(kind), **{"constraints": (), "axes": {}, "observables": {}, **changes})


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("places", [t, -t, 2 * t, t - 1, t / 3, x, 1 - x**2], ids=str)
def test_a_table_brings_its_check(kind, places):
    """Orders that do not increase are refused with the first place that does not, whatever the table is of; others run.

    By numpy, which compiles nothing: what is checked are numbers.
    """
    system = alone(kind, equations={x: 1 - table(places, T[k], u[k], kind) / 3})
    for times, words in (
        ([0, 4, 3, 10, 9], "3 at k = 2 follows 4"),
        ([10, 4, 3, 0, -1], "4 at k = 1 follows 10"),
        ([0, 3, 3, 10, 11], "3 at k = 2 follows 3"),
        ([0, 1, 2, 3, 3], "3 at k = 4 follows 3"),
    ):
        with pytest.raises(ParamError) as caught:
            odesim.integrate(system, params={"T": times}, backend="numpy")
        assert str(caught.value) == f"table over T: T[k] must increase along k, and {words}"
    for grows in ([0, 3, 4, 10, 11], [-3, -2, -1, -0.5, 0], [7]):
        assert odesim.integrate(system, params={"T": grows}, backend="numpy").status == "ok"


@pytest.mark.parametrize("kind", KINDS)
def test_the_check_reaches_members_and_rest(kind):
    system, rows = alone(kind), np.array([range(5), [0, 1, 2, 4, 3]])
    with pytest.raises(ParamError, match="3 at k = 4 follows 4 in member 1"):
        odesim.ensemble(system, zipped={"T": rows})
    with pytest.raises(ParamError, match="3 at k = 4 follows 4"):
        odesim.rest(alone(kind, equations={x: table(x, T[k], u[k], kind) - x}), params={"T": rows[1]})


@pytest.mark.parametrize("kind", KINDS)
def test_the_check_is_there_once(kind):
    """After a change and in a document too, and not beside one that the System has."""
    system = alone(kind)
    assert [c.name for c in system.constraints] == ["table over T"]
    for again in (replace(system, name="test.again"), odesim.from_json(odesim.to_json(system)), replace(system, constraints=())):
        assert again.constraints == system.constraints
    assert driven(kind).constraints == INCREASING


@pytest.mark.parametrize("kind", KINDS)
def test_what_of_an_array_increases(kind):
    """Row 0 of D are the times, row 1 the values, which fall; each row of a table for each i; an index that means another axis."""
    D = IndexedBase("D", shape=(2, K))
    both = Param(D, lambda sizes: [range(sizes["K"]), range(sizes["K"], 0, -1)], real, "times and values")
    rows = alone(kind, equations={x: table(t, D[0, k], D[1, k], kind) - x}, params=(both,))
    assert [(c.name, str(c.expr)) for c in rows.constraints] == [("table over D[0]", "D[0, k]")]
    odesim.integrate(rows, backend="numpy")
    many = Param(U, lambda sizes: np.tile(np.arange(sizes["K"]), (sizes["N"], 1)), real, "times of each")
    inputs = over(Sum, table(t, U[i, k], u[k], kind), (i, N))
    each = alone(kind, equations={x: inputs - x}, params=(many, Param(u, 0.0, real, "input")), sizes={K: 3, N: 2})
    with pytest.raises(ParamError, match=r"U\[i, k\] must increase along k, and 1 at i = 1, k = 2 follows 2"):
        odesim.integrate(each, params={"U": [[0, 1, 2], [0, 2, 1]]})
    assert [str(c.expr) for c in alone(kind, axes={k: N}, sizes={K: 5, N: 2}, params=(TIMES, *each.params)).constraints] == ["T[k_1]"]


@pytest.mark.parametrize(
    ("write", "words"),
    [
        (lambda: table(t, T[k], u[k], "cubic"), "no kind 'cubic'; choose from linear, pchip, step"),
        (lambda: table(t, T[k], u[k], "nearest"), "table(): no kind 'nearest'; choose from linear, pchip, step"),
        (lambda: table(t, T, u[k]), "places are an element of an array with a shape, such as u[k]"),
        (lambda: table(t, T[k], x), "values are an element of an array with a shape"),
        (lambda: table(t, T[0], u[0]), "the last index of T[0] runs over the points"),
        (lambda: table(t, T[k], u[i]), "u[i] lacks k, the index of the points of T[k]"),
        (lambda: table(t, T[k], IndexedBase("w", shape=(N,))[k]), "the axis of T[k] has the size K, that of w[k] N"),
        (lambda: table("now then", T[k], u[k]), "table() takes an expression"),
    ],
)
def test_what_is_no_table(write, words):
    with pytest.raises(SpecError) as caught:
        write()
    assert words in str(caught.value)
    assert "did you mean" not in str(caught.value)


def test_show():
    """What increases is said in words, and a document keeps it."""
    system = driven("linear")
    assert describe(system)["constraints"] == [{"name": "times", "expression": "T[k] increases"}]
    assert "increases along its last index" in latex_document(system)
    with pytest.raises(ParamError, match="must increase along k"):
        odesim.integrate(odesim.from_json(odesim.to_json(system)), params={"T": [0, 1, 1, 2, 3]})


def test_what_increases_has_an_index():
    with pytest.raises(SpecError, match="what increases has an index"):
        System(
            name="test.none",
            source=Source("own", "test"),
            axes={},
            equations={x: -x},
            params=(Param(Symbol("c"), 1.0, real, "a number"),),
            initial={x: 1},
            constraints=(Constraint("one", Symbol("c"), "increasing"),),
        )


def condition(e: Any, points: dict[str, Any], **more: Any) -> float:
    """How long e > 2 holds from 0 to 4, by a run: the rate of x is 1 while it does."""
    run = replace(driven("linear"), equations={x: Piecewise((1, e > 2), (0, True))}, observables={}, span=(0.0, 4.0))
    return float(odesim.integrate(run, params=points, **more).y["x"][-1])


@pytest.mark.parametrize("method", ["auto", "rodas5p"])
@pytest.mark.parametrize(("e", "wanted"), [(t, 2.0), (t**2, 4 - 2**0.5), (3 - Abs(t - 2), 2.0)], ids=str)
def test_conditions_on_a_named_time(e, wanted, method):
    """A condition on a value that has a name changes when the value passes, though no t stands in it."""
    assert condition(named("z", e), POINTS, method=method) == pytest.approx(wanted, abs=1e-12)


def test_a_table_of_a_table():
    """Its slope by the time is that of numpy.interp, by differences: a stiff method's slopes hold sums of choices within conditions."""
    system = replace(driven("linear"), equations={x: table(table(t, T[k], u[k]), T[k], u[k]) - x}, observables={})
    compiled, points = compile_system(system), {name: np.array(numbers) for name, numbers in POINTS.items()}

    def value(at):
        return np.interp(np.interp(at, points["T"], points["u"]), points["T"], points["u"])

    derivatives = compiled.linear.bind({"K": 5}, points, compiled.layout({"K": 5}))
    for at in (0.2, 1.0, 2.5):  # in straight parts
        difference = (value(at + 1e-3) - value(at - 1e-3)) / 2e-3
        assert derivatives.time_slope(at, np.array([0.3])) == pytest.approx(difference, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_conditions_and_events_on_a_table(kind):
    """They change where the curve of scipy does; 1e-9: brentq's on parts between points, where the curve is monotone."""
    points = {"T": [0.0, 1.0, 1.5, 3.0, 3.5], "u": [0.0, 3.0, 5.0, 1.0, 4.0]}
    f, edges = curve(kind, points["T"], points["u"]), [0.0, 1.0, 1.5, 3.0, 3.5, 4.0]
    passes = []
    for a, b in pairwise(edges):
        inside = (a + 1e-13, b - 1e-13)
        if kind != "step" and (f(inside[0]) - 2) * (f(inside[1]) - 2) < 0:
            passes.append(brentq(lambda s: float(f(s)) - 2, *inside, xtol=1e-14))
        elif kind == "step" and (f(a - 1e-9) - 2) * (f(0.5 * (a + b)) - 2) < 0:
            passes.append(a)
    marks = [0.0, *passes, 4.0]
    wanted = sum(b - a for a, b in pairwise(marks) if f(0.5 * (a + b)) > 2)
    given: dict[str, Any] = {"rtol": 1e-10, "atol": 1e-12}
    assert condition(named("z", table(t, T[k], u[k], kind)), points, **given) == pytest.approx(wanted, abs=1e-9)
    event = Event("passes", table(t, T[k], u[k], kind) - 2)
    run = odesim.integrate(replace(driven(kind), events=(event,)), params=points, span=(0.0, 4.0), **given)
    np.testing.assert_allclose(np.asarray(run.events["passes"].t), np.array(passes), atol=1e-9)  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", KINDS)
def test_an_event_sees_a_peak_that_steps_would_pass_over(kind):
    """A peak of .01 in a table that no rate reads; its slopes pass 3 at .6 of the way, a step at the point."""
    points = {"T": [0.0, 2.0, 2.005, 2.01, 4.0], "u": [0.0, 0.0, 5.0, 0.0, 0.0]}
    event = Event("high", table(t, T[k], u[k], kind) - 3)
    run = replace(driven(kind), equations={x: -x / 100}, observables={}, events=(event,), span=(0.0, 4.0))
    found = np.asarray(odesim.integrate(run, params=points).events["high"].t)  # type: ignore[attr-defined]
    smooth = PchipInterpolator(points["T"], points["u"])
    up, down = (brentq(lambda s: float(smooth(s)) - 3, *pair, xtol=1e-14) for pair in ((2.0, 2.005), (2.005, 2.01)))
    wanted = {"linear": [2.003, 2.007], "pchip": [up, down], "step": [2.005, 2.01]}[kind]
    np.testing.assert_allclose(found, np.array(wanted), atol=1e-9)

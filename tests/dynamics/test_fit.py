"""Fits: against scipy's curve_fit and linear regression by hand, how often intervals hold the truth, and what data do not determine."""

import json
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from click.testing import CliRunner
from scipy.optimize import curve_fit
from scipy.stats import binom, linregress
from scipy.stats import t as student
from sympy import Abs, Interval, exp, oo, symbols

import odesim
from odesim.base.errors import FitWarning, OdesimError
from odesim.cli.app import cli
from odesim.cli.fit import fit_text
from odesim.dynamics.together import Lanes, side_by_side
from odesim.store.write import write_solution
from odesim.symbolic import Constraint, IndexedBase, Map, Param, Source, System, index, sizes

SOURCE = Source("none", "made for the tests")
x, y, c, S, I = symbols("x y c S I", real=True)
k, a, beta, gamma = symbols("k a beta gamma", positive=True)
(m,), (M,) = index("m"), sizes("M")
v, mu = IndexedBase("v", shape=(M,)), IndexedBase("mu", shape=(M,))
POSITIVE = Interval.open(0, oo)
T = np.linspace(0, 4, 21)


def rate(symbol, default, domain=POSITIVE):
    """A parameter."""
    return Param(symbol, default, domain, "a rate")


def system(equations, params, initial, **more):
    """A System of these equations."""
    return System("test.fit", SOURCE, more.pop("axes", {}), equations, params, initial, span=(0.0, 4.0), **more)


DECAY = system({x: -k * x}, (rate(k, 1.0),), {x: 1.5})
VECTOR = system({v[m]: -mu[m] * v[m]}, (rate(mu, 1.0),), {v[m]: 1.0}, axes={m: M}, sizes={M: 2})
SIR = system({S: -beta * S * I, I: beta * S * I - gamma * I}, (rate(beta, 0.5), rate(gamma, 0.2)), {S: 0.99, I: 0.01})


def noisy(values, seed, size):
    """values with normal noise."""
    return values + size * np.random.default_rng(seed).normal(size=np.shape(values))


@pytest.mark.parametrize("sigma", [None, 0.05, "column"])
def test_curve_fit(sigma):
    """Values, errors and correlation are those of scipy on the closed form, with data that are not there left out."""
    data = {"t": T, "x": noisy(2 * np.exp(-0.7 * T), 1, 0.05), "s": np.linspace(0.02, 0.1, len(T))}
    data["x"][3] = np.nan
    there = np.isfinite(data["x"])
    of = {"column": {"x": "s"}}.get(sigma, sigma)
    weights = None if sigma is None else np.broadcast_to(data["s"] if sigma == "column" else sigma, len(T))[there]
    found = odesim.fit(DECAY, data, free=["k", "x"], sigma=of)
    best, covariance = curve_fit(
        lambda t, k, x0: x0 * np.exp(-k * t),
        T[there],
        data["x"][there],
        (1, 1),
        sigma=weights,
        absolute_sigma=sigma is not None,
        xtol=1e-12,
        ftol=1e-12,
    )
    np.testing.assert_allclose(found["value"], best, rtol=1e-6)  # the search stops at 1e-9 of the numbers, in curves good to 1e-8
    np.testing.assert_allclose(found["error"], np.sqrt(np.diag(covariance)), rtol=1e-5)
    assert float(found["correlation"][0, 1]) == pytest.approx(covariance[0, 1] / np.sqrt(np.prod(np.diag(covariance))), rel=1e-5)
    assert found.attrs["unused"] == ("" if sigma == "column" else "s") and found.attrs["agreed"] == 4


def test_linear_regression():
    """y' = -c from y(0): a straight line, whose fit, errors and intervals are in closed form; several measurements at a time count."""
    times = np.repeat(T, 2)
    data = {"t": times, "y": noisy(1 - 0.5 * times, 2, 0.1)}
    found = odesim.fit(system({y: -c}, (rate(c, 0.1, Interval(-oo, oo)),), {y: 0.0}), data, free=["c", "y"], starts=1, level=0.9)
    line = linregress(times, data["y"])
    np.testing.assert_allclose(found["value"], [-line.slope, line.intercept], rtol=1e-9)
    np.testing.assert_allclose(found["error"], [line.stderr, line.intercept_stderr], rtol=1e-7)
    wide = student.ppf(0.95, len(times) - 2) * np.array([line.stderr, line.intercept_stderr])
    np.testing.assert_allclose(found["high"] - found["low"], 2 * wide, rtol=1e-7)
    np.testing.assert_allclose(found["fitted"][:, 0], line.intercept + line.slope * times, atol=1e-8)


def test_intervals_hold_the_truth():
    """In 100 noisy epidemics 95 % intervals of both rates hold the truth 95 times in 100, as closely as chance has it 999 of 1000 times."""
    t, count = np.linspace(0, 40, 41), 100
    rates = {"beta": 0.8, "gamma": 0.3}
    truth = odesim.integrate(SIR, params=rates, span=(0, 40), save=t, rtol=1e-10).y["I"]
    held = np.zeros(2)
    for seed in range(count):
        data = {"t": t, "I": noisy(truth, seed, 0.01)}
        found = odesim.fit(SIR, data, free=["beta", "gamma"], params=rates, starts=1, method="tsit5")
        held += (found["low"] < [0.8, 0.3]) & (found["high"] > [0.8, 0.3])
    low, high = binom.interval(0.999, count, 0.95)
    assert np.all((low <= held) & (held <= high)), held


@pytest.mark.filterwarnings("ignore::odesim.base.errors.FitWarning")  # v[1] has no data
def test_entries_of_arrays():
    """Each entry of v' = -mu v has data of its own: its rate is that of a fit of it alone; observables count as states do."""
    model = system({v[m]: -mu[m] * v[m]}, (rate(mu, 1.0),), {v[m]: 1.0}, axes={m: M}, sizes={M: 3}, observables={"grown": exp(v[m])})
    rates = np.array([0.4, 1.0, 2.0])
    data = noisy(np.exp(-np.outer(T, rates)), 3, 0.01)
    found = odesim.fit(model, {"t": T, "v": data}, free=["mu"])
    alone = [curve_fit(lambda t, k: np.exp(-k * t), T, data[:, n], (1,), xtol=1e-12)[0][0] for n in range(3)]
    assert list(found["free"].values) == ["mu[0]", "mu[1]", "mu[2]"]
    np.testing.assert_allclose(found["value"], alone, rtol=1e-6)
    grown = {"t": T, "first": np.exp(data[:, 0]), "last": np.exp(data[:, 2])}
    other = odesim.fit(
        model, grown, free=["v"], params={"mu": rates}, initial={"v": 0.9}, columns={"grown[0]": "first", "grown[2]": "last"}
    )["value"]
    one = [curve_fit(lambda t, c, n=n: np.exp(c * np.exp(-rates[n] * t)), T, np.exp(data[:, n]), (0.9,), xtol=1e-12)[0][0] for n in (0, 2)]
    np.testing.assert_allclose(other[[0, 2]], one, rtol=1e-6)


def test_what_is_not_determined():
    """x' = -k a x has only the product of k and a, and nothing has y: the sentence names them, and only these have infinite errors."""
    model = system({x: -k * a * x, y: -y * a / a}, (rate(k, 1.0), rate(a, 2.0)), {x: 1.0, y: 1.0})
    data = {"t": T, "x": noisy(2 * np.exp(-0.7 * T), 1, 0.05)}
    with pytest.warns(FitWarning, match=r"k and a \(k [+-]1 % with a [+-]1 % changes nothing\); y"):
        found = odesim.fit(model, data, free=["k", "a", "x", "y"])
    assert np.isinf(found["error"].values).tolist() == [True, True, False, True]
    value = found["value"].values
    np.testing.assert_allclose([value[0] * value[1], value[2]], odesim.fit(DECAY, data, free=["k", "x"])["value"], rtol=1e-5)


CORNERS: dict[str, Any] = {
    "in one": (Abs(a - 0.7), "at a corner"),
    "across two": (Abs(a - k) + (a - 2) ** 2, "at a corner"),
    "beside one": (Abs(a - 0.2) + 3 * (a - 0.7) ** 2, "ok"),
    "none": ((a - 0.7) ** 2, "ok"),
}


@pytest.mark.parametrize("name", CORNERS)
def test_a_corner_is_said(name):
    """No rate is below 1/2, and the data have 0.3: where the rate nearest to it is in a corner, its derivatives on both sides differ."""
    corner, status = CORNERS[name]
    params = (rate(a, 1.8), rate(k, 0.9)) if name == "across two" else (rate(a, 1.8),)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)  # in the corner itself sign(0) is no slope
        found = odesim.fit(
            system({x: -(corner + 0.5) * x}, params, {x: 1.0}), {"t": T, "x": np.exp(-0.3 * T)}, free=[p.name for p in params]
        )
    assert found.attrs["status"] == status


def test_several_starts():
    """A frequency far from that of the data is a local minimum: of 16 starts some find the best fit, and it is the true one."""
    model = system({x: k * y, y: -k * x}, (rate(k, 2.0),), {x: 0.0, y: 1.0})
    data = {"t": np.linspace(0, 4, 60), "x": noisy(np.sin(9 * np.linspace(0, 4, 60)), 4, 0.05)}
    assert abs(float(odesim.fit(model, data, free=["k"], starts=1)["value"][0]) - 9) > 1
    found = odesim.fit(model, data, free={"k": (1.0, 20.0)}, starts=16, method="tsit5")
    assert float(found["value"][0]) == pytest.approx(9, abs=0.02) and 0 < found.attrs["agreed"] < 16


WAVE = system({x: k * y, y: -k * x}, (rate(k, 2.0),), {x: 0.0, y: 1.0}, observables={"energy": x**2 + k * y})
RUNAWAY = system({x: k * x**2}, (rate(k, 0.3),), {x: 1.0})
SHRINK = Map("test.shrink", SOURCE, {}, {x: a * x}, (rate(a, 0.9, Interval.open(0, 1)),), {x: 1.0})
BOUND = system(
    {x: -k * x},
    (rate(k, 1.0), rate(a, 1.5)),
    {x: 1.0},
    constraints=(Constraint("a is at least k", a - k, ">=0"),),
    observables={"seen": a * x},
)
SEARCHES: dict[str, Any] = {
    "observable": (WAVE, {"t": T, "energy": np.sin(2.1 * T) ** 2 + 2.1 * np.cos(2.1 * T)}, {"free": {"k": (1.0, 4.0), "y": None}}),
    "array": (VECTOR, {"t": T, "v": noisy(np.exp(-np.outer(T, [0.4, 1.2])), 5, 0.01)}, {"free": {"mu": (0.1, 5.0)}}),
    "stiff": (DECAY, {"t": T, "x": 2 * np.exp(-0.7 * T)}, {"free": {"k": (0.1, 5.0), "x": None}, "method": "rodas5p"}),
    "map": (SHRINK, {"step": np.arange(8), "x": 3 * 0.8 ** np.arange(8)}, {"free": ["a", "x"]}),
    "runaway": (RUNAWAY, {"t": T[:9], "x": 1 / (1 - 0.2 * T[:9])}, {"free": {"k": (0.01, 3.0)}}),  # which ends before the data from 0.63 on
    "constraint": (BOUND, {"t": T, "seen": 2 * np.exp(-0.7 * T)}, {"free": {"k": (0.1, 5.0), "a": (0.1, 5.0)}}),
}


@pytest.mark.parametrize("name", SEARCHES)
def test_starts_in_lanes_are_those_one_after_another(name, monkeypatch):
    """The same minimum, and as many starts that come to it; with other lanes at a time, the same bits."""
    model, data, words = SEARCHES[name]

    def searched(**numbers):
        for what, number in numbers.items():
            monkeypatch.setattr(f"odesim.dynamics.{what}", number)
        calls.clear()
        return odesim.fit(model, data, starts=12, **words)

    calls, run = list[int](), Lanes.__call__

    def counted(lanes, numbers):
        calls.append(len(next(iter(numbers.values()))))
        return run(lanes, numbers)

    monkeypatch.setattr(Lanes, "__call__", counted)
    alone = searched(**{"fit.TOGETHER": 13})
    assert not calls
    lanes = searched(**{"fit.TOGETHER": 12})
    assert calls[0] == 12 and min(calls) < 12  # searches end one after another
    few = searched(**{"together.AT_ONCE": 5})
    assert set(calls) <= set(range(6))
    np.testing.assert_allclose(lanes["value"], alone["value"], rtol=1e-6)  # the search stops at 1e-9 of the numbers, in curves good to 1e-8
    assert lanes.attrs["agreed"] == alone.attrs["agreed"] == few.attrs["agreed"]
    np.testing.assert_array_equal(few["value"], lanes["value"])
    np.testing.assert_array_equal(few["error"], lanes["error"])


@pytest.mark.parametrize("starts", [4, 12])
def test_a_start_that_blows_up_is_left_out(starts):
    """x' = k x^2 from 1 is 1/(1 - k t), which ends at 1/k: from k = 2 no run has the data, and other starts find k = 0.2."""
    data = {"t": T[:9], "x": 1 / (1 - 0.2 * T[:9])}
    result = odesim.fit(RUNAWAY, data, free={"k": (0.01, 3.0)}, params={"k": 2.0}, starts=starts)
    assert float(result["value"][0]) == pytest.approx(0.2, rel=1e-6)  # the curves are good to 1e-8
    assert 0 < result.attrs["agreed"] < starts


def test_lanes_begin_at_the_values_of_the_caller(monkeypatch):
    """Values of free numbers are the first of the starts, as they are where these are searched one after another."""
    begins, run = list[Any](), Lanes.__call__

    def seen(lanes, numbers):
        begins.append([float(rows[0]) for rows in numbers.values()])
        return run(lanes, numbers)

    monkeypatch.setattr(Lanes, "__call__", seen)
    data = {"t": T, "x": 2 * np.exp(-0.7 * T)}
    result = odesim.fit(DECAY, data, free=["k", "x"], params={"k": 0.5}, initial={"x": 3.0}, starts=8)
    assert begins[0] == pytest.approx([0.5, 3.0], rel=1e-15)  # of the logarithm and back
    np.testing.assert_allclose(result["value"], [0.7, 2.0], rtol=1e-6)


def test_searches_side_by_side():
    """Each goes its way as it does alone; what they wait for is computed together, in their order, and a failure of one ends all."""

    def halved(f, place):
        count = 0
        while place > 1:
            place, count = f(place), count + 1
        return count

    together: list[list[float]] = []

    def halves(places):
        together.append(places)
        return [place / 2 for place in places]

    assert side_by_side(halved, [8.0, 1.0, 5.0, 2.0], halves) == [3, 0, 3, 1]
    assert together == [[8, 5, 2], [4, 2.5], [2, 1.25]]
    assert side_by_side(halved, [], halves) == []

    def broken(places):
        raise ZeroDivisionError("no half")

    with pytest.raises(ZeroDivisionError, match="no half"):
        side_by_side(halved, [8.0, 4.0], broken)
    with pytest.raises(TypeError):
        side_by_side(lambda f, place: f(place) + "a", [8.0, 4.0], halves)


def test_bounds_and_maps():
    """A number at its bound is named, and its interval ends there; a Map's times are its updates."""
    data = {"t": T, "x": 2 * np.exp(-0.7 * T)}
    found = odesim.fit(DECAY, data, free={"k": (0.8, 2.0), "x": None}, starts=2)
    assert found.attrs["at_bound"] == "k" and float(found["value"][0]) == pytest.approx(0.8, abs=1e-6)
    assert float(found["low"][0]) == 0.8 and float(found["high"][0]) > 0.81 and float(found["low"][1]) < float(found["value"][1])
    shrink = Map("test.shrink", SOURCE, {}, {x: a * x}, (rate(a, 0.9),), {x: 1.0})
    found = odesim.fit(shrink, {"step": np.arange(8), "x": 3 * 0.8 ** np.arange(8)}, free=["a", "x"])
    np.testing.assert_allclose(found["value"], [0.8, 3], rtol=1e-8)


@pytest.fixture
def cases(tmp_path, monkeypatch):
    """The files of one curve, in the current folder, and objects that hold it."""
    monkeypatch.chdir(tmp_path)
    run = odesim.integrate(DECAY, params={"k": 0.7}, initial={"x": 2.0}, save=T, rtol=1e-10)
    table = pd.DataFrame({"t": T, "x": run.y["x"], "who": "me"})
    for name in ("csv", "parquet"):
        getattr(table, f"to_{name}")(f"data.{name}", index=False)
    table.to_csv("data.tsv", index=False, sep="\t")
    np.savez("data.npz", t=T, x=run.y["x"])
    data = xr.Dataset({"x": (("seed", "time"), [run.y["x"] - 0.1, run.y["x"] + 0.1])}, coords={"time": T})  # whose mean is the run
    data.to_netcdf("data.nc", engine="scipy")
    data.to_zarr("data.zarr", zarr_format=3, consolidated=False)
    write_solution(run, "run.zarr")
    return {"table": table, "Dataset": data, "run": run, "dict": {"t": T, "x": run.y["x"]}}


def test_where_data_come_from(cases):
    """The same fit from files of every kind, a stored run, and what is in memory."""
    places = ("data.csv", "data.tsv", "data.parquet", "data.npz", "data.nc", "data.zarr", "run.zarr", *cases.values())
    for place in places:
        np.testing.assert_allclose(odesim.fit(DECAY, place, free=["k", "x"], starts=1)["value"], [0.7, 2.0], rtol=1e-6)


DATA = {"t": T, "x": np.exp(-T)}
PYTHON = system({x: -k * x}, (rate(k, 1.0),), {x: 1.0}, observables={"seen": lambda t, y, sizes, params: y["x"]})
# its runs would move a with k, and its derivatives hold it: errors five times too large
FOLLOWED = system({x: -(k + a) * x}, (rate(k, 0.5), Param(a, lambda sizes, params: 3 * params["k"] ** 3, POSITIVE, "a rate")), {x: 1.0})
WRONG: dict[str, Any] = {
    "default": (FOLLOWED, DATA, {"free": ["k"]}, "the default of a is computed from k, which is varied, and derivatives hold it: give a a"),
    "free": (DECAY, DATA, {"free": ["kk"]}, "no parameter or state 'kk' in test.fit; choose from k, x"),
    "nothing": (DECAY, DATA, {"free": []}, "at least one"),
    "column": (DECAY, {"t": T, "z": T}, {"free": ["k"]}, "with derivatives of test.fit, x: it has the columns z"),
    "map": (DECAY, DATA, {"free": ["k"], "columns": {"x": "q"}}, "no column 'q' in the data; choose from x"),
    "shape": (DECAY, {"t": T, "x[1]": T}, {"free": ["k"]}, r"a column of it is named as x$"),
    "size": (VECTOR, {"t": T, "v[2]": T}, {"free": ["mu"]}, r"v has shape .2,.; say by a size how many entries it has"),
    "time": (DECAY, {"day": T, "x": T}, {"free": ["k"]}, "no column of times named t, time or step: say which it is .--time. of day, x"),
    "early": (DECAY, {"t": T - 1, "x": T}, {"free": ["k"]}, "begin at t = -1, before the run"),
    "few": (DECAY, {"t": T[:2], "x": T[:2]}, {"free": ["k", "x"]}, "2 numbers for 2 free numbers and their error, which need 3"),
    "bounds": (DECAY, DATA, {"free": {"k": (-1, 2)}}, r"the bounds of k are \(low, high\) inside \[0, inf\], not \(-1, 2\)"),
    "outside": (DECAY, DATA, {"free": {"k": (2, 3)}}, "begins at 1, outside its bounds 2 to 3"),
    "sigma": (DECAY, DATA, {"free": ["k"], "sigma": {"z": 1.0}}, "no measured quantity 'z' in sigma; choose from x"),
    "negative": (DECAY, DATA, {"free": ["k"], "sigma": -1.0}, "sigma must be a positive number"),
    "zero": (DECAY, DATA, {"free": ["k"], "sigma": 0.0}, "sigma must be a positive number"),
    "words": (DECAY, {"t": T, "x": ["a"] * len(T)}, {"free": ["k"]}, "column x of the data holds 'a', which is no number"),
    "function": (PYTHON, {"t": T, "s": T}, {"free": ["k"], "columns": {"seen": "s"}}, "seen is a function of Python"),
    "noise": ("particles.noisy_circle", DATA, {"free": ["K"]}, "has noise"),
    "late": (DECAY, DATA, {"free": ["k"], "span": (0, 0.1)}, "after the run, which ends at 0.1: give a longer span"),
    "no rows": (DECAY, {"t": [], "x": []}, {"free": ["k"]}, "column t of the data is empty"),
    "one row": (DECAY, {"t": [0.0], "x": [1.0]}, {"free": ["k"]}, "no time after 0, where the run begins"),
    "twice": (DECAY, DATA, {"free": ["k", "k"]}, "free names k twice"),
    "starts": (DECAY, DATA, {"free": ["k"], "starts": 0}, "starts is at least 1"),
    "blow-up": (
        system({x: x**2 * k}, (rate(k, 1.0),), {x: 1.0}),
        DATA,
        {"free": ["k"], "starts": 1},
        "at the start of the search ends before the data do",
    ),
    "no start": (
        RUNAWAY,
        DATA,
        {"free": {"k": (1.0, 3.0)}, "params": {"k": 2.0}},
        r"at each of 4 starts of the search ends before the data do: give other values \(--set, --init\), narrower bounds",
    ),
}


def test_a_default_that_is_given_follows_nothing():
    """The rate k + 1 of exp(-1.7 t)."""
    found = odesim.fit(FOLLOWED, {"t": T, "x": np.exp(-1.7 * T)}, free=["k"], params={"a": 1.0}, starts=1)
    assert float(found["value"][0]) == pytest.approx(0.7, rel=1e-6)


def test_columns_apart_by_semicolons_are_said(tmp_path):
    """As a spreadsheet exports them where numbers have commas."""
    (tmp_path / "data.csv").write_text("t;x\n0;1,5\n1;1,2\n")
    with pytest.raises(OdesimError, match="stand apart by semicolons: write them with commas"):
        odesim.fit(DECAY, tmp_path / "data.csv", free=["k"])


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_request_is_a_sentence(name):
    """What cannot be fitted is refused."""
    model, data, words, sentence = WRONG[name]
    with pytest.raises(OdesimError, match=sentence):
        odesim.fit(model, data, **words)


MODEL = """
from sympy import Interval, oo, symbols
from odesim.symbolic import Param, Source, System
x = symbols("x", real=True)
k = symbols("k", positive=True)
SOURCE = Source("none", "none")
SYSTEM = System("my.decay", SOURCE, {}, {x: -k * x}, (Param(k, 1.0, Interval.open(0, oo), "rate"),), {x: 1.0}, span=(0.0, 4.0))
"""


def test_the_command(cases, tmp_path):
    """Prints a table in 80 columns, stores and draws, and gives what Python gives; refuses with code 2 and writes nothing."""
    (tmp_path / "decay.py").write_text(MODEL)
    cases["table"].rename(columns={"t": "day", "x": "train/x"}).to_csv("mine.csv", index=False)
    words = ["fit", "decay.py", "mine.csv", "--free", "k,x=0.5:3", "--map", "x=train/x", "--time", "day", "--sigma", "0.1"]
    before = set(tmp_path.iterdir())
    for wrong in (["--map", "x"], ["--map", "x=q"], ["--free", "kk"], ["--free", "k=1"], ["--sigma", "x=q"], ["--time", "q"]):
        done = CliRunner().invoke(cli, [*words, *wrong, "--out", "f.nc", "--plot", "f.png"])
        assert done.exit_code == 2 and done.stderr.count("\n") == 1, done.output
    assert set(tmp_path.iterdir()) == before
    done = CliRunner().invoke(cli, [*words, "--out", "f.nc", "--plot", "f.png"])
    assert done.exit_code == 0 and max(map(len, done.stdout.splitlines())) <= 80, done.output
    assert set(tmp_path.iterdir()) - before == {tmp_path / "f.nc", tmp_path / "f.png"}
    printed = json.loads(CliRunner().invoke(cli, [*words, "--json"]).stdout)
    assert printed["value"] == pytest.approx([0.7, 2.0], rel=1e-6) and printed["free"] == ["k", "x"]
    assert xr.open_dataset("f.nc", engine="scipy")["value"].values.tolist() == printed["value"]
    odesim.fit(DECAY, "data.csv", free=["k"]).odesim.plot()


def test_free_options_add_up(cases, tmp_path):
    """--free k --free x is --free k,x; a name that comes twice is refused, in one option or in two."""
    (tmp_path / "decay.py").write_text(MODEL)
    words = ["fit", "decay.py", "data.csv", "--json"]
    one, two = (CliRunner().invoke(cli, [*words, *free]).stdout for free in (["--free", "k,x=0.5:3"], ["--free", "k", "--free", "x=0.5:3"]))
    assert one == two and json.loads(one)["free"] == ["k", "x"]
    for free in (["--free", "k,k=0.5:3"], ["--free", "k", "--free", "x,k"]):
        assert "--free k is given twice" in CliRunner().invoke(cli, [*words, *free]).stderr
    assert "the bounds of k are two numbers" in CliRunner().invoke(cli, [*words, "--free", "k=1"]).stderr


@pytest.mark.parametrize("agreed, starts, few", [(1, 8, True), (2, 8, True), (1, 2, True), (3, 8, False), (1, 1, False), (4, 4, False)])
def test_few_starts_that_agree_are_said(agreed, starts, few):
    """A minimum that at most one start, or a quarter of them, came to may not be the least one."""
    result = odesim.fit(DECAY, DATA, free=["k"], starts=1).assign_attrs(agreed=agreed, starts=starts)
    assert (f"{agreed} of {starts} came to this fit; give more" in fit_text(result, [])) == few


@pytest.mark.parametrize("command", ["rest", "lyapunov", "branch joma.nonlinear mu 1:2", "fit joma.nonlinear data.csv --free mu"])
def test_a_file_has_options_of_the_command(command, tmp_path, monkeypatch):
    """An option that the command does not have is refused in a file as it is in the line."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.toml").write_text("strict = true\n")
    name, *more = command.split()
    done = CliRunner().invoke(cli, [name, *(more or ["joma.nonlinear"]), "--params", "run.toml"])
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1) and f"no option of odesim {name} 'strict' in run.toml" in done.stderr

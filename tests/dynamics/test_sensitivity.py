"""Global sensitivity: indices of functions that have them in closed form, as final states of Systems, and scipy's at the same points."""

import json
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from scipy import stats
from scipy.stats import qmc
from sympy import Interval, Sum, Symbol, log, oo, sin, symbols

import odesim
from odesim.base.errors import OdesimError
from odesim.cli.app import cli
from odesim.symbolic import Event, IndexedBase, Param, Source, System, index, over, sizes

SOURCE = Source("none", "made for the tests")
REAL = Interval(-oo, oo)
y = Symbol("y", real=True)
a, b, c = symbols("a b c", real=True)


def function(expression, *names, **more):
    """A System whose state at the end of its span is this function of its parameters: y' = f from 0, for one unit of time."""
    return System(
        "test.function",
        SOURCE,
        more.pop("axes", {}),
        {y: expression},
        tuple(Param(n, 0.5, REAL, "") for n in names),
        {y: 0.0},
        span=(0.0, 1.0),
        **more,
    )


ISHIGAMI = function(sin(a) + 7 * sin(b) ** 2 + 0.1 * c**4 * sin(a), a, b, c)
CIRCLE = dict.fromkeys("abc", f"uniform({-np.pi},{np.pi})")


def test_ishigami():
    """Closed form (Ishigami and Homma 1990): V = a^2/8 + b pi^4/5 + b^2 pi^8/18 + 1/2 with a = 7, b = .1; within three standard errors."""
    found = odesim.sensitivity(ISHIGAMI, vary=CIRCLE, of="y", samples=1024)
    parts = np.array([0.5 * (1 + 0.1 * np.pi**4 / 5) ** 2, 49 / 8, 0.0])
    together = np.array([1.0, 0.0, 1.0]) * 0.01 * np.pi**8 * (1 / 18 - 1 / 50)
    variance = parts.sum() + together[0]
    np.testing.assert_allclose(
        [parts / variance, (parts + together) / variance], [[0.3139, 0.4424, 0], [0.5576, 0.4424, 0.2437]], atol=5e-5
    )
    for name, truth in (("first", parts / variance), ("total", (parts + together) / variance)):
        off = np.abs(found[name].values[0] - truth)
        assert np.all(off < 3 * found[f"{name}_error"].values[0]) and np.all(off < 0.02), (name, off)
    assert float(found["deviation"][0]) == pytest.approx(np.sqrt(variance), rel=0.01)
    assert found.attrs["runs"] == 5 * 1024 and found["factor"].values.tolist() == ["a", "b", "c"]


def test_the_indices_are_those_of_scipy():
    """Of the results at the same points of Sobol, to rounding, since y' is constant."""

    def f(x):
        return np.sin(x[..., 0]) + 7 * np.sin(x[..., 1]) ** 2 + 0.1 * x[..., 2] ** 4 * np.sin(x[..., 0])

    A, B = np.split(np.pi * (2 * qmc.Sobol(6, rng=3).random(256) - 1), 2, axis=1)
    AB = np.array([np.where(np.arange(3) == n, B, A) for n in range(3)])
    theirs = stats.sobol_indices(func={"f_A": f(A)[None], "f_B": f(B)[None], "f_AB": f(AB)[:, None]}, n=256)
    ours = odesim.sensitivity(ISHIGAMI, vary=CIRCLE, of="y", samples=256, seed=3)
    np.testing.assert_allclose(ours["first"].values[0], np.ravel(theirs.first_order), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(ours["total"].values[0], np.ravel(theirs.total_order), rtol=1e-9, atol=1e-9)


(m,), (M,) = index("m"), sizes("M")
w = IndexedBase("w", shape=(M,))


def test_a_linear_model():
    """y = sum k w_k + 2 log a: parts of the variance are those of the terms; first and total are the same, and nothing acts together."""
    positive = Symbol("a", positive=True)
    params = (Param(w, 0.5, REAL, ""), Param(positive, 1.0, Interval.open(0, oo), ""))
    linear = System(
        "test.linear", SOURCE, {m: M}, {y: over(Sum, (m + 1) * w[m], (m, M)) + 2 * log(positive)}, params, {y: 0.0}, span=(0.0, 1.0)
    )
    vary = {"w": "normal(1,0.5)", "a": "loguniform(0.1,10)"}
    found = odesim.sensitivity(linear, vary=vary, of=["y"], sizes={"M": 3}, samples=1024)
    parts = np.array([0.25, 4 * 0.25, 9 * 0.25, 4 * np.log(100) ** 2 / 12])
    assert found["factor"].values.tolist() == ["w[0]", "w[1]", "w[2]", "a"]
    for name in ("first", "total"):  # 1024 points: an error of some 1 %
        np.testing.assert_allclose(found[name].values[0], parts / parts.sum(), atol=0.02)
    screened = odesim.screening(linear, vary={"w": "uniform(0,1)", "a": "loguniform(0.1,10)"}, of="y", sizes={"M": 3}, paths=4)
    np.testing.assert_allclose(screened["effect"].values[0], [1, 2, 3, 2 * np.log(100)], rtol=1e-9)
    np.testing.assert_allclose(screened["spread"].values[0], 0, atol=1e-9)


def test_the_function_of_morris():
    """Technometrics 33, 1991, section 4, with the coefficients that it gives and without its small random ones.

    Inputs 8 to 10 have the effect 40 wherever they are, 11 to 20 none; the mean effects of 1 to 7 are those over the whole grid of four
    levels, in closed form by factors, within four standard errors of 60 paths.
    """
    (i,), (N,) = index("i"), sizes("N")
    x = IndexedBase("x", shape=(N,))
    bent = (2, 4, 6)
    k = [2 * (1.1 * x[n] / (x[n] + 0.1) - 0.5) if n in bent else 2 * (x[n] - 0.5) for n in range(10)]
    terms: dict[tuple[int, ...], float] = {(n,): 20.0 for n in range(10)}
    terms |= {(p, q): -15.0 for p in range(6) for q in range(p + 1, 6)}
    terms |= {(p, q, r): -10.0 for p in range(5) for q in range(p + 1, 5) for r in range(q + 1, 5)}
    terms |= {(0, 1, 2, 3): 5.0}
    expression = sum(value * np.prod([k[n] for n in term]) for term, value in terms.items())
    model = System("test.morris", SOURCE, {i: N}, {y: expression}, (Param(x, 0.5, REAL, ""),), {y: 0.0}, sizes={N: 20}, span=(0.0, 1.0))
    found = odesim.screening(model, vary={"x": "uniform(0,1)"}, of="y", paths=60)
    effect, spread = found["effect"].values[0], found["spread"].values[0]
    np.testing.assert_allclose(effect[7:10], 40, rtol=1e-9)
    np.testing.assert_allclose(effect[10:], 0, atol=1e-9)
    np.testing.assert_allclose(spread[7:], 0, atol=1e-9)
    assert np.all(spread[:6] > 10)
    levels = np.arange(4) / 3
    mean, slope = np.empty(10), np.empty(10)
    for n in range(10):
        values = 2 * (1.1 * levels / (levels + 0.1) - 0.5) if n in bent else 2 * (levels - 0.5)
        mean[n], slope[n] = values.mean(), np.mean((values[2:] - values[:2]) / (2 / 3))
    expected = [
        sum(value * slope[n] * np.prod([mean[p] for p in term if p != n]) for term, value in terms.items() if n in term) for n in range(7)
    ]
    assert np.all(np.abs(effect[:7] - expected) < 4 * found["effect_error"].values[0, :7])


def test_times_of_events_and_entries():
    """v' = g from s comes to 1 at (1 - s)/g; an entry of a state is the one of its start."""
    v, g = IndexedBase("v", shape=(M,)), Symbol("g", positive=True)
    model = System(
        "test.reach", SOURCE, {m: M}, {v[m]: g}, (Param(g, 1.0, Interval.open(0, oo), ""),), {v[m]: 0.0},
        sizes={M: 2}, events=(Event("reach", v[0] - 1, terminal=True),), span=(0.0, 30.0),
    )  # fmt: skip
    vary = {"g": "uniform(0.5,1)", "v": "uniform(0,0.5)"}
    found = odesim.sensitivity(model, vary=vary, of=["reach_t", "t_end"], samples=64)
    f = odesim.ensemble(model, vary=vary, members=4096, design="sobol", max_events=1)
    assert float(found["mean"][0]) == pytest.approx(float(f["reach_t"].mean()), rel=0.01)
    np.testing.assert_array_equal(found["total"].values[0], found["total"].values[1])
    assert found["factor"].values.tolist() == ["g", "v_start[0]", "v_start[1]"] and found["total"].values[0, 2] < 1e-20  # rounding, squared
    short = odesim.sensitivity(model, vary=vary, of=["v[1]", "v"], samples=64, span=(0.0, 0.25))
    assert short["quantity"].values.tolist() == ["v[1]", "v[0]", "v[1]"]
    assert short["total"].values[0, 1] < 1e-20 and np.isfinite(short["total"]).all()


def test_threads_change_nothing():
    """Two threads give the bits of one."""
    one, two = (odesim.sensitivity(ISHIGAMI, vary=CIRCLE, of="y", samples=64, threads=n) for n in (1, 2))
    for name in one.data_vars:
        np.testing.assert_array_equal(one[name], two[name])


def test_what_does_not_vary_has_no_indices():
    """NaN, beside a quantity that does."""
    model = function(a, a, b, observables={"still": 3.0 + 0 * y, "moved": y})
    found = odesim.sensitivity(model, vary={"a": "uniform(0,1)", "b": "uniform(0,1)"}, of=["still", "moved"], samples=32)
    assert np.isnan(found["total"].values[0]).all()
    np.testing.assert_allclose(found["total"].values[1], [1, 0], atol=0.1)  # 32 points


WRONG: dict[str, tuple[str, dict[str, Any], str]] = {
    "samples": ("sensitivity", {"samples": 100}, "a power of 2"),
    "paths": ("screening", {"paths": 1}, "at least 2"),
    "name": ("sensitivity", {"of": "z"}, "no state, observable or time of an event 'z'"),
    "nothing": ("sensitivity", {"of": []}, "--of names what is looked at"),
    "entry": ("screening", {"of": "y[0]"}, "y is one number"),
    "no range": ("sensitivity", {"vary": {}}, "--vary names what changes"),
    "table": ("screening", {"vary": {"a": [1.0, 2.0]}}, "--vary a takes a range"),
    "unknown": ("sensitivity", {"vary": {"d": "0:1"}, "of": ""}, "no parameter or state 'd'"),
    "slice": ("screening", {"vary": {"a": "0:1:10"}, "of": ""}, r"^--vary a: '0:1:10' is not a number; write uniform\(0,1\)"),
    "noise": ("screening", {"model": "particles.noisy_circle"}, "has noise"),
    "early": ("sensitivity", {"model": function(y**2 + a, a), "vary": {"a": "uniform(0,9)"}, "samples": 32}, r"\d+ of 96 runs ended early"),
    "no event": ("screening", {"events": "far: y - 1000", "of": "far_t", "paths": 2}, r"far_t has no value in \d+ of \d+ runs"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_request_is_a_sentence(case):
    """What has no indices is refused."""
    name, request, words = WRONG[case]
    request = {"model": ISHIGAMI, "vary": {"a": "uniform(0,1)"}, "of": "y", **request}
    with pytest.raises(OdesimError, match=words):
        getattr(odesim, name)(**request)


@pytest.mark.parametrize("of", ["z", "y[0]", "far_t"])
def test_a_wrong_name_is_said_after_one_run(of, monkeypatch):
    """Not after all of them, which may take hours."""
    from odesim.dynamics import global_sensitivity

    runs: list[int] = []

    def counted(*args, vary, **options):
        runs.append(len(next(iter(vary.values()))))
        return odesim.ensemble(*args, vary=vary, **options)

    monkeypatch.setattr(global_sensitivity, "ensemble", counted)
    with pytest.raises(OdesimError):
        odesim.sensitivity(ISHIGAMI, vary={"a": "uniform(0,1)"}, of=["y", of], samples=64)
    assert runs == [1]


COMMANDS = {"sensitivity": ("--samples", "32", "total"), "screening": ("--paths", "5", "size")}


@pytest.mark.parametrize("name", COMMANDS)
def test_the_command(name, tmp_path, monkeypatch):
    """Prints a table in 80 columns; stores, draws and prints the numbers that Python has; `odesim plot` draws the file."""
    monkeypatch.chdir(tmp_path)
    option, count, shown = COMMANDS[name]
    words = [name, "joma.nonlinear", "--size", "M=2", "--vary", "mu=uniform(0.5,2)", "--vary", "v=loguniform(0.001,0.1)", "--span", "0:1"]
    words += ["--of", "gap,v[0]", option, count]
    done = CliRunner().invoke(cli, [*words, "--out", "s.nc", "--plot", "s.png"])
    assert done.exit_code == 0 and max(map(len, done.stdout.splitlines())) <= 80, done.output
    import xarray as xr

    vary = {"mu": "uniform(0.5,2)", "v": "loguniform(0.001,0.1)"}
    found = getattr(odesim, name)("joma.nonlinear", sizes={"M": 2}, vary=vary, span=(0, 1), of=["gap", "v[0]"], **{option[2:]: int(count)})
    with xr.open_dataset("s.nc") as stored:
        np.testing.assert_array_equal(stored[shown], found[shown])
    printed = json.loads(CliRunner().invoke(cli, [*words, "--json"]).stdout)
    np.testing.assert_array_equal(printed[shown], found[shown])
    assert CliRunner().invoke(cli, ["plot", "s.nc", "--out", "again.png"]).exit_code == 0
    assert (tmp_path / "s.png").read_bytes() == (tmp_path / "again.png").read_bytes()

"""The rescaled clock: blow-up times against closed forms, their error estimates, and runs that do not blow up."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.special import exp1
from sympy import Abs, Expr, Interval, Max, Sum, Symbol, cos, exp, oo

import odesim
from odesim.base.errors import SolveError, SpecError
from odesim.cli import cli
from odesim.inputs.registry import load_model
from odesim.symbolic import Event, IndexedBase, Param, Source, System, index, logsumexp, over, sizes, time

y, q = Symbol("y", real=True), Symbol("q", real=True)
l, k = index("l k")
(M,) = sizes("M")
v, Delta = IndexedBase("v", shape=(M,)), IndexedBase("Delta", shape=(M,))
METHODS = ("tsit5", "dop853", "rodas5p")


def scalar(name: str, rate: Expr, y0: float, growth: Expr | None) -> System:
    """y' = rate from y0."""
    return System(name=f"made.{name}", source=Source("none", name), axes={}, equations={y: rate}, params=(), initial={y: y0}, growth=growth)


# System, t*: y^2 etc. by separation; y^2 cos t: 1/2 = sin t; y exp(y^2/2): int exp(-y^2/2)/y dy = E1(y0^2/2)/2
FORMS: dict[str, tuple[System, float]] = {
    "y exp(y^2/2)": (scalar("attention", y * exp(y**2 / 2), 0.3, exp(y**2 / 2)), exp1(0.045) / 2),
    "y^2 cos t": (scalar("season", y**2 * cos(time), 2.0, y), np.pi / 6),
    "y^2": (scalar("square", y**2, 0.5, y), 2.0),
    "y^3 with the weaker growth y": (scalar("weak", y**3, 1.0, y), 0.5),
    "y^3": (scalar("cube", y**3, 1.0, y**2), 0.5),
    "exp(y)": (scalar("exponential", exp(y), 0.0, exp(y)), 1.0),
    "-y^2 from -1": (scalar("down", -(y**2), -1.0, Abs(y)), 1.0),
    "1e-6 y^2": (scalar("slow", 1e-6 * y**2, 1.0, y), 1e6),
}


@pytest.mark.first(1)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", FORMS)
def test_closed_forms(name: str, method: str) -> None:
    """t* to ten tolerances; the estimate is never below the error, and at most 400 times it: it holds twice the error of a run at
    10 times the tolerance, some nine times as large, and an error may happen to be small."""
    system, exact = FORMS[name]
    for rtol in (1e-6, 1e-8, 1e-10):
        run = odesim.integrate(system, clock="rescaled", span=(0, 3 * exact), method=method, rtol=rtol, atol=1e-3 * rtol)
        found, estimate = run.events["blow_up"][0]["t"], run.attrs["blow_up_error"]
        assert run.status == "blow_up" and run.events["blow_up"][0]["index"] is None
        assert abs(found - exact) <= estimate <= max(400 * abs(found - exact), 2e-13 * exact)
        assert abs(found - exact) <= 10 * rtol * exact
        assert f"t = {found:.12g}" in run.message and run.t_end == pytest.approx(found, rel=1e-14)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_joma(method: str) -> None:
    """joma.linear from random starts: t* = min_i sqrt(pi/2) (1 - sgn(Delta_i) erf(v_i/sqrt 2)) / |Delta_i|, to 1e-8, in any span of t."""
    from scipy.special import erf

    rng = np.random.default_rng(1)
    for t0 in (0.0, 100.0):
        D, start = rng.normal(size=6), 0.3 * rng.normal(size=6)
        exact = float(np.min(np.sqrt(np.pi / 2) * (1 - np.sign(D) * erf(start / np.sqrt(2))) / np.abs(D)))
        kw: dict[str, Any] = {"params": {"Delta": D}, "initial": {"v": start}, "method": method, "rtol": 1e-10, "atol": 1e-13}
        run = odesim.integrate("joma.linear", clock="rescaled", span=(t0, t0 + 10 * exact), **kw)
        error = abs(run.events["blow_up"][0]["t"] - t0 - exact)
        assert error <= min(1e-8 * (t0 + exact), run.attrs["blow_up_error"])


def test_joma_in_rows() -> None:
    """joma.linear_multinode: t* = sqrt(pi/2) over the longest row."""
    D = np.random.default_rng(2).normal(size=(4, 3))
    kw: dict[str, Any] = {"clock": "rescaled", "span": (0, 10), "rtol": 1e-10, "atol": 1e-13, "backend": "numpy"}
    run = odesim.integrate("joma.linear_multinode", params={"Delta": D}, **kw)
    exact = np.sqrt(np.pi / 2) / np.linalg.norm(D, axis=1).max()
    assert abs(run.events["blow_up"][0]["t"] - exact) <= min(1e-8 * exact, run.attrs["blow_up_error"])


@pytest.mark.parametrize(
    "options",
    [{"backend": "numpy"}, pytest.param({"strict": True}, marks=pytest.mark.slow), {"dtype": "float32", "rtol": 1e-5}],
    ids=str,
)
def test_backends_and_dtypes(options: dict[str, Any]) -> None:
    """Whole arrays, strict bits, float32: the same t*, as far as each can tell."""
    run = odesim.integrate("joma.linear", clock="rescaled", span=(0, 5), **{"rtol": 1e-8, "atol": 1e-9, **options})
    assert abs(run.events["blow_up"][0]["t"] - np.sqrt(np.pi / 2)) <= run.attrs["blow_up_error"] < 6e-3


def test_trajectory_up_to_the_blow_up() -> None:
    """An int saves points even in s: v of the winner grows evenly, the times increase strictly up to t*, every state meets its closed
    form where t still tells them apart, and events stand at their times t."""
    run = odesim.integrate("joma.linear", clock="rescaled", span=(0, 5), save=40, rtol=1e-10, atol=1e-13, backend="numpy")
    assert np.all(np.diff(run.t) > 0) and run.t[0] == 0 and run.t[-1] == run.t_end
    early = run.t < 1.2
    form = load_model("joma.linear").closed_forms[0].function
    want = np.array([form(t, {"v": np.zeros(10)}, {"Delta": run.attrs["params"]["Delta"]})["v"] for t in run.t[early]])
    np.testing.assert_allclose(run.y["v"][early], want, rtol=1e-8, atol=1e-10)
    late = run.y["v"][:, -1] > 4  # where the sum of the exponentials is that of the winner
    assert np.diff(run.y["v"][late, -1])[:-1] == pytest.approx(np.diff(run.y["v"][late, -1])[0], rel=1e-3)
    from scipy.special import erf

    assert run.events["v reaches 6"][0]["t"] == pytest.approx(np.sqrt(np.pi / 2) * erf(6 / np.sqrt(2)), abs=1e-9)
    worst = run.invariants["erf grows with t"]
    assert worst is not None and worst < 1e-8


@pytest.mark.slow
def test_without_a_blow_up() -> None:
    """The values of the ordinary clock, at the ordinary times, with its events, its end and its dense output; no blow-up."""
    grid = np.array([0.1, 0.2, 0.35, 0.5, 0.7, 1.0])
    kw: dict[str, Any] = {"span": (0.0, 1.0), "save": grid, "rtol": 1e-9, "atol": 1e-12}
    run, ordinary = odesim.integrate("joma.nonlinear", clock="rescaled", **kw), odesim.integrate("joma.nonlinear", **kw)
    assert run.ok and np.array_equal(run.t, grid) and run.t_end == 1.0 and not run.events["blow_up"]
    np.testing.assert_allclose(run.y["v"], ordinary.y["v"], rtol=1e-7)
    assert [e["t"] for e in run.events["half way"]] == pytest.approx([e["t"] for e in ordinary.events["half way"]], rel=1e-8)
    assert run.at(0.42)["v"] == pytest.approx(ordinary.at(0.42)["v"], rel=1e-7)
    assert "blow_up_error" not in run.attrs and (run.attrs["clock"], ordinary.attrs["clock"]) == ("rescaled", "ordinary")


def test_sensitivities() -> None:
    """Derivatives by the saliency at times t are those of the ordinary clock, to a hundred tolerances."""
    kw: dict[str, Any] = {"span": (0.0, 1.0), "save": [0.5, 1.0], "sensitivities": "Delta", "rtol": 1e-9, "atol": 1e-12, "sizes": {"M": 3}}
    kw["backend"] = "numpy"
    run, ordinary = odesim.integrate("joma.linear", clock="rescaled", **kw), odesim.integrate("joma.linear", **kw)
    np.testing.assert_allclose(run.y["dv_dDelta"], ordinary.y["dv_dDelta"], rtol=1e-7, atol=1e-8)


def test_stops_short_of_the_blow_up() -> None:
    """A span that ends before t* ends there; one more step is not taken."""
    asked: dict[str, Any] = {"clock": "rescaled", "span": (0, 1.25), "rtol": 1e-10, "atol": 1e-13, "backend": "numpy"}
    run = odesim.integrate("joma.linear", **asked)
    assert run.status == "ok" and run.t_end == 1.25 and not run.events["blow_up"]
    few = odesim.integrate("joma.linear", max_steps=5, **asked)
    assert few.status == "max_steps" and f"t = {few.t_end:.9g}" in few.message and 0 < few.t_end < 1.25 and few.t[-1] == few.t_end


@pytest.mark.slow
def test_sums_of_its_own() -> None:
    """A right-hand side with a sum over its own index: v' = v sum_l v_l^2, growth sum_k v_k^2; |v|^2 = r has r' = 2 r^2, t* = 1/(2 r0)."""
    system = System(
        name="made.sums",
        source=Source("none", "sums"),
        axes={l: M},
        equations={v[l]: v[l] * over(Sum, v[l] ** 2, (l, M))},
        params=(),
        initial={v[l]: 0.1 * (l + 1)},
        sizes={M: 5},
        growth=over(Sum, v[k] ** 2, (k, M)),
    )
    run = odesim.integrate(system, clock="rescaled", span=(0, 10), rtol=1e-10, atol=1e-13)
    assert abs(run.events["blow_up"][0]["t"] - 1 / 1.1) <= run.attrs["blow_up_error"] < 1e-7
    assert run.y_end["v"] / run.y_end["v"][0] == pytest.approx(np.arange(1, 6), rel=1e-6)


def test_wrong_requests() -> None:
    """No growth rate, a growth with a free index, a clock that is none, names that are taken: one sentence each."""
    with pytest.raises(SpecError, match="declares no growth rate"):
        odesim.integrate("scan_snap.theorem4", clock="rescaled")
    with pytest.raises(SolveError, match=r"no clock 'fast'; choose from ordinary, rescaled"):
        odesim.integrate("joma.linear", clock="fast")
    parts: dict[str, Any] = {"name": "made.x", "source": Source("none", "x"), "axes": {l: M}, "sizes": {M: 3}}
    with pytest.raises(SpecError, match="growth: index l of v"):
        System(**parts, equations={v[l]: v[l] ** 2}, params=(), initial={v[l]: 1}, growth=v[l])
    clock = Symbol("clock", real=True)
    named = System(**parts, equations={v[l]: v[l] ** 2 * clock}, params=(Param(clock, 1.0, Interval(-oo, oo), "x"),), initial={v[l]: 1},
                   growth=exp(logsumexp(v[l], (l, M))))  # fmt: skip
    with pytest.raises(SpecError, match="'clock' is needed for the rescaled clock"):
        odesim.integrate(named, clock="rescaled")


def test_members_blow_up_at_times_of_their_own() -> None:
    """y' = y^2 from y0 ends at 1/y0; the one that lies beyond the span is not reached."""
    made = odesim.ensemble(FORMS["y^2"][0], initial={"y": [0.5, 1.0, 4.0]}, clock="rescaled", span=(0, 1.5), method="tsit5")
    assert [made.attrs["status_names"][s] for s in made.status.values] == ["ok", "blow_up", "blow_up"]
    np.testing.assert_allclose(made.blow_up_t, [np.nan, 1.0, 0.25], rtol=1e-5)  # 10 rtol


@pytest.mark.slow
def test_ensemble(tmp_path: Any) -> None:
    """Members as `integrate` does each, bit for bit in strict mode; in memory and on disk; NaN where a member does not blow up."""
    D = np.random.default_rng(0).normal(size=(4, 3))
    D[2] = 0.01
    kw: dict[str, Any] = {"clock": "rescaled", "span": (0.0, 5.0), "method": "tsit5", "rtol": 1e-8, "atol": 1e-11, "strict": True}
    save = [0.25, 5.0]
    made = odesim.ensemble("joma.linear", params={"Delta": D}, save=save, **kw)
    assert [made.attrs["status_names"][s] for s in made.status.values] == ["blow_up", "blow_up", "ok", "blow_up"]
    for i in range(4):
        one = odesim.integrate("joma.linear", params={"Delta": D[i]}, save=save, **kw)
        rows = [k for k, t in enumerate(save) if t in one.t]
        assert np.array_equal(made.v[i, rows], one.y["v"][: len(rows)]) and np.isnan(made.v[i, len(rows) :]).all()
        found = [e["t"] for e in one.events["blow_up"]] or [np.nan]
        np.testing.assert_array_equal([made.blow_up_t[i], made.blow_up_error[i]], [found[0], one.attrs.get("blow_up_error", np.nan)])
    exact = np.sqrt(np.pi / 2) / np.abs(D).max(axis=1)
    off = np.abs(made.blow_up_t - exact)
    assert (off <= made.blow_up_error)[[0, 1, 3]].all() and np.isnan(off[2])
    out = odesim.ensemble("joma.linear", params={"Delta": D}, save=save, out=tmp_path / "run.zarr", **kw)
    for name in ("v", "status", "t_end", "blow_up_t", "blow_up_error"):
        np.testing.assert_array_equal(out[name], made[name])
    ordinary = odesim.ensemble("joma.linear", params={"Delta": D}, span=(0.0, 0.3), method="tsit5")
    assert "blow_up_error" not in ordinary and ordinary.attrs["clock"] == "ordinary"


def test_command_line(tmp_path: Any) -> None:
    """--clock rescaled: exit code 3 with t* and its error in one sentence, in --json and in the table; the picture is drawn."""
    args = ["integrate", "joma.linear", "--clock", "rescaled", "--span", "0:5", "--rtol", "1e-10", "--atol", "1e-13"]
    done = CliRunner().invoke(cli, [*args, "--json", "--plot", str(tmp_path / "run.png")])
    said = json.loads(done.stdout)
    assert (done.exit_code, said["status"], said["clock"]) == (3, "blow_up", "rescaled")
    assert abs(said["events"]["blow_up"][0]["t"] - np.sqrt(np.pi / 2)) <= said["blow_up_error"] < 1e-8
    assert "runs to infinity at t = 1.25331413" in done.stderr and (tmp_path / "run.png").exists()
    assert "t = 1.25331413" in CliRunner().invoke(cli, args).stdout


@pytest.mark.first(1)
@pytest.mark.parametrize("method", ["tsit5", "rodas5p"])
@pytest.mark.parametrize(("growth", "clock"), [(y, "ordinary"), (y, "rescaled"), (None, "ordinary")])
def test_the_rescaled_clock_is_advised_where_it_is(growth: Expr | None, clock: str, method: str) -> None:
    """y' = y^2 ends at t = 1: the message of a run, and what an ensemble says of the status; not to those that are in it already."""
    system = scalar("advice", y**2, 1.0, growth)
    options: dict[str, Any] = {"span": (0, 2), "method": method, "clock": clock}
    run, made = odesim.integrate(system, **options), odesim.ensemble(system, initial={"y": np.ones(2)}, **options)
    said = dict(zip(made.attrs["status_names"], made.attrs["status_meanings"], strict=True))
    assert run.status == "blow_up" and made.attrs["status_names"][int(made.status[0])] == "blow_up"
    assert "end the span before it" in said["blow_up"]
    for words in (run.message, said["blow_up"]):
        assert ("--clock rescaled" in words) == (growth is not None and clock == "ordinary")


@pytest.mark.slow
def test_blow_up_t_is_the_time_of_a_blow_up_alone() -> None:
    """An event with such a name has another one in every ensemble, whose clock ever: y' = y^2 passes 2 at t = 1/2 and ends at 1."""
    event = Event("blow-up", y - 2)
    system = replace(scalar("named", y**2, 1.0, y), events=(event,))
    asked: dict[str, Any] = {"initial": {"y": np.ones(2)}, "span": (0, 2), "method": "tsit5"}
    ordinary, rescaled = odesim.ensemble(system, **asked), odesim.ensemble(system, clock="rescaled", **asked)
    assert "blow_up_t" not in ordinary and rescaled.blow_up_t.dims == ("member",)
    assert rescaled.blow_up_t[0] == pytest.approx(1, abs=1e-5)
    for made in (ordinary, rescaled):
        assert made["blow_up_t_"][0, 0] == pytest.approx(0.5, abs=1e-5)
    for model in odesim.list_models():
        assert not any(e.name.replace("-", "_").replace(" ", "_") == "blow_up" for e in load_model(model).events)


@pytest.mark.parametrize("option", [{"stop_at": [0.5]}, {"max_step": 0.1}], ids=str)
def test_lengths_of_time_are_of_the_ordinary_clock(option: dict[str, Any]) -> None:
    """What says where steps end in t cannot be had in the rescaled clock, by a run or an ensemble; the ordinary one has it."""
    asked: dict[str, Any] = {"span": (0, 1), **option}
    members: dict[str, Any] = {"initial": {"v": np.zeros((2, 10))}, **asked}
    for function, given in ((odesim.integrate, asked), (odesim.ensemble, members)):
        with pytest.raises(SolveError, match=f"{next(iter(option))} .* of the ordinary clock"):
            function("joma.linear", clock="rescaled", **given)  # type: ignore[operator]
    assert odesim.integrate("joma.linear", backend="numpy", **asked).ok


@pytest.mark.slow
def test_a_jump_to_rest_is_no_blow_up():
    """v' = (10 - v) exp(v^2/2) stays below 10, but gets there within less time than t resolves; v' = exp(v^2/2) is one at the same pace."""
    both: dict[str, Any] = {"sizes": {"M": 1}, "initial": {"v": [1.0]}, "clock": "rescaled"}
    found = odesim.integrate("joma.nonlinear", params={"mu": [10.0]}, **both)
    assert found.status == "step_too_small" and "comes to rest" in found.message and not len(found.events["blow_up"])
    assert "blow_up_error" not in found.attrs
    assert odesim.integrate("joma.linear", params={"Delta": [1.0]}, **both).status == "blow_up"
    members = odesim.ensemble(
        "joma.nonlinear", params={"mu": np.array([[10.0], [2.0]])}, initial={"v": [1.0]}, clock="rescaled", span=(0, 1)
    )
    assert [members.attrs["status_names"][k] for k in members.status.values] == ["step_too_small", "ok"]


@pytest.mark.parametrize("height", [exp(-((1000 * time - 300) ** 2)), Max(0, 1 - Abs(1000 * time - 300))], ids=["pulse", "kinks"])
def test_inputs_that_it_could_step_over_are_refused(height: Expr) -> None:
    """A peak of a thousandth at t = .3: the ordinary clock ends steps in it, and this one knows no such time."""
    driven = replace(FORMS["y^2"][0], equations={y: y**2 + height})
    with pytest.raises(SpecError, match=r"kinks or pulses in time, .* could step over some: take the ordinary one"):
        odesim.integrate(driven, clock="rescaled", span=(0, 1))


@pytest.mark.parametrize("method", METHODS)
def test_a_clock_that_stands_still_has_not_reached_the_end(method: str) -> None:
    """y' = y^3 from 1 at t = 100 blows up at 100.5; the growth exp(y^2) is so far above y^2 that from y = 6 on t + 1/growth is t: no run
    over all of s, in which t stands still, is one to the end of the span, and its last state is that of its time: 1/sqrt(201 - 2 t)."""
    run = odesim.integrate(scalar("far", y**3, 1.0, exp(y**2)), clock="rescaled", span=(100, 101), method=method, backend="numpy")
    assert run.status == "step_too_small" and "stands still at t = 100.4" in run.message and run.t_end < 100.5
    assert run.final["y"] == pytest.approx(1 / np.sqrt(201 - 2 * run.t_end), rel=1e-3)  # 1e-6 of t is 1e-4 of the time left

"""Absolute tolerances by state: a state in other units, with its tolerance in them, takes the same steps, by every way to integrate."""

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from click.testing import CliRunner
from sympy import Interval, Sum, Symbol, oo

import odesim
from odesim.api.rerun import rerun_ensemble, rerun_integration
from odesim.base.errors import OdesimError, ToleranceWarning
from odesim.cli import cli
from odesim.run import choose
from odesim.run.choose import make_engine
from odesim.stepper.codes import Status
from odesim.stepper.methods import METHODS
from odesim.store.read import read_solution
from odesim.symbolic import Event, IndexedBase, Param, Source, System, index, over, sizes
from tests.support.interpreted import Interpreted
from tests.support.matrix import slow_but

(m,), (M,) = index("m"), sizes("M")
SOURCE, x = Source("none", "test"), IndexedBase("x", shape=(M,))
c, k = Symbol("c", positive=True), Symbol("k", positive=True)
z, S, infected = Symbol("z", real=True), Symbol("S", real=True), Symbol("infected", nonnegative=True)
EXPLICIT, STIFF = ("tsit5", "vern7", "dop853"), ("rodas4", "rodas5p")
LARGE = 2.0**20  # a power of two: rescaling rounds nothing


def positive(*symbols: Any) -> tuple[Param, ...]:
    return tuple(Param(symbol, 1.0, Interval.open(0, oo), "number") for symbol in symbols)


# c x and z solve one system, whatever c is
SCALED = System(
    "test.scaled", SOURCE, {m: M},
    {x[m]: (z * c * x[m] - (c * x[m]) ** 3) / c, z: k - z * over(Sum, (c * x[m]) ** 2, (m, M))},
    positive(c, k), {x[m]: 1.0, z: 0.5}, sizes={M: 3}, span=(0.0, 8.0),
)  # fmt: skip
# a few infected among many: their size is 1e-14 to 1e-6 beside 1
START, MOST, RATE = 1e-14, 1e-6, 40.0
EPIDEMIC = System(
    "test.epidemic", SOURCE, {}, {S: -k * S, infected: RATE * infected * (1 - infected / MOST)}, positive(k), {S: 1.0, infected: START},
    span=(0.0, 0.5), events=(Event("half", infected - MOST / 2),),
)  # fmt: skip


def asked(scale: float, count: int = 3, **more: Any) -> dict[str, Any]:
    """SCALED in units of 1/scale."""
    first, atol = 0.1 + 0.3 * np.arange(count), 10.0 ** -(5.0 + np.arange(count) % 4)
    return {"params": {"c": scale}, "initial": {"x": first / scale}, "atol": {"x": atol / scale, "z": 1e-4}, "rtol": 1e-5, **more}


def same_but_for(scale: float, one: Any, other: Any) -> None:
    """States at all saved times, and counts."""
    assert one.stats["steps"] == other.stats["steps"] > 3 and one.stats["rejected"] == other.stats["rejected"]
    np.testing.assert_array_equal(one.y["x"], other.y["x"] * scale)
    np.testing.assert_array_equal(one.y["z"], other.y["z"])


@pytest.mark.filterwarnings("ignore::odesim.base.errors.ToleranceWarning")
@pytest.mark.parametrize(
    ("method", "count"),
    slow_but([(m, n) for m in (*EXPLICIT, *STIFF, "auto") for n in (3, 7)], [("tsit5", 7), ("rodas5p", 3)], several=True),
)
def test_a_run_in_other_units(method: str, count: int) -> None:
    """Every adaptive method, written out and with loops: the same steps to the last bit; by one number they are others."""
    run: dict[str, Any] = {"method": method, "save": 7, "strict": True}
    one, other = (odesim.integrate(SCALED, **asked(scale, count, **run)) for scale in (1.0, LARGE))
    same_but_for(LARGE, one, other)
    if method == "tsit5":  # a kernel of its own for each
        plain = [odesim.integrate(SCALED, **{**asked(scale, count, **run), "atol": 1e-4}) for scale in (1.0, LARGE)]
        assert not np.array_equal(plain[0].y["x"], plain[1].y["x"] * LARGE)


@pytest.mark.parametrize(("backend", "dtype", "method"), [("numba", "float32", "tsit5"), ("numpy", "float64", "dop853")])
def test_a_run_in_other_units_elsewhere(backend: str, dtype: str, method: str) -> None:
    run: dict[str, Any] = {"method": method, "save": 7, "backend": backend, "dtype": dtype, "strict": backend == "numba"}
    same_but_for(LARGE, *(odesim.integrate(SCALED, **asked(scale, **run)) for scale in (1.0, LARGE)))


def test_a_stiff_run_on_arrays() -> None:
    """Pivots of LAPACK depend on units, so bits do; steps and digits do not."""
    run: dict[str, Any] = {"method": "rodas5p", "backend": "numpy", "save": 7}
    one, other = (odesim.integrate(SCALED, **asked(scale, **run)) for scale in (1.0, LARGE))
    assert one.stats["steps"] == other.stats["steps"]
    np.testing.assert_allclose(one.y["x"], other.y["x"] * LARGE, rtol=1e-11)


@pytest.mark.parametrize(
    ("method", "count", "loops"),
    slow_but(
        [*((m, 3, False) for m in (*EXPLICIT, *STIFF, "auto")), ("rodas5p", 7, False), ("tsit5", 3, True), ("dop853", 7, True)],
        [("rodas5p", 3, False), ("tsit5", 3, True)],  # the first one has the kernel of the law above
        several=True,
    ),
)
def test_members_in_other_units(method: str, count: int, loops: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lanes written out and with loops; written out and strict they have the bits of single runs."""
    made: list[Any] = []
    monkeypatch.setattr("odesim.api.ensemble.make_engine", lambda *of: made.append(make_engine(*of)) or made[-1])  # type: ignore[func-returns-value]
    for name, value in {"AT_ONCE": -1, "SOON": -1, "FEW": 1, "LOOPS": 0.0}.items() if loops else ():
        monkeypatch.setattr(choose, name, value)
    rates, run = np.linspace(0.5, 2.0, 19), {"method": method, "save": 7, "strict": not loops}
    found: list[xr.Dataset] = []
    for scale in (1.0, LARGE):
        given = asked(scale, count, **run)
        found.append(odesim.ensemble(SCALED, **{**given, "params": {"c": scale, "k": rates}}))
    one, other = found
    assert (type(made[0]).__name__ == "LoopLaneEngine") == loops
    np.testing.assert_array_equal(one.steps.values, other.steps.values)
    np.testing.assert_array_equal(one.x.values, other.x.values * LARGE)
    np.testing.assert_array_equal(one.z.values, other.z.values)
    if not loops:
        alone = odesim.integrate(SCALED, **{**asked(1.0, count, **run), "params": {"c": 1.0, "k": rates[4]}})
        np.testing.assert_array_equal(one.x.values[4], alone.y["x"])


@pytest.mark.parametrize("method", ["tsit5", "vern7", "dop853"])
def test_the_text_interpreted(method: str) -> None:
    """The text of the step in plain numpy, with a tolerance that is an array, takes the steps of a strict run."""
    y = IndexedBase("y", shape=(M,))
    system = System("test.cubic", SOURCE, {m: M}, {y[m]: k - y[m] * y[m] * y[m]}, positive(k), {y[m]: 0.1}, sizes={M: 3}, span=(0, 4))
    first, atol = np.array([0.1, 0.5, 2.0]), np.array([1e-3, 1e-7, 1e-12])
    run = odesim.integrate(system, initial={"y": first}, atol={"y": atol}, method=method, save=9, strict=True)
    saved = np.linspace(0, 4, 9)
    text = Interpreted(METHODS[method], lambda t, v: 1.0 - v * v * v, first, (0.0, 4.0), saved, atol={"y": atol.tolist()}).run()
    assert (text.names["steps"], text.names["rejected"]) == (run.stats["steps"], run.stats["rejected"])
    np.testing.assert_array_equal(np.array(text.states), run.y["y"])


def grown(t: float) -> float:
    """The infected at t, by the closed form of the logistic equation."""
    return MOST / (1 + (MOST / START - 1) * np.exp(-RATE * t))


@pytest.mark.parametrize("method", ["tsit5", "rodas5p"])
def test_two_scales(method: str) -> None:
    """One number for both is wrong by a tenth; their own are right, and their own size is known where the event happens."""
    with pytest.warns(ToleranceWarning, match=r"infected starts below 10 times atol = 1e-09.*give atol=\{'infected': 1e-20\}"):
        blind = odesim.integrate(EPIDEMIC, method=method)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = odesim.integrate(EPIDEMIC, method=method, atol={"infected": 1e-20})
    assert abs(blind.final["infected"] / grown(0.5) - 1) > 0.1
    np.testing.assert_allclose(run.final["infected"], grown(0.5), rtol=1e-5)  # 10 rtol
    np.testing.assert_allclose(run.final["S"], np.exp(-0.5), rtol=1e-5)
    (half,) = run.events["half"]
    np.testing.assert_allclose(half["t"], np.log(MOST / START - 1) / RATE, rtol=1e-6)


@pytest.mark.filterwarnings("ignore::odesim.base.errors.ToleranceWarning")
def test_marks_and_guards_have_the_tolerance_of_the_state() -> None:
    """An event of a state of 1e-10 is marked where its atol is 1e-9; it may leave its set by its own atol, and no other state's."""
    far = {"S": 1e-3, "infected": 1e-16}
    small = System(
        "test.small", SOURCE, {}, {S: -S, infected: -1e-10}, (), {S: 1.0, infected: 0.5e-10}, span=(0.0, 1.0),
        events=(Event("passes", infected - 2e-11),),
    )  # fmt: skip
    for method in ("tsit5", "rodas5p"):
        marks = []
        for atol in ({"infected": 1e-9}, far):
            run = odesim.integrate(small, method=method, atol=atol, backend="numpy")
            marks.append([e.get("below_tolerance", False) for e in run.events["passes"]])
            assert run.status == ("left_domain" if atol is far else "ok")
        assert marks == [[True], [False]]
    members = odesim.ensemble(small, initial={"S": [1.0, 2.0]}, atol=far, method="tsit5")
    assert set(members.status.values) == {Status.LEFT_DOMAIN.number}
    np.testing.assert_allclose(members.t_end, 0.5, rtol=1e-5)


WRONG: dict[str, tuple[Any, str]] = {
    "no state": ({"infectd": 1e-9}, "no state 'infectd' in test.epidemic; choose from S, infected; did you mean 'infected'?"),
    "a parameter": ({"k": 1e-9}, "'k' is not a state of test.epidemic but a parameter"),
    "a shape": ({"S": [1e-9, 1e-9]}, "atol of S must be one number; it has shape (2,)"),
    "below 0": ({"S": -1e-9}, "atol of S must be a finite number, 0 or above, not -1e-09"),
    "no number": ({"S": float("nan")}, "atol of S must be a finite number, 0 or above, not nan"),
    "a text": ({"S": "small"}, "atol of S must be a number or an array of numbers, not 'small'"),
    "a list": ([1e-9, 1e-9], "atol must be a number"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_wrong_tolerances(kind: str) -> None:
    """One sentence, of a run and of members."""
    atol, words = WRONG[kind]
    for call in (odesim.integrate, lambda *of, **by: odesim.ensemble(*of, **by, params={"k": [1.0, 2.0]}, method="tsit5")):
        with pytest.raises(OdesimError) as raised:
            call(EPIDEMIC, atol=atol)
        assert words in str(raised.value) and "\n" not in str(raised.value)


def test_on_the_command_line_in_files_and_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Named tolerances, and a number for the rest; a stored run is computed again, an ensemble gone on with, by them."""
    monkeypatch.chdir(tmp_path)

    def run(command: str) -> str:
        done = CliRunner().invoke(cli, command.split())
        assert done.exit_code == 0, done.output
        return done.output

    model = "joma.nonlinear --size M=2 --method tsit5 --strict --quiet"
    Path("own.toml").write_text('method = "tsit5"\natol = {v = [1e-7, 1e-12], "*" = 1e-6}\n[sizes]\nM = 2\n')
    run(f"integrate {model} --atol 1e-6 --atol v=1e-7,1e-12 --out a.zarr")
    run("integrate joma.nonlinear --params own.toml --strict --quiet --out b.zarr")
    run("integrate joma.nonlinear --params own.toml --strict --quiet --atol 1e-9 --out c.zarr")
    one, two, three = (read_solution(Path(f"{name}.zarr")) for name in "abc")
    assert one.attrs["atol"] == two.attrs["atol"] == {"*": 1e-6, "v": [1e-7, 1e-12]} and three.attrs["atol"] == 1e-9
    np.testing.assert_array_equal(one.y["v"], two.y["v"])
    assert rerun_integration(Path("a.zarr")).same
    design = "--vary mu=uniform(0.5,2) --members 4"
    run(f"ensemble {model} {design} --atol v=1e-7 --out many.zarr")
    assert rerun_ensemble(Path("many.zarr")).same
    other = CliRunner().invoke(cli, f"ensemble {model} {design} --atol v=1e-8 --shard 1/2 --out many.zarr".split())
    assert other.exit_code == 2 and "its atol differs" in other.output
    held = odesim.ensemble(
        "joma.nonlinear", sizes={"M": 2}, vary={"mu": "uniform(0.5,2)"}, members=2, atol={"v": 1e-7}, method="tsit5", strict=True
    )
    assert json.loads(held.attrs["atol"]) == {"v": 1e-7}

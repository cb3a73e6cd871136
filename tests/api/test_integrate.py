"""odesim.integrate and what it returns."""

import time
from typing import Any

import numpy as np
import pytest

import odesim
from odesim.base.errors import OdesimError, ParamError, SolveError

LINEAR: dict[str, Any] = {"params": {"Delta": [0.5, 1.0]}, "span": (0.0, 1.25)}


@pytest.mark.parametrize("method", ["tsit5", "vern7", "dop853"])
def test_any_time_of_a_run_is_as_good_as_a_saved_one(method):
    """at(t) has the bits of a run that saves t, whatever else was saved: the steps do not depend on the times saved."""
    asked: dict[str, Any] = {**LINEAR, "method": method, "backend": "numpy"}
    run, saved = (odesim.integrate("joma.linear", save=save, **asked) for save in (5, np.array([0.0, 0.77, 1.2499])))
    assert np.array_equal(run.at(0.77)["v"], saved.y["v"][1])
    assert np.array_equal(run.dense(np.array([0.77, 1.2499]))["v"], saved.y["v"][1:])


def test_any_time_before_a_blow_up():
    """Close to t* = sqrt(pi/2) v follows sqrt(2) erfinv(sqrt(2/pi) t): no restart that blows up earlier."""
    from scipy.special import erfinv

    run = odesim.integrate("joma.linear", params={"Delta": [1.0]}, span=(0.0, 2.0), save=11, rtol=1e-9, atol=1e-12)
    assert run.status == "blow_up" and run.t_end == pytest.approx(np.sqrt(np.pi / 2), rel=1e-8)
    times = run.t_end * (1 - np.array([1e-1, 1e-3, 1e-5]))
    want = np.sqrt(2) * erfinv(np.sqrt(2 / np.pi) * times)
    np.testing.assert_allclose(run.dense(times)["v"][:, 0], want, rtol=1e-4)  # 1 - t/t* = 1e-5 costs 5 of 9 digits


@pytest.mark.parametrize("method", ["tsit5", "rodas5p", "auto"])
def test_seconds_are_those_of_this_call(method):
    """Steps, and all before them, take no longer than the call, also where another call has compiled what it uses."""
    for _ in range(2):
        begun = time.perf_counter()
        stats = odesim.integrate("joma.linear", method=method, **LINEAR).stats
        assert stats["seconds"] > 0 and 0 <= stats["compile_seconds"] < time.perf_counter() - begun - stats["seconds"]


def test_a_fixed_step_keeps_its_grid():
    """Between two Euler iterates lies their chord."""
    options: dict[str, Any] = {"params": {"mu": [1.0]}, "span": (0.0, 0.1), "method": "euler", "step": 0.02}
    run = odesim.integrate("joma.nonlinear", save=2, **options)
    every = odesim.integrate("joma.nonlinear", save=6, **options).y["v"][:, 0]
    np.testing.assert_allclose(run.at(0.05)["v"][0], (every[2] + every[3]) / 2, rtol=1e-13)


def test_the_end_is_the_last_time_reached():
    """Times saved may end before the run does."""
    run = odesim.integrate("joma.nonlinear", save=np.array([0.0, 1.0]), span=(0.0, 3.0))
    whole = odesim.integrate("joma.nonlinear", span=(0.0, 3.0))
    assert list(run.t) == [0.0, 1.0] and run.t_end == 3.0
    assert np.array_equal(run.final["v"], whole.y["v"][-1])
    assert run.final_observables["entropy"] == whole.observables["entropy"][-1]


@pytest.mark.slow
def test_backends_agree_in_float32():
    """Both compute in float32 what they are given in float32: as many steps, give or take a few."""
    runs = [odesim.integrate("joma.nonlinear", span=(0.0, 1.0), dtype="float32", backend=b) for b in ("numba", "numpy")]
    np.testing.assert_allclose(runs[0].final["v"], runs[1].final["v"], rtol=1e-4)
    assert all(run.final["v"].dtype == np.float32 for run in runs)


WRONG: dict[str, tuple[dict[str, Any], type[OdesimError], str]] = {
    "rtol": ({"rtol": "a"}, SolveError, "rtol must be a number, not 'a'"),
    "step": ({"step": "b"}, SolveError, "step must be a number"),
    "float32": ({"params": {"mu": 1e39}, "dtype": "float32"}, ParamError, r"mu = 1e\+39 overflows float32"),
    "save text": ({"save": "log20"}, OdesimError, "save"),
    "save one": ({"save": 1}, ParamError, "save"),
    "save outside": ({"save": np.array([0.0, 9.0])}, ParamError, "save"),
    "save backwards": ({"save": np.array([2.0, 1.0])}, ParamError, "save"),
    "dtype": ({"dtype": "float16"}, ParamError, "no dtype 'float16'"),
    "method": ({"method": "tsit"}, SolveError, "did you mean 'tsit5'"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_requests_are_one_sentence(case):
    options, error, sentence = WRONG[case]
    with pytest.raises(error, match=sentence) as raised:
        odesim.integrate("joma.nonlinear", **options)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("times", [-0.1, 5.0, np.nan, "x", np.array([[0.1]])], ids=str)
def test_times_outside_a_run_are_refused(times):
    run = odesim.integrate("joma.nonlinear", span=(0.0, 1.0))
    with pytest.raises(SolveError):
        run.at(times)


def test_what_notebooks_show():
    run = odesim.integrate("joma.nonlinear", save=3, span=(0.0, 1.0))
    assert "joma.nonlinear" in repr(run) and "array" not in repr(run)
    assert "<table>" in run._repr_html_() and "entropy" in run._repr_html_()
    ds = run.to_xarray()
    assert ds["v"].dims == ("time", "l") and ds.attrs["method"] == "tsit5"
    assert odesim.load_model("joma.nonlinear")._repr_latex_().startswith("$$")


def test_facade_names():
    assert set(odesim.__all__) <= set(dir(odesim))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = odesim.nothing  # type: ignore[attr-defined]


def test_the_end_of_a_stopped_run():
    """at() reaches the last time of a run that blew up."""
    run = odesim.integrate("joma.linear", params={"Delta": [1.0]}, span=(0.0, 2.0))
    assert run.status == "blow_up" and np.array_equal(run.at(run.t_end)["v"], run.final["v"])

"""The stiff methods on the shipped models: exact Jacobians, closed forms, and the work of a large run."""

from typing import Any

import numpy as np
import pytest

import odesim
from odesim.inputs.registry import load_model
from odesim.ir.linear_systems import Structured
from odesim.targets.compiled import compile_system
from tests.ir.test_jacobian import bound, every_form, right_side
from tests.models.test_generated import near_start
from tests.support.models import CHEAPEST_FIRST
from tests.support.products import jacobian

METHODS = pytest.mark.parametrize("method", ["rodas4", "rodas5p"])


@pytest.mark.first(4)
@pytest.mark.parametrize("name", CHEAPEST_FIRST)
def test_jacobian_and_time_slope(name):
    """Every form of J, and df/dt, against central differences, step 1e-6: 1e-10 from rounding."""
    system, given, y = near_start(load_model(name))
    linear, f = bound(system, given.sizes, given.params), right_side(system, given.sizes, given.params)
    rng, h = np.random.default_rng(3), 1e-6
    W = np.eye(len(y)) if len(y) <= 50 else rng.normal(size=(5, len(y)))
    differences = np.stack([(f(0.5, y + h * w) - f(0.5, y - h * w)) / (2 * h) for w in W], axis=1)
    for form, J in every_form(linear, 0.5, y).items():
        np.testing.assert_allclose(J.dense() @ W.T, differences, rtol=1e-6, atol=1e-7 * np.abs(differences).max(), err_msg=form)
    slope = linear.time_slope(0.5, y)
    in_time = (f(0.5 + h, y) - f(0.5 - h, y)) / (2 * h)
    assert (np.zeros_like(y) if slope is None else slope) == pytest.approx(in_time, abs=1e-7)


MODELS = ["joma.nonlinear", "joma.linear", "hierarchy.grouped", "joma.nonlinear_softmax", "scan_snap.theorem4"]


@pytest.mark.first(1)
@pytest.mark.parametrize("method", ["rodas5p", "rodas4"])
@pytest.mark.parametrize("model", MODELS)
def test_events_and_states_of_an_explicit_run(model, method):
    """The states along the run and the events are those of vern7 at 1e-10; next to a blow-up errors grow by 1e3, and an event moves by
    the error over the slope."""
    kw: dict[str, Any] = {"save": 20}
    ours = odesim.integrate(model, method=method, rtol=1e-7, atol=1e-9, **kw)
    true = odesim.integrate(model, method="vern7", rtol=1e-10, atol=1e-12, **kw)
    assert ours.ok and ours.method == method
    for name, rows in true.y.items():
        np.testing.assert_allclose(ours.y[name], rows, rtol=1e-4, atol=1e-5)
    for name, found in true.events.items():
        assert [e["index"] for e in ours.events[name]] == [e["index"] for e in found]
        assert [e["t"] for e in ours.events[name]] == pytest.approx([e["t"] for e in found], rel=1e-4)


@pytest.mark.first(1)
@METHODS
def test_saturating_nodes_with_large_mu(method):
    """joma.nonlinear with mu up to 5, rates from 1 to exp(12.5) = 2.7e5, against its closed form; an explicit method needs 1e6 steps."""
    mu = np.array([0.5, 3.0, 5.0])
    run = odesim.integrate("joma.nonlinear", params={"mu": mu}, span=(0.0, 10.0), method=method, rtol=1e-8, atol=1e-10, save=50)
    off = load_model("joma.nonlinear").closed_forms[0].function
    residual = [off(t, {"v": v}, {"v": run.y["v"][0]}, {"mu": mu}) for t, v in zip(run.t, run.y["v"], strict=True)]
    # the fastest component doubles its error some 2e3 times over on its way up
    assert np.max(np.abs(residual)) < 1e-4
    assert run.y["v"][-1, 1:] == pytest.approx(mu[1:], abs=1e-8)
    assert run.stats["steps"] < 1000


def test_many_states():
    """M = 2e3 softmax-coupled components, diagonal plus one sum: a step is a few vector operations, and the clock is met."""
    M = 2_000
    mu = np.linspace(1, 4, M)
    run = odesim.integrate("joma.nonlinear_softmax", params={"mu": mu}, span=(0.0, 1.0 * M), method="rodas5p")
    compiled = compile_system(load_model("joma.nonlinear_softmax"))
    J = jacobian(compiled.bind(run.attrs["sizes"], run.attrs["params"]), 0.0, run.y["v"][-1])
    assert isinstance(J, Structured) and J.U.shape == (M, 1)
    assert run.ok and run.stats["steps"] + run.stats["rejected"] < 100
    off = load_model("joma.nonlinear_softmax").closed_forms[0].function
    residual = off(1.0 * M, {"v": run.y["v"][-1]}, {"v": np.full(M, 0.05)}, {"mu": mu, "T": 2.0})
    assert np.max(np.abs(residual)) < 1e-3


@pytest.mark.slow
def test_numpy_and_float32():
    """The numpy backend and float32 integrate too."""
    want = odesim.integrate("joma.nonlinear", method="rodas5p").y["v"][-1]
    for options in ({"backend": "numpy"}, {"dtype": "float32", "rtol": 1e-5}):
        run = odesim.integrate("joma.nonlinear", method="rodas5p", **options)  # type: ignore[arg-type]
        assert run.y["v"].dtype == options.get("dtype", "float64") and run.y["v"][-1] == pytest.approx(want, rel=1e-4)


@pytest.mark.first(1)
@METHODS
def test_dense_and_at(method):
    """dense() makes the same steps again; at() gives a saved row's bits."""
    run = odesim.integrate("joma.nonlinear", method=method, save=11)
    assert np.array_equal(run.dense(run.t)["v"], run.y["v"])
    assert np.array_equal(run.at(float(run.t[4]))["v"], run.y["v"][4])

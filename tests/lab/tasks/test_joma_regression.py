"""The task joma_regression: steps by hand, its theory as the rate falls, what it refuses."""

import numpy as np
import pytest
from scipy.special import lambertw

import odesim
from odesim.base.errors import ParamError
from odesim.lab.tasks import load_task
from odesim.lab.training.randomness import INITIAL, generators

TASK = load_task("joma_regression")
DEFAULTS = {setting.name: setting.default for setting in TASK.settings}


def test_steps_by_hand():
    """Ten steps of v and z on the mean of (sum_l x_l exp(z_l) v_l - c . x)^2 / 2, one sample at a time; rounding. Xi stays 0."""
    c = np.array([0.5, -1.0, 2.0])
    made = TASK.make({**DEFAULTS, "M": 3, "c": c, "batch": 4, "eta": 0.05, "eta_z": 0.02}, seeds=(3,))
    run = odesim.train("joma_regression", settings={"M": 3, "c": c, "batch": 4, "eta": 0.05, "eta_z": 0.02}, seeds=(3,), steps=10)
    v, z = np.zeros(3), np.zeros(3)
    for i in range(10):
        batch = made.stream(i)
        x, y = batch["x"][0], batch["target"][0, :, 0]
        np.testing.assert_allclose(y, x @ c, rtol=1e-14)
        dv, dz = np.zeros(3), np.zeros(3)
        for n in range(4):
            off = (x[n] * np.exp(z) * v).sum() - y[n]
            dv += off * x[n] * np.exp(z) / 4
            dz += off * x[n] * np.exp(z) * v / 4
        v, z = v - 0.05 * dv, z - 0.02 * dz
    np.testing.assert_allclose(run.final["v"][0], v, rtol=1e-12)
    np.testing.assert_allclose(run.final["z"][0], z, rtol=1e-12)
    assert np.all(made.model.initial(generators((3,), INITIAL), "float64")["Xi"] == 0)
    assert run.observables["loss_population"][0, -1] == pytest.approx(((c - v * np.exp(z)) ** 2).sum() / 2, rel=1e-12)


def test_it_comes_to_rest():
    """At sqrt(W(c^2)), with the noise of batches; the law z = v^2 / 2 to first order in eta."""
    c = np.array([1.0, 2.0, 4.0])
    rest = [np.sqrt(lambertw(float(x) ** 2).real) for x in c]
    run = odesim.train("joma_regression", settings={"M": 3, "c": c, "batch": 64, "eta": 5e-3}, seeds=range(3), steps=800, save=9)
    np.testing.assert_allclose(run.final["v"].mean(axis=0), rest, atol=0.02)
    assert np.abs(run.final["invariant"]).max() < 0.05


def test_seeds_and_iterations_are_independent():
    """Batches of a seed do not depend on others, nor on what was asked for before; different iterations differ."""
    both, one = (TASK.make({**DEFAULTS, "batch": 3, "M": 2}, seeds=seeds).stream for seeds in ((1, 5), (5,)))
    later = both(7)["x"]
    np.testing.assert_array_equal(one(7)["x"][0], later[1])
    np.testing.assert_array_equal(both(7)["x"], later)
    assert np.abs(both(8)["x"] - later).max() > 0.1 and np.abs(later[0] - later[1]).max() > 0.1


def test_refused():
    """Another rate of the logits has no System, by name."""
    with pytest.raises(ParamError, match=r"eta_z is 0.002, not eta = 0.001"):
        odesim.compare("joma.self_consistent", task="joma_regression", settings={"eta_z": 0.002}, steps=2)

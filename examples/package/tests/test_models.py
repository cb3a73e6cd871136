"""The models against what is known of them."""

import numpy as np
import pytest

import odesim


def test_closed_form():
    """The run lies on the sigmoid; ten times the tolerance."""
    model = odesim.load_model("my.two_layers")
    run = odesim.integrate(model, save=13, rtol=1e-9, atol=1e-12)
    (form,) = model.closed_forms
    params = {"s": np.linspace(3, 1, 3), "tau": 1.0}
    for t, row in zip(run.t, run.y["a"], strict=True):
        np.testing.assert_allclose(row, form.function(t, {"a": run.y["a"][0]}, params)["a"], rtol=1e-8)


@pytest.mark.parametrize("name", ["my.two_layers", "my.two_layers_deep"])
def test_laws(name):
    """The larger a mode, the sooner it is half learned; no mode goes away from its target."""
    run = odesim.integrate(name, save=601, span=(0, 300 if name.endswith("deep") else 6), rtol=1e-9)
    half = (run.y["a"] > np.linspace(3, 1, 3) / 2).argmax(axis=0)
    assert 0 < half[0] < half[1] < half[2]
    assert run.invariants["distance to the data"] < 1e-6

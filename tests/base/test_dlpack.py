"""Arrays of other libraries: what speaks DLPack is taken where an array is, and what odesim gives is handed out."""

import sys
from typing import Any

import numpy as np
import pytest

import odesim
from odesim.base.arrays import on_host
from odesim.base.errors import ParamError


class Other:
    """An array of a library that knows DLPack and nothing else of numpy."""

    def __init__(self, array, device=(1, 0), error=None):
        self.array, self.device, self.error = np.asarray(array), device, error

    def __dlpack__(self, **options):
        if self.error is not None:
            raise self.error
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.device


def test_taken_where_an_array_is():
    mu, start = np.array([2.0, 1.5, 1.0]), np.array([0.1, 0.2, 0.3])
    plain = odesim.integrate("joma.nonlinear", params={"mu": mu}, initial={"v": start}, save=[0.0, 0.5], backend="numpy")
    words: dict[str, Any] = {"params": {"mu": Other(mu)}, "initial": {"v": Other(start)}, "save": Other([0.0, 0.5])}
    other = odesim.integrate("joma.nonlinear", **words, backend="numpy")
    np.testing.assert_array_equal(other.y["v"], plain.y["v"])
    members = odesim.ensemble("joma.nonlinear", vary={"mu": Other(np.stack([mu, 2 * mu]))}, method="tsit5")
    np.testing.assert_array_equal(members["mu"], [mu, 2 * mu])


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32"])
def test_other_types(dtype):
    array = np.arange(6).reshape(2, 3).astype(dtype)
    np.testing.assert_array_equal(on_host([Other(array)])[0], array)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (Other([1.0], error=BufferError("it needs a gradient")), "is not handed out by DLPack: it needs a gradient"),
        (Other([1.0], device=(2, 0)), "lies on a GPU: copy it to the host, or install cupy"),
    ],
)
def test_what_is_not_handed_out(value, words, monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    params: dict[str, Any] = {"mu": value}
    with pytest.raises(ParamError) as caught:
        odesim.integrate("joma.nonlinear", params=params)
    assert words in str(caught.value) and str(caught.value).startswith("an array of ")


def test_results_are_handed_out():
    """By numpy's own DLPack: torch.from_dlpack(run.y["v"]) shares the memory."""
    run = odesim.integrate("joma.nonlinear", save=3, backend="numpy")
    assert np.shares_memory(np.from_dlpack(run.y["v"]), run.y["v"])
    members = odesim.ensemble("joma.nonlinear", members=2, vary={"mu": "uniform(1,2)"}, sizes={"M": 3}, method="tsit5")
    assert np.from_dlpack(members["v"].values).shape == members["v"].shape

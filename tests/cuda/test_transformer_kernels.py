"""The kernels of a transformer on a GPU, built for this processor: every option, extra and dtype, against numpy's passes."""

import ctypes
import sys
from collections.abc import Iterator
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from odesim.base.arrays import Array, on_host
from odesim.lab.networks import device
from tests.support.cuda_host import build
from tests.support.cupy_arrays import OnDevice, make_arrays, on_device
from tests.support.transformer_cases import CASES, EXTRAS, batch_for, make, start

HEAD = '#include "odesim_host.h"\n#define SHARED(name, n) ODESIM_SHARED(real, name, n)\nusing std::erfc; using std::exp; using std::log;\n'


@cache
def library(code: str) -> ctypes.CDLL:
    return build(HEAD + code, strict=False)


class HostModule:
    """cupy.RawModule, as far as it is used: kernels of a text."""

    def __init__(self, code: str, options: tuple[str, ...]) -> None:
        self.code = code

    def get_function(self, name: str) -> Any:
        function = getattr(library(self.code), f"launch_{name}")

        def launch(grid: tuple[int, ...], block: tuple[int, ...], given: tuple[Any, ...]) -> None:
            x, y, *_ = (*grid, 1)
            function(*map(ctypes.c_uint, (x, y, block[0])), *map(passed, given))

        return launch


def passed(value: Any) -> Any:
    if isinstance(value, OnDevice):
        assert value.held.flags.c_contiguous
        return ctypes.c_void_p(value.data.ptr)
    return ctypes.c_double(value) if isinstance(value, float) else ctypes.c_longlong(value)


@pytest.fixture
def fused(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """A cupy on numpy's memory that compiles kernels."""
    cupy: Any = make_arrays()
    cupy.RawModule = HostModule
    cupy.argsort = on_device(lambda a: np.argsort(a, kind="stable"))
    cupy.searchsorted = on_device(np.searchsorted)
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    for known in (device._module, device._kernel):
        known.cache_clear()
    yield cupy
    for known in (device._module, device._kernel):
        known.cache_clear()


def there(cupy: Any, named: dict[str, Array]) -> dict[str, Any]:
    return {name: cupy.asarray(value) for name, value in named.items()}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("extras", EXTRAS)
@pytest.mark.parametrize("case", CASES)
def test_kernels_have_numpy_s_numbers(case: str, extras: str, dtype: str, fused: Any) -> None:
    """Loss and gradients to rounding: sums of some ten terms, and an error function of numpy's within 7.5e-8 in float32."""
    model = make(case)
    params, batch = start(model, dtype=dtype), batch_for(model, EXTRAS[extras])
    loss, gradients = model.loss_and_gradients(params, batch)
    loss_there, gradients_there = model.loss_and_gradients(there(fused, params), batch)
    near = 1e-12 if dtype == "float64" else 2e-5
    np.testing.assert_allclose(on_host(loss_there), loss, rtol=near)
    largest = max(float(np.abs(g).max()) for g in gradients.values())
    for name, g in gradients.items():
        np.testing.assert_allclose(on_host(gradients_there[name]), g, rtol=0, atol=near * largest, err_msg=name)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_kernels_sum_long_rows(dtype: str, fused: Any) -> None:
    """Rows longer than a warp and a block, more rows than one thread adds up, tokens that come often or never."""
    rng = np.random.default_rng(0)
    near = 1e-12 if dtype == "float64" else 2e-5
    x, dy = (rng.normal(size=(2, 301, 70)).astype(dtype) for _ in range(2))
    a, b = fused.asarray(x), fused.asarray(dy)
    for made, right in zip(device.sum_rows(a, b), (x.sum(axis=1), (x * dy).sum(axis=1)), strict=True):
        np.testing.assert_allclose(on_host(made), right, rtol=0, atol=near * 301)
    z, target = rng.normal(size=(3, 1000)).astype(dtype) * 5, np.array([999, 0, 31])
    share, logits = np.full(3, 0.5, dtype), fused.asarray(z)
    loss = device.cross_entropy(logits, fused.asarray(target), fused.asarray(share))
    chance = np.exp(z - np.log(np.exp(z).sum(axis=1))[:, None])
    np.testing.assert_allclose(on_host(loss), -np.log(chance[range(3), target]), rtol=near)
    chance[range(3), target] -= 1
    np.testing.assert_allclose(on_host(logits), chance / 2, atol=near)
    rows = rng.integers(0, 4, 500) * 2
    table = np.zeros((9, 70), dtype)
    np.add.at(table, rows, x.reshape(-1, 70)[:500])
    np.testing.assert_allclose(
        on_host(device.embed_back(fused.asarray(x.reshape(-1, 70)[:500]), fused.asarray(rows), 9)), table, atol=near * 100
    )


def test_kernels_take_what_is_not_finite(fused: Any) -> None:
    """NaN stays NaN; at infinity GELU is x or 0, and its slope 1 or 0."""
    y, slope = device.gelu(fused.asarray(np.array([np.inf, -np.inf, np.nan, -40.0])))
    np.testing.assert_array_equal(on_host(slope), [1, 0, np.nan, 0])
    assert on_host(y)[0] == np.inf and np.isnan(on_host(y)[2])
    a = fused.asarray(np.array([[0.0, np.nan], [-np.inf, -np.inf], [0.0, 0.0]]).reshape(1, 1, 1, 3, 2))
    device.softmax(a, None, 1.0)
    np.testing.assert_array_equal(on_host(a).reshape(3, 2), [[np.nan, np.nan], [0, 0], [0.5, 0.5]])

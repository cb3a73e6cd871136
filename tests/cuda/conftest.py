"""A device that is none: CUDA text built for this CPU, cupy's calls on numpy's memory. And the one that is here, where there is one."""

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from odesim import facade, gpu
from odesim.codegen import cuda_bound
from odesim.codegen.nvrtc import Cubin
from odesim.ensembles import device_engine
from odesim.gpu import cupy_here
from odesim.solve.explicit import device
from tests.cuda.host import make_cupy


@pytest.fixture
def shim(monkeypatch: pytest.MonkeyPatch) -> Callable[..., ModuleType]:
    """shim(strict, ...) puts a cupy in place whose kernels run here, and returns it; as make_cupy takes them."""

    def install(strict: bool = True, **about: Any) -> ModuleType:
        cupy = make_cupy(strict, **about)
        monkeypatch.setitem(sys.modules, "cupy", cupy)

        def text_itself(text: str, stem: str, options: Any) -> Cubin:
            assert f"--fmad={'false' if strict else 'true'}" in options
            return Cubin(text.encode(), "")

        for module in (cuda_bound, device_engine):
            monkeypatch.setattr(module, "compile_cubin", text_itself)
        monkeypatch.setattr(device, "THREADS", 64)
        forget(monkeypatch)
        return cupy

    return install


@pytest.fixture
def on_device(monkeypatch: pytest.MonkeyPatch) -> Callable[..., ModuleType]:
    """on_device(strict): the cupy that is installed, with its GPU. For tests with the marker gpu."""

    def found(strict: bool = True) -> ModuleType:
        forget(monkeypatch)
        return cupy_here()  # type: ignore[no-any-return]

    return found


@pytest.fixture(params=["shim", pytest.param("device", marks=pytest.mark.gpu)])
def cuda(request: pytest.FixtureRequest) -> Callable[..., ModuleType]:
    """cuda(strict) readies the backend cuda: by the shim, and for a test of the same law marked gpu on a device."""
    name = "shim" if request.param == "shim" else "on_device"
    return request.getfixturevalue(name)  # type: ignore[no-any-return]


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was compiled for another device."""
    monkeypatch.setattr(facade, "_MEMO", {})
    gpu.architecture.cache_clear()
    device_engine.kernel_of.cache_clear()

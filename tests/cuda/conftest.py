"""A device that is none: CUDA text built for this CPU, cupy's calls on numpy's memory."""

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from odesim.codegen.nvrtc import Cubin
from tests.cuda.host import make_cupy


@pytest.fixture
def shim(monkeypatch: pytest.MonkeyPatch) -> Callable[..., ModuleType]:
    """shim(strict, ...) puts a cupy in place whose kernels run here, and returns it; as make_cupy takes them."""
    from odesim import facade, gpu
    from odesim.codegen import cuda_bound
    from odesim.ensembles import device_engine
    from odesim.solve.explicit import device

    def install(strict: bool = True, **about: Any) -> ModuleType:
        cupy = make_cupy(strict, **about)
        monkeypatch.setitem(sys.modules, "cupy", cupy)

        def text_itself(text: str, stem: str, options: Any) -> Cubin:
            assert f"--fmad={'false' if strict else 'true'}" in options
            return Cubin(text.encode(), "")

        for module in (cuda_bound, device_engine):
            monkeypatch.setattr(module, "compile_cubin", text_itself)
        monkeypatch.setattr(device, "THREADS", 64)
        monkeypatch.setattr(facade, "_MEMO", {})  # what was compiled for another device
        gpu.architecture.cache_clear()
        device_engine.kernel_of.cache_clear()
        return cupy

    return install

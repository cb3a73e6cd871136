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
    """shim(strict, room) puts a cupy in place whose kernels run here, and returns it."""
    from odesim import gpu
    from odesim.ensembles import cuda_engine

    def install(strict: bool = True, room: float = float("inf")) -> ModuleType:
        cupy = make_cupy(strict, room)
        monkeypatch.setitem(sys.modules, "cupy", cupy)

        def text_itself(text: str, stem: str, options: Any) -> Cubin:
            assert f"--fmad={'false' if strict else 'true'}" in options
            return Cubin(text.encode(), "")

        monkeypatch.setattr(cuda_engine, "compile_cubin", text_itself)
        gpu.architecture.cache_clear()
        cuda_engine.compiled_kernel.cache_clear()
        return cupy

    return install

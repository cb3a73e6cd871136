"""cupy, asked for by whoever computes on a GPU, and one sentence where it or a GPU is missing."""

from functools import cache
from types import ModuleType
from typing import Any

import numpy as np

from odesim.errors import CodegenError, ParamError, no_such

CUDA12, CUDA13 = "pip install 'odesim[cuda12]'", "pip install 'odesim[cuda13]'"
ARRAYS = ("numpy", "cuda")  # backends of what computes with whole arrays


def cupy_here() -> Any:
    """The module cupy with a device to compute on. Raises CodegenError with what is missing."""
    try:
        import cupy
    except ImportError:
        raise CodegenError(f"the backend cuda needs cupy, which is not installed: {CUDA13}, with an older driver {CUDA12}") from None
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise CodegenError(f"the backend cuda needs an NVIDIA GPU and its driver: {error}; odesim doctor says what is here") from None
    if not count:
        raise CodegenError("the backend cuda needs an NVIDIA GPU, and there is none here; the other backends need none")
    return cupy


def array_module(backend: str) -> ModuleType:
    """numpy, or for "cuda" cupy with a device. Raises ParamError for another name, CodegenError with what is missing."""
    if backend not in ARRAYS:
        raise ParamError(no_such("backend", str(backend), ARRAYS, "a training"))
    found: ModuleType = np if backend == "numpy" else cupy_here()
    return found


def device_name() -> str:
    """What the maker calls the current device."""
    runtime = cupy_here().cuda.runtime
    name: bytes = runtime.getDeviceProperties(runtime.getDevice())["name"]
    return name.decode()


@cache
def architecture(device: int = 0) -> str:
    """sm_90 for a device of compute capability 9.0."""
    return f"sm_{cupy_here().cuda.Device(device).compute_capability}"


def device_count() -> int:
    """How many GPUs there are. Raises CodegenError without one."""
    return int(cupy_here().cuda.runtime.getDeviceCount())


def compute_module(code: bytes) -> Any:
    """Machine code loaded onto the current device; get_function(name) gives a kernel."""
    module = cupy_here().cuda.function.Module()
    module.load(code)
    return module


def multiprocessors() -> int:
    """How many the current device has."""
    return int(cupy_here().cuda.Device().attributes["MultiProcessorCount"])

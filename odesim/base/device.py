"""What the machine has for a run: memory, threads of BLAS, GPUs. What is missing, or too small, is one sentence."""

import ctypes
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import cache, partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from odesim.base.backends import TRAINING, find_backend
from odesim.base.errors import CodegenError, DeviceError

DISPLAY = "a GPU that also drives a display ends what runs for seconds: choose another one with CUDA_VISIBLE_DEVICES"
LOST = "this process can use the GPU no more; try again in a new one, and please report it where it fails again"


@cache
def cuda_driver() -> int | None:
    """The newest CUDA version that the driver supports, as 12040 for 12.4; None without a driver."""
    for name in ("libcuda.so.1", "nvcuda.dll"):
        try:
            library = ctypes.CDLL(name)
        except OSError:
            continue
        version = ctypes.c_int(0)
        if library.cuDriverGetVersion(ctypes.byref(version)) == 0 and version.value:
            return version.value
    return None


def install_command() -> str:
    """The pip command that fits the driver of this machine; without a driver, the one for the newest."""
    driver = cuda_driver()
    if driver is None:
        return "pip install 'odesim[cuda13]', or [cuda12] with an older driver"
    command = "pip install 'odesim[cuda13]'" if driver >= 13000 else "pip install 'odesim[cuda12]'"
    return command if driver >= 12000 else f"{command}, and a newer driver"


def cupy_here() -> Any:
    """The module cupy, with a device to compute on. Raises CodegenError that says what is missing."""
    try:
        import cupy
    except ImportError:
        raise CodegenError(f"the backend cuda needs cupy, which is not installed: {install_command()}") from None
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise CodegenError(f"the backend cuda needs an NVIDIA GPU and its driver: {error}; odesim doctor says what is here") from None
    if not count:
        raise CodegenError("the backend cuda needs an NVIDIA GPU, and there is none here; the other backends need none")
    return cupy


def array_module(backend: str) -> ModuleType:
    """The module numpy, or cupy with a device, for the backend of a training.

    Raises ParamError for an unknown backend, CodegenError that says what is missing.
    """
    module: ModuleType = cupy_here() if find_backend(backend, TRAINING).gpu else np
    return module


def device_name() -> str:
    """The product name of the current device."""
    name: bytes = cupy_here().cuda.runtime.getDeviceProperties(current_device())["name"]
    return name.decode()


def current_device() -> int:
    """The number of the device that cupy computes on in this thread."""
    return int(cupy_here().cuda.runtime.getDevice())


def first_device() -> AbstractContextManager[Any]:
    """A context in which the first device is the current one."""
    context: AbstractContextManager[Any] = cupy_here().cuda.Device(0)
    return context


def device_context() -> Callable[[], AbstractContextManager[Any]]:
    """A function that makes contexts in which the device that is current now is the current one."""
    return partial(cupy_here().cuda.Device, current_device())


def architecture(device: int | None = None) -> str:
    """The architecture of a device, such as sm_90 for compute capability 9.0; None: of the current device."""
    return f"sm_{cupy_here().cuda.Device(current_device() if device is None else device).compute_capability}"


def device_count() -> int:
    """The number of GPUs. Raises CodegenError without one."""
    return int(cupy_here().cuda.runtime.getDeviceCount())


def load_module(code: bytes) -> Any:
    """Machine code loaded onto the current device; get_function(name) gives a kernel."""
    module = cupy_here().cuda.function.Module()
    module.load(code)
    return module


def free_device_bytes() -> int:
    """Bytes of memory on the current device that arrays can still take."""
    cp = cupy_here()
    return int(cp.cuda.Device().mem_info[0]) + int(cp.get_default_memory_pool().free_bytes())


@contextmanager
def device_errors(what: str, smaller: str) -> Iterator[None]:
    """A context that turns any error of cupy into a DeviceError of one sentence.

    what: the work done on the GPU. smaller: what would need less memory.
    """
    try:
        yield
    except Exception as error:
        if type(error).__module__.partition(".")[0] not in ("cupy", "cupy_backends"):
            raise
        message = " ".join(str(error).split()).rstrip(".")
        if isinstance(error, MemoryError) or "out of memory" in message.lower():  # a kernel takes some too
            raise DeviceError(f"the GPU has no memory left for {what}: {message}{_memory_text()}; take {smaller}") from error
        advice = DISPLAY if "launchtimeout" in message.replace("_", "").lower() else LOST
        raise DeviceError(f"{what} failed on the GPU: {message}; {advice}") from error


def _memory_text() -> str:
    """Free and total memory of the current device, as part of a sentence; empty where the device does not answer."""
    try:
        free, total = cupy_here().cuda.Device().mem_info
    except Exception:  # the device may be lost
        return ""
    return f"; {free / 1e9:.3g} of its {total / 1e9:.3g} GB are free"


def multiprocessors() -> int:
    """The number of multiprocessors of the current device."""
    return int(cupy_here().cuda.Device().attributes["MultiProcessorCount"])

"""cupy, asked for by whoever computes on a GPU, and one sentence where it or a GPU is missing."""

import ctypes
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache, partial
from types import ModuleType
from typing import Any

import numpy as np

from odesim.base.backends import TRAINING, find_backend
from odesim.errors import CodegenError, DeviceError

DISPLAY = "a GPU that also drives a display ends what runs for seconds: choose another one with CUDA_VISIBLE_DEVICES"
LOST = "this process can use the GPU no more; try again in a new one, and please report it where it fails again"


@cache
def cuda_driver() -> int | None:
    """The newest CUDA that the driver speaks, as 12040 for 12.4; None where there is no driver."""
    for name in ("libcuda.so.1", "nvcuda.dll"):
        try:
            library = ctypes.CDLL(name)
        except OSError:
            continue
        found = ctypes.c_int(0)
        if library.cuDriverGetVersion(ctypes.byref(found)) == 0 and found.value:
            return found.value
    return None


def install() -> str:
    """What to install: the extra for the driver that is here, or where there is none the newest, and a word about the other."""
    driver = cuda_driver()
    if driver is None:
        return "pip install 'odesim[cuda13]', or [cuda12] with an older driver"
    found = "pip install 'odesim[cuda13]'" if driver >= 13000 else "pip install 'odesim[cuda12]'"
    return found if driver >= 12000 else f"{found}, and a newer driver"


def cupy_here() -> Any:
    """The module cupy with a device to compute on. Raises CodegenError with what is missing."""
    try:
        import cupy
    except ImportError:
        raise CodegenError(f"the backend cuda needs cupy, which is not installed: {install()}") from None
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise CodegenError(f"the backend cuda needs an NVIDIA GPU and its driver: {error}; odesim doctor says what is here") from None
    if not count:
        raise CodegenError("the backend cuda needs an NVIDIA GPU, and there is none here; the other backends need none")
    return cupy


def array_module(backend: str) -> ModuleType:
    """numpy, or cupy with a device, by the backend of a training. Raises ParamError for another name, CodegenError with what is missing."""
    found: ModuleType = cupy_here() if find_backend(backend, TRAINING).gpu else np
    return found


def device_name() -> str:
    """What the maker calls the current device."""
    name: bytes = cupy_here().cuda.runtime.getDeviceProperties(current_device())["name"]
    return name.decode()


def current_device() -> int:
    """The number of the device that cupy computes on in this thread."""
    return int(cupy_here().cuda.runtime.getDevice())


def first_device() -> AbstractContextManager[Any]:
    """A context in which the first device is the current one."""
    context: AbstractContextManager[Any] = cupy_here().cuda.Device(0)
    return context


def device_here() -> Callable[[], AbstractContextManager[Any]]:
    """What makes contexts in which the device that is now the current one is so again."""
    return partial(cupy_here().cuda.Device, current_device())


def architecture(device: int | None = None) -> str:
    """sm_90 for a device of compute capability 9.0; None: the current one."""
    return f"sm_{cupy_here().cuda.Device(current_device() if device is None else device).compute_capability}"


def device_count() -> int:
    """How many GPUs there are. Raises CodegenError without one."""
    return int(cupy_here().cuda.runtime.getDeviceCount())


def compute_module(code: bytes) -> Any:
    """Machine code loaded onto the current device; get_function(name) gives a kernel."""
    module = cupy_here().cuda.function.Module()
    module.load(code)
    return module


def free_bytes() -> int:
    """Bytes that arrays could still take of the current device."""
    cp = cupy_here()
    return int(cp.cuda.Device().mem_info[0]) + int(cp.get_default_memory_pool().free_bytes())


@contextmanager
def device_errors(what: str, smaller: str) -> Iterator[None]:
    """Whatever cupy raises within it becomes a DeviceError of one sentence. what: that runs there; smaller: what would need less memory."""
    try:
        yield
    except Exception as error:
        if type(error).__module__.partition(".")[0] not in ("cupy", "cupy_backends"):
            raise
        said = " ".join(str(error).split()).rstrip(".")
        if isinstance(error, MemoryError) or "out of memory" in said.lower():  # a kernel takes some too
            raise DeviceError(f"the GPU has no memory left for {what}: {said}{_memory()}; take {smaller}") from error
        advice = DISPLAY if "launchtimeout" in said.replace("_", "").lower() else LOST
        raise DeviceError(f"{what} failed on the GPU: {said}; {advice}") from error


def _memory() -> str:
    """What the current device has, as words of a sentence; none where it does not answer."""
    try:
        free, total = cupy_here().cuda.Device().mem_info
    except Exception:  # the device may be lost
        return ""
    return f"; {free / 1e9:.3g} of its {total / 1e9:.3g} GB are free"


def multiprocessors() -> int:
    """How many the current device has."""
    return int(cupy_here().cuda.Device().attributes["MultiProcessorCount"])

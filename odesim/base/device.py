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
from odesim.base.errors import CodegenError, DeviceError, ParamError, counted

LIMIT = Path("/sys/fs/cgroup/memory.max")  # of a container: it may be less than the machine has
STATUS = Path("/proc/meminfo")
SMALL = 1 << 26  # bytes; less than this is not checked, because the check takes longer than a short run


def check_saves_fit(rows: int, entries: int, width: int) -> None:
    """Raises ParamError where `rows` saved times, of `entries` numbers with `width` bytes each, do not fit in memory."""
    if (need := rows * (entries * width + 8)) > SMALL:
        check_memory(need, f"{counted(rows, 'saved time')} of {counted(entries, 'number')}")


def check_fits(what: str, parts: Mapping[str, int], width: int) -> None:
    """Raises ParamError where parts that are in memory at the same time do not fit.

    what: the subject of the message. parts: {a phrase: count of numbers}. width: bytes of a number.
    """
    if (need := width * sum(parts.values())) > SMALL:
        check_memory(need, what, f"most of it for {max(parts, key=lambda name: parts[name], default='')}, ")


def check_memory(need: int, what: str, where: str = "") -> None:
    """Raises ParamError where so many bytes are not free. what: the subject of the message; where: most of them go."""
    free = free_bytes()
    if free is not None and need > free:
        raise ParamError(f"{what} would take {need / 1e9:.3g} GB, {where}more than the {free / 1e9:.3g} GB that are free")


def free_bytes() -> int | None:
    """Bytes of memory that this process can still take; None where the system does not say."""
    limits = []
    with suppress(OSError, ValueError):
        limits += [1024 * int(line.split()[1]) for line in STATUS.read_text().splitlines() if line.startswith("MemAvailable:")]
    with suppress(OSError, ValueError):  # no such file, or `max`
        limits.append(int(LIMIT.read_text()))
    if not limits and hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return min(limits, default=None)


LARGE = 1000
"""States from which a factorisation, some 20 ms, is worth a second thread."""

TILED, TURNED = 4_000_000, 40_000
"""Multiplications of a matrix product up to which our own tiles take less time than BLAS; and where the first matrix is turned."""


@cache
def gemm_address(dtype: str) -> int:
    """The address of BLAS's dgemm (float64) or sgemm (float32), as C functions whose arguments are pointers."""
    from scipy.linalg import cython_blas

    capsule = cython_blas.__pyx_capi__["dgemm" if dtype == "float64" else "sgemm"]
    name, pointer = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return int(pointer(capsule, name(capsule)))


@cache
def _controller() -> Any:
    """The controller of the loaded BLAS libraries; finding them takes a millisecond."""
    import scipy.linalg.lapack  # noqa: F401  has a BLAS of its own, which must be there to be found
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def one_blas_thread() -> AbstractContextManager[Any]:
    """A context with one BLAS thread.

    The threads of a BLAS spin while they wait for the next call. On a busy machine a run of 300 states took 30 times the CPU time. And
    products by one thread have the same bits whatever the number of processors.
    """
    return _controller().limit(limits=1, user_api="blas")


def few_blas_threads(n: int) -> AbstractContextManager[Any]:
    """A context with one BLAS thread, for systems of fewer than LARGE states."""
    return one_blas_thread() if n < LARGE else nullcontext()


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
    return cupy_here() if find_backend(backend, TRAINING).gpu else np


def device_name() -> str:
    """The product name of the current device."""
    name: bytes = cupy_here().cuda.runtime.getDeviceProperties(current_device())["name"]
    return name.decode()


def current_device() -> int:
    """The number of the device that cupy computes on in this thread."""
    return int(cupy_here().cuda.runtime.getDevice())


def first_device() -> AbstractContextManager[Any]:
    """A context in which the first device is the current one."""
    return cupy_here().cuda.Device(0)


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

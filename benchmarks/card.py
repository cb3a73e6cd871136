"""The GPU of a benchmark: its properties, its peak rate, and timing of kernels.

python benchmarks/card.py prints what is here, as `odesim doctor` does where its packages are.
"""

import importlib
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from measuring import versions

from odesim import __version__
from odesim.base.device import architecture, cupy_here, current_device, device_name, multiprocessors
from odesim.targets.cuda_system import CudaRHS
from odesim.targets.nvrtc import compiler_version

# fused multiply-adds of float64 that a multiprocessor starts in a cycle, by architecture (CUDA programming guide, throughput table)
DOUBLES = {"sm_60": 32, "sm_70": 32, "sm_75": 2, "sm_80": 32, "sm_86": 2, "sm_89": 2, "sm_90": 64, "sm_100": 64, "sm_120": 2}


def device_facts() -> dict[str, str]:
    """Device, architecture, driver, multiprocessors, memory, versions of what compiles."""
    cp = cupy_here()
    about, driver = cp.cuda.runtime.getDeviceProperties(0), cp.cuda.runtime.driverGetVersion()
    return {
        "odesim": __version__,
        "device": f"{device_name()}, {architecture()}, {multiprocessors()} multiprocessors at up to {clock_rate() / 1e9:.2f} GHz",
        "memory": f"{about['totalGlobalMem'] / 1e9:.1f} GB",
        "driver": f"CUDA {driver // 1000}.{driver % 1000 // 10}",
        "cupy": str(cp.__version__),
        "NVRTC": ".".join(map(str, compiler_version())),
    }


def clock_rate() -> float:
    """The highest clock rate of the multiprocessors in 1/s; 0 if it is not known."""
    return 1e3 * float(cupy_here().cuda.Device().attributes.get("ClockRate", 0))


def peak_rate() -> float | None:
    """Operations per second in float64 at the highest clock rate; None if that or the architecture is not known."""
    return 2 * DOUBLES.get(architecture(), 0) * multiprocessors() * clock_rate() or None


class TimedKernel:
    """A kernel whose launches are timed by events on the device."""

    def __init__(self, kernel: Any) -> None:
        self.kernel, self.events = kernel, list[tuple[Any, Any]]()

    def __call__(self, *given: Any, **options: Any) -> None:
        event = cupy_here().cuda.Event
        begun, ended = event(), event()
        begun.record()
        self.kernel(*given, **options)
        ended.record()
        self.events.append((begun, ended))

    def taken(self) -> float:
        """Seconds of all launches since the last call."""
        events, self.events = self.events, []
        for _, ended in events:
            ended.synchronize()
        return 1e-3 * sum(cupy_here().cuda.get_elapsed_time(*pair) for pair in events)


def time_kernel(right: CudaRHS) -> TimedKernel:
    """The kernel of a right-hand side where one tolerance is that of all states: from now on its launches are timed."""
    kernel = right.kernel(False)
    if not isinstance(kernel, TimedKernel):
        kernel = right.kernels[current_device(), False] = TimedKernel(kernel)  # where the method keeps it
    return kernel


def copy_bandwidth(most: int = 1 << 32, rounds: int = 10) -> float:
    """Bytes per second, read and written, of a copy between arrays."""
    cp = cupy_here()
    size = min(most, cp.cuda.runtime.memGetInfo()[0] // 4) // 8
    source, target = cp.zeros(size), cp.zeros(size)

    def copy() -> None:
        target[...] = source

    copy()
    timed, found = TimedKernel(copy), []
    for _ in range(rounds):
        timed()
        found.append(timed.taken())
    return 16 * size / float(np.median(found))


def wall_seconds(run: Callable[[], Any], rounds: int) -> float:
    """Wall seconds of a call, the median of `rounds` calls."""
    found = []
    for _ in range(rounds):
        begun = time.perf_counter()
        run()
        found.append(time.perf_counter() - begun)
    return float(np.median(found))


def free_all() -> None:
    """Frees the device memory that cupy caches."""
    cupy_here().get_default_memory_pool().free_all_blocks()


def main() -> None:
    """Prints versions, packages that cannot be imported, and the device."""
    for name, found in versions(("numpy", "scipy", "sympy", "numba", "llvmlite", "cupy-cuda13x", "cupy-cuda12x", "jax", "torch")).items():
        print(f"{name}: {found}")
    for name in ("numba", "cupy", "pytest", "xarray", "zarr", "diffrax", "torchdiffeq"):
        try:
            importlib.import_module(name)
        except Exception as e:
            print(f"{name} cannot be imported: {type(e).__name__}: {str(e)[:200]}")
    for name, found in device_facts().items():
        print(f"{name}: {found}")


if __name__ == "__main__":
    main()

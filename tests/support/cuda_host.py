"""CUDA kernels built for this CPU, and the few calls of cupy that odesim makes, on numpy's memory."""

import ctypes
import hashlib
import os
import re
import subprocess
import threading
import time
import types
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from odesim.targets.cache import cache_dir
from tests.support.cupy_arrays import OnDevice, failure, inner

HEADER = Path(__file__).with_name("odesim_host.h")
KERNEL = re.compile(r'extern "C" __global__ void (?:__launch_bounds__\([\d, ]+\) )?(\w+)\(([^)]*)\)')
WAITS = ("__syncthreads", "__syncwarp", "__shfl")


def build(text: str, strict: bool) -> ctypes.CDLL:
    """The library of a CUDA text: launch_NAME(grid x, grid y, threads, arguments) for each kernel; strict: nothing is contracted."""
    fibers = any(word in text for word in WAITS)
    launchers = []
    for name, given in KERNEL.findall(text):
        words = ", ".join(part.split()[-1].lstrip("*") for part in given.split(","))
        head = f'extern "C" void launch_{name}(unsigned grid_x, unsigned grid_y, unsigned threads, {given})'
        launchers.append(f"{head} {{ odesim_launch({{grid_x, grid_y, 1}}, {{threads, 1, 1}}, [=] {{ {name}({words}); }}); }}")
    source = "\n".join([text, *launchers])
    # compiling takes longer than what it would save; without it nothing is contracted
    fast = ["-ffp-contract=off", "-O0"] if strict else ["-ffp-contract=fast", "-O1"]
    # NVRTC reads C++17; there cmath brings special functions, which cost a quarter of the time of a kernel
    options = ["-std=c++14", *fast, "-march=native", "-shared", "-fPIC", "-DODESIM_HOST"]
    options += ["-DODESIM_FIBERS"] if fibers else []
    key = hashlib.sha256("\0".join([source, HEADER.read_text(), *options]).encode()).hexdigest()[:16]
    folder = cache_dir() / "host"
    folder.mkdir(parents=True, exist_ok=True)
    library = folder / f"kernel_{key}.so"
    if not library.exists():
        place = folder / f"kernel_{key}.cu"
        place.write_text(source)
        unfinished = library.with_suffix(f".{os.getpid()}.tmp")  # another process may build the same
        subprocess.run(["g++", "-x", "c++", *options, "-I", str(HEADER.parent), "-o", str(unfinished), str(place)], check=True)
        unfinished.rename(library)
    return ctypes.CDLL(str(library))


def make_cupy(
    strict: bool = True,
    room: float = float("inf"),
    multiprocessors: int = 1,
    devices: int = 1,
    free: float = 1e12,
    fails: str = "",
    later: bool = False,
) -> types.ModuleType:
    """A module with what odesim calls of cupy; what its Module loads is a CUDA text.

    room: bytes that one array may have; devices: GPUs; free: bytes that the first one says it has; fails: what waiting for a launch
    says; later: a launch runs beside the thread that asks for it. Its lists: launches (kernel, blocks, threads), fetched (shapes that
    were copied out), used (numbers of devices that a kernel was launched on).
    """
    cupy = types.ModuleType("cupy")
    cupy.launches, cupy.fetched, cupy.used = [], [], set()  # type: ignore[attr-defined]
    cupy.__version__ = "14.2.0"  # type: ignore[attr-defined]
    current = threading.local()
    lock = threading.Lock()

    CUDARuntimeError, OutOfMemoryError = failure("CUDARuntimeError"), failure("OutOfMemoryError", MemoryError)
    under_way: list[threading.Thread] = []

    def device() -> int:
        return getattr(current, "id", 0)

    def held(array: Any) -> OnDevice:
        if array.nbytes > room:
            raise OutOfMemoryError(f"Out of memory allocating {array.nbytes:,} bytes (allocated so far: 0 bytes).")
        return Waited(array)

    def wait() -> None:
        for thread in under_way:
            thread.join()
        under_way.clear()
        if fails and cupy.launches:  # type: ignore[attr-defined]
            raise CUDARuntimeError(fails)

    class Waited(OnDevice):
        """What is read of a device is read when the launches before are done."""

        def get(self, out: Any = None) -> Any:
            wait()
            cupy.fetched.append(self.shape)  # type: ignore[attr-defined]
            return super().get(out)

    class Device:
        attributes: ClassVar = {"MultiProcessorCount": multiprocessors, "ClockRate": 1_000_000}
        mem_info = (int(free), 2 * 10**12)

        def __init__(self, number: int | None = None) -> None:
            self.id, self.before = device() if number is None else number, list[int]()
            self.compute_capability = "80" if self.id else "90"

        def __enter__(self) -> "Device":
            self.before.append(device())
            current.id = self.id
            return self

        def __exit__(self, *about: object) -> None:
            current.id = self.before.pop()

        def synchronize(self) -> None:
            wait()

    class Event:
        def __init__(self, block: bool = False, disable_timing: bool = False, interprocess: bool = False) -> None:
            self.ptr, self.at = id(self), 0.0

        def record(self) -> None:
            self.at = time.perf_counter()

        def synchronize(self) -> None:
            wait()

    class Module:
        def load(self, code: bytes) -> None:
            self.library, self.device = build(code.decode(), strict), device()

        def get_function(self, name: str) -> Any:
            function = getattr(self.library, f"launch_{name}")

            def launch(grid: tuple[int, ...], block: tuple[int, ...], arguments: tuple[Any, ...], **options: Any) -> None:
                x, y, *_ = (*grid, 1, 1)
                assert self.device == device(), "a kernel of another device"
                cupy.launches.append((name, x * y, block[0]))  # type: ignore[attr-defined]
                cupy.used.add(device())  # type: ignore[attr-defined]

                def run() -> None:
                    with lock:  # a text has one threadIdx
                        function(*map(ctypes.c_uint, (x, y, block[0])), *map(passed, arguments))

                if later:
                    under_way.append(threading.Thread(target=run))
                    under_way[-1].start()
                else:
                    run()

            return launch

    def passed(value: Any) -> Any:
        if isinstance(value, OnDevice):
            return ctypes.c_void_p(value.data.ptr)
        if isinstance(value, np.floating):
            return ctypes.c_double(float(value))
        return ctypes.c_longlong(int(value))

    for name in ("empty", "zeros", "full", "ascontiguousarray", "arange"):
        setattr(cupy, name, lambda *a, _name=name, **k: held(np.array(getattr(np, _name)(*map(inner, a), **k))))
    cupy.asarray = lambda a, dtype=None: held(np.array(a.held if isinstance(a, OnDevice) else a, dtype))  # type: ignore[attr-defined]
    cupy.matmul = lambda a, b, out: np.matmul(inner(a), inner(b), out=inner(out))  # type: ignore[attr-defined]
    cupy.ndarray, cupy.float64 = OnDevice, np.float64  # type: ignore[attr-defined]
    pool = types.SimpleNamespace(free_all_blocks=lambda: None, free_bytes=lambda: 0)
    cupy.get_default_memory_pool = lambda: pool  # type: ignore[attr-defined]
    runtime = types.SimpleNamespace(
        getDeviceCount=lambda: devices,
        getDevice=device,
        getDeviceProperties=lambda k: {"name": b"Pretended", "major": 9, "minor": 0, "totalGlobalMem": 1 << 30},
        eventQuery=lambda event: 600 if any(thread.is_alive() for thread in under_way) else 0,
        driverGetVersion=lambda: 13000,
        memGetInfo=lambda: (1 << 30, 1 << 30),
        CUDARuntimeError=CUDARuntimeError,
    )
    memory = types.SimpleNamespace(OutOfMemoryError=OutOfMemoryError)
    cupy.cuda = types.SimpleNamespace(  # type: ignore[attr-defined]
        Device=Device,
        Event=Event,
        get_elapsed_time=lambda start, end: 1e3 * (end.at - start.at),
        alloc_pinned_memory=bytearray,
        runtime=runtime,
        memory=memory,
        function=types.SimpleNamespace(Module=Module),
    )
    return cupy

"""CUDA kernels built for this CPU, and the few calls of cupy that odesim makes, on numpy's memory."""

import ctypes
import hashlib
import re
import subprocess
import threading
import time
import types
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from odesim.codegen.cache import cache_dir

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
    options = ["-std=c++17", "-O1", "-march=native", f"-ffp-contract={'off' if strict else 'fast'}", "-shared", "-fPIC", "-DODESIM_HOST"]
    options += ["-DODESIM_FIBERS"] if fibers else []
    key = hashlib.sha256("\0".join([source, HEADER.read_text(), *options]).encode()).hexdigest()[:16]
    folder = cache_dir() / "host"
    folder.mkdir(parents=True, exist_ok=True)
    library = folder / f"kernel_{key}.so"
    if not library.exists():
        place = folder / f"kernel_{key}.cu"
        place.write_text(source)
        unfinished = library.with_suffix(".tmp")
        subprocess.run(["g++", "-x", "c++", *options, "-I", str(HEADER.parent), "-o", str(unfinished), str(place)], check=True)
        unfinished.rename(library)
    return ctypes.CDLL(str(library))


class Held(np.ndarray):
    """An array on the device that is none: data.ptr is its address, get() copies it out."""

    @property
    def data(self) -> Any:  # type: ignore[override]
        return types.SimpleNamespace(ptr=self.ctypes.data)

    def get(self, out: Any = None) -> Any:
        if out is None:
            return np.array(self)
        assert out.flags.c_contiguous
        assert (out.shape, out.dtype) == (self.shape, self.dtype)
        out[...] = self
        return out


def make_cupy(strict: bool = True, room: float = float("inf"), multiprocessors: int = 1, devices: int = 1) -> types.ModuleType:
    """A module with what odesim calls of cupy; what its Module loads is a CUDA text. room: bytes that one array may have; devices: GPUs."""
    cupy = types.ModuleType("cupy")
    cupy.launches, cupy.__version__ = [], "14.2.0"  # type: ignore[attr-defined]
    lock = threading.Lock()

    class OutOfMemoryError(Exception):
        pass

    class CUDARuntimeError(Exception):
        pass

    def held(array: Any) -> Held:
        if array.nbytes > room:
            raise OutOfMemoryError(f"out of memory allocating {array.nbytes} bytes")
        return array.view(Held)  # type: ignore[no-any-return]

    class Device:
        compute_capability = "90"
        attributes: ClassVar = {"MultiProcessorCount": multiprocessors, "ClockRate": 1_000_000}

        def __init__(self, number: int = 0) -> None:
            self.id = number

        def __enter__(self) -> "Device":
            return self

        def __exit__(self, *about: object) -> None:
            pass

        def synchronize(self) -> None:
            pass

    class Event:
        def __init__(self, block: bool = False, disable_timing: bool = False, interprocess: bool = False) -> None:
            self.ptr, self.at = id(self), 0.0

        def record(self) -> None:
            self.at = time.perf_counter()

        def synchronize(self) -> None:
            pass

    class Module:
        def load(self, code: bytes) -> None:
            self.library = build(code.decode(), strict)

        def get_function(self, name: str) -> Any:
            function = getattr(self.library, f"launch_{name}")

            def launch(grid: tuple[int, ...], block: tuple[int, ...], arguments: tuple[Any, ...], **options: Any) -> None:
                x, y, *_ = (*grid, 1, 1)
                cupy.launches.append((name, x * y, block[0]))  # type: ignore[attr-defined]
                with lock:  # a text has one threadIdx
                    function(*map(ctypes.c_uint, (x, y, block[0])), *map(passed, arguments))

            return launch

    def passed(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return ctypes.c_void_p(value.ctypes.data)
        if isinstance(value, np.floating):
            return ctypes.c_double(float(value))
        return ctypes.c_longlong(int(value))

    for name in ("empty", "zeros", "full", "ascontiguousarray", "arange"):
        setattr(cupy, name, lambda *a, _name=name, **k: held(np.array(getattr(np, _name)(*a, **k))))
    cupy.asarray = lambda a, dtype=None: held(np.array(a, dtype))  # type: ignore[attr-defined]
    cupy.ndarray, cupy.float64 = Held, np.float64  # type: ignore[attr-defined]
    cupy.get_default_memory_pool = lambda: types.SimpleNamespace(free_all_blocks=lambda: None)  # type: ignore[attr-defined]
    runtime = types.SimpleNamespace(
        getDeviceCount=lambda: devices,
        getDevice=lambda: 0,
        getDeviceProperties=lambda k: {"name": b"Pretended", "major": 9, "minor": 0, "totalGlobalMem": 1 << 30},
        eventQuery=lambda event: 0,
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

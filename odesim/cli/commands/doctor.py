"""`odesim doctor`: what odesim finds on this machine."""

import os
import platform
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from odesim.base.backends import BACKENDS
from odesim.base.errors import counted
from odesim.base.run_options import version_of
from odesim.cli.output.tables import echo

CORE = ("numpy", "scipy", "sympy", "numba", "matplotlib", "click", "zarr", "xarray", "platformdirs")
CUPY = ("cupy-cuda12x", "cupy-cuda13x", "cupy")


@click.command("doctor", short_help="Print versions, processor, cache and GPU.")
def doctor_command() -> None:
    """Print what odesim finds here: versions, the processor, the cache of compiled code, a GPU and what it would need."""
    from odesim.cli.output.tables import table

    parts = [f"{part.__name__}\n{table(list(part()))}" for part in (versions, machine, cache, backends, gpu)]
    echo("\n".join(parts))  # nothing where one of them cannot be told


def versions() -> Iterator[tuple[str, str]]:
    """(package, version) of odesim, Python and the packages that odesim needs."""
    from odesim.base.run_options import __version__

    yield "odesim", f"{__version__} in {Path(str(sys.modules['odesim'].__file__)).parent}"
    yield "python", f"{platform.python_version()} ({platform.python_implementation()}) in {sys.prefix}"
    for name in CORE:
        yield name, version_of(name) or f"absent: pip install {name}"


def machine() -> Iterator[tuple[str, str]]:
    """Operating system, processor, cores, memory."""
    yield "system", f"{platform.system()} {platform.release()}, {platform.machine()}"
    yield "processor", processor()
    yield "cores", f"{usable_cores()} of {os.cpu_count()} usable"
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        from odesim.cli.output.tables import bytes_text

        yield "memory", bytes_text(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))


def cache() -> Iterator[tuple[str, str]]:
    """The folder of the cache of compiled code, and its size."""
    from odesim.cli.output.tables import bytes_text
    from odesim.codegen.build.cache import cache_dir, cache_entries, cache_note

    found = cache_entries()
    yield "folder", str(cache_dir())
    yield "size", f"{counted(len(found), 'module')}, {bytes_text(sum(e.size for e in found))}"
    note = cache_note()
    yield "used", f"no: {note}" if note else "yes"


def backends() -> Iterator[tuple[str, str]]:
    """(backend, what it supports): runs, ensembles and trainings, and the types of states."""
    for name, backend in BACKENDS.items():
        uses = "; ".join(f"{use}: {ability.summary}" for use, ability in backend.uses.items())
        yield name, f"{uses}; {', '.join(backend.dtypes)}"


def gpu() -> Iterator[tuple[str, str]]:
    """The CUDA driver, cupy with its devices, and NVRTC, each with what to install where it is missing."""
    from odesim.base.device import cuda_driver, install_command

    driver = cuda_driver()
    yield (
        "driver",
        f"CUDA {driver // 1000}.{driver % 1000 // 10}"
        if driver
        else "absent: there is no NVIDIA driver here, and the numba backend needs none",
    )
    missing = f"absent{':' if driver else '; with an NVIDIA GPU:'} {install_command()}"
    found = {name: compiler_version for name in CUPY if (compiler_version := version_of(name))}
    late = (
        f"; {CUPY[1]} is newer than the driver: {install_command()} in its place" if driver and driver < 13000 and CUPY[1] in found else ""
    )
    yield "cupy", f"{', '.join(map(' '.join, found.items()))}{late}" if found else missing
    yield "nvrtc", compiler(driver) or missing
    yield from devices()


def compiler(driver: int | None) -> str:
    """The version of NVRTC, with a note if the driver may be too old for it; empty if it does not load."""
    from odesim.base.device import install_command
    from odesim.base.errors import CodegenError
    from odesim.codegen.build.nvrtc import compiler_version, too_new

    try:
        found = compiler_version()
    except CodegenError:
        return ""
    said = ".".join(map(str, found))
    return f"{said}, which is newer than the driver, so that kernels may not load: {install_command()}" if too_new(found, driver) else said


def devices() -> Iterator[tuple[str, str]]:
    """(gpu K, name, architecture, memory) of all GPUs that cupy reaches, or the reason why there are none; empty without cupy."""
    from odesim.base.device import architecture
    from odesim.cli.output.tables import bytes_text

    try:
        import cupy

        runtime = cupy.cuda.runtime
        count = runtime.getDeviceCount()
    except ModuleNotFoundError:
        return
    except Exception as error:  # as many kinds as there are ways to install it
        yield "gpu", f"none that cupy reaches: {one_line(error)}"
        return
    if not count:
        yield "gpu", "none that cupy reaches: no device; CUDA_VISIBLE_DEVICES selects the devices"
    for k in range(count):
        try:
            about = runtime.getDeviceProperties(k)
            yield f"gpu {k}", f"{about['name'].decode()}, {architecture(k)}, {bytes_text(about['totalGlobalMem'])}"
        except Exception as error:
            yield f"gpu {k}", f"does not answer: {one_line(error)}"


def one_line(error: Exception) -> str:
    """The message of an error on one line."""
    return " ".join(str(error).split()) or type(error).__name__


def processor() -> str:
    """The processor's name."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def usable_cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

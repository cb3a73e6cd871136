"""Compilation of CUDA C++ by NVRTC, NVIDIA's run-time compiler, which needs no GPU. Machine code is cached by content."""

import ctypes
import hashlib
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from ctypes import POINTER, byref, c_char_p, c_int, c_size_t, c_void_p
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from odesim.base.device import cuda_driver, install_command
from odesim.base.errors import CodegenError
from odesim.targets.cache import read_file, write_file


@dataclass(frozen=True)
class Cubin:
    """Machine code for a GPU, and the compiler's log: registers per thread, bytes on the stack, bytes spilled."""

    code: bytes
    log: str


def options_for(arch: str, strict: bool) -> tuple[str, ...]:
    """The compiler's options for an architecture such as sm_90. strict: no fused multiply-add beyond those in the text."""
    return ("--std=c++17", f"-arch={arch}", "-default-device", f"--fmad={'false' if strict else 'true'}", "--ptxas-options=-v", "-w")


def compile_cubin(text: str, stem: str, options: Sequence[str]) -> Cubin:
    """The machine code of a CUDA text. Raises CodegenError where the compiler is missing or reports an error."""
    parts = [text, *options, ".".join(map(str, compiler_version()))]
    name = f"{stem}_{hashlib.sha256(chr(0).join(parts).encode()).hexdigest()[:16]}"
    code, log = read_file(f"{name}.cubin"), read_file(f"{name}.log")
    if code is None or log is None:
        code, message = _compile(text, name, options)
        log = message.encode()
        write_file(f"{name}.cubin", code)
        write_file(f"{name}.log", log)
    return Cubin(code, log.decode())


@cache
def compiler_version() -> tuple[int, int]:
    """The version (major, minor) of the compiler. Raises CodegenError where it is missing."""
    major, minor = c_int(0), c_int(0)
    _library().nvrtcVersion(byref(major), byref(minor))
    return major.value, minor.value


def _compile(text: str, name: str, options: Sequence[str]) -> tuple[bytes, str]:
    library, program = _library(), c_void_p()
    library.nvrtcCreateProgram(byref(program), text.encode(), f"{name}.cu".encode(), 0, None, None)
    try:
        arguments = (c_char_p * len(options))(*(o.encode() for o in options))
        failed = library.nvrtcCompileProgram(program, len(options), arguments)
        log = _read(library.nvrtcGetProgramLogSize, library.nvrtcGetProgramLog, program).rstrip(b"\0").decode(errors="replace")
        if failed:
            raise CodegenError(f"NVRTC {'.'.join(map(str, compiler_version()))} does not compile {name}: {_first_error(log)}")
        return _read(library.nvrtcGetCUBINSize, library.nvrtcGetCUBIN, program), log
    finally:
        library.nvrtcDestroyProgram(byref(program))


def _read(size_of: Any, get: Any, program: c_void_p) -> bytes:
    size = c_size_t(0)
    size_of(program, byref(size))
    buffer = ctypes.create_string_buffer(size.value)
    get(program, buffer)
    return buffer.raw


def _first_error(log: str) -> str:
    return next((line.strip() for line in log.splitlines() if "error" in line), log.strip()[:200] or "no reason given")


@cache
def _library() -> Any:
    """The library NVRTC, from its wheel or a CUDA installation; one too new for the driver only where there is no other."""
    for path in sorted(_places(), key=lambda path: too_new(_numbers(path), cuda_driver())):
        try:
            library = ctypes.CDLL(path)
        except OSError:
            continue
        library.nvrtcCreateProgram.argtypes = [POINTER(c_void_p), c_char_p, c_char_p, c_int, c_void_p, c_void_p]
        for name in ("nvrtcCompileProgram", "nvrtcGetProgramLogSize", "nvrtcGetProgramLog", "nvrtcGetCUBINSize", "nvrtcGetCUBIN"):
            getattr(library, name).restype = c_int
        library.nvrtcCompileProgram.argtypes = [c_void_p, c_int, c_void_p]
        for name in ("nvrtcGetProgramLogSize", "nvrtcGetCUBINSize"):
            getattr(library, name).argtypes = [c_void_p, POINTER(c_size_t)]
        for name in ("nvrtcGetProgramLog", "nvrtcGetCUBIN"):
            getattr(library, name).argtypes = [c_void_p, c_char_p]
        library.nvrtcDestroyProgram.argtypes = [POINTER(c_void_p)]
        return library
    raise CodegenError(f"NVRTC, which compiles for a GPU, is not installed: {install_command()}")


def _places() -> Iterator[str]:
    """Paths where the library may be: wheels, CUDA's folder, the environment, the loader; in each the newest version first."""
    yield from _newest(path for folder in dict.fromkeys(sys.path) if folder for path in Path(folder, "nvidia").glob("*/lib/libnvrtc.so.*"))
    for root in filter(None, (os.environ.get("CUDA_PATH"), os.environ.get("CUDA_HOME"), "/usr/local/cuda", sys.prefix)):
        yield from _newest(path for lib in ("lib64", "lib") for path in Path(root, lib).glob("libnvrtc.so.*"))
    yield from ("libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so")


def _newest(files: Iterable[Path]) -> list[str]:
    """The libraries among these files, the newest version first."""
    paths = [str(path) for path in files if re.fullmatch(r"libnvrtc\.so(\.\d+)+", path.name)]
    return sorted(paths, key=lambda path: (_numbers(path), path), reverse=True)


def _numbers(path: str) -> tuple[int, ...]:
    """The version numbers in a library's name: (12, 4) of .../libnvrtc.so.12.4; () without numbers."""
    return tuple(map(int, Path(path).name.split(".")[2:]))


def too_new(numbers: tuple[int, ...], driver: int | None) -> bool:
    """Whether code of a compiler of this version is too new for the driver (as of cuda_driver()): its major version is later."""
    return driver is not None and bool(numbers) and numbers[0] > driver // 1000

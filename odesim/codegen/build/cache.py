"""Generated text and its machine code on disk: real files named by their content."""

import ast
import hashlib
import os
import stat
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from odesim.errors import CodegenError

SUFFIXES = (".py", ".o", ".cubin", ".log")  # generated text, machine code, that of a GPU and what its compiler said


@dataclass(frozen=True)
class Entry:
    """One cached module: its name, its file, and the bytes it takes with its machine code."""

    name: str
    path: Path
    size: int


def cache_dir() -> Path:
    """The folder of generated modules: $ODESIM_CACHE_DIR, else the user's cache folder. Not created here."""
    given = os.environ.get("ODESIM_CACHE_DIR")
    if given:
        try:
            return Path(given).expanduser().absolute()
        except RuntimeError:
            raise CodegenError(f"ODESIM_CACHE_DIR is {given!r}, and there is no such user's folder") from None
    try:
        from platformdirs import user_cache_dir
    except ImportError:
        return Path.home() / ".cache" / "odesim"
    return Path(user_cache_dir("odesim", appauthor=False))


def module_name(text: str, stem: str) -> str:
    """stem_ and 16 hex digits: the sha256 of the text, the processor, the versions of Python, numba and llvmlite, and of our builder."""
    import llvmlite.binding as llvm

    machine = f"{llvm.get_host_cpu_name()} {llvm.get_host_cpu_features().flatten()}"
    parts = [text, machine, str(sys.implementation.cache_tag), _version("numba"), _version("llvmlite"), _builder()]
    return f"{stem}_{hashlib.sha256(chr(0).join(parts).encode()).hexdigest()[:16]}"


@cache
def _builder() -> str:
    """The source of what makes machine code: a change of it makes new code."""
    return source_of("odesim.codegen.build.native")


def load_module(text: str, stem: str) -> ModuleType:
    """The module of this text, imported from the file <module_name>.py, so that numba can keep its machine code beside it."""
    name = module_name(text, stem)
    if name in sys.modules:
        return sys.modules[name]
    path = write_file(f"{name}.py", text.encode())
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise CodegenError(f"cannot import {path}")
    module = module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def sources_text(modules: Sequence[str]) -> str:
    """One text made of the source files of these modules (dotted names), one after another, without their imports from odesim.

    The names of a file name its whole content: no edit of a helper goes unnoticed.
    """
    return "\n\n".join(["from __future__ import annotations", *map(_own_text, modules)]) + "\n"


def entries() -> tuple[Entry, ...]:
    """What the cache holds, by name: its folder, and the temporary one that stands in where that cannot be written."""
    found = {(p.stem, folder) for folder in _all_folders() for p in _listed(folder) if p.suffix in SUFFIXES and _is_ours(p.stem)}
    return tuple(Entry(n, folder / f"{n}.py", sum(f.stat().st_size for f in _files(n, folder))) for n, folder in sorted(found))


def used_folder() -> tuple[Path | None, str]:
    """The folder that compiled code is kept in (None: nowhere), and why it is not cache_dir(), where it is not."""
    reasons: list[str] = []
    for folder in _folders():
        reason = _untrusted(folder) or _unwritable(folder)
        if not reason:
            return folder, "; ".join(reasons)
        reasons.append(f"{folder} {reason}")
    return None, "; ".join(reasons)


def clear() -> int:
    """Bytes freed by removing every entry; other files in the folder stay."""
    freed = 0
    for entry in entries():
        for path in _files(entry.name, entry.path.parent):
            try:
                freed += path.stat().st_size
                path.unlink()
            except FileNotFoundError:  # somebody else was faster
                continue
            except OSError as error:
                raise CodegenError(f"cannot remove {path}: {error.strerror}") from None
    return freed


def read_file(filename: str) -> bytes | None:
    """The content of a file of the cache; None where there is none."""
    for folder in _folders():
        try:
            if _untrusted(folder):
                continue  # machine code from a folder that others write to is theirs
            return (folder / filename).read_bytes()
        except OSError:
            continue
    return None


def write_file(filename: str, content: bytes) -> Path:
    """The file with this content, written at once or left as it is: numba drops its machine code when a file's time changes.

    A temporary folder where the cache cannot be written. Raises CodegenError where that cannot be either.
    """
    for folder in _folders():
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if os.access(folder, os.W_OK) and not _untrusted(folder):
                _write_once(folder / filename, content)
                return folder / filename
        except OSError:
            continue
    raise CodegenError(f"cannot write generated code: neither {cache_dir()} nor {tempfile.gettempdir()} is writable")


def _folders() -> Iterator[Path]:
    yield cache_dir()
    yield Path(tempfile.gettempdir()) / f"odesim-{os.getuid() if hasattr(os, 'getuid') else 'user'}"


def _write_once(path: Path, content: bytes) -> None:
    if path.exists() and path.read_bytes() == content:
        return
    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _untrusted(folder: Path) -> str:
    """Why other users could put code into this folder; empty where they cannot, or it is not there yet."""
    try:
        info, link = folder.stat(), folder.lstat()
    except FileNotFoundError:
        return ""
    except (OSError, ValueError) as error:
        return f"cannot be read ({getattr(error, 'strerror', None) or error})"
    if not stat.S_ISDIR(info.st_mode):
        return "is not a folder"
    if not hasattr(os, "getuid"):
        return ""
    if info.st_uid != os.getuid() or link.st_uid not in (os.getuid(), 0):
        return "belongs to another user" if info.st_uid != os.getuid() else "is a link of another user"
    return "can be written by other users (chmod go-w mends that)" if info.st_mode & 0o022 else ""


def _unwritable(folder: Path) -> str:
    """Why nothing can be written into this folder, or the one it would be made in; empty where it can."""
    place = folder
    while not os.path.lexists(place) and place != place.parent:
        place = place.parent
    if not os.path.isdir(place):
        return f"cannot be made: {place} is not a folder"
    return "" if os.access(place, os.W_OK | os.X_OK) else "cannot be written"


def _listed(folder: Path) -> list[Path]:
    """What is in a folder; nothing where that cannot be seen."""
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _is_ours(name: str) -> bool:
    key = name.rpartition("_")[2]
    return len(key) == 16 and all(c in "0123456789abcdef" for c in key)


def _all_folders() -> list[Path]:
    """The cache, and the temporary folder where it is there and nobody else's."""
    first, second = _folders()
    ours = os.path.isdir(second) and not _untrusted(second)
    return [first, second] if ours and second != first else [first]


def _files(name: str, folder: Path) -> list[Path]:
    own = (folder / f"{name}{suffix}" for suffix in SUFFIXES)
    return sorted([*(path for path in own if path.exists()), *(folder / "__pycache__").glob(f"{name}.*")])


def _version(package: str) -> str:
    """What tells one release of an installed package from another, without importing it."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise CodegenError(f"{package} is not installed")
    return Path(spec.origin).with_name("_version.py").read_text(encoding="utf-8")


def source_of(module: str) -> str:
    """The source of a module of odesim by its dotted name, read and not imported."""
    package, *rest = module.split(".")
    home = find_spec(package)
    if home is None or not home.submodule_search_locations:
        raise CodegenError(f"no source of {module}")
    return Path(home.submodule_search_locations[0]).joinpath(*rest).with_suffix(".py").read_text(encoding="utf-8")


def _own_text(module: str) -> str:
    """The module's text without its imports from odesim: those names stand in the same file."""
    text = source_of(module)
    lines = text.splitlines()
    for node in ast.parse(text).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in ("odesim", "__future__"):
            for number in range(node.lineno - 1, node.end_lineno or node.lineno):
                lines[number] = ""
    return f"# {module}\n" + "\n".join(lines).strip("\n")

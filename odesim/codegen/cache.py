"""Modules of generated text on disk: a real file named by its content, so that numba can keep machine code beside it."""

import ast
import hashlib
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from odesim.errors import CodegenError


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
        return Path(given).expanduser().absolute()
    try:
        from platformdirs import user_cache_dir
    except ImportError:
        return Path.home() / ".cache" / "odesim"
    return Path(user_cache_dir("odesim", appauthor=False))


def load_module(text: str, stem: str) -> ModuleType:
    """The module of this text, imported from the file stem_<key>.py; key: 16 hex digits.

    The key is the sha256 of the text, the processor, and the versions of Python and numba.
    """
    name = f"{stem}_{_key(text)}"
    if name in sys.modules:
        return sys.modules[name]
    path = _stored(text, f"{name}.py")
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


def load_sources(modules: Sequence[str], stem: str) -> ModuleType:
    """One module made of the source files of these modules (dotted names), one after another.

    numba's own key covers one file: with every helper in it, no edit goes unnoticed.
    """
    return load_module("\n\n".join(["from __future__ import annotations", *map(_own_text, modules)]) + "\n", stem)


def entries() -> tuple[Entry, ...]:
    """What the cache holds, by name."""
    found = sorted(cache_dir().glob("*.py"))
    return tuple(Entry(p.stem, p, sum(f.stat().st_size for f in [p, *_machine_code(p)])) for p in found if _is_ours(p))


def clear() -> int:
    """Bytes freed by removing every entry; other files in the folder stay."""
    freed = 0
    for entry in entries():
        for path in [*_machine_code(entry.path), entry.path]:
            path.unlink(missing_ok=True)
        freed += entry.size
    return freed


def _key(text: str) -> str:
    import llvmlite.binding as llvm
    import numba

    machine = f"{llvm.get_host_cpu_name()} {llvm.get_host_cpu_features().flatten()}"
    versions = f"{sys.implementation.cache_tag} numba {numba.__version__}"
    return hashlib.sha256("\0".join([text, machine, versions]).encode()).hexdigest()[:16]


def _own_text(module: str) -> str:
    """The module's text without its imports from odesim: those names stand in the same file."""
    root = Path(__file__).parents[1]
    text = root.joinpath(*module.split(".")[1:]).with_suffix(".py").read_text(encoding="utf-8")
    lines = text.splitlines()
    for node in ast.parse(text).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in ("odesim", "__future__"):
            for number in range(node.lineno - 1, node.end_lineno or node.lineno):
                lines[number] = ""
    return f"# {module}\n" + "\n".join(lines).strip("\n")


def _stored(text: str, filename: str) -> Path:
    """The file of this text, written where there is none; a temporary folder where the cache cannot be written."""
    for folder in (cache_dir(), Path(tempfile.gettempdir()) / f"odesim-{_user()}", None):
        try:
            place = Path(tempfile.mkdtemp(prefix="odesim-")) if folder is None else folder
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
            if folder is not None and not _is_private(place):
                continue
            _write_once(place / filename, text)
        except OSError:
            continue
        return place / filename
    raise CodegenError(f"cannot write generated code: neither {cache_dir()} nor {tempfile.gettempdir()} is writable")


def _write_once(path: Path, text: str) -> None:
    """Leaves a whole file where it is: numba drops its machine code when the time of the file changes."""
    if path.exists() and path.read_text(encoding="utf-8") == text:
        if not os.access(path.parent, os.W_OK):
            raise PermissionError(path.parent)
        return
    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _user() -> str:
    return str(os.getuid()) if hasattr(os, "getuid") else "user"


def _is_private(folder: Path) -> bool:
    """Whether no other user can put code into this folder."""
    if not hasattr(os, "getuid"):
        return True
    info = folder.stat()
    return info.st_uid == os.getuid() and not info.st_mode & 0o002


def _is_ours(path: Path) -> bool:
    _, _, key = path.stem.rpartition("_")
    return len(key) == 16 and all(c in "0123456789abcdef" for c in key)


def _machine_code(path: Path) -> list[Path]:
    return sorted((path.parent / "__pycache__").glob(f"{path.stem}.*"))

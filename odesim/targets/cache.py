"""The cache on disk of generated text and its machine code: files named by the hash of their content."""

import ast
import errno
import hashlib
import os
import secrets
import stat
import sys
import tempfile
import warnings
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

from odesim.base.errors import CacheWarning, CodegenError
from odesim.base.parsing import parse

BUILDER = (
    *(f"odesim.targets.{name}" for name in ("native", "front_end", "lowering", "arithmetic")),
    *(f"odesim.runtime.{name}" for name in ("functions", "intrinsics", "kinds")),
)
"""The modules that make machine code of a text."""
SUFFIXES = (".py", ".o", ".cubin", ".log")  # generated text, machine code, machine code of a GPU and the log of its compiler


class UntrustedError(OSError):
    """A file or folder that another user may have written; strerror is the reason."""


@dataclass(frozen=True)
class Entry:
    """One cached module: its name, its file, and its size in bytes with the machine code."""

    name: str
    path: Path
    size: int


def cache_dir() -> Path:
    """The folder of the cache: $ODESIM_CACHE_DIR, else the user's cache folder. It may not exist yet."""
    setting = os.environ.get("ODESIM_CACHE_DIR")
    if setting:
        try:
            return Path(setting).expanduser().absolute()
        except RuntimeError:
            raise CodegenError(f"ODESIM_CACHE_DIR is {setting!r}, and there is no such user's folder") from None
    try:
        from platformdirs import user_cache_dir
    except ImportError:
        return Path.home() / ".cache" / "odesim"
    return Path(user_cache_dir("odesim", appauthor=False))


def module_name(text: str, stem: str) -> str:
    """The name of a cached module: stem_ and 16 hex digits.

    The digits are a sha256 of the text, the processor, the versions of Python, numba and llvmlite, and the source of our builder.
    """
    # all that decides about machine code is in the name: a folder shared by several machines, or kept over an update, never mixes them
    parts = [text, _processor(), str(sys.implementation.cache_tag), _version("numba"), _version("llvmlite"), _builder()]
    return f"{stem}_{hashlib.sha256(chr(0).join(parts).encode()).hexdigest()[:16]}"


@cache
def _processor() -> str:
    """The name and the features of this processor."""
    import llvmlite.binding as llvm

    return f"{llvm.get_host_cpu_name()} {llvm.get_host_cpu_features().flatten()}"


@cache
def _builder() -> str:
    """The sources of the builder of machine code: a change of them gives new names."""
    return "".join(map(source_of, BUILDER))


def load_module(text: str, stem: str) -> ModuleType:
    """The module with this text, which is kept as <module_name>.py in the cache."""
    name = module_name(text, stem)
    if name in sys.modules:
        return sys.modules[name]
    module = ModuleType(name)
    module.__file__ = str(write_file(f"{name}.py", text.encode()) or f"<{name}>")
    sys.modules[name] = module
    try:
        exec(compile(text, module.__file__, "exec"), vars(module))
    except BaseException:
        del sys.modules[name]
        raise
    return module


def sources_text(modules: Sequence[str], plain: Collection[str] = (), decorator: str = "") -> str:
    """The source files of these modules (dotted names) as one text. Of their imports from odesim those from its runtime stay.

    plain: those of them whose functions have no decorator, and get this one. A hash of the text covers all helpers, so that a change of
    any of them is noticed.
    """
    texts = [_inlined_text(module, decorator if module in plain else "") for module in modules]
    return "\n\n".join(["from __future__ import annotations", *texts]) + "\n"


def cache_entries() -> tuple[Entry, ...]:
    """The entries of the cache, sorted by name: in its folder, and in the temporary folder that replaces one without write access."""
    names = {(p.stem, folder) for folder in _all_folders() for p in _files_in(folder) if p.suffix in SUFFIXES and _is_ours(p.stem)}
    return tuple(Entry(n, folder / f"{n}.py", sum(f.stat().st_size for f in _files(n, folder))) for n, folder in sorted(names))


def used_folder() -> tuple[Path | None, str]:
    """The folder in use for compiled code (None: there is none), and the reason where it is not cache_dir()."""
    reasons: list[str] = []
    for folder in _folders():
        reason = _untrusted(folder) or _unwritable(folder)
        if not reason:
            return folder, "; ".join(reasons)
        reasons.append(f"{folder} {reason}")
    return None, "; ".join(reasons)


def cache_note() -> str:
    """Which folder is used, and why, or that none is, with a remedy; empty where it is cache_dir()."""
    folder, reason = used_folder()
    if folder:
        return f"{reason}; {folder} is used in its place" if reason else ""
    return f"{reason}; so what is compiled is not kept, and every run compiles again: ODESIM_CACHE_DIR names another folder"


def clear_cache() -> int:
    """Removes every entry and returns the bytes freed; other files in the folder stay."""
    freed = 0
    for entry in cache_entries():
        for path in _files(entry.name, entry.path.parent):
            try:
                freed += path.stat().st_size
                path.unlink()
            except FileNotFoundError:  # another process was faster
                continue
            except OSError as error:
                raise CodegenError(f"cannot remove {path}: {error.strerror}") from None
    return freed


def read_file(filename: str) -> bytes | None:
    """The content of a file of the cache; None where there is no such file that only this user can have written."""
    for folder in _folders():
        with suppress(OSError), _opened(folder) as (place, descriptor):
            return _content(place / filename, descriptor)
    return None


def write_file(filename: str, content: bytes) -> Path | None:
    """Writes a file into used_folder() and returns its path; a file with this content stays untouched, so that its time does not change.

    Where it cannot be kept, a CacheWarning says why and None is returned: the cache saves time, and no run needs it.
    """
    folder = used_folder()[0]
    if folder:
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with _opened(folder) as (place, descriptor):
                _write_once(place / filename, content, descriptor)
            return folder / filename
        except OSError as error:
            _warn(f"{folder} cannot be written ({error.strerror}); so what is compiled is not kept")
            return None
    _warn(cache_note())
    return None


@cache
def _warn(sentence: str) -> None:
    """Gives a CacheWarning, once a process."""
    warnings.warn(sentence, CacheWarning, stacklevel=3)


def _folders() -> Iterator[Path]:
    yield cache_dir()
    yield Path(tempfile.gettempdir()) / f"odesim-{os.getuid() if hasattr(os, 'getuid') else 'user'}"


@contextmanager
def _opened(folder: Path) -> Iterator[tuple[Path, int | None]]:
    """A folder into which no other user can put code, as (place, descriptor): its files are place / name, opened with dir_fd=descriptor.

    What was checked is what is used: a folder that another user puts there later is not looked at.
    Raises FileNotFoundError where there is no such folder, and UntrustedError where other users could write into it.
    """
    link = os.lstat(folder)
    if stat.S_ISLNK(link.st_mode):  # a link of this user or of root stays what it is; one of another user may change at any time
        if link.st_uid not in (_user(link), 0):
            raise UntrustedError(errno.EPERM, "is a link of another user")
        folder = Path(os.path.realpath(folder))
    if os.open not in os.supports_dir_fd:  # Windows, where a folder of the user is closed to others
        yield folder, None
        return
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except NotADirectoryError:
        raise UntrustedError(errno.ENOTDIR, "is not a folder") from None
    try:
        _check_owner(os.fstat(descriptor))
        yield Path(), descriptor
    finally:
        os.close(descriptor)


def _content(path: Path, descriptor: int | None) -> bytes:
    """The content of a file in an opened folder, which only this user can have written."""
    with open(os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0), dir_fd=descriptor), "rb") as file:
        _check_owner(os.fstat(file.fileno()))
        return file.read()


def _check_owner(info: os.stat_result) -> None:
    """Raises UntrustedError where another user could have written a file or folder."""
    if info.st_uid != _user(info):
        raise UntrustedError(errno.EPERM, "belongs to another user")
    if info.st_mode & 0o022 and hasattr(os, "getuid"):
        raise UntrustedError(errno.EPERM, "can be written by other users (chmod go-w mends that)")


def _user(info: os.stat_result) -> int:
    """The number of this user; without numbers of users that of the file."""
    return os.getuid() if hasattr(os, "getuid") else info.st_uid


def _write_once(path: Path, content: bytes, descriptor: int | None) -> None:
    """Writes a file into an opened folder: whole or not at all, and not where it has this content."""
    # many processes start the same run at once: the file appears whole, and one that is there is not touched, for its time is numba's key
    with suppress(OSError):
        if _content(path, descriptor) == content:
            return
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(8)}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    try:
        with open(os.open(temporary, flags, 0o600, dir_fd=descriptor), "wb") as file:
            file.write(content)
        os.replace(temporary, path, src_dir_fd=descriptor, dst_dir_fd=descriptor)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=descriptor)
        raise


def _untrusted(folder: Path) -> str:
    """The reason why other users could put code into this folder; empty where they cannot, or the folder does not exist yet."""
    try:
        with _opened(folder):
            return ""
    except FileNotFoundError:
        return ""
    except OSError as error:
        return str(error.strerror) if isinstance(error, UntrustedError) else f"cannot be read ({error.strerror})"


def _unwritable(folder: Path) -> str:
    """The reason why a file cannot be written into this folder, or where it is to be created; empty where it can."""
    existing = folder
    while not os.path.lexists(existing) and existing != existing.parent:
        existing = existing.parent
    if not os.path.isdir(existing):
        return f"cannot be made: {existing} is not a folder"
    try:
        with tempfile.TemporaryFile(dir=existing) as file:
            file.write(b"0")
    except OSError as error:
        return f"cannot be written ({error.strerror})"
    return ""


def _files_in(folder: Path) -> list[Path]:
    """The files in a folder; none where it cannot be read."""
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _is_ours(name: str) -> bool:
    key = name.rpartition("_")[2]
    return len(key) == 16 and all(c in "0123456789abcdef" for c in key)


def _all_folders() -> list[Path]:
    """The cache, and the temporary folder where it exists and belongs to this user."""
    first, second = _folders()
    ours = os.path.isdir(second) and not _untrusted(second)
    return [first, second] if ours and second != first else [first]


def _files(name: str, folder: Path) -> list[Path]:
    paths = (folder / f"{name}{suffix}" for suffix in SUFFIXES)
    return sorted([*(path for path in paths if path.exists()), *(folder / "__pycache__").glob(f"{name}.*")])


def _version(package: str) -> str:
    """A text that differs between releases of an installed package, read without importing the package."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise CodegenError(f"{package} is not installed")
    return Path(spec.origin).with_name("_version.py").read_text(encoding="utf-8")


def source_of(module: str) -> str:
    """The source of a module of odesim, by its dotted name, read without importing it."""
    package, *rest = module.split(".")
    home = find_spec(package)
    if home is None or not home.submodule_search_locations:
        raise CodegenError(f"no source of {module}")
    return Path(home.submodule_search_locations[0]).joinpath(*rest).with_suffix(".py").read_text(encoding="utf-8")


@cache
def functions_of(module: str) -> dict[str, str]:
    """The text of each function of a module by its name."""
    text = source_of(module)
    lines = text.splitlines()
    nodes = (node for node in parse(text).body if isinstance(node, ast.FunctionDef))
    return {node.name: "\n".join(lines[node.lineno - 1 : node.end_lineno]) for node in nodes}


def _inlined_text(module: str, decorator: str) -> str:
    """The source of a module without the imports of names that are in the same text, and with a decorator for its functions."""
    lines, inside = list[str](), False
    # its syntax tree says the same, and took 20 of the 400 milliseconds of a process that compiles nothing
    for line in source_of(module).splitlines():
        if inside or (line.startswith("from ") and _is_joined(line.split()[1])):
            inside = (inside or "(" in line) and ")" not in line
            lines.append("")
        else:
            lines.append(f"{decorator}\n{line}" if decorator and line.startswith("def ") else line)
    return f"# {module}\n" + "\n".join(lines).strip("\n")


def _is_joined(module: str) -> bool:
    """Whether an import from a module is left out of a joined text: what it brings is in there, or for readers."""
    package, _, rest = module.partition(".")
    return package == "__future__" or (package == "odesim" and not rest.startswith("runtime"))

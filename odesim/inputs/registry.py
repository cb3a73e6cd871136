"""Models by name, by file, by entry point."""

import importlib
import os
import pkgutil
import sys
import warnings
from functools import lru_cache
from hashlib import sha256
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from odesim.errors import ModelError, ModelWarning, nearest, no_such, value_text
from odesim.inputs.mistakes import param_line, place, sentence

if TYPE_CHECKING:
    from odesim.symbolic import System

GROUP = "odesim.models"
CONSTANT = "SYSTEM"
DIGEST = "__odesim_sha256__"  # in a module made of a model file


def list_models() -> list[str]:
    """The names of all models, sorted: the shipped ones and those of installed packages. Imports none of them."""
    return sorted({*_shipped(), *_entries()})


def load_model(ref: "str | os.PathLike[str] | System") -> "System":
    """The System of a name (`joma.nonlinear`), a path (`my.py`, `my.py:OTHER`), or a System itself.

    A model file is code, and it runs. Raises ModelError.
    """
    return load_original(ref)[0]


def load_original(ref: "str | os.PathLike[str] | System") -> "tuple[System, dict[str, Any]]":
    """The System, as load_model, and what a run stores of where it is from: `ref`, and of a file `model_sha256`, of what was run.

    ref: how another process, in another folder, names the model; None for a System, which it cannot have.
    """
    if isinstance(ref, os.PathLike) or (isinstance(ref, str) and is_path(ref)):
        text = os.fspath(ref)
        module, constant, path = _module(text)
        about = {"ref": str(Path(text).expanduser().absolute()), "model_sha256": getattr(module, DIGEST)}
        return _constant(module, constant, path), about
    if isinstance(ref, str):
        return _from_name(ref), {"ref": ref}
    from odesim.symbolic import System

    if isinstance(ref, System):
        return ref, {"ref": None}
    raise ModelError(f"a model is a name, a path or a System, not {type(ref).__name__} {value_text(ref)}")


def load_same(path: str, digest: str) -> "System":
    """The System of a path (`my.py`, `my.py:OTHER`) to a file with this sha256. Raises ModelError for another one, which is not run."""
    module, constant, name = _module(path, digest)
    return _constant(module, constant, name)


def is_path(ref: str) -> bool:
    """Whether a text names a file, not a model of a package."""
    return "/" in ref or os.sep in ref or ref.endswith(".py") or ".py:" in ref


def _shipped(folder: tuple[str, ...] | None = None, prefix: str = "") -> list[str]:
    """Dotted names of the model files; claims, helpers (_x) and folders are none."""
    if folder is None:
        folder = tuple(importlib.import_module(GROUP).__path__)
    names: list[str] = []
    for info in pkgutil.iter_modules(list(folder)):
        if info.ispkg:
            inner = tuple(os.path.join(path, info.name) for path in folder)
            names += _shipped(inner, f"{prefix}{info.name}.")
        elif prefix and info.name != "claims" and not info.name.startswith("_"):
            names.append(prefix + info.name)
    return names


def _entries() -> dict[str, EntryPoint]:
    return {e.name: e for e in entry_points(group=GROUP)}


@lru_cache(maxsize=64)
def _from_name(name: str) -> "System":
    shipped = _shipped()
    if name in shipped:
        try:
            module = importlib.import_module(f"{GROUP}.{name}")
        except KeyboardInterrupt:
            raise
        except BaseException as e:
            raise ModelError(f"model {name} cannot be used: {_one_line(e)}") from e
        return _constant(module, CONSTANT, f"model {name}")
    entries = _entries()
    if name not in entries:
        text = name if len(name) <= 60 else name[:57] + "..."
        known = {*shipped, *entries}
        raise ModelError(no_such("model", text, known) + ("" if nearest(text, known) else "; a file is written with its .py"))
    try:
        found = entries[name].load()
    except KeyboardInterrupt:
        raise
    except BaseException as e:
        raise ModelError(f"model {name}, from {entries[name].value}, cannot be used: {_one_line(e)}") from e
    where = f"model {name}, from {entries[name].value},"
    return _constant(found, CONSTANT, where) if isinstance(found, ModuleType) else _check(found, where, "entry point")


def _module(ref: str, digest: str = "") -> tuple[ModuleType, str, str]:
    """The file of FILE.py or FILE.py:NAME as a module, the name of the constant, and the file as it was written."""
    path, colon, constant = ref.rpartition(":")
    if not (colon and path.endswith(".py")):
        path, constant = ref, CONSTANT
    if not constant.isidentifier():
        raise ModelError(f"{path}: {constant!r} after the colon is not a plain name; write FILE.py or FILE.py:NAME")
    try:
        full = Path(path).expanduser().resolve()
        stat = full.stat()
    except FileNotFoundError:
        raise ModelError(f"there is no model file {path!r}{_beside(path)}") from None
    except (OSError, ValueError, RuntimeError) as e:
        raise ModelError(f"cannot read model file {path!r}: {getattr(e, 'strerror', None) or e}") from None
    return _from_file(str(full), stat.st_mtime_ns, stat.st_size, digest), constant, path


def _beside(path: str) -> str:
    """The nearest spelling among the Python files of the same folder, where one is near."""
    from difflib import get_close_matches

    folder, name = os.path.split(path)
    try:
        stems = [file.removesuffix(".py") for file in os.listdir(folder or ".") if file.endswith(".py")]
    except (OSError, ValueError):
        return ""
    found = get_close_matches(name.removesuffix(".py"), stems, n=1)
    return f"; did you mean {found[0] + '.py'!r}?" if found else ""


@lru_cache(maxsize=32)
def _from_file(path: str, mtime_ns: int, size: int, digest: str) -> ModuleType:
    """The file as a module, run once for each content that mtime and size tell apart; no bytecode is written beside it.

    digest: the sha256 that the file must have, or it is not run; "" where any will do.
    """
    try:
        text = Path(path).read_bytes()
    except OSError as e:
        raise ModelError(f"cannot read model file {path!r}: {e.strerror}") from None
    found = sha256(text).hexdigest()
    if digest and found != digest:
        raise ModelError(f"{path} is not the file that the run was made from: its sha256 is {found[:12]}..., that one's {digest[:12]}...")
    from odesim.symbolic.elements import patch_sympy_arrays

    name = f"odesim_file_{sha256(f'{path} {mtime_ns} {size}'.encode(errors='surrogateescape')).hexdigest()[:16]}"
    module = ModuleType(name)
    module.__file__ = path
    sys.modules[name] = module  # dataclasses of the file look their module up
    try:
        with patch_sympy_arrays():
            exec(compile(text, path, "exec", dont_inherit=True), module.__dict__)
    except BaseException as e:
        del sys.modules[name]
        if isinstance(e, KeyboardInterrupt):
            raise
        code = text.decode(errors="replace")
        raise ModelError(f"model file {place(e, path, code)}: {sentence(e, path, code, vars(module))}") from e
    _warn_of_unused(module, path, text.decode(errors="replace"))
    setattr(module, DIGEST, found)
    return module


def _warn_of_unused(module: ModuleType, path: str, text: str) -> None:
    """Warns of each parameter that a System of the file declares and nothing uses, with its line."""
    from odesim.symbolic import System
    from odesim.symbolic.check_types import unused_params

    for system in (value for value in vars(module).values() if isinstance(value, System)):
        for name in unused_params(system):
            told = f"{system.name}: parameter {name} is declared, and no equation, initial value, observable or law uses it"
            warnings.warn_explicit(told, ModelWarning, path, param_line(text, name))


def _one_line(e: BaseException) -> str:
    text = e.msg if isinstance(e, SyntaxError) else str(e)
    return f"{type(e).__name__}: {' '.join(text.split())[:300]}".rstrip(": ")


def _constant(module: ModuleType, name: str, where: str) -> "System":
    from odesim.symbolic import System

    have = sorted(k for k, v in vars(module).items() if isinstance(v, System))
    if name not in vars(module):
        listed = f"; its Systems are {', '.join(have)}{nearest(name, have)}" if have else "; it has no System at all"
        raise ModelError(f"{where} has no {name}{listed}")
    return _check(getattr(module, name), where, name)


def _check(found: Any, where: str, name: str) -> "System":
    from odesim.symbolic import System

    if not isinstance(found, System):
        raise ModelError(f"{where}: {name} must be a System, not {type(found).__name__}")
    return found

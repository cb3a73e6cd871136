"""Models found by name, by file or by entry point; on their way to another process, and those of stored runs."""

from __future__ import annotations

import importlib
import json
import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from hashlib import sha256
from importlib.machinery import PathFinder
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from os import PathLike, fspath
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any

from odesim.base.errors import ModelError, ModelWarning, OdesimError, ParamError, StoreError, nearest, no_such, value_text
from odesim.base.parsing import parse, readable
from odesim.inputs.grammar import device_sentence

if TYPE_CHECKING:
    from odesim.symbolic import System

GROUP = "odesim.models"
CONSTANT = "SYSTEM"
MOST_BYTES = 64 << 20  # of a document
DIGEST = "__odesim_sha256__"  # attribute of the module made from a model file


@readable
def list_models() -> list[str]:
    """The names of all models, sorted: shipped ones and those of installed packages. No model is imported.

    Returns
    -------
    list of str
        Each as FAMILY.MODEL.

    Examples
    --------
    >>> "joma.nonlinear" in odesim.list_models()
    True
    """
    return sorted({*_shipped_names(), *_entry_points()})


@readable
def load_model(ref: str | os.PathLike[str] | System) -> System:
    """The System of a name or path; a System is returned as it is.

    Parameters
    ----------
    ref : str, path or System
        `joma.nonlinear`, `joma.joint_exp:SQUARE`, `my.py` or `my.py:OTHER`. A model file is code, and this runs it. `my.json`, a
        document of `to_json`, is read and not run.

    Returns
    -------
    System
        Symbols alone: nothing is compiled.

    Raises
    ------
    ModelError
        Where there is no such model.

    Examples
    --------
    >>> odesim.load_model("joma.nonlinear").params[0].doc
    'where a component comes to rest'
    """
    return load_with_origin(ref)[0]


def load_with_origin(ref: str | os.PathLike[str] | System) -> tuple[System, dict[str, Any]]:
    """(System as of load_model, its origin as a run stores it).

    The origin has `ref`, which names the model from any folder (None for a System), and for a file its `model_sha256`.
    """
    if isinstance(ref, os.PathLike) or (isinstance(ref, str) and is_path(ref)):
        text = os.fspath(ref)
        if text.endswith(".json"):
            system, digest = _of_document(text)
            return system, {"ref": str(Path(text).expanduser().absolute()), "model_sha256": digest}
        module, constant, path = _file_module(text)
        origin = {"ref": str(Path(text).expanduser().absolute()), "model_sha256": getattr(module, DIGEST)}
        return _system_in(module, constant, path), origin
    if isinstance(ref, str):
        return _load_named(ref), {"ref": ref}
    from odesim.symbolic import System

    if isinstance(ref, System):
        return ref, {"ref": None}
    raise ModelError(f"a model is a name, a path or a System, not {type(ref).__name__} {value_text(ref)}")


def load_unchanged_file(path: str, digest: str) -> System:
    """The System of a path (`my.py`, `my.py:OTHER`) to a file with this sha256. Raises ModelError for another file, without running it."""
    if path.endswith(".json"):
        return _of_document(path, digest)[0]
    module, constant, name = _file_module(path, digest)
    return _system_in(module, constant, name)


def load_constant(ref: str, kind: str, default: str, parts: Sequence[str]) -> Any:
    """The constant of FILE.py or FILE.py:NAME, which is run; default: its name without one. parts: attributes that it must have.

    kind: what the file is, for sentences. Raises ModelError.
    """
    try:
        module, constant, path = _file_module(ref, constant=default)
    except ModelError as error:
        raise ModelError(str(error).replace("model file", f"{kind} file", 1)) from error
    fits = [name for name, value in vars(module).items() if all(hasattr(value, part) for part in parts) and not isinstance(value, type)]
    if constant not in vars(module):
        has = f"it has {', '.join(sorted(fits))}{nearest(constant, fits)}" if fits else f"and no other {kind}"
        raise ModelError(f"{path} has no {constant}, {has}")
    if constant not in fits:
        raise ModelError(f"{path}: {constant} must be a {kind}, not {value_text(getattr(module, constant))}")
    return getattr(module, constant)


def is_path(ref: str) -> bool:
    """Whether a text is the path of a file and not the name of a model."""
    return "/" in ref or os.sep in ref or ref.endswith((".py", ".json")) or ".py:" in ref


def summary(name: str, origin: Mapping[str, Any] = MappingProxyType({})) -> str:
    """The first line of source_text(name, origin), without its full stop; empty where it has none."""
    import ast

    with suppress(SyntaxError, ValueError):
        return (ast.get_docstring(parse(source_text(name, origin))) or "").partition("\n")[0].rstrip(".")
    return ""


def source_text(name: str, origin: Mapping[str, Any] = MappingProxyType({})) -> str:
    """The file of a model or shipped family, which is read and not run; empty where it cannot be.

    origin: as load_with_origin returns it, of a model file, which must still have its sha256.
    """
    if is_path(ref := origin.get("ref") or ""):
        with suppress(ModelError, ValueError):
            return "" if ref.endswith(".json") else _content(split_ref(ref)[0], origin.get("model_sha256") or "none")[0].decode()
        return ""
    spec = None
    with suppress(ImportError, ValueError):
        spec = find_spec(f"{GROUP}.{name}")
    if spec is None and (entry := _entry_points().get(name)):
        first, *parts = entry.module.split(".")
        spec = find_spec(first)
        for part in parts if spec else ():  # find_spec would run the package
            spec = spec and PathFinder.find_spec(f"{spec.name}.{part}", spec.submodule_search_locations or [])
    with suppress(OSError, ValueError):
        return Path(spec.origin).read_text(encoding="utf-8") if spec and spec.origin else ""
    return ""


def _shipped_names() -> list[str]:
    """Dotted names of the shipped models: all files of families but claims and helpers (_x)."""
    folders = map(Path, importlib.import_module(GROUP).__path__)
    files = [path.relative_to(folder).with_suffix("") for folder in folders for path in folder.rglob("[!_]*.py")]
    return [".".join(file.parts) for file in files if len(file.parts) > 1 and file.name != "claims"]


def _entry_points() -> dict[str, EntryPoint]:
    return {e.name: e for e in entry_points(group=GROUP)}


@lru_cache(maxsize=64)
def _load_named(ref: str) -> System:
    shipped = _shipped_names()
    name, colon, constant = ref.partition(":")
    load: Callable[[], Any]
    if name in shipped:
        where, load = f"model {name}", partial(importlib.import_module, f"{GROUP}.{name}")
    else:
        entries, colon = _entry_points(), ""
        if ref not in entries:
            raise ModelError(_no_model(ref, {*shipped, *entries}))
        where, load = f"model {ref}, from {entries[ref].value},", entries[ref].load
    try:
        loaded = load()
    except KeyboardInterrupt:
        raise
    except BaseException as e:
        from odesim.inputs.mistakes import one_line

        raise ModelError(f"{where} cannot be used: {one_line(e)}") from e
    if isinstance(loaded, ModuleType):
        return _system_in(loaded, constant if colon else CONSTANT, where)
    return _check_system(loaded, where, "entry point")


def _no_model(name: str, known: set[str]) -> str:
    """A sentence for a name of no model: that of a family, of a file without its .py, of a task, or a misspelled one."""
    TASKS = importlib.import_module("odesim.lab.tasks").TASKS  # tasks stand above models, and only this sentence names them

    if family := sorted(other for other in known if other.startswith(f"{name}.")):
        task = f" (a task too: odesim train {name})" if name in TASKS else ""
        return f"no model {name!r}, which is a family{task}; choose from {', '.join(family)}"
    if name in TASKS:
        return f"no model {name!r}, which is a task: odesim train {name}"
    text = name if len(name) <= 60 else name[:57] + "..."
    if name.isidentifier() and os.path.isfile(f"{name}.py"):
        return f"no model {text!r}; did you mean '{text}.py'?"
    names = {*known, *(other.rpartition(".")[0] for other in known if "." in other)}
    return no_such("model", text, names, lister="odesim list") + ("" if nearest(text, names) else "; a file is written with its .py")


def _file_module(ref: str, digest: str = "", constant: str = CONSTANT) -> tuple[ModuleType, str, str]:
    """(module, name of the constant, path as written) of FILE.py or FILE.py:NAME. constant: its name without one. Raises ModelError."""
    path, name = split_ref(ref)
    constant = constant if name is None else name
    if not constant.isidentifier():
        raise ModelError(f"{path}: {constant!r} after the colon is not a plain name; write FILE.py or FILE.py:NAME")
    full, stat = _path_and_state(path)
    return _run_file(str(full), stat.st_mtime_ns, stat.st_size, digest), constant, path


def _of_document(path: str, digest: str = "") -> tuple[System, str]:
    """(System, sha256) of a document of JSON, which is read and not run; digest: that the file must have. Raises ModelError."""
    from odesim.exchange.systems import system_from_json

    full, stat = _path_and_state(path)
    if stat.st_size > MOST_BYTES:
        raise ModelError(f"{path} is larger than any document of a System, {MOST_BYTES >> 20} MB")
    content, actual = _content(str(full), digest)
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as e:
        raise ModelError(f"{path} is no JSON: {e}") from None
    try:
        return system_from_json(document), actual
    except OdesimError as e:
        raise ModelError(f"{path}: {e}") from e


def _path_and_state(path: str) -> tuple[Path, os.stat_result]:
    """The whole path of a file, and its state. Raises ModelError."""
    try:
        full = Path(path).expanduser().resolve()
        return full, full.stat()
    except FileNotFoundError:
        raise ModelError(f"there is no model file {path!r}{_nearest_file(path)}") from None
    except (OSError, ValueError, RuntimeError) as e:
        raise ModelError(f"cannot read model file {path!r}: {getattr(e, 'strerror', None) or e}") from None


def _content(path: str, digest: str) -> tuple[bytes, str]:
    """The content of a file and its sha256. digest: the one that it must have; "" for any. Raises ModelError."""
    if device := device_sentence(path):
        raise ModelError(device)
    try:
        content = Path(path).read_bytes()
    except OSError as e:
        raise ModelError(f"cannot read model file {path!r}: {e.strerror}") from None
    actual = sha256(content).hexdigest()
    if digest and actual != digest:
        raise ModelError(f"{path} is not the file that the run was made from: its sha256 is {actual[:12]}..., that one's {digest[:12]}...")
    return content, actual


def _nearest_file(path: str) -> str:
    """A hint with the nearest spelling among the Python files of the same folder; empty where none is near."""
    from difflib import get_close_matches

    folder, name = os.path.split(path)
    try:
        stems = [file.removesuffix(".py") for file in os.listdir(folder or ".") if file.endswith(".py")]
    except (OSError, ValueError):
        return ""
    matches = get_close_matches(name.removesuffix(".py"), stems, n=1)
    return f"; did you mean {matches[0] + '.py'!r}?" if matches else ""


# not importlib by name: two files of one name would be one module, bytecode would lie beside a stranger's file, and an edited file would
# not be seen. The key is path, time and size; what a run stores of the file is its sha256, which alone says whether it is the same.
@lru_cache(maxsize=32)
def _run_file(path: str, mtime_ns: int, size: int, digest: str) -> ModuleType:
    """The file as a module. It runs once for each mtime and size, and no bytecode is written beside it.

    digest: the sha256 that the file must have to be run; "" for any. Raises ModelError.
    """
    text, actual = _content(path, digest)
    from odesim.symbolic.indices import patch_sympy_arrays

    name = f"odesim_file_{sha256(f'{path} {mtime_ns} {size}'.encode(errors='surrogateescape')).hexdigest()[:16]}"
    module = ModuleType(name)
    module.__file__ = path
    sys.modules[name] = module  # dataclasses of the file look their module up
    try:
        # what the file prints is no part of a command's output
        with patch_sympy_arrays(), redirect_stdout(sys.stderr):
            exec(compile(text, path, "exec", dont_inherit=True), module.__dict__)
    except BaseException as e:
        del sys.modules[name]
        if isinstance(e, KeyboardInterrupt):
            raise
        # sentences on mistakes need sympy, a quarter of a second that a list of models does not wait for
        from odesim.inputs.mistakes import error_place, error_sentence

        code = text.decode(errors="replace")
        raise ModelError(f"model file {error_place(e, path, code)}: {error_sentence(e, path, code, vars(module))}") from e
    _warn_of_unused(module, path, text.decode(errors="replace"))
    setattr(module, DIGEST, actual)
    return module


def _warn_of_unused(module: ModuleType, path: str, text: str) -> None:
    """Warns of each parameter that a System of the file declares and never uses, with its line."""
    from odesim.inputs.mistakes import param_line
    from odesim.symbolic import System
    from odesim.symbolic.definition import unused_params

    for system in (value for value in vars(module).values() if isinstance(value, System)):
        for name in unused_params(system):
            message = f"{system.name}: parameter {name} is declared, and no equation, initial value, observable or law uses it"
            warnings.warn_explicit(message, ModelWarning, path, param_line(text, name))


def _system_in(module: ModuleType, name: str, where: str) -> System:
    from odesim.symbolic import System

    variants = vars(module).get("VARIANTS", {})  # {name: function}: Systems that are made when they are asked for
    if name in variants:
        return _check_system(variants[name](), where, name)
    systems = sorted([*variants, *(k for k, v in vars(module).items() if isinstance(v, System))])
    if name not in vars(module):
        if not systems:
            raise ModelError(f"{where} has no {name}, and no System at all: `odesim new FILE.py` writes an example")
        hint = f": write {where}:{systems[0]}" if where.endswith(".py") and name == CONSTANT else nearest(name, systems)
        raise ModelError(f"{where} has no {name}; its Systems are {', '.join(systems)}{hint}")
    return _check_system(getattr(module, name), where, name)


def _check_system(value: Any, where: str, name: str) -> System:
    from odesim.symbolic import System

    if not isinstance(value, System):
        raise ModelError(f"{where}: {name} must be a System, not {type(value).__name__}")
    return value


# a System does not pickle where its file defines functions, and a path means nothing on another machine: so the content travels
@dataclass(frozen=True)
class CarriedFile:
    """A model file: path (with :NAME where that was given), content and its sha256."""

    path: str
    content: bytes
    digest: str

    def load(self) -> System:
        """The System: of the file at path if it is there with this sha256, as in a shared folder, else of the content."""
        try:
            return load_unchanged_file(self.path, self.digest)
        except ModelError:
            file, _ = split_ref(self.path)
            with tempfile.TemporaryDirectory(prefix="odesim-") as folder:
                copy = Path(folder) / Path(file).name
                copy.write_bytes(self.content)
                return load_unchanged_file(with_constant(str(copy), self.path), self.digest)


def split_ref(ref: str) -> tuple[str, str | None]:
    """FILE.py and NAME of FILE.py:NAME; FILE.py and None of FILE.py."""
    file, colon, constant = ref.rpartition(":")
    return (file, constant) if colon and file.endswith(".py") else (ref, None)


def with_constant(file: str, ref: str) -> str:
    """The path of a model file, with the constant that the stored path `ref` names where the file's own names none."""
    constant = split_ref(ref)[1]
    return f"{file}:{constant}" if constant and file.endswith(".py") else file


def carried_model(system: System, origin: Mapping[str, Any]) -> System | CarriedFile | None:
    """The form in which a model travels to another process; None for one that is installed everywhere and found by its name.

    origin: as load_with_origin returns it. Raises ModelError if the file is not that of the origin any more.
    """
    ref = origin.get("ref")
    if ref is None:
        return system
    if not is_path(ref):
        return None
    file, _ = split_ref(ref)
    try:
        content = Path(file).expanduser().read_bytes()
    except OSError as error:
        raise ModelError(f"cannot read model file {file!r}: {error.strerror}") from None
    digest = sha256(content).hexdigest()
    if digest != origin["model_sha256"]:
        raise ModelError(f"{file} was changed while it was used: start again")
    return CarriedFile(ref, content, digest)


def stored_model(path: Path, attributes: Mapping[str, Any], model: str | PathLike[str] | None = None) -> System:
    """The System of the run at `path` with these attributes: an installed model by its name, or the model file `model`.

    model: FILE.py or FILE.py:NAME; it is executed only if it has the sha256 that the run stores.
    Raises ParamError, StoreError, ModelError.
    """
    ref, digest = attributes.get("ref"), attributes.get("model_sha256")
    if not isinstance(ref, str):
        raise StoreError(f"{path} is damaged: its attribute 'ref' is {str(ref)[:60]!r}")
    if not is_path(ref):
        if model is not None:
            raise ParamError(f"{path} was made from the installed model {ref}; --model is for a run of a model file")
        return load_model(ref)
    name = f"the model file {ref[:200]!r}"
    if not isinstance(digest, str) or len(digest) != 64:
        raise ParamError(
            f"{path} was made from {name} and does not store its sha256, so that nothing says which file is meant: integrate anew"
        )
    if model is None:
        raise ParamError(f"{path} was made from {name}; a file that a run names is not run: give it with --model FILE.py")
    file = fspath(model)
    if not is_path(file):
        raise ParamError(f"{path} was made from {name}: --model takes that file, not {file[:60]!r}")
    return load_unchanged_file(with_constant(file, ref), digest)

"""Whether a file or a run may be written at a path, asked before anything is computed; and how it gets there whole."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from odesim.errors import StoreError

if TYPE_CHECKING:
    pass

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from odesim.errors import OdesimError

if TYPE_CHECKING:
    pass

import os
import shutil
import tempfile
from uuid import uuid4

from odesim.store.document import read_document

RUN_FORMAT = 1
RUN_MARK = "run_format"
# a run is a folder: with such a name it would be taken for what it is not
FILE_SUFFIXES = frozenset((".csv", ".gif", ".h5", ".jpg", ".json", ".nc", ".npy", ".npz", ".pdf", ".png", ".svg", ".toml", ".txt"))


def group_attributes(path: Path) -> dict[str, Any] | None:
    """The attributes of a zarr v3 group at path; None where there is none."""
    try:
        found = read_document(path / "zarr.json")
    except (OSError, ValueError, StoreError):
        return None
    attributes = found.get("attributes", {}) if found.get("node_type") == "group" else None
    return attributes if isinstance(attributes, dict) else None


def is_run(path: Path) -> bool:
    """Whether path holds a run that odesim wrote."""
    return RUN_MARK in (group_attributes(path) or {})


def check_new_run(path: str | Path, *, overwrite: bool = False) -> Path:
    """path as a place for a new run.

    Raises StoreError where something is there (unless it is a run and overwrite is given) or nothing can be written.
    """
    path = _named_path(path)
    if path.suffix in FILE_SUFFIXES:
        raise StoreError(f"a run is a zarr folder: name it {path.with_suffix('.zarr')}, not {path}")
    check_writable_folder(path.parent, path.name)
    if is_taken(path):
        if not is_run(path):
            raise StoreError(f"{path} is there and is not a run of odesim; give another name")
        if not overwrite:
            raise StoreError(f"{path} is there; give another name or --overwrite")
    return path


def check_new_file(path: str | Path, *, overwrite: bool = False) -> Path:
    """path as a place for a new file. Raises StoreError where that cannot be."""
    path = _named_path(path)
    check_writable_folder(path.parent, path.name)
    if is_taken(path):
        if os.path.isdir(path):
            raise StoreError(f"{path} is a folder, not a file")
        if not overwrite:
            raise StoreError(f"{path} is there; give another name or --overwrite")
        if not os.access(path, os.W_OK):
            raise StoreError(f"no permission to write {path}")
    return path


def check_writable_folder(folder: Path, name: str) -> None:
    """Raises StoreError unless a file can be made in this folder: tried with one that has no name. name: what is to stand there."""
    if not os.path.isdir(folder):
        raise StoreError(f"{folder} is not a folder" if os.path.exists(folder) else f"no folder {str(folder)!r} to write {name!r} into")
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except PermissionError:
        raise StoreError(f"no permission to write {name!r} into {str(folder)!r}") from None
    except OSError as error:
        raise StoreError(f"cannot write in {folder}: {error.strerror}") from None


def temporary_path(path: Path) -> Path:
    """A new hidden name beside path, on the same disk: what is written there can be renamed to path at once."""
    return path.with_name(f".{path.name}.{uuid4().hex[:8]}.partial")


def free_path(path: Path) -> Path:
    """The first name of x.1.zarr, x.2.zarr, ... that is free beside x.zarr."""
    number = 1
    while (found := path.with_name(f"{path.stem}.{number}{path.suffix}")).exists():
        number += 1
    return found


def publish(work: Path, path: Path) -> None:
    """Renames work to path; what was at path goes only when that is done."""
    path = Path(os.path.realpath(path))
    if not path.exists():
        work.rename(path)
        return
    old = temporary_path(path)
    path.rename(old)
    try:
        work.rename(path)
    except BaseException:
        old.rename(path)
        raise
    if old.is_dir():
        shutil.rmtree(old, ignore_errors=True)
    else:
        old.unlink()


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """A name to write to, which becomes path when all went well and leaves nothing behind when not."""
    work = temporary_path(path).with_suffix(path.suffix)  # the suffix tells writers the format
    try:
        yield work
        os.replace(work, path)
    except BaseException:
        work.unlink(missing_ok=True)
        raise


def _named_path(path: str | Path) -> Path:
    path = Path(path)
    if not path.name:
        raise StoreError(f"{str(path)!r} names no file")
    return path


def is_taken(path: Path) -> bool:
    """Whether something is at path. Raises StoreError where the system takes no such name, or none as long as sibling()'s."""
    try:
        temporary_path(path).lstat()
    except FileNotFoundError:
        pass
    except (OSError, ValueError) as error:
        raise StoreError(f"cannot write {path}: {getattr(error, 'strerror', None) or error}") from None
    return os.path.lexists(path)


@contextmanager
def damage_errors(path: str | Path, what_for: str = "read") -> Iterator[None]:
    """Within it whatever a damaged run makes zarr, or what draws it, raise, which has no bound, is one StoreError."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of a folder inside that is no array: what lacks it says so
        try:
            yield
        except (OdesimError, MemoryError):
            raise
        except Exception as error:
            raise StoreError(f"{path} is damaged and cannot be {what_for}: an array or attribute is not as odesim writes it") from error


def open_group(path: Path, mode: Literal["r", "r+"] = "r") -> Any:
    """The zarr v3 group at path, by its own metadata alone."""
    import zarr

    return zarr.open_group(path, mode=mode, zarr_format=3, use_consolidated=False)

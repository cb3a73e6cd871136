"""Paths of runs and files: checked before anything is computed, written so that a file is complete or absent, locked."""

import errno
import os
import re
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from odesim.base.errors import OdesimError, StoreError, package_failure
from odesim.store.guard import read_document

try:
    import fcntl
except ImportError:  # no such locks on this system
    fcntl = None  # type: ignore[assignment]

RUN_FORMAT = 1
LETTERS = 120  # of the error of a library, in a message
RUN_MARK = "run_format"
# suffixes of other formats, which the folder of a run must not have
FILE_SUFFIXES = frozenset((".csv", ".gif", ".h5", ".jpg", ".json", ".nc", ".npy", ".npz", ".pdf", ".png", ".svg", ".toml", ".txt"))


def group_attributes(path: Path) -> dict[str, Any] | None:
    """The attributes of the zarr v3 group at path, or None if there is none."""
    try:
        metadata = read_document(path / "zarr.json")
    except (OSError, ValueError, StoreError):
        return None
    attributes = metadata.get("attributes", {}) if metadata.get("node_type") == "group" else None
    return attributes if isinstance(attributes, dict) else None


def is_run(path: Path) -> bool:
    """Whether path holds a run that odesim wrote."""
    return RUN_MARK in (group_attributes(path) or {})


def check_new_run(path: str | Path, *, overwrite: bool = False) -> Path:
    """path, if a new run can be written there.

    Raises StoreError if something is there (unless it is a run and overwrite is given) or the folder is not writable.
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
    """path, if a new file can be written there. Raises StoreError."""
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
    """Raises StoreError unless an unnamed temporary file can be created in the folder. name: the file to write, for the message."""
    if not os.path.isdir(folder):
        if re.match(r"[a-z][a-z0-9]+:/", str(folder)):
            raise StoreError(f"nothing is written at URLs: give {name!r} a folder, such as a mounted bucket")
        raise StoreError(f"{folder} is not a folder" if os.path.exists(folder) else f"no folder {str(folder)!r} to write {name!r} into")
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except PermissionError:
        raise StoreError(f"no permission to write {name!r} into {str(folder)!r}") from None
    except OSError as error:
        raise StoreError(f"cannot write in {folder}: {error.strerror}") from None


def temporary_path(path: Path) -> Path:
    """A new hidden path in the same folder as path, and so on the same disk: it can be renamed to path in one step."""
    return path.with_name(f".{path.name}.{uuid4().hex[:8]}.partial")


def free_path(path: Path) -> Path:
    """The first of x.1.zarr, x.2.zarr, ... that does not exist, for path x.zarr."""
    number = 1
    while (candidate := path.with_name(f"{path.stem}.{number}{path.suffix}")).exists():
        number += 1
    return candidate


# a rename is the one step that other processes see whole: they find the old run, or the new one, and never a part
def publish(work: Path, path: Path, *, overwrite: bool) -> None:
    """Renames the folder work to path. overwrite: what was at path is deleted after that.

    Other processes may do the same: the last one stays, or without overwrite the first. Raises StoreError where path is taken.
    """
    path = Path(os.path.realpath(path))
    replaced: list[Path] = []
    try:
        while not _renamed(work, path):
            if not overwrite:
                raise StoreError(f"{path} was written by another process meanwhile; give another name or --overwrite")
            old = temporary_path(path)
            with suppress(FileNotFoundError):  # another process has moved it away
                path.rename(old)
                replaced.append(old)
    except BaseException:
        if replaced:
            _renamed(replaced.pop(), path)
        raise
    finally:
        for old in replaced:
            shutil.rmtree(old) if old.is_dir() else old.unlink()


def _renamed(work: Path, path: Path) -> bool:
    """Renames the folder work to path; False where a file, or a folder that is not empty, is there."""
    try:
        work.rename(path)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
            raise
        return False
    return True


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """A temporary path to write to; it is renamed to path at the end, or deleted after an exception."""
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
    """Whether path exists. Raises StoreError if the system refuses the name, or the longer one of temporary_path()."""
    try:
        temporary_path(path).lstat()
    except FileNotFoundError:
        pass
    except (OSError, ValueError) as error:
        raise StoreError(f"cannot write {path}: {getattr(error, 'strerror', None) or error}") from None
    return os.path.lexists(path)


@dataclass(frozen=True)
class Destination:
    """The folder of a run, and what happens if it exists already. shard: (i, n), the i-th of n parts of an ensemble."""

    path: Path
    overwrite: bool = False
    resume: bool = False
    shard: tuple[int, int] | None = None

    @property
    def joins(self) -> bool:
        """Whether a run that exists there is continued."""
        return (self.resume or self.shard is not None) and is_taken(self.path)


class RunLock:
    """A lock on at most one folder, so that one process writes at a time: acquire() locks a folder and frees the one before.

    The system frees it when the process ends, killed or not. It is flock on the folder itself: no file stays in the run, whose bytes
    would then depend on who wrote it, and a folder that may only be read can be locked too. filelock (4.3) locks a file of its own, and
    shares a lock, as the shards of an ensemble do, through an SQLite database beside it or leases that expire.
    """

    def __init__(self) -> None:
        self.handle: int | None = None

    def acquire(self, path: Path, *, what: str = "training", shared: bool = False) -> None:
        """Locks the folder path; does nothing on disks without locks. Raises StoreError if another process holds the lock.

        what: the kind of run, for the message. shared: other processes may hold it too, as the shards of one ensemble do.
        """
        self.release()
        if fcntl is None:
            return
        self.handle = os.open(path, os.O_RDONLY)
        try:
            fcntl.flock(self.handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            self.release()
            raise StoreError(f"another {what} is writing into {path}: wait for its end or give another name") from None
        except OSError:
            self.release()

    def release(self) -> None:
        """Frees the folder, if one is locked."""
        handle, self.handle = self.handle, None
        if handle is not None:
            with suppress(OSError):
                os.close(handle)


@contextmanager
def damage_errors(path: str | Path, what_for: str = "read") -> Iterator[None]:
    """A context that turns any exception which a damaged run at path causes into one StoreError.

    One of a package that does not load stays, and what the system refuses, such as another open file, is no damage.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # about folders that are no arrays: readers of a missing array raise anyway
        try:
            yield
        except (OdesimError, MemoryError):
            raise
        except Exception as error:
            if package_failure(error):
                raise
            if isinstance(error, OSError) and error.strerror:
                raise StoreError(f"{path} cannot be {what_for}: {error.strerror}") from error
            raise StoreError(
                f"{path} is damaged and cannot be {what_for}: an array or attribute is not as odesim writes it "
                f"({type(error).__name__}: {' '.join(str(error).split())[:LETTERS]})"
            ) from error

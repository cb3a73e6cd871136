"""A lock on the folder of a run, so that one process writes at a time. The system frees it when the process ends."""

import os
from contextlib import suppress
from pathlib import Path

from odesim.base.errors import StoreError
from odesim.store.remote import RemotePath

try:
    import fcntl
except ImportError:  # no such locks on this system
    fcntl = None  # type: ignore[assignment]


class RunLock:
    """A lock on at most one folder: acquire() locks a folder and frees the one before."""

    def __init__(self) -> None:
        self.handle: int | None = None

    def acquire(self, path: Path, *, what: str = "training", shared: bool = False) -> None:
        """Locks the folder path; does nothing on disks without locks. Raises StoreError if another process holds the lock.

        what: the kind of run, for the message. shared: other processes may hold it too, as the shards of one ensemble do.
        """
        self.release()
        if fcntl is None or isinstance(path, RemotePath):  # an object store has no locks
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

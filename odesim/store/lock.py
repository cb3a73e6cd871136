"""One writer a run: a lock on its folder, which ends with the process however that ends."""

import os
from contextlib import suppress
from pathlib import Path

from odesim.errors import StoreError

try:
    import fcntl
except ImportError:  # no such locks on this system
    fcntl = None  # type: ignore[assignment]


class RunLock:
    """Nothing at first; take() takes the folder of a run, and lets go of the one before."""

    def __init__(self) -> None:
        self.handle: int | None = None

    def acquire(self, path: Path, *, what: str = "training", shared: bool = False) -> None:
        """Raises StoreError where another process writes what it computes into the folder path. A disk that has no locks gives none.

        shared: with others that share it, the shards of one ensemble.
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
        """Lets go of the folder; harmless where none is held."""
        handle, self.handle = self.handle, None
        if handle is not None:
            with suppress(OSError):
                os.close(handle)

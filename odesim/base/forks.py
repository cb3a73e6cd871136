"""Forks beside threads: the child has only the thread that forked, and would wait for ever for what another thread was doing."""

import os
import sys
from collections.abc import Callable
from functools import cached_property
from threading import RLock

from odesim.base.errors import OdesimError


def in_child(action: Callable[[], object]) -> None:
    """Has action called in each child after a fork, where there are forks."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=action)


class ForkLock:
    """A reentrant lock that is free in the child of a fork.

    To wait before a fork until no thread holds it would be no way: logging and concurrent.futures hold their own locks meanwhile.
    """

    def __init__(self) -> None:
        self._lock, self._interrupted = RLock(), False
        in_child(self._renew)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def _renew(self) -> None:
        if self._lock.acquire(blocking=False):
            self._lock.release()
        else:
            self._lock, self._interrupted = RLock(), True

    def check(self, doing: str) -> None:
        """Raises OdesimError in the child of a fork during which another thread held the lock: what it guards is half done for ever."""
        if self._interrupted:
            raise OdesimError(
                f"another thread was {doing} when this process was forked, which leaves that half done here: "
                "start processes by the method spawn or forkserver of multiprocessing"
            )


def _renew_properties() -> None:
    """Gives cached properties, which have a lock up to Python 3.11, a new one."""
    for name, module in list(sys.modules.items()):
        for kind in list(vars(module).values()) if name.startswith("odesim.") else ():
            for value in vars(kind).values() if isinstance(kind, type) else ():
                if isinstance(value, cached_property):
                    value.lock = RLock()  # type: ignore[attr-defined]


if sys.version_info < (3, 12):
    in_child(_renew_properties)

"""Values in memory that are computed once, and locks: both safe for many threads, and in the child of a fork.

A fork copies only the thread that forked. Whatever another thread held or was computing stays so in the child for ever, which would wait
for it: so locks are made anew there, and nothing counts as being computed.
"""

import os
import sys
from collections.abc import Callable, Hashable
from functools import cached_property
from threading import Event, Lock, RLock
from typing import Generic, TypeVar

from odesim.base.errors import OdesimError

Value = TypeVar("Value")


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


class IdentityKey:
    """A key that compares its object by identity, for objects without a hash. The key keeps the object alive."""

    __slots__ = ("thing",)

    def __init__(self, thing: object):
        self.thing = thing

    def __hash__(self) -> int:
        return id(self.thing)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IdentityKey) and other.thing is self.thing


class Memo(Generic[Value]):
    """A cache of at most `most` values by key; the oldest values are dropped first.

    A value is computed once, by the first thread that needs it. Threads that need the same value wait; other threads do not.
    """

    def __init__(self, most: int = 64) -> None:
        self._most = most
        self._values: dict[Hashable, Value] = {}
        self._begin()
        in_child(self._begin)

    def _begin(self) -> None:
        """Nothing is being computed; in the child of a fork, the threads that did are not there."""
        self._lock = Lock()
        self._pending: dict[Hashable, Event] = {}

    def __call__(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """The value of this key, computed by make() where it is missing. An exception of make is passed on and nothing is stored."""
        while True:
            with self._lock:
                try:  # one look: keys hash in Python
                    return self._values[key]
                except KeyError:
                    pending = self._pending.get(key)
                if pending is None:
                    self._pending[key] = Event()
                    break
            pending.wait()
        try:
            value = make()
        except BaseException:
            self._finish(key)
            raise
        self._finish(key, value)
        return value

    def _finish(self, key: Hashable, *values: Value) -> None:
        """Stores the value, if there is one, and wakes the threads that wait for it."""
        with self._lock:
            for value in values:
                while len(self._values) >= self._most:
                    del self._values[next(iter(self._values))]
                self._values[key] = value
            if key in self._pending:  # not in the child of a fork while it was computed
                self._pending.pop(key).set()

    def __len__(self) -> int:
        return len(self._values)

    def clear(self) -> None:
        """Removes all values."""
        with self._lock:
            self._values.clear()

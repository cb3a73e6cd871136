"""A cache of values in memory, bounded and safe for many threads."""

from collections.abc import Callable, Hashable
from threading import Event, Lock
from typing import Any, Generic, TypeVar

from odesim.base.memo import in_child

Value = TypeVar("Value")


class IdentityKey:
    """A key that compares its object by identity, for objects without a hash. The key keeps the object alive."""

    __slots__ = ("thing",)

    def __init__(self, thing: Any):
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
                if key in self._values:
                    return self._values[key]
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

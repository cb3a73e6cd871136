"""What a process has made already, kept by what it was made from: bounded, and safe in many threads."""

from collections.abc import Callable, Hashable
from threading import Event, Lock
from typing import Any, Generic, TypeVar

Made = TypeVar("Made")


class Same:
    """An object as a key, by identity: for one whose mappings have no hash. The object is kept as long as the key is."""

    __slots__ = ("thing",)

    def __init__(self, thing: Any):
        self.thing = thing

    def __hash__(self) -> int:
        return id(self.thing)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and other.thing is self.thing


class Memo(Generic[Made]):
    """At most `most` values by key; the oldest go first.

    A value is made once, by the first thread that asks: others that ask for it wait, and those that ask for another do not.
    """

    def __init__(self, most: int = 64) -> None:
        self._most = most
        self._lock = Lock()
        self._made: dict[Hashable, Made] = {}
        self._coming: dict[Hashable, Event] = {}

    def __call__(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """The value of this key, made by make() where there is none; what make raises is raised, and nothing kept."""
        while True:
            with self._lock:
                if key in self._made:
                    return self._made[key]
                coming = self._coming.get(key)
                if coming is None:
                    self._coming[key] = Event()
                    break
            coming.wait()
        try:
            value = make()
        except BaseException:
            self._end(key)
            raise
        self._end(key, value)
        return value

    def _end(self, key: Hashable, *value: Made) -> None:
        with self._lock:
            for made in value:
                while len(self._made) >= self._most:
                    del self._made[next(iter(self._made))]
                self._made[key] = made
            self._coming.pop(key).set()

    def __len__(self) -> int:
        return len(self._made)

    def clear(self) -> None:
        """Forgets all values."""
        with self._lock:
            self._made.clear()

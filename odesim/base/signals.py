"""What ends a long run early, as a flag that it checks so that it can keep its results: Ctrl-C, SIGTERM, and a limit of time."""

# The functions of `signal` make an enum of every handler: 38 microseconds a run where those behind them take 2, and a warm run of a small
# system takes some 460.
import _signal  # type: ignore[import-not-found]
import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from odesim.base.errors import ParamError

NUMBERS = (signal.SIGINT, signal.SIGTERM)


@dataclass
class _Limit:
    """When the time of a context is over, by time.monotonic."""

    end: float = math.inf


_LIMIT: ContextVar[_Limit | None] = ContextVar("limit of the time that runs of this context have", default=None)


def _end() -> float:
    limit = _LIMIT.get()
    return math.inf if limit is None else limit.end


def not_counted(seconds: float) -> None:
    """Moves the end of the limit of time: so long was something that does not count, as compilation."""
    limit = _LIMIT.get()
    if limit is not None:
        limit.end += seconds


def check_seconds(seconds: float | None) -> float | None:
    """max_seconds. Raises ParamError unless it is None, or a number from 0 up."""
    if seconds is not None and not seconds >= 0:
        raise ParamError(f"max_seconds must be a number of seconds, 0 or above, not {seconds:g}")
    return seconds


@contextmanager
def time_limit(seconds: float | None) -> Iterator[Callable[[], bool]]:
    """A context in which runs are stopped as by Ctrl-C once it has lasted so many seconds; yields whether it has. None: no limit.

    Every run looks for an interrupt anyway, through ctrl_c or stop_signals, and keeps what it has. So a limit is this and nothing more:
    no integrator, engine or training knows of time.
    """
    limit = _Limit(min(math.inf if seconds is None else time.monotonic() + seconds, _end()))
    token = _LIMIT.set(limit)
    try:
        yield lambda: time.monotonic() >= limit.end
    finally:
        _LIMIT.reset(token)


@contextmanager
def _alarm(stop: Callable[[], None]) -> Iterator[None]:
    """A context in which stop is called when the time of this context is over: at once where it is already."""
    left = _end() - time.monotonic()
    if left <= 0:
        stop()
    if left <= 0 or left == math.inf:
        yield
        return
    timer = threading.Timer(min(left, threading.TIMEOUT_MAX), stop)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


class Whole:
    """The handler of signals in all_or_nothing(): raises KeyboardInterrupt. came: whether there was one, also for a run inside."""

    came = False

    def __call__(self, number: int, frame: Any) -> None:
        self.came = True
        raise KeyboardInterrupt

    def check(self) -> None:
        """Raises KeyboardInterrupt if there was a signal."""
        if self.came:
            raise KeyboardInterrupt


@contextmanager
def all_or_nothing() -> Iterator[None]:
    """A context of which only the whole counts: Ctrl-C and SIGTERM end it with KeyboardInterrupt, where they end a run inside it too.

    Else that run would return its first part, from which a verdict or a picture would be made.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    whole, watched = Whole(), [number for number in NUMBERS if _signal.getsignal(number) is signal.default_int_handler]
    for number in watched:
        _signal.signal(number, whole)
    try:
        yield
    finally:
        for number in watched:
            _signal.signal(number, signal.default_int_handler)
    whole.check()  # an interrupt may have been dropped, as ctypes drops one in a callback


@contextmanager
def stop_signals() -> Iterator[Callable[[], bool]]:
    """A context that yields a function: True after Ctrl-C, SIGTERM or the end of the time. A second signal ends the program as usual."""
    requested, limit = False, _LIMIT.get() or _Limit()

    def stop() -> None:
        nonlocal requested
        requested = True

    with _watched(stop, (signal.default_int_handler, signal.SIG_DFL)):
        yield lambda: requested or time.monotonic() >= limit.end


@contextmanager
def ctrl_c(stop: Callable[[], None], *, timed: bool = True) -> Iterator[None]:
    """A context in which Ctrl-C calls stop, as does the end of the time; a second one raises KeyboardInterrupt. So does SIGTERM where it
    would raise that.

    Without it, an interrupt during compiled code is raised in the next Python callback, where ctypes drops it.
    timed: whether the end of the time calls stop; not where code is compiled in this context, whose time does not count.
    """
    with _alarm(stop) if timed and _LIMIT.get() is not None else nullcontext(), _watched(stop, (signal.default_int_handler,)):
        yield


@contextmanager
def _watched(stop: Callable[[], None], replaced: tuple[Any, ...]) -> Iterator[None]:
    """A context in which the first signal calls stop; the next one, and all after it, go to the handlers from before.

    replaced: handlers that give way, and those of all_or_nothing() do; another one, or none as under nohup, was set on purpose and stays.
    A thread beside the main one has no signals.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers = {number: _signal.getsignal(number) for number in NUMBERS}
    before = {number: handler for number, handler in handlers.items() if handler in replaced or isinstance(handler, Whole)}

    def handle(number: int, _: Any) -> None:
        stop()
        handler = before[signal.Signals(number)]
        _signal.signal(number, handler)
        if isinstance(handler, Whole):
            handler.came = True

    for number in before:
        _signal.signal(number, handle)
    try:
        yield
    finally:
        for number, handler in before.items():
            _signal.signal(number, handler)
    for handler in before.values():
        if isinstance(handler, Whole):
            handler.check()

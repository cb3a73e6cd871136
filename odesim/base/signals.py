"""Ctrl-C and SIGTERM as a flag that a long run checks, so that it can save its results and end."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def stop_signals() -> Iterator[Callable[[], bool]]:
    """A context that yields a function: True after Ctrl-C or SIGTERM. A second signal ends the program as usual."""
    requested = False
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    # another handler, or none as under nohup, was set on purpose and stays
    default = {number: handler for number, handler in handlers.items() if handler in (signal.default_int_handler, signal.SIG_DFL)}

    def handle(number: int, _: Any) -> None:
        nonlocal requested
        requested = True
        signal.signal(number, default[signal.Signals(number)])

    for number in default:
        signal.signal(number, handle)
    try:
        yield lambda: requested
    finally:
        for number, handler in default.items():
            signal.signal(number, handler)


@contextmanager
def ctrl_c(stop: Callable[[], None]) -> Iterator[None]:
    """A context in which Ctrl-C calls stop; a second one raises KeyboardInterrupt. So does SIGTERM where it would raise that.

    Without it, an interrupt during compiled code is raised in the next Python callback, where ctypes drops it.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    watched = [s for s in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(s) is signal.default_int_handler]

    def restore() -> None:
        for number in watched:
            signal.signal(number, signal.default_int_handler)

    def handle(number: int, frame: Any) -> None:
        stop()
        restore()

    for number in watched:
        signal.signal(number, handle)
    try:
        yield
    finally:
        restore()

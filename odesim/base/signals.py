"""Ctrl-C and SIGTERM as a question that a long run asks, so that what was computed is kept."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def stopping() -> Iterator[Callable[[], bool]]:
    """Within it Ctrl-C and SIGTERM make the function that it gives true; a second one ends the program as ever."""
    asked = False
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    found = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    # another handler, or none at all as under nohup, is somebody's wish
    usual = {number: handler for number, handler in found.items() if handler in (signal.default_int_handler, signal.SIG_DFL)}

    def handle(number: int, _: Any) -> None:
        nonlocal asked
        asked = True
        signal.signal(number, usual[signal.Signals(number)])

    for number in usual:
        signal.signal(number, handle)
    try:
        yield lambda: asked
    finally:
        for number, handler in usual.items():
            signal.signal(number, handler)


@contextmanager
def ctrl_c(stop: Callable[[], None]) -> Iterator[None]:
    """Ctrl-C, and any other signal that would raise KeyboardInterrupt, calls stop here; the second one raises it.

    An interrupt that arrives in compiled code would be raised at the start of the next callback, where ctypes can only drop it.
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

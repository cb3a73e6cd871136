"""A line on the terminal that says how far a long run is; nothing where nobody watches."""

import sys
import time
from collections.abc import Callable
from shutil import get_terminal_size
from typing import Self

from odesim.base.errors import escaped

BAR = 20  # characters
FIRST, AGAIN = 0.5, 0.1  # s: a short run shows nothing; at most ten lines a second


class Progress:
    """Call it with the fraction done; used as a context, it wipes its line at the end."""

    def __init__(self, label: str, watched: bool | None = None) -> None:
        label = escaped(label, "")
        self.label = label if len(label) <= 30 else f"...{label[-27:]}"
        self.watched = sys.stderr.isatty() if watched is None else watched
        self.start = time.monotonic()
        self.next = self.start + FIRST
        self.width = 0

    def __enter__(self) -> Self:
        self._show(f"{self.label}: compiling")
        return self

    def __exit__(self, *_: object) -> None:
        self._show("")
        if self.watched:
            print("\r", end="", file=sys.stderr, flush=True)

    def __call__(self, fraction: float) -> None:
        """Shows the fraction (0 to 1) done, the time it took and about how long the rest takes."""
        now = time.monotonic()
        if not self.watched or now < self.next:
            return
        self.next = now + AGAIN
        spent = now - self.start
        left = f", about {spent * (1 / fraction - 1):.0f} s left" if fraction > 0.01 else ""
        self._show(f"{self.label}: {100 * min(max(fraction, 0.0), 1.0):5.1f} %, {spent:.0f} s{left}")

    def _show(self, line: str) -> None:
        """Writes the line over the last one."""
        if self.watched:
            print("\r" + line.ljust(self.width), end="", file=sys.stderr, flush=True)
            self.width = max(self.width, len(line))


class Counter(Progress):
    """A bar that counts things done, out of how many, with about the time that the rest takes.

    That time follows from the things done since the first call: a resumed run has not done the earlier ones now.
    """

    first, began = -1, 0.0

    def __enter__(self) -> Self:
        return self

    def count(self, done: int, total: int, said: Callable[[], str], unit: str = "") -> None:
        """Shows the line, ten times a second at most, with what said() says; unit: of what a rate is shown, else the time spent."""
        now = time.monotonic()
        if self.first < 0:
            self.first, self.began = done, now
        if not self.watched or now < self.next:
            return
        self.next = now + AGAIN
        rate = (done - self.first) / (now - self.began) if done > self.first else 0.0
        line = [f"{done}/{total}", said()]
        if not unit:
            line.append(duration(now - self.start))
        elif rate:
            line.append(f"{thousands(rate)} {unit}/s")
        if rate:
            line.append(f"about {duration((total - done) / rate)} left")
        text = ", ".join(line)
        # a line that is wider than the terminal could not be written over
        room = get_terminal_size().columns - len(self.label) - 5
        text = text if len(text) < room else text.replace(", about ", ", ")
        size = min(BAR, room - len(text))
        bar = f"[{('#' * (size * done // total)).ljust(size, '.')}] " if size > 0 else ""
        self._show(f"{self.label} {bar}{text}")


def thousands(rate: float) -> str:
    """950, 22.8k or 1.3M."""
    return f"{rate:.3g}" if rate < 999.5 else f"{rate / 1e3:.3g}k" if rate < 999.5e3 else f"{rate / 1e6:.3g}M"


def duration(seconds: float) -> str:
    """45 s, 12 min or 3.5 h."""
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"

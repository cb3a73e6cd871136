"""A line on the terminal that says how far a long run is; nothing where nobody watches."""

import sys
import time

FIRST, AGAIN = 0.5, 0.1  # s: a short run shows nothing; at most ten lines a second


class Progress:
    """Call it with the fraction done; used as a context, it wipes its line at the end."""

    def __init__(self, label: str, watched: bool | None = None) -> None:
        self.label = label if len(label) <= 30 else f"...{label[-27:]}"
        self.watched = sys.stderr.isatty() if watched is None else watched
        self.start = time.monotonic()
        self.next = self.start + FIRST
        self.width = 0

    def __enter__(self) -> "Progress":
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

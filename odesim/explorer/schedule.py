"""Jobs of the explorer: computed in a thread of their own, the newest first."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Protocol, TypeAlias

Compute: TypeAlias = Callable[[], Any]
Show: TypeAlias = Callable[[Any], None]


class Schedule(Protocol):
    """A way to compute a job and to show its result.

    more: the job adds to what is shown, as a finer map does; it gives way to another one.
    """

    def __call__(self, compute: Compute, show: Show, *, more: bool = False) -> None: ...


class Newest:
    """Computes in a thread of its own what was asked last: of jobs that come meanwhile only the newest waits.

    later(f): has f called where the page may be changed.
    """

    def __init__(self, later: Callable[[Callable[[], None]], Any]) -> None:
        self.later, self.pool = later, ThreadPoolExecutor(1)
        self.waiting: tuple[Compute, Show] | None = None
        self.busy = False

    def __call__(self, compute: Compute, show: Show, *, more: bool = False) -> None:
        """Asks for a job; show is called with its result, unless a newer job was asked for before it began."""
        if self.busy:
            if not (more and self.waiting):
                self.waiting = compute, show
            return
        self.busy = True
        self.pool.submit(compute).add_done_callback(lambda done: self.later(lambda: self.finish(done, show)))

    def finish(self, done: "Future[Any]", show: Show) -> None:
        """Shows a result, which may ask for more, and begins the job that waits."""
        try:
            show(done.result())
        finally:
            self.busy = False
            job, self.waiting = self.waiting, None
            if job:
                self(*job)


def at_once(compute: Compute, show: Show, *, more: bool = False) -> None:
    """Computes and shows in the same thread."""
    show(compute())

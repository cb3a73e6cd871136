"""Integrates an ensemble chunk by chunk: members that are not done, with only a few chunks in memory at once.

A member's bits do not depend on the chunk, so a run that was stopped ends as if it never had been.
"""

from collections.abc import Callable, Iterable, Iterator
from concurrent import futures
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from odesim.base.arrays import Array
from odesim.base.cluster import Cluster
from odesim.ensembles.ledger import Ledger, Progress, Tally, count_members, first_nan_times, join_not_numbers, not_numbers_of
from odesim.ensembles.members import Members
from odesim.ensembles.request import METHOD_NAMES, Chunk, EnsembleRequest
from odesim.inputs.bind import Numbers
from odesim.run.after_run import check_members
from odesim.run.observables import observe
from odesim.stepper.codes import UNDONE, Status
from odesim.stepper.problem import usable
from odesim.transforms.events import Guard

WAIT = 0.05  # s between two looks at whether the run should stop


class Engine(Protocol):
    """Integrates members: in lanes, one after another, or on a GPU."""

    @property
    def request(self) -> EnsembleRequest: ...
    @property
    def numbers(self) -> Numbers: ...
    def prepare(self) -> None: ...

    def integrate(self, params: Any, initial: Any, count: int, stop: Array, pool: Any, into: Chunk | None = None) -> Chunk: ...


@dataclass(frozen=True)
class Execution:
    """How the members of an ensemble are distributed over threads and chunks; no bit depends on it.

    progress: called with (members done, of how many, how many of these failed). fail_fast: stop after the first chunk with a failure.
    stop_requested: whether to stop; then chunks in flight are lost, and nothing else. cluster: its workers integrate the chunks of a
    stored run, with their own threads. max_seconds: after these it is as if a stop were requested.
    """

    threads: int = 1
    progress: Progress | None = None
    fail_fast: bool = False
    stop_requested: Callable[[], bool] = lambda: False
    cluster: Cluster | None = None
    max_seconds: float | None = None


def run_chunks(
    ledger: Ledger,
    members: Members,
    engine: Callable[[int], Engine],
    chunks: range,
    execution: Execution | None = None,
    *,
    at_once: int = 1,
) -> Tally:
    """Integrates every member of the chunks that is not done.

    engine(attempt): the engine, by the number of the attempt. at_once: so many members are integrated at once, where neighbouring chunks
    have them to do.
    """
    execution = execution or Execution()
    progress, stop_requested = execution.progress, execution.stop_requested
    tally = count_members(ledger, chunks)
    if progress:
        progress(tally.done, tally.total, tally.failed)
    stop, pool = np.zeros(1, np.int64), make_pool(execution.threads)
    with ThreadPoolExecutor(1) as worker:
        try:
            for first, end in joined(open_chunks(ledger, chunks), at_once):
                if stop_requested() or (execution.fail_fast and tally.failed):
                    tally.stopped = True
                    break
                # not in the main thread, where a signal would wait for the compiled code
                chunk, new, request = wait(worker.submit(complete, ledger, members, engine, first, end, stop, pool), stop, stop_requested)
                if (chunk.status == UNDONE).any():
                    tally.stopped = True
                    break
                ledger.write(first, chunk)
                tally.add(chunk.status[new])
                tally.new += len(new)
                times = {name: values[new] for name, values in first_nan_times(request, chunk).items()}
                tally.not_numbers = join_not_numbers(tally.not_numbers, not_numbers_of(first + new, times))
                if progress:
                    progress(tally.done, tally.total, tally.failed)
        finally:
            stop[0] = 1
            if pool is not None:
                pool.shutdown()
    return tally


def open_chunks(ledger: Ledger, chunks: Iterable[int]) -> Iterator[tuple[int, int]]:
    """(first, end) of the chunks with a member that is not done."""
    numbers = list(chunks) if not isinstance(chunks, range) else chunks
    if not numbers:
        return
    size, last = ledger.chunk, min((numbers[-1] + 1) * ledger.chunk, ledger.count)
    for a, b, begun in ledger.spans(numbers[0] * size, last):
        undone = ledger.status(a, b) == UNDONE if begun else None
        for first in range(a, b, size):
            if undone is None or undone[first - a : first - a + size].any():
                yield first, min(first + size, b)


def joined(places: Iterable[tuple[int, int]], at_once: int) -> Iterator[tuple[int, int]]:
    """Chunks with neighbours joined up to this number of members; a larger one stays as it is."""
    held: tuple[int, int] | None = None
    for first, end in places:
        if held is not None and first == held[1] and end - held[0] <= at_once:
            held = held[0], end
            continue
        if held is not None:
            yield held
        held = first, end
    if held is not None:
        yield held


def wait(future: "Future[Any]", stop: Array, stop_requested: Callable[[], bool]) -> Any:
    """The result of the future; a request to stop is passed on meanwhile."""
    while not futures.wait([future], WAIT).done:  # a TimeoutError may be the future's own
        if stop_requested():
            stop[0] = 1
    return future.result()


def complete(
    ledger: Ledger, members: Members, engine: Callable[[int], Engine], first: int, end: int, stop: Array, pool: Any
) -> tuple[Chunk, Array, EnsembleRequest]:
    """The chunk of members first to end - 1, which of them (k,) were not done before, and the members integrated."""
    todo = ledger.status(first, end) == UNDONE
    whole, attempts = bool(todo.all()), ledger.attempts(first, end)
    params, initial = members.chunk(first, end)
    kinds = np.unique(attempts[todo])
    if not len(kinds):  # another process was faster
        return ledger.read(first, end), np.arange(0), engine(0).request
    request = engine(int(kinds[0])).request
    if whole and len(kinds) == 1:
        chunk = integrated(engine(int(kinds[0])), params, initial, end - first, stop, pool, ledger.buffer(first, end))
        return chunk, np.arange(end - first), request
    chunk = ledger.read(first, end)
    for kind in kinds:
        at = np.flatnonzero(todo & (attempts == kind))
        rows = [{name: values[at] for name, values in arrays.items()} for arrays in (params, initial)]
        chunk.assign(at, integrated(engine(int(kind)), rows[0], rows[1], len(at), stop, pool))
    return chunk, np.flatnonzero(todo), request


def tell_left(request: EnsembleRequest, chunk: Chunk) -> None:
    """Sets the status of members that a guard ended, and no event of the System: they left the set that a state assumes."""
    guards = [e for e in request.system.events if isinstance(e, Guard)]
    ended = np.flatnonzero(chunk.status == Status.EVENT.number)
    if not guards or not len(ended):
        return
    states = request.layout.split(chunk.y_end[ended])
    slack = request.layout.split(np.broadcast_to(usable(request.options, request.layout, request.dtype)[1], request.layout.size))
    outside = [(guard.sign * states[guard.state] <= -0.5 * slack[guard.state]).reshape(len(ended), -1).any(axis=1) for guard in guards]
    chunk.status[ended[np.any(outside, axis=0)]] = Status.LEFT_DOMAIN.number


def integrated(engine: Engine, params: Any, initial: Any, count: int, stop: Array, pool: Any, into: Chunk | None = None) -> Chunk:
    """The results of the engine with the observables requested; a member that was interrupted is not done."""
    chunk = engine.integrate(params, initial, count, stop, pool, into)
    tell_left(engine.request, chunk)
    check_members(engine.request, engine.numbers, chunk, params, initial)
    observe(engine.request, engine.numbers, chunk, params)
    chunk.status[chunk.status == Status.INTERRUPTED.number] = UNDONE
    if engine.request.options.method in METHOD_NAMES:  # of auto each member has its own
        chunk.method[...] = METHOD_NAMES.index(engine.request.options.method)
    chunk.method[chunk.status == UNDONE] = UNDONE
    return chunk


def make_pool(threads: int) -> Any:
    """A pool of threads; None for one thread."""
    return ThreadPoolExecutor(threads) if threads > 1 else None

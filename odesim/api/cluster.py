"""Ensembles on the workers of a dask cluster."""

import platform
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import islice
from pathlib import Path
from time import monotonic
from typing import Any
from uuid import uuid4

import numpy as np

from odesim.api.manifest import engines, restore
from odesim.base.arrays import Array
from odesim.base.backends import BACKENDS
from odesim.base.cluster import Cluster, Task, unwanted, worker_threads
from odesim.base.errors import OdesimError, StoreError
from odesim.base.memo import Memo
from odesim.ensembles.ledger import NotNumber, Tally, count_members, first_nan_times, join_not_numbers, not_numbers_of
from odesim.ensembles.members import Members
from odesim.ensembles.request import Chunk, EnsembleRequest
from odesim.inputs.registry import CarriedFile
from odesim.run.chunks import Engine, Execution, complete, joined, make_pool, open_chunks, wait
from odesim.stepper.codes import UNDONE
from odesim.store.ensemble import EnsembleStore
from odesim.symbolic.system import System

# one of two machines may see /scratch as another disk: the time of the manifest tells, in a file that both certainly have
SAME = 2.0  # s by which the time of one file may differ between machines, for rounding
TASK_SECONDS, MOST_CHUNKS = 0.5, 64  # of a task: dask takes some 6 ms of processor time for each
_OPENED: "Memo[Opened]" = Memo(4)


@dataclass(frozen=True)
class Job:
    """An ensemble for workers: where it is stored, when its manifest was last written, and its model where that has to travel."""

    path: str
    written: float
    model: System | CarriedFile | None
    token: str


@dataclass(frozen=True)
class Done:
    """Summary of the chunks that a worker finished.

    status (k,): of members that are done now and were not before. not_numbers: observables that are NaN. seconds: the time it took.
    """

    status: Array
    not_numbers: dict[str, NotNumber]
    seconds: float = 0.0


@dataclass
class Pace:
    """The number of chunks of a task: one, or as many quick ones as take half a second.

    seconds: the time of a chunk, as last seen; 0: not known.
    """

    seconds: float = 0.0

    def chunks(self, left: int, cluster: Cluster) -> int:
        """Chunks of the next task, where so many are left: few enough that all workers have some to the end."""
        if not self.seconds:
            return 1
        fair = left // (4 * max(cluster.seen, 1))
        return max(1, min(int(TASK_SECONDS / self.seconds), MOST_CHUNKS, fair))


def bundled(name: str, places: Iterator[tuple[int, int]], count: Callable[[], int]) -> Iterator[Task]:
    """Tasks of count() neighbouring places (first, end) each."""
    while bundle := tuple(islice(places, count())):
        yield Task(name, f"{bundle[0][0]}:{bundle[-1][1]}", (bundle,))


@dataclass(frozen=True)
class Opened:
    """An ensemble as a worker has it open. manifest: the file that says what it is, as it was then."""

    store: EnsembleStore
    manifest: bytes
    members: Members
    engine: Callable[[int], Engine]
    pool: Any


def run_on_cluster(
    store: EnsembleStore, model: System | CarriedFile | None, chunks: range, execution: Execution, *, at_once: int = 1
) -> Tally:
    """As run_chunks, on the workers of execution.cluster. model: what travels of it. Raises an OdesimError of a worker, ClusterError."""
    assert execution.cluster is not None
    cluster, progress, stop_requested = execution.cluster, execution.progress, execution.stop_requested
    backend = BACKENDS.get(str(store.attributes.get("backend")))
    if backend is not None and backend.gpu:
        cluster = cluster.with_gpus()
    tally = count_members(store, chunks)
    before = tally.done
    if progress:
        progress(before, tally.total, tally.failed)
    job = Job(str(store.path.absolute()), written(store.path), model, uuid4().hex)
    name = store.attributes["model"].replace("-", "_") + " members"  # dask groups tasks by what is before a hyphen
    pace = Pace()
    tasks = bundled(
        name, joined(open_chunks(store, chunks), at_once), lambda: pace.chunks((tally.total - tally.done) // store.chunk, cluster)
    )
    stops = (lambda: stop_requested() or bool(tally.failed)) if execution.fail_fast else stop_requested
    for task, done in cluster.results(partial(do_all, job), tasks, stops):
        pace.seconds = done.seconds / len(task.arguments[0])
        tally.add(done.status)
        tally.not_numbers = join_not_numbers(tally.not_numbers, done.not_numbers)
        if progress:
            progress(min(tally.done, tally.total), tally.total, tally.failed)
    end = count_members(store, chunks)  # what is written, whoever wrote it
    return replace(end, new=end.done - before, stopped=end.done < end.total, not_numbers=tally.not_numbers)


def do_all(job: Job, places: tuple[tuple[int, int], ...]) -> Done:
    """On a worker: integrates members first to end - 1 of each place, one place after another, and writes it before the next begins."""
    run = _OPENED(job.token, partial(opened, job))
    began = monotonic()
    parts = [do(run, first, end) for first, end in places]
    not_numbers = reduce(join_not_numbers, (part.not_numbers for part in parts))
    return Done(np.concatenate([part.status for part in parts]), not_numbers, monotonic() - began)


def do(run: Opened, first: int, end: int) -> Done:
    """On a worker: integrates the members first to end - 1 that are not done, and writes them."""
    stop = np.zeros(1, np.int64)
    with ThreadPoolExecutor(1) as worker:
        parts = (run.store, run.members, run.engine, first, end, stop, run.pool)
        chunk, new, request = wait(worker.submit(complete, *parts), stop, unwanted)
    if (chunk.status == UNDONE).any():
        raise InterruptedError("the task was cancelled")
    if not len(new):  # they were done by a worker that died before it could say so
        return done_of(request, chunk, first, np.arange(end - first))
    if manifest_of(run.store.path) != run.manifest:  # the scheduler is gone, say, and --overwrite came
        raise StoreError(f"{run.store.path} was replaced while a worker of the cluster computed members of it; nothing was written")
    run.store.write(first, chunk)
    return done_of(request, chunk, first, new)


def done_of(request: EnsembleRequest, chunk: Chunk, first: int, rows: Array) -> Done:
    """Summary of the finished rows (k,) of a chunk, to send to the client. first: the first member of the chunk."""
    times = {name: values[rows] for name, values in first_nan_times(request, chunk).items()}
    return Done(chunk.status[rows], not_numbers_of(first + rows, times))


def opened(job: Job) -> Opened:
    """The ensemble of a job, restored from its folder. Raises an OdesimError if this worker does not see it, or has other code."""
    path = Path(job.path)
    unseen = f"a worker of the cluster does not see {path}: it must be a folder that all machines share"
    try:
        if abs(written(path) - job.written) > SAME:
            raise StoreError(f"{unseen}, and there is another one on that worker")
    except OSError:
        raise StoreError(unseen) from None
    manifest, store = manifest_of(path), EnsembleStore(path, trusted=True)
    model = job.model.load() if isinstance(job.model, CarriedFile) else job.model
    try:
        members, _, engine = restore(store, model)
    except OdesimError as error:
        raise type(error)(f"on a worker of the cluster, {platform.node()}: {error}") from error
    return Opened(store, manifest, members, engines(store, members, engine), make_pool(worker_threads()))


def written(path: Path) -> float:
    """When the manifest of the run at path was last written, in seconds."""
    return (path / "zarr.json").stat().st_mtime


def manifest_of(path: Path) -> bytes:
    """The content of the file that says what the run at path is; empty if it is gone."""
    try:
        return (path / "zarr.json").read_bytes()
    except FileNotFoundError:
        return b""

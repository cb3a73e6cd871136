"""Tasks on a dask cluster: a client of one, and the results as they come, with few tasks in flight. Imports dask only when called."""

import logging
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from math import inf
from pickle import dumps, loads
from queue import Empty, SimpleQueue
from time import monotonic
from traceback import format_exception
from typing import Any
from uuid import uuid4

from odesim.base.errors import ClusterError, ClusterWarning, OdesimError, ParamError, counted
from odesim.base.memo import Memo

PER_WORKER = 2  # tasks in flight: one runs, the next is there when it ends
WAIT = 0.05  # s between two looks at whether to stop
LOOK = 1.0  # s without a result, after which workers are counted again
ALONE = 10.0  # s without a worker, after which a warning says so
LOCAL, MOST_LOCAL = "local:", 1024
MOST_LINES = 4000  # characters of a traceback that travel
SELDOM = 4  # tasks that a worker ends between two counts of workers
GPU: Mapping[str, float] = {"GPU": 1}  # of a worker: dask worker --resources GPU=1
# Ctrl-C goes to all processes of a terminal: the command alone answers it, and stops its workers
DEAF = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"
SAFE_PATH = "PYTHONSAFEPATH"
_CALLS: Memo[Callable[..., Any]] = Memo(8)


@dataclass(frozen=True)
class Task:
    """One call on a worker. name: its group on dask's dashboard; label: which of the group it is; arguments: small, plain data."""

    name: str
    label: str
    arguments: tuple[Any, ...]


@dataclass(frozen=True)
class Cluster:
    """A dask cluster by its client. resources: what a task needs of a worker, such as {"GPU": 1}."""

    client: Any
    resources: Mapping[str, float] = field(default_factory=dict)
    counted: list[int] = field(default_factory=lambda: [0])

    @property
    def seen(self) -> int:
        """The number of workers when they were last counted."""
        return self.counted[0]

    @property
    def address(self) -> str:
        """The address of the scheduler."""
        scheduler = getattr(self.client, "scheduler", None)
        return str(getattr(scheduler, "address", "an address that is gone"))

    def workers(self) -> int:
        """The number of workers that have what a task needs. Raises ClusterError if the scheduler does not answer."""
        try:
            if not self.resources:
                self.counted[0] = len(self.client.nthreads())
                return self.seen
            known = self.client.scheduler_info(n_workers=-1)["workers"].values()
        except (OSError, RuntimeError, AttributeError) as error:
            raise self.lost() from error
        self.counted[0] = sum(all(worker.get("resources", {}).get(name, 0) >= n for name, n in self.resources.items()) for worker in known)
        return self.seen

    def with_gpus(self) -> "Cluster":
        """The cluster, whose tasks go to workers with a GPU. Raises ClusterError where there is none."""
        cluster = replace(self, resources=GPU)
        if not cluster.workers():
            raise ClusterError("no worker of the cluster has a GPU: start workers with dask worker --resources GPU=1", stored=True)
        return cluster

    def waiting(self) -> str:
        """A sentence on a cluster without workers."""
        kind = " with a GPU" if self.resources else ""
        return f"the cluster at {self.address} has no worker{kind}: the run waits for one; a worker without odesim ends at its first task"

    def lost(self) -> ClusterError:
        """The error of a scheduler that is gone."""
        return ClusterError(f"the scheduler of the cluster at {self.address} is gone, or dropped the tasks", stored=True)

    def results(
        self, call: Callable[..., Any], tasks: Iterable[Task], stop: Callable[[], bool] = lambda: False
    ) -> Iterator[tuple[Task, Any]]:
        """(task, call(*its arguments)) in the order in which they end, at most 2 in flight for each worker.

        call: sent with each task, pickled, and kept by the workers. stop: whether to stop; then no other task begins, and those in flight
        are cancelled. A task whose worker dies runs again on another one. An exception of the call is
        raised; ClusterError if the scheduler is gone, or if a task's workers died one after another.
        """
        import cloudpickle

        client, packed, run = self.client, cloudpickle.dumps(call), uuid4().hex
        more = {"resources": dict(self.resources)} if self.resources else {}
        ended: SimpleQueue[Any] = SimpleQueue()
        flying: dict[Any, Task] = {}
        left, workers, since, looked = iter(tasks), self.workers(), 0, monotonic()
        alone = monotonic() + ALONE  # when it is to be said that there are no workers
        try:
            while not stop():
                for task in islice(left, max(PER_WORKER * max(workers, 1) - len(flying), 0)):
                    key = f"{task.name}-{task.label}-{run}"
                    future = client.submit(run_packed, run, packed, task.arguments, key=key, pure=False, **more)
                    flying[future] = task
                    future.add_done_callback(ended.put)
                if not flying:
                    return
                for future, result in self._results_of(drained(ended), flying):
                    task = flying.pop(future)
                    future.release()
                    since += 1
                    yield task, result
                if monotonic() >= looked + LOOK or since >= SELDOM * workers:
                    workers, since, looked = self.workers(), 0, monotonic()
                if workers:
                    alone = max(alone, monotonic() + ALONE)
                elif monotonic() >= alone:
                    warnings.warn(self.waiting(), ClusterWarning, stacklevel=2)
                    alone = inf
        finally:
            if flying and client.status == "running":
                client.cancel(list(flying))

    def _results_of(self, futures: list[Any], tasks: Mapping[Any, Task]) -> list[tuple[Any, Any]]:
        """(future, result) of futures that came to their end, asked for together. Raises the error of a task, or ClusterError."""
        from distributed import KilledWorker

        if any(future.cancelled() for future in futures):
            raise self.lost()
        for future in futures:
            if future.status == "error":
                error = future.exception()
                if not isinstance(error, KilledWorker):
                    future.result()  # raises it, with where it came from
                what = f"{tasks[future].name} {tasks[future].label} ended {counted(int(error.allowed_failures) + 1, 'worker')}"
                raise ClusterError(
                    f"{what}, one after another: their memory may be too small for it, or they have no odesim; their logs say more",
                    stored=True,
                )
        try:
            # where a result was lost with its worker, this waits until it is there again
            return list(zip(futures, self.client.gather(futures), strict=True)) if futures else []
        except CancelledError as error:
            raise self.lost() from error


def drained(queue: "SimpleQueue[Any]") -> list[Any]:
    """All entries of the queue, after a short wait for the first one."""
    entries = []
    with suppress(Empty):
        entries.append(queue.get(timeout=WAIT))
        while True:
            entries.append(queue.get_nowait())
    return entries


def run_packed(key: str, packed: bytes, arguments: tuple[Any, ...]) -> Any:
    """On a worker: the call of these bytes, unpacked once for each key, with its arguments."""
    try:
        return _CALLS(key, partial(loads, packed))(*arguments)
    except Exception as error:
        raise portable(error) from None


def portable(error: Exception) -> Exception:
    """The error in a form that can travel to the client; a RuntimeError for one that cannot be pickled.

    Its traceback, which may be too deep to travel, becomes a note. A client of dask waits for ever for an error that it cannot unpack.
    """
    lines = "".join(format_exception(error))[-MOST_LINES:]
    outgoing = error.with_traceback(None)
    try:
        loads(dumps(outgoing))
    except Exception:
        outgoing = RuntimeError(f"{type(error).__name__}: {str(error)[:MOST_LINES]}")
    if not isinstance(outgoing, OdesimError):  # whose sentence is enough
        outgoing.add_note(f"on a worker of the cluster:\n{lines}")
    return outgoing


def unwanted() -> bool:
    """On a worker, in the thread of a task: whether nobody wants its result any more, because it was cancelled or its client is gone."""
    from distributed import get_worker

    worker = get_worker()
    task = worker.state.tasks.get(worker.get_current_task())
    return task is not None and task.state == "cancelled"


def worker_threads() -> int:
    """On a worker: how many threads it has."""
    from distributed import get_worker

    return int(get_worker().state.nthreads)


@contextmanager
def connected(address: str | None) -> Iterator[Cluster | None]:
    """A context with the cluster at tcp://HOST:PORT, or with N processes of this machine for local:N, which end with it; None for None.

    Raises ParamError for another text, ClusterError where no scheduler answers.
    """
    if address is None:
        yield None
        return
    count = local_count(address)
    try:
        import distributed
    except ImportError:
        raise ClusterError("a cluster needs dask: pip install 'odesim[cluster]'") from None
    if count:
        import dask

        with safe_path():
            with dask.config.set({"distributed.worker.profile.enabled": False}):  # it looks at each thread a hundred times a second
                cluster = distributed.LocalCluster(
                    n_workers=count, threads_per_worker=1, dashboard_address=":0", silence_logs=logging.ERROR, preload=[DEAF]
                )
            try:
                with distributed.Client(cluster, set_as_default=False) as client:
                    yield Cluster(client)
            finally:
                with suppress(KeyError):  # dask, of a worker that was killed meanwhile
                    cluster.close()
        return
    from distributed.utils import silence_logging_cmgr

    with silence_logging_cmgr(logging.CRITICAL):  # where the scheduler is gone, a sentence says so: dask writes a traceback too
        try:
            client = distributed.Client(address, timeout=10, set_as_default=False)  # one that fails would remain dask's default
        except (OSError, ValueError, TypeError, RuntimeError) as error:  # TypeError: tls without a certificate
            raise ClusterError(f"no dask scheduler answers at {address}: {' '.join(str(error).split())[:120]}") from None
        with client:
            yield Cluster(client)


@contextmanager
def safe_path() -> Iterator[None]:
    """A context in which a new process of Python takes no module from the current folder, where a stranger's file may have its name."""
    before = os.environ.get(SAFE_PATH)
    os.environ[SAFE_PATH] = "1"
    try:
        yield
    finally:
        os.environ.pop(SAFE_PATH)
        if before is not None:
            os.environ[SAFE_PATH] = before


def local_count(address: str) -> int:
    """N of local:N, 0 for the address of a scheduler. Raises ParamError for another text."""
    if address.startswith(LOCAL):
        number = address.removeprefix(LOCAL)
        if not (number.isascii() and number.isdecimal() and 1 <= int(number) <= MOST_LOCAL):
            raise ParamError(f"local:N starts N workers here, 1 to {MOST_LOCAL}, and {number[:60]!r} is no such number")
        return int(number)
    if "://" not in address:
        raise ParamError(f"a cluster is tcp://HOST:PORT, the address of a dask scheduler, or local:N, not {address[:60]!r}")
    return 0

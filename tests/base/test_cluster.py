"""Tasks on a dask cluster in this process: how many are in flight, where they run, and what ends them."""

import logging
import threading

import pytest

from odesim.base.cluster import Cluster, Task, connected, local_count, unwanted
from odesim.base.errors import ClusterError, ClusterWarning, ParamError
from tests.support.clusters import two_workers

pytest.importorskip("distributed", reason="the extra cluster is not installed")
WORKERS = 2
STOPPED = threading.Event()


@pytest.fixture(scope="module")
def client():
    """A client of two workers that are threads of this process."""
    with two_workers() as client:
        yield client


def square(number):
    return number**2


def fail(number):
    if number == 3:
        raise ParamError(f"{number} is refused")
    return number


def until_unwanted(number):
    if number == 0:
        return 0
    while not unwanted():
        STOPPED.wait(0.01)
    STOPPED.set()
    return number


def tasks(count, drawn):
    """Tasks 0 to count - 1; each is appended to drawn when it is taken."""
    for k in range(count):
        drawn.append(k)
        yield Task("squares", str(k), (k,))


def test_every_task_once_and_few_in_flight(client):
    """Each task has its result, and never are more than two a worker begun and not ended."""
    drawn, ended = list[int](), dict[int, int]()
    for task, result in Cluster(client).results(square, tasks(20, drawn)):
        assert len(drawn) - len(ended) <= 2 * WORKERS
        assert ended or len(drawn) == 2 * WORKERS
        ended[task.arguments[0]] = result
    assert ended == {k: k**2 for k in range(20)}


def test_names_on_the_dashboard(client):
    """The scheduler knows the tasks by their names; a second run of the same tasks computes them again."""
    from distributed import get_task_stream

    for _ in range(2):
        with get_task_stream(client) as seen:
            list(Cluster(client).results(square, tasks(5, [])))
        labels = {record["key"].rsplit("-", 1)[0] for record in seen.data}
        assert labels == {f"squares-{k}" for k in range(5)}
    assert "squares" in client.cluster.scheduler.task_prefixes


def test_an_error_ends_the_run(client):
    """The error of a task is raised, and no task is left on the cluster."""
    with pytest.raises(ParamError, match=r"^3 is refused$"):
        list(Cluster(client).results(fail, tasks(20, [])))


class TwoPartsError(Exception):
    """Cannot be unpickled, as errors of some libraries."""

    def __init__(self, one, two):
        super().__init__(f"{one} and {two}")


def deep(number):
    if number < 0:
        raise TwoPartsError(1, 2)
    return deep(number + 1)


@pytest.mark.parametrize(("number", "kind", "what"), [(0, RecursionError, "depth"), (-1, RuntimeError, "^TwoPartsError: 1 and 2")])
def test_every_error_comes_back(number, kind, what, client):
    """Also one with a very deep traceback, or one that cannot be unpickled; the note says where it was raised."""
    with pytest.raises(kind, match=what) as raised:
        list(Cluster(client).results(deep, [Task("deep", "0", (number,))]))
    assert "in deep" in raised.value.__notes__[0]


def test_a_stopped_run_stops_its_tasks(client):
    """Once it is asked to stop, no other task begins, and those that run know that nobody wants them."""
    STOPPED.clear()
    drawn, ended = list[int](), list[Task]()
    for task, _ in Cluster(client).results(until_unwanted, tasks(20, drawn), lambda: bool(ended)):
        ended.append(task)
    assert (len(ended), len(drawn)) == (1, 2 * WORKERS)
    assert STOPPED.wait(60)


def test_only_workers_with_the_resource(client):
    """A task that needs a GPU runs on workers that have one, and only those are counted."""
    from distributed import Worker, get_task_stream

    cluster = Cluster(client, {"GPU": 1})
    assert cluster.workers() == 0
    with pytest.raises(ClusterError, match=r"^no worker of the cluster has a GPU: start workers with dask worker --resources GPU=1$"):
        Cluster(client).with_gpus()
    name = client.cluster.sync(start_worker, Worker, client.cluster.scheduler_address)
    drawn: list[int] = []
    assert cluster.workers() == 1 == Cluster(client).with_gpus().seen
    with get_task_stream(client) as seen:
        for _ in cluster.results(square, tasks(6, drawn)):
            assert len(drawn) <= 6
    assert {record["worker"] for record in seen.data} == {name}
    client.retire_workers([name])


def test_a_run_without_workers_says_that_it_waits(client, monkeypatch):
    """Once, after a while; it ends when it is asked to: here, when it has looked ten more times."""
    later = iter(range(10))
    monkeypatch.setattr("odesim.base.cluster.ALONE", 0.1)
    monkeypatch.setattr("odesim.base.cluster.LOOK", 0.1)
    with pytest.warns(ClusterWarning, match="has no worker with a GPU: the run waits for one; a worker without") as said:
        assert not list(Cluster(client, {"GPU": 2}).results(square, tasks(1, []), lambda: bool(said) and next(later, None) is None))
    assert len(said) == 1


async def start_worker(kind, address):
    worker = await kind(address, nthreads=1, resources={"GPU": 1}, dashboard_address=":0")
    return worker.address


@pytest.mark.parametrize("text", ["local:0", "local:", "local:x", "local:1025", "127.0.0.1:8786", "cluster"])
def test_what_is_no_cluster(text):
    """One sentence for what is neither local:N nor an address."""
    with pytest.raises(ParamError, match=r"local:N"):
        local_count(text)


def test_dask_writes_nothing_beside_the_sentence(client, monkeypatch):
    """While a command is connected to a scheduler, dask's own errors are not written to the terminal; afterwards they are."""
    handler = logging.StreamHandler()
    monkeypatch.setattr(logging.getLogger("distributed"), "handlers", [handler])
    with connected(client.cluster.scheduler_address):
        assert handler.level == logging.CRITICAL
    assert handler.level == logging.NOTSET


def test_nobody_answers():
    """Where no scheduler is, a sentence says so, and dask's settings stay; without an address there is no cluster."""
    from dask import config

    before = config.get("scheduler", None)
    with connected(None) as none:
        assert none is None
    for address in ("nothing://there", "tls://127.0.0.1:1"):  # there is no certificate for the second one
        with pytest.raises(ClusterError, match=f"no dask scheduler answers at {address}"), connected(address):
            pass
    assert config.get("scheduler", None) == before

"""kill -9 of a worker, of the scheduler and of the client of a dask cluster in the middle of a run: what is written stays, and goes on."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import odesim
from odesim.api.stored import resume, stored_run
from odesim.base.cluster import Cluster, connected
from odesim.base.errors import ClusterError
from odesim.run.chunks import Execution
from tests.support.begun import MODEL, RUN, SIZE, memory, same

pytest.importorskip("distributed", reason="the extra cluster is not installed")

MEMBERS = 40 * SIZE
ASKED: dict[str, Any] = {**RUN, "members": MEMBERS}
LONG = 300  # s for a process to start on a busy machine
GONE = 60  # s that a client waits for a scheduler to come back
CLIENT = """
import os, sys
import odesim.api.manifest as manifest
manifest.chunk_size = lambda count, row: {size}
from distributed import Client
import odesim

def die(done, total, failed):
    if done:
        os.kill(os.getpid(), 9)

if __name__ == "__main__":
    odesim.ensemble({model!r}, out={out!r}, client=Client({address!r}), progress=die, **{asked!r})
"""


@contextmanager
def processes(folder: Path) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """(address, [scheduler, worker, worker]) of a cluster of processes as `dask scheduler` and `dask worker` start them."""
    file = folder / "scheduler.json"
    cli, asked = [sys.executable, "-m"], ["--scheduler-file", str(file), "--no-dashboard"]
    started = [subprocess.Popen([*cli, "distributed.cli.dask_scheduler", *asked, "--port", "0", "--host", "127.0.0.1"])]
    try:
        address = eventually(lambda: json.loads(file.read_text())["address"])
        more = ["--nthreads", "1", "--no-nanny", "--local-directory", str(folder)]
        started += [subprocess.Popen([*cli, "distributed.cli.dask_worker", *asked, *more]) for _ in range(2)]
        yield address, started
    finally:
        for process in started:
            process.kill()
            process.wait()


def eventually(ask: Any) -> Any:
    """What ask() returns once it neither raises nor returns None."""
    for _ in range(LONG * 10):
        try:
            return ask()
        except (OSError, ValueError):
            time.sleep(0.1)
    raise TimeoutError(ask)


@pytest.mark.slow  # each starts three processes that import odesim
def test_a_worker_is_killed(small_chunks, tmp_path):
    """A killed worker of local:2 loses its chunk in flight, which is done again; a worker that joins gets its share."""
    from distributed import get_task_stream

    out, killed = tmp_path / "run.zarr", list[int]()
    with connected("local:2") as cluster:
        assert cluster is not None
        client = cluster.client

        def kill(done, total, failed):
            if done and not killed:
                process = next(iter(client.cluster.workers.values())).process.process
                killed.append(process.pid)
                os.kill(process.pid, signal.SIGKILL)
                client.cluster.scale(3)
                client.wait_for_workers(3)

        with get_task_stream(client) as seen:
            stored = odesim.ensemble(MODEL, out=out, client=client, progress=kill, **ASKED)
        assert len(killed) == 1 and killed[0] not in client.run(os.getpid).values()
    assert len({record["worker"] for record in seen.data}) >= 3
    same(stored, memory(members=MEMBERS))


@pytest.mark.slow  # each starts three processes that import odesim
def test_ctrl_c_in_a_terminal(tmp_path):
    """It goes to the workers of local:2 too: the command says what is kept, in a sentence, and nobody writes a traceback."""
    words = ("ensemble", MODEL, "--vary", "mu=uniform(0.5,2.5)", "--members", "2000000", "--size", "M=3", "--span", "0:4", "--rtol", "1e-9")
    begin = "import os, signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); os.execv(sys.executable, sys.argv[1:])"
    command = [sys.executable, "-m", "odesim", *words, "--out", str(tmp_path / "run.zarr"), "--cluster", "local:2", "--quiet"]
    with (tmp_path / "said").open("w+") as said:
        process = subprocess.Popen([sys.executable, "-c", begin, *command], stderr=said, start_new_session=True)
        eventually(lambda: (tmp_path / "run.zarr" / "status" / "c" / "0").stat())
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(LONG) == 3
        said.seek(0)
        lines = said.read().splitlines()
    assert len(lines) == 1 and lines[0].startswith("odesim: stopped after") and lines[0].endswith("odesim resume continues it")


@pytest.mark.slow  # each starts three processes that import odesim
def test_the_scheduler_is_killed(small_chunks, tmp_path):
    """One sentence for the client, everything written stays, and resume without a cluster ends with the bits of one machine."""
    from distributed import Client

    out = tmp_path / "run.zarr"
    with processes(tmp_path) as (address, (scheduler, *_)), Client(address, timeout=GONE) as client:
        client.wait_for_workers(2, timeout=LONG)

        def kill(done, total, failed):
            if done and scheduler.poll() is None:
                scheduler.kill()
                scheduler.wait()

        with pytest.raises(ClusterError, match=r"is gone.* kept in .*run\.zarr, odesim resume continues it"):
            odesim.ensemble(MODEL, out=out, client=client, progress=kill, **ASKED)
    done = stored_run(out).tally.done
    assert 0 < done < MEMBERS
    found = resume(out)
    assert (found.status, found.tally.new) == ("ok", MEMBERS - done)
    same(odesim.open_run(out), memory(members=MEMBERS))


@pytest.mark.slow  # each starts three processes that import odesim
def test_the_client_is_killed(small_chunks, tmp_path):
    """Everything written stays; another client of the same cluster goes on, and the bits are those of one machine."""
    from distributed import Client

    out = tmp_path / "run.zarr"
    with processes(tmp_path) as (address, _), Client(address, timeout=LONG) as client:
        client.wait_for_workers(2, timeout=LONG)
        code = CLIENT.format(size=SIZE, model=MODEL, out=str(out), address=address, asked=ASKED)
        (tmp_path / "client.py").write_text(code)
        ended = subprocess.run([sys.executable, str(tmp_path / "client.py")], check=False)
        assert ended.returncode == -signal.SIGKILL
        done = stored_run(out).tally.done
        assert 0 < done < MEMBERS
        assert resume(out, execution=Execution(cluster=Cluster(client))).status == "ok"
    same(odesim.open_run(out), memory(members=MEMBERS))

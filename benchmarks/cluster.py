"""What a dask cluster costs beside threads: processor time of all processes for one ensemble, and what a task costs by itself.

    python benchmarks/cluster.py [MEMBERS] [ROUNDS]

Processor time, not the clock: it is the same on a machine that others use. Both write the same run; rounds are interleaved, and the
least of each is kept. The second half of the output are the numbers of the estimate in RESULTS.md: bytes, files, seconds a task.
"""

import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil
from distributed import Client, LocalCluster

import odesim
from odesim.base.cluster import Cluster, Task

CHUNK = 4096
CASES: dict[str, dict[str, Any]] = {
    "light": {"sizes": {"M": 3}, "span": (0.0, 4.0), "save": None},
    "W1": {"sizes": {"M": 10}, "span": (0.0, 4.0), "save": None, "rtol": 1e-8, "atol": 1e-10},
    "saved": {"sizes": {"M": 10}, "span": (0.0, 4.0), "save": 20, "rtol": 1e-8, "atol": 1e-10},
}


def nothing(number: int) -> int:
    """The task of which only the cost of being one is left."""
    return number


def processor(pids: list[int]) -> float:
    """Seconds of processor time of these processes so far."""
    return sum(sum(psutil.Process(pid).cpu_times()[:2]) for pid in pids)


def timed(call: Any, pids: list[int]) -> tuple[float, float]:
    """(processor time of the processes, time by the clock) of a call."""
    clock, before = time.perf_counter(), processor(pids)
    call()
    return processor(pids) - before, time.perf_counter() - clock


def main(members: int = 40 * CHUNK, rounds: int = 5) -> None:
    """Prints one JSON object."""
    folder = Path(tempfile.mkdtemp(prefix="odesim-bench-"))
    found: dict[str, Any] = {"members": members, "chunks": members // CHUNK, "load": os.getloadavg(), "cpus": os.cpu_count()}
    try:
        with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as local, Client(local) as client:
            pids = [os.getpid(), *client.run(os.getpid).values()]
            for case, asked in CASES.items():
                given = {"vary": {"mu": "uniform(0.5,2.5)"}, "members": members, **asked}
                ways: dict[str, Any] = {"threads": {"threads": 2}, "cluster": {"client": client}}
                runs: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
                for k in range(rounds + 1):
                    for name, way in ways.items():
                        out = folder / "run.zarr"
                        seen = timed(lambda: odesim.ensemble("joma.nonlinear", out=out, overwrite=True, **way, **given), pids)  # noqa: B023
                        if k:  # the first compiles, and imports on the workers
                            runs[name].append(seen)
                files = [f for f in out.rglob("*") if f.is_file()]
                least = {name: [min(column) for column in zip(*seen, strict=True)] for name, seen in runs.items()}
                found[case] = {
                    "threads_cpu": least["threads"][0],
                    "cluster_cpu": least["cluster"][0],
                    "overhead": least["cluster"][0] / least["threads"][0] - 1,
                    "threads_clock": least["threads"][1],
                    "cluster_clock": least["cluster"][1],
                    "cpu_of_a_chunk": least["threads"][0] / (members // CHUNK),
                    "bytes_a_member": sum(f.stat().st_size for f in files) / members,
                    "files_a_chunk": sum("/c/" in str(f) for f in files) / (members // CHUNK),
                }
            tasks = 400
            one = [
                timed(lambda: list(Cluster(client).results(nothing, (Task("nothing", str(k), (k,)) for k in range(tasks)))), [p])
                for p in pids
            ]
            found["task_cpu_client_and_scheduler"] = one[0][0] / tasks
            found["task_cpu_worker"] = one[1][0] / tasks * 2
            found["task_clock"] = min(clock for _, clock in one) / tasks
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))

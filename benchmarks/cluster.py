"""What a dask cluster costs beside threads: processor time of all processes for a chunk of 4096 members, and what a task costs by itself.

    python benchmarks/cluster.py [--rounds 3] [--chunks 20 60]

Processor time, not the clock: it hardly depends on what else a machine does. The cost of a chunk is the difference of a long and a short
run over the difference of their chunks, so that what happens once (a run is made, workers open it) does not count; rounds of threads and
cluster are interleaved, and the least of each is kept. Bytes and files are those of the estimate in RESULTS.md.
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import psutil

import odesim
from odesim.base.cluster import Cluster, Task, connected

CHUNK, TASKS = 4096, 400
W1: dict[str, Any] = {"sizes": {"M": 4}, "span": (0.0, 10.0), "vary": {"mu": "uniform(0.5,2.5)"}}
CASES: dict[str, dict[str, Any]] = {
    "W1, rtol 1e-6": W1,
    "W1, 100 times saved": {**W1, "save": 100},
    "M = 16, rtol 1e-9, 20 times saved": {**W1, "sizes": {"M": 16}, "rtol": 1e-9, "atol": 1e-12, "save": 20},
    "W1, rtol 1e-9": {**W1, "rtol": 1e-9, "atol": 1e-12},
}


def nothing(number: int) -> int:
    """The task of which only the cost of being one is left."""
    return number


def processor(pids: list[int]) -> float:
    """Seconds of processor time of these processes so far."""
    return float(sum(sum(psutil.Process(pid).cpu_times()[:2]) for pid in pids))


def timed(call: Callable[[], Any], pids: list[int]) -> tuple[float, float]:
    """(processor time of the processes, time by the clock) of a call."""
    clock, before = time.perf_counter(), processor(pids)
    call()
    return processor(pids) - before, time.perf_counter() - clock


def of_a_chunk(case: dict[str, Any], client: Any, pids: list[int], chunks: tuple[int, int], rounds: int) -> dict[str, Any]:
    """The row of one case."""
    folder = Path(tempfile.mkdtemp(prefix="odesim-bench-"))
    ways: dict[str, Any] = {"threads": {"threads": 2}, "cluster": {"client": client}}
    runs: dict[tuple[str, int], list[tuple[float, float]]] = {(name, n): [] for name in ways for n in chunks}
    out = folder / "run.zarr"
    try:
        for k in range(rounds + 1):
            for name, n in runs:
                asked = {**case, "members": n * CHUNK, **ways[name]}
                seen = timed(partial(odesim.ensemble, "joma.nonlinear", out=out, overwrite=True, **asked), pids)
                if k:  # the first compiles, and imports on the workers
                    runs[name, n].append(seen)
        files = [file for file in out.rglob("*") if file.is_file() and "c" in file.relative_to(out).parts]
        least = {key: min(cpu for cpu, _ in seen) for key, seen in runs.items()}
        few, many = chunks
        cost = {name: (least[name, many] - least[name, few]) / (many - few) for name in ways}
        return {
            "threads_ms": 1e3 * cost["threads"],
            "cluster_ms": 1e3 * cost["cluster"],
            "overhead_percent": 100 * (cost["cluster"] / cost["threads"] - 1),
            "clock_threads_s": min(clock for _, clock in runs["threads", many]),
            "clock_cluster_s": min(clock for _, clock in runs["cluster", many]),
            "bytes_a_member": sum(file.stat().st_size for file in files) / (many * CHUNK),
            "files_a_chunk": len(files) / many,
        }
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    """Prints one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--chunks", type=int, nargs=2, default=(20, 60))
    parser.add_argument("--cases", type=int, default=len(CASES))
    given = parser.parse_args()
    found: dict[str, Any] = {"cpus": os.cpu_count(), "load": os.getloadavg()}
    with connected("local:2") as cluster:
        assert cluster is not None
        client = cluster.client
        workers = list(client.run(os.getpid).values())
        for name, case in list(CASES.items())[: given.cases]:
            found[name] = of_a_chunk(case, client, [os.getpid(), *workers], tuple(given.chunks), given.rounds)
            print(json.dumps({name: found[name]}), file=sys.stderr, flush=True)
        for pids, who in (([os.getpid()], "client and scheduler"), (workers, "worker")):
            tasks = (Task("nothing", str(k), (k,)) for k in range(TASKS))
            found[f"ms of a task, {who}"] = 1e3 * timed(lambda: list(Cluster(client).results(nothing, tasks)), pids)[0] / TASKS  # noqa: B023
    print(json.dumps({**found, "load after": os.getloadavg()}, indent=2))


if __name__ == "__main__":
    main()

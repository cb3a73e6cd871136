"""Two threads against one, and strict mode against the default: the same ensemble, turn about in one process.

python benchmarks/modes.py [--rounds 9] [--members 200000] [--json FILE]

Two threads: wall time of one over that of two, and by how much the CPU time (user + system) of both grows; that needs two cores that
nothing else uses, so the load average stands beside it. Strict mode: its CPU time over the default's. Medians of the rounds' ratios.
"""

import os
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from measuring import Report, arguments, seconds  # first: one thread

# isort: split
import numpy as np
from numba import njit
from ours import odesim_solver
from works import make_work

METHODS = {"W1-6": "tsit5", "W2": "vern7"}
THREAD_COLUMNS = (
    ("work", "work", ""),
    ("one thread, s", "one", ".3f"),
    ("two, s", "two", ".3f"),
    ("ratio", "ratio", ".3f"),
    ("CPU grows by, %", "more", ".1f"),
    ("load before", "load", ".2f"),
    ("cores", "cores", "d"),
)
STRICT_COLUMNS = (("work", "work", ""), ("default, µs", "default", ".3g"), ("strict, µs", "strict", ".3g"), ("ratio", "ratio", ".3f"))


def wall_and_cpu(run: Any) -> tuple[float, float]:
    """(wall, CPU) seconds of a call."""
    begun = time.perf_counter()
    used = seconds(run)
    return time.perf_counter() - begun, used


def threads_row(name: str, method: str, members: int, rounds: int) -> dict[str, Any]:
    """A row of the table of threads: one thread and two."""
    work = make_work(name, members)
    one, two = odesim_solver(work, method, threads=1), odesim_solver(work, method, threads=2)
    one.run(), two.run()
    load = os.getloadavg()[0]
    t = np.array([[wall_and_cpu(one.run), wall_and_cpu(two.run)] for _ in range(rounds)])  # (rounds, one or two, wall or CPU)
    wall, used = t[:, 0, 0] / t[:, 1, 0], t[:, 1, 1] / t[:, 0, 1]
    row = {"work": f"{name}, {method}", "one": float(np.median(t[:, 0, 0])), "two": float(np.median(t[:, 1, 0]))}
    return {**row, "ratio": float(np.median(wall)), "more": 100 * float(np.median(used) - 1), "load": load, "cores": os.cpu_count()}


def arithmetic_row(rounds: int) -> dict[str, Any]:
    """A row of the table of threads for a loop without memory access: the limit of this machine's two cores."""

    @njit(nogil=True)
    def loop(count: int) -> float:
        total = 0.0
        for i in range(count):
            total = total * 0.999 + i
        return total

    halves, most = ThreadPoolExecutor(2), 50_000_000
    loop(1)
    load = os.getloadavg()[0]
    t = np.array([[wall_and_cpu(lambda: loop(most)), wall_and_cpu(lambda: list(halves.map(loop, [most // 2] * 2)))] for _ in range(rounds)])
    row = {"work": "arithmetic alone", "one": float(np.median(t[:, 0, 0])), "two": float(np.median(t[:, 1, 0]))}
    more = 100 * float(np.median(t[:, 1, 1] / t[:, 0, 1]) - 1)
    return {**row, "ratio": float(np.median(t[:, 0, 0] / t[:, 1, 0])), "more": more, "load": load, "cores": os.cpu_count()}


def strict_row(name: str, method: str, members: int, rounds: int) -> dict[str, Any]:
    """A row of the table of strict mode."""
    work = make_work(name, members)
    solvers = [odesim_solver(work, method), odesim_solver(work, method, strict=True)]
    for solver in solvers:
        solver.run()
    t = np.array([[1e6 * seconds(s.run) / s.members for s in solvers] for _ in range(rounds)])
    default, own = np.median(t, axis=0)
    return {"work": f"{name}, {method}", "default": default, "strict": own, "ratio": float(np.median(t[:, 1] / t[:, 0]))}


def main() -> None:
    """Runs the benchmark: measures, prints, and writes JSON for --json."""
    options = arguments(__doc__, rounds=9, members=200_000).parse_args()
    report, sizes = Report("modes"), (options.members, options.rounds)
    rows = [threads_row(name, method, *sizes) for name, method in METHODS.items()]
    found = {"two threads, wall": min(r["ratio"] for r in rows), "two threads, CPU": max(r["more"] for r in rows)}
    rows.append(arithmetic_row(options.rounds))
    report.add({"title": f"Two threads, {options.members} members", "columns": THREAD_COLUMNS, "rows": rows}, **found)
    rows = [strict_row(name, method, *sizes) for name, method in METHODS.items()]
    found = {f"strict {name}": r["ratio"] for name, r in zip(METHODS, rows, strict=True)}
    report.add({"title": f"Strict mode, {options.members} members", "columns": STRICT_COLUMNS, "rows": rows}, **found)
    report.write(options.json, ("odesim", "numpy", "numba"))


if __name__ == "__main__":
    main()

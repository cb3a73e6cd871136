"""Measurement for benchmarks: CPU time of whole calls on one thread, in turns; and reports.

Import it before numpy: the threads of its libraries, and of the peers', are read from the environment when they are imported.
"""

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from tables import markdown

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
os.environ["JAX_PLATFORMS"] = "cpu"

import numpy as np  # noqa: E402
from works import Work  # noqa: E402

PACKAGES = ("odesim", "numpy", "scipy", "numba", "heyoka", "CyRK", "diffrax", "jax", "numbalsoda", "scikit-sundae")


@dataclass(frozen=True)
class Solver:
    """run() integrates `members` of a Work, each stride-th from the first, and is what is timed; read() of what it returns: values
    (members, T, D), and how many members did not come to their end. counts() of it: means over the members, by name."""

    name: str
    members: int
    run: Callable[[], Any]
    read: Callable[[Any], tuple[np.ndarray, int]] = lambda found: found
    counts: Callable[[Any], dict[str, float]] = lambda found: {}
    stride: int = 1


@dataclass
class Report:
    """The results of a benchmark: tables, and measured {name of a goal: number}. load: of the minute before the start."""

    name: str
    tables: list[dict[str, Any]] = field(default_factory=list)
    measured: dict[str, float | None] = field(default_factory=dict)
    load: float = field(default_factory=lambda: os.getloadavg()[0])

    def add(self, *tables: dict[str, Any], **measured: float | None) -> None:
        """Adds tables and numbers, and prints them."""
        self.tables += tables
        self.measured |= measured
        print(*(f"{markdown(t)}\n" for t in tables), *(f"{k}: {v:.4g}" for k, v in measured.items() if v is not None), sep="\n", flush=True)

    def write(self, path: Path | None, packages: Sequence[str] = PACKAGES, **more: Any) -> None:
        """Prints where and with what it was measured, and writes JSON where asked; more goes there too."""
        load = [round(self.load, 2), round(os.getloadavg()[0], 2)]
        hidden = ("--json", "--out")  # where to, which is nobody's concern
        given = [a for k, a in enumerate(sys.argv) if k and a not in hidden and sys.argv[k - 1] not in hidden]
        command = " ".join(["python", f"benchmarks/{self.name}.py", *given])
        about = {"benchmark": self.name, "command": command, "date": date.today().isoformat(), "processor": processor(), "load": load}
        about["versions"] = versions(packages)
        print(f"\n{', '.join(f'{k} {v}' for k, v in versions(packages).items())}; load {load[0]} before, {load[1]} after; {processor()}")
        if path:
            path.write_text(
                json.dumps({**about, "measured": self.measured, "tables": self.tables, **more}, indent=1) + "\n", encoding="utf-8"
            )


def arguments(text: str, **more: Any) -> argparse.ArgumentParser:
    """The parser of command-line options that every benchmark has. more: further options, name = default."""
    parser = argparse.ArgumentParser(description=text.splitlines()[0])
    parser.add_argument("--json", type=Path, metavar="FILE")
    for name, default in more.items():
        parser.add_argument(f"--{name}", type=type(default), default=default, help=f"default: {default}")
    return parser


def processor() -> str:
    """The processor's name, with family and model if known, which distinguish processors of one name."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").split("\n\n")[0].splitlines()
    except OSError:  # no Linux
        return platform.processor() or platform.machine()
    told = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    name = told.get("model name", platform.machine())
    return f"{name} (family {told['cpu family']}, model {told['model']})" if {"cpu family", "model"} <= told.keys() else name


def versions(packages: Iterable[str]) -> dict[str, str]:
    """{package: version} of the installed ones among packages, and Python's."""
    found = {}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found | {"Python": platform.python_version()}


def seconds(run: Callable[[], Any], clock: Callable[[], float] = time.process_time) -> float:
    """Time of a call: CPU time (user + system) of all threads, unless another clock is given."""
    begun = clock()
    run()
    return clock() - begun


def fit_solver(make: Callable[[Work], Solver], work: Work, budget: float, least: int, most: int) -> Solver:
    """The solver for members spread evenly over the work, about as many as take `budget` seconds, within least and most: four
    times as many each time, as the first few pay for the call, and as few shapes as that for what compiles for each."""
    finest = stride = work.stride(most)
    while len(work.start) // (4 * stride) >= least:
        stride *= 4
    while True:
        solver = replace(make(work.every(stride)), stride=stride)
        solver.run()
        if stride == finest or 4 * seconds(solver.run) > 1.5 * budget:
            return solver
        stride //= 4


def time_in_turns(first: Solver, others: Sequence[Solver], rounds: int) -> tuple[np.ndarray, np.ndarray]:
    """CPU seconds a member, (rounds, others) of first and of the others: first runs right before each of them."""
    own, theirs = np.empty((2, rounds, len(others)))
    for i, j in np.ndindex(own.shape):
        own[i, j] = seconds(first.run) / first.members
        theirs[i, j] = seconds(others[j].run) / others[j].members
    return own, theirs


def add_times(rows: list[dict[str, Any]], solvers: Sequence[Solver], rounds: int, unit: float) -> None:
    """Adds median, least, and the median of its ratios to the first one's, to each solver's row. unit: how many of it make a second."""
    own, theirs = time_in_turns(solvers[0], solvers[1:] or solvers, rounds)  # alone, it takes turns with itself
    rows[0] |= {"median": unit * float(np.median(own)), "least": unit * float(own.min()), "ratio": 1.0}
    for row, t, r in zip(rows[1:], theirs.T, (theirs / own).T, strict=False):
        row |= {"median": unit * float(np.median(t)), "least": unit * float(t.min()), "ratio": float(np.median(r))}


def least_ratio(rows: Sequence[dict[str, Any]], peer: str) -> float | None:
    """The smallest ratio of rows whose solver's name begins with the peer's; None if there is none."""
    return min((r["ratio"] for r in rows if r["solver"].startswith(peer)), default=None)

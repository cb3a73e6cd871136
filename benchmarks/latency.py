"""CPU seconds of whole processes: `odesim --help`, `odesim integrate` of a known model, a small `odesim.ensemble`, warm and cold.

python benchmarks/latency.py [--rounds 7] [--cold 3] [--json FILE]

User + system time of the child, from the kernel, interpreter and imports included. Warm: compiled before by the same command; cold:
ODESIM_CACHE_DIR is an empty folder. Python's own compiled modules are there in both. The commands take turns.
"""

import os
import statistics
import subprocess
import sys
import tempfile
from typing import Any

from measuring import Report, arguments  # first: one thread

ENSEMBLE_SCRIPT = (
    "import numpy as np, odesim\n"
    "mu = np.random.default_rng(0).uniform(0.5, 2.5, (100, 4))\n"
    "found = odesim.ensemble('joma.nonlinear', params={'mu': mu}, span=(0.0, 10.0))\n"
    "assert not found.status.any()"
)
COMMANDS = {
    "odesim --help": ("-m", "odesim", "--help"),
    "odesim integrate joma.nonlinear --json": ("-m", "odesim", "integrate", "joma.nonlinear", "--json"),
    "odesim.ensemble, joma.nonlinear, 100 members": ("-c", ENSEMBLE_SCRIPT),
}
NAMES = dict(zip(COMMANDS, ("--help", "integrate", "ensemble"), strict=True))  # of the goals
COLUMNS = (
    ("command", "command", ""),
    ("cache", "cache", ""),
    ("runs", "runs", "d"),
    ("least, s", "least", ".3f"),
    ("median, s", "median", ".3f"),
)


def cpu_seconds(command: tuple[str, ...], cache: str) -> float:
    """User + system seconds of a Python process in an empty folder. Raises CalledProcessError if it fails."""
    with tempfile.TemporaryDirectory() as folder:
        child = subprocess.Popen(
            [sys.executable, *command], stdout=subprocess.DEVNULL, cwd=folder, env={**os.environ, "ODESIM_CACHE_DIR": cache}
        )
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise subprocess.CalledProcessError(child.returncode, child.args)
    return used.ru_utime + used.ru_stime


def measure(rounds: int, cold: int) -> list[dict[str, Any]]:
    """A row for each command and state of the cache."""
    found: dict[tuple[str, str], list[float]] = {}
    with tempfile.TemporaryDirectory() as shared:
        for command in COMMANDS.values():
            cpu_seconds(command, shared)
        for i in range(max(rounds, cold)):
            for name, command in COMMANDS.items():
                if i < rounds:
                    found.setdefault((name, "warm"), []).append(cpu_seconds(command, shared))
                if i < cold and name != "odesim --help":
                    with tempfile.TemporaryDirectory() as empty:
                        found.setdefault((name, "cold"), []).append(cpu_seconds(command, empty))
    return [
        {"command": name, "cache": state, "runs": len(s), "least": min(s), "median": statistics.median(s)}
        for (name, state), s in found.items()
    ]


def main() -> None:
    """Runs the benchmark: measures, prints, and writes JSON for --json."""
    options = arguments(__doc__, rounds=7, cold=3).parse_args()
    report, rows = Report("latency"), measure(options.rounds, options.cold)
    found = {f"{NAMES[row['command']]}, {row['cache']}": row["median"] for row in rows}
    report.add({"title": "CPU seconds of a process", "columns": COLUMNS, "rows": rows}, **found)
    report.write(options.json, ("odesim", "numpy", "numba", "sympy"))


if __name__ == "__main__":
    main()

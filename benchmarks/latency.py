"""CPU seconds of whole processes: `odesim --help`, `odesim integrate` of a known model, a small `odesim.ensemble`, warm and cold.

python benchmarks/latency.py [--rounds 7] [--cold 3] [--json FILE]

User + system time of the child, from the kernel, interpreter and imports included. Warm: compiled before by the same command; cold:
ODESIM_CACHE_DIR is an empty folder. Python's own compiled modules are there in both. The commands take turns.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import odesim

ENSEMBLE = (
    "import numpy as np, odesim\n"
    "mu = np.random.default_rng(0).uniform(0.5, 2.5, (100, 4))\n"
    "found = odesim.ensemble('joma.nonlinear', params={'mu': mu}, span=(0.0, 10.0))\n"
    "assert not found.status.any()"
)
COMMANDS = {
    "odesim --help": ("-m", "odesim", "--help"),
    "odesim integrate joma.nonlinear --json": ("-m", "odesim", "integrate", "joma.nonlinear", "--json"),
    "odesim.ensemble, joma.nonlinear, 100 members": ("-c", ENSEMBLE),
}
GOALS = {("odesim --help", "warm"): 0.15, ("odesim integrate joma.nonlinear --json", "warm"): 0.9}
GOALS["odesim integrate joma.nonlinear --json", "cold"] = 5.0


def cpu_seconds(arguments: tuple[str, ...], cache: str) -> float:
    """User + system time of a Python process in a folder of its own. Raises CalledProcessError where it fails."""
    threads = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
    with tempfile.TemporaryDirectory() as folder:
        child = subprocess.Popen(
            [sys.executable, *arguments], stdout=subprocess.DEVNULL, cwd=folder, env={**os.environ, **threads, "ODESIM_CACHE_DIR": cache}
        )
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise subprocess.CalledProcessError(child.returncode, child.args)
    return used.ru_utime + used.ru_stime


def measure(rounds: int, cold: int) -> list[dict[str, Any]]:
    """A row a command and state of the cache."""
    found: dict[tuple[str, str], list[float]] = {}
    with tempfile.TemporaryDirectory() as shared:
        for arguments in COMMANDS.values():
            cpu_seconds(arguments, shared)
        for i in range(max(rounds, cold)):
            for name, arguments in COMMANDS.items():
                if i < rounds:
                    found.setdefault((name, "warm"), []).append(cpu_seconds(arguments, shared))
                if i < cold and name != "odesim --help":
                    with tempfile.TemporaryDirectory() as empty:
                        found.setdefault((name, "cold"), []).append(cpu_seconds(arguments, empty))
    return [
        {"command": name, "cache": state, "runs": len(s), "least": min(s), "median": statistics.median(s), "goal": GOALS.get((name, state))}
        for (name, state), s in found.items()
    ]


def table(rows: list[dict[str, Any]]) -> str:
    """The rows as a Markdown table."""
    head = "| command | cache | runs | least, s | median, s | goal |\n|---|---|---|---|---|---|"
    lines = [
        f"| {r['command']} | {r['cache']} | {r['runs']} | {r['least']:.3f} | {r['median']:.3f} | {'' if r['goal'] is None else r['goal']} |"
        for r in rows
    ]
    return "\n".join([head, *lines])


def main() -> None:
    """Measures, prints, and writes JSON where asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--cold", type=int, default=3)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    load, rows = os.getloadavg()[0], measure(options.rounds, options.cold)
    print(table(rows))
    print(f"\nodesim {odesim.__version__}, Python {platform.python_version()}; load {load:.2f} before, {os.getloadavg()[0]:.2f} after")
    if options.json:
        options.json.write_text(json.dumps({"rows": rows, "Python": platform.python_version()}, indent=1) + "\n")


if __name__ == "__main__":
    main()

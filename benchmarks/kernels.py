"""CPU seconds until a kernel is there: the first call of a process with an empty cache, and with its machine code on disk.

python benchmarks/kernels.py [--rounds 3] [--json FILE]

A child imports odesim and calls `odesim.integrate` or `odesim.ensemble` twice: what the first call takes beyond the second is imports
(numba's only where something is compiled), symbols to text, and compiling or loading. joma.nonlinear, 4 components. User + system.
"""

import os
import subprocess
import sys
import tempfile
from typing import Any

from measuring import Report, arguments  # first: one thread

# isort: split
import numpy as np

METHODS = ("tsit5", "vern7", "dop853", "rodas4", "rodas5p")
CHILD = """
import sys, time
import numpy as np
import odesim
call, method = sys.argv[1:]
mu = np.linspace(0.5, 2.5, 4) if call == "integrate" else np.linspace(0.5, 2.5, 32).reshape(8, 4)
def run():
    begun = time.process_time()
    getattr(odesim, call)("joma.nonlinear", params={"mu": mu}, span=(0.0, 1.0), method=method)
    return time.process_time() - begun
first = run()
print(first - run())
"""
COLUMNS = (("call", "call", ""), ("method", "method", ""), ("cold, s", "cold", ".2f"), ("from the cache, s", "warm", ".3f"))


def child(call: str, method: str, cache: str) -> float:
    """CPU seconds of the first call in a child process with this cache folder."""
    environment = {**os.environ, "ODESIM_CACHE_DIR": cache}
    done = subprocess.run([sys.executable, "-c", CHILD, call, method], env=environment, capture_output=True, text=True, check=True)
    return float(done.stdout)


def measure(call: str, method: str, rounds: int) -> dict[str, Any]:
    """A row of medians: cold runs in empty folders, each followed by a warm run there."""
    found = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as cache:
            found.append((child(call, method, cache), child(call, method, cache)))
    cold, warm = np.median(found, axis=0)
    return {"call": call, "method": method, "cold": float(cold), "warm": float(warm)}


def main() -> None:
    """Runs the benchmark: measures, prints, and writes JSON for --json."""
    options = arguments(__doc__, rounds=3).parse_args()
    report = Report("kernels")
    rows = [measure(call, method, options.rounds) for call in ("integrate", "ensemble") for method in METHODS]
    report.add({"title": f"CPU seconds to make or load a kernel, medians of {options.rounds}", "columns": COLUMNS, "rows": rows})
    report.write(options.json, ("odesim", "numpy", "numba", "sympy"))


if __name__ == "__main__":
    main()

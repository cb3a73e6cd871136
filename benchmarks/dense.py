"""Large stiff systems with dense Jacobians: rodas5p by products with the Jacobian, by its matrix, and scipy's BDF with the matrix.

    PYTHONPATH=. python benchmarks/dense.py [--rounds 1] [--json FILE]

The flock: particles on a line that attract each other by d + d^3, in a common wind, whose closed form is in tests/run/test_products.py. The
network: x' = G (b cos t - x) + W tanh(x) with a random W, rates G from 1 to 1e4. rtol 1e-4, atol 1e-6; each run in a process of
its own, whose most memory is counted. scipy has the matrix as numpy's arrays, and a numba right-hand side.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

from measuring import Report, arguments  # first: one thread

# isort: split
import numba
import numpy as np
from scipy.integrate import solve_ivp
from sympy import Interval, Sum, cos, oo, symbols, tanh

import odesim
from odesim.ir import sizes as counts
from odesim.symbolic import IndexedBase, Param, Source, System, index, over, sizes, time

(i, j), (N,) = index("i j"), sizes("N")
REAL = Interval(-oo, oo)
STRENGTH = 1000.0
CASES = (("flock", 2100), ("flock", 10_000), ("network", 2100))
SOLVERS = ("products", "matrix", "scipy BDF")
COLUMNS = (
    *(("system", "name", ""), ("states", "n", "d"), ("solver", "solver", ""), ("steps", "steps", "d"), ("s", "s", ".2f")),
    *(("MB", "mb", ".0f"), ("error", "error", ".1e")),
)


def flock() -> System:
    """Particles on a line that attract each other."""
    x, a = (IndexedBase(name, shape=(N,)) for name in "xa")
    k, apart = symbols("k", positive=True), x[i] - x[j]
    return System(
        name="benchmark.flock",
        source=Source("own", "benchmark"),
        axes={i: N, j: N},
        equations={x[i]: cos(time) - k / N * over(Sum, apart + apart**3, (j, N))},
        params=(Param(a, 0.5, REAL, "starts"), Param(k, STRENGTH, Interval.open(0, oo), "strength")),
        initial={x[i]: a[i]},
        span=(0.0, 1.0),
    )


def network() -> System:
    """Neurons with rates of their own and random weights."""
    x, b, G = (IndexedBase(name, shape=(N,)) for name in ("x", "b", "G"))
    W = IndexedBase("W", shape=(N, N))
    return System(
        name="benchmark.network",
        source=Source("own", "benchmark"),
        axes={i: N, j: N},
        equations={x[i]: G[i] * (b[i] * cos(time) - x[i]) + over(Sum, W[i, j] * tanh(x[j]), (j, N))},
        params=tuple(Param(p, 1.0, REAL, what) for p, what in ((b, "input"), (G, "rates"), (W, "weights"))),
        initial={x[i]: 0.0},
        span=(0.0, 0.3),
    )


@numba.njit(fastmath={"contract"})
def flock_rate(t: float, x: np.ndarray) -> np.ndarray:
    out = np.empty_like(x)
    for a in range(len(x)):
        total = 0.0
        for b in range(len(x)):
            d = x[a] - x[b]
            total += d + d * d * d
        out[a] = np.cos(t) - STRENGTH / len(x) * total
    return out


@numba.njit
def flock_slopes(t: float, x: np.ndarray) -> np.ndarray:
    n = len(x)
    J = np.empty((n, n))
    for a in range(n):
        total = 0.0
        for b in range(n):
            d = x[a] - x[b]
            slope = STRENGTH / n * (1 + 3 * d * d)
            J[a, b] = slope
            total += slope
        J[a, a] -= total
    return J


def params_of(name: str, n: int) -> dict[str, Any]:
    """The numbers of a system: two groups of particles, or random weights."""
    if name == "flock":
        return {"a": np.where(np.arange(n) % 2, 0.7, -0.7)}
    rng = np.random.default_rng(0)
    return {"W": rng.standard_normal((n, n)) * 1.5 / np.sqrt(n), "b": rng.standard_normal(n), "G": np.geomspace(1, 1e4, n)}


def runner(name: str, n: int, solver: str, rtol: float = 1e-4) -> Callable[[], tuple[np.ndarray, int]]:
    """A run: its end, and its number of steps."""
    given = params_of(name, n)
    if solver == "scipy BDF":
        if name == "flock":
            right, slopes, start = flock_rate, flock_slopes, given["a"]
        else:
            W, b, G = given["W"], given["b"], given["G"]
            start = np.zeros(n)

            def right(t: float, x: np.ndarray) -> np.ndarray:
                return G * (b * np.cos(t) - x) + W @ np.tanh(x)

            def slopes(t: float, x: np.ndarray) -> np.ndarray:
                return W * (1 - np.tanh(x) ** 2) - np.diag(G)

        span = (0.0, 1.0 if name == "flock" else 0.3)

        def run() -> tuple[np.ndarray, int]:
            done = solve_ivp(right, span, start, method="BDF", jac=slopes, rtol=rtol, atol=rtol / 100)
            return done.y[:, -1], len(done.t) - 1

        return run
    system = flock() if name == "flock" else network()
    words: dict[str, Any] = {"sizes": {"N": n}, "params": given, "method": "rodas5p", "rtol": rtol, "atol": rtol / 100}

    def ours() -> tuple[np.ndarray, int]:
        with patch.object(counts, "product_step_cost", (lambda *_: 0.0) if solver == "products" else (lambda *_: np.inf)):
            done = odesim.integrate(system, **words)
        return done.y["x"][-1], int(done.stats["steps"])

    return ours


def exact(name: str, n: int) -> np.ndarray:
    """The end: the closed form of the flock, the network by finer steps."""
    if name == "flock":
        return np.full(n, np.sin(1.0))  # the groups are 1e-434 apart
    return runner(name, n, "products", 1e-8)()[0]


ONE = """
import json, resource, sys
from measuring import seconds
import numpy as np, dense
name, n, solver = sys.argv[1], int(sys.argv[2]), sys.argv[3]
dense.runner(name, 20, solver)()
run, ends = dense.runner(name, n, solver), []
took = seconds(lambda: ends.append(run()))
most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
(last, steps), = ends
error = float(np.abs(last - dense.exact(name, n)).max())
print(json.dumps({"name": name, "n": n, "solver": solver, "steps": steps, "s": took, "mb": most, "error": error}))
"""


def measured(name: str, n: int, solver: str) -> dict[str, Any]:
    """A row, from a process of its own, which compiles on 20 states."""
    path = os.pathsep.join([os.path.dirname(os.path.abspath(__file__)), *sys.path])
    command, environment = [sys.executable, "-c", ONE, name, str(n), solver], {**os.environ, "PYTHONPATH": path}
    return dict(json.loads(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout))


def main() -> None:
    """Runs the benchmark: measures, prints, and writes JSON for --json."""
    options = arguments(__doc__ or "", rounds=1).parse_args()
    report, rows = Report("dense"), list[dict[str, Any]]()
    for name, n in CASES:
        solvers = [s for s in SOLVERS if n <= 5000 or s == "products"]
        found = [[measured(name, n, solver) for solver in solvers] for _ in range(options.rounds)]
        for each in zip(*found, strict=True):
            rows.append({**each[0], "s": float(np.median([row["s"] for row in each]))})
            print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    report.add({"title": "Large dense stiff systems", "columns": COLUMNS, "rows": rows})
    report.write(options.json)


if __name__ == "__main__":
    main()

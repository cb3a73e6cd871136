"""One large system: z' = a - M c <a, c>, c = P exp(z)/sum P exp(z), against scipy's RK45 on a numpy right-hand side.

python benchmarks/wide.py [--rounds 7] [--sizes 10000,100000,1000000] [--json FILE]

Both integrate t in [0, 50] on one thread, turn about in one process; times are CPU time, a ratio is the median of the rounds'. The
first table is at the same tolerance, rtol = atol = 1e-6, the second at equal error: odesim takes the loosest tolerance, by steps of
2^(1/4), with which it is at least as exact as scipy is with 1e-6. The error is the largest one of the end state against DOP853 at
1e-12 (odesim's, checked against scipy's at M = 1e4).
"""

import time
from typing import Any

from measuring import Report, arguments  # first: one thread

# isort: split
import numpy as np
from scipy.integrate import solve_ivp
from sympy import Interval, Sum, exp, oo

import odesim
from odesim.symbolic import IndexedBase, Param, Source, System, index, over, sizes

TOLERANCE, END, SEED = 1e-6, 50.0, 0
COLUMNS = (
    ("M", "M", ".0e"),
    ("odesim's tolerance", "odesim_tolerance", ".1e"),
    ("odesim tsit5, ms", "odesim_ms", ".2f"),
    ("scipy RK45, ms", "scipy_ms", ".1f"),
    ("ratio", "ratio", ".2f"),
    ("odesim's right-hand sides", "odesim_rhs", "d"),
    ("scipy's", "scipy_rhs", "d"),
    ("odesim's error", "odesim_error", ".1e"),
    ("scipy's", "scipy_error", ".1e"),
)
LADDER = [16 * TOLERANCE * 0.5 ** (k / 4) for k in range(40)]  # tolerances, the loosest first


def wide_system() -> System:
    """The System of W3: an exponential for each component and two sums over all of them in a right-hand side."""
    (m, k), (M,) = index("m k"), sizes("M")
    z, P, a = (IndexedBase(n, shape=(M,)) for n in ("z", "P", "a"))
    total = over(Sum, P[k] * exp(z[k]), (k, M))
    mean = over(Sum, a[k] * P[k] * exp(z[k]), (k, M)) / total
    return System(
        name="benchmark.wide",
        source=Source("none", "workload W3"),
        axes={m: M},
        equations={z[m]: a[m] - M * P[m] * exp(z[m]) / total * mean},
        params=(Param(P, 1.0, Interval(0, oo), "weights"), Param(a, 1.0, Interval(-oo, oo), "rates")),
        initial={z[m]: 0.0},
    )


def wide_params(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Random parameters P (n,), which sum to 1, and a (n,)."""
    rng = np.random.default_rng(SEED)
    P = rng.random(n)
    return P / P.sum(), 0.1 * rng.normal(size=n)


def scipy_run(n: int, method: str = "RK45", tolerance: float = TOLERANCE) -> Any:
    """scipy's solution of the same system of size n."""
    P, a = wide_params(n)

    def right(t: float, z: np.ndarray) -> np.ndarray:
        c = P * np.exp(z)
        c /= c.sum()
        return a - n * c * (a @ c)

    return solve_ivp(right, (0.0, END), np.zeros(n), rtol=tolerance, atol=tolerance, method=method)


def measure(n: int, rounds: int) -> dict[str, Any]:
    """A row of each of the two tables, for size n."""
    system, (P, a) = wide_system(), wide_params(n)

    def ours(method: str = "tsit5", tolerance: float = TOLERANCE) -> Any:
        return odesim.integrate(system, params={"P": P, "a": a}, span=(0.0, END), rtol=tolerance, atol=tolerance, method=method)

    reference = ours("dop853", 1e-12).y["z"][-1]

    def error(z: np.ndarray) -> float:
        return float(np.abs(z - reference).max())

    def compare(mine: float, theirs: float) -> dict[str, Any]:
        run, peer = ours(tolerance=mine), scipy_run(n, tolerance=theirs)
        times: list[tuple[float, float]] = []
        for _ in range(rounds):
            begun = time.process_time()
            run = ours(tolerance=mine)
            middle = time.process_time()
            peer = scipy_run(n, tolerance=theirs)
            times.append((middle - begun, time.process_time() - middle))
        t = np.array(times) * 1e3
        return {
            "M": n,
            "odesim_tolerance": mine,
            "scipy_tolerance": theirs,
            "odesim_ms": float(np.median(t[:, 0])),
            "scipy_ms": float(np.median(t[:, 1])),
            "ratio": float(np.median(t[:, 1] / t[:, 0])),
            "odesim_rhs": int(run.stats["rhs_calls"]),
            "scipy_rhs": int(peer.nfev),
            "odesim_error": error(run.y["z"][-1]),
            "scipy_error": error(peer.y[:, -1]),
        }

    same = compare(TOLERANCE, TOLERANCE)
    mine = next(t for t in LADDER if error(ours(tolerance=t).y["z"][-1]) <= same["scipy_error"])
    return {"same tolerance": same, "equal error": compare(mine, TOLERANCE)}


def agreement() -> float:
    """The largest difference between the reference and scipy's DOP853 at M = 1e4."""
    P, a = wide_params(10_000)
    own = odesim.integrate(wide_system(), params={"P": P, "a": a}, span=(0.0, END), rtol=1e-12, atol=1e-12, method="dop853")
    return float(np.abs(scipy_run(10_000, "DOP853", 1e-12).y[:, -1] - own.y["z"][-1]).max())


def main() -> None:
    """Runs the benchmark: measures, prints, and writes JSON for --json."""
    options = arguments(__doc__, rounds=7, sizes="10000,100000,1000000").parse_args()
    report = Report("wide")
    print(f"two references agree to {agreement():.1e}")
    rows = [measure(int(n), options.rounds) for n in options.sizes.split(",")]
    for kind, title in (
        ("same tolerance", "Same tolerance, 1e-6"),
        ("equal error", "Equal error: scipy at 1e-6, odesim at least as exact"),
    ):
        report.add({"title": title, "columns": COLUMNS, "rows": [row[kind] for row in rows]})
    report.add(**{f"W3 {row['equal error']['M']:.0e}": row["equal error"]["ratio"] for row in rows})
    report.write(options.json, ("odesim", "numpy", "scipy", "numba"))


if __name__ == "__main__":
    main()

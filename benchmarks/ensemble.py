"""Many small systems: `odesim.ensemble` against heyoka, CyRK, diffrax and scipy, CPU time a trajectory on one thread.

python benchmarks/ensemble.py [--rounds 7] [--members 100000] [--works W1-6,W1-9,W1s,W2] [--peers heyoka,...] [--json FILE]

W1: v' = (mu - v) exp(v^2/2), 4 components, mu ~ U(.5, 2.5), v0 = 0.01 abs(N(0, 1)), t in [0, 10], the end kept, at 1e-6 and 1e-9; W1s:
100 saved points; W2: Lorenz, sigma = 10, beta = 8/3, rho = linspace(0, 21, N), from (1, 0, 0), t in [0, 1], at 1e-8. rtol = atol. W2f:
W2 in 1000 fixed steps, without peers: microseconds a trajectory are nanoseconds a step.

A round runs every peer once, odesim's best method right before each of them, in one process; a ratio is the median over rounds of
peer / odesim in CPU time (user + system) a trajectory, a time the median of its runs. Whole calls are timed, with nothing compiled
in them. A slow peer integrates fewer members, spread evenly over all. The error is the largest one over everything kept of 200
members, spread evenly too (those of them that the solver ran), against scipy's DOP853 at 1e-13, itself exact to some 1e-11. The
peers are in pyproject's extra `bench`, for an environment of their own; one that is not installed is left out, and named.
"""

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):  # the peers' libraries read them when imported
    os.environ[name] = "1"
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
os.environ["JAX_PLATFORMS"] = "cpu"

import numpy as np  # noqa: E402
from peers import PEERS, Solver, Work, peer_versions, scipy_run  # noqa: E402
from sympy import Interval, Rational, oo, symbols  # noqa: E402

import odesim  # noqa: E402
from odesim.symbolic import Param, Source, System  # noqa: E402

CHECKED = 200
METHODS = {"W1-6": ("tsit5",), "W1-9": ("vern7", "dop853", "tsit5"), "W1s": ("tsit5",), "W2": ("tsit5", "vern7", "dop853")}
METHODS["W2f"] = ("tsit5",)
GOALS = {  # microseconds, then the least ratio to a peer
    "W1-6": (1.9, {"heyoka": 2, "CyRK": 6, "diffrax": 15, "scipy": 400}),
    "W1-9": (2.9, {"heyoka": 1.7}),
    "W1s": (3.5, {"heyoka": 4}),
    "W2": (0.65, {"heyoka": 2, "CyRK": 10, "diffrax": 50}),
    "W2f": (4.0, {}),
}


def lorenz_system() -> System:
    """Lorenz's three equations, rho a parameter."""
    x, y, z, rho = symbols("x y z rho")
    return System(
        name="benchmark.lorenz",
        source=Source("none", "workload W2"),
        axes={},
        equations={x: 10 * (y - x), y: x * (rho - z) - y, z: x * y - Rational(8, 3) * z},
        params=(Param(rho, 28.0, Interval(0, oo), "heating"),),
        initial={x: 1.0, y: 0.0, z: 0.0},
    )


def make_work(name: str, members: int) -> Work:
    """The members of a workload."""
    if name in ("W2", "W2f"):
        start = np.tile([1.0, 0.0, 0.0], (members, 1))
        return Work(name, "lorenz", 1e-8, 1.0, np.linspace(0, 21, members)[:, None], start, np.array([1.0]))
    rng = np.random.default_rng(0)
    params, start = rng.uniform(0.5, 2.5, (members, 4)), np.abs(rng.normal(size=(members, 4))) * 0.01
    times = np.linspace(0, 10, 100) if name == "W1s" else np.array([10.0])
    return Work(name, "joma", 1e-9 if name == "W1-9" else 1e-6, 10.0, params, start, times)


def ours(work: Work, method: str) -> Solver:
    """odesim's own, all members in one call."""
    lorenz = work.system == "lorenz"
    model: Any = lorenz_system() if lorenz else "joma.nonlinear"
    own: dict[str, Any] = (
        {"params": {"rho": work.params[:, 0]}} if lorenz else {"params": {"mu": work.params}, "initial": {"v": work.start}}
    )
    save = work.times if work.grid else None
    options: dict[str, Any] = {"span": (0.0, work.end), "save": save, "rtol": work.tolerance, "atol": work.tolerance, "method": method}
    options |= {"step": 1e-3} if work.name == "W2f" else {}

    def read(found: Any) -> tuple[np.ndarray, int]:
        values = np.stack([found[name].values for name in "xyz"], axis=-1) if lorenz else found["v"].values
        return values, int(np.sum(found["status"].values != 0))

    return Solver(f"odesim {method}", len(work.start), 1, lambda: odesim.ensemble(model, **own, **options), read)


def installed(work: Work, peers: list[str]) -> list[Solver]:
    """The peers that are there."""
    found = []
    for name in peers:
        try:
            found.append(PEERS[name](work))
        except ImportError as e:
            print(f"{name} left out: {e}", file=sys.stderr)
    return found


def exact(work: Work) -> dict[int, np.ndarray]:
    """Members spread evenly over the workload, {place: (T, D)}, by DOP853 at 1e-13."""
    places = range(0, len(work.start), work.stride(CHECKED))
    return {i: scipy_run(work, i, "DOP853", 1e-13).y.T for i in places}


def seconds(run: Callable[[], Any]) -> float:
    """CPU time (user + system) of a call."""
    begun = time.process_time()
    run()
    return time.process_time() - begun


def described(work: Work, solver: Solver, reference: dict[int, np.ndarray]) -> dict[str, Any]:
    """What a solver's first run gives, which also compiles."""
    values, failed = solver.read(solver.run())
    ran = {i * solver.stride: y for i, y in enumerate(values)}
    error = float(max(np.abs(ran[i] - y).max() for i, y in reference.items() if i in ran))
    return {"work": work.name, "solver": solver.name, "members": solver.members, "failed": failed, "error": error}


def measure(work: Work, rounds: int, peers: list[str]) -> list[dict[str, Any]]:
    """A row a solver. First, and the ratios' denominator: of odesim's methods with an error that is allowed the fastest in three runs."""
    reference = exact(work)
    found = [*(ours(work, method) for method in METHODS[work.name]), *installed(work, peers)]
    rows = [described(work, solver, reference) for solver in found]
    trials = [min(seconds(s.run) for _ in range(3)) if allowed(r, work) else np.inf for s, r in zip(found, rows, strict=True) if is_ours(r)]
    best = int(np.argmin(trials))
    for parts in (found, rows):
        parts.insert(0, parts.pop(best))  # type: ignore[attr-defined]
    first, others = found[0], found[1:] or found  # alone, it takes turns with itself
    own, theirs = np.empty((rounds, len(others))), np.empty((rounds, len(others)))
    for i, j in np.ndindex(theirs.shape):
        own[i, j] = 1e6 * seconds(first.run) / first.members
        theirs[i, j] = 1e6 * seconds(others[j].run) / others[j].members
    rows[0] |= {"us": float(np.median(own)), "least_us": float(own.min()), "ratio": 1.0}
    for row, t, r in zip(rows[1:], theirs.T, (theirs / own).T, strict=False):
        row |= {"us": float(np.median(t)), "least_us": float(t.min()), "ratio": float(np.median(r))}
    return rows


def is_ours(row: dict[str, Any]) -> bool:
    """Whether a row is odesim's."""
    return str(row["solver"]).startswith("odesim")


def allowed(row: dict[str, Any], work: Work) -> bool:
    """Whether every member came to its end and the error is at most 10 times the tolerance (20 with saved points)."""
    return not row["failed"] and row["error"] <= (20 if work.grid else 10) * work.tolerance


def table(rows: list[dict[str, Any]], work: Work) -> str:
    """The rows of a workload as a Markdown table."""
    head = f"| {work.name}, {work.tolerance:.0e} | members | failed | µs | least µs | ratio | error |\n|---|---|---|---|---|---|---|"
    lines = []
    for r in rows:
        numbers = f"{r['us']:.3g} | {r['least_us']:.3g} | {r['ratio']:.3g} | {r['error']:.1e}"
        lines.append(f"| {r['solver']} | {r['members']} | {r['failed']} | {numbers} |")
    return "\n".join([head, *lines])


def judged(rows: list[dict[str, Any]], work: Work) -> list[str]:
    """A line a goal, of odesim's first row and the smallest ratio of each peer."""
    goal, least = GOALS[work.name]
    best = rows[0]
    if not allowed(best, work):
        return [f"{work.name}: missed, {best['solver']} has an error of {best['error']:.1e} and {best['failed']} members failed"]
    lines = [f"{work.name}: {best['us']:.3g} µs by {best['solver']}, goal {goal}: {'met' if best['us'] <= goal else 'missed'}"]
    for peer, wanted in least.items():
        reached = min((r["ratio"] for r in rows if r["solver"].startswith(peer)), default=None)
        if reached is not None:
            lines.append(f"{work.name}: {reached:.3g} x {peer}, goal {wanted}: {'met' if reached >= wanted else 'missed'}")
    return lines


def main() -> None:
    """Measures, prints, and writes JSON where asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--members", type=int, default=100_000)
    parser.add_argument("--works", default=",".join(METHODS))
    parser.add_argument("--peers", default=",".join(PEERS))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    load, rows = os.getloadavg()[0], []
    for name in options.works.split(","):
        work = make_work(name, options.members)
        rows.append(measure(work, options.rounds, [peer for peer in options.peers.split(",") if peer and name != "W2f"]))
        print(table(rows[-1], work), *judged(rows[-1], work), sep="\n", end="\n\n", flush=True)
    versions = {"odesim": odesim.__version__, **peer_versions(), "Python": platform.python_version()}
    loads = [round(load, 2), round(os.getloadavg()[0], 2)]
    print(f"{', '.join(f'{k} {v}' for k, v in versions.items())}; load {loads[0]} before, {loads[1]} after")
    if options.json:
        options.json.write_text(
            json.dumps({"rows": [row for part in rows for row in part], "versions": versions, "load": loads}, indent=1) + "\n"
        )


if __name__ == "__main__":
    main()

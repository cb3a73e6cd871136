"""Stiff members at equal error: odesim's Rosenbrock methods against numbalsoda, diffrax, CVODE and scipy, CPU time a trajectory.

python benchmarks/stiff.py [--rounds 7] [--works W4r,W4j] [--peers numbalsoda LSODA,...] [--seconds 0.4] [--json FILE]

The workloads are those of works.py. Each solver gets, of a ladder of tolerances by steps of sqrt(10), the loosest with which the error
over 24 members, spread evenly, is at most 1e-5 (W4r, relative above 1e-8) or 5e-6 (W4j); of three absolute tolerances, 1e-4, 1e-6 and
1e-8 of the relative one in W4r, the one that is then the fastest. It is timed on as many members, spread evenly, as take about the
given seconds, and takes turns with odesim as in ensemble.py. References: scipy's Radau at 1e-10 for W4r, separation of variables for
W4j. A solver that meets the error with no tolerance is named, and left out.
"""

import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from measuring import Report, Solver, add_times, arguments, fit_solver, least_ratio, seconds  # first: one thread

# isort: split
from ours import odesim_solver
from peers import STIFF, Peer
from works import Work, exact, make_work

MEMBERS, CHECKED = 100_000, 24
METHODS = ("rodas4", "rodas5p")
BOUNDS = {"W4r": 1e-5, "W4j": 5e-6}
LADDER = [10 ** (-k / 2) for k in range(6, 23)]  # 1e-3 to 1e-11
SMALL = {"W4r": (1e-4, 1e-6, 1e-8), "W4j": (1.0,)}
COLUMNS = (
    ("solver", "solver", ""),
    ("members", "members", "d"),
    ("failed", "failed", "d"),
    ("rtol", "rtol", ".1e"),
    ("atol", "atol", ".1e"),
    ("µs", "median", ".3g"),
    ("least µs", "least", ".3g"),
    ("ratio", "ratio", ".3g"),
    ("error", "error", ".1e"),
    ("steps", "steps", ".1f"),
    ("rejected", "rejected", ".1f"),
)
Make = Callable[[Work], Solver]


def loosest_tolerance(make: Make, work: Work, reference: Any, bound: float) -> tuple[Work, float] | None:
    """(work, error) with the loosest tolerance of LADDER that meets the bound on the error; None if none does."""
    for rtol in LADDER:
        tried = replace(work, tolerance=rtol)
        solver = make(tried)
        values, failed = solver.read(solver.run())
        if not failed and (error := work.error(values, reference)) <= bound:
            return tried, error
    return None


def fastest_tolerances(make: Make, work: Work, reference: Any, bound: float) -> tuple[float, float, float, float] | None:
    """(CPU seconds per member, rtol, small, error) of the fastest absolute tolerance, each with its loosest relative one."""
    found = []
    for small in SMALL[work.name]:
        met = loosest_tolerance(make, replace(work, small=small), reference, bound)
        if met is not None:
            solver = make(met[0])
            found.append((min(seconds(solver.run) for _ in range(2)) / solver.members, met[0].tolerance, small, met[1]))
    return min(found, default=None)


def measure(work: Work, rounds: int, peers: list[str], budget: float) -> list[dict[str, Any]]:
    """A row for each solver; odesim's fastest method is the first, and the denominator of ratios."""
    makes = {f"odesim {m}": Peer(MEMBERS, partial(odesim_solver, method=m)) for m in METHODS}
    makes |= {name: STIFF[name] for name in peers}
    checked = work.every(work.stride(CHECKED))
    reference = exact(checked)
    found: list[tuple[float, Solver, dict[str, Any]]] = []
    for name, peer in makes.items():
        try:
            best = fastest_tolerances(peer.make, checked, reference, BOUNDS[work.name])
        except ModuleNotFoundError as e:
            print(f"{name} left out: {e}", file=sys.stderr)
            continue
        if best is None:
            print(f"{name} left out: no tolerance down to {LADDER[-1]:.0e} meets the error in {work.name}", file=sys.stderr)
            continue
        _, rtol, small, error = best
        solver = fit_solver(peer.make, replace(work, tolerance=rtol, small=small), budget, peer.least, peer.most)
        first = solver.run()
        row = {"solver": solver.name, "members": solver.members, "failed": solver.read(first)[1], "rtol": rtol, "atol": rtol * small}
        found.append((min(seconds(solver.run) for _ in range(2)) / solver.members, solver, {**row, "error": error, **solver.counts(first)}))
    own = sorted((f for f in found if f[1].name.startswith("odesim")), key=lambda f: f[0])
    ordered = own + [f for f in found if f not in own]
    rows = [row for _, _, row in ordered]
    add_times(rows, [solver for _, solver, _ in ordered], rounds, 1e6)
    return rows


def main() -> None:
    """Runs the benchmark: measures, prints, and writes JSON for --json."""
    options = arguments(__doc__, rounds=7, works=",".join(BOUNDS), peers=",".join(STIFF), seconds=0.4).parse_args()
    report = Report("stiff")
    for name in options.works.split(","):
        rows = measure(make_work(name, MEMBERS), options.rounds, [p for p in options.peers.split(",") if p], options.seconds)
        lsoda = least_ratio(rows, "numbalsoda") or least_ratio(rows, "scipy LSODA")
        title = f"{name}, error at most {BOUNDS[name]:.0e}, {rows[0]['solver']} before each other solver"
        report.add({"title": title, "columns": COLUMNS, "rows": rows}, **{f"{name} µs": rows[0]["median"], f"{name} x LSODA": lsoda})
    report.write(options.json)


if __name__ == "__main__":
    main()

"""Many small systems: `odesim.ensemble` against heyoka, CyRK, numbalsoda, diffrax and scipy, CPU time a trajectory on one thread.

python benchmarks/ensemble.py [--rounds 7] [--members 100000] [--works W1-6,W1e,W1-9,W1s,W2] [--peers heyoka,...] [--json FILE]

The workloads are those of works.py, rtol = atol. A round runs every peer once, odesim's best method right before each of them, in one
process; a ratio is the median over rounds of peer / odesim in CPU time (user + system) a trajectory, a time the median of its runs.
Whole calls are timed, with nothing compiled in them. A slow peer integrates fewer members, spread evenly over all. The error is the
largest one over everything kept of 200 members, spread evenly too (those of them that the solver ran), against scipy's DOP853 at
1e-13, itself exact to some 1e-11. The peers are in pyproject's extra `bench`, for an environment of their own; one that is not
installed is left out, and named.
"""

from typing import Any

from measuring import Report, Solver, add_times, arguments, least_ratio, seconds  # first: one thread

# isort: split
import numpy as np
from ours import odesim_solver
from peers import EXPLICIT, make_solvers
from works import Work, exact, make_work

CHECKED = 200
METHODS = {
    "W1-6": ("tsit5",),
    "W1e": ("tsit5",),
    "W1-9": ("vern7", "dop853", "tsit5"),
    "W1s": ("tsit5",),
    "W2": ("tsit5", "vern7", "dop853"),
}
COLUMNS = (
    ("solver", "solver", ""),
    ("members", "members", "d"),
    ("failed", "failed", "d"),
    ("µs", "median", ".3g"),
    ("least µs", "least", ".3g"),
    ("ratio", "ratio", ".3g"),
    ("error", "error", ".1e"),
    ("steps", "steps", ".1f"),
    ("rejected", "rejected", ".1f"),
    ("events", "events", ".1f"),
)


def first_run_row(work: Work, solver: Solver, places: range, reference: np.ndarray) -> dict[str, Any]:
    """A row of results of a solver's first run, which also compiles. reference: exact results of the members at those places."""
    found = solver.run()
    values, failed = solver.read(found)
    ran = {i * solver.stride: y for i, y in enumerate(values)}
    error = max(work.error(ran[i], y) for i, y in zip(places, reference, strict=True) if i in ran)
    return {"solver": solver.name, "members": solver.members, "failed": failed, "error": error, **solver.counts(found)}


def measure(work: Work, rounds: int, peers: list[str]) -> list[dict[str, Any]]:
    """A row for each solver. The first, the denominator of ratios, is odesim's fastest method with an allowed error."""
    own = [odesim_solver(work, method) for method in METHODS[work.name]]
    if work.events:  # of the others none looks for events of many members
        able = [peer for peer in peers if peer == "heyoka"]
        others = [odesim_solver(work, METHODS[work.name][0], max_events=0), *make_solvers(work, EXPLICIT, able)]
    else:
        others = make_solvers(work, EXPLICIT, peers)
    solvers = own + others
    places = range(0, len(work.start), work.stride(CHECKED))
    reference = exact(work.every(work.stride(CHECKED)))
    rows = [first_run_row(work, solver, places, reference) for solver in solvers]
    trials = [min(seconds(s.run) for _ in range(3)) if is_allowed(r, work) else np.inf for s, r in zip(own, rows, strict=False)]
    best = int(np.argmin(trials))
    for parts in (solvers, rows):
        parts.insert(0, parts.pop(best))  # type: ignore[attr-defined]
    add_times(rows, solvers, rounds, 1e6)
    return rows


def is_allowed(row: dict[str, Any], work: Work) -> bool:
    """Whether all members reached the end with an error of at most 10 times the tolerance (20 with saved points)."""
    return not row["failed"] and bool(row["error"] <= (20 if work.grid else 10) * work.tolerance)


def main() -> None:
    """Runs the benchmark: measures, prints, and writes JSON for --json."""
    options = arguments(__doc__, rounds=7, members=100_000, works=",".join(METHODS), peers=",".join(EXPLICIT)).parse_args()
    report = Report("ensemble")
    for name in options.works.split(","):
        work = make_work(name, options.members)
        rows = measure(work, options.rounds, [peer for peer in options.peers.split(",") if peer])
        found: dict[str, float | None] = {f"{name} µs": rows[0]["median"] if is_allowed(rows[0], work) else None}
        found |= {f"{name} x {peer}": least_ratio(rows, peer) for peer in ("heyoka", "CyRK", "diffrax", "scipy")}
        if work.events:
            found = {"W1e / W1": 1 / rows[1]["ratio"], "W1e x heyoka": least_ratio(rows, "heyoka")}
        if work.grid:
            found[f"{name} error"] = rows[0]["error"] / work.tolerance
        title = f"{name} at {work.tolerance:.0e}, {options.members} members, {rows[0]['solver']} before each other solver"
        report.add({"title": title, "columns": COLUMNS, "rows": rows}, **found)
    report.write(options.json)


if __name__ == "__main__":
    main()

"""Steps of a fixed length: W2f, Lorenz with dt = 1e-3, against a numba loop and diffrax with a constant step, ns of CPU time a step.

python benchmarks/fixed.py [--rounds 7] [--seconds 0.4] [--json FILE]

1000 steps a member, of as many members, spread evenly over 100 000, as take about the given seconds. odesim's tsit5 takes turns with
each other solver, its own rk4 among them; the loop is the classical Runge-Kutta method, as a user writes it with numba. The error is
the largest of 50 members at the end against scipy's DOP853 at 1e-13.
"""

from functools import partial
from typing import Any

from measuring import Report, add_times, arguments, fit_solver  # first: one thread

# isort: split
from ours import odesim_solver
from peers import FIXED, make_solvers
from works import STEP, exact, make_work

MEMBERS, CHECKED = 100_000, 50
METHODS = ("tsit5", "rk4")
COLUMNS = (
    ("solver", "solver", ""),
    ("members", "members", "d"),
    ("failed", "failed", "d"),
    ("ns a step", "median", ".3g"),
    ("least", "least", ".3g"),
    ("ratio", "ratio", ".3g"),
    ("error", "error", ".1e"),
)


def main() -> None:
    """Runs the benchmark: measures, prints, and writes JSON for --json."""
    options = arguments(__doc__, rounds=7, seconds=0.4).parse_args()
    report, work = Report("fixed"), make_work("W2f", MEMBERS)
    makes = [partial(odesim_solver, method=method, step=STEP) for method in METHODS]
    solvers = [*(fit_solver(make, work, options.seconds, 16, MEMBERS) for make in makes), *make_solvers(work, FIXED, list(FIXED))]
    rows: list[dict[str, Any]] = []
    for solver in solvers:
        values, failed = solver.read(solver.run())
        some = range(0, len(values), max(1, len(values) // CHECKED))
        error = work.error(values[some], exact(work.every(solver.stride).every(some.step)))
        rows.append({"solver": solver.name, "members": solver.members, "failed": failed, "error": error})
    add_times(rows, solvers, options.rounds, 1e9 * STEP / work.end)
    found = {f"W2f {method} ns": row["median"] for method, row in zip(METHODS, rows, strict=False)}
    report.add({"title": "W2f, 1000 steps of 1e-3, odesim tsit5 before each other solver", "columns": COLUMNS, "rows": rows}, **found)
    report.write(options.json)


if __name__ == "__main__":
    main()

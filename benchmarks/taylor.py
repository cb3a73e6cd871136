"""Single orbits and W1 beside heyoka's Taylor series, at equal errors: CPU time of a run, everything compiled.

    PYTHONPATH=. python benchmarks/taylor.py [--rounds 5] [--json FILE] [PROBLEM ...]

Pleiades is that of problems.py; 1,000 orbits of Kepler's are at eccentricity .5, to their start; W1 is that of works.py, members in lanes
and in batches of 8. A run of heyoka sets its compiled integrator to the start and propagates it; one of odesim is a call
of `odesim.integrate`, .2 to .3 ms of which is what comes around the steps. For each error the fastest method and tolerance that meet it,
then in turns. Errors are the largest of all components at the end, against heyoka in long double, of the orbits against their
start, of W1 against separation of variables.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from measuring import Report, arguments, fit_solver, seconds  # first: one thread

# isort: split
import heyoka as hy
import numpy as np
from ours import odesim_solver
from peers import heyoka as heyoka_solver
from problems import end, kepler, pleiades
from works import Work, make_work, solve_by_separation

import odesim
from odesim.base.errors import SolveError
from odesim.symbolic import System

ERRORS = (1e-3, 1e-6, 1e-9, 1e-12)
TOLERANCES = [10.0**-k for k in range(3, 16)]
METHODS = ("tsit5", "dop853", "vern9", "taylor")
ORBITS = 1000
COLUMNS = (
    *(("problem", "name", ""), ("error", "bound", ".0e"), ("odesim", "method", ""), ("rtol", "rtol", ".0e"), ("reached", "error", ".1e")),
    *(("µs", "us", ".5g"), ("heyoka's tolerance", "its_rtol", ".0e"), ("reached", "its_error", ".1e"), ("µs", "its_us", ".5g")),
    ("heyoka / odesim", "ratio", ".2f"),
)
Run = Callable[[], Any]


@dataclass(frozen=True)
class Point:
    """A solver at a tolerance: its error at the end, and its run, with the seconds of one call and its members."""

    solver: str
    tolerance: float
    error: float
    run: Run
    took: float
    members: int = 1


def pleiades_right(q: Any) -> list[Any]:
    """The rates of seven stars: their places, then their speeds, each pair as in problems.bodies."""
    places, speeds = np.reshape(q[:14], (7, 2)), q[14:]
    pulls = []
    for i in range(7):
        for k in range(2):
            terms = [
                (j + 1) * (places[j][k] - places[i][k]) * hy.sum([(a - b) ** 2 for a, b in zip(places[i], places[j], strict=True)]) ** -1.5
                for j in range(7)
                if j != i
            ]
            pulls.append(hy.sum(terms))
    return [*speeds, *pulls]


def kepler_right(q: Any) -> list[Any]:
    x, y, u, v = q
    cube = (x**2 + y**2) ** -1.5
    return [u, v, -x * cube, -y * cube]


SINGLE: dict[str, tuple[Callable[[], System], Callable[[Any], list[Any]]]] = {
    "Pleiades": (pleiades, pleiades_right),
    "Kepler, 1,000 orbits": (partial(kepler, 0.5, 2 * np.pi * ORBITS, "orbits"), kepler_right),
}


def least(run: Run) -> float:
    """CPU seconds of a run, the least of five: by one alone a busy machine picks another tolerance each time."""
    return min(seconds(run) for _ in range(5))


def ours(system: System, method: str, tolerance: float) -> np.ndarray:
    """The end of a run of odesim."""
    return end(odesim.integrate(system, method=method, rtol=tolerance, atol=tolerance, max_steps=100_000_000))


def series(
    right: Callable[[Any], list[Any]], start: np.ndarray, until: float, tolerance: float, kind: Any = float
) -> Callable[[], np.ndarray]:
    """A run of heyoka, its end."""
    q = hy.make_vars(*(f"q{i}" for i in range(len(start))))
    integrator = hy.taylor_adaptive(
        list(zip(q, right(list(q)), strict=True)), start.astype(kind), tol=kind(tolerance), fp_type=kind, compact_mode=kind is not float
    )

    def run() -> np.ndarray:
        integrator.time = kind(0.0)
        integrator.state[:] = start
        integrator.propagate_until(kind(until))
        return np.array(integrator.state)

    return run


def single_points(name: str) -> list[Point]:
    """All solvers and tolerances of a single system."""
    make, right = SINGLE[name]
    system = make()
    start, until = np.array([float(e) for e in system.initial.values()]), float(system.span[1])
    reference = start if name.startswith("Kepler") else series(right, start, until, 1e-18, np.longdouble)()
    points = []
    for tolerance in TOLERANCES:
        runs: dict[str, Run] = {f"odesim {method}": partial(ours, system, method, tolerance) for method in METHODS}
        runs["heyoka"] = series(right, start, until, tolerance)
        for solver, run in runs.items():
            try:
                error = float(np.abs(run() - reference).max())
            except SolveError:  # taylor is for small systems
                continue
            points.append(Point(solver, tolerance, error, run, least(run)))
    return points


def many_points(name: str) -> list[Point]:
    """All solvers and tolerances of a Work, a member."""
    work = make_work(name, 20_000)
    checked = work.every(work.stride(48))
    reference = solve_by_separation(checked)  # scipy's DOP853 at 1e-13 is off by 6e-13
    makes: dict[str, Callable[[Work], Any]] = {f"odesim {m}": partial(odesim_solver, method=m) for m in METHODS} | {"heyoka": heyoka_solver}
    points = []
    for tolerance in TOLERANCES[:-1]:
        for solver, make in makes.items():
            few = make(replace(checked, tolerance=tolerance))
            values, failed = few.read(few.run())
            error = np.inf if failed else checked.error(values, reference[: len(values)])
            whole = fit_solver(make, replace(work, tolerance=tolerance), 0.03, 16, 20_000)
            points.append(Point(solver, tolerance, error, whole.run, least(whole.run), whole.members))
    return points


def rows_of(name: str, points: list[Point], rounds: int) -> list[dict[str, Any]]:
    """A row for each of ERRORS: the fastest of either side that meets it."""
    rows = []
    for bound in ERRORS:
        row: dict[str, Any] = {"name": name, "bound": bound}
        sides = [[p for p in points if p.error <= bound and (p.solver == "heyoka") == theirs] for theirs in (False, True)]
        best = [min(side, key=lambda p: p.took / p.members, default=None) for side in sides]
        times: list[list[float]] = [[], []]
        for _ in range(rounds):
            for p, taken in zip(best, times, strict=True):
                if p is not None:
                    taken.append(1e6 * seconds(p.run) / p.members)
        for p, taken, own in zip(best, times, ("", "its_"), strict=True):
            if p is not None:
                row |= {f"{own}rtol": p.tolerance, f"{own}error": p.error, f"{own}us": min(taken)}
                row |= {} if own else {"method": p.solver.partition(" ")[2]}
        if None not in best:
            row["ratio"] = row["its_us"] / row["us"]
        rows.append(row)
    return rows


def main() -> None:
    """Runs the benchmark: measures, prints, and writes JSON for --json."""
    names = [*SINGLE, "W1"]
    parser = arguments(__doc__ or "", rounds=5)
    parser.add_argument("problems", nargs="*", default=names, metavar="PROBLEM", help=", ".join(names))
    options = parser.parse_args()
    if unknown := {*options.problems} - {*names}:
        parser.error(f"no problem {', '.join(sorted(unknown))}; there are {'; '.join(names)}")
    report, rows = Report("taylor"), list[dict[str, Any]]()
    for name in options.problems:
        rows += rows_of(name, single_points(name) if name in SINGLE else many_points(f"{name}-6"), options.rounds)
    report.add({"title": "odesim and heyoka at equal errors", "columns": COLUMNS, "rows": rows})
    report.write(options.json)


if __name__ == "__main__":
    main()

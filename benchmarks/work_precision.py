"""Work-precision pictures: the error reached against the CPU time of a trajectory, for tolerances of 1e-3 to 1e-11.

python benchmarks/work_precision.py [--rounds 3] [--works W1,W2,W4r] [--seconds 0.15] [--out FOLDER] [--json FILE]

The workloads are those of works.py, the end of W1 and W2, 5 times of W4r. A point is a solver at one tolerance: the median time of a few
runs, each tolerance and solver in turn, on as many members, spread evenly, as take about the given seconds; the error is the largest
of 48 members (W4r: 12, relative) spread evenly. FOLDER gets work_precision_WORK.png; the table, read off
the same points, has the times at equal errors. Points whose members did not all come to their end are left out, and so is what follows
when the checked members alone take more than 10 times the seconds.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from measuring import Report, Solver, arguments, fit_solver, seconds  # first: one thread

# isort: split
import numpy as np
from matplotlib.figure import Figure
from ours import odesim_solver
from peers import EXPLICIT, STIFF, Peer
from works import Work, exact, make_work

from odesim.plot.style import new_figure, project_style

TOLERANCES = [10.0**-k for k in range(3, 12)]
MEMBERS = 100_000
METHODS = {"W1": ("tsit5", "vern7", "dop853", "vern9"), "W2": ("tsit5", "vern7", "dop853", "vern9"), "W4r": ("rodas4", "rodas5p")}
PEERS: dict[str, Mapping[str, Peer]] = {"W1": EXPLICIT, "W2": EXPLICIT, "W4r": STIFF}
# a colour for each library, a marker for each of its methods
COLORS = {
    "odesim": "#0072B2",
    "heyoka": "#D55E00",
    "CyRK": "#009E73",
    "numbalsoda": "#CC79A7",
    "diffrax": "#E69F00",
    "scipy": "#000000",
    "CVODE": "#56B4E9",
}
MARKERS = "os^D"
DPI = 180  # 110 mm across are then 780 dots, and a file some 80 kB
WORKS = {"W1": "W1-6", "W2": "W2", "W4r": "W4r"}
CHECKED = {"W1": 48, "W2": 48, "W4r": 12}
TITLES = {"W1": "W1: four saturating nodes", "W2": "W2: Lorenz to t = 1", "W4r": "W4r: Robertson's reactions"}
LEFT_OUT = ("scipy RK45", "diffrax Kvaerno3", "scipy BDF")  # a picture with all of them is not read
ERRORS = (1e-3, 1e-5, 1e-7, 1e-9)
COLUMNS = (("solver", "solver", ""), *((f"{error:.0e}", f"{error:.0e}", ".3g") for error in ERRORS))


def checked_error(few: Solver, work: Work, reference: np.ndarray) -> float:
    """The error of the checked members; inf if one fails."""
    values, failed = few.read(few.run())  # compiles
    return np.inf if failed else work.error(values, reference[: len(values)])  # heyoka takes members by 8


def solver_points(peer: Peer, work: Work, checked: Work, reference: np.ndarray, budget: float) -> Iterator[tuple[dict[str, Any], Solver]]:
    """A row and a solver a tolerance. None where a member fails; from where the checked members take 10 budgets on, no more."""
    for tolerance in TOLERANCES:
        few, tight = peer.make(replace(checked, tolerance=tolerance)), replace(work, tolerance=tolerance)
        error = checked_error(few, checked, reference)
        if seconds(few.run) > 10 * budget:
            print(f"{few.name} is too slow at {tolerance:.0e}", file=sys.stderr, flush=True)
            return
        solver = fit_solver(peer.make, tight, budget, peer.least, peer.most) if np.isfinite(error) else few
        if np.isfinite(error) and not solver.read(solver.run())[1]:
            yield {"solver": solver.name, "tolerance": tolerance, "members": solver.members, "error": error}, solver
        else:
            print(f"{few.name} fails at {tolerance:.0e}", file=sys.stderr, flush=True)


def measure(name: str, rounds: int, budget: float) -> list[dict[str, Any]]:
    """A row for each point: solvers in order, tolerances from loose to tight."""
    work = make_work(WORKS[name], MEMBERS)
    checked = work.every(work.stride(CHECKED[name]))
    reference = exact(checked)
    makes = {f"odesim {m}": Peer(MEMBERS, partial(odesim_solver, method=m)) for m in METHODS[name]}
    makes |= {n: peer for n, peer in PEERS[name].items() if n not in LEFT_OUT}
    points: list[tuple[dict[str, Any], Solver]] = []
    for solver_name, peer in makes.items():
        try:
            points += solver_points(peer, work, checked, reference, budget)
        except ModuleNotFoundError as e:
            print(f"{solver_name} left out: {e}", file=sys.stderr)
    times = np.array([[1e6 * seconds(solver.run) / solver.members for _, solver in points] for _ in range(rounds)])
    return [{**row, "us": float(t)} for (row, _), t in zip(points, np.median(times, axis=0), strict=True)]


def rows_at_errors(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A row for each solver with its microseconds at each of ERRORS, interpolated between its points, none beyond them."""
    out: list[dict[str, Any]] = []
    for solver in dict.fromkeys(row["solver"] for row in rows):
        points = sorted((np.log(r["error"]), np.log(r["us"])) for r in rows if r["solver"] == solver)
        errors, times = np.array(points).T
        at = np.exp(np.interp(np.log(ERRORS), errors, times, left=np.nan, right=np.nan))
        out.append({"solver": solver, **{f"{e:.0e}": float(t) for e, t in zip(ERRORS, at, strict=True) if np.isfinite(t)}})
    return out


def draw(name: str, rows: Sequence[Mapping[str, Any]]) -> Figure:
    """The picture of a work: a line for each solver; precise is right, fast is down."""
    solvers = list(dict.fromkeys(row["solver"] for row in rows))
    with project_style():
        figure = new_figure(78, width=110)
        ax = figure.add_subplot(xscale="log", yscale="log", title=TITLES[name])
        used: dict[str, int] = {}
        for solver in solvers:
            family = solver.replace(",", "").split()[0]
            used[family] = used.get(family, -1) + 1
            own = [row for row in rows if row["solver"] == solver]
            look: dict[str, Any] = {
                "color": COLORS[family],
                "marker": MARKERS[used[family]],
                "zorder": 2 + (family == "odesim"),
                "mec": "white",
                "mew": 0.3,
            }
            ax.plot([r["error"] for r in own], [r["us"] for r in own], lw=1.4 if family == "odesim" else 0.7, label=solver, ms=3.2, **look)
        ax.invert_xaxis()
        ax.grid(which="major", color="#dddddd", lw=0.4)
        ax.set_axisbelow(True)
        ax.set(xlabel="largest error" + (", relative" if name == "W4r" else ""), ylabel="CPU time a trajectory, µs")
        figure.legend(loc="outside lower center", ncols=3, columnspacing=1.0)
    return figure


def main() -> None:
    """Runs the benchmark: measures, prints, draws, and writes JSON for --json."""
    parser = arguments(__doc__, rounds=3, works=",".join(METHODS), seconds=0.15)
    parser.add_argument("--out", type=Path, help="folder of the pictures")
    options = parser.parse_args()
    report, points, pictures = Report("work_precision"), {}, []
    for name in options.works.split(","):
        rows = measure(name, options.rounds, options.seconds)
        points[name] = rows
        report.add({"title": f"{TITLES[name]}: µs a trajectory at an error of", "columns": COLUMNS, "rows": rows_at_errors(rows)})
        if options.out:
            options.out.mkdir(parents=True, exist_ok=True)
            pictures.append(f"work_precision_{name}.png")
            with project_style():
                draw(name, rows).savefig(options.out / pictures[-1], dpi=DPI)
    report.write(options.json, points=points, pictures=pictures)


if __name__ == "__main__":
    main()

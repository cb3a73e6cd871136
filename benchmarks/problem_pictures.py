"""Error against work on the small problems of problems.py: odesim beside scipy and CVODE, a picture with a panel for each.

    PYTHONPATH=. python benchmarks/problem_pictures.py [--out FOLDER] [--json FILE] [PROBLEM ...]

Tolerances from 1e-3 to 1e-11, atol in the ratio of the problem. The error is the largest over the states at the end, in units of the
largest, in a stiff problem each in units of itself, but at least 1e-6 of the largest. Work is counted, not timed, so that it is the same on
every machine: right-hand sides, and one for each Jacobian, whoever computes it; those that a peer spends on differences for a Jacobian do
not count. Solving linear systems does not count either: a step of a Rosenbrock method solves eight, one of BDF about two.

The exact end of a stiff problem is that of the Test Set for Initial Value Problem Solvers, of the others that of vern9 at 1e-13: errors
below 1e-11 and 1e-12 are taken for these, and are not drawn, nor are those above 1.
"""

import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from measuring import Report, arguments  # first: one thread

# isort: split
import numpy as np
import sympy as sp
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter
from problems import PROBLEMS, Problem, end
from scipy.integrate import solve_ivp

import odesim
from odesim.plot.style import new_figure, project_style
from odesim.symbolic import System, time
from tests.support.stiff_set import SET

TOLERANCES = [10.0**-k for k in range(3, 12)]
SMALL = 40
"""States of a problem that is drawn."""
KNOWN = {"HIRES": "hires", "Pollution": "pollution", "Robertson": "robertson", "Oregonator": "orego", "E5": "e5"}
KNOWN |= {"van der Pol, 1e3": "van_der_pol_1e03", "van der Pol, 1e6": "van_der_pol_1e06"}
NAMES = (*KNOWN, *(name for name, problem in PROBLEMS.items() if not problem.stiff))
COLORS = {"odesim": "#0072B2", "scipy": "#000000", "CVODE": "#56B4E9"}
LOOKS = {
    "odesim vern9": "-",
    "odesim rodas5p": "-",
    "odesim rodas4": "--",
    "odesim tsit5": "--",
    "scipy DOP853": "-",
    "scipy Radau": "-",
    "scipy LSODA": ":",
    "CVODE Adams": "-",
    "CVODE BDF": "-",
}
ERRORS = (1e-4, 1e-6, 1e-8)
COLUMNS = (("problem", "problem", ""), ("solver", "solver", ""), *((f"{error:.0e}", f"{error:.0e}", ".0f") for error in ERRORS))
Rate = Callable[[float, np.ndarray], Any]
Ended = tuple[np.ndarray, int] | None


def python_rate(name: str, system: System) -> Rate:
    """The right-hand side of a system without parameters, in Python."""
    if name == "Lorenz-96":
        return lambda t, y: (np.roll(y, -1) - np.roll(y, 2)) * np.roll(y, 1) - y + 8
    values = {p.symbol: p.default for p in system.params}
    states = list(system.equations)
    f = sp.lambdify([time, *states], [rate.subs(values) for rate in system.equations.values()], "math", cse=True)

    def rate(t: float, y: np.ndarray) -> Any:
        try:
            return f(t, *y.tolist())
        except (OverflowError, ValueError, ZeroDivisionError):  # a trial step far away
            return [math.nan] * len(states)

    return rate


def own(system: System, method: str, words: dict[str, Any], rtol: float, atol: float) -> Ended:
    """The end of a run by odesim, and its work; None where it does not come there."""
    run = odesim.integrate(system, method=method, **words | {"rtol": rtol, "atol": atol, "max_steps": 10**6})
    jacobians = run.stats["steps"] if run.method.startswith("rodas") else 0
    return (end(run), int(run.stats["rhs_calls"] + jacobians)) if run.ok else None


def by_scipy(rate: Rate, start: np.ndarray, span: tuple[float, float], method: str, rtol: float, atol: float) -> Ended:
    with np.errstate(all="ignore"):
        run = solve_ivp(rate, span, start, method=method, rtol=rtol, atol=atol)
    return (run.y[:, -1], int(run.nfev + run.njev)) if run.success else None


def by_cvode(rate: Rate, start: np.ndarray, span: tuple[float, float], method: str, rtol: float, atol: float) -> Ended:
    from sksundae.cvode import CVODE

    def into(t: float, y: np.ndarray, dy: np.ndarray) -> None:
        dy[:] = rate(t, y)

    run = CVODE(into, method=method, rtol=rtol, atol=atol, max_num_steps=10**6).solve(np.array(span), start)
    return (run.y[-1], int(run.nfev + run.njev)) if run.success else None


def exact(name: str, problem: Problem, system: System) -> np.ndarray:
    """The end."""
    if name in KNOWN:
        return np.array(SET[KNOWN[name]].states[system.span[1]])
    found = own(system, "vern9", problem.arguments(), 1e-13, problem.atol / problem.rtol * 1e-13)
    assert found is not None
    return found[0]


def least(name: str) -> float:
    """The error below which the exact end says nothing."""
    return 1e-11 if name in KNOWN else 1e-12


def solvers(name: str, problem: Problem, system: System) -> dict[str, Callable[[float, float], Ended]]:
    """{solver: its end and work at (rtol, atol)}."""
    rate, words, span = python_rate(name, system), problem.arguments(), system.span
    begun = odesim.integrate(
        system, method="tsit5", step=1e-9, span=(span[0], span[0] + 1e-9), **{k: words[k] for k in words if k == "sizes"}
    )
    start = np.concatenate([np.ravel(v[0]) for v in begun.y.values()])
    methods = ("rodas5p", "rodas4") if problem.stiff else ("vern9", "tsit5")
    found: dict[str, Callable[[float, float], Ended]] = {}
    for method in methods:
        found[f"odesim {method}"] = lambda rtol, atol, m=method: own(system, m, words, rtol, atol)  # type: ignore[misc]
    for method in ("Radau", "LSODA") if problem.stiff else ("DOP853", "LSODA"):
        found[f"scipy {method}"] = lambda rtol, atol, m=method: by_scipy(rate, start, span, m, rtol, atol)  # type: ignore[misc]
    method = "BDF" if problem.stiff else "Adams"
    found[f"CVODE {method}"] = lambda rtol, atol: by_cvode(rate, start, span, method, rtol, atol)
    return found


def measure(name: str) -> list[dict[str, Any]]:
    """A row for each solver and tolerance that came to the end."""
    problem = PROBLEMS[name]
    system = problem.system()
    reference = exact(name, problem, system)
    unit = np.maximum(np.abs(reference), (1e-6 if problem.stiff else 1.0) * np.max(np.abs(reference)))
    rows = []
    for solver, run in solvers(name, problem, system).items():
        for rtol in TOLERANCES:
            try:
                found = run(rtol, problem.atol / problem.rtol * rtol)
            except Exception as error:
                print(f"{name}, {solver}, {rtol:.0e}: {error}", file=sys.stderr, flush=True)
                continue
            if found is not None and np.all(np.isfinite(found[0])):
                error = max(float(np.max(np.abs(found[0] - reference) / unit)), least(name))
                rows.append({"problem": name, "solver": solver, "rtol": rtol, "error": error, "work": found[1]})
    return rows


def work_at_errors(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row for each problem and solver: the least work among its points with an error of at most each of ERRORS."""
    out = []
    for problem, solver in dict.fromkeys((row["problem"], row["solver"]) for row in rows):
        mine = [row for row in rows if (row["problem"], row["solver"]) == (problem, solver)]
        line: dict[str, Any] = {"problem": problem, "solver": solver}
        for error in ERRORS:
            works = [row["work"] for row in mine if row["error"] <= error]
            line |= {f"{error:.0e}": float(min(works))} if works else {}
        out.append(line)
    return out


def draw(rows: list[dict[str, Any]], names: list[str]) -> Figure:
    """A panel for each problem, precise is right, little work is down."""
    columns = 3
    lines = -(-len(names) // columns)
    with project_style():
        figure = new_figure(42 * lines + 14, width=170)
        handles: dict[str, Any] = {}
        for n, name in enumerate(names):
            ax = figure.add_subplot(lines, columns, n + 1, xscale="log", yscale="log", title=name)
            for solver in dict.fromkeys(row["solver"] for row in rows if row["problem"] == name):
                mine = [r for r in rows if (r["problem"], r["solver"]) == (name, solver) and least(name) < r["error"] < 1]
                look: dict[str, Any] = {"color": COLORS[solver.split()[0]], "ls": LOOKS[solver], "lw": 1.2, "ms": 2.5}
                marker = "s" if PROBLEMS[name].stiff else "o"
                (handles[solver],) = ax.plot([r["error"] for r in mine], [r["work"] for r in mine], marker=marker, label=solver, **look)
            ax.invert_xaxis()
            ax.yaxis.set_minor_formatter(NullFormatter())
            ax.grid(which="major", color="#dddddd", lw=0.4)
            ax.set_axisbelow(True)
            if n >= len(names) - columns:
                ax.set_xlabel("error at the end")
            if n % columns == 0:
                ax.set_ylabel("right-hand sides")
        figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=4, columnspacing=1.2, handlelength=3.5)
    return figure


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--out", type=Path, help="folder of the picture")
    parser.add_argument("problems", nargs="*", default=list(NAMES))
    given = parser.parse_args()
    report, rows, pictures = Report("problem_pictures"), [], []
    for name in given.problems:
        rows += measure(name)
        print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    report.add({"title": "Right-hand sides to an error of at most", "columns": COLUMNS, "rows": work_at_errors(rows)})
    if given.out:
        given.out.mkdir(parents=True, exist_ok=True)
        pictures.append("problem_pictures.png")
        draw(rows, given.problems).savefig(given.out / pictures[-1], dpi=140)
    report.write(given.json, ("odesim", "scipy", "scikit-sundae", "numpy", "sympy"), points=rows, pictures=pictures)


if __name__ == "__main__":
    main()

"""Stiff systems, most with sparse Jacobians, beside scipy and CVODE at equal error: CPU time of a call, everything compiled.

    PYTHONPATH=. python benchmarks/sparse.py [--rounds 5] [--error 1e-5] [--json FILE] [PROBLEM ...]

The systems are those of problems.py. The peers' right-hand sides are numba loops over the components cell by cell, so that their Jacobians
are narrow bands: LSODA and CVODE get the widths, scipy's BDF and Radau the pattern; in two dimensions CVODE has GMRES. HIRES and Pollution
are small: their right-hand sides are printed from the symbols, and the peers' Jacobians are dense. A discontinuity
in time ends a part of a peer's run, as it does here. Every solver runs at the tolerance of LADDER, atol = rtol / 100, that is the fastest
of those whose end is off by at most --error of the largest component; then in turns.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from measuring import Report, arguments, seconds  # first: one thread

# isort: split
import numba
import numpy as np
from problems import PROBLEMS, end
from scipy.integrate import solve_ivp
from scipy.sparse import coo_matrix
from sympy import cse, pycode, symbols

import odesim

LADDER = [10.0 ** (-k / 2) for k in range(4, 19)]
LONGEST = 20.0
"""Seconds of a call after which a solver's ladder ends."""
COLUMNS = (
    *(("problem", "name", ""), ("states", "states", "d"), ("solver", "solver", ""), ("rtol", "rtol", ".1e"), ("error", "error", ".1e")),
    *(("ms", "ms", ".3g"), ("times odesim's best", "ratio", ".2f")),
)
Rate = Callable[[float, np.ndarray, np.ndarray], None]
compiled: Any = numba.njit(error_model="numpy")


@compiled
def heat(t: float, y: np.ndarray, dy: np.ndarray) -> None:
    """See problems.heat."""
    n = len(y)
    for i in range(n):
        before, after = y[i - 1] if i > 0 else 0.0, y[i + 1] if i < n - 1 else 0.0
        dy[i] = (n + 1) ** 2 * (before - 2 * y[i] + after)


@compiled
def burgers(t: float, y: np.ndarray, dy: np.ndarray) -> None:
    """See problems.burgers."""
    n = len(y)
    for i in range(n):
        before, after = y[i - 1] if i > 0 else 0.0, y[i + 1] if i < n - 1 else 0.0
        dy[i] = (before**2 - after**2) * ((n + 1) / 4) + 1e-3 * (n + 1) ** 2 * (before - 2 * y[i] + after)


@compiled
def brusselator(t: float, y: np.ndarray, dy: np.ndarray) -> None:
    """See problems.brusselator; u and v of a cell are neighbours."""
    n = len(y) // 2
    alpha = (n + 1) ** 2 / 50
    for i in range(n):
        u, v = y[2 * i], y[2 * i + 1]
        square = (1 + u) ** 2 * (3 + v)
        u0, v0 = (y[2 * i - 2], y[2 * i - 1]) if i > 0 else (0.0, 0.0)
        u1, v1 = (y[2 * i + 2], y[2 * i + 3]) if i < n - 1 else (0.0, 0.0)
        dy[2 * i] = 1 + square - 4 * (1 + u) + alpha * (u0 - 2 * u + u1)
        dy[2 * i + 1] = 3 * (1 + u) - square + alpha * (v0 - 2 * v + v1)


@compiled
def medakzo(t: float, y: np.ndarray, dy: np.ndarray) -> None:
    """See problems.medakzo; u and v of a cell are neighbours."""
    n = len(y) // 2
    for i in range(n):
        z = (i + 1) / n
        alpha, beta = 2 * (z - 1) ** 3 / 16, (z - 1) ** 4 / 16
        before = y[2 * i - 2] if i > 0 else (2.0 if t <= 5 else 0.0)
        after = y[2 * i + 2] if i < n - 1 else 0.0
        reaction = 100 * y[2 * i] * y[2 * i + 1]
        dy[2 * i] = alpha * (after - before) * n / 2 + beta * (before - 2 * y[2 * i] + after) * n**2 - reaction
        dy[2 * i + 1] = -reaction


@compiled
def brusselator2d(t: float, y: np.ndarray, dy: np.ndarray) -> None:
    """See problems.brusselator2d; u and v of a cell are neighbours."""
    n = round((len(y) // 2) ** 0.5)
    alpha = n**2 / 10
    for i in range(n):
        for j in range(n):
            here, up, down = 2 * (i * n + j), 2 * ((i + 1) % n * n + j), 2 * ((i + n - 1) % n * n + j)
            left, right = 2 * (i * n + (j + n - 1) % n), 2 * (i * n + (j + 1) % n)
            u, v = y[here], y[here + 1]
            source = 5.0 if t >= 1.1 and (i / n - 0.3) ** 2 + (j / n - 0.6) ** 2 <= 0.01 + 1e-9 else 0.0
            dy[here] = 1 + u * u * v - 4.4 * u + source + alpha * (y[up] + y[down] + y[left] + y[right] - 4 * u)
            dy[here + 1] = 3.4 * u - u * u * v + alpha * (y[up + 1] + y[down + 1] + y[left + 1] + y[right + 1] - 4 * v)


def printed(name: str) -> Rate:
    """The right-hand side of a problem whose states are scalars, from its equations; what they share is computed once."""
    equations = PROBLEMS[name].system().equations
    shared, rates = cse([e.subs(dict(zip(equations, symbols(f"y_:{len(equations)}"), strict=True))) for e in equations.values()])
    states = [f"y_{k} = y[{k}]" for k in range(len(equations))]
    lines = [*states, *(f"{s} = {pycode(e)}" for s, e in shared), *(f"dy[{k}] = {pycode(e)}" for k, e in enumerate(rates))]
    scope: dict[str, Any] = {}
    exec("\n    ".join(["def rate(t, y, dy):", *lines]), scope)
    return compiled(scope["rate"])  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Case:
    """A peer's right-hand side: states in a cell, width of the band on either side (0: none), times where the right-hand side jumps.

    linear: CVODE's solver of linear systems.
    """

    rate: Rate
    fields: int
    band: int
    breaks: tuple[float, ...] = ()
    linear: str = "band"


ALL = PROBLEMS | {f"Brusselator 2-D, {N}": replace(PROBLEMS["Brusselator 2-D"], sizes={"N": N}) for N in (32, 64)}
CASES = {
    "HIRES": Case(printed("HIRES"), 1, 0, linear="dense"),
    "Pollution": Case(printed("Pollution"), 1, 0, linear="dense"),
    "heat": Case(heat, 1, 1),
    "MEDAKZO": Case(medakzo, 2, 2, (5.0,)),
    "Brusselator": Case(brusselator, 2, 2),
    "Burgers": Case(burgers, 1, 1),
    "Brusselator 2-D": Case(brusselator2d, 2, 0, (1.1,), "gmres"),
    "Brusselator 2-D, 32": Case(brusselator2d, 2, 0, (1.1,), "gmres"),
    "Brusselator 2-D, 64": Case(brusselator2d, 2, 0, (1.1,), "gmres"),
    "Brusselator 2-D, 100": Case(brusselator2d, 2, 0, (1.1,), "gmres"),
}


def pattern(case: Case, n: int) -> Any:
    """The sparsity (n, n) of the Jacobian, from differences around a random state."""
    cells = n // case.fields
    side = round(cells**0.5)
    pairs = set()
    for k in range(cells):
        near = (k - 1, k, k + 1)
        if not case.band:
            i, j = divmod(k, side)
            near = (k, (i + 1) % side * side + j, (i - 1) % side * side + j, i * side + (j + 1) % side, i * side + (j - 1) % side)
        for q in near:
            if 0 <= q < cells:
                pairs |= {(case.fields * k + a, case.fields * q + b) for a in range(case.fields) for b in range(case.fields)}
    rows, columns = np.array(sorted(pairs)).T
    return coo_matrix((np.ones(len(rows)), (rows, columns)), shape=(n, n)).tocsc()


def scipy_run(case: Case, method: str, y: np.ndarray, times: list[float], rtol: float) -> np.ndarray | None:
    """The end of a run by scipy, part by part; None where it fails."""
    dy = np.empty_like(y)

    def right(t: float, x: np.ndarray) -> np.ndarray:
        case.rate(t, x, dy)
        return dy.copy()

    bands: dict[str, Any] = {"lband": case.band, "uband": case.band} if case.band else {}
    more = bands if method == "LSODA" else {} if case.linear == "dense" else {"jac_sparsity": pattern(case, len(y))}
    for a, b in pairwise(times):
        # the value of t at a break belongs to the part before it
        found = solve_ivp(right, (np.nextafter(a, b), b), y, method=method, rtol=rtol, atol=rtol / 100, t_eval=[b], **more)
        if not found.success:
            return None
        y = found.y[:, -1]
    return y


def cvode_run(case: Case, solver: str, y: np.ndarray, times: list[float], rtol: float) -> np.ndarray | None:
    """The end of a run by CVODE's BDF with this linear solver, part by part; None where it fails."""
    from sksundae.cvode import CVODE

    words: dict[str, Any] = {"lband": case.band, "uband": case.band} if case.band else {}
    for a, b in pairwise(times):
        one = CVODE(case.rate, method="BDF", rtol=rtol, atol=rtol / 100, linsolver=solver, max_num_steps=1_000_000, **words)
        found = one.solve(np.array([np.nextafter(a, b), b, b + 1e-3 * (b - a)]), y)  # of two times it would return its own steps
        if not found.success:
            return None
        y = found.y[1]
    return y


def solvers(name: str) -> tuple[dict[str, Callable[[float], np.ndarray | None]], np.ndarray]:
    """{solver: its end at a relative tolerance}, in odesim's order of components, and the exact end."""
    problem, case = ALL[name], CASES[name]
    system = problem.system()
    words = {"sizes": problem.sizes, "max_steps": 1_000_000}
    first = odesim.integrate(system, method="tsit5", step=1e-9, span=(0.0, 1e-9), **words)  # type: ignore[arg-type]
    start = np.concatenate([np.ravel(v[0]) for v in first.y.values()])
    cells = len(start) // case.fields
    times = [system.span[0], *case.breaks, system.span[1]]

    def own(method: str) -> Callable[[float], np.ndarray | None]:
        def run(rtol: float) -> np.ndarray | None:
            done = odesim.integrate(system, method=method, rtol=rtol, atol=rtol / 100, **words)  # type: ignore[arg-type]
            return end(done) if done.ok else None

        return run

    def peer(integrate: Callable[..., np.ndarray | None], kind: str) -> Callable[[float], np.ndarray | None]:
        by_cell = start.reshape(case.fields, cells).T.ravel().copy()

        def run(rtol: float) -> np.ndarray | None:
            last = integrate(case, kind, by_cell, times, rtol)
            return None if last is None else last.reshape(cells, case.fields).T.ravel()

        return run

    methods = ("rodas5p", "auto") if case.linear == "dense" else ("rodas5p", "rkc", "auto")  # rkc takes minutes for Pollution
    found = {f"odesim {method}": own(method) for method in methods}
    # on 24 x 24 cells scipy's take 14 and 29 times as long as CVODE: left out where there are more
    kinds = ("BDF", "Radau", "LSODA") if case.linear != "gmres" else ("BDF", "Radau") if cells < 1000 else ()
    found |= {f"scipy {kind}": peer(scipy_run, kind) for kind in kinds}
    found[f"CVODE {case.linear}"] = peer(cvode_run, case.linear)
    exact = own("vern7")(1e-9) if case.linear == "gmres" else own("rodas5p")(1e-10)  # of 20,000 states rodas5p would take minutes
    assert exact is not None
    return found, exact


def fastest(run: Callable[[float], np.ndarray | None], exact: np.ndarray, bound: float) -> tuple[float, float, float] | None:
    """(seconds, rtol, error) of the fastest tolerance that meets the bound; None where none does."""
    found = []
    size = float(np.abs(exact).max())
    for rtol in LADDER:
        last = run(rtol)
        error = np.inf if last is None else float(np.abs(last - exact).max()) / size
        took = seconds(lambda rtol=rtol: run(rtol))  # type: ignore[misc]
        if took < 0.1:
            took = min(took, *(seconds(lambda rtol=rtol: run(rtol)) for _ in range(2)))  # type: ignore[misc]
        if error <= bound:
            found.append((took, rtol, error))
        if took > LONGEST or len(found) == 3:  # finer ones cost more
            break
    return min(found, default=None)


def measure(name: str, rounds: int, bound: float) -> list[dict[str, Any]]:
    """A row for each solver, odesim's first."""
    runs, exact = solvers(name)
    best = {}
    for solver, run in runs.items():
        try:
            found = fastest(run, exact, bound)
        except ModuleNotFoundError as error:
            print(f"{solver} left out: {error}", file=sys.stderr)
            continue
        if found is None:
            print(f"{name}, {solver}: no tolerance meets the error", file=sys.stderr)
            continue
        best[solver] = found
    times: dict[str, list[float]] = {solver: [] for solver in best}
    for _ in range(rounds):
        for solver, (_, rtol, _) in best.items():
            times[solver].append(seconds(lambda run=runs[solver], rtol=rtol: run(rtol)))  # type: ignore[misc]
    ms = {solver: 1e3 * float(np.median(t)) for solver, t in times.items()}
    own = min(value for solver, value in ms.items() if solver.startswith("odesim"))
    return [
        {"name": name, "states": len(exact), "solver": solver, "rtol": rtol, "error": error, "ms": ms[solver], "ratio": ms[solver] / own}
        for solver, (_, rtol, error) in best.items()
    ]


def main() -> None:
    """Runs the benchmark: measures, prints, and writes JSON for --json."""
    parser = arguments(__doc__, rounds=5, error=1e-5)
    parser.add_argument("problems", nargs="*", default=list(CASES), metavar="PROBLEM", help=", ".join(CASES))
    options = parser.parse_args()
    report = Report("sparse")
    for name in options.problems:
        report.add({"title": name, "columns": COLUMNS, "rows": measure(name, options.rounds, options.error)})
    report.write(options.json)


if __name__ == "__main__":
    main()

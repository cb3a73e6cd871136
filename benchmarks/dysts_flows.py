"""The chaotic flows of the collection dysts, two periods each: odesim beside SciPy's DOP853, and Lyapunov exponents.

    PYTHONPATH=. python benchmarks/dysts_flows.py [--flows Lorenz,Rossler] [--json FILE]

dysts (W. Gilpin, NeurIPS Datasets and Benchmarks 2021, PyPI `dysts`) is a collection that others made: right-hand sides in Python, starts,
periods. Every flow without delay becomes a System by calling its right-hand side with symbols. odesim and DOP853 then go on for two
periods, at a relative tolerance of 1e-9, from the same start.

error: the largest over the states at the end, in units of the standard deviation that the collection gives of each, against DOP853 at
1e-13. `passed` are flows whose error is at most 1e-6, or at most ten times that of DOP853 at the same tolerance where chaos or a jump makes
both larger. Nothing is timed: right-hand sides are counted.
"""

import json
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import reduce
from pathlib import Path
from typing import Any

from measuring import Report, arguments  # first: one thread

# isort: split
import numpy as np
import sympy as sp
from scipy.integrate import solve_ivp

import odesim
from odesim.symbolic import Source, System, time

RTOL = 1e-9
METHODS = ("auto", "vern9")
EXPONENTS = ("Lorenz", "Rossler", "Halvorsen", "Thomas", "SprottB", "HenonHeiles", "HyperRossler")
"""Flows whose exponents are in print elsewhere too, or whose sums follow from their divergence."""
FUNCTIONS = ("sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "log", "sqrt", "sign")
Rates = Callable[[float, np.ndarray], np.ndarray]


def least(of: Any, x: Any, axis: int | None) -> Any:
    """sp.Min or sp.Max of an array of expressions, along an axis or of all."""
    return reduce(of, np.ravel(x)) if axis is None else np.apply_along_axis(lambda row: reduce(of, row), axis, x)


class Symbolic:
    """numpy, with functions that take symbols: what the right-hand sides of the collection call np."""

    def __getattr__(self, name: str) -> Any:
        if name in FUNCTIONS:
            return np.frompyfunc(getattr(sp, name), 1, 1)
        return getattr(np, name)

    abs = staticmethod(np.frompyfunc(sp.Abs, 1, 1))
    heaviside = staticmethod(np.frompyfunc(lambda x, at_zero: sp.Heaviside(x, sp.nsimplify(at_zero)), 2, 1))
    min = staticmethod(lambda x, axis=None: least(sp.Min, x, axis))
    max = staticmethod(lambda x, axis=None: least(sp.Max, x, axis))

    @staticmethod
    def zeros_like(x: Any) -> Any:
        return np.zeros(np.shape(x), object)


def collection() -> Any:
    """The module of flows, with its right-hand sides as plain Python: compiled ones take no symbols."""
    known = sys.modules.get("numba")
    sys.modules["numba"] = None  # type: ignore[assignment]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that there is no numba
            import dysts.flows as flows
    finally:
        if known is None:
            del sys.modules["numba"]
        else:
            sys.modules["numba"] = known
    return flows


def facts(flows: Any) -> dict[str, dict[str, Any]]:
    """{flow: what the collection says of it}, of those without delay."""
    folder = Path(flows.__file__).parent / "data"
    every = json.loads((folder / "chaotic_attractors.json").read_text(encoding="utf-8"))
    return {name: fact for name, fact in every.items() if not fact["delay"]}


@contextmanager
def symbolic(flows: Any) -> Iterator[None]:
    """A context in which the module's right-hand sides take symbols."""
    plain = flows.np
    flows.np, flows.max, flows.min = Symbolic(), sp.Max, sp.Min
    try:
        yield
    finally:
        flows.np = plain
        del flows.max, flows.min


def whole_powers(e: sp.Expr) -> sp.Expr:
    """x**2.0 as x**2, which every x has."""
    powers = {a: a.base ** int(a.exp) for a in e.atoms(sp.Pow) if a.exp.is_Float and float(a.exp).is_integer()}
    return whole_powers(e.xreplace(powers)) if powers else e


def make_system(flows: Any, name: str, fact: dict[str, Any]) -> System:
    """A flow of the collection as a System with the states y0, y1, ..., over two periods."""
    states = sp.symbols(f"y:{len(fact['initial_conditions'])}", real=True)
    with symbolic(flows):
        rates = getattr(flows, name)().rhs(np.array(states, object), time)
    return System(
        name=f"dysts.{name}",
        source=Source("gilpin2021", name),
        axes={},
        params=(),
        equations={y: whole_powers(sp.sympify(rate)) for y, rate in zip(states, rates, strict=True)},
        initial={y: float(start) for y, start in zip(states, fact["initial_conditions"], strict=True)},
        span=(0.0, 2.0 * fact["period"]),
    )


def by_dop853(rate: Rates, start: Any, end: float, rtol: float, atol: Any) -> tuple[np.ndarray, int]:
    """The state at the end and the right-hand sides that it took."""
    with np.errstate(all="ignore"):
        run = solve_ivp(rate, (0.0, end), start, method="DOP853", rtol=rtol, atol=atol)
    if not run.success:
        return np.full(len(start), np.nan), int(run.nfev)
    return run.y[:, -1], int(run.nfev)


def measure(flows: Any, name: str, fact: dict[str, Any]) -> dict[str, Any]:
    """A row of the table."""
    row: dict[str, Any] = {"name": name, "states": len(fact["initial_conditions"]), "runs": {}}
    size = np.array(fact["std"])
    atol = 1e-3 * RTOL * np.where(size > 0, size, 1.0)
    try:
        system = make_system(flows, name, fact)
    except Exception as error:  # a right-hand side of theirs that takes no symbols
        return row | {"status": "no System", "why": f"{type(error).__name__}: {error}", "passed": False}
    model = getattr(flows, name)()

    def rate(t: float, y: np.ndarray) -> np.ndarray:
        return np.asarray(model.rhs(y, t), float)

    start, end = np.array(fact["initial_conditions"], float), system.span[1]
    exact, _ = by_dop853(rate, start, end, 1e-13, 1e-4 * atol)

    def error_of(y: np.ndarray) -> float:
        return float(np.max(np.abs(y - exact) * 1e-3 * RTOL / atol))

    theirs, count = by_dop853(rate, start, end, RTOL, atol)
    row |= {"dop853": error_of(theirs), "dop853_calls": count}
    for method in METHODS:
        run = odesim.integrate(system, method=method, rtol=RTOL, atol=dict(zip(system.states, atol, strict=True)), max_steps=10**7)
        error = error_of(np.array([float(run.final[y]) for y in system.states]))
        passed = run.ok and (error <= 1e-6 or error <= 10 * row["dop853"])
        row["runs"][method] = {"error": error, "calls": int(run.stats["rhs_calls"]), "passed": bool(passed)}
        if method == "auto":
            row |= {"status": run.status, "method": run.method, **row["runs"][method]}
    return row


def exponents(flows: Any, name: str, fact: dict[str, Any]) -> dict[str, Any]:
    """A row of Lyapunov exponents: ours over 500 periods, the collection's, and what their sum must be where the divergence is constant."""
    system = make_system(flows, name, fact)
    found = odesim.lyapunov(system, span=(0.0, 500.0 * fact["period"]), rtol=1e-8)
    divergence = sp.simplify(sum(rate.diff(y) for y, rate in system.equations.items()))
    values = np.asarray(found["value"], float)
    return {
        "name": name,
        "ours": " ".join(f"{v:.4f}" for v in values),
        "error": float(np.asarray(found["error"], float)[0]),
        "theirs": " ".join(f"{v:.4f}" for v in fact["lyapunov_spectrum_estimated"]),
        "sum": float(values.sum()),
        "divergence": float(divergence) if divergence.is_number else None,
    }


def score(rows: list[dict[str, Any]], method: str) -> dict[str, Any]:
    """How many flows passed by a method, and its error and right-hand sides over DOP853's: medians over the flows that both finish."""
    runs = [(row["runs"][method], row) for row in rows if row["runs"]]
    both = [(run, row) for run, row in runs if np.isfinite(run["error"]) and np.isfinite(row["dop853"])]
    errors = [float(np.log10(max(run["error"], 1e-16) / max(row["dop853"], 1e-16))) for run, row in both]
    return {
        "method": method,
        "flows": len(rows),
        "passed": sum(run["passed"] for run, _ in runs),
        "better": sum(e < 0 for e in errors),
        "error_ratio": float(10 ** np.median(errors)) if errors else None,
        "calls_ratio": float(np.median([run["calls"] / row["dop853_calls"] for run, row in both])) if both else None,
    }


SCORE = (
    *(("method", "method", ""), ("flows", "flows", "d"), ("passed", "passed", "d"), ("nearer than DOP853", "better", "d")),
    *(("error / DOP853's, median", "error_ratio", ".2g"), ("right-hand sides / DOP853's, median", "calls_ratio", ".2g")),
)
FLOWS = (
    *(("flow", "name", ""), ("states", "states", "d"), ("status", "status", ""), ("method", "method", ""), ("error", "error", ".1e")),
    *(("DOP853's", "dop853", ".1e"), ("right-hand sides", "calls", "d"), ("DOP853's", "dop853_calls", "d")),
)
SPECTRA = (
    *(("flow", "name", ""), ("exponents", "ours", ""), ("error of the first", "error", ".1g"), ("dysts says", "theirs", "")),
    *(("sum", "sum", ".5g"), ("divergence", "divergence", ".5g")),
)


def main() -> None:
    parser = arguments(__doc__ or "", flows="")
    given = parser.parse_args()
    flows = collection()
    every = facts(flows)
    names = given.flows.split(",") if given.flows else list(every)
    report = Report("dysts_flows")
    rows = []
    for name in names:
        rows.append(measure(flows, name, every[name]))
        print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    report.add({"title": "Flows of dysts over two periods at 1e-9", "columns": SCORE, "rows": [score(rows, method) for method in METHODS]})
    worst = sorted(rows, key=lambda row: (row["passed"], -row.get("error", np.inf)))[:12]
    report.add({"title": "The worst twelve", "columns": FLOWS, "rows": worst})
    spectra = [exponents(flows, name, every[name]) for name in EXPONENTS if name in names]
    report.add({"title": "Lyapunov exponents over 500 periods", "columns": SPECTRA, "rows": spectra})
    report.write(given.json, ("odesim", "dysts", "numpy", "scipy", "sympy"), flows=rows)


if __name__ == "__main__":
    main()

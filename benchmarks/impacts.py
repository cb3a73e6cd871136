"""An oscillator that strikes a wall, x'' + x = F cos(w t) with v -> -r v at x = c: members with impacts against the same without.

python benchmarks/impacts.py [--rounds 9] [--members 3600] [--json FILE]

The ratio of the CPU times of the two ensembles, which take turns; and that of members one by one, as single runs of the same engine's
bits. Medians of the rounds.
"""

from typing import Any

from measuring import Report, arguments, seconds  # first: one thread

# isort: split
import numpy as np
import sympy as sp
from sympy import Interval, cos, oo

import odesim
from odesim.symbolic import Event, Param, Source, System
from odesim.symbolic import time as t

COLUMNS = (
    ("method", "method", ""),
    ("impacts a member", "impacts", ".3g"),
    ("without, µs a member", "without", ".3g"),
    ("with", "with", ".3g"),
    ("ratio", "ratio", ".3g"),
    ("a single run", "single", ".4g"),
)
METHODS = ("tsit5", "dop853")
SPAN = (0.0, 60.0)


def oscillator(wall: bool) -> System:
    """The oscillator, with a wall or without."""
    x, v, w, force, c, r = sp.symbols("x v w F c r", real=True)
    values = {w: 0.7, force: 1.0, c: 0.5, r: 0.8}
    return System(
        name="benchmarks.impacts",
        source=Source("own", "benchmark"),
        axes={},
        equations={x: v, v: force * cos(w * t) - x},
        params=tuple(Param(p, value, Interval(-oo, oo), "") for p, value in values.items()),
        initial={x: 0, v: 0},
        span=SPAN,
        events=(Event("hit", x - c, 1, resets={v: -r * v}),) if wall else (),
    )


def row(method: str, members: int, rounds: int) -> dict[str, Any]:
    """A row of the table: a grid of frequencies and forces."""
    side = round(members**0.5)
    grid = {"w": np.linspace(0.5, 1.3, side), "F": np.linspace(0.5, 1.5, side)}
    systems = oscillator(wall=False), oscillator(wall=True)

    def run(system: System) -> Any:
        return odesim.ensemble(system, grid=grid, method=method)

    impacts = float(run(systems[1]).hit_count.mean())
    run(systems[0]), odesim.integrate(systems[1], method=method)
    times = 1e6 / side**2 * np.array([[seconds(lambda s=s: run(s)) for s in systems] for _ in range(rounds)])
    single = [1e6 * seconds(lambda: odesim.integrate(systems[1], method=method)) for _ in range(rounds)]
    without, hit = np.median(times, axis=0)
    ratio = float(np.median(times[:, 1] / times[:, 0]))
    return {"method": method, "impacts": impacts, "without": without, "with": hit, "ratio": ratio, "single": float(np.median(single))}


def main() -> None:
    """Runs the benchmark: measures, prints, and writes JSON for --json."""
    options = arguments(__doc__, rounds=9, members=3600).parse_args()
    report = Report("impacts")
    rows = [row(method, options.members, options.rounds) for method in METHODS]
    title = f"{options.members} oscillators that strike a wall"
    report.add({"title": title, "columns": COLUMNS, "rows": rows}, **{f"impacts {r['method']}": r["ratio"] for r in rows})
    report.write(options.json, ("odesim", "numpy", "numba"))


if __name__ == "__main__":
    main()

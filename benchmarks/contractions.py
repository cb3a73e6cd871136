"""Right-hand sides that are matrix products, beside numpy: time of one evaluation on one thread, and of the first call.

python benchmarks/contractions.py [--rounds 7] [--json FILE] [CASE ...]

"numpy / odesim" above 1: odesim is faster. The two take turns; medians over rounds. odesim's right-hand side is called from compiled
code, as its integrators call it; numpy's from Python, as scipy's do. "first call": CPU seconds from a System to its first rates with an
empty cache. "error": the largest difference to numpy, relative to the largest rate.
"""

import os
import tempfile
import time
from collections.abc import Callable
from typing import Any

from measuring import Report, arguments  # first: one thread

# isort: split
import numba
import numpy as np
from contraction_cases import CASES, Case
from model_cases import MODEL_CASES

from odesim.runtime.intrinsics import call
from odesim.targets.compiled import compile_system

COLUMNS = (
    ("right-hand side", "name", ""), ("sizes", "sizes", ""), ("numpy, µs", "numpy", ".4g"), ("odesim, µs", "ours", ".4g"),
    ("numpy / odesim", "ratio", ".2f"), ("first call, s", "first", ".1f"), ("error", "error", ".1e"),
)  # fmt: skip


@numba.njit
def evaluations(stage: int, table: int, y: int, out: int, rows: int, count: int) -> None:
    """Calls the right-hand side `count` times."""
    for _ in range(count):
        call(stage, (table, 0.0, y, out, rows, rows, 0, 0, 0))


def per_call(calls: Callable[[int], Any], seconds: float = 0.1) -> float:
    """CPU microseconds of a call, from as many as take `seconds`; calls(n) makes n of them."""
    count, begun = 0, time.process_time()
    while (spent := time.process_time() - begun) < seconds:
        calls(1 + count // 2)
        count += 1 + count // 2
    return 1e6 * spent / count


def measure(case: Case, sizes: dict[str, int], rounds: int) -> dict[str, Any]:
    """A row: both in turns."""
    states, params = case.values(sizes, np.random.default_rng(0))
    begun = time.process_time()
    bound = compile_system(case.system).bind(sizes, params)
    order = bound.layout.names
    y = np.concatenate([np.ravel(states[name]) for name in order])
    out = np.empty_like(y)
    bound(0.0, y, out)
    first = time.process_time() - begun
    known = {**params, **sizes}
    want = np.concatenate([np.ravel(rate) for rate in (case.numpy(states, known)[name] for name in order)])
    error = float(np.abs(out - want).max() / np.abs(want).max())
    rows = np.zeros(1, np.int64)
    places = bound.stage, bound.table, y.ctypes.data, out.ctypes.data, rows.ctypes.data

    def in_numpy(count: int) -> None:
        for _ in range(count):
            case.numpy(states, known)

    evaluations(*places, 1)
    times = np.array([(per_call(in_numpy), per_call(lambda count: evaluations(*places, count))) for _ in range(rounds)])
    numpy, ours = np.median(times, axis=0)
    text = ", ".join(f"{k} = {v}" for k, v in sizes.items())
    ratio = float(np.median(times[:, 0] / times[:, 1]))
    return {"name": case.name, "sizes": text, "numpy": numpy, "ours": ours, "ratio": ratio, "first": first, "error": error}


def main() -> None:
    """Runs the benchmark: measures, prints, and writes JSON for --json."""
    parser = arguments(__doc__, rounds=7)
    parser.add_argument("cases", nargs="*")
    options = parser.parse_args()
    report, rows = Report("contractions"), []
    with tempfile.TemporaryDirectory() as cache:
        os.environ["ODESIM_CACHE_DIR"] = cache
        for make in (c for c in (*CASES, *MODEL_CASES) if not options.cases or c.__name__ in options.cases):
            case = make()
            rows += [measure(case, dict(sizes), options.rounds) for sizes in (case.large, case.small)]
            print(*(f"{v:.4g}" if isinstance(v, float) else v for v in rows[-2].values()), flush=True)
            print(*(f"{v:.4g}" if isinstance(v, float) else v for v in rows[-1].values()), flush=True)
    report.add({"title": f"One right-hand side, medians of {options.rounds}", "columns": COLUMNS, "rows": rows})
    worst = {f"contractions {k}": min(row["ratio"] for row in rows[n::2]) for n, k in enumerate(("large", "small"))}
    report.add(**worst, **{"contractions first": max(row["first"] for row in rows)})
    report.write(options.json, ("odesim", "numpy", "numba", "scipy"))


if __name__ == "__main__":
    main()

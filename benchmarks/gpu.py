"""On a GPU: many small systems and one large one, kernel and whole call apart, against the processor, diffrax and torchdiffeq there.

python benchmarks/gpu.py [--rounds 5] [--parts strict,W2,W1,W3,W4j,products,transformer,peers] [--members 10000000] [--cpu 20000]
    [--largest 1e8]

The workloads are those of works.py and wide.py. Kernel: the launches, by events on the device. Whole call: wall time from numpy arrays to
numpy arrays, nothing compiled in it. Processor: CPU time a member of the same method on one thread, `--cpu` members spread evenly.
Errors: the largest of 200 members, spread evenly, against odesim's dop853 at 1e-12 on the processor, W4j against separation of variables;
W3 against dop853 at 1e-12, on the processor up to M = 1e6. Busy: step attempts of all members over 32 times those of the slowest member of
each warp. Of peak: operations counted in the kernel's text (flops.py) over time, of what the device could do in float64, in which members
of float32 are computed too, and rounded. Of copy: bytes that the passes over memory of each stage must move, over time, of what a copy of
an array moves. A peer's time is that of a call that begins and ends with arrays on the device, and is held against the kernel's.

W2 with 131072 members in float32 is the setting of Nagy et al. 2022 (MPGOS) and Utkarsh et al. 2024 (DiffEqGPU).
"""

import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from measuring import Report, arguments  # first: one thread

# isort: split
import numpy as np
from card import TimedKernel, copy_bandwidth, device_facts, free_all, peak_rate, time_kernel, wall_seconds
from direct import integrate_all, make_prepared
from flops import step_operations
from gpu_peers import PEERS, solver
from gpu_products import COLUMNS, product_rows
from gpu_transformer import COLUMNS as STEP_COLUMNS
from gpu_transformer import transformer_rows
from ours import ensemble_arguments
from registers import register_counts
from wide import END, wide_params, wide_system
from works import STEP, Work, exact, make_work

import odesim
from odesim.base.device import architecture
from odesim.run import problem
from odesim.run import threads as device_engine
from odesim.stepper.methods import METHODS
from odesim.targets import cuda_system as cuda_bound
from odesim.targets.nvrtc import options_for

os.environ.pop("JAX_PLATFORMS")
os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"

CHECKED, MEMBERS, PUBLISHED = 200, 100_000, 131_072
TOLERANCE = 1e-6  # of W3
ENSEMBLE = (
    ("work", "work", ""), ("dtype", "dtype", ""), ("method", "method", ""), ("members", "members", "d"), ("failed", "failed", "d"),
    ("kernel, ms", "kernel", ".3f"), ("whole call, ms", "whole", ".1f"), ("CPU, µs a member", "cpu", ".3g"),
    ("CPU / kernel", "gain", ".0f"), ("error", "error", ".1e"), ("steps", "steps", ".1f"), ("busy", "busy", ".2f"),
    ("of peak", "peak", ".2f"), ("registers", "registers", "d"), ("stack", "stack", "d"), ("spills", "spills", "d"),
)  # fmt: skip
WIDE = (
    ("M", "M", ".0e"), ("kernel, ms", "kernel", ".2f"), ("whole call, ms", "whole", ".1f"), ("CPU, ms", "cpu", ".1f"),
    ("CPU / kernel", "gain", ".1f"), ("right-hand sides", "rhs", "d"), ("ms a stage", "stage", ".4f"), ("of copy", "copy", ".2f"),
    ("error", "error", ".1e"), ("registers", "registers", "d"), ("stack", "stack", "d"), ("spills", "spills", "d"),
)  # fmt: skip
SAME = (("what", "what", ""), ("members or M", "count", "d"), ("entries that differ", "differ", "d"))
AGAINST = (
    ("work", "work", ""), ("solver", "solver", ""), ("members", "members", "d"), ("failed", "failed", "d"), ("ms", "ms", ".1f"),
    ("/ odesim's kernel", "ratio", ".1f"), ("/ odesim's whole call", "whole", ".1f"), ("error", "error", ".1e"),
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """Members of a work by a method on the GPU."""

    work: Work
    method: str
    dtype: str = "float64"

    @property
    def given(self) -> dict[str, Any]:
        """The arguments of `odesim.ensemble`."""
        w = self.work
        more = {"method": self.method, "dtype": self.dtype, "step": STEP if w.name == "W2f" else None}
        return {**ensemble_arguments(w), **more, "rtol": w.tolerance, "atol": w.absolute}

    def values(self, chunk: Any, engine: Any) -> np.ndarray:
        """States (N, T, D) in the order of a work's."""
        parts = engine.request.layout.split(chunk.y)
        return np.concatenate([part.reshape(*part.shape[:2], -1) for part in parts.values()], axis=-1)


def cases(part: str, most: int) -> Iterator[Case]:
    """What a part integrates, at most so many members each."""
    if part == "W2":
        for method in ("dop853", "vern7", "tsit5"):
            yield Case(make_work("W2", min(MEMBERS, most)), method)
        for name in ("W2", "W2f"):
            yield Case(make_work(name, min(PUBLISHED, most)), "tsit5", "float32")
    if part == "W1":
        for name, count in (("W1", MEMBERS), ("W1s", MEMBERS), ("W1", 10 * MEMBERS), ("W1", 100 * MEMBERS)):
            if count <= most or count == MEMBERS:
                yield Case(make_work(name, min(count, most)), "tsit5")
    if part == "W4j":
        for method in ("rodas5p", "rodas4"):
            yield Case(make_work("W4j", min(MEMBERS, most)), method)


def reference(work: Work) -> np.ndarray:
    """The answers (N, T, D) of a few members."""
    if work.name == "W4j":
        return exact(work)
    case = Case(work, "dop853")
    members, engine = make_prepared(**{**case.given, "rtol": 1e-12, "atol": 1e-12, "step": None})
    return case.values(integrate_all(members, engine), engine)


def kernel_seconds(members: Any, engine: Any, rounds: int) -> float:
    """The median of the launches' seconds, for all members."""
    timed, found, count = TimedKernel(device_engine.kernel_of(engine.plan, 0)), [], members.source.count
    for _ in range(rounds):
        for first in range(0, count, engine.members_at_once):
            end = min(first + engine.members_at_once, count)
            launch = device_engine.Launch(engine, *members.chunk(first, end), end - first)
            launch.run(timed, np.zeros(1, np.int64), engine.request.allocate(end - first))
        found.append(timed.taken())
    return float(np.median(found))


def busy_share(attempts: np.ndarray) -> float:
    """Of the turns that warps take, the share in which a thread has a step to do."""
    warps = np.pad(attempts, (0, -len(attempts) % 32)).reshape(-1, 32)
    return float(attempts.sum() / (32 * warps.max(axis=1).sum()))


def measure_case(case: Case, rounds: int, cpu: int) -> dict[str, Any]:
    """A row of the table of ensembles."""
    work, given = case.work, {**case.given, "backend": "cuda"}
    members, engine = make_prepared(**given)
    chunk = integrate_all(members, engine)
    rounds = min(rounds, 3) if len(work.start) > 2_000_000 else rounds
    few = work.every(work.stride(CHECKED))
    error = work.error(case.values(chunk, engine)[:: work.stride(CHECKED)], reference(few))
    attempts = (chunk.steps + chunk.rejected).astype(np.int64)
    row: dict[str, Any] = {"work": work.name, "dtype": case.dtype, "method": case.method, "members": len(work.start), "error": error}
    row |= {"failed": int(np.sum(chunk.status != 0)), "steps": float(attempts.mean()), "busy": busy_share(attempts)}
    row |= {
        "kernel": 1e3 * kernel_seconds(members, engine, rounds),
        "whole": 1e3 * wall_seconds(lambda: integrate_all(*make_prepared(**given)), rounds),
    }
    most, done = peak_rate(), step_operations(engine.plan) * float(attempts.sum())
    row |= {"peak": done / (1e-3 * row["kernel"]) / most} if most else {}
    log = device_engine.compile_cubin(device_engine.source_of(engine.plan), "registers", options_for(architecture(), strict=False)).log
    some = Case(work.every(work.stride(cpu)), case.method, case.dtype)
    here = make_prepared(**some.given)
    integrate_all(*here)
    begun = time.process_time()
    integrate_all(*here)
    row["cpu"] = 1e6 * (time.process_time() - begun) / len(some.work.start)
    return row | register_counts(log) | {"gain": row["cpu"] * len(work.start) / (1e3 * row["kernel"])}


def memory_passes(attempts: int) -> float:
    """Numbers an element that the attempted steps of tsit5 must read or write. A stage reads the state, slopes, P and a, writes its
    argument and P exp(z), and reads a and the latter again to write a slope; the error norm reads all slopes and two states."""
    tsit5 = METHODS["tsit5"]
    stages = sum(np.count_nonzero(tsit5.A[s]) + 8 for s in range(1, tsit5.last + 1))
    return attempts * float(stages + np.count_nonzero(tsit5.E[0]) + 2)


def wide_row(system: Any, n: int, rounds: int, bandwidth: float) -> dict[str, Any]:
    """A row of the table of one large system."""
    P, a = wide_params(n)

    def run(method: str = "tsit5", tolerance: float = TOLERANCE, backend: str = "cuda") -> Any:
        options: dict[str, Any] = {"span": (0.0, END), "rtol": tolerance, "atol": tolerance, "method": method, "backend": backend}
        return odesim.integrate(system, params={"P": P, "a": a}, **options)

    right = problem.cuda_rhs(problem.parts_of(system, "cuda", "float64", False).compiled)
    timed = time_kernel(right)
    found = run()
    rounds, kernel, whole = min(rounds, 3) if n > 10_000_000 else rounds, [], []
    for _ in range(rounds):
        timed.taken()
        whole.append(wall_seconds(run, 1))
        kernel.append(timed.taken())
    answer = run("dop853", 1e-12, "numba" if n <= 1_000_000 else "cuda").y["z"][-1]
    attempts, rhs = int(found.stats["steps"] + found.stats["rejected"]), int(found.stats["rhs_calls"])
    row: dict[str, Any] = {"M": n, "kernel": 1e3 * float(np.median(kernel)), "whole": 1e3 * float(np.median(whole)), "rhs": rhs}
    row |= {"stage": row["kernel"] / rhs, "error": float(np.abs(found.y["z"][-1] - answer).max())}
    row["copy"] = 8 * n * memory_passes(attempts) / (1e-3 * row["kernel"]) / bandwidth
    if n <= 1_000_000:
        run(backend="numba")
        begun = time.process_time()
        run(backend="numba")
        row["cpu"] = 1e3 * (time.process_time() - begun)
        row["gain"] = row["cpu"] / row["kernel"]
    free_all()
    log = cuda_bound.compile_cubin(right.text.source, "registers", options_for(architecture(), strict=False)).log
    return row | register_counts(log)


def strict_rows(most: int) -> Iterator[dict[str, Any]]:
    """Bits of a device beside those of the processor."""
    for name, method, dtype in (("W1", "tsit5", "float64"), ("W2", "dop853", "float32"), ("W4j", "rodas5p", "float64")):
        case = Case(make_work(name, min(3000, most)), method, dtype)
        a, b = (integrate_all(*make_prepared(**case.given, strict=True, backend=backend)) for backend in ("numba", "cuda"))
        differ = sum(int(np.sum(bits(getattr(a, k)) != bits(getattr(b, k)))) for k in ("y", "status", "steps", "rejected", "t_end"))
        yield {"what": f"{name}, {method}, {dtype}", "count": len(case.work.start), "differ": differ}
    system = wide_system()
    for n in (1000, 100_000):
        P, a = wide_params(min(n, 30 * most))
        options: dict[str, Any] = {"params": {"P": P, "a": a}, "span": (0.0, END), "method": "tsit5", "strict": True}
        ends = [odesim.integrate(system, **options, backend=backend).y_end["z"] for backend in ("numba", "cuda")]
        yield {"what": "W3, tsit5, float64", "count": len(P), "differ": int(np.sum(bits(ends[0]) != bits(ends[1])))}


def bits(a: np.ndarray) -> np.ndarray:
    """The bytes of an array's entries as whole numbers."""
    return a.view(f"i{a.itemsize}")


def peer_rows(most: int, rounds: int) -> Iterator[dict[str, Any]]:
    """Other libraries on the same device; what is not there or fails is named and left out."""
    for name, method in (("W2", "dop853"), ("W1", "tsit5"), ("W4j", "rodas5p")):
        case = Case(make_work(name, min(MEMBERS, most)), method)
        members, engine = make_prepared(**case.given, backend="cuda")
        integrate_all(members, engine)
        kernel, whole = kernel_seconds(members, engine, rounds), wall_seconds(lambda m=members, e=engine: integrate_all(m, e), rounds)
        yield {"work": name, "solver": f"odesim {method}", "members": len(case.work.start), "ms": 1e3 * kernel, "ratio": 1.0}
        stride = case.work.stride(CHECKED)
        answers = reference(case.work.every(stride))
        for peer in PEERS[name]:
            try:
                other = solver(peer, case.work)
                values, failed = other.read(other.run())
                taken = wall_seconds(other.run, min(rounds, 2))
            except Exception as e:  # another library's, whatever it is; the others are still measured
                print(f"{peer} left out in {name}: {type(e).__name__}: {str(e)[:200]}", file=sys.stderr, flush=True)
                continue
            row = {"work": name, "solver": other.name, "members": other.members, "failed": failed, "ms": 1e3 * taken}
            yield {**row, "ratio": taken / kernel, "whole": taken / whole, "error": case.work.error(values[::stride], answers)}


def wide_rows(largest: int, rounds: int, report: Report) -> list[dict[str, Any]]:
    """One row for each power of ten that there is room for."""
    system, bandwidth, rows = wide_system(), copy_bandwidth(), []
    free_all()
    print(f"a copy moves {bandwidth / 1e12:.3f} TB/s")
    for n in (int(10**k) for k in range(4, 10)):
        if n > largest:
            break
        try:
            rows.append(wide_row(system, n, rounds, bandwidth))
            print(rows[-1], flush=True)
        except Exception as e:  # no room here or on the device: what was measured stays
            print(f"M = {n:.0e} left out: {type(e).__name__}: {str(e)[:200]}", file=sys.stderr, flush=True)
            break
    report.add(**{f"gpu W3 {row['M']:.0e}": row["copy"] for row in rows}, **{"gpu copy, TB/s": bandwidth / 1e12})
    return rows


def ensemble_rows(part: str, options: Any, report: Report) -> list[dict[str, Any]]:
    """A row for each case of a part."""
    rows = list[dict[str, Any]]()
    for case in cases(part, options.members):
        rows.append(measure_case(case, options.rounds, options.cpu))
        print(rows[-1], flush=True)  # a part that is stopped leaves these in its log
    fine = [r for r in rows if r["dtype"] == "float64" and not r["failed"] and r["error"] <= 10 * make_work(r["work"], 1).tolerance]
    if part == "W2":
        report.add(**{"gpu W2 ms": min((r["kernel"] for r in fine), default=None)})
    if part == "W1":
        report.add(**{f"gpu W1 {r['members']:.0e} s": 1e-3 * r["whole"] for r in fine if r["work"] == "W1"})
    return rows


def shown(rows: Iterator[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows, each printed when it is there: a part that is stopped leaves these in its log."""
    found = []
    for row in rows:
        print(row, flush=True)
        found.append(row)
    return found


def main() -> None:
    """Measures part by part, prints, and writes JSON, where asked, after each."""
    more = {"parts": "strict,W2,W1,W3,W4j,products,transformer,peers", "members": 100 * MEMBERS, "cpu": 20_000, "largest": 1e8}
    options = arguments(__doc__, rounds=5, **more).parse_args()
    report, about = Report("gpu"), device_facts()
    print(*(f"{k}: {v}" for k, v in about.items()), sep="\n", flush=True)
    for part in options.parts.split(","):
        table: dict[str, Callable[[], tuple[str, Any, Any]]] = {
            "strict": lambda: ("Strict mode: bits of the GPU beside the processor's", SAME, shown(strict_rows(options.members))),
            "W3": lambda: ("One large system, tsit5, 1e-6", WIDE, wide_rows(int(options.largest), options.rounds, report)),
            "products": lambda: ("Products of matrices, Y' = A Y - Y", COLUMNS, shown(product_rows(options.members, options.rounds))),
            "transformer": lambda: (
                "Loss and gradients of a transformer",
                STEP_COLUMNS,
                shown(transformer_rows(options.members < MEMBERS, options.rounds)),
            ),
            "peers": lambda: ("Other libraries on the same GPU", AGAINST, shown(peer_rows(options.members, options.rounds))),
        }
        begun = time.perf_counter()
        title, columns, rows = table[part]() if part in table else (part, ENSEMBLE, ensemble_rows(part, options, report))
        report.add({"title": f"{title}. {about['device']}, driver {about['driver']}", "columns": columns, "rows": rows})
        if part == "strict":
            report.add(**{"gpu strict": float(sum(r["differ"] for r in rows))})
        if part == "peers":
            ratios = {w: min((r["ratio"] for r in rows if r["work"] == w and "diffrax" in r["solver"]), default=None) for w in PEERS}
            report.add(**{f"gpu {w} x diffrax": ratio for w, ratio in ratios.items() if ratio is not None})
        print(f"{part}: {time.perf_counter() - begun:.1f} s\n", flush=True)
        report.write(options.json, ("odesim", "numpy", "numba", "diffrax", "jax", "torch", "torchdiffeq"), facts=about)
        free_all()


if __name__ == "__main__":
    main()

"""A whole run of a Rosenbrock method: options, interrupts, progress, and what came out."""

import time
from contextlib import suppress

import numpy as np

from odesim.arrays import Array
from odesim.errors import SolveError
from odesim.solve.explicit import slots
from odesim.solve.explicit.integrate import check_options, ctrl_c, save_grid
from odesim.solve.explicit.report import collect
from odesim.solve.problem import Problem, Progress, Raw
from odesim.solve.rosenbrock.blas import few_blas_threads
from odesim.solve.rosenbrock.method import Rosenbrock
from odesim.solve.rosenbrock.run import Run

PROGRESS_SECONDS = 0.05


def integrate_rosenbrock(
    problem: Problem,
    method: Rosenbrock,
    *,
    save: Array | None = None,
    step: float | None = None,
    rtol: float = 1e-6,
    atol: float = 1e-9,
    max_steps: int = 1_000_000,
    progress: Progress | None = None,
) -> Raw:
    """The run of a problem that knows its Jacobian; arguments and result as of odesim.solve.integrate_problem. Raises SolveError."""
    if problem.linear is None:
        raise SolveError(f"{method.name} needs the Jacobian of the right side, which {problem.ref or 'this problem'} does not have")
    check_options(step, rtol, atol, max_steps)
    _ = problem.rhs.stage, problem.rhs.events  # a system may compile when first asked, and counts that itself
    linear, begun = problem.linear(), time.perf_counter()
    linear.prepare()
    compile_seconds, begun = time.perf_counter() - begun, time.perf_counter()
    run = Run(problem, linear, method, save_grid(problem, save), step=step, rtol=rtol, atol=atol, max_steps=max_steps)
    code = slots.RUNNING
    with suppress(KeyboardInterrupt), ctrl_c(run.stop), np.errstate(all="ignore"), few_blas_threads(len(problem.y0)):
        code = _loop(run, progress)
    return collect(run, code, run.stats() | {"seconds": time.perf_counter() - begun, "compile_seconds": compile_seconds})


def _loop(run: Run, progress: Progress | None) -> int:
    """How the run ended, or RUNNING after Ctrl-C."""
    if not run.begin():
        return slots.NOT_FINITE
    p, told = run.problem, time.perf_counter()
    while not run.count[slots.STOP]:
        code = run.advance()
        if code != slots.RUNNING:
            return code
        if progress is not None and time.perf_counter() - told > PROGRESS_SECONDS:
            told = time.perf_counter()
            progress(float((run.t - p.t0) / (p.t1 - p.t0)))
    return slots.RUNNING

"""One run of a Rosenbrock method: options, interrupts, progress, results."""

import math
import time
from contextlib import suppress
from typing import Any

import numpy as np

from odesim.base.arrays import Array
from odesim.base.device import few_blas_threads
from odesim.base.errors import SolveError
from odesim.base.options import RunOptions
from odesim.base.signals import ctrl_c
from odesim.stepper.codes import Code
from odesim.stepper.problem import NoLanesError, Problem, Progress, Raw, StiffRun, check_options, save_grid
from odesim.stepper.report import collect
from odesim.stepper.rosenbrock import Run
from odesim.stepper.rosenbrock_methods import ROSENBROCK, Rosenbrock

PROGRESS_SECONDS = 0.05


def make_run(problem: Problem, name: str, save: Array | None, *, strict: bool, **options: Any) -> StiffRun:
    """A run of a stiff method, not yet started: compiled where the system is small, else a loop in Python around LAPACK.

    strict: with the same bits on every machine, unlike LAPACK. Raises SolveError.
    """
    if strict and problem.lanes is None:
        raise SolveError(f"{name} has a strict mode only for a right-hand side that numba compiles")
    if problem.lanes is not None:
        try:
            return problem.lanes(problem, name, save, **options)
        except NoLanesError:
            if strict:
                raise
    return RosenbrockRun(problem, ROSENBROCK[name], save, **options)


class RosenbrockRun:
    """A run of a Rosenbrock method that can be paused and continued with the same steps. options: those of a RunOptions."""

    def __init__(
        self, problem: Problem, method: Rosenbrock, save: Array | None = None, *, progress: Progress | None = None, **options: Any
    ) -> None:
        if problem.linear is None:
            raise SolveError(
                f"{method.name} needs the Jacobian of the right-hand side, which {problem.ref or 'this problem'} does not have"
            )
        checked = check_options(RunOptions(**options))
        _ = problem.rhs.stage, problem.rhs.events, problem.laws and problem.laws.values.events  # compiles what was not, which counts itself
        linear, begun = problem.linear(), time.perf_counter()
        linear.prepare()
        self._compile_seconds, begun = time.perf_counter() - begun, time.perf_counter()
        self._run = Run(problem, linear, method, save_grid(problem, save), checked)
        self._code, self._progress, self._begun = Code.RUNNING, progress, False
        self._seconds = time.perf_counter() - begun

    @property
    def tried(self) -> int:
        """Steps so far, taken or rejected."""
        return self._run.standing.tried

    @property
    def t(self) -> float:
        """The last time reached."""
        return self._run.t

    def advance(self, most: float = math.inf) -> bool:
        """Runs to the end, or until `most` steps were tried since the start; whether the run has ended, Ctrl-C included."""
        begun, ended = time.perf_counter(), True  # as an interrupt leaves it
        with ctrl_c(self._run.stop), suppress(KeyboardInterrupt), np.errstate(all="ignore"), few_blas_threads(len(self._run.problem.y0)):
            ended = self._loop(most)
        self._seconds += time.perf_counter() - begun
        return ended or self._run.stopped

    def _loop(self, most: float) -> bool:
        run = self._run
        if not self._begun:
            self._begun = True
            if not run.begin():
                self._code = Code.NON_FINITE
                return True
        p, reported = run.problem, time.perf_counter()
        while self.tried < most and not run.stopped:
            code = run.advance()
            if code != Code.RUNNING:
                self._code = code
                return True
            if self._progress is not None and time.perf_counter() - reported > PROGRESS_SECONDS:
                reported = time.perf_counter()
                self._progress(float((run.t - p.t0) / (p.t1 - p.t0)))
        return False

    def raw(self) -> Raw:
        """The results of the run."""
        stats = self._run.stats() | {"seconds": self._seconds, "compile_seconds": self._compile_seconds}
        return collect(self._run, self._code, stats)

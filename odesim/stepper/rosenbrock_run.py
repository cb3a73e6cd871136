"""One run of a Rosenbrock method on numpy arrays: what its text leaves to the target, options, interrupts, progress, results."""

import math
import time
from contextlib import suppress
from functools import cached_property
from typing import Any

import numpy as np

from odesim.base.arrays import Array
from odesim.base.device import few_blas_threads
from odesim.base.errors import SolveError
from odesim.base.options import RunOptions
from odesim.base.signals import ctrl_c
from odesim.ir.linear_systems import Solver, UnsolvableError
from odesim.stepper.array_text import Run, array_run
from odesim.stepper.codes import Code, Standing
from odesim.stepper.conserved import ConservedInvariants
from odesim.stepper.control import longest_step
from odesim.stepper.laws import LawWatch, Worst
from odesim.stepper.problem import (
    Derivatives,
    NoLanesError,
    Problem,
    Progress,
    Raw,
    StiffRun,
    check_options,
    fixed_steps,
    opening_step,
    save_grid,
    usable,
)
from odesim.stepper.report import collect
from odesim.stepper.rosenbrock_methods import ROSENBROCK, Rosenbrock
from odesim.stepper.rosenbrock_search import Search
from odesim.stepper.statements import Switches

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


class Linearization:
    """The Jacobian J and df/dt at a point (t, y), computed when first asked for: a step that is rejected or the last one needs none."""

    def __init__(self, derivatives: Derivatives, t: float, y: Array) -> None:
        self.derivatives, self.t, self.y = derivatives, t, y

    @cached_property
    def jacobian(self) -> Any:
        return self.derivatives.jacobian(self.t, self.y)

    @cached_property
    def slope(self) -> Array | None:
        """df/dt (n,)."""
        return self.derivatives.time_slope(self.t, self.y)


class LinearSystems:
    """What the text of a step leaves to numpy: right-hand sides and linear systems (1 - g J) x = b.

    y is float64; the right-hand side sees it in the problem's dtype. least: the size from which components count, in linear systems.
    """

    def __init__(self, problem: Problem, derivatives: Derivatives, least: float) -> None:
        n = problem.rhs.layout.size
        self.problem, self.derivatives, self.least, self.rhs_calls = problem, derivatives, least, 0
        self._seen, self._out = np.empty(n, problem.rhs.dtype), np.empty(n, problem.rhs.dtype)
        self._solver: Solver | None = None
        self.restore = ConservedInvariants(derivatives.invariants(), problem.began.astype(np.float64)).restore

    def right(self, t: float, y: Array) -> Array:
        """f(t, y) (n,)."""
        self._seen[:] = y
        self.problem.rhs(t, self._seen, self._out)
        self.problem.rhs.check()
        self.rhs_calls += 1
        return self._out.astype(np.float64)

    def linear(self, t: float, y: Array) -> tuple[Array, Linearization]:
        """f(t, y) (n,), NaN where y is not finite in the problem's dtype, and the derivatives there."""
        f = self.right(t, y)
        return f if np.isfinite(self._seen).all() else f + np.nan, Linearization(self.derivatives, t, y)

    def along(self, J: Linearization, f: Array) -> Array:
        """y'' (n,) at the point: J f + df/dt."""
        bent: Array = J.jacobian @ f
        return bent if J.slope is None else bent + J.slope

    def eliminate(self, J: Linearization, _: Array, g: float) -> bool:
        """Makes the solver for J and g; whether there is one."""
        try:
            self._solver = J.jacobian.solver(1 / g, self.least)
        except UnsolvableError:
            return False
        return True

    def drift(self, b: Array, J: Linearization, g: float, later: float) -> Array:
        """b + g later df/dt."""
        return b if J.slope is None or later == 0.0 else b + (g * later) * J.slope

    def solve(self, _: Linearization, g: float, b: Array) -> Array:
        """x (n,) of (1 - g J) x = b; NaN where that has no solution."""
        assert self._solver is not None
        try:
            return self._solver(b / g)
        except UnsolvableError:
            return np.full(len(b), np.nan)

    def solved(self, good: bool, _: Linearization, __: float, x: Array, ___: Array) -> bool:
        """Whether there was a solution; one that overflows is left to the error norm."""
        return good and not (len(x) and np.isnan(x).all())


class RosenbrockRun:
    """A run that can be advanced piece by piece. options: as of odesim.integrate."""

    goes_on = True

    def __init__(
        self, problem: Problem, method: Rosenbrock, save: Array | None = None, *, progress: Progress | None = None, **options: Any
    ) -> None:
        if problem.linear is None:
            raise SolveError(
                f"{method.name} needs the Jacobian of the right-hand side, which {problem.ref or 'this problem'} does not have"
            )
        self.problem, self.method, self.options = problem, method, check_options(RunOptions(**options))
        _ = problem.rhs.stage, problem.rhs.events, problem.laws and problem.laws.values.events  # compiles what was not, which counts itself
        derivatives, begun = problem.linear(), time.perf_counter()
        derivatives.prepare()
        given, saves = self.options, save is None or len(save) > 0
        switches = Switches(given.step is None, given.first_step is None, saves, problem.rhs.n_events > 0, bool(problem.laws))
        steps = array_run(method, switches)
        self._compile_seconds, begun = time.perf_counter() - begun, time.perf_counter()
        self.save, self.stopped, self._progress = save_grid(problem, save), False, progress
        self._code, self._t, self._y = float(Code.RUNNING), problem.t0, problem.y0.astype(np.float64)
        self._begin(derivatives, steps)
        self._seconds = time.perf_counter() - begun

    def _begin(self, derivatives: Derivatives, run: Run) -> None:
        p, m, step = self.problem, self.method, self.options.step
        rtol, atol = usable(self.options.rtol, self.options.atol, p.rhs.dtype)
        n, save = len(p.y0), self.save
        self.standing = Standing(rtol=rtol, atol=atol)
        self.out = np.empty((len(save) + 1, n), p.rhs.dtype)
        self._systems = systems = LinearSystems(p, derivatives, atol)
        K = np.zeros((m.stages, n))
        self._search = Search(p, max(4, len(m.H) + 2), K, m, systems.restore) if p.rhs.n_events else None
        self._watch = LawWatch(p.laws, p.rhs.dtype) if p.laws else None
        (total, rest), fixed = fixed_steps(p.t0, p.t1, step) if step is not None else (0, 0.0), step or 0.0
        search: Any = self._search or Search
        watch: Any = self._watch.look if self._watch else None
        self._steps = run(
            K, n, 1 / max(n, 1), np.float64(p.t0), np.float64(p.t1), rtol, atol, longest_step(self.options.max_step),
            opening_step(self.options.first_step, self.options.max_step),
            float(self.options.max_steps), fixed, rest, float(total), self._y, systems.right, systems.linear, systems.along,
            systems.eliminate, systems.drift, systems.solve, systems.solved, systems.restore, self._put,
            lambda q: save[int(q)] if q < len(save) else np.inf, search.begin, search.sample, search.find, search.keep, watch, watch,
        )  # fmt: skip

    def _put(self, place: float, y: Array) -> None:
        self.out[int(place)] = y

    @property
    def tried(self) -> int:
        """Steps so far, taken or rejected."""
        return self.standing.tried

    @property
    def t(self) -> float:
        """The last time reached."""
        return self._t

    @property
    def y(self) -> Array:
        """The state there (n,), in the problem's dtype."""
        return self._y.astype(self.problem.rhs.dtype)

    def stop(self) -> None:
        """Makes the run end after its current step."""
        self.stopped = True

    def event_records(self) -> tuple[Array, Array]:
        """Times and component numbers of all events, in the order of time."""
        times, numbers = self._search.event_records() if self._search else (np.empty(0), np.empty(0, np.int64))
        order = np.argsort(times, kind="stable")
        return times[order], numbers[order]

    def watched(self) -> Array | None:
        """The state of the watched laws, for a run that continues this one."""
        return self._watch.watched() if self._watch else None

    def worst(self) -> Worst:
        """The worst violation of each law so far."""
        return self._watch.worst() if self._watch else {}

    def advance(self, most: float = math.inf) -> bool:
        """Runs to the end, or until `most` steps were tried since the start; whether the run has ended, Ctrl-C included."""
        begun, ended = time.perf_counter(), True  # as an interrupt leaves it
        with ctrl_c(self.stop), suppress(KeyboardInterrupt), np.errstate(all="ignore"), few_blas_threads(len(self.problem.y0)):
            ended = self._loop(most)
        self._seconds += time.perf_counter() - begun
        return ended or self.stopped

    def _loop(self, most: float) -> bool:
        p, reported = self.problem, time.perf_counter()
        while self._code == Code.RUNNING and not self.stopped:
            if self.tried >= most:
                return False
            code, t, self._y, h, steps, rejected, saved = next(self._steps)
            self._code, self._t, self.standing.h = float(code), float(t), float(h)
            self.standing.steps, self.standing.rejected, self.standing.saved = int(steps), int(rejected), int(saved)
            if self._progress is not None and time.perf_counter() - reported > PROGRESS_SECONDS:
                reported = time.perf_counter()
                self._progress(float((self._t - p.t0) / (p.t1 - p.t0)))
        return True

    def raw(self) -> Raw:
        """The results of the run."""
        stats = {"steps": self.standing.steps, "rejected": self.standing.rejected, "rhs_calls": self._systems.rhs_calls}
        return collect(self, int(self._code), {**stats, "seconds": self._seconds, "compile_seconds": self._compile_seconds})

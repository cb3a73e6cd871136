"""One run of a Rosenbrock method: its state, and its loop over steps."""

import math

import numpy as np

from odesim.base.arrays import Array
from odesim.base.options import RunOptions
from odesim.solve.codes import Code
from odesim.solve.laws import LawWatch, Worst
from odesim.solve.methods.rosenbrock import Rosenbrock
from odesim.solve.options import fixed_steps, usable
from odesim.solve.problem import Derivatives, Problem
from odesim.solve.rosenbrock.control import Control, norm
from odesim.solve.rosenbrock.events import Search
from odesim.solve.rosenbrock.stages import Stages
from odesim.solve.standing import Standing
from odesim.solve.step.control import SHORTEST, longest_step, moment, step_end, too_small


class Run:
    """The state of a run between two steps, for odesim.solve.report.collect as for that of an explicit method."""

    def __init__(self, problem: Problem, linear: Derivatives, method: Rosenbrock, save: Array, options: RunOptions) -> None:
        self.problem, self.method, self.save, self.options, self._step = problem, method, save, options, options.step
        dtype = np.dtype(problem.rhs.dtype)
        self.rtol, self.atol = usable(options.rtol, options.atol, problem.rhs.dtype)
        self.standing, self.stopped = Standing(rtol=self.rtol, atol=self.atol), False
        self.out = np.empty((len(save) + 1, len(problem.y0)), dtype)
        self.t = problem.t0
        self._y = problem.y0.astype(np.float64)
        self.stages = Stages(problem, linear, method, self.atol)
        self._control = Control(method.error_order, longest_step(options.max_step))
        self._search = (
            Search(problem, max(4, len(method.H) + 2), self.atol if options.step is None else 0.0) if problem.rhs.n_events else None
        )
        self._watch = LawWatch(problem.laws, problem.rhs.dtype) if problem.laws else None
        self._fixed = fixed_steps(problem.t0, problem.t1, options.step) if options.step is not None else (0, 0.0)

    @property
    def y(self) -> Array:
        """The state at t (n,), in the problem's dtype."""
        return self._y.astype(self.problem.rhs.dtype)

    def stop(self) -> None:
        """Makes the loop end after its current step."""
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

    def stats(self) -> dict[str, float]:
        """steps, rejected, rhs_calls."""
        return {
            "steps": self.standing.steps,
            "rejected": self.standing.rejected,
            "rhs_calls": self.stages.rhs_calls,
        }

    def begin(self) -> bool:
        """Computes the derivatives, first step, events and saved state at t0; returns False if the derivative is not finite."""
        p = self.problem
        f = self.stages.derivative(self.t, self._y)
        if not (np.isfinite(self._y).all() and np.isfinite(f).all()):
            return False
        self.stages.start_at(self.t, self._y, f)
        if self._step is None:
            parts = (self._y, f, self.stages.curvature())
            size, slope, bend = (norm(v, self._y, self._y, self.rtol, self.atol) for v in parts)
            self.standing.h = self._control.first(size, slope, bend, p.t0, p.t1 - p.t0)
        if self._search:
            self._search.begin(self.t, self._y)
        if self._watch:
            self._watch.look(self.t, self._y)
        if len(self.save) and self.save[0] == self.t:
            self.out[0] = self._y
            self.standing.saved = 1
        return True

    def advance(self) -> Code:
        """Takes or rejects one step; returns RUNNING, or the Code of the end."""
        p = self.problem
        if self.t >= p.t1:
            return Code.OK
        if self.standing.tried >= self.options.max_steps:
            return Code.MAX_STEPS
        ahead = self._ahead()
        if ahead is None:
            return Code.STEP_TOO_SMALL
        h, new = ahead
        after, f, error = self._try(h, new)
        if not error <= 1:
            if self._step is not None:
                return Code.NON_FINITE
            self.standing.rejected += 1
            self.standing.h = self._control.after(h, error)
            return Code.RUNNING
        return self._accept(h, new, after, f, error)

    def _ahead(self) -> tuple[float, float] | None:
        """The next step and its end; None if it would be too small."""
        p, t = self.problem, self.t
        if self._step is not None:
            k, (total, rest) = self.standing.steps + 1, self._fixed
            return (self._step if k < total else rest), moment(k, p.t0, p.t1, self._step, total)
        h = self.standing.h
        new, last = step_end(t, h, p.t1)
        if not last and (h < SHORTEST or too_small(t, h, new, p.t0)):
            return None
        return new - t, new

    def _try(self, h: float, new: float) -> tuple[Array, Array, float]:
        """State and derivative at new, and the error norm: not finite if the step cannot be used, 0 with a fixed step."""
        made = self.stages.step(h, new)
        if made is None:
            return self._y, self.stages.f, math.inf
        after, e = made
        error = norm(e, self._y, after, self.rtol, self.atol)
        if self._step is not None and np.isfinite(after).all():
            error = 0.0
        elif error <= 1:
            defect = self.stages.defect(h)
            error = math.inf if defect is None else float(np.maximum(error, norm(defect, self._y, after, self.rtol, self.atol)))
        if not error <= 1:
            return after, self.stages.f, error
        f = self.stages.derivative(new, after)
        usable = np.isfinite(f).all() and np.isfinite(after.astype(self.problem.rhs.dtype)).all()
        return after, f, error if usable else math.inf

    def _accept(self, h: float, new: float, after: Array, f: Array, error: float) -> Code:
        t = self.t

        def between(theta: float) -> tuple[float, Array]:
            return (t + theta * h, self.stages.between(theta)) if theta < 1 else (new, after)

        def inside(theta: float) -> tuple[float, Array]:
            time, state = between(theta)
            return time, self.stages.invariants.restore(state) if theta < 1 else state

        stop = self._search.find(t, h, new, between, inside) if self._search else None
        end, state = (new, after) if stop is None else inside(stop)
        standing = self.standing
        while standing.saved < len(self.save) and self.save[standing.saved] <= end:
            i = standing.saved
            self.out[i] = inside((self.save[i] - t) / h)[1] if self.save[i] < new else after
            standing.saved += 1
        if self._step is None:
            self.standing.h = self._control.after(h, error)
        standing.steps += 1
        self.t, self._y = end, state
        if self._watch:
            self._watch.look(end, state)
        if stop is not None:
            return Code.EVENT
        if end < self.problem.t1:
            self.stages.start_at(end, state, f)
        return Code.RUNNING

"""One run of a Rosenbrock method in numpy: its stages, its control, its loop over steps."""

import math
from collections.abc import Sequence
from math import inf

import numpy as np

from odesim.base.arrays import Array
from odesim.base.options import RunOptions
from odesim.ir.invariants import LinearInvariant, exact_sums
from odesim.ir.linear_systems import Solver, UnsolvableError
from odesim.stepper import control
from odesim.stepper.codes import Code, Standing
from odesim.stepper.control import LEAST, LEAST_OLD, SAFETY, SHORTEST, STIFF_GROW, STIFF_SHRINK, longest_step, moment, step_end, too_small
from odesim.stepper.laws import LawWatch, Worst
from odesim.stepper.problem import Derivatives, Problem, fixed_steps, opening_step, usable
from odesim.stepper.rosenbrock_methods import Rosenbrock
from odesim.stepper.rosenbrock_search import Search


class Run:
    """The state of a run between two steps, for odesim.stepper.report.collect as for that of an explicit method."""

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
        if self.options.first_step is not None:
            self.standing.h = opening_step(self.options.first_step, self.options.max_step)
        elif self._step is None:
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
        result = self.stages.step(h, new)
        if result is None:
            return self._y, self.stages.f, math.inf
        after, e = result
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


class Control:
    """Chooses the next step from the errors of the last two accepted ones; power: that of h in the error norm. No step is above longest."""

    def __init__(self, power: int, longest: float = inf) -> None:
        self.power, self.longest = power, longest
        self._h_old, self._error_old = 0.0, 1.0
        self._retry = False

    def after(self, h: float, error: float) -> float:
        """The step after h with this error norm, accepted if error <= 1."""
        # Gustafsson's rule predicts from the last two accepted steps: a stiff error does not follow h^p while the step changes (IV.8)
        counted = max(error, LEAST)
        ratio = SAFETY * h / self._h_old if self._h_old > 0 else 0.0
        factor = control.gustafsson_by_norms(counted, ratio, self._error_old, self.power)
        following = control.at_most(control.next_step(h, error, factor, self._retry, STIFF_SHRINK, STIFF_GROW), self.longest)
        self._retry = not error <= 1
        if not self._retry:
            self._h_old, self._error_old = h, max(counted, LEAST_OLD)
        return following

    def first(self, size: float, slope: float, bend: float, t0: float, span: float) -> float:
        """The first step from t0, from the norms of the state and its first two derivatives."""
        _, most = control.trial_step(size, slope, span)
        steep = control.steepest(slope, bend)
        guess = (0.01 / steep) ** (1 / self.power) if steep > 0 else inf
        return control.first_step(guess, steep, most, t0, span, self.longest)


def norm(e: Array, old: Array, new: Array, rtol: float, atol: float) -> float:
    """The root mean square of e (n,) in units of the tolerance between old and new (n,)."""
    units = e / (atol + rtol * np.maximum(np.abs(old), np.abs(new)))
    return float(np.sqrt(np.mean(units * units))) if len(e) else 0.0


CHECKED = 0.8
"""The point of a step at which the interpolant is checked: near the largest error that either method has on a stiff component."""


class Stages:
    """Values that a step computes at a point (t, y): f, J, df/dt, and the stages of the last step.

    f, J and df/dt are kept while steps from there are tried.
    y is float64; the right-hand side sees it in the problem's dtype. least: the size from which components count, in linear systems.
    """

    def __init__(self, problem: Problem, linear: Derivatives, method: Rosenbrock, least: float) -> None:
        n = problem.rhs.layout.size
        self.problem, self.linear, self.method, self.least = problem, linear, method, least
        self.u = np.zeros((method.stages, n))
        self.rhs_calls = 0
        self._seen, self._out = np.empty(n, problem.rhs.dtype), np.empty(n, problem.rhs.dtype)
        self._solver: Solver | None = None
        self._h = 0.0
        self._checked, self._checked_slope = method.dense(CHECKED), method.dense_slope(CHECKED)
        self.invariants = ConservedInvariants(linear.invariants(), problem.began.astype(np.float64))

    def derivative(self, t: float, y: Array) -> Array:
        """f(t, y) (n,)."""
        self._seen[:] = y
        self.problem.rhs(t, self._seen, self._out)
        self.problem.rhs.check()
        self.rhs_calls += 1
        return self._out.astype(np.float64)

    def start_at(self, t: float, y: Array, f: Array) -> None:
        """Sets the point (t, y), with derivative f (n,), from which steps start."""
        self.t, self.y, self.f = t, y, f
        self.J = self.linear.jacobian(t, y)
        self.slope = self.linear.time_slope(t, y)
        self._solver = None

    def curvature(self) -> Array:
        """y'' (n,) at the point: J f + df/dt."""
        bent: Array = self.J @ self.f
        return bent if self.slope is None else bent + self.slope

    def step(self, h: float, new: float) -> tuple[Array, Array] | None:
        """The state after a step of h to the time new, and the error estimate (n,); None if a linear system has no solution."""
        m, u = self.method, self.u
        try:
            if self._solver is None or self._h != h:
                self._solver, self._h = self.J.solver(1 / (m.gamma * h), self.least), h
            state = self.y
            for i in range(m.stages):
                right = self.f
                if i > 0:
                    state = self.y + m.A[i, :i] @ u[:i]
                    alpha = m.alpha[i]
                    right = self.derivative(self.t + alpha * h if alpha < 1 else new, state) + (m.C[i, :i] / h) @ u[:i]
                if self.slope is not None and m.d[i] != 0:
                    right = right + (h * m.d[i]) * self.slope
                u[i] = self._solver(right)
        except UnsolvableError:
            return None
        return self.invariants.restore(state + u[-1]), u[-1]

    def defect(self, h: float) -> Array | None:
        """How far the interpolant p of the last step is from the solution within (n,): (1/(gamma h) - J)^-1 (p' - f(p)) at CHECKED.

        A stiff component meets its algebraic equation at the end of a step however long it is, and is only wrong between the ends.
        """
        assert self._solver is not None
        f = self.derivative(self.t + CHECKED * h, self.y + self._checked @ self.u)
        try:
            return self._solver(self._checked_slope @ self.u / h - f)
        except UnsolvableError:
            return None

    def between(self, theta: float) -> Array:
        """The state (n,) at t + theta h of the last step."""
        return self.y + self.method.dense(theta) @ self.u  # type: ignore[no-any-return]


MOST_ROUNDS = 12
"""Invariants that share states, one after another: beyond it they take the time of the step."""


class ConservedInvariants:
    """Linear invariants with numbers as weights, and their values at the start (n,) of a run."""

    def __init__(self, invariants: Sequence[LinearInvariant], start: Array) -> None:
        self._rounds = [_Round(group, start) for group in _apart(invariants)[-MOST_ROUNDS:]]

    def restore(self, y: Array) -> Array:
        """y (n,) itself, moved so that the invariants, group by group, have their values."""
        for step in self._rounds:
            step.restore(y)
        return y


def _apart(invariants: Sequence[LinearInvariant]) -> list[list[LinearInvariant]]:
    """Groups of invariants that share no state, ordered after the groups they share states with."""
    groups: list[list[LinearInvariant]] = []
    used: list[set[int]] = []
    for invariant in invariants:
        places = set(invariant.places)
        after = max((k + 1 for k, states in enumerate(used) if states & places), default=0)
        if after == len(groups):
            groups.append([])
            used.append(set())
        groups[after].append(invariant)
        used[after] |= places
    return groups


class _Round:
    """A group of invariants that share no state, restored together."""

    def __init__(self, group: Sequence[LinearInvariant], start: Array) -> None:
        sizes = [len(i.places) for i in group]
        self.places, self.weights = np.concatenate([i.places for i in group]), np.concatenate([i.weights for i in group])
        self.firsts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        self.members = np.repeat(np.arange(len(group)), sizes)
        self.values = np.array([float(exact_sums(i, start[None])[0]) for i in group])

    def restore(self, y: Array) -> None:
        parts = y[self.places]
        terms = self.weights * parts
        size = np.add.reduceat(terms * terms, self.firsts)
        rest = self.values - np.add.reduceat(terms, self.firsts)
        usable = (size > 0) & np.isfinite(rest)
        share = np.where(usable, rest, 0.0) / np.where(usable, size, 1.0)
        y[self.places] = parts + parts * (terms * share[self.members])

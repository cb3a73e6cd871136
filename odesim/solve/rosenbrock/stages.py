"""The stages of a Rosenbrock step: right-hand side, Jacobian, and one linear system a stage with the same matrix."""

import numpy as np

from odesim.base.arrays import Array
from odesim.ir.linear_systems import Solver, UnsolvableError
from odesim.solve.methods.rosenbrock import Rosenbrock
from odesim.solve.problem import Derivatives, Problem
from odesim.solve.rosenbrock.invariants import ConservedInvariants

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

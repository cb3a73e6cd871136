"""Integrators: numbers in, numbers out."""

from odesim.solve.callback import callback_system
from odesim.solve.explicit.integrate import integrate_problem
from odesim.solve.problem import BoundSystem, EventSpec, Problem, Raw, Status
from odesim.solve.tableau import METHODS, Method

__all__ = ["METHODS", "BoundSystem", "EventSpec", "Method", "Problem", "Raw", "Status", "callback_system", "integrate_problem"]

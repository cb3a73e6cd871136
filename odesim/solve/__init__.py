"""Integrators that know numbers only, no symbols."""

from odesim.solve.callback import callback_system
from odesim.solve.codes import Status
from odesim.solve.integrate import METHOD_NAMES, integrate_problem
from odesim.solve.methods import METHODS, Method
from odesim.solve.problem import BoundSystem, Costs, Derivatives, EventSpec, Problem, Raw
from odesim.solve.rosenbrock import ROSENBROCK, Rosenbrock

__all__ = [
    "METHODS",
    "METHOD_NAMES",
    "ROSENBROCK",
    "BoundSystem",
    "Costs",
    "Derivatives",
    "EventSpec",
    "Method",
    "Problem",
    "Raw",
    "Rosenbrock",
    "Status",
    "callback_system",
    "integrate_problem",
]

"""Integrators that know numbers only, no symbols."""

from odesim.solve.callback import callback_system
from odesim.solve.integrate import METHOD_NAMES, integrate_problem
from odesim.stepper.codes import Status
from odesim.stepper.methods import METHODS
from odesim.stepper.problem import BoundSystem, Costs, Derivatives, EventSpec, Problem, Raw
from odesim.stepper.rosenbrock_methods import ROSENBROCK, Rosenbrock
from odesim.stepper.tableau import Method

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

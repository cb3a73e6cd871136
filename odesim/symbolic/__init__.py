"""Models as symbols: what a model file imports, and the Programs and derivatives made from it."""

from odesim.symbolic.bound import at
from odesim.symbolic.elements import IndexedBase
from odesim.symbolic.expr import index, logsumexp, over, shift, shifted_exp, sizes, softmax, time
from odesim.symbolic.gradients import grad, gradient_flow
from odesim.symbolic.layered import inverse, layers, named, solve
from odesim.symbolic.logs import entropy, xlogy
from odesim.symbolic.maps import Map
from odesim.symbolic.momentum import descent
from odesim.symbolic.parts import ClosedForm, Constraint, Event, Invariant, Param, Source
from odesim.symbolic.reductions import MaxOver, Shift
from odesim.symbolic.sensitivity import sensitivities
from odesim.symbolic.special import besseli_ratio
from odesim.symbolic.system import System

__all__ = [
    "ClosedForm", "Constraint", "Event", "IndexedBase", "Invariant", "Map", "MaxOver", "Param", "Shift", "Source", "System",
    "at", "besseli_ratio", "descent", "entropy", "grad", "gradient_flow", "index", "inverse", "layers", "logsumexp", "named", "over",
    "sensitivities", "shift", "shifted_exp", "sizes", "softmax", "solve", "time", "xlogy",
]  # fmt: skip

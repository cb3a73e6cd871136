"""Models as symbols: all that a model file imports.

What makes expressions and Systems by lowering others, such as grad, is work of higher floors. It is loaded at its first use, as names of
`odesim` are: so no file of this room waits for a floor that is built on it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from odesim.symbolic.functions import entropy, logsumexp, shift, shifted_exp, softmax, xlogy
from odesim.symbolic.indices import IndexedBase, index, sizes, time
from odesim.symbolic.layered import inverse, layers, named, solve
from odesim.symbolic.parts import Attention, ClosedForm, Constraint, Event, Invariant, Lines, Log, Matrix, Param, Points, Source
from odesim.symbolic.reductions import MaxOver, Shift, at, over
from odesim.symbolic.system import Map, System, descent
from odesim.symbolic.tables import table

if TYPE_CHECKING:
    from odesim.transforms.gradients import grad, gradient_flow, sgd_noise
    from odesim.transforms.sensitivity import sensitivities

__all__ = [
    "Attention", "ClosedForm", "Constraint", "Event", "IndexedBase", "Invariant", "Lines", "Log", "Map", "Matrix", "MaxOver", "Param",
    "Points", "Shift", "Source", "System", "at", "descent", "entropy", "grad", "gradient_flow", "index", "inverse",
    "layers", "logsumexp", "named", "over", "sensitivities", "sgd_noise", "shift", "shifted_exp", "sizes", "softmax", "solve", "table",
    "time", "xlogy",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in ("grad", "gradient_flow", "sgd_noise"):
        return getattr(import_module("odesim.transforms.gradients"), name)
    if name == "sensitivities":
        return import_module("odesim.transforms.sensitivity").sensitivities
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

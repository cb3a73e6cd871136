"""Symbols: what a model file writes, and what is derived from it."""

from odesim.symbolic.expr import MaxOver, Shift, index, logsumexp, over, sizes, softmax, time
from odesim.symbolic.sensitivity import sensitivities
from odesim.symbolic.system import ClosedForm, Constraint, Event, Invariant, Param, Source, System

__all__ = [
    "ClosedForm", "Constraint", "Event", "Invariant", "MaxOver", "Param", "Shift", "Source", "System",
    "index", "logsumexp", "over", "sensitivities", "sizes", "softmax", "time",
]  # fmt: skip

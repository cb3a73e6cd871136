"""The shipped models by kind: differential equations, and Maps."""

from odesim.inputs.registry import list_models

MAPS = ("hierarchy.occurrence", "hopfield.classical", "hopfield.dense", "hopfield.update")
FLOWS = [name for name in list_models() if name not in MAPS]
COMPILED = (
    "hopfield.update",
    "joma.linear",
    "joma.linear_softmax",
    "joma.nonlinear",
    "reversal.row",
    "scan_snap.symmetric",
    "scan_snap.theorem4",
)
"""Those that are compiled by default: other tests take their kernels too. The others are compiled in the slow tests."""

"""The shipped models by kind: differential equations, and Maps."""

from odesim.inputs.registry import list_models, load_model

FLOWS = [name for name in list_models() if not load_model(name).discrete]
MAPS = [name for name in list_models() if load_model(name).discrete]

"""The explicit methods by name: a file of this folder is a method, and no other list names it. Discrete time as a method."""

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType

from odesim.base.backends import EXPLICIT
from odesim.stepper.tableau import Method, make_method

# last = 0: no stage lies at the new point, so that the loops take stage 0 for the new state. Between two updates the state stays.
MAP = make_method("map", order=0, last=0, c=(0,), A=((),), P=((0.0,),), dense_order=0, source="")


_FOUND: list[Method] = [import_module(f"{__name__}.{name}").METHOD for name in EXPLICIT]
METHODS: Mapping[str, Method] = MappingProxyType({m.name: m for m in sorted(_FOUND, key=lambda m: (not m.adaptive, m.order))})
"""Those that choose their steps first, then by order."""

"""The Rosenbrock methods by name."""

from collections.abc import Mapping
from types import MappingProxyType

from odesim.solve.methods.rodas4 import RODAS4
from odesim.solve.methods.rodas5p import RODAS5P
from odesim.solve.methods.rosenbrock import Rosenbrock

ROSENBROCK: Mapping[str, Rosenbrock] = MappingProxyType({method.name: method for method in (RODAS4, RODAS5P)})

__all__ = ["ROSENBROCK", "Rosenbrock"]

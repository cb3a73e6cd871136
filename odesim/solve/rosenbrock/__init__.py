"""The Rosenbrock methods by name."""

from collections.abc import Mapping
from types import MappingProxyType

from odesim.solve.rosenbrock.method import Rosenbrock
from odesim.solve.rosenbrock.rodas4 import RODAS4
from odesim.solve.rosenbrock.rodas5p import RODAS5P

ROSENBROCK: Mapping[str, Rosenbrock] = MappingProxyType({method.name: method for method in (RODAS4, RODAS5P)})

__all__ = ["ROSENBROCK", "Rosenbrock"]

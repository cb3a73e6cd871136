"""The explicit methods by name."""

from collections.abc import Mapping
from types import MappingProxyType

from odesim.solve.tableau.low_order import EULER, RK4
from odesim.solve.tableau.method import Method
from odesim.solve.tableau.tsit5 import TSIT5

METHODS: Mapping[str, Method] = MappingProxyType({method.name: method for method in (TSIT5, EULER, RK4)})

__all__ = ["METHODS", "Method"]

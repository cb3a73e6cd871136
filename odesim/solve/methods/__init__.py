"""The explicit methods by name."""

from collections.abc import Mapping
from types import MappingProxyType

from odesim.solve.methods.dop853 import DOP853
from odesim.solve.methods.explicit import Method
from odesim.solve.methods.low_order import EULER, RK4
from odesim.solve.methods.tsit5 import TSIT5
from odesim.solve.methods.vern7 import VERN7

METHODS: Mapping[str, Method] = MappingProxyType({method.name: method for method in (TSIT5, VERN7, DOP853, EULER, RK4)})

__all__ = ["METHODS", "Method"]

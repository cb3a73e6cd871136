"""The Rosenbrock methods by name: a file of this folder is a method, and no other list names it."""

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType

from odesim.base.backends import STIFF
from odesim.stepper.tableau import Rosenbrock

ROSENBROCK: Mapping[str, Rosenbrock] = MappingProxyType({name: import_module(f"{__name__}.{name}").METHOD for name in STIFF})

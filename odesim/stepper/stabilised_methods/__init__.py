"""The stabilised methods by name: a file of this folder is a method, and no other list names it."""

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType

from odesim.base.backends import STABILISED as NAMES
from odesim.stepper.tableau import Method

STABILISED: Mapping[str, Method] = MappingProxyType({name: import_module(f"{__name__}.{name}").METHOD for name in NAMES})

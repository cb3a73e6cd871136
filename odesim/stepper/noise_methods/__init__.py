"""The schemes for noise by name: a file of this folder is a scheme, and no other list names it."""

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType

from odesim.base.backends import NOISY
from odesim.stepper.tableau import Scheme

SCHEMES: Mapping[str, Scheme] = MappingProxyType({name: import_module(f"{__name__}.{name}").METHOD for name in NOISY})

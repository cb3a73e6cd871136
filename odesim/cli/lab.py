"""The commands of the lab, for those on stored runs and on names: it stands above the command line, and is imported by name when used."""

from importlib import import_module
from typing import Any


def lab_commands() -> Any:
    """The module odesim.lab.commands."""
    return import_module("odesim.lab.commands")

"""Pictures from methods: the one place where a lower floor reaches the rooms of pictures, which are imported when something is drawn."""

from importlib import import_module
from typing import Any


def draw(what: str, thing: Any, ax: Any = None, **words: Any) -> Any:
    """The Axes of the panels of a picture of a thing. what: the kind of picture; words: what to draw, as Choice has it."""
    return import_module("odesim.plot.methods").draw(what, thing, ax, **words)


def with_accessor(run: Any) -> Any:
    """run, a Dataset, now that all Datasets have the accessor `odesim`."""
    import_module("odesim.ensembles.accessor").register()
    return run

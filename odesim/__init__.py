"""odesim: analytic training dynamics as array ODEs, compiled, integrated at scale, and held against real training."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from odesim.facade import integrate
    from odesim.registry import list_models, load_model
    from odesim.solve.solution import Solution
    from odesim.store import open_run
    from odesim.symbolic import System

_HOMES = {
    "integrate": "odesim.facade",
    "list_models": "odesim.registry",
    "load_model": "odesim.registry",
    "open_run": "odesim.store",
    "Solution": "odesim.solve.solution",
    "System": "odesim.symbolic",
}

__all__ = ["Solution", "System", "__version__", "integrate", "list_models", "load_model", "open_run"]


def __getattr__(name: str) -> Any:
    """A name of the facade, imported when first used."""
    if name not in _HOMES:
        raise AttributeError(f"module 'odesim' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
